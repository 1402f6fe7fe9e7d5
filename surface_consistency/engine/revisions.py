"""How the answers of a model come about while it learns: the tables of its revisions."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.compare.runs import read_runs
from surface_consistency.engine.design import Report
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.metrics import paired_by, paired_table
from surface_consistency.models.revisions import step_of
from surface_consistency.report.page import Lines, Point, Series
from surface_consistency.runs.loader import Run
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table, interval_column

_RATES: Final = ("first_accuracy", "second_accuracy", "consistency")
_SEPARATOR: Final = "@"
_FEWEST: Final = 2


class RevisionsSettings(Settings):
    """What is known of the revisions."""

    same_weights: Mapping[str, str] = {}
    """Revisions that were not asked, and the one with the same weights, as REVISION=OTHER."""


class RevisionsAnalysis(Analysis):
    """How accuracy and consistency go with the revisions of a model, and who forgot what since."""

    name = "revisions"
    title = "From revision to revision"
    settings = RevisionsSettings

    def tables(self, report: Report, settings: RevisionsSettings) -> Mapping[str, Table]:
        """Compute the course of the rates; see `Analysis.tables`.

        Returns:
            "revisions": one row a revision, those with the weights of another too: step (the
            number in its name), pairs, accuracies and consistency with their intervals, and of
            the questions that the revision before was asked as well how many it has forgotten and
            learned since. No other revision before, and no number.
        """
        rows: list[dict[str, Any]] = []
        before: Run | None = None
        for run in report.runs:
            rates = paired_by(run.outcomes, by=["model"], cluster=report.cluster).iloc[0].to_dict()
            revision = run.manifest.model.rpartition(_SEPARATOR)[2]
            row = {"model": run.label, "revision": revision, "step": step_of(revision)}
            row |= {"n": int(rates["n"]), "n_clusters": int(rates["n_clusters"])}
            for name in _RATES:
                row |= {f"{name}{end}": rates[f"{name}{end}"] for end in ("", "_low", "_high")}
            rows.append(row | _changes(before, run) | {"same_weights_as": None})
            before = run
        for revision, other in settings.same_weights.items():
            rows.append({"revision": revision, "step": step_of(revision), "same_weights_as": other})
        frame = pd.DataFrame(rows)
        if frame["step"].notna().all():
            frame = frame.sort_values("step", kind="stable", ignore_index=True)
        counts = ["n", "n_clusters", "n_forgotten", "n_learned"]
        frame[counts] = frame[counts].astype("Int64")
        twins = len(settings.same_weights)
        return {
            self.name: Table(
                frame=frame,
                caption="From revision to revision",
                note="Forgotten and learned are counted in questions, against the revision before."
                + (
                    f" {twins} revisions hold the very weights of another and were not asked: "
                    "their names do not say what they hold."
                    if twins
                    else ""
                ),
                columns=[
                    Column(key="revision", title="Revision"),
                    Column(key="same_weights_as", title="Same weights as"),
                    Column(key="n", title="Pairs", kind="count"),
                    interval_column("first_accuracy", "First condition", "rate", "%"),
                    interval_column("second_accuracy", "Second condition", "rate", "%"),
                    interval_column("consistency", "Same verdict", "rate", "%"),
                    Column(key="n_forgotten", title="Forgotten", kind="count"),
                    Column(key="n_learned", title="Learned", kind="count"),
                ],
                model=None,
            )
        }

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Lines]:
        """Draw the course as curves; see `Analysis.figures`."""
        frame = tables[self.name].frame
        distinct = frame[frame["same_weights_as"].isna()].reset_index(drop=True)
        if len(distinct) < _FEWEST:
            return
        by_step = distinct["step"].notna().all()
        places = distinct["step"] if by_step else pd.Series(range(1, len(distinct) + 1))
        # A curve needs two places; the hue of a curve is that of a run, of which there are as many.
        names = _RATES if len(distinct) > _FEWEST else _RATES[:_FEWEST]
        series = [
            Series(
                label=name.replace("_", " "),
                model=place,
                points=[
                    Point(x=float(x), value=interval_value(row, name))
                    for x, row in zip(places, distinct.to_dict("records"), strict=True)
                ],
            )
            for place, name in enumerate(names)
        ]
        yield Lines(
            name="revisions",
            title="Accuracy under both conditions, and consistency",
            x_title="step" if by_step else "revision, in their order",
            series=series,
        )


def _changes(before: Run | None, run: Run) -> dict[str, int | None]:
    """Count the questions that were forgotten and learned since the revision before."""
    if before is None:
        return {"n_forgotten": None, "n_learned": None}
    try:
        read = read_runs([before.folder.path, run.folder.path])
    except (DataError, RunMismatchError):
        # Prompts or accepted answers are others, as with a limit on what fits the model.
        return {"n_forgotten": None, "n_learned": None}
    verdicts = read.results.frame.pivot(index="item", columns="model", values="score")
    first, second = (verdicts[label] for label in read.runs)
    table = paired_table(first, second, missing="drop")
    return {"n_forgotten": table.first_only, "n_learned": table.second_only}
