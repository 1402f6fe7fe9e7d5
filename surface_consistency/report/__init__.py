"""Finished runs as tables, figures and one HTML page."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.report.figures import plot_groups, plot_square, write_figures
    from surface_consistency.report.html import render_page, write_page
    from surface_consistency.report.numbers import table_text
    from surface_consistency.report.page import Page, Section
    from surface_consistency.report.table import Column, Table

__all__ = [
    "Column",
    "Page",
    "Section",
    "Table",
    "plot_groups",
    "plot_square",
    "render_page",
    "table_text",
    "write_figures",
    "write_page",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Column": "table",
        "Page": "page",
        "Section": "page",
        "Table": "table",
        "plot_groups": "figures",
        "plot_square": "figures",
        "render_page": "html",
        "table_text": "numbers",
        "write_figures": "figures",
        "write_page": "html",
    },
)
