"""One run of any study: planned, asked, scored, reported.

Each stage reads and writes the files of a `RunFolder`, so any of them can be run again or its
product replaced. The study says what is asked and compared; everything else is here, once.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import surface_consistency
from surface_consistency.data.questions import pause_gc
from surface_consistency.errors import (
    DataError,
    MissingDependencyError,
    RunLogError,
    RunMismatchError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.inference.generate import Progress, run_prompts
from surface_consistency.inference.predictions import read_predictions
from surface_consistency.inference.runner import Rebatchable, Runner
from surface_consistency.inference.stored import StoredRunner
from surface_consistency.matching.verdict_records import rule_agreement
from surface_consistency.metrics import paired_by, wilson_interval
from surface_consistency.report.figures import write_figures
from surface_consistency.report.html import write_page
from surface_consistency.report.numbers import sentence_text
from surface_consistency.report.page import Page
from surface_consistency.report.table import Column, Table
from surface_consistency.runs.files import atomic_path, write_csv, write_json, write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import write_frame
from surface_consistency.runs.loader import Run, load_runs, study_name
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, Prompt, write_jsonl
from surface_consistency.schemas.generations import replace_surrogates
from surface_consistency.settings_options import Settings
from surface_consistency.studies.judging import judge_targets
from surface_consistency.studies.study import (
    Analysis,
    Plan,
    Report,
    ReportSettings,
    RuleScoring,
    Scored,
    Study,
    find_study,
)

__all__ = [
    "Reported",
    "Swept",
    "align_predictions",
    "build_page",
    "import_predictions",
    "make_manifest",
    "plain_columns",
    "report_runs",
    "retest_flip_rate",
    "run_study",
    "run_variants",
    "sample_prompts",
    "score_files",
    "score_run",
    "stacked",
    "write_tables",
]

_SWEEP = "sweep.json"
_ROWS_AT_ONCE = 8_192

ProgressOption = bool | Callable[[Progress], None]


def run_study(
    study: Study,
    data: Any,  # noqa: ANN401 - each study has its own data
    runner: Any,  # noqa: ANN401 - a runner, or what the study makes one of
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: Any = None,  # noqa: ANN401 - the study's settings record
    source: Settings | None = None,
    progress: ProgressOption = True,
    shared: RunFolder | None = None,
) -> RunFolder:
    """Ask a model what a study plans, and a sample of it twice.

    Started again with the same arguments it goes on where it was stopped.

    Args:
        study: The study.
        data: What its `load` returned.
        runner: Who answers.
        out: Folder of the run.
        model: Label of the model in tables.
        settings: How to ask; None for the study's defaults.
        source: Where the data came from, for the manifest.
        progress: Whether to show a progress bar on a terminal, or a function that is told.
        shared: A run of the same sweep, whose answers to groups that depend on the model alone,
            the repeated ones too, are taken over.

    Returns:
        The run folder, with targets, pairs, prompts, generations and manifest.

    Raises:
        DataError: If nothing is left to ask.
        RunMismatchError: If the folder holds a run with other settings or a sweep, or `shared` is
            a run of another model or decoding; names them.
        RunLogLockedError: If another process writes to this run.
        PromptTooLongError: If a prompt does not fit the model.
    """
    settings = study.settings() if settings is None else settings
    _refuse_sweep(Path(out))
    plan = study.plan(data, settings, runner=runner if isinstance(runner, Runner) else None)
    if plan.pairs.empty:
        raise DataError(f"no pair to ask in {plan.data.id} with these settings")
    settings = plan.settings or settings
    asked = study.prepare_runner(runner, plan, settings)
    manifest = make_manifest(
        study,
        plan.data,
        model=model,
        settings=settings.model_dump(mode="json"),
        decoding={
            name or "answers": group.params.model_dump(mode="json")
            for name, group in plan.groups.items()
        },
        runner=asked.fingerprint(),
        source=source,
    )
    _warn_uncovered(asked, [prompt for group in plan.groups.values() for prompt in group.prompts])
    if shared is not None:
        _check_shared(shared, plan, manifest)
    folder = RunFolder.create(out)
    with ExitStack() as stack:
        logs = {
            (name, repeat): stack.enter_context(
                RunLog.open(
                    folder.log(name, repeat=repeat), manifest, manifest_path=folder.manifest
                )
            )
            for name in plan.groups
            for repeat in ((False, True) if settings.repeat else (False,))
        }
        _write_plan(folder, plan)
        again = asked.rebatched(1) if isinstance(asked, Rebatchable) else asked
        for (name, repeat), log in logs.items():
            group, prompts = plan.groups[name], plan.groups[name].prompts
            if repeat:
                prompts = sample_prompts(prompts, settings.repeat, seed=settings.seed)
            if shared is not None and group.is_shared:
                _take_over(shared.log(name, repeat=repeat), prompts, log)
            run_prompts(again if repeat else asked, prompts, group.params, log, progress=progress)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Swept:
    """Result of `run_variants`."""

    folders: Sequence[RunFolder]
    """The runs, one a variant."""

    reported: "Reported"
    """Tables and page over all of them."""


def run_variants(
    study: Study,
    data: Any,  # noqa: ANN401 - each study has its own data
    runner: Any,  # noqa: ANN401 - a runner, or what the study makes one of
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: Any = None,  # noqa: ANN401 - the study's settings record
    source: Settings | None = None,
    scoring: Any = None,  # noqa: ANN401 - the study's scoring record
    report: ReportSettings | None = None,
    progress: ProgressOption = True,
) -> Swept:
    """Run, score and report all that settings stand for: one run, or a sweep of several.

    Each run of a sweep has a folder of its own within `out`, which `sweep.json` marks; groups of
    prompts that depend on the model alone are asked once for all. Started again with the same
    arguments it goes on where it was stopped.

    Args:
        study: The study.
        data: What its `load` returned.
        runner: Who answers.
        out: Folder of the run, or of the runs; page and tables over all of them go there too.
        model: Label of the model in tables.
        settings: How to ask; `Study.variants` takes them apart. None for the study's defaults.
        source: Where the data came from, for the manifests.
        scoring: How to judge; None for the study's defaults.
        report: How to compute tables and page; None for the defaults.
        progress: Whether to show a progress bar on a terminal, or a function that is told.

    Returns:
        The runs and what was reported of them.

    Raises:
        RunMismatchError: If several runs should go into the folder of a single one or the other way
            round, or a folder holds a run with other settings.
        DataError: If nothing is left to ask.
    """
    home = Path(out)
    variants = study.variants(study.settings() if settings is None else settings)
    if len(variants) > 1:
        if (home / "manifest.json").is_file():
            raise RunMismatchError(
                f"{home} holds a single run, whose tables and page a sweep would replace; choose "
                "another --out, or settings of one run to go on with it"
            )
        home.mkdir(parents=True, exist_ok=True)
        write_json(home / _SWEEP, {"runs": [name for name, _ in variants]})
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
        )
        score_run(folder, study=study, scoring=scoring)
        folders.append(folder)
    reported = report_runs([one.path for one in folders], home, study=study, settings=report)
    return Swept(folders=folders, reported=reported)


def import_predictions(
    study: Study,
    data: Any,  # noqa: ANN401 - each study has its own data
    predictions: Mapping[str, str] | Sequence[str | None],
    out: str | os.PathLike[str],
    *,
    model: str,
    origin: str,
    settings: Any = None,  # noqa: ANN401 - the study's settings record
    source: Settings | None = None,
    plan: Plan | None = None,
) -> RunFolder:
    """Make a run folder of predictions that were made elsewhere, ready for `score_run`.

    Args:
        study: The study.
        data: What its `load` returned.
        predictions: Generated text by prompt id or by question text; or one text a prompt, in the
            order of the data, None where there is none.
        out: Folder of the run; made, or taken as it is when it holds these predictions already.
        model: Label of the model in tables.
        origin: Where the predictions came from, for the manifest.
        settings: The study's settings, as far as they say what is compared.
        source: Where the data came from, for the manifest.
        plan: The plan of this data and these settings, to save making it again.

    Returns:
        The run folder.

    Raises:
        DataError: If no prediction belongs to a prompt, or the folder holds a model's own run.
        RunMismatchError: If the folder holds other predictions.
    """
    plan = plan or study.plan(data, study.settings() if settings is None else settings)
    texts = align_predictions(plan.targets, predictions)
    folder = RunFolder.create(out)
    if folder.prompts.exists():
        raise DataError(f"{folder.path} holds a run of a model; give the predictions another --out")
    manifest = make_manifest(
        study,
        plan.data,
        model=model,
        runner={"runner": "stored", "predictions": origin, "sha256": _digest(texts)},
        source=source,
    )
    if folder.manifest.exists():
        found = folder.read_manifest().differences(manifest)
        if found:
            raise RunMismatchError(
                f"{folder.path} holds other predictions ({', '.join(found)} differ); give these "
                "another --out, or delete the folder first"
            )
    _write_targets(folder, plan, plan.targets["prompt_id"], "")
    with atomic_path(folder.log()) as part:
        _predictions_as_log(texts).to_json(
            part, orient="records", lines=True, force_ascii=False, mode="w"
        )
    write_text(folder.manifest, manifest.model_dump_json(indent=2) + "\n")
    return folder


def score_files(
    study: Study,
    data: Any,  # noqa: ANN401 - each study has its own data
    predictions: Sequence[Path],
    out: str | os.PathLike[str],
    *,
    label: str | None = None,
    id_column: str | None = None,
    text_column: str | None = None,
    settings: Any = None,  # noqa: ANN401 - the study's settings record
    source: Settings | None = None,
    scoring: Any = None,  # noqa: ANN401 - the study's scoring record
) -> list[RunFolder]:
    """Score files of predictions, one a model; the data are loaded once, all cores are used.

    Args:
        study: The study.
        data: What its `load` returned.
        predictions: The files; see `inference.read_predictions`.
        out: Folder of the run, or with several files of the runs' folders, named after the files.
        label: Label of the model; None for the file's name.
        id_column: Column of ids or question texts; None to look for it.
        text_column: Column of the generated text; None to look for it.
        settings: The study's settings, as far as they say what is compared.
        source: Where the data came from, for the manifest.
        scoring: How to judge.

    Returns:
        The scored run folders, in the order of the files.

    Raises:
        ValueError: If two files have one name, or a label is given for several files.
        DataError: If a file cannot be read or belongs to other data.
    """
    names = [path.name.partition(".")[0] for path in predictions]
    if len(set(names)) < len(names):
        raise ValueError("two files of --predictions have one name; rename one of them")
    if label is not None and len(names) > 1:
        raise ValueError("--label names one model; leave it out where there are several files")
    settings = study.settings() if settings is None else settings
    with pause_gc():
        plan = study.plan(data, settings)
    del data
    home = Path(out)
    tasks = [
        _FileTask(
            study=study,
            plan=plan,
            predictions=path,
            out=home / name if len(names) > 1 else home,
            label=label or name,
            columns=(id_column, text_column),
            source=source,
            scoring=scoring,
        )
        for name, path in zip(names, predictions, strict=True)
    ]
    del plan
    if len(tasks) == 1:
        return [_score_file(tasks[0])]
    with ProcessPoolExecutor(min(len(tasks), os.cpu_count() or 1)) as workers:
        return list(workers.map(_score_file, tasks))


@dataclass(slots=True, kw_only=True, eq=False)
class _FileTask:
    """One file of predictions to be scored, here or in another process."""

    study: Study
    plan: Plan | None
    predictions: Path
    out: Path
    label: str
    columns: tuple[str | None, str | None]
    source: Settings | None
    scoring: Any


def _score_file(task: _FileTask) -> RunFolder:
    """Import and score one file of predictions."""
    id_column, text_column = task.columns
    with pause_gc():
        folder = import_predictions(
            task.study,
            None,
            read_predictions(task.predictions, id_column=id_column, text_column=text_column),
            task.out,
            model=task.label,
            origin=str(task.predictions),
            source=task.source,
            plan=task.plan,
        )
        task.plan = None  # The folder holds it: it would stand in memory twice.
        score_run(folder, study=task.study, scoring=task.scoring)
    return folder


def score_run(
    folder: RunFolder,
    *,
    study: Study | None = None,
    scoring: Any = None,  # noqa: ANN401 - the study's scoring record
) -> pd.DataFrame:
    """Judge the answers of a run and write verdicts, outcomes and checks beside them.

    May be called again with another rule or judge: nothing is asked anew.

    Args:
        folder: The run.
        study: Its study; None for the one that the manifest names.
        scoring: How to judge; None for the study's defaults.

    Returns:
        The outcomes frame, as written to `outcomes.parquet`.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        RunLogError: If the run has no answer yet.
        DataError: If the judge decided nothing; earlier verdicts are kept then.

    Warns:
        UnscoredWarning: If answers are missing or could not be judged.
    """
    manifest = folder.read_manifest()
    study = study or find_study(manifest.study)
    scoring = study.scoring() if scoring is None else scoring
    with pause_gc():
        return _score(folder, manifest, study, scoring)


def _score(folder: RunFolder, manifest: RunManifest, study: Study, scoring: Any) -> pd.DataFrame:  # noqa: ANN401
    """Judge, pair, check, write."""
    targets, pairs = folder.read_plan()
    judge = study.judge(scoring, folder)
    answered = _answered(folder, targets, repeat=False)
    if answered["text"].isna().all():
        raise RunLogError(
            f"{folder.path} holds no answer{_first_error(folder, targets)}; let the run finish "
            "first"
        )
    verdicts = judge_targets(judge, answered, study.verdict)
    _refuse_no_verdict(verdicts, judge.name)
    outcomes = study.outcomes(pairs, verdicts, model=manifest.model)
    again = _answered(folder, targets, repeat=True)
    again = again[again["text"].notna()].reset_index(drop=True)
    repeated = judge_targets(judge, again, study.verdict) if len(again) else None
    scored = Scored(
        folder=folder,
        model=manifest.model,
        targets=answered,
        verdicts=verdicts,
        outcomes=outcomes,
        repeated=repeated,
        scoring=scoring,
    )
    checks = {**_agreement(answered, scoring)}
    if repeated is not None:
        checks["noise_floor"] = retest_flip_rate(
            targets, verdicts, repeated, stratum=study.stratum, cluster=_cluster(study, targets)
        ).assign(model=manifest.model)
    checks |= study.checks(scored)
    _remove_checks(folder)
    write_frame(folder.verdicts, verdicts, study.verdict)
    if repeated is not None:
        write_frame(folder.repeat_verdicts, repeated, study.verdict)
    write_frame(folder.outcomes, outcomes, study.outcome)
    folder.write_checks(checks)
    study.export(scored)
    made = Scoring(
        judged_by=judge.name, settings=scoring.model_dump(mode="json"), checks=tuple(checks)
    )
    write_text(folder.scoring, made.model_dump_json(indent=2) + "\n")
    _warn_unscored(verdicts)
    return outcomes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reported:
    """Result of `report_runs`."""

    page: Path
    """The page."""

    tables: Mapping[str, Table]
    """The tables, as written to `tables/`."""

    runs: Sequence[Run]
    """The runs."""

    notes: Sequence[str]
    """What a reader must know before the numbers, in sentences."""

    warnings: Sequence[str]
    """What could not be made, such as figures without matplotlib."""


def report_runs(
    folders: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    study: Study | None = None,
    settings: ReportSettings | None = None,
    analyses: Mapping[Analysis, Any] | None = None,
) -> Reported:
    """Write tables, figures and page of scored runs.

    Args:
        folders: The run folders, each once.
        out: Folder for `report.html`, `tables/` and `figures/`.
        study: Their study; None for the one that the manifests name.
        settings: How to compute.
        analyses: Further analyses with their settings, which add tables and sections.

    Returns:
        The page and the tables.

    Raises:
        ValueError: If no folder is given, one twice, or runs of several studies; if an analysis is
            not for this study, or names a table that is there.
        DataError: If a run cannot be read.
    """
    page, tables, runs = build_page(folders, study=study, settings=settings, analyses=analyses)
    home = Path(out)
    home.mkdir(parents=True, exist_ok=True)
    write_tables(tables, home / "tables", runs=runs)
    target = write_page(page, home / "report.html")
    told = []
    try:
        write_figures(page, home / "figures")
    except MissingDependencyError as error:
        told.append(str(error))
    notes = [sentence_text(check.text) for check in page.checks if check.level == "look here"]
    return Reported(page=target, tables=tables, runs=runs, notes=notes, warnings=told)


def build_page(
    folders: Sequence[str | os.PathLike[str]],
    *,
    study: Study | None = None,
    settings: ReportSettings | None = None,
    analyses: Mapping[Analysis, Any] | None = None,
) -> tuple[Page, dict[str, Table], list[Run]]:
    """Compute tables and page of scored runs, and write nothing; see `report_runs`.

    Args:
        folders: The run folders, each once.
        study: Their study; None for the one that the manifests name.
        settings: How to compute.
        analyses: Further analyses with their settings.

    Returns:
        Page, tables by name, and runs.

    Raises:
        ValueError: As `report_runs`.
        DataError: If a run cannot be read.
    """
    settings = settings or ReportSettings()
    if study is None:
        found = find_study(study_name(folders))
        study = found.configured(RunFolder.open(folders[0]).read_manifest().settings)
    runs = load_runs(folders, outcome=study.outcome)
    cluster = settings.cluster or next(iter(study.clusters))
    if cluster not in study.clusters:
        raise ValueError(
            f"--cluster must be one of {', '.join(study.clusters)} for {study.name}; got "
            f"{cluster!r}"
        )
    _check_clusters(runs, cluster)
    report = Report(runs=runs, settings=settings, cluster=cluster)
    with pause_gc(), warnings.catch_warnings():
        # What is missing or undefined stands in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = {**study.tables(report)}
        tables |= {name: table for name, table in _check_tables(runs).items() if name not in tables}
        page = study.page(report, tables)
        for analysis, chosen in (analyses or {}).items():
            added = _analysed(analysis, chosen, study, report, tables)
            page = replace(page, sections=[*page.sections, *analysis.sections(report, added)])
            tables |= added
    return page, tables, runs


def write_tables(
    tables: Mapping[str, Table], folder: str | os.PathLike[str], *, runs: Sequence[Run]
) -> list[Path]:
    """Write tables as CSV files that `pandas.read_csv` loads without options.

    Args:
        tables: The tables.
        folder: Where to write; made when absent. Files of the same names are replaced.
        runs: What the tables were made from; their signatures go into `SOURCES.txt`.

    Returns:
        The files written: `<name>.csv` for each table, then `SOURCES.txt`.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        written.append(home / f"{name}.csv")
        write_csv(written[-1], table.frame)
    written.append(home / "SOURCES.txt")
    write_text(written[-1], "".join(f"{run.label}\t{run.signature}\n" for run in runs))
    return written


