"""One study over revisions of a model: how its answers come about while it learns.

The weights of all revisions are held against each other before any is loaded, since names do not
say what they hold (see `models.revisions`); those that are the same are asked once.
"""

import gc
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from surface_consistency.engine.paired_tables import interval_value
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.run import SWEEP_FILE, ProgressOption
from surface_consistency.engine.study import Analysis, Report, ReportSettings, Study
from surface_consistency.engine.sweep import Swept, ask_variants
from surface_consistency.engine.two_runs import read_two_runs
from surface_consistency.errors import RunMismatchError
from surface_consistency.metrics import paired_by, paired_table
from surface_consistency.models.revisions import Revision, step_of
from surface_consistency.report.page import Lines, Point, Series
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.files import output_folder, write_json
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import Run
from surface_consistency.schemas.settings import Settings

__all__ = ["RevisionsAnalysis", "RevisionsSettings", "revision_label", "run_revisions"]

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
        asked = frame[frame["same_weights_as"].isna()].reset_index(drop=True)
        if len(asked) < _FEWEST:
            return
        by_step = asked["step"].notna().all()
        places = asked["step"] if by_step else pd.Series(range(1, len(asked) + 1))
        # A curve needs two places; the hue of a curve is that of a run, of which there are as many.
        names = _RATES if len(asked) > _FEWEST else _RATES[:_FEWEST]
        series = [
            Series(
                label=name.replace("_", " "),
                model=place,
                points=[
                    Point(x=float(x), value=interval_value(row, name))
                    for x, row in zip(places, asked.to_dict("records"), strict=True)
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


def run_revisions(
    study: Study,
    data: Any,  # noqa: ANN401 - each study has its own data
    revisions: Sequence[Revision],
    out: str | os.PathLike[str],
    *,
    load: Callable[[Revision], Any],
    model: str,
    settings: Any = None,  # noqa: ANN401 - the study's settings record
    source: Settings | None = None,
    scoring: Any = None,  # noqa: ANN401 - the study's scoring record
    report: ReportSettings | None = None,
    progress: ProgressOption = True,
) -> Swept:
    """Run a study on revisions of a model, one after the other, and report them together.

    Each revision has a folder of its own in `out`, named after it, and is loaded when the one
    before it has been let go. Started again it goes on where it was stopped.

    Args:
        study: The study.
        data: What its `load` returned.
        revisions: The revisions, as `find_revisions` found them.
        out: Folder of the sweep; page and tables over all revisions go there.
        load: Loads who answers for a revision.
        model: Label of the model; a revision is called `<model>@<revision>` in tables.
        settings: How to ask; None for the study's defaults.
        source: Where the data came from, for the manifests.
        scoring: How to judge; None for the study's defaults.
        report: How to compute tables and page; None for the defaults.
        progress: Whether to show a progress bar on a terminal, or a function that is told.

    Returns:
        The runs and what was reported of them, with the table "revisions".

    Raises:
        RunMismatchError: If the folder holds a single run, or a run with other settings.
        DataError: If nothing is left to ask.
    """
    home = output_folder(out)
    if (home / "manifest.json").is_file():
        raise RunMismatchError(
            f"{home} holds a single run, whose tables and page a sweep would replace; choose "
            "another --out"
        )
    told = [
        {"revision": one.name, "commit": one.source.revision, "same_weights_as": one.same_as}
        for one in revisions
    ]
    asked = [one for one in revisions if one.same_as is None]
    write_json(home / SWEEP_FILE, {"runs": [_folder(one) for one in asked], "revisions": told})
    folders: list[RunFolder] = []
    for revision in asked:
        runner = load(revision)
        folders += ask_variants(
            study,
            data,
            runner,
            home / _folder(revision),
            model=revision_label(model, revision),
            settings=settings,
            source=source,
            scoring=scoring,
            progress=progress,
        )
        # Two models at once may not fit where one does.
        del runner
        gc.collect()
    twins = {one.name: one.same_as for one in revisions if one.same_as is not None}
    analyses: dict[Analysis, Any] = {}
    if len(folders) == len(asked):
        analyses[RevisionsAnalysis()] = RevisionsSettings(same_weights=twins)
    reported = report_runs(
        [one.path for one in folders], home, study=study, settings=report, analyses=analyses
    )
    return Swept(folders=folders, reported=reported)


def revision_label(model: str, revision: Revision) -> str:
    """Name a revision in tables.

    Args:
        model: Label of the model.
        revision: The revision.

    Returns:
        `<model>@<revision>`.
    """
    return f"{model}{_SEPARATOR}{revision.name}"


def _folder(revision: Revision) -> str:
    """Name the folder of a revision; branches may have slashes."""
    return re.sub(r"[^\w.-]", "-", revision.name)


def _changes(before: Run | None, run: Run) -> dict[str, int | None]:
    """Count the questions that were forgotten and learned since the revision before."""
    if before is None:
        return {"n_forgotten": None, "n_learned": None}
    try:
        frame = read_two_runs(before.folder.path, run.folder.path).frame
    except RunMismatchError:
        # The questions are others, as with a limit on what fits the model.
        return {"n_forgotten": None, "n_learned": None}
    table = paired_table(frame["first_correct"], frame["second_correct"], missing="drop")
    return {"n_forgotten": table.first_only, "n_learned": table.second_only}
