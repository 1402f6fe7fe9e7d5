"""One self-contained HTML page about one or several runs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.report._document import document
from surface_consistency.report._examples import examples_of_cells
from surface_consistency.report._grid import signature_lines
from surface_consistency.report._limits import how_to_read, labels_note, left_out
from surface_consistency.report._markup import Html, join
from surface_consistency.report._overview import headlines, highlights, what_was_run
from surface_consistency.report._page import Page
from surface_consistency.report._results import checks, results_of_template
from surface_consistency.report.figures import SELECTED_CATEGORIES
from surface_consistency.report.run import StudyRun
from surface_consistency.report.tables import study_tables
from surface_consistency.schemas.jsonl import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_report"]

_NAMED = 3


def write_report(
    runs: Sequence[StudyRun],
    out: str | os.PathLike[str],
    *,
    cluster: str = "fact_id",
    title: str | None = None,
    examples: int = 20,
    categories: Sequence[str] = SELECTED_CATEGORIES,
    n_resamples: int = 10_000,
    seed: int = 0,
    tables: "Mapping[str, pd.DataFrame] | None" = None,
) -> Path:
    """Write the report of one or several runs.

    Args:
        runs: The runs, their labels distinct.
        out: The HTML file, or a folder (any name that does not end in ".html"), which gets the
            file `report.html`. Folders are made when absent, an older file is replaced.
        cluster: Column that is resampled as a whole: "fact_id" or "subject_id".
        title: Heading of the page; names the runs by default.
        examples: Pairs to show of each of the four cells, at most.
        categories: Redirect categories that get a panel in the figures, in any spelling.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.
        tables: What `study_tables` returned for these runs, cluster, resamples and seed, to save
            computing it again.

    Returns:
        The file written. It needs no other file, no network and no script. Without matplotlib it
        has no figures and says how to install it.

    Raises:
        ValueError: If there are no runs, two of one label, or `examples` is negative.
        DataError: If a run holds no pair.
    """
    if examples < 0:
        raise ValueError(f"examples must be at least 0, got {examples}")
    target = Path(out)
    if target.suffix.lower() != ".html":
        target /= "report.html"
    if tables is None:
        tables = study_tables(runs, cluster=cluster, n_resamples=n_resamples, seed=seed)
    page = Page(
        runs=runs,
        tables=tables,
        cluster=cluster,
        n_resamples=n_resamples,
        seed=seed,
        n_examples=examples,
        categories=categories,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, document(title or _title(page), _sections(page)))
    return target


def _title(page: Page) -> str:
    """Name the page after its runs."""
    labels = [run.label for run in page.runs]
    if len(labels) > _NAMED:
        return f"Consistency under other names: {len(labels)} runs"
    return f"Consistency under other names: {', '.join(labels)}"


def _sections(page: Page) -> dict[str, tuple[str, Html]]:
    """Build the sections by anchor, each with its heading, in the order of the page."""
    found: dict[str, tuple[str, Html]] = {}
    if any(run.highlights for run in page.runs):
        found["highlights"] = ("Highlights", highlights(page))
    found["runs"] = ("What was run", what_was_run(page))
    overall = page.grid(page.tables["overall"], "All pairs by model and template")
    found["numbers"] = ("Main numbers", join([headlines(page), overall]))
    for place, template in enumerate(page.templates, start=1):
        parts = [results_of_template(page, template)]
        if place == 1:
            parts.append(labels_note(page))
        found[f"template-{place}"] = (f"Results, template {template}", join(parts))
    found["checks"] = ("Checks", checks(page))
    if page.n_examples:
        pairs = examples_of_cells(page.runs, page.n_examples)
        found["examples"] = ("Examples", join([pairs, signature_lines(page.signatures())]))
    found["left-out"] = ("What was left out", left_out(page))
    found["reading"] = ("How to read this page", how_to_read(page))
    return found
