"""A whole run by the name of its study: load data, query a model, score the answers, report."""

import os
from pathlib import Path
from typing import Any

import pandas as pd

from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.report import cluster_of, report_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.study import Study, find_study, outcomes_frame
from surface_consistency.engine.sweep import run_sweep
from surface_consistency.models.runner import Runner
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas.settings import made_from


def run(
    study: str | Study,
    *,
    out: str | os.PathLike[str],
    runner: str | Runner | None = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401 - checked by the records of the study
) -> pd.DataFrame:
    """Run a study on a model, as `surface-consistency run STUDY` does.

    Args:
        study: Name of the study, such as "redirectqa", or an instance of `Study`.
        out: Folder of the run. The same call with the same folder resumes a stopped run.
        runner: The model backend: a registered name, or a `Runner`; the study's own by default,
            which needs the extra `inference`.
        progress: Whether to show a progress bar.
        options: `model`, `source` and every other option of the command, by its name with
            underscores, such as `limit=10` or `rule="popqa"`.

    Returns:
        The outcomes frame, one row per pair, which `paired`, `compare`, `consistency` and
        `alignment` read without further names. The folder contains the report page and the tables.

    Raises:
        TypeError: If `study` is neither a name nor an instance of `Study`, `runner` is neither a
            name nor an instance of `Runner`, or `source` is in memory: a run is resumed and scored
            again from the source that it names.
        ValueError: If the study or an option is unknown, or an option has an invalid value.
        RunnerError: If the model cannot be loaded, or does not answer.
        RunError: If the folder contains a run with other settings.

    Notes:
        Prompts without an answer have no score and are excluded from the rates; the same call
        sends them again.

    References:
        The paper of each study; see `list_datasets`.

    Examples:
        >>> run("redirectqa", model="EleutherAI/pythia-410m", out="runs/x")  # doctest: +SKIP
    """
    if not isinstance(study, str | Study):
        raise TypeError(
            f"study is {study!r}; pass an instance of Study, such as MyStudy(), or the name of a "
            "registered study"
        )
    chosen, folder = study if isinstance(study, Study) else find_study(study), Path(out)
    records = chosen.records
    kinds = (records.source, ModelSettings, records.settings, records.scoring, ReportSettings)
    if not isinstance(runner, Runner):
        if not isinstance(runner, str | None):
            raise TypeError(
                f"runner is {runner!r}; pass an instance of Runner, such as MyRunner(), or the "
                "name of a registered runner"
            )
        options["runner"] = runner
    if not isinstance(options.get("source", ""), str | os.PathLike):
        raise TypeError(
            f"source is a {type(options['source']).__name__}, and a run names a source that can be "
            "read again; write it to a file, such as by to_parquet(FILE), and pass source=FILE"
        )
    source, model, settings, scoring, reporting = made_from(kinds, options, chosen.name)
    dumped = settings.model_dump(mode="json")
    scoring = records.judged(scoring, dumped, is_new_run=True)
    model = model.as_published(records, dumped)
    cluster_of(chosen, reporting)
    backend = runner if isinstance(runner, Runner) else model.load(chosen)
    folders = run_sweep(
        chosen,
        chosen.load(source),
        backend,
        folder,
        model=model.name(backend),
        settings=settings.for_command(folder),
        source=source,
        scoring=scoring,
        progress=progress,
    )
    paths = [one.path for one in folders]
    report_runs(paths, folder, study=chosen, settings=reporting)
    runs = load_runs(paths, outcome=records.outcome)
    return outcomes_frame(chosen, pd.concat([one.outcomes for one in runs], ignore_index=True))
