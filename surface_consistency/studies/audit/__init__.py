"""The audit of forgetting: what survives the deletion of a fact, by which way, and from where.

The framework is that of arXiv 2607.00605: every fact is asked with the database whole (FULL), with
the fact deleted (DEL-ON), and with the fact deleted and retrieval off (DEL-OFF).
"""

from surface_consistency.studies.audit.ask import RunnerFactory, run_audit
from surface_consistency.studies.audit.attribution import AttributionResult, attribute
from surface_consistency.studies.audit.cells import AuditCell, CellLabel, cell_label, find_cells
from surface_consistency.studies.audit.folder import AuditFolder
from surface_consistency.studies.audit.memory import AuditMemory, build_memory
from surface_consistency.studies.audit.published import published_tables
from surface_consistency.studies.audit.retrievers import (
    RETRIEVERS,
    Retrievers,
    retrievers_by_name,
)
from surface_consistency.studies.audit.runners import augmented_runners, lookup_runners
from surface_consistency.studies.audit.score import audit_frame, score_audit
from surface_consistency.studies.audit.settings import STATES, AuditSettings
from surface_consistency.studies.audit.source import AuditSource
from surface_consistency.studies.audit.study import SweepResult, finish_audit, sweep_audit
from surface_consistency.studies.audit.tables import AUDIT_GROUPINGS, audit_tables

__all__ = [
    "AUDIT_GROUPINGS",
    "RETRIEVERS",
    "STATES",
    "AttributionResult",
    "AuditCell",
    "AuditFolder",
    "AuditMemory",
    "AuditSettings",
    "AuditSource",
    "CellLabel",
    "Retrievers",
    "RunnerFactory",
    "SweepResult",
    "attribute",
    "audit_frame",
    "audit_tables",
    "augmented_runners",
    "build_memory",
    "cell_label",
    "find_cells",
    "finish_audit",
    "lookup_runners",
    "published_tables",
    "retrievers_by_name",
    "run_audit",
    "score_audit",
    "sweep_audit",
]
