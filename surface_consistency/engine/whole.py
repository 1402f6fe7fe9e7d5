"""A whole run by the name of its study: load data, query a model, score the answers, report."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.report import cluster_of, report_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.study import find_study, with_cluster
from surface_consistency.engine.sweep import run_sweep
from surface_consistency.models.runner import Runner
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import did_you_mean

_SettingsT = TypeVar("_SettingsT", bound=Settings)


def run(
    study: str,
    *,
    out: str | os.PathLike[str],
    runner: str | Runner | None = None,
    progress: bool = True,
    **options: Any,  # noqa: ANN401 - checked by the records of the study
) -> pd.DataFrame:
    """Run a study on a model, as `surface-consistency run STUDY` does.

    Args:
        study: Name of the study, such as "redirectqa".
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
        TypeError: If the study has no option of a name.
        ValueError: If the study is unknown, or an option has an invalid value.
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
    chosen, folder = find_study(study), Path(out)
    records = chosen.records
    kinds = (records.source, ModelSettings, records.settings, records.scoring, ReportSettings)
    known = {name for kind in kinds for name in kind.model_fields}
    for name in options:
        if name not in known:
            raise TypeError(f"{study} has no option {name!r}{did_you_mean(name, known)}")
    if not isinstance(runner, Runner):
        options["runner"] = runner
    source, model = _made(records.source, options), _made(ModelSettings, options)
    settings, reporting = _made(records.settings, options), _made(ReportSettings, options)
    scoring = _made(records.scoring, options)
    scoring = scoring.resolved(settings.model_dump(mode="json"), is_new_run=True)
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
    return with_cluster(chosen, pd.concat([one.outcomes for one in runs], ignore_index=True))


def _made(kind: type[_SettingsT], options: Mapping[str, Any]) -> _SettingsT:
    """Make a record of those options that are its fields."""
    return kind(**{name: value for name, value in options.items() if name in kind.model_fields})
