"""Page of any paired study: the finding, the squares, flips by group, and answers to read."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.paired_checks import PairedChecks
from surface_consistency.engine.paired_tables import (
    COUNTS,
    TEST_NAMES,
    interval_value,
    is_hardly_right,
    table_of_runs,
)
from surface_consistency.errors import DataError
from surface_consistency.report.page import (
    Answer,
    Answers,
    Dot,
    Finding,
    ForestPlot,
    MosaicPlot,
    MosaicPlots,
    Page,
    Part,
    Section,
    Value,
)
from surface_consistency.report.table import Table
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome

__all__ = ["PairedReport", "cell_of", "fact_trace"]

_CELLS: Final = {
    (True, True): "both",
    (True, False): "first_only",
    (False, True): "second_only",
    (False, False): "neither",
}


def cell_of(first: object, second: object) -> str:
    """Name the cell of a pair.

    Args:
        first: Verdict under the first condition; missing when there is none.
        second: Verdict under the second condition.

    Returns:
        "both", "first_only", "second_only", "neither", or "missing".
    """
    if pd.isna(first) or pd.isna(second):  # type: ignore[call-overload]
        return "missing"
    return _CELLS[bool(first), bool(second)]


def fact_trace(
    folder: str | os.PathLike[str], fact_id: str, *, outcome: type[PairedOutcome]
) -> str:
    """Tell what became of one fact in a run, for a terminal.

    Args:
        folder: The run.
        fact_id: The fact, as the outcomes name it.
        outcome: The record of a pair.

    Returns:
        Lines of plain text; what a model wrote stands in quotes, control characters escaped.

    Raises:
        DataError: If the run has no such fact.
    """
    run = load_runs([folder], outcome=outcome)[0]
    rows = run.outcomes[run.outcomes["fact_id"] == fact_id]
    if rows.empty:
        known = ", ".join(run.outcomes["fact_id"].drop_duplicates().head(3))
        raise DataError(f"{folder} has no fact {fact_id!r}; it has {known} and others")
    lines = []
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        lines.append(f"{row['pair_id']}, by {run.label}")
        for side in ("first", "second"):
            said = json.dumps(row.get(f"{side}_prediction"), ensure_ascii=False)
            verdict = {True: "right", False: "wrong", None: "not judged"}[row[f"{side}_correct"]]
            lines.append(f"  {row[f'{side}_condition']}: {said} ({verdict})")
    return "\n".join(lines)


class PairedReport(PairedChecks):
    """Computes the tables of a study's runs and says what stands on their page.

    Args:
        report: The runs.
    """

    def page(self, tables: Mapping[str, Table]) -> Page:
        """Say what stands on the page.

        Args:
            tables: What `tables` returned, and the checks of the runs.

        Returns:
            The page.
        """
        return Page(
            title=f"{self.design.title}: {self._named()}",
            study=self.design.title,
            question=self.design.question,
            models=self.labels,
            finding=self.finding(tables),
            sections=self.sections(tables),
            checks=self.checks(tables),
            provenance=self.provenance(),
            method=self.method(),
            citation=self.design.citation,
        )

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Say what stands between the finding and the checks.

        Args:
            tables: The tables.

        Returns:
            Squares, highlights, flips by group, numbers, answers and the tables of checks.
        """
        groups = [tables[name] for name in self.design.groupings if name in tables]
        sections = [self.squares_section(tables)]
        if highlights := self.highlight_blocks():
            sections.append(Section(anchor="highlights", title="Highlights", blocks=highlights))
        if dots := list(self.dots(tables)):
            sections.append(Section(anchor="flips", title="Where verdicts flip", blocks=dots))
        sections.append(
            Section(
                anchor="numbers",
                title="The numbers by group" if groups else "The numbers",
                blocks=[
                    tables["overall"],
                    *(tables[name] for name in ("same_answer", "generalisation") if name in tables),
                    *groups,
                ],
            )
        )
        if held := [tables[name] for name in tables if _is_contrast(name)]:
            sections.append(
                Section(
                    anchor="contrasts",
                    title="Differences that were tested",
                    blocks=held,
                    is_folded=True,
                )
            )
        if self.report.settings.answers:
            sections.append(Section(anchor="answers", title="Answers", blocks=[self.answers()]))
        own = self._own_tables()
        if checked := [tables[name] for name in tables if not (name in own or _is_contrast(name))]:
            sections.append(
                Section(
                    anchor="check-tables", title="Checks in numbers", blocks=checked, is_folded=True
                )
            )
        return sections

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say the finding: the flip rate, with accuracies and noise floor beside it.

        Args:
            tables: The tables.

        Returns:
            The finding.
        """
        first, second = self.design.conditions
        rows = self._rows(tables)
        of_panel = self._of_panel(tables)
        sentence: list[Part] = []
        summary: list[Part] = []
        for row in rows:
            if is_hardly_right(row):
                continue
            sentence.append(", " if sentence else f"The {second} in place of the {first} flips ")
            sentence += [interval_value(row, "flip_rate", tone="lost")]
            sentence.append(f" of {row['model']}’s verdicts{of_panel}")
            summary += [
                f"{row['model']} is right on ",
                interval_value(row, "first_accuracy", tone="strong"),
                f" under the {first} and on ",
                interval_value(row, "second_accuracy", tone="strong"),
                f" under the {second}; of its {int(row['first_only'] + row['second_only']):,} "
                f"flips {int(row['first_only']):,} go from right to wrong. ",
            ]
            summary += self._same_sentence(tables, row)
            summary += self._noise_sentence(tables, row)
        sentence += [". "] if sentence else []
        for row in filter(is_hardly_right, rows):
            sentence += self._hardly_sentence(row)
        sentence = [*sentence[:-1], str(sentence[-1]).rstrip()] if sentence else ["No pair."]
        return Finding(
            sentence=sentence, summary=summary, warning=self.warning(), facts=self.key_facts()
        )

    def _of_panel(self, tables: Mapping[str, Table]) -> str:
        """Name the panel that the finding is of, where there are several."""
        frame = tables["overall"].frame
        if self.facet is None or frame.empty or frame[self.facet].nunique() < 2:
            return ""
        name = str(frame[self.facet].iloc[0])
        label = self.design.labels.get(self.facet, {}).get(name, name)
        return f" ({self.facet}: {label.replace('_', ' ')})"

    def _hardly_sentence(self, row: Mapping[Any, Any]) -> list[Part]:
        """Lead with the accuracy of a model that is hardly ever right."""
        first, second = self.design.conditions
        return [
            f"{row['model']} is right on ",
            interval_value(row, "first_accuracy", tone="lost"),
            f" under the {first} and on ",
            interval_value(row, "second_accuracy", tone="lost"),
            f" under the {second}: hardly ever, so that the consistency of its verdicts says "
            "nothing. ",
        ]

    def _same_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> Iterator[Part]:
        """Say how many of the pairs that are wrong twice have the same answer."""
        if "same_answer" not in tables:
            return
        found = tables["same_answer"].frame
        found = found[(found["model"] == row["model"]) & (found["among"] == "both wrong")]
        if self.facet is not None:
            found = found[found[self.facet] == row[self.facet]]
        for one in found.to_dict("records"):
            yield "Of the pairs that it gets wrong both times "
            yield interval_value(one, "same_answer", tone="strong")
            yield " have the same answer. "

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the contingency table of each model.

        Args:
            tables: The tables.

        Returns:
            The section.
        """
        first, second = self.design.conditions
        note: list[Part] = []
        if "contrasts" in tables:
            for row in tables["contrasts"].frame.to_dict("records"):
                if row["rate"] == "flip_rate" and len(note) < 5 * 4:
                    note += [
                        f"On the {int(row['n_a']):,} pairs that both answered, {row['a']} flips ",
                        interval_value(row, "difference", kind="difference", tone="strong"),
                        f" against {row['b']}, ",
                        Value(value=float(row["p_value_holm"]), kind="p_value"),
                        ". ",
                    ]
        return Section(
            anchor="squares",
            title="The same fact, asked under both conditions",
            lead=[
                f"The left part of a square is what the model answers rightly under the {first}; "
                f"the upper part of each half is what it answers rightly under the {second}. Area "
                "is share."
            ],
            blocks=[
                MosaicPlots(
                    squares=[
                        self.square(row) for row in tables["overall"].frame.to_dict("records")
                    ],
                    conditions=self.design.conditions,
                    cells=self.design.cells,
                    note=note,
                )
            ],
        )

    def square(self, row: Mapping[Any, Any]) -> MosaicPlot:
        """Draw the contingency table of one row.

        Args:
            row: A row of "overall".

        Returns:
            The square.
        """
        title = str(row["model"])
        filters = {"model": title}
        if self.facet is not None:
            title += f", {row[self.facet]}"
            filters[self.facet] = str(row[self.facet])
        return MosaicPlot(
            title=title,
            model=self.index[str(row["model"])],
            **{name: int(row[name]) for name in COUNTS},
            facts=self.square_facts(row),
            filters=filters,
        )

    def square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say what stands below a square.

        Args:
            row: A row of "overall".

        Returns:
            Name, number and a remark, such as the test that was used.
        """
        first, second = self.design.conditions
        p_value = float(row.get("mcnemar_p_value", math.nan))
        method = TEST_NAMES.get(str(row.get("mcnemar_method")), "")
        return [
            ("same verdict", interval_value(row, "consistency"), ""),
            (f"kept of {first} right", interval_value(row, "consistency_given_first_correct"), ""),
            (
                f"{second} minus {first}",
                interval_value(row, "accuracy_difference", kind="difference"),
                "",
            ),
            ("kappa", interval_value(row, "kappa", kind="number"), ""),
            ("flips lean to one side", Value(value=p_value, kind="p_value"), method),
            *self._odds(row),
        ]

    def _odds(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say how many flips go from right to wrong for one that goes the other way."""
        odds = float(row.get("odds_ratio", math.nan))
        if not math.isfinite(odds):
            return []
        return [("flips to wrong for one to right", Value(value=odds, kind="number"), "b / c")]

    def highlight_blocks(self) -> list[Table]:
        """Show the tables that the runs put before all else.

        Returns:
            One table a title.
        """
        runs = self.report.runs
        return [
            table_of_runs(
                runs, title.capitalize(), {run.label: run.highlights.get(title) for run in runs}
            )
            for title in dict.fromkeys(title for run in runs for title in run.highlights)
        ]

    def dots(self, tables: Mapping[str, Table]) -> Iterator[ForestPlot]:
        """Show the flip rate by group over the noise floor.

        Args:
            tables: The tables.

        Yields:
            One chart a grouping and panel.
        """
        noise = self._noise_bounds(tables)
        for name, columns in self.design.groupings.items():
            frame = tables[name].frame
            key = self.design.shown(columns[-1])
            titles = self.design.labels.get(key, {})
            panels = (
                [(None, frame)]
                if self.facet is None
                else list(frame.groupby(self.facet, sort=False))
            )
            for shown, part in panels:
                panel, rows = str(shown or ""), []
                for group, found in part.groupby(key, sort=False):
                    label = str(group)
                    dots = [self._dot(row) for row in found.to_dict("records") if row["n"]]
                    if dots:
                        rows.append((titles.get(label, label.replace("_", " ")), 0, dots))
                if rows:
                    suffix = f"-{panel}" if len(panels) > 1 else ""
                    yield ForestPlot(
                        name=f"flips-{name.removeprefix('by_')}{suffix}",
                        title=name.replace("_", " ").capitalize()
                        + (f", {panel}" if suffix else ""),
                        axis="flip rate, %",
                        rows=rows,
                        noise=noise,
                        clusters=self.clusters,
                    )

    def _dot(self, row: Mapping[Any, Any]) -> Dot:
        """Draw one group of one model."""
        adjusted = row.get("adjusted_p_value", math.nan)
        return Dot(
            model=self.index[str(row["model"])],
            value=interval_value(row, "flip_rate"),
            n=int(row["n"]),
            n_clusters=int(row["n_clusters"]),
            is_certain=bool(adjusted < 0.05),
            is_above_noise=bool(row.get("above_noise_p_value", math.nan) < 0.05),
        )

    def answers(self) -> Answers:
        """Gather pairs for the browser: flips first, the rest drawn within cells.

        Returns:
            At most `ReportSettings.answers` pairs a model.
        """
        chosen: list[Answer] = []
        totals = {}
        for run in self.report.runs:
            totals[self.index[run.label]] = len(run.outcomes)
            rows = run.outcomes
            cells = [
                cell_of(a, b)
                for a, b in zip(rows["first_correct"], rows["second_correct"], strict=True)
            ]
            places = self._sampled(run, cells)
            for place in places:
                row = rows.iloc[place].to_dict()
                chosen.append(self.answer(run, row, cells[place]))
        filters = list(dict.fromkeys(name for answer in chosen for name in answer.labels))
        return Answers(
            answers=chosen,
            n_pairs=totals,
            conditions=self.design.conditions,
            cells=self.design.cells,
            filters=filters,
        )

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one pair.

        Args:
            run: The run.
            row: A row of its outcomes.
            cell: Its cell.

        Returns:
            The pair, from the columns first_surface, second_surface, first_prediction and
            second_prediction where the study has them.
        """
        labels = {
            self.design.shown(columns[-1]): self._texts(row, columns[-1])
            for columns in self.design.groupings.values()
        }
        if self.facet is not None:
            labels[self.facet] = [str(row[self.design.facet])]
        first, second = self.design.conditions
        return Answer(
            model=self.index[run.label],
            pair_id=str(row["pair_id"]),
            cell=cell,  # type: ignore[arg-type]
            question=str(row["fact_id"]),
            surfaces=(
                _text(row.get("first_surface")) or first,
                _text(row.get("second_surface")) or second,
            ),
            answers=(_text(row.get("first_prediction")), _text(row.get("second_prediction"))),
            labels=labels,
        )

    def _texts(self, row: Mapping[Any, Any], column: str) -> list[str]:
        """Read the labels of a cell."""
        value = row[column]
        titles = self.design.labels.get(self.design.shown(column), {})
        values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
        return [titles.get(str(item), str(item)) for item in values if not pd.isna(item)]

    def _sampled(self, run: Run, cells: Sequence[str]) -> list[int]:
        """Choose pairs by the hash of their ids: cells in turn, flips first."""
        limit = self.report.settings.answers
        ids = run.outcomes["pair_id"].tolist()
        by_cell: dict[str, list[int]] = {
            name: [] for name in ("first_only", "second_only", "both", "neither", "missing")
        }
        for place, cell in enumerate(cells):
            by_cell[cell].append(place)
        if len(ids) > limit:
            for places in by_cell.values():
                places.sort(key=lambda place: _hash(run.label, str(ids[place])))
            share = {name: min(len(places), limit // 5) for name, places in by_cell.items()}
            for name, places in by_cell.items():
                share[name] += min(len(places) - share[name], limit - sum(share.values()))
            by_cell = {name: places[: share[name]] for name, places in by_cell.items()}
        return [place for places in by_cell.values() for place in places]

    def _noise_bounds(self, tables: Mapping[str, Table]) -> dict[int, float]:
        """Find the upper bound of each model's noise floor, the largest of its strata."""
        table = tables.get("noise_floor")
        if table is None or "flip_rate_high" not in table.frame:
            return {}
        found = table.frame.groupby("model")["flip_rate_high"].max().dropna()
        return {self.index[str(label)]: float(bound) for label, bound in found.items()}

    def _noise_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> list[Part]:
        """Say how often identical prompts flip."""
        table = tables.get("noise_floor")
        if table is None:
            return []
        found = table.frame[table.frame["model"] == row["model"]]
        stratum = self.design.stratum if self.design.stratum in found else None
        if stratum is not None and stratum == self.design.facet:
            found, stratum = found[found[stratum] == row[self.facet]], None
        parts: list[Part] = []
        for one in found[found["flip_rate"].notna()].to_dict("records"):
            parts.append(", " if parts else "Identical prompts asked twice flip ")
            parts.append(interval_value(one, "flip_rate", tone="strong"))
            if stratum is not None:
                parts.append(f" ({one[stratum]})")
        return [*parts, ". "] if parts else []

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page."""
        return {"overall", "same_answer", "generalisation", *self.design.groupings}

    def _named(self) -> str:
        """Name the runs in a title."""
        return ", ".join(self.labels) if len(self.labels) <= 3 else f"{len(self.labels)} runs"


def _is_contrast(name: str) -> bool:
    """Tell a table of `ContrastTables` by its name."""
    return name in ("above_noise", "contrasts") or name.startswith(("contrasts_", "models_"))


def _text(value: object) -> str | None:
    """Read a cell of text."""
    return value if isinstance(value, str) else None


def _hash(label: str, pair_id: str) -> bytes:
    """Order pairs in a way that is arbitrary yet always the same."""
    return hashlib.blake2b(f"{label}\x1f{pair_id}".encode("utf-8", "replace")).digest()
