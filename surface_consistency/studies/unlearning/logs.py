"""Read logs of unlearning benchmarks, question by question: questions, answers and scores.

They are read by `read_results`, in the layouts of `results.unlearning`. Logs do not name their
model, split or reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd

from surface_consistency.errors import ColumnNotFoundError, DataError, RunError
from surface_consistency.matching import match_columns
from surface_consistency.reading import existing_file, find_column
from surface_consistency.results.frame import read_results
from surface_consistency.results.inputs import path_labels
from surface_consistency.results.unlearning import FORGET, PLAIN
from surface_consistency.rows.readers import read_rows
from surface_consistency.studies.unlearning.questions import A_PERSON, TOFU_SIZES

_SETS: Final = {"ra": "real authors", "wf": "world facts"}
_RATIO: Final = "log truth ratio"
_MEASURES: Final = {
    "Q_A_Prob.prob": "probability",
    "Q_A_ROUGE.rougeL_recall": "ROUGE-L recall",
    "ROUGE.rougeL_f1": "ROUGE-L",
    "truth_ratio": _RATIO,
    "Truth_Ratio": _RATIO,
    "extraction_strength": "extraction strength",
    "exact_memorization": "exact memorization",
}
_SHORT: Final = 6
"""Maximum number of words of a reference that is an answer and not a sentence."""

_CONTAINED: Final = 0.9
_ID: Final = ["set", "form", "question_id"]
_WrittenRole = Literal["original", "edited"]
_KNOWN: Final = (
    "open-unlearning's TOFU_EVAL.json and MUSE_EVAL.json, TOFU's eval_log_aggregated.json, RWKU's "
    "results and EasyEdit's records with generated texts"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelLog:
    """The answers and scores of one model."""

    label: str
    """Label of the model, from folder and file, since the log does not name it."""

    path: Path
    """The file."""

    questions: pd.DataFrame
    """One row per set, form and question: set, form, question_id, cluster (the person, else the
    question), question, reference, references (a tuple; None if the reference is a sentence) and
    prediction."""

    scores: pd.DataFrame
    """One row per set, measure and question: set, measure, question_id, value. Measures are
    "probability" of the answer, "ROUGE-L recall" (TOFU), "ROUGE-L knowmem" and the like (MUSE, F1),
    "log truth ratio", "extraction strength" and "exact memorization"; undefined values are
    omitted."""

    role: _WrittenRole | None = None
    """Role of the model in the log, as in EasyEdit's; None if the log does not contain it."""


def read_logs(paths: Sequence[Path]) -> list[ModelLog]:
    """Read logs of the same questions, with distinct labels.

    Args:
        paths: The files, one per model; EasyEdit's contain two, before and after the edits.

    Returns:
        The models, in order.

    Raises:
        SourceNotFoundError: If a file does not exist.
        DataError: If a file has an unknown layout, no generated text, or a question twice; if two
            models have the same answers and scores.
        RecordError: If a file is damaged, or not in its layout.
        RunError: If two logs have different facts to forget, or different questions with the same
            number.
    """
    names = path_labels([existing_file(path, "a log", "*.json") for path in paths])
    logs = [log for path in paths for log in _read_log(path, names[path])]
    for place, log in enumerate(logs):
        _check_questions(logs[0], log)
        for other in logs[:place]:
            _check_models(other, log)
    return logs


def _read_log(path: Path, name: str) -> Iterator[ModelLog]:
    """Read the models of a file."""
    try:
        results = read_results(path)
    except ColumnNotFoundError as error:
        raise DataError(
            f"{path} is not a known log; known are {_KNOWN}. Files with only aggregates "
            "(*_SUMMARY.json) or losses contain no answers: pass the *_EVAL.json with the "
            "generated texts (the *_ROUGE metrics of open-unlearning)"
        ) from error
    for model, of_model in results.frame.groupby("model", sort=False, observed=True):
        role = str(model) if model in get_args(_WrittenRole) else None
        tasks = of_model["task"].astype(str).str.partition(" ")
        sets = tasks[2].str.partition("_")
        rows = of_model.assign(
            question_id=of_model["item"],
            kind=sets[2],
            set=sets[0].replace(_SETS),
            is_sentence=tasks[0].isin(("TOFU", "MUSE")),
        )
        questions = _questions(rows[rows["question"].notna()].drop_duplicates(["task", *_ID[1:]]))
        if questions["prediction"].isna().all():
            raise DataError(
                f"{path} contains no generations, so answers cannot be scored; evaluate with "
                "generated texts in the log (the *_ROUGE metrics of open-unlearning)"
            )
        yield ModelLog(
            label=f"{name} {role or ''}".strip(),
            path=path,
            questions=_with_persons(questions) if tasks[0].eq("TOFU").all() else questions,
            scores=_scores(rows),
            role=role,  # type: ignore[arg-type]
        )


