"""SLAQ's tables and page: points of accuracy lost, slots, momentum, one topic in all orders."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pandas as pd

from surface_consistency.engine.paired.page import PairedReport, cells_of, inferred
from surface_consistency.engine.paired.tables import TEST_NAMES, is_hardly_right, with_detectable
from surface_consistency.engine.paired.wording import WORDING
from surface_consistency.errors import DataError
from surface_consistency.metrics import PairedTable
from surface_consistency.report.page import (
    Answer,
    Block,
    Check,
    Dot,
    Finding,
    ForestPlot,
    Lines,
    Matrix,
    Page,
    Point,
    Section,
    Series,
    Value,
)
from surface_consistency.report.wording import Wording
from surface_consistency.runs.loader import Run
from surface_consistency.studies.slaq.judges import answering_parts, matcher_agreement
from surface_consistency.studies.slaq.tables import (
    describe_slot_tables,
    grouped_scores,
    slot_tables,
)
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table, interval_column

if TYPE_CHECKING:
    from surface_consistency.engine.design import Report

_WORDING: Final = Wording("surface_consistency.studies.slaq", default=WORDING)
_OWN: Final = ("momentum", "momentum_slopes", "position", "order_sensitivity", "recall")
_JUDGE: Final = ("judge_agreement", "corrected")
_STREAKS: Final = ((1, "right"), (0, "wrong"))
_NULL: Final = "topic-and-slot"
_WEAK_NULL: Final = "topic"
_REMARKS: Final = {
    "both": "stated",
    "first_only": "lost",
    "second_only": "stated here only",
    "neither": "never right",
    "missing": "not judged",
}
_NEEDS: Final = ("both", "first_only", "second_only", "neither")


class SlaqReport(PairedReport):
    """Computes the tables of SLAQ's runs and says what stands on their page.

    Args:
        report: The runs.
    """

    wording = _WORDING
    compared_rate = "accuracy_difference"

    n_null: ClassVar[int] = 1_000
    """Draws of the null band of momentum."""

    def __init__(self, report: "Report") -> None:
        super().__init__(report)
        self._facts: dict[str, dict[str, dict[str, str]]] = {}

    # Tables.

    def tables(self) -> dict[str, Table]:
        """Compute the tables of `slot_tables` besides those of `PairedReport.tables`.

        Returns:
            Tables by name.
        """
        settings = self.report.settings
        frames = slot_tables(
            self.frame,
            n_resamples=settings.resamples,
            n_null=self.n_null,
            seed=settings.bootstrap_seed,
        )
        return super().tables() | describe_slot_tables(frames)

    def score_columns(self, labels: Sequence[Column], *, adjusted: bool = False) -> list[Column]:
        """Describe the columns of scores in SLAQ's words; see `PairedReport.score_columns`.

        Args:
            labels: Columns before the numbers.
            adjusted: Whether the p-value is that of `adjusted_p_value`.

        Returns:
            The columns that people see.
        """
        p_value = ("adjusted_p_value", "Holm") if adjusted else ("mcnemar_p_value", "")
        cells = ("both", "first_only", "second_only", "neither")
        return [
            *labels,
            Column(key="n", title="Pairs", kind="count"),
            Column(key="n_clusters", title=self.clusters.capitalize(), kind="count"),
            Column(key="square", title="Square", kind="square", cells=cells),
            interval_column("first_accuracy", "F_S", "rate", "right alone, %"),
            interval_column("second_accuracy", "F_L", "rate", "right in the long answer, %"),
            interval_column("accuracy_difference", "Difference", "difference", "points"),
            interval_column("consistency", "Alignment", "rate", "%"),
            interval_column("signed_alignment", "Signed alignment", "number", "-1 to 1"),
            Column(key=p_value[0], title="p", kind="p_value", unit=p_value[1]),
            Column(key="mcnemar_method", title="Test", labels=TEST_NAMES),
        ]

    def _paired(self, keys: list[str], *, has_kappa: bool = False) -> pd.DataFrame:
        """Compute the scores by some columns."""
        settings = self.report.settings
        table = grouped_scores(
            self.frame,
            tuple(keys[2:]),
            cluster=self._cluster_within(keys),
            n_resamples=settings.resamples,
            seed=settings.bootstrap_seed,
        )
        return self._sorted(with_detectable(table), keys)

    # Page.

    def page(self, tables: Mapping[str, Table]) -> Page:
        """Say what stands on the page.

        Args:
            tables: What `tables` returned, and the checks of the runs.

        Returns:
            The page.
        """
        page = super().page(tables)
        added = [self._momentum_section(tables), self._topic_section()]
        if "recall" in tables:
            added.append(Section(anchor="recall", title="In free form", blocks=[tables["recall"]]))
        if judged := [tables[name] for name in _JUDGE if name in tables]:
            added.append(
                Section(
                    anchor="judge",
                    title="The judge, held against labels",
                    lead=_WORDING.sentence("judge"),
                    blocks=judged,
                )
            )
        slots = [tables[name] for name in _OWN[:4] if name in tables]
        sections = []
        for section in page.sections:
            if section.anchor == "numbers":
                blocks = [*self._models_chart(tables), *section.blocks, *slots]
                section = replace(section, blocks=blocks)
            sections.append(section)
        place = 1
        sections[place:place] = [section for section in added if section.blocks]
        return replace(page, sections=sections)

    def _models_chart(self, tables: Mapping[str, Table]) -> Iterator[ForestPlot]:
        """Show accuracies and alignment of several models side by side: figure 2 of the paper."""
        models = [row for row in self._rows(tables) if row["n"]]
        if len(models) < 2:
            return
        scores = {"first_accuracy": "F_S", "second_accuracy": "F_L", "consistency": "alignment"}
        rows = [
            (
                title,
                0,
                [
                    Dot(
                        model=self.index[str(row["model"])],
                        value=interval_value(row, name),
                        n=int(row["n"]),
                        n_clusters=int(row["n_clusters"]),
                    )
                    for row in models
                ],
            )
            for name, title in scores.items()
        ]
        yield ForestPlot(
            name="alignment",
            title="F_S, F_L and alignment",
            axis="facts, %",
            rows=rows,
            clusters=self.clusters,
        )

    def finding(self, tables: Mapping[str, Table]) -> Finding:
        """Say the finding: points of accuracy lost, with accuracies, alignment and slots beside.

        Args:
            tables: The tables.

        Returns:
            The finding.
        """
        rows = [row for row in self._rows(tables) if not is_hardly_right(row)]
        hardly = [self._hardly_sentence(row) for row in self._rows(tables) if is_hardly_right(row)]
        beside = [
            (
                row,
                list(self._same_sentence(tables, row)),
                self._of(tables, "position", str(row["model"])),
                self._noise_sentence(tables, row),
            )
            for row in rows
        ]
        return self._headed(
            tables,
            rows,
            _WORDING.sentence("finding", rows=rows, hardly=hardly, clusters=self.clusters),
            _WORDING.sentence("summary", beside=beside, matched=self._matched()),
        )

    def _matched(self) -> list[tuple[Run, Value, PairedTable]]:
        """Find how often the string matchers err that judged runs, each once."""
        matched: dict[tuple[object, ...], tuple[Run, Value, PairedTable]] = {}
        for run in self.report.runs:
            if not run.judged_by.startswith("matcher:"):
                continue
            settings = {} if run.scoring is None else run.scoring.settings
            rule = run.judged_by.removeprefix("matcher:").removesuffix(" on whole")
            part: Literal["answering", "whole"] = (
                "whole" if run.judged_by.endswith(" on whole") else "answering"
            )
            only = not settings.get("all_facts", False)
            if (rule, part, only) not in matched:
                agreement = matcher_agreement(rule, part=part, entities_only=only)
                ends = agreement.accuracy_interval
                share = Value(value=agreement.accuracy, low=ends.low, high=ends.high)
                matched[rule, part, only] = run, share, agreement.table
        return list(matched.values())

    def squares_section(self, tables: Mapping[str, Table]) -> Section:
        """Show the contingency table of each model, and which slots lose facts.

        Args:
            tables: The tables.

        Returns:
            The section.
        """
        section = super().squares_section(tables)
        return replace(
            section,
            title="The same fact, alone and among five",
            lead=_WORDING.sentence("squares"),
            blocks=[*section.blocks, *self._slot_curves(tables)],
        )

    def square_facts(self, row: Mapping[Any, Any]) -> list[tuple[str, Value, str]]:
        """Say what stands below a square; see `PairedReport.square_facts`.

        Args:
            row: A row of "overall".

        Returns:
            Name, number and remark.
        """
        difference = interval_value(row, "accuracy_difference", kind="difference")
        p_value = Value(value=float(row["mcnemar_p_value"]), kind="p_value")
        method = TEST_NAMES.get(str(row["mcnemar_method"]), "")
        return [
            ("alignment", interval_value(row, "consistency"), ""),
            ("signed alignment", interval_value(row, "signed_alignment", kind="number"), ""),
            ("long minus short", difference, ""),
            ("flips", interval_value(row, "flip_rate"), ""),
            ("flips lean to one side", p_value, f"{method}, {self.clusters}"),
        ]

    def answer_texts(self, run: Run) -> tuple[list[str | None], list[str | None]]:
        """Give the short answer and the part of the long one that answers; see `answering_parts`.

        Args:
            run: The run.

        Returns:
            The texts, pair by pair; the whole long answers where a run has no plan.
        """
        first, second = super().answer_texts(run)
        try:
            targets, pairs = run.folder.read_plan()
        except DataError:
            return first, second
        texts = dict(zip(run.outcomes["pair_id"], second, strict=True))
        owners = pairs.set_index("second_target")["pair_id"]
        chosen_targets = targets[targets["target_id"].isin(owners.index)].reset_index(drop=True)
        owned = owners.reindex(chosen_targets["target_id"]).tolist()
        chosen_targets["text"] = pd.Series([texts.get(pair) for pair in owned], dtype=object)
        chosen = dict(zip(owned, answering_parts(chosen_targets), strict=True))
        return first, [" ".join(chosen.get(pair, ())) or None for pair in run.outcomes["pair_id"]]

    def answer_rule(self, run: Run) -> str:
        """Name the rule by which two answers are the same: whole sentences seldom hold each other.

        Args:
            run: The run.

        Returns:
            token_f1.
        """
        return "token_f1"

    def _slot_curves(self, tables: Mapping[str, Table]) -> Iterator[Lines]:
        """Show the accuracy by slot of each model whose orders are balanced."""
        for row in self._rows(tables):
            label = str(row["model"])
            points = self._of(tables, "position", label)
            if not points:
                continue
            facts = [
                ("slope a slot", interval_value(points[0], "slope", kind="difference"), ""),
            ]
            facts += [
                ("two orders disagree", interval_value(orders, "disagreement"), "")
                for orders in self._of(tables, "order_sensitivity", label)
            ]
            yield Lines(
                name=f"slots-{self.index[label] + 1}",
                title=self._title("Right in the long answer, by slot", label),
                x_title="slot in the long query",
                series=[self._curve(label, points, "slot", "accuracy")],
                reference=("asked alone", interval_value(row, "first_accuracy")),
                facts=inferred(facts),
            )

    def _momentum_section(self, tables: Mapping[str, Table]) -> Section:
        """Show what follows runs of right and of wrong slots."""
        blocks: list[Block] = []
        leaving = []
        for label in self.labels:
            curves = [row for row in self._of(tables, "momentum", label) if row["null"] == _NULL]
            slopes = self._of(tables, "momentum_slopes", label)
            for streak, kind in _STREAKS:
                points = [row for row in curves if row["streak"] == streak and row["n"] > 0]
                if not points:
                    continue
                own, weak = (
                    next(r for r in slopes if r["null"] == null and r["streak"] == streak)
                    for null in (_NULL, _WEAK_NULL)
                )
                blocks.append(self._momentum_curve(label, kind, points, own, weak))
                sides = dict.fromkeys(filter(None, map(_side, points)))
                if own["band_p_value"] < 0.05 and sides:
                    leaving.append(f"{label} after {kind} slots ({' and '.join(sides)})")
        return Section(
            anchor="momentum",
            title="Does one error bring the next?",
            lead=_WORDING.sentence("momentum", leaving=leaving),
            blocks=blocks,
        )

    def _momentum_curve(
        self,
        label: str,
        kind: str,
        points: Sequence[Mapping[Any, Any]],
        own: Mapping[Any, Any],
        weak: Mapping[Any, Any],
    ) -> Lines:
        """Draw one curve with the band of the stronger null."""
        band = {"null_slope": own["null_slope"], "null_slope_low": own["null_low"]}
        band |= {"null_slope_high": own["null_high"]}
        without = interval_value(band, "null_slope", kind="difference")
        p_values = [Value(value=float(row["p_value"]), kind="p_value") for row in (own, weak)]
        return Lines(
            name=f"momentum-{kind}-{self.index[label] + 1}",
            title=self._title(f"After a run of {kind} slots", label),
            x_title="length of the run",
            series=[self._curve(label, points, "length", "probability")],
            band=[
                (
                    row["length"],
                    row["null_probability_low"],
                    row["null_probability"],
                    row["null_probability_high"],
                )
                for row in points
            ],
            facts=inferred(
                [
                    ("slope", interval_value(own, "slope", kind="difference"), ""),
                    ("without momentum", without, ""),
                    ("slope against that", p_values[0], "topics and slots"),
                    ("against the weaker null", p_values[1], "topics alone"),
                    (
                        "furthest point of both curves",
                        Value(value=float(own["band_p_value"]), kind="p_value"),
                        "topics and slots",
                    ),
                ]
            ),
            note="The band is one for all points of both curves.",
        )

    def _curve(self, label: str, rows: Sequence[Mapping[Any, Any]], x: str, y: str) -> Series:
        """Draw rows of a table as a curve."""
        points = [
            Point(x=float(row[x]), value=interval_value(row, y), n=int(row["n"])) for row in rows
        ]
        return Series(label=label, model=self.index[label], points=points)

    def _topic_section(self) -> Section:
        """Show one topic of the first run in all its orders."""
        run = self.report.runs[0]
        listed = run.outcomes[run.outcomes["second_condition"] == "long"]
        if listed.empty:
            return Section(anchor="topic", title="One topic in all orders")
        listed = listed.assign(cell=cells_of(listed))
        scores = listed.groupby("topic_id", sort=False)["cell"].agg(
            lambda of_topic: (of_topic != "missing").sum() + 2 * (of_topic == "first_only").sum()
        )
        topic = str(scores.idxmax())
        rows = listed[listed["topic_id"] == topic]
        lines = []
        for number, (_, part) in enumerate(rows.groupby("permutation", sort=True), start=1):
            made = []
            for row in part.sort_values("slot").to_dict("records"):
                outcome = row["cell"] if row["cell"] in _NEEDS else ""
                reference = self._fact(run, row["fact_id"])["reference"]
                made.append((reference, _REMARKS[row["cell"]], outcome))
            lines.append((f"order {number}", made))
        n_known = rows.drop_duplicates("fact_id")["first_correct"].sum()
        name = self._fact(run, rows["fact_id"].iloc[0])["topic"]
        matrix = Matrix(
            title=f"{name}, {run.label}",
            columns=[f"slot {slot}" for slot in range(1, int(rows["slot"].max()) + 1)],
            rows=lines,  # type: ignore[arg-type]
        )
        return Section(
            anchor="topic",
            title=f"One topic in {_number(len(lines))} order{'s' * (len(lines) > 1)}",
            lead=_WORDING.sentence(
                "topic",
                name=name,
                label=run.label,
                n_known=_number(int(n_known)),
                n_facts=_number(rows["fact_id"].nunique()),
            ),
            blocks=[matrix],
        )

    def answer(self, run: Run, row: Mapping[Any, Any], cell: str) -> Answer:
        """Show one pair: the question, its reference, the short and the whole long answer.

        Args:
            run: The run.
            row: A row of its outcomes.
            cell: Its cell.

        Returns:
            The pair.
        """
        fact = self._fact(run, row["fact_id"])
        slot = (
            "free form"
            if pd.isna(row["slot"])
            else f"slot {int(row['slot'])} of {int(row['n_slots'])}"
        )
        return replace(
            super().answer(run, row, cell),
            question=fact["question"],
            surfaces=("alone", slot),
            accepted=(fact["reference"],),
        )

    def checks(self, tables: Mapping[str, Table]) -> list[Check]:
        """Ask what limits the numbers: what is unjudged, short curves, unbalanced orders.

        Args:
            tables: The tables.

        Returns:
            "warning" first.
        """
        of = functools.partial(self._of, tables)
        limits = _WORDING.checks(
            "limits",
            unjudged=[(label, of("unjudged", label)) for label in self.labels],
            curves=[
                (label, of("position", label), of("momentum_slopes", label))
                for label in self.labels
            ],
            judged=[(label, of("judge_agreement", label)) for label in self.labels],
        )
        listed = [*super().checks(tables), *limits]
        return sorted(listed, key=lambda check: check.level != "warning")

    def key_facts(self) -> list[tuple[str, str]]:
        """Gather the facts under the finding, the number of orders among them.

        Returns:
            Names and values.
        """
        orders = [run.outcomes["permutation"].nunique() for run in self.report.runs]
        chips = super().key_facts()
        chips.insert(2, ("orders", " / ".join(map(str, dict.fromkeys(orders)))))
        return chips

    def _own_tables(self) -> set[str]:
        """Name the tables that stand elsewhere on the page."""
        return super()._own_tables() | {*_OWN, *_JUDGE}

    def _of(self, tables: Mapping[str, Table], name: str, label: str) -> list[dict[Any, Any]]:
        """Give the rows of one model in a table; none where there is no such table."""
        return self._rows_of(tables, name, {"model": label})

    def _title(self, title: str, label: str) -> str:
        """Name the model in a title where there are several."""
        return title if len(self.labels) == 1 else f"{title}, {label}"

    def _fact(self, run: Run, fact_id: object) -> dict[str, str]:
        """Read topic, question and reference of a fact; only its name where a run has no plan."""
        if run.label not in self._facts:
            try:
                targets = run.folder.read_plan()[0].drop_duplicates("fact_id")
            except DataError:
                self._facts[run.label] = {}
            else:
                columns = targets[["topic", "question"]].assign(reference=targets["answers"].str[0])
                rows: list[Any] = columns.to_dict("records")
                self._facts[run.label] = dict(zip(targets["fact_id"], rows, strict=True))
        nameless = dict.fromkeys(("topic", "question", "reference"), str(fact_id))
        return self._facts[run.label].get(str(fact_id), nameless)


def _side(row: Mapping[Any, Any]) -> str:
    """Tell on which side of the band a point of a curve lies; the band may be unknown there."""
    if row["probability"] > row["null_probability_high"] + 1e-12:
        return "above"
    return "below" if row["probability"] < row["null_probability_low"] - 1e-12 else ""


def _number(count: int) -> str:
    """Write a small number in words."""
    words: Sequence[Literal["no"] | str] = (
        *("no", "one", "two", "three", "four", "five"),
        *("six", "seven", "eight", "nine", "ten"),
    )
    return words[count] if count < len(words) else str(count)
