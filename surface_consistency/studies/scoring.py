"""Generations to verdicts to the outcomes frame of RedirectQA, from a run or anyone's outputs."""

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import surface_consistency
from surface_consistency.data.features import to_parquet
from surface_consistency.data.questions import pair_questions
from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.errors import DataError, RunLogError, RunMismatchError, UnscoredWarning
from surface_consistency.matching.agreement import rule_agreement
from surface_consistency.matching.verdicts import Region, verdicts
from surface_consistency.runs.files import write_text
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import (
    CanonicalRedirectPair,
    Generation,
    Prompt,
    QuestionRealization,
    RedirectOutcome,
    RunManifest,
    Verdict,
    read_jsonl,
    write_jsonl,
)
from surface_consistency.schemas.generations import replace_surrogates
from surface_consistency.studies.noise import noise_floor
from surface_consistency.studies.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "frame_of",
    "import_predictions",
    "judge",
    "outcomes_of",
    "score_predictions",
    "score_run",
]


def score_predictions(
    data: RedirectQA,
    predictions: Mapping[str, str] | Sequence[str | None],
    *,
    model: str,
    rule: str = "popqa",
    region: Region = "first_line",
) -> "pd.DataFrame":
    """Score anyone's predictions on RedirectQA.

    Args:
        data: The questions and their pairs.
        predictions: Generated text by question id or by question text; or one text a question, in
            the order of `data.questions`, None where there is none.
        model: Label of the model in the frame.
        rule: Name of the matching rule, one of `matching.RULES`.
        region: "first_line", as the papers do, or "whole".

    Returns:
        The outcomes frame: one row a canonical-redirect pair, columns of `RedirectOutcome`. A pair
        with a question that has no prediction has None as that verdict.

    Raises:
        DataError: If a sequence has another length than the questions, or no key of a mapping is
            the id or the text of a question.
    """
    texts = _align(data.questions, predictions)
    judged = {v.question_id: v for v in judge(data.questions, texts, rule=rule, region=region)}
    return frame_of(outcomes_of(data.pairs, judged, model=model))


def import_predictions(
    data: RedirectQA,
    predictions: Mapping[str, str] | Sequence[str | None],
    out: str | os.PathLike[str],
    *,
    model: str,
    origin: str,
) -> RunFolder:
    """Make a run folder of predictions that were made elsewhere, ready for `score_run`.

    Args:
        data: The questions.
        predictions: As for `score_predictions`.
        out: Folder of the run; made, or taken as it is when it holds these predictions already.
        model: Label of the model in tables.
        origin: Where the predictions came from, for the manifest.

    Returns:
        The run folder.

    Raises:
        DataError: If no prediction belongs to a question, or the folder holds a model's own run.
        RunMismatchError: If the folder holds other predictions.
    """
    texts = _align(data.questions, predictions)
    folder = RunFolder.create(out)
    if folder.prompts.exists():
        raise DataError(f"{folder.path} holds a run of a model; give the predictions another --out")
    manifest = RunManifest(
        study="redirectqa",
        model=model,
        data=data.source,
        prompts=None,
        params=None,
        runner={"runner": "stored", "predictions": origin, "sha256": _digest(texts)},
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if folder.manifest.exists():
        found = folder.read_manifest().differences(manifest)
        if found:
            raise RunMismatchError(
                f"{folder.path} holds other predictions ({', '.join(found)} differ); give these "
                "another --out, or delete the folder first"
            )
    write_jsonl(folder.questions, data.questions)
    write_jsonl(
        folder.generations,
        (
            Generation(prompt_id=question.id, text=text)
            for question, text in zip(data.questions, texts, strict=True)
            if text is not None
        ),
    )
    folder.write_manifest(manifest)
    return folder


def score_run(
    folder: RunFolder, *, rule: str = "popqa", region: Region = "first_line"
) -> "pd.DataFrame":
    """Judge the generations of a run and write verdicts, outcomes and checks beside them.

    May be called again with another rule: nothing is asked anew.

    Args:
        folder: The run.
        rule: Name of the matching rule.
        region: Which part of a generation counts.

    Returns:
        The outcomes frame, as written to `outcomes.parquet`.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        RunLogError: If the run has no generations yet.
    """
    manifest = folder.read_manifest()
    questions = tuple(read_jsonl(folder.questions, QuestionRealization))
    texts = _texts(folder, questions, folder.generations)
    if all(text is None for text in texts):
        raise RunLogError(
            f"{folder.generations} holds no answer{_first_error(folder.generations)}; let the run "
            "finish first"
        )
    judged = {v.question_id: v for v in judge(questions, texts, rule=rule, region=region)}
    write_jsonl(folder.verdicts, judged.values())
    _warn_unscored(judged.values())
    pairs, _ = pair_questions(questions)
    outcomes = list(outcomes_of(pairs, judged, model=manifest.model))
    to_parquet(folder.outcomes, outcomes, RedirectOutcome)
    answers = [question.triple.answers for question in questions]
    agreement = rule_agreement(texts, answers, region=region)
    for compared, rows in agreement.groupby("compared"):
        _write_table(rows, folder.checks / f"{compared}.csv")
    if folder.repeat.is_file():
        again = _texts(folder, questions, folder.repeat)
        repeated = [
            (question, text)
            for question, text in zip(questions, again, strict=True)
            if text is not None
        ]
        second = judge([q for q, _ in repeated], [t for _, t in repeated], rule=rule, region=region)
        floor = noise_floor(
            questions, judged, {v.question_id: v for v in second}, model=manifest.model
        )
        _write_table(floor, folder.checks / "noise_floor.csv")
    return frame_of(outcomes)


def judge(
    questions: Sequence[QuestionRealization],
    texts: Sequence[str | None],
    *,
    rule: str,
    region: Region,
) -> Iterator[Verdict]:
    """Judge one generation for each question.

    Args:
        questions: What was asked.
        texts: What was written, in the same order; None where there is nothing.
        rule: Name of the matching rule.
        region: Which part of the text counts.

    Yields:
        One verdict a question.
    """
    yield from verdicts(
        [question.id for question in questions],
        texts,
        [question.triple.answers for question in questions],
        rule=rule,
        region=region,
    )


def outcomes_of(
    pairs: Iterable[CanonicalRedirectPair], judged: Mapping[str, Verdict], *, model: str
) -> Iterator[RedirectOutcome]:
    """Put the verdicts of the two members of each pair side by side.

    Args:
        pairs: The pairs.
        judged: Verdicts by question id; a question that is not there counts as not judged.
        model: Label of the model.

    Yields:
        One outcome a pair.
    """
    for pair in pairs:
        first, second = judged.get(pair.canonical.id), judged.get(pair.redirect.id)
        triple, surface = pair.redirect.triple, pair.redirect.surface
        yield RedirectOutcome(
            study="redirectqa",
            model=model,
            pair_id=pair.id,
            fact_id=triple.id,
            first_condition="canonical",
            second_condition="redirect",
            first_correct=first.is_correct if first else None,
            second_correct=second.is_correct if second else None,
            subject_id=triple.subject.id,
            relation=triple.relation,
            template=pair.redirect.template,
            categories=surface.categories,
            types=surface.types,
            first_surface=pair.canonical.surface.text,
            second_surface=surface.text,
            first_prediction=first.prediction if first else None,
            second_prediction=second.prediction if second else None,
        )


def frame_of(outcomes: Iterable[RedirectOutcome]) -> "pd.DataFrame":
    """Gather outcomes into the frame that metrics and the report read.

    Args:
        outcomes: The outcomes.

    Returns:
        One row an outcome; verdicts as nullable booleans, categories and types as tuples.
    """
    import pandas as pd

    columns = list(RedirectOutcome.model_fields)
    rows = [tuple(getattr(item, name) for name in columns) for item in outcomes]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"first_correct": "boolean", "second_correct": "boolean"})