def make_manifest(
    study: Study,
    data: DataSource,
    *,
    model: str,
    runner: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    decoding: Mapping[str, Any] | None = None,
    source: Settings | None = None,
) -> RunManifest:
    """Write down what makes a run.

    Args:
        study: The study.
        data: Which rows were used.
        model: Label of the model.
        runner: The runner's fingerprint.
        settings: The study's settings, dumped whole; None when predictions were made elsewhere.
        decoding: Decoding by group; None when predictions were made elsewhere.
        source: Where the data came from.

    Returns:
        The manifest.
    """
    return RunManifest(
        study=study.name,
        model=model,
        data=data,
        settings=dict(settings or {}),
        decoding=dict(decoding or {}),
        source={} if source is None else source.model_dump(mode="json"),
        runner=dict(runner),
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def sample_prompts(prompts: Sequence[Prompt], n: int, *, seed: int = 0) -> list[Prompt]:
    """Choose prompts to ask again, by the hash of their content.

    Args:
        prompts: All prompts of a group.
        n: How many; all of them when there are no more.
        seed: Seed of the choice.

    Returns:
        Distinct prompts, in an order that has nothing to do with the run's.
    """
    distinct = {prompt.key: prompt for prompt in reversed(prompts)}

    def rank(key: str) -> bytes:
        return hashlib.sha256(f"{seed}|{key}".encode()).digest()

    return [distinct[key] for key in sorted(distinct, key=rank)[:n]]


def retest_flip_rate(
    targets: pd.DataFrame,
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    stratum: str | None = None,
    cluster: str = "fact_id",
) -> pd.DataFrame:
    """Compare the verdicts on two answers to the same prompts: the noise floor.

    Greedy decoding is not a function of the prompt alone: reduced precision makes it depend on the
    other prompts of the batch. A flip rate between conditions means something only above this.

    Args:
        targets: What was judged, `Plan.targets`.
        first: Verdicts of the run.
        second: Verdicts of the repetition, on some of the targets.
        stratum: Column of the targets by which the rate is told; None for all together.
        cluster: Column of the targets that is resampled as a whole.

    Returns:
        One row a stratum: stratum, n_repeated, n_verdict_flips, flip_rate in [0, 1] with
        `flip_rate_low` and `flip_rate_high` (95 %, resamples of clusters; Wilson's interval where
        no or every verdict flips), and n_text_changes: judged parts that differ at all. Empty when
        no target has both verdicts.
    """
    both = second.merge(first, on="target_id", suffixes=("_2", "_1")).merge(
        targets, on="target_id", validate="many_to_one"
    )
    name = stratum or "stratum"
    frame = pd.DataFrame(
        {
            name: both[stratum] if stratum else "all",
            "fact_id": both[cluster],
            "first_correct": both["is_correct_1"],
            "second_correct": both["is_correct_2"],
            "changed": both["prediction_1"].fillna("") != both["prediction_2"].fillna(""),
        }
    )
    frame = frame[frame["first_correct"].notna() & frame["second_correct"].notna()]
    bounds = ["flip_rate_low", "flip_rate_high"]
    columns = [name, "n_repeated", "n_verdict_flips", "flip_rate", *bounds, "n_text_changes"]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    with warnings.catch_warnings():
        # Only the flip rate is read, which is defined; the other rates may not be.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = paired_by(frame, by=name)
    table["n_repeated"] = table["n"]
    table["n_verdict_flips"] = table["first_only"] + table["second_only"]
    for row in table.index[table["n_verdict_flips"].isin([0]) | (table["flip_rate"] == 1)]:
        # Resamples of a sample without variation have no width; Wilson's interval has.
        interval = wilson_interval(int(table.loc[row, "n_verdict_flips"]), int(table.loc[row, "n"]))
        table.loc[row, bounds] = [interval.low, interval.high]
    table["n_text_changes"] = table[name].map(frame.groupby(name)["changed"].sum())
    if stratum:
        order = {value: place for place, value in enumerate(targets[stratum].unique())}
        table = table.sort_values(name, key=lambda values: values.map(order), ignore_index=True)
    return table[columns]


def align_predictions(
    targets: pd.DataFrame, predictions: Mapping[str, str] | Sequence[str | None]
) -> pd.Series:
    """Find the prediction of each prompt.

    Args:
        targets: `Plan.targets`; the column question, where it is there, may name a prompt too.
        predictions: As for `import_predictions`.

    Returns:
        Text by prompt id, missing where there is none; lone surrogates are replaced.

    Raises:
        TypeError: If the predictions are one string.
        DataError: If a sequence has another length than the prompts, or no key of a mapping is the
            id or the text of a question.

    Warns:
        UnscoredWarning: If predictions belong to no prompt.
    """
    if isinstance(predictions, str):
        raise TypeError("predictions is one string; give a mapping, or one text for each question")
    ids = targets["prompt_id"].drop_duplicates()
    if not isinstance(predictions, Mapping):
        if len(predictions) != len(ids):
            raise DataError(
                f"{len(predictions)} predictions for {len(ids)} questions; give one for each "
                "question, or a mapping from question id to text"
            )
        return pd.Series(list(map(_writable, predictions)), index=ids.to_numpy(), dtype="str")
    questions = None
    if "question" in targets:
        # A prompt with several targets asks for more than the question of one of them.
        is_alone = ~targets["prompt_id"].duplicated(keep=False)
        questions = targets["question"].where(is_alone, None).loc[ids.index]
    places = {key: place for place, key in enumerate(predictions)}
    said = list(predictions.values())
    is_known = bytearray(len(said))
    texts: list[str | None] = []
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        names = ids.iloc[rows].tolist()
        asked = [None] * len(names) if questions is None else questions.iloc[rows].tolist()
        for name, question in zip(names, asked, strict=True):
            found = [places[key] for key in (name, question) if key in places]
            for place in found:
                is_known[place] = True
            texts.append(_writable(said[found[0]]) if found else None)
    if not any(is_known):
        raise DataError(
            "no prediction belongs to a question: keys are question ids such as "
            f"{ids.iloc[0]!r} or question texts, got {next(iter(predictions), 'no key')!r}"
        )
    n_foreign = is_known.count(False)
    if n_foreign:
        first = next(key for key, known in zip(predictions, is_known, strict=True) if not known)
        warnings.warn(
            f"{n_foreign} of {len(predictions)} predictions belong to no question of the data "
            f"and were left out, the first under {first!r}",
            UnscoredWarning,
            stacklevel=3,
        )
    return pd.Series(texts, index=ids.to_numpy(), dtype="str")


def _writable(text: str | None) -> str | None:
    """Replace what no file in UTF-8 can hold."""
    return text if text is None or text.isascii() else replace_surrogates(text)


def _predictions_as_log(texts: pd.Series) -> pd.DataFrame:
    """Lay predictions out as lines of `Generation`."""
    given = texts[texts.notna()]
    return pd.DataFrame({"prompt_id": given.index, "text": given.to_numpy()})


def _digest(texts: pd.Series) -> str:
    """Name the content of predictions by SHA-256."""
    hashed = pd.util.hash_pandas_object(texts.fillna("\x00"), index=True)
    return hashlib.sha256(hashed.to_numpy().tobytes()).hexdigest()


def _refuse_sweep(out: Path) -> None:
    """Refuse to write a single run into the folder of a sweep."""
    if (out / _SWEEP).is_file():
        raise RunMismatchError(
            f"{out} holds a sweep, a folder a run, whose tables a single run would replace; choose "
            "another --out, or give several values again to go on with the sweep"
        )


def _write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write what is asked, judged and compared."""
    keys, groups = {}, {}
    for name, group in plan.groups.items():
        for prompt in group.prompts:
            keys[prompt.id], groups[prompt.id] = prompt.key, name
    asked = plan.targets["prompt_id"]
    missing = asked[pd.Index(list(keys)).get_indexer(pd.Index(asked)) < 0]
    if len(missing):
        raise DataError(f"target of prompt {missing.iloc[0]!r}, which the plan does not ask")
    _write_targets(folder, plan, asked.map(keys), asked.map(groups))
    write_jsonl(
        folder.prompts, (prompt for group in plan.groups.values() for prompt in group.prompts)
    )


def _write_targets(folder: RunFolder, plan: Plan, keys: pd.Series, groups: pd.Series | str) -> None:
    """Write targets with the keys of their prompts, pairs, and the checks of what goes in."""
    folder.write_plan(plan.targets.assign(prompt_key=keys, group=groups), plan.pairs)
    folder.write_checks(plan.checks)


def _check_shared(shared: RunFolder, plan: Plan, manifest: RunManifest) -> None:
    """Refuse to take answers over that this run's model would not give."""
    groups = tuple(
        f"decoding.{name or 'answers'}." for name, group in plan.groups.items() if group.is_shared
    )
    differing = [
        name
        for name in shared.read_manifest().differences(manifest)
        if name == "model"
        or name.startswith(groups)
        # Another store has no bearing on groups that depend on the model alone.
        or (name.startswith("runner.") and not name.endswith(".source.sha256"))
    ]
    if groups and differing:
        raise RunMismatchError(
            f"the answers in {shared.path} were made with another {', '.join(differing)}; take a "
            "run of the same model and decoding, or none"
        )


def _take_over(source: Path, prompts: Sequence[Prompt], log: RunLog) -> None:
    """Copy the answers that another run of the sweep has to some prompts."""
    wanted = {prompt.key for prompt in prompts if prompt.key not in log}
    if wanted and source.is_file():
        log.append(
            [
                answer
                for answer in read_generations(source)
                if answer.prompt_key in wanted and answer.finish_reason != "error"
            ]
        )


def _warn_uncovered(runner: Runner, prompts: Sequence[Prompt]) -> None:
    """Say which prompts stored predictions lack, and which predictions are of other questions."""
    if isinstance(runner, StoredRunner):
        told = runner.coverage(prompts).describe()
        if told is not None:
            warnings.warn(told, UnscoredWarning, stacklevel=3)


def _answered(folder: RunFolder, targets: pd.DataFrame, *, repeat: bool) -> pd.DataFrame:
    """Put the answers beside the targets; prompts of equal content share one."""
    answers = folder.read_answers(targets["group"].unique(), repeat=repeat)
    key = answers["prompt_key"].where(answers["prompt_key"].notna(), answers["prompt_id"])
    rows = np.full(len(targets), -1)
    for group, places in targets.groupby("group", sort=False).indices.items():
        of_group = np.flatnonzero(answers["group"] == group)
        wanted = pd.Index(targets["prompt_key"].iloc[places], dtype=object)
        at = pd.Index(key.iloc[of_group], dtype=object).get_indexer(wanted)
        rows[places[at >= 0]] = of_group[at[at >= 0]]
    known = rows >= 0
    found = targets.copy(deep=False)
    for name in ("text", "finish_reason", "error", "lookups"):
        values = np.full(len(targets), None, dtype=object)
        column = answers[name].to_numpy(dtype=object, na_value=None)  # type: ignore[call-overload]
        values[known] = column[rows[known]]
        found[name] = pd.Series(values, index=targets.index, dtype=object)
    return found


def _cluster(study: Study, targets: pd.DataFrame) -> str:
    """Name the column of the targets that is resampled: the study's cluster where it is there."""
    first = next(iter(study.clusters))
    return first if first in targets else "fact_id"


def _agreement(answered: pd.DataFrame, scoring: Any) -> dict[str, pd.DataFrame]:  # noqa: ANN401
    """Compare the verdicts of all rules, where the scoring is by a rule and asks for it."""
    if not isinstance(scoring, RuleScoring) or not scoring.agreement:
        return {}
    table = rule_agreement(
        answered["text"].tolist(), answered["answers"].tolist(), region=scoring.region
    )
    return {str(name): rows for name, rows in table.groupby("compared")}


def _remove_checks(folder: RunFolder) -> None:
    """Remove the checks of an earlier scoring, which must not stand beside the verdicts of this."""
    found = folder.read_scoring()
    for name in () if found is None else found.checks:
        (folder.checks / f"{name}.csv").unlink(missing_ok=True)


def _first_error(folder: RunFolder, targets: pd.DataFrame) -> str:
    """Quote the first error of a run's logs."""
    errors = folder.read_answers(targets["group"].unique())["error"].dropna()
    return "" if errors.empty else f", only errors such as {errors.iloc[0]!r}"


def _refuse_no_verdict(verdicts: pd.DataFrame, judge: str) -> None:
    """Refuse to put nothing in the place of earlier verdicts."""
    if verdicts["is_correct"].isna().all():
        raise DataError(
            f"judge {judge!r} decided none of {len(verdicts)} facts, the first because "
            f"{verdicts['reason'].iloc[0]}; mend that and score again: what was judged before is "
            "kept"
        )


def _warn_unscored(verdicts: pd.DataFrame) -> None:
    """Say how many targets have no verdict, and why."""
    reasons = verdicts["reason"].dropna()
    if reasons.empty:
        return
    counts = reasons.str.split(":").str[0].value_counts(sort=False)
    counted = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    warnings.warn(
        f"{len(reasons)} of {len(verdicts)} answers have no verdict: {counted}; their pairs are "
        f"left out of the tables; the first: {reasons.iloc[0]}",
        UnscoredWarning,
        stacklevel=4,
    )


def _analysed(
    analysis: Analysis,
    settings: Any,  # noqa: ANN401 - the analysis's settings record
    study: Study,
    report: Report,
    tables: Mapping[str, Table],
) -> dict[str, Table]:
    """Compute the tables of an analysis, and hold it to its study and to names of its own."""
    if analysis.studies and study.name not in analysis.studies:
        raise ValueError(
            f"the analysis {analysis.name!r} reads runs of {', '.join(analysis.studies)}, not of "
            f"{study.name}"
        )
    added = dict(analysis.tables(report, settings))
    if clash := sorted(added.keys() & tables.keys()):
        raise ValueError(
            f"the analysis {analysis.name!r} has the table {', '.join(clash)}, which {study.name} "
            "has already; it must choose another name"
        )
    return added


def _check_clusters(runs: Sequence[Run], cluster: str) -> None:
    """Refuse pairs that belong to no cluster."""
    for run in runs:
        n_without = int(run.outcomes[cluster].isna().sum())
        if n_without:
            raise DataError(
                f"run {run.label!r} has {n_without} pairs without {cluster}, so they belong to no "
                "cluster; use --cluster fact_id"
            )


def _check_tables(runs: Sequence[Run]) -> dict[str, Table]:
    """Put the checks of all runs one below the other."""
    tables = {}
    for name in dict.fromkeys(name for run in runs for name in run.checks):
        frame = stacked(runs, {run.label: run.checks.get(name) for run in runs})
        tables[name] = Table(
            frame=frame, caption=name.replace("_", " ").capitalize(), columns=plain_columns(frame)
        )
    return tables


def plain_columns(frame: pd.DataFrame) -> list[Column]:
    """Describe the columns of a frame that nobody described: text, counts and numbers as they are.

    Args:
        frame: The frame.

    Returns:
        One column each, told apart by the types of their values alone.
    """
    kinds = {"i": "count", "u": "count", "f": "number"}
    return [
        Column(
            key=str(name),
            title=str(name).replace("_", " "),
            kind=kinds.get(frame[name].dtype.kind, "label"),  # type: ignore[arg-type]
        )
        for name in frame.columns
    ]


def stacked(runs: Sequence[Run], tables: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame:
    """Put one table of each run below each other with the column `model` first.

    Args:
        runs: The runs.
        tables: A table by the run's label; None where there is none.

    Returns:
        The rows. Those of a table that names models itself keep theirs, save the run's own, which
        gets its label.
    """
    parts = []
    for run in runs:
        table = tables.get(run.label)
        if table is None:
            continue
        labels = [run.label] * len(table)
        if "model" in table:
            labels = [run.label if m == run.manifest.model else m for m in table["model"]]
        rest = table.drop(columns="model", errors="ignore")
        rest.insert(0, "model", pd.Series(labels, index=rest.index, dtype="object"))
        parts.append(rest)
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
