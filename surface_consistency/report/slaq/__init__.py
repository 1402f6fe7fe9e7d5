"""Finished SLAQ runs as tables, figures and one HTML page."""

from surface_consistency.report.slaq.figures import (
    alignment_figure,
    momentum_figure,
    position_figure,
    write_slaq_figures,
)
from surface_consistency.report.slaq.html import write_slaq_report
from surface_consistency.report.slaq.run import SlaqRun, load_slaq_runs
from surface_consistency.report.slaq.tables import SLAQ_GROUPINGS, slaq_run_tables, slaq_tables

__all__ = [
    "SLAQ_GROUPINGS",
    "SlaqRun",
    "alignment_figure",
    "load_slaq_runs",
    "momentum_figure",
    "position_figure",
    "slaq_run_tables",
    "slaq_tables",
    "write_slaq_figures",
    "write_slaq_report",
]
