"""One study under several settings of one model: a sweep."""

import os
from pathlib import Path
from typing import Any

from surface_consistency.engine.run import SWEEP_FILE, WHOLE, ProgressOption, Shard, run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import JudgeScoring, StudySettings
from surface_consistency.engine.study import Study
from surface_consistency.errors import RunError
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import claim_files, output_folder, write_json
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.settings import Settings


def run_sweep(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: StudySettings | None = None,
    source: Settings | None = None,
    scoring: JudgeScoring | None = None,
    progress: ProgressOption = True,
    shard: Shard = WHOLE,
) -> list[RunFolder]:
    """Run and score the runs that settings describe: one run, or a sweep of several.

    Each run of a sweep has its own folder within `out`, which `sweep.json` marks; groups of prompts
    that depend only on the model are sent once for all runs. Called again with the same arguments,
    a stopped sweep resumes. `report_runs` makes tables and page of the runs.

    Args:
        study: The study.
        data: The data that its `load` returned.
        runner: The model backend.
        out: Folder of the run, or of the runs.
        model: Label of the model in tables.
        settings: How to prompt; `StudySettings.variants` splits them. None for the defaults of the
            study.
        source: Source of the data, for the manifests.
        scoring: How to score; None for the study's defaults.
        progress: Whether to show a progress bar on a terminal, or a function that receives each
            `Progress`.
        shard: The batches to run; a run of only some of them is not scored.

    Returns:
        The runs, one per variant.

    Raises:
        RunError: If several runs would be written to the folder of a single run or the reverse, or
            a folder contains a run with other settings.
        DataError: If no prompt is left.
    """
    home = Path(out)
    variants = (study.records.settings() if settings is None else settings).variants()
    runs = {"runs": [name for name, _ in variants]}
    if len(variants) > 1:
        _reject_single_run(home)
        claim_files(home, [SWEEP_FILE])
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
            # The first run was accepted, so this sweep resumes, with more or fewer runs.
            write_json(home / SWEEP_FILE, runs)
        if shard == WHOLE:
            score_run(folder, study=study, scoring=scoring)
        folders.append(folder)
    return folders


def _reject_single_run(home: Path) -> None:
    """Make the folder of a sweep; raise an error if it is that of a single run."""
    if (home / "manifest.json").is_file():
        raise RunError(
            f"{home} contains a single run, whose tables and page a sweep would replace; choose "
            "another `out`, or settings of one run to resume it"
        )
    output_folder(home)
