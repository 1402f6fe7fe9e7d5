"""Scoring of the answers of a run, of a file of predictions, or of many files."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pandas as pd

from surface_consistency.data.selection import pause_gc
from surface_consistency.engine.choices import reference_log_odds
from surface_consistency.engine.judging.judges import export_labels, judge_targets
from surface_consistency.engine.judging.labels import agreement_by_kind
from surface_consistency.engine.plan import Plan, check_pair_columns, check_target_columns
from surface_consistency.engine.run import make_manifest, write_targets
from surface_consistency.engine.settings import JudgeScoring, RuleScoring, StudySettings
from surface_consistency.engine.study import (
    Scored,
    Study,
    label_checks,
    make_judge,
    make_plan,
    pair_outcomes,
    study_of,
)
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.matching.verdict_records import COMPARED_RULES, rule_agreement
from surface_consistency.metrics import paired_by
from surface_consistency.models.reasoning import separate_stored
from surface_consistency.reading import shown
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.results.predictions import (
    Predictions,
    QuestionIndex,
    answers_only,
    read_predictions,
)
from surface_consistency.results.samples import reject_mixed_tasks
from surface_consistency.runs.answers import count_replies, join_answers
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.files import reject_foreign, write_text
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.frames import TEXT, write_frame
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.runs.processes import map_processes
from surface_consistency.schemas.generations import NO_ANSWER_REASONS, replace_surrogates
from surface_consistency.schemas.jsonl import atomic_path, read_jsonl
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.schemas.scoring import OptionScore
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import has_unspaced_script

_MANY_UNSPACED: Final = 0.02
_UNANSWERED: Final = ("error", "unclosed_reasoning")
"""Finish reasons of replies that are neither an answer nor a refusal."""

_ROWS_AT_ONCE = 8_192


def import_predictions(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    predictions: Mapping[str, str] | Sequence[str | None] | Predictions,
    out: str | os.PathLike[str],
    *,
    model: str,
    origin: str,
    settings: StudySettings | None = None,
    source: Settings | None = None,
    plan: Plan | None = None,
) -> tuple[RunFolder, pd.DataFrame]:
    """Make a run folder of predictions that were made elsewhere, ready for `score_run`.

    Args:
        study: The study.
        data: The data that its `load` returned.
        predictions: Generated text by prompt id or by question text; or one text per prompt, in the
            order of the data, None for a missing text; or the result of `read_predictions`.
        out: Folder of the run; created, or reused if it already contains these predictions.
        model: Label of the model in tables.
        origin: Source of the predictions, for the manifest.
        settings: The settings of the study that select the pairs, and that separate reasoning from
            answers.
        source: Source of the data, for the manifest.
        plan: The plan of this data and these settings, to avoid making it again.

    Returns:
        The run folder, and the lines of its log.

    Raises:
        DataError: If no prediction belongs to a prompt, the folder contains a run of a model, or
            it is not specified whether replies without a tag are answers; see `split_replies`.
        RunError: If the folder contains other predictions.
    """
    settings = settings or study.records.settings()
    plan = plan or make_plan(study, data, settings)
    texts = align_predictions(plan.items, predictions)
    del predictions
    folder = RunFolder.create(out)
    if folder.prompts.exists():
        raise DataError(
            f"{folder.path} contains a run of a model; choose another `out` for the predictions"
        )
    if not folder.manifest.exists():
        reject_foreign(folder.path, [folder.log().name])
    manifest = make_manifest(
        study.name,
        plan.data,
        model=model,
        runner={
            "runner": "stored",
            "predictions": origin,
            "sha256": _digest(texts),
            "reasoning_tags": settings.reasoning_tags and list(settings.reasoning_tags),
            "reasoning_opened": settings.reasoning_opened,
        },
        source=source,
    )
    lines = separate_stored(texts, settings.with_reasoning(GenerationParams()))
    manifest = manifest.model_copy(update={"replies": count_replies(lines)})
    if folder.manifest.exists():
        fields = folder.read_manifest().differences(manifest)
        if fields:
            raise RunError(
                f"{folder.path} contains other predictions ({', '.join(fields)} differ); choose "
                "another `out`, or delete the folder first"
            )
    write_text(folder.manifest, manifest.model_dump_json(indent=2) + "\n")
    with atomic_path(folder.log()) as part, part.open("w", encoding="utf-8") as log:
        for start in range(0, len(lines), _ROWS_AT_ONCE):
            lines.iloc[start : start + _ROWS_AT_ONCE].to_json(
                log, orient="records", lines=True, force_ascii=False
            )
    write_targets(folder, plan, plan.items["prompt_id"], "")
    return folder, lines


def score_files(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `Study.load`
    predictions: Sequence[Path],
    out: str | os.PathLike[str],
    *,
    label: str | None = None,
    reading: PredictionSettings | None = None,
    settings: StudySettings | None = None,
    source: Settings | None = None,
    scoring: JudgeScoring | None = None,
) -> list[RunFolder]:
    """Score files of predictions, one per model; the data are loaded once, all cores are used.

    Args:
        study: The study.
        data: The data that its `load` returned.
        predictions: The files; see `results.read_predictions`.
        out: Folder of the run; with several files the parent of the run folders, which are named
            after the files.
        label: Label of the model; None for the name of the file.
        reading: How the files are read; None for the defaults.
        settings: The settings of the study that select the pairs, and that separate reasoning from
            answers.
        source: Source of the data, for the manifest.
        scoring: How to score.

    Returns:
        The scored run folders, in the order of the files.

    Raises:
        ValueError: If two files have one name, or a label is given for several files.
        DataError: If a file cannot be read or belongs to other data, or the files are samples of
            several tasks of lm-evaluation-harness.
    """
    reject_mixed_tasks(predictions)
    names = [Path(path.name.removesuffix(".gz")).stem for path in predictions]
    if len(set(names)) < len(names):
        raise ValueError("two files of `predictions` have the same name; rename one of them")
    if label is not None and len(names) > 1:
        raise ValueError("`label` names one model; omit it with several files")
    settings = settings or study.records.settings()
    with pause_gc():
        plan = make_plan(study, data, settings)
    del data
    home = Path(out)
    tasks = [
        _FileTask(
            study=study,
            plan=plan,
            predictions=path,
            out=home / name if len(names) > 1 else home,
            label=label or name,
            reading=reading,
            settings=settings,
            source=source,
            scoring=scoring,
        )
        for name, path in zip(names, predictions, strict=True)
    ]
    del plan
    return map_processes(_score_file, tasks)


@dataclass(slots=True, kw_only=True, eq=False)
class _FileTask:
    """One file of predictions to be scored, here or in another process."""

    study: Study
    plan: Plan | None
    predictions: Path
    out: Path
    label: str
    reading: PredictionSettings | None
    settings: Any
    source: Settings | None
    scoring: Any


def _score_file(task: _FileTask) -> RunFolder:
    """Import and score one file of predictions, without reading the log that was just written."""
    with pause_gc():
        folder, lines = import_predictions(
            task.study,
            None,
            read_predictions(task.predictions, task.reading),
            task.out,
            model=task.label,
            origin=str(task.predictions),
            settings=task.settings,
            source=task.source,
            plan=task.plan,
        )
        task.plan = None  # The folder contains it; this frees the memory of a second copy.
        score_run(folder, study=task.study, scoring=task.scoring, lines=lines)
    return folder


def score_run(
    folder: RunFolder | str | os.PathLike[str],
    *,
    study: Study | None = None,
    scoring: JudgeScoring | None = None,
    lines: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Score the answers of a run and write correctness labels, outcomes and checks to its folder.

    It may be called again with another rule or judge; the model under test is not prompted again.

    Args:
        folder: The run, or the path of its folder.
        study: Its study; None for the study that the manifest names.
        scoring: How to score; None for the study's defaults.
        lines: The lines of its log, as `import_predictions` returned them; None to read the log.

    Returns:
        The outcomes frame, as written to `outcomes.parquet`.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        RunError: If another process writes to the run, or scores it.
        RunError: If the run has no answer yet, or two answers to one prompt.
        DataError: If the plan was changed since it was made, or no answer could be scored; earlier
            scores are then kept.

    Warns:
        UnscoredWarning: If answers are missing or could not be scored.
    """
    folder = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    manifest = folder.read_manifest()
    study = study or study_of(folder)
    scoring = study.records.judged(scoring or study.records.scoring(), manifest.settings)
    with folder.locked(), pause_gc():
        return _score(folder, manifest, study, scoring, lines)


