"""Finished audits of forgetting as tables, figures and one HTML page."""

from surface_consistency.report.audit.figures import (
    attribution_figure,
    audit_figures,
    discordant_figure,
    state_figure,
    write_audit_figures,
)
from surface_consistency.report.audit.html import write_audit_report
from surface_consistency.report.audit.run import AuditRun, load_audit_runs
from surface_consistency.report.audit.story import (
    FactStory,
    StateStory,
    fact_story,
    load_stories,
    surviving_facts,
)
from surface_consistency.report.audit.tables import audit_run_tables

__all__ = [
    "AuditRun",
    "FactStory",
    "StateStory",
    "attribution_figure",
    "audit_figures",
    "audit_run_tables",
    "discordant_figure",
    "fact_story",
    "load_audit_runs",
    "load_stories",
    "state_figure",
    "surviving_facts",
    "write_audit_figures",
    "write_audit_report",
]