def _align(
    questions: Sequence[QuestionRealization], predictions: Mapping[str, str] | Sequence[str | None]
) -> list[str | None]:
    """Find the prediction of each question, None where there is none."""
    if isinstance(predictions, str):
        raise TypeError("predictions is one string; give a mapping, or one text for each question")
    if not isinstance(predictions, Mapping):
        if len(predictions) != len(questions):
            raise DataError(
                f"{len(predictions)} predictions for {len(questions)} questions; "
                "give one for each question, or a mapping from question id to text"
            )
        return [text if text is None else replace_surrogates(text) for text in predictions]
    texts = [
        predictions.get(question.id, predictions.get(question.question)) for question in questions
    ]
    if all(text is None for text in texts):
        raise DataError(
            "no prediction belongs to a question: keys are question ids such as "
            f"{questions[0].id!r} or question texts, got {next(iter(predictions), 'no key')!r}"
        )
    texts = [text if text is None else replace_surrogates(text) for text in texts]
    names = {name for question in questions for name in (question.id, question.question)}
    foreign = [key for key in predictions if key not in names]
    if foreign:
        warnings.warn(
            f"{len(foreign)} of {len(predictions)} predictions belong to no question of the data "
            f"and were left out, the first under {foreign[0]!r}",
            UnscoredWarning,
            stacklevel=3,
        )
    return texts


def _texts(
    folder: RunFolder, questions: Sequence[QuestionRealization], log: Path
) -> list[str | None]:
    """Read a run log and find the text of each question; prompts of equal content share one."""
    keys = (
        {prompt.id: prompt.key for prompt in read_jsonl(folder.prompts, Prompt)}
        if folder.prompts.exists()
        else {}
    )
    by_key = {
        generation.prompt_key or generation.prompt_id: generation.text
        for generation in read_generations(log)
    }
    return [by_key.get(keys.get(question.id, question.id)) for question in questions]


def _digest(texts: Sequence[str | None]) -> str:
    """Name the content of predictions: SHA-256 of their JSON."""
    return hashlib.sha256(json.dumps(list(texts)).encode("ascii")).hexdigest()


def _first_error(log: Path) -> str:
    """Quote the first error of a run log."""
    errors = (generation.error for generation in read_generations(log))
    first = next((error for error in errors if error is not None), None)
    return "" if first is None else f", only errors such as {first!r}"


def _warn_unscored(judged: Iterable[Verdict]) -> None:
    """Say how many questions have no verdict, and why."""
    reasons: dict[str, int] = {}
    for verdict in judged:
        if verdict.reason is not None:
            reasons[verdict.reason] = reasons.get(verdict.reason, 0) + 1
    if reasons:
        counted = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        warnings.warn(
            f"questions without a verdict: {counted}; their pairs are left out of the tables",
            UnscoredWarning,
            stacklevel=3,
        )


def _write_table(table: "pd.DataFrame", path: Path) -> None:
    """Write a table as CSV, whole or not at all."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))
