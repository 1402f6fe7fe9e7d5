"""One self-contained HTML page about one or several audits of forgetting."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import SourceNotFoundError
from surface_consistency.report._document import document
from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report.audit._sections import AuditPage
from surface_consistency.report.audit._story_html import story_html
from surface_consistency.report.audit._warnings import warnings_html
from surface_consistency.report.audit.run import AuditRun
from surface_consistency.report.audit.story import load_stories, surviving_facts
from surface_consistency.report.audit.tables import audit_run_tables
from surface_consistency.runs.files import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_audit_report"]

_READING: Final = (
    "FULL: the database whole. DEL-ON: the fact deleted, retrieval on. DEL-OFF: the fact deleted, "
    "retrieval off. With a facts right under both of the latter, b under DEL-ON only, c under "
    "DEL-OFF only and d under neither of n: leakage L = (a + c) / n, retrieval-mediated "
    "correctness R = b / n, interference I = c / n.",
    "p(DEL-ON) = L + R - c/n, always. The stack L + R, which the paper draws, overstates what "
    "survives by c/n.",
    "A counts the facts that are right under DEL-ON with no retained candidate that states the "
    "fact. Where the rule that deletes is the rule that tells support, no such candidate can be "
    "retained, and A is p(DEL-ON): it carries no information. The origins do: they say what the "
    "model was given when it answered.",
    "Intervals are 95 %, from resamples of whole facts: a fact stands under several prompt styles, "
    "which are not independent. A rate of 0 or 1 gets Wilson's interval over facts.",
    "McNemar's test is the published one (exact up to 25 discordant pairs, else chi-square with "
    "continuity correction), which takes all pairs for independent, and beside it Obuchowski's, "
    "which takes facts for clusters. Neither is corrected for the number of groups.",
    "A deletion is incomplete when an entry remains that is equivalent to the fact under the names "
    "that the aliases of all facts join. It is looked for by a wider rule than the deletion's own, "
    "which would always pass.",
    "– stands where nothing defines a value.",
)


def write_audit_report(
    runs: Sequence[AuditRun],
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    stories: int = 6,
    tables: "Mapping[str, pd.DataFrame] | None" = None,
) -> Path:
    """Write the report of one or several audits, such as those of a sweep.

    Args:
        runs: The runs, their labels distinct.
        out: The HTML file, or a folder, which gets the file `report.html`.
        title: Heading of the page; names the runs by default.
        stories: Facts of each run that were answered after deletion and whose whole story is told,
            at most.
        tables: What `audit_run_tables` returned for these runs, to save gathering it again.

    Returns:
        The file written. It needs no other file, no network and no script.

    Raises:
        ValueError: If there are no runs, or `stories` is negative.
    """
    if not runs or stories < 0:
        raise ValueError(f"runs must not be empty and stories at least 0, got {stories}")
    target = Path(out)
    if target.suffix.lower() != ".html":
        target /= "report.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    page = AuditPage(runs=runs, tables=tables or audit_run_tables(runs))
    sections = {
        "warnings": ("Before the numbers", warnings_html(runs)),
        "numbers": ("What survives deletion", page.numbers()),
        "origins": ("Where the answers came from", page.origins()),
        "states": ("The three states", page.states()),
        "tests": ("Tests and identity", page.tests()),
        "deletion": ("What was deleted, and what was left", page.deletion()),
        "checks": ("Checks", page.checks()),
    }
    if stories:
        sections["stories"] = ("Facts that survived", _stories(runs, stories))
    sections["reading"] = ("How to read this page", join(tag("p", text) for text in _READING))
    names = ", ".join(run.label for run in runs) if len(runs) <= 3 else f"{len(runs)} runs"
    write_text(target, document(title or f"Audit of forgetting: {names}", sections))
    return target


def _stories(runs: Sequence[AuditRun], limit: int) -> Html:
    """Tell the stories of the first facts of each run that were answered after deletion."""
    parts = []
    for run in runs:
        pair_ids = surviving_facts(run, limit)
        if not pair_ids:
            parts.append(tag("p", f"{run.label}: no fact was answered after its deletion."))
            continue
        try:
            parts.extend(story_html(story) for story in load_stories(run, pair_ids))
        except SourceNotFoundError as error:
            parts.append(tag("p", f"{run.label}: {error}", class_="note"))
    return join(parts)
