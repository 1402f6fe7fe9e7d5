"""The sections of the page about audits, but for warnings and stories."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._document import picture
from surface_consistency.report._grid import grid
from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report._old_figures import svg_text
from surface_consistency.report.audit._names import (
    KIND_MEANINGS,
    KIND_TITLES,
    group_title,
)
from surface_consistency.report.audit.figures import (
    attribution_figure,
    discordant_figure,
    state_figure,
)
from surface_consistency.report.audit.run import AuditRun

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["AuditPage", "closure_note"]

_GROUPS: Final = {
    "overall": "all facts",
    "by_variant": "by variant",
    "by_style": "by prompt style",
    "by_domain": "by domain",
    "by_database": "by database",
    "by_cell": "by database and prompt style",
}
_FOLDED: Final = frozenset({"by_domain", "by_database", "by_cell"})
_LABELS: Final = ("model", "variant", "domain", "style", "database")
_RATES: Final = {
    "leakage": "L rate",
    "retrieval_mediated": "R rate",
    "interference": "I rate",
    "del_on_accuracy": "DEL-ON rate",
    "artifact_rate": "A rate",
    "full_accuracy": "FULL rate",
    "survival_given_full": "DEL-ON given FULL rate",
}
_TEST: Final = {
    "both": "a",
    "first_only": "b",
    "second_only": "c",
    "neither": "d",
    "mcnemar_method": "McNemar",
    "mcnemar_statistic": "statistic",
    "mcnemar_p_value": "published p_value",
    "clustered_mcnemar_statistic": "clustered statistic",
    "clustered_mcnemar_p_value": "clustered p_value",
}
_SIZES: Final = {"n": "n", "n_clusters": "n_facts", "n_missing": "n_missing"}
_ASKED: Final = {"n_full": "n FULL", "n_del_on": "n DEL-ON", "n_del_off": "n DEL-OFF"}
_CLOSURE: Final = {"n_incomplete": "n_incomplete closures"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Runs and their tables, and what is shown of them."""

    runs: Sequence[AuditRun]
    """The runs in the order of the page."""

    tables: "Mapping[str, pd.DataFrame]"
    """As from `audit_run_tables`."""

    def numbers(self) -> Html:
        """Show L, R, A and their kin, and what differs between the runs."""
        parts = [self._plain("settings", "Settings in which the runs differ")]
        if len(self.runs) > 1:
            parts.append(self._attribution("model", "by run"))
        parts.append(self._attribution("variant", "by variant, figure 3 of the paper"))
        parts.append(self._attribution("style", "by prompt style, figure 4 of the paper"))
        notes = self._states_notes()
        sizes = {**_SIZES, **_ASKED} if notes else _SIZES
        parts.extend(notes)
        parts.extend(self._each("", {**sizes, **_RATES, **_CLOSURE}, "What survives deletion"))
        return join(parts)

    def origins(self) -> Html:
        """Show where the answers that are right under DEL-ON came from."""
        meanings = (
            tag("li", tag("strong", KIND_TITLES[kind]), f": {meaning}")
            for kind, meaning in KIND_MEANINGS.items()
        )
        shown = {
            "attribution": "origin",
            "count": "n_answers",
            "share": "right answers share",
            "rate": "all facts rate",
            "n_also_right_without_retrieval": "n_right under DEL-OFF too",
            "n_del_on_correct": "n_right under DEL-ON",
            "n": "n",
            **_CLOSURE,
        }
        names = {str(kind): title for kind, title in KIND_TITLES.items()}
        tables = {
            name: table.assign(attribution=table["attribution"].map(names))
            for name, table in self.tables.items()
            if name.startswith("attribution") and "attribution" in table
        }
        page = AuditPage(runs=self.runs, tables=tables)
        listed = tag(
            "p",
            "Where DEL-OFF has an answer right too, the parameters alone would have sufficed, "
            "whatever was retrieved. tables/survivors.csv of each run lists all answers.",
        )
        return join([tag("ul", *meanings), listed, *page._each("attribution", shown, "Origins")])

    def states(self) -> Html:
        """Show exact match and token F1 in the three states."""
        shown = {
            "state": "state",
            "n": "n",
            "n_facts": "n_facts",
            "exact_match": "exact match rate",
            "f1": "token F1 rate",
            **_CLOSURE,
        }
        return join(
            [
                self._figure(
                    partial(state_figure, self.tables, by="style", score="f1"),
                    "Token F1 by prompt style and state, figure 5 of the paper.",
                ),
                self._figure(
                    partial(state_figure, self.tables, by="variant"),
                    "Exact match by variant and state, figure 6 of the paper.",
                ),
                *self._each("states", shown, "Scores by state"),
            ]
        )

    def tests(self) -> Html:
        """Show the discordant pairs, both tests, and the identity."""
        identity = {
            "del_on_accuracy": "DEL-ON rate",
            "l_plus_r": "L + R, rate",
            "interference": "c/n, rate",
            "identity_residual": "DEL-ON less (L + R - c/n)",
            "artifacts_equal_del_on": "A equals DEL-ON",
            **_CLOSURE,
        }
        page = AuditPage(runs=self.runs, tables=dict(map(_with_sum, self.tables.items())))
        return join(
            [
                self._figure(
                    partial(discordant_figure, self.tables),
                    "Discordant pairs by variant, figure 7 of the paper: right under DEL-ON only "
                    "(b) and under DEL-OFF only (c).",
                ),
                *self._each("", {**_SIZES, **_TEST, **_CLOSURE}, "DEL-ON against DEL-OFF"),
                *page._each("", identity, "Identity", names=("overall", "by_variant", "by_style")),
            ]
        )

    def deletion(self) -> Html:
        """Show what the deletions left."""
        facts = self._plain("check_closure_facts", "Facts whose deletion has something to tell")
        return join(
            [
                self._plain("check_closure", "What the deletions of each database leave"),
                tag("details", tag("summary", "Fact by fact"), facts),
            ]
        )

    def checks(self) -> Html:
        """Show the other checks of the runs."""
        titles = {
            "check_contamination": "FULL against DEL-ON, by database",
            "check_databases": "Databases and the content that their retrievers were built over",
            "check_fit": "Prompts that each database can answer",
            "check_lookups": "Lookups and abstentions, by database and state",
        }
        done = {"check_closure", "check_closure_facts"}
        names = [name for name in self.tables if name.startswith("check_") and name not in done]
        ordered = [*(n for n in titles if n in names), *(n for n in names if n not in titles)]
        said = {name: name.removeprefix("check_").replace("_", " ").capitalize() for name in names}
        return join([self._plain(name, titles.get(name, said[name])) for name in ordered])

    def _states_notes(self) -> list[Html]:
        """Name the states that runs were not asked in."""
        overall = self.tables.get("overall")
        if overall is None or "states_note" not in overall:
            return []
        named = zip(overall["model"], overall["states_note"], strict=True)
        return [
            tag("p", f"{model}: {note}.", class_="note")
            for model, note in named
            if isinstance(note, str) and note
        ]

    def _each(
        self,
        prefix: str,
        shown: Mapping[str, str],
        title: str,
        *,
        names: Sequence[str] = tuple(_GROUPS),
    ) -> list[Html]:
        """Show the tables of all groupings, those of many rows folded away."""
        parts = []
        for name in names:
            key = "_".join(part for part in (prefix, name) if part and part != "overall") or name
            table = self.tables.get(key)
            if table is None or table.empty:
                continue
            caption = f"{title}, {_GROUPS[name]}"
            html = self._grid(table, shown, caption)
            if name in _FOLDED:
                html = tag("details", tag("summary", caption), html)
            parts.append(html)
        return parts

    def _grid(self, table: "pd.DataFrame", shown: Mapping[str, str], caption: str) -> Html:
        """Show some columns of a table under the names for people, with the note on closures."""
        ends = ("", "_low", "_high")
        renamed = {
            f"{old}{end}": f"{new}{end}"
            for old, new in shown.items()
            for end in ends
            if f"{old}{end}" in table
        }
        kept = [name for name in _LABELS if name in table]
        for name in ("identity_residual", "artifacts_equal_del_on"):
            if name in renamed:
                table = table.assign(**{name: table[name].map(_settled)})
        frame = table[[*kept, *renamed]].rename(columns=renamed)
        if "style" in frame:
            frame["style"] = [group_title("style", style) for style in frame["style"]]
        return self._with_note(frame, table, caption)

    def _plain(self, name: str, caption: str) -> Html:
        """Show a table as it is, or nothing where there is none."""
        table = self.tables.get(name)
        if table is None or table.empty:
            return Html("")
        return self._with_note(table, table, caption)

    def _with_note(self, frame: "pd.DataFrame", table: "pd.DataFrame", caption: str) -> Html:
        """Show a table, and below it whether a closure was incomplete."""
        labels = set(table["model"]) if "model" in table else None
        sources = [
            f"{run.label} = {run.signature}"
            for run in self.runs
            if labels is None or run.label in labels
        ]
        shown = grid(frame, caption=caption, sources=sources)
        notes = [
            tag("p", f"{run.label}: {note}.", class_="note")
            for run in self.runs
            if (labels is None or run.label in labels) and (note := closure_note(run))
        ]
        return join([shown, *notes])

    def _attribution(self, by: Any, said: str) -> Html:  # noqa: ANN401
        """Draw the attribution bars."""
        return self._figure(
            partial(attribution_figure, self.tables, by=by),
            f"What is right after deletion, {said}. Left, as the paper has it: L below R. Middle: "
            "A, which equals p(DEL-ON) wherever deletion and support use one rule. Right: "
            "p(DEL-ON) by where the answers came from. Whiskers are 95 % intervals over facts.",
        )

    def _figure(self, draw: "Callable[[], Figure]", caption: str) -> Html:
        """Draw a figure, or say why there is none."""
        try:
            figure = draw()
        except MissingDependencyError as error:
            return tag("p", f"{error} Then write the report again.", class_="note")
        except ValueError as error:
            return tag("p", f"No figure: {error}.", class_="note")
        label = caption.split(".")[0]
        alt = f"{label}. The tables hold the numbers."
        return picture(svg_text(figure), alt=alt, label=label, caption=caption)


def closure_note(run: AuditRun) -> str:
    """Say how many deletions of a run are incomplete; nothing when all are complete."""
    facts = run.outcomes.drop_duplicates("fact_id")
    n_incomplete = int(facts["n_surviving"].gt(0).sum())
    if not n_incomplete:
        return ""
    return (
        f"closure incomplete: after their deletion {n_incomplete:,} of {len(facts):,} facts are "
        "still stated by an equivalent entry"
    )


def _with_sum(named: "tuple[str, pd.DataFrame]") -> "tuple[str, pd.DataFrame]":
    """Add L + R to a table of rates."""
    name, table = named
    if "leakage" not in table:
        return name, table
    return name, table.assign(l_plus_r=table["leakage"] + table["retrieval_mediated"])


def _settled(value: object) -> object:
    """Write truth values in words, and sums of shares without their rounding error."""
    if isinstance(value, str):
        return value
    if value is True or value is False or type(value).__name__ == "bool":
        return "yes" if value else "no"
    return round(float(value), 12) + 0.0  # type: ignore[arg-type]