def _score(
    folder: RunFolder,
    manifest: RunManifest,
    study: Study,
    scoring: JudgeScoring,
    lines: pd.DataFrame | None,
) -> pd.DataFrame:
    """Score the answers, pair them, compute checks and write all files."""
    judge = make_judge(study, scoring, folder)
    targets, pairs = folder.read_plan()
    check_pair_columns(pairs, study.records.outcome, str(folder.pairs))
    check_target_columns(targets, study.design, str(folder.targets))
    targets = _with_kinds(study, targets, pairs)
    if lines is None:
        answered = answered_targets(folder, targets, repeat=False)
    else:
        answered = join_answers(targets, lines.assign(prompt_key=None, group=""))
    if answered["text"].isna().all():
        raise RunError(f"{folder.path} contains no answer{_why_no_answer(folder, answered)}")
    verdicts = judge_targets(judge, answered, study.records.verdict)
    _check_any_score(verdicts, judge.name)
    try:
        outcomes = pair_outcomes(study, pairs, verdicts, model=manifest.model)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(f"{folder.pairs}: {error}") from error
    again = answered_targets(folder, targets, repeat=True)
    again = again[again["text"].notna()].reset_index(drop=True)
    is_judged = len(again) and getattr(judge, "judges_again", True)
    repeated = judge_targets(judge, again, study.records.verdict) if is_judged else None
    scored = Scored(
        folder=folder,
        model=manifest.model,
        items=answered,
        verdicts=verdicts,
        outcomes=outcomes,
        scoring=scoring,
    )
    checks = {
        **_agreement(answered, scoring),
        **_replies(answered, manifest.model),
        **_cut_answers(answered, verdicts, manifest.model),
    }
    if repeated is not None:
        checks["noise_floor"] = retest_flip_rate(
            targets,
            verdicts,
            repeated,
            stratum=study.design.stratum,
            cluster=_cluster(study, targets),
        ).assign(model=manifest.model)
    checks |= _log_odds(scored, pairs, manifest, study)
    checks |= _own_checks(scored, study)
    prompts = answered["finish_reason"][~answered["prompt_id"].duplicated()]
    made = Scoring(
        judged_by=judge.name,
        settings=scoring.model_dump(mode="json"),
        checks=tuple(checks),
        command=COMMAND.get(),
        n_prompts=len(prompts),
        n_unanswered=int((prompts.isna() | prompts.isin(_UNANSWERED)).sum()),
    )
    with folder.replacing_scores(made) as beside:
        write_frame(beside.verdicts, verdicts, study.records.verdict)
        if repeated is not None:
            write_frame(beside.repeat_verdicts, repeated, study.records.verdict)
        beside.write_checks(checks)
        # For free answers, annotators also label whether they mention the fact.
        fill = {"is_recalled"} & study.records.verdict.model_fields.keys()
        export_labels(scoring, beside, scored.shown, kind=study.design.kind, fill=[*fill])
        study.report.export(replace(scored, folder=beside))
        write_frame(beside.outcomes, outcomes, study.records.outcome)
    warn_unscored(verdicts)
    return outcomes


