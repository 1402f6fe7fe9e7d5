"""Page of any paired study: the finding, the squares, flips by group, and answers to read."""

import functools
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.paired.checks import PairedChecks
from surface_consistency.engine.paired.contrasts import COUNTS, VERDICTS
from surface_consistency.engine.paired.tables import TEST_NAMES, is_hardly_right, table_of_runs
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.errors import DataError
from surface_consistency.report.page import (
    Answer,
    Answers,
    Block,
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
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import PairedOutcome
from surface_consistency.tables.numbers import interval_value, shown_sign
from surface_consistency.tables.table import Table

_CELLS: Final = (*COUNTS, "missing")
_FLIPS_FIRST: Final = ("first_only", "second_only", "both", "neither", "missing")
_FOLDED: Final = ("contrasts", "check-tables")
_MOST_NOTES: Final = 4
"""Contrasts of models that are told below the squares."""


def cells_of(outcomes: pd.DataFrame) -> list[str]:
    """Name the cell of each pair.

    Args:
        outcomes: Both verdicts of each pair, missing where there is none.

    Returns:
        "both", "first_only", "second_only", "neither", or "missing".
    """
    first, second = (outcomes[name].astype("boolean") for name in VERDICTS)
    codes = (2 * (~first).astype("Int8") + (~second).astype("Int8")).fillna(4)
    return [_CELLS[code] for code in codes.tolist()]


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
            text = json.dumps(row.get(f"{side}_prediction"), ensure_ascii=False)
            verdict = {True: "right", False: "wrong", None: "not judged"}[row[f"{side}_correct"]]
            lines.append(f"  {row[f'{side}_condition']}: {text} ({verdict})")
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
        own = self._own_tables()
        numbers = ("overall", "same_answer", "generalisation", *self.design.groupings)
        title = "The numbers by group" if self.design.groupings else "The numbers"
        answers = [self.answers()] if self.report.settings.answers else []
        tested = [tables[name] for name in tables if _is_contrast(name)]
        checked = [tables[name] for name in tables if not (name in own or _is_contrast(name))]
        rest: Iterable[tuple[str, str, Sequence[Block]]] = (
            ("highlights", "Highlights", self.highlight_blocks()),
            ("flips", "Where verdicts flip", list(self.dots(tables))),
            ("numbers", title, [tables[name] for name in numbers if name in tables]),
            ("contrasts", "Differences that were tested", tested),
            ("answers", "Answers", answers),
            ("check-tables", "Checks in numbers", checked),
        )
        return [
            self.squares_section(tables),
            *(
                Section(anchor=anchor, title=title, blocks=blocks, is_folded=anchor in _FOLDED)
                for anchor, title, blocks in rest
                if blocks
            ),
        ]

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say the finding: the flip rate, with accuracies and noise floor beside it.

        Args:
            tables: The tables.

        Returns:
            The finding.
        """
        first, second = self.design.conditions
        rows = [row for row in self._rows(tables) if not is_hardly_right(row)]
        hardly = [row for row in self._rows(tables) if is_hardly_right(row)]
        names = {"first": first, "second": second, "clusters": self.clusters}
        names["of_panel"] = self._of_panel(tables)
        rates = WORDING.sentence("rates", rows=rows, **names)
        beside = [
            (row, self._same_sentence(tables, row), self._noise_sentence(tables, row))
            for row in rows
        ]
        said = [self._hardly_sentence(row) for row in hardly]
        return self._headed(
            tables,
            rows,
            WORDING.sentence("finding", rates=rates, hardly=said),
            WORDING.sentence("summary", beside=beside, **names),
        )

    def _headed(
        self,
        tables: Mapping[str, Table],
        rows: Sequence[Mapping[Any, Any]],
        sentence: list[Part],
        summary: list[Part],
    ) -> Finding:
        """Lead with how models differ where a page is of several, and else with what each does."""
        between = self._models_sentence(tables, rows)
        return Finding(
            sentence=between or sentence,
            summary=[*sentence, " ", *summary] if between else summary,
            warning=self.warning(),
            facts=self.key_facts(),
        )

    def _models_sentence(
        self, tables: Mapping[str, Table], rows: Sequence[Mapping[Any, Any]]
    ) -> list[Part]:
        """Say which models of some rows differ; nothing where that cannot be inferred."""
        models = [row["model"] for row in rows]
        tested = self._compared(tables, self.compared_rate)
        compared = [
            row | {"sign": shown_sign(row, "difference", row["p_value_holm"])}
            for row in tested
            if {row["a"], row["b"]} <= {*models} and row.get(self.facet) == rows[0].get(self.facet)
        ]
        names = dict(zip(("first", "second"), self.design.conditions, strict=True))
        names["of_panel"] = self._of_panel(tables)
        unclear = [row for row in compared if not row["sign"]]
        return WORDING.sentence(
            "between_models",
            shown=[
                (row, self.wording.sentence("models", row=row, **names))
                for row in compared
                if row["sign"]
            ],
            alike=self.wording.sentence("models", row={"sign": 0}, **names),
            unclear=sorted(unclear, key=lambda row: row["difference_low"] - row["difference_high"]),
            most=_MOST_NOTES,
            by_holm=" by Holm’s method" if len(tested) > 1 else "",
        )

    def _compared(self, tables: Mapping[str, Table], rate: str) -> list[dict[Any, Any]]:
        """List how far a rate of models differs, where that can be inferred."""
        if "contrasts" not in tables:
            return []
        frame = tables["contrasts"].frame
        rows = frame[frame["rate"] == rate].dropna(subset=["difference_low"])
        return rows.to_dict("records")

    def _of_panel(self, tables: Mapping[str, Table]) -> str:
        """Name the panel that the finding is of, where there are several."""
        frame = tables["overall"].frame
        return "" if frame.empty else self._panel(tables, frame.iloc[0].to_dict())

    def _hardly_sentence(self, row: Mapping[Any, Any]) -> list[Part]:
        """Lead with the accuracy of a model that is hardly ever right."""
        first, second = self.design.conditions
        return WORDING.sentence("hardly_right", row=row, first=first, second=second)

    def _same_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> list[Part]:
        """Say how many of the pairs that are wrong twice have the same answer."""
        return WORDING.sentence("same_answer", rows=self._wrong_twice(tables, row))

    def _wrong_twice(
        self, tables: Mapping[str, Table], row: Mapping[Any, Any]
    ) -> list[dict[Any, Any]]:
        """Take the row of "same_answer" of the pairs that are wrong twice; none without answers."""
        rows = self._rows_of(tables, "same_answer", row)
        return [one for one in rows if one["among"] == "both wrong"]

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the contingency table of each model.

        Args:
            tables: The tables.

        Returns:
            The section.
        """
        first, second = self.design.conditions
        rows = self._compared(tables, "flip_rate")
        squares = MosaicPlots(
            squares=[self.square(row) for row in tables["overall"].frame.to_dict("records")],
            conditions=self.design.conditions,
            cells=self.design.cells,
            note=WORDING.sentence(
                "contrasts",
                rows=rows[:_MOST_NOTES],
                panel=functools.partial(self._panel, tables),
                by_holm=" by Holm’s method" if len(rows) > 1 else "",
            ),
        )
        return Section(
            anchor="squares",
            title="The same question under both conditions",
            lead=WORDING.sentence("squares", first=first, second=second),
            blocks=[squares],
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
            facts=inferred(self.square_facts(row)),
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
        p_value = Value(value=float(row.get("mcnemar_p_value", math.nan)), kind="p_value")
        difference = interval_value(row, "accuracy_difference", kind="difference")
        return [
            ("same verdict", interval_value(row, "consistency"), ""),
            (f"kept of {first} right", interval_value(row, "consistency_given_first_correct"), ""),
            (f"{second} minus {first}", difference, ""),
            ("kappa", interval_value(row, "kappa", kind="number"), ""),
            ("flips lean to one side", p_value, TEST_NAMES.get(str(row.get("mcnemar_method")), "")),
        ]

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
            facets = [("", frame)]
            if self.facet is not None:
                facets = [(str(one), part) for one, part in frame.groupby(self.facet, sort=False)]
            for facet, part in facets:
                rows = [
                    (titles.get(group, group.replace("_", " ")), 0, [*map(self._dot, records)])
                    for group, records in _records_by(part[part["n"] > 0], key)
                ]
                is_one = len(facets) == 1
                if rows:
                    yield ForestPlot(
                        name=f"flips-{name.removeprefix('by_')}{'' if is_one else f'-{facet}'}",
                        title=name.replace("_", " ").capitalize()
                        + ("" if is_one else f", {facet}"),
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
            cells = cells_of(run.outcomes)
            places = self._sampled(run, cells)
            rows = run.outcomes.iloc[places].to_dict("records")
            chosen += [
                self.answer(run, row, cells[place]) for row, place in zip(rows, places, strict=True)
            ]
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
            question=_text(row.get("question")) or str(row["fact_id"]),
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
        ids = run.outcomes["pair_id"].to_numpy(dtype=object)
        by_cell: dict[str, list[int]] = {name: [] for name in _FLIPS_FIRST}
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
        bounds = table.frame.groupby("model")["flip_rate_high"].max().dropna()
        return {self.index[str(label)]: float(bound) for label, bound in bounds.items()}

    def _noise_sentence(self, tables: Mapping[str, Table], row: Mapping[Any, Any]) -> list[Part]:
        """Say how often identical prompts flip."""
        rows = self._rows_of(tables, "noise_floor", row)
        is_told = (
            self.design.stratum != self.design.facet and rows and self.design.stratum in rows[0]
        )
        stratum = self.design.stratum if is_told else None
        sentence = WORDING.sentence("noise_floor", rows=rows, stratum=stratum)
        return [*sentence, " "] if sentence else []

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page."""
        return {"overall", "same_answer", "generalisation", *self.design.groupings}

    def _named(self) -> str:
        """Name the runs in a title."""
        return ", ".join(self.labels) if len(self.labels) <= 3 else f"{len(self.labels)} runs"


def inferred(facts: Iterable[tuple[str, Value, str]]) -> list[tuple[str, Value, str]]:
    """Leave out the numbers for which no interval or test stands, so that none is quoted.

    Args:
        facts: Name, number and a remark, as below a picture.

    Returns:
        Those with an interval, and the p-values that are not NaN.
    """
    return [
        fact
        for fact in facts
        if (not math.isnan(fact[1].value) if fact[1].kind == "p_value" else fact[1].low is not None)
    ]


def _is_contrast(name: str) -> bool:
    """Tell a table of `ContrastTables` by its name."""
    return name in ("above_noise", "contrasts") or name.startswith(("contrasts_", "models_"))


def _records_by(frame: pd.DataFrame, key: str) -> Iterator[tuple[str, list[dict[Any, Any]]]]:
    """Yield the rows of each group, in order of appearance."""
    for group, rows in frame.groupby(key, sort=False):
        yield str(group), rows.to_dict("records")


def _text(value: object) -> str | None:
    """Read a cell of text."""
    return value if isinstance(value, str) else None


def _hash(label: str, pair_id: str) -> bytes:
    """Order pairs in a way that is arbitrary yet always the same."""
    return hashlib.blake2b(f"{label}\x1f{pair_id}".encode("utf-8", "replace")).digest()
