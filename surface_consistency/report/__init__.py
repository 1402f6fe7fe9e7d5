"""Finished runs as tables, figures and one HTML page."""

from surface_consistency.report.figures import (
    consistency_figure,
    save_figure,
    write_figures,
)
from surface_consistency.report.html import write_report
from surface_consistency.report.run import StudyRun, load_run, load_runs
from surface_consistency.report.tables import study_tables, write_tables

__all__ = [
    "StudyRun",
    "consistency_figure",
    "load_run",
    "load_runs",
    "save_figure",
    "study_tables",
    "write_figures",
    "write_report",
    "write_tables",
]