def _with_kinds(study: Study, targets: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Add the kind of each answer, by which agreement with human labels is computed.

    Args:
        study: The study.
        targets: The targets.
        pairs: The pairs.

    Returns:
        The targets with the column `Design.kind`. If the targets do not have it, it is the
        condition of each target in the first of its pairs, or the name of a third condition.
    """
    if study.design.kind in targets:
        return targets
    sides = []
    conditions = dict(zip(("first", "second"), study.design.conditions, strict=True))
    columns = [str(name) for name in pairs.columns]
    for side in [name.removesuffix("_target") for name in columns if name.endswith("_target")]:
        name = pairs.get(f"{side}_condition", conditions.get(side, side))
        sides.append(pd.Series(name, index=pairs.index).set_axis(pairs[f"{side}_target"]))
    kinds = pd.concat(sides)
    kinds = kinds[~kinds.index.duplicated()]
    return targets.assign(**{study.design.kind: targets["target_id"].map(kinds)})


def _own_checks(scored: Scored, study: Study) -> dict[str, pd.DataFrame]:
    """Compare the scores with the rule of the study and human labels; add the study's checks."""
    checks: dict[str, pd.DataFrame] = {}
    kinds, ruled = scored.items[study.design.kind], scored.verdicts["rule_correct"]
    if ruled.notna().any():
        checks["judge_against_rule"] = agreement_by_kind(kinds, scored.verdicts, ruled)
    own = study.report.run_checks(scored)
    if scored.labels is not None and "judge_agreement" not in own:
        checks |= label_checks(study, scored, scored.labels)
    return checks | dict(own)


def retest_flip_rate(
    targets: pd.DataFrame,
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    stratum: str | None = None,
    cluster: str = "item",
) -> pd.DataFrame:
    """Compute the test-retest flip rate of identical prompts, which is the noise floor.

    Even greedy decoding does not depend only on the prompt: with reduced precision it also depends
    on the other prompts of the batch. Only a flip rate between conditions above this rate is
    meaningful.

    Args:
        targets: The targets, `Plan.items`.
        first: Correctness labels of the run.
        second: Correctness labels of the repeated prompts, for some of the targets.
        stratum: Column of the targets by which the rate is computed; None for all together.
        cluster: Clustering column of the targets.

    Returns:
        One row per stratum: stratum, n_repeated, n_verdict_flips, flip_rate in [0, 1] with
        `flip_rate_low` and `flip_rate_high` (95 %, cluster-robust), and n_text_changes, the number
        of scored parts whose text differs. Empty if no target has both labels.
    """
    both = second.merge(first, on="target_id", suffixes=("_2", "_1")).merge(
        targets, on="target_id", validate="many_to_one"
    )
    name = stratum or "stratum"
    frame = pd.DataFrame(
        {
            name: both[stratum] if stratum else "all",
            "item": both[cluster],
            "first_correct": both["correct_1"],
            "second_correct": both["correct_2"],
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
    table["n_text_changes"] = table[name].map(frame.groupby(name)["changed"].sum())
    if stratum:
        order = {value: place for place, value in enumerate(targets[stratum].unique())}
        table = table.sort_values(name, key=lambda values: values.map(order), ignore_index=True)
    return table[columns]


def align_predictions(
    targets: pd.DataFrame,
    predictions: Mapping[str, str | None] | Sequence[str | None] | Predictions,
    *,
    reading: PredictionSettings | None = None,
) -> pd.Series:
    """Find the prediction of each prompt.

    Args:
        targets: `Plan.items`; prompts are also found by the column question, if it exists.
        predictions: As for `import_predictions`.
        reading: How prompts and blanks are handled; None for the defaults, or those of a file.

    Returns:
        Text by prompt id, missing if there is no prediction; lone surrogates are replaced.

    Raises:
        DataError: If a sequence has another length than the prompts; if a key of a mapping is
            neither the id of a prompt nor the text of its question; or if outputs begin with their
            prompts and `reading` does not cut these off.

    Warns:
        UnscoredWarning: If predictions of a file belong to no prompt, or are blank.
    """
    ids = targets["prompt_id"].drop_duplicates()
    questions: list[str | None] | None = None
    if "question" in targets:
        # A prompt with several targets contains more than the question of one of them.
        is_alone = ~targets["prompt_id"].duplicated(keep=False)
        alone = targets["question"].astype(object).where(is_alone, None)
        questions = alone.loc[ids.index].tolist()
    if isinstance(predictions, Predictions):
        reading = reading or predictions.settings
        facts, answers = (
            targets.loc[ids.index, name].tolist() if name in targets else None
            for name in ("item", "references")
        )
        texts = predictions.match(QuestionIndex(ids.tolist(), questions, facts, answers))
    elif isinstance(predictions, Mapping):
        texts = _by_name(ids, questions, predictions)
    elif len(predictions) == len(ids):
        texts = list(map(_writable, predictions))
    else:
        raise DataError(
            f"{len(predictions):,} predictions for {len(ids):,} prompts; pass one per prompt, or a "
            "mapping from id to text"
        )
    texts = answers_only(texts, questions, reading or PredictionSettings())
    return pd.Series(texts, index=ids.to_numpy(), dtype=TEXT)


def named_texts(
    predictions: Any,  # noqa: ANN401 - each kind is described below
    reading: PredictionSettings,
    *,
    in_order: bool,
) -> Mapping[str, str | None] | Sequence[str | None] | Predictions:
    """Index predictions by the ids of their prompts.

    Args:
        predictions: Mapping from id to text, or from the text of a question; path of a file, data
            frame, `datasets.Dataset` or rows as dictionaries, which `read_predictions` reads; or
            texts without ids. Ids may be integers.
        reading: How rows are read.
        in_order: Whether texts without ids are in the order of the prompts.

    Returns:
        Text by id or question; the texts, if they are in order; or the rows.

    Raises:
        TypeError: If the predictions or a text are of another type.
        ValueError: If `in_order` is set for predictions with ids.
        DataError: If an id occurs twice, or texts without ids are not confirmed by `in_order`.
        ColumnNotFoundError: If no column, or more than one, can contain the ids or the texts.
    """
    is_table = isinstance(predictions, str | os.PathLike) or any(
        hasattr(predictions, name) for name in ("to_pandas", "with_format", "iloc")
    )
    if not (is_table or isinstance(predictions, Iterable)):
        raise TypeError(
            f"predictions is one {type(predictions).__name__}; pass a mapping from id to text"
        )
    if not isinstance(predictions, Mapping) and not is_table:
        predictions = list(predictions)
        if not any(isinstance(row, Mapping) for row in predictions):
            return _checked_texts(predictions) if in_order else _reject_order(len(predictions))
    if in_order:
        raise ValueError(
            "in_order=True is for texts without ids, and these predictions have ids; omit it"
        )
    if not isinstance(predictions, Mapping):
        return read_predictions(predictions, reading)
    texts = _checked_texts(predictions.values())
    named = dict(zip(map(_as_name, predictions), texts, strict=True))
    if len(named) < len(texts):
        twice = next(name for name, n in Counter(map(_as_name, predictions)).items() if n > 1)
        raise DataError(f"two predictions have the id {shown(twice)}; keep one per prompt")
    return named


def _as_name(name: object) -> str:
    """Read an id; integers of NumPy are also ids."""
    name = name.item() if hasattr(name, "item") else name
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise TypeError(
            f"the id of a prediction must be text or an integer, got {shown(name)}; fill it in or "
            "drop the row"
        )
    return str(name)


def _checked_texts(texts: Iterable[object]) -> list[str | None]:
    """Raise an error if a prediction is neither text nor None."""
    texts = [None if isinstance(text, float) and text != text else text for text in texts]
    strange = next((text for text in texts if not isinstance(text, str | None)), None)
    if strange is not None:
        raise TypeError(
            f"a prediction must be text or None, got {type(strange).__name__} "
            f"({str(strange)[:60]}); "
            "pass one text per prompt"
        )
    return texts  # type: ignore[return-value]


def _reject_order(n_texts: int) -> NoReturn:
    """Raise an error for texts without the ids of their prompts."""
    raise DataError(
        f"{n_texts:,} texts without the ids of their prompts; pass a mapping from id to text, or "
        "rows with the columns id and prediction; or pass in_order=True if the texts are in the "
        "order of the prompts"
    )


def _by_name(
    ids: "pd.Series[str]", questions: list[str | None] | None, predictions: Mapping[str, str | None]
) -> list[str | None]:
    """Find the prediction of each prompt in a mapping from id or question."""
    names_of = zip(ids, questions or repeat(None), strict=False)
    found = [[key for key in names if key is not None and key in predictions] for names in names_of]
    known = set(chain.from_iterable(found))
    foreign = [key for key in predictions if key not in known]
    if foreign or not predictions:
        raise DataError(
            f"{len(foreign):,} of {len(predictions):,} predictions belong to no prompt of the "
            f"data, such as {shown(next(iter(foreign), 'no id'))}; ids are such as "
            f"{shown(ids.iloc[0])}. Correct the ids, or drop these predictions"
        )
    differing = next((keys for keys in found if len({predictions[key] for key in keys}) > 1), None)
    if differing is not None:
        raise DataError(
            f"{shown(differing[0])} and {shown(differing[1])} are one prompt, with two "
            "predictions; keep one"
        )
    return [_writable(predictions[keys[0]]) if keys else None for keys in found]


def _writable(text: str | None) -> str | None:
    """Replace characters that UTF-8 cannot encode."""
    return text if text is None or text.isascii() else replace_surrogates(text)


def _digest(texts: pd.Series) -> str:
    """Compute the SHA-256 of predictions."""
    hashed = pd.util.hash_pandas_object(texts.fillna("\x00"), index=True)
    return hashlib.sha256(hashed.to_numpy().tobytes()).hexdigest()


def answered_targets(folder: RunFolder, targets: pd.DataFrame, *, repeat: bool) -> pd.DataFrame:
    """Join the answers to the targets; prompts of equal content share an answer.

    Args:
        folder: The run.
        targets: The targets with group and prompt_key, as returned by `RunFolder.read_plan`.
        repeat: Whether to use the answers to the repeated prompts.

    Returns:
        The targets with the columns `ANSWER_FIELDS`; see `join_answers`.
    """
    return join_answers(targets, folder.read_answers(targets["group"].unique(), repeat=repeat))


def _cluster(study: Study, targets: pd.DataFrame) -> str:
    """Return the clustering column of the targets: that of the study, if it has no gaps."""
    first = next(iter(study.design.clusters))
    return first if first in targets and targets[first].notna().all() else "item"


def _agreement(answered: pd.DataFrame, scoring: Settings) -> dict[str, pd.DataFrame]:
    """Compare the correctness labels of all rules, if the scoring is by a rule and `agreement`."""
    if not isinstance(scoring, RuleScoring) or not scoring.agreement:
        return {}
    texts = answered["text"].tolist()
    n_unspaced = sum(isinstance(text, str) and has_unspaced_script(text) for text in texts)
    by_words = n_unspaced > _MANY_UNSPACED * len(texts) and find_spec("icu4py") is not None
    table = rule_agreement(
        texts,
        answered["references"].tolist(),
        rules=(*COMPARED_RULES, "segmented") if by_words else COMPARED_RULES,
        region=scoring.region,
    )
    return {str(name): rows for name, rows in table.groupby("compared")}


def _log_odds(
    scored: Scored, pairs: pd.DataFrame, manifest: RunManifest, study: Study
) -> dict[str, pd.DataFrame]:
    """Compare the log-odds of references, if answers were chosen among options of facts."""
    settings = manifest.settings
    if settings.get("read", "generate") == "generate" or "option_score" not in settings:
        return {}
    table = reference_log_odds(
        scored.items,
        pairs,
        read_jsonl(scored.folder.prompts, Prompt),
        conditions=study.design.conditions,
        cluster=_cluster(study, scored.items),
        option_score=cast("OptionScore", settings["option_score"]),
    )
    return {} if table.empty else {"log_odds": table}


def _replies(answered: pd.DataFrame, model: str) -> dict[str, pd.DataFrame]:
    """Count replies with reasoning, and replies without an answer for other reasons than errors."""
    replies = answered.drop_duplicates(["prompt_key", "group"])
    replies = replies[replies["finish_reason"].notna()]
    counts = count_replies(replies)
    kinds = {kind: counts.get(kind, 0) for kind in NO_ANSWER_REASONS}
    n_reasoned = int(replies["reasoning_source"].notna().sum())
    if not n_reasoned and sum(kinds.values()) == kinds["error"]:
        return {}
    row = {"model": model, "n_replies": len(replies), "n_with_reasoning": n_reasoned}
    row |= {f"n_{kind}": n for kind, n in kinds.items()}
    return {"replies": pd.DataFrame([row])}


def _cut_answers(
    answered: pd.DataFrame, verdicts: pd.DataFrame, model: str
) -> dict[str, pd.DataFrame]:
    """Count incorrect answers that end at the limit of tokens within an accepted answer."""
    if "references" not in answered:
        return {}
    is_wrong = verdicts["correct"].eq(False).fillna(False).to_numpy(bool)
    is_cut = answered["finish_reason"].eq("length").to_numpy(bool) & is_wrong
    n_cut = 0
    for text, accepted in answered.loc[is_cut, ["text", "references"]].itertuples(index=False):
        # A letter of several tokens may also be cut; an answer with a second line is complete.
        answer = text.strip().rstrip("\ufffd").casefold() if isinstance(text, str) else ""
        if answer and "\n" not in answer:
            n_cut += any(
                len(answer) < len(one) and one.casefold().startswith(answer) for one in accepted
            )
    row = {"model": model, "n_cut": n_cut, "n_answers": len(answered)}
    return {"cut_answers": pd.DataFrame([row])} if n_cut else {}


def _why_no_answer(folder: RunFolder, answered: pd.DataFrame) -> str:
    """Quote the first error of a run without an answer, and give a remedy."""
    groups = answered["group"].unique()
    if not any((log := folder.log(group)).is_file() for group in groups):
        return f": its log {log.name} is missing; restore it, or {folder.rerun_hint()}"
    errors = folder.read_answers(groups)["error"].dropna()
    reason = "" if errors.empty else f", only errors such as {shown(errors.iloc[0], 300)}"
    if answered["finish_reason"].isin([None, "error"]).any():
        return (
            f"{reason}; fix the cause and repeat the command of the run, which sends every prompt "
            "that has no answer"
        )
    return (
        f"{reason}. All prompts have replies, so the same command sends none again; run another "
        "model, or other settings, with another `out`"
    )


def _check_any_score(verdicts: pd.DataFrame, judge: str) -> None:
    """Raise an error instead of replacing earlier scores by missing ones only."""
    if verdicts["correct"].isna().all():
        raise DataError(
            f"{judge!r} scored none of {len(verdicts)} facts, the first because "
            f"{verdicts['reason'].iloc[0]}; fix this and score again. Earlier scores are kept"
        )


def warn_unscored(verdicts: pd.DataFrame) -> None:
    """Warn about targets without a score, with the reasons."""
    reasons = verdicts["reason"].dropna()
    if reasons.empty:
        return
    counts = reasons.str.split(":").str[0].value_counts(sort=False)
    counted = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    warnings.warn(
        f"{len(reasons)} of {len(verdicts)} answers have no score: {counted}; their pairs are "
        f"excluded from the tables; the first: {reasons.iloc[0]}",
        UnscoredWarning,
        stacklevel=4,
    )