def _questions(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the questions of a model, one row each."""
    kinds = rows["kind"].where(~rows["kind"].isin(("", "knowmem")), PLAIN)
    references = rows["references"].str[0].astype(str)
    clusters = "question " + rows["question_id"].astype(str)
    if "subject" in rows:
        clusters = rows["subject"].astype(str)
    answers = rows["references"].where(~rows["is_sentence"], references.map(_short))
    columns = {
        "set": rows["set"],
        "form": rows["form"].astype(str).where(rows["form"] != "", kinds),
        "question_id": rows["question_id"],
        "cluster": clusters,
        "question": rows["question"],
        "reference": references,
        "references": answers,
        "prediction": rows["prediction"],
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def _scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of questions that are not correctness labels."""
    measures = rows["metric"].astype(str).map(_MEASURES)
    is_ratio = measures == _RATIO
    kept = measures.notna() & rows["score"].notna() & ~(is_ratio & (rows["score"] <= 0.0))
    rows, measures, is_ratio = rows[kept], measures[kept], is_ratio[kept]
    named = measures.where(rows["metric"] != "ROUGE.rougeL_f1", measures + " " + rows["kind"])
    values = rows["score"].mask(is_ratio, np.log(rows["score"].where(is_ratio, 1.0)))
    columns = {"measure": named, "question_id": rows["question_id"], "value": values}
    return pd.DataFrame({"set": rows["set"], **columns}).reset_index(drop=True)


def _with_persons(questions: pd.DataFrame) -> pd.DataFrame:
    """Cluster TOFU's questions by author, if a set has the size of a set of TOFU."""
    numbers = questions["question_id"].astype(int)
    sets = numbers.groupby([questions["set"], questions["form"]])
    n = sets.transform("size")
    is_whole = questions["set"].isin([FORGET, "retain"]) & n.isin(TOFU_SIZES)
    is_whole &= sets.transform("max") == n - 1  # No number occurs twice.
    persons = "person " + (numbers // A_PERSON).astype(str)
    return questions.assign(cluster=questions["cluster"].mask(is_whole, persons))


def _short(reference: object) -> tuple[str, ...] | None:
    """Return a reference of a few words as the accepted answer; None for a sentence or no text."""
    if not isinstance(reference, str):
        return None
    is_short = 0 < len(reference.split()) <= _SHORT and reference.rstrip()[-1] not in ".!?"
    return (reference,) if is_short else None


def _check_questions(first: ModelLog, log: ModelLog) -> None:
    """Raise an error if two logs are of different splits."""
    one, other = (x.questions.set_index(_ID)["reference"] for x in (first, log))
    shared = one.index.intersection(other.index)
    is_other = (one[shared] != other[shared]).to_numpy()
    alone = one.index.symmetric_difference(other.index)
    n_forget, n_other = ((x.index.get_level_values("set") == FORGET).sum() for x in (one, other))
    if is_other.any() or (alone.get_level_values("set") == FORGET).any():
        example = shared[is_other][0] if is_other.any() else alone[0]
        raise RunError(
            f"{first.path} has {n_forget} questions about the facts to forget, {log.path} "
            f"{n_other}, and the questions differ ({' '.join(map(str, example))}): the logs are of "
            "different splits; pass logs of one split (forget10 with retain90, "
            "forget05 with retain95, forget01 with retain99)"
        )


def _check_models(first: ModelLog, log: ModelLog) -> None:
    """Raise an error if two logs are of the same model."""
    is_scored = len(log.scores) and first.scores.equals(log.scores)
    is_file = (first.path.resolve(), first.role) == (log.path.resolve(), log.role)
    if is_file or (is_scored and first.questions.equals(log.questions)):
        raise DataError(
            f"{first.path} and {log.path} have the same answers and scores for every question: "
            "they are one model, or models of the same weights; pass each model once"
        )


@cache
def tofu_answers() -> dict[int, str]:
    """Read the bundled short answers of TOFU's forget10.

    Returns:
        Short answer by row of forget10; 367 of 400 questions have one.
    """
    with as_file(files(__package__) / "tofu_short_answers.tsv") as path:
        return read_answers(path)


def read_answers(path: Path) -> dict[int, str]:
    """Read short answers.

    Args:
        path: A file with the columns index (of the log) and answer.

    Returns:
        Answer by index.

    Raises:
        DataError: If a column is missing, or an index is not a number.
    """
    answers: dict[int, str] = {}
    for place, row in read_rows(path):
        columns = [find_column(name, row) for name in ("index", "answer")]
        index, answer = (None if name is None else str(row[name]).strip() for name in columns)
        if index is None or answer is None or not (index.isascii() and index.isdigit()):
            raise DataError(f"{place}: needs the columns index, a whole number, and answer")
        if answer:
            answers[int(index)] = answer
    return answers


def matching_answers(
    references: Sequence[str], answers: Mapping[int, str] | None = None
) -> dict[int, str] | None:
    """Match short answers with questions.

    Args:
        references: The reference of each question.
        answers: Short answer by number of the question; None for those of TOFU's forget10, whose
            last rows are forget05 and forget01. TOFU's own log contains the first 300 of its
            questions.

    Returns:
        Short answer by number of the question; None if less than 90 % of the answers occur in the
        reference of their question, because they then belong to other questions.
    """
    offsets = [0] if answers is not None else [0, 20 * A_PERSON - len(references)]
    known = tofu_answers() if answers is None else answers
    for offset in offsets:
        given = {i: known[i + offset] for i in range(len(references)) if i + offset in known}
        texts, names = [references[i] for i in given], [(name,) for name in given.values()]
        matches = match_columns(texts, names, rule="boundary").is_match
        if matches and sum(map(bool, matches)) >= _CONTAINED * len(matches):
            return given
    return None


def with_answers(
    questions: pd.DataFrame, answers: Mapping[int, str] | None = None
) -> pd.DataFrame | None:
    """Add short answers to the questions about the facts to forget.

    Args:
        questions: The questions of a log.
        answers: As for `matching_answers`.

    Returns:
        The questions, with answers; None if the answers belong to other questions.
    """
    is_forget = ((questions["set"] == FORGET) & (questions["form"] == PLAIN)).to_numpy()
    given = matching_answers(questions.loc[is_forget, "reference"].tolist(), answers)
    if given is None:
        return None
    column = questions["references"].tolist()
    for number, row in enumerate(np.flatnonzero(is_forget)):
        column[row] = (given[number],) if number in given else None
    return questions.assign(references=pd.Series(column, index=questions.index, dtype=object))
