"""Pairs of each of the four cells, with surfaces and answers side by side."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.report._markup import Html, data_text, join, tag
from surface_consistency.report._names import category_title, display
from surface_consistency.report.run import StudyRun

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["examples_of_cells"]

_CELLS: Final = (
    ("Right under the canonical name only", True, False),
    ("Right under the redirect name only", False, True),
    ("Right under both names", True, True),
    ("Right under neither name", False, False),
)
_HEADS: Final = (
    "run",
    "template",
    "relation",
    "canonical name",
    "answer",
    "redirect name",
    "answer",
    "categories",
)


def examples_of_cells(runs: Sequence[StudyRun], n_examples: int) -> Html:
    """Show up to `n_examples` pairs of each cell, picked by a hash of their ids."""
    return join(_cell(runs, title, (first, second), n_examples) for title, first, second in _CELLS)


def _cell(
    runs: Sequence[StudyRun], title: str, verdicts: tuple[bool, bool], n_examples: int
) -> Html:
    """Show the examples of one cell."""
    first, second = verdicts
    found: list[tuple[bytes, StudyRun, int]] = []
    for run in runs:
        pairs = run.outcomes
        verdict = (pairs["first_correct"] == first) & (pairs["second_correct"] == second)
        belongs = verdict.fillna(False).to_numpy(dtype=bool)
        ids = pairs["pair_id"].tolist()
        found.extend((_place(run.label, ids[row]), run, int(row)) for row in belongs.nonzero()[0])
    if not found:
        return tag("p", f"{title}: no pair.")
    found.sort(key=lambda item: item[0])
    lines = [_line(run.label, run.outcomes.iloc[row]) for _, run, row in found[:n_examples]]
    heading = f"{title}: {len(lines):,} of {len(found):,} pairs"
    return tag("details", tag("summary", heading), _table(heading, lines))


def _place(label: str, pair_id: str) -> bytes:
    """Order pairs in a way that is arbitrary yet always the same."""
    return hashlib.blake2b(f"{label}\x1f{pair_id}".encode("utf-8", "replace")).digest()


def _table(heading: str, lines: Sequence[Html]) -> Html:
    """Put the lines below their head."""
    head = tag(
        "thead", tag("tr", *(tag("th", name, scope="col", class_="text") for name in _HEADS))
    )
    table = tag("table", tag("caption", heading), head, tag("tbody", *lines))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=heading)


def _line(label: str, pair: "pd.Series[Any]") -> Html:
    """Show one pair."""
    values = (
        label,
        pair["template"],
        display("relation", pair["relation"]),
        pair["first_surface"],
        pair["first_prediction"],
        pair["second_surface"],
        pair["second_prediction"],
        "; ".join(map(category_title, pair["categories"])) or None,
    )
    return tag("tr", *(tag("td", data_text(value), class_="text") for value in values))
