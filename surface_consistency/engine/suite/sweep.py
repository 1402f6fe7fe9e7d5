"""One study under several settings, or on several revisions, of one model: a sweep.

All of it is asked, scored and reported together. The weights of all revisions are held against each
other before any is loaded, since names do not say what they hold (see `models.revisions`); those
that are the same are asked once.
"""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.report import Reported, cluster_of, report_runs
from surface_consistency.engine.revisions import RevisionsAnalysis, RevisionsSettings
from surface_consistency.engine.run import SWEEP_FILE, WHOLE, ProgressOption, Shard, run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.study import (
    Analysis,
    DataT,
    ScoringT,
    SettingsT,
    Study,
)
from surface_consistency.errors import RunMismatchError
from surface_consistency.models.revisions import Revision
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import as_file_name, output_folder, write_json
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepResult:
    """Result of `run_sweep`."""

    folders: Sequence[RunFolder]
    """The runs, one a variant."""

    reported: Reported
    """Tables and page over all of them."""


def run_sweep(
    study: Study[Any, SettingsT, DataT, ScoringT],
    data: DataT,
    runner: Runner | Callable[[Revision], Runner],
    out: str | os.PathLike[str],
    *,
    model: str,
    revisions: Sequence[Revision] = (),
    settings: SettingsT | None = None,
    source: Settings | None = None,
    scoring: ScoringT | None = None,
    report: ReportSettings | None = None,
    progress: ProgressOption = True,
) -> SweepResult:
    """Run, score and report all that settings stand for: one run, or a sweep of several.

    Each run of a sweep has a folder of its own within `out`, which `sweep.json` marks; groups of
    prompts that depend on the model alone are asked once for all. A revision is loaded when the one
    before it has been let go. Started again with the same arguments it goes on where it was
    stopped.

    Args:
        study: The study.
        data: What its `load` returned.
        runner: Who answers; with `revisions` a function that loads who answers for one of them.
        out: Folder of the run, or of the runs; page and tables over all of them go there too.
        model: Label of the model in tables; a revision is called `<model>@<revision>` there.
        revisions: Revisions of the model, as `find_revisions` found them; none asks the model once.
        settings: How to ask; `Study.sweep` takes them apart. None for the study's defaults.
        source: Where the data came from, for the manifests.
        scoring: How to judge; None for the study's defaults.
        report: How to compute tables and page; None for the defaults.
        progress: Whether to show a progress bar on a terminal, or a function that is told.

    Returns:
        The runs and what was reported of them; with revisions the table "revisions" too.

    Raises:
        RunMismatchError: If several runs should go into the folder of a single one or the other way
            round, or a folder holds a run with other settings.
        DataError: If nothing is left to ask.
        ValueError: If the study has no such cluster.
    """
    report = report or ReportSettings()
    cluster_of(study, report)
    home = Path(out)
    distinct = [one for one in revisions if one.same_as is None]
    if revisions:
        _refuse_single_run(home)
        rows = [
            {"revision": one.name, "commit": one.source.revision, "same_weights_as": one.same_as}
            for one in revisions
        ]
        write_json(
            home / SWEEP_FILE,
            {"runs": [as_file_name(one.name) for one in distinct], "revisions": rows},
        )
    folders: list[RunFolder] = []
    for revision in distinct or (None,):
        answering: Any = runner if revision is None else cast(Any, runner)(revision)
        folders += ask_sweep(
            study,
            data,
            answering,
            home if revision is None else home / as_file_name(revision.name),
            model=model if revision is None else f"{model}@{revision.name}",
            settings=settings,
            source=source,
            scoring=scoring,
            progress=progress,
        )
        if revision is not None:
            # Two models at once may not fit where one does.
            del answering
            gc.collect()
    analyses: dict[Analysis, Any] = {}
    if revisions and len(folders) == len(distinct):
        twins = {one.name: one.same_as for one in revisions if one.same_as is not None}
        analyses[RevisionsAnalysis()] = RevisionsSettings(same_weights=twins)
    reported = report_runs(
        [one.path for one in folders], home, study=study, settings=report, analyses=analyses
    )
    return SweepResult(folders=folders, reported=reported)


def ask_sweep(
    study: Study[Any, SettingsT, DataT, ScoringT],
    data: DataT,
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: SettingsT | None = None,
    source: Settings | None = None,
    scoring: ScoringT | None = None,
    progress: ProgressOption = True,
    shard: Shard = WHOLE,
) -> list[RunFolder]:
    """Run and score all that settings stand for, and report nothing yet.

    Args:
        study: The study.
        data: What its `load` returned.
        runner: Who answers.
        out: Folder of the run, or of the runs.
        model: Label of the model in tables.
        settings: How to ask; None for the study's defaults.
        source: Where the data came from, for the manifests.
        scoring: How to judge; None for the study's defaults.
        progress: Whether to show a progress bar on a terminal, or a function that is told.
        shard: Which batches are asked; where it is not all of them, nothing is scored.

    Returns:
        The runs, one a variant.

    Raises:
        RunMismatchError: As `run_sweep`.
        DataError: If nothing is left to ask.
    """
    home = Path(out)
    variants = study.sweep(study.settings() if settings is None else settings)
    runs = {"runs": [name for name, _ in variants]}
    if len(variants) > 1:
        _refuse_single_run(home)
        if not (home / SWEEP_FILE).exists():
            write_json(home / SWEEP_FILE, runs)
    folders: list[RunFolder] = []
    for name, chosen in variants:
        folder = run_study(
            study,
            data,
            runner,
            home / name,
            model=model,
            settings=chosen,
            source=source,
            progress=progress,
            shared=folders[0] if folders else None,
            shard=shard,
        )
        if not folders and len(variants) > 1:
            # The first run was accepted, so this is the sweep that goes on, longer or shorter.
            write_json(home / SWEEP_FILE, runs)
        if shard == WHOLE:
            score_run(folder, study=study, scoring=scoring)
        folders.append(folder)
    return folders


def _refuse_single_run(home: Path) -> None:
    """Make the folder of a sweep; refuse that of a single run."""
    if (home / "manifest.json").is_file():
        raise RunMismatchError(
            f"{home} holds a single run, whose tables and page a sweep would replace; choose "
            "another --out, or settings of one run to go on with it"
        )
    output_folder(home)
