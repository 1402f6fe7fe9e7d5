"""Logs of the field's benchmarks, question by question: what was asked, answered, and scored.

open-unlearning's `TOFU_EVAL.json` and `MUSE_EVAL.json` by the layouts of `models.results`, TOFU's
own `eval_log_aggregated.json`, RWKU's results and EasyEdit's records. None of them tells model,
split or reference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.matching import match_columns
from surface_consistency.reading import existing_file, find_column, parse_json, read_document
from surface_consistency.results.inputs import path_labels
from surface_consistency.results.layouts import flat_samples, layout_of
from surface_consistency.results.rows import Flat
from surface_consistency.rows.readers import Place, read_rows
from surface_consistency.studies.unlearning.questions import (
    A_PERSON,
    FORGET,
    NEIGHBOUR,
    PLAIN,
    TOFU_SIZES,
    edit_questions,
)

_SETS: Final = {"ra": "real authors", "wf": "world facts"}
_LEGACY: Final = {
    "eval_log_forget": "forget",
    "eval_log": "retain",
    "eval_real_author_wo_options": "ra",
    "eval_real_world_wo_options": "wf",
}
_TEXTS: Final = ("input", "generation", "ground_truth")
_PARTS: Final = ("question", "target", "prediction")
_RATIO: Final = "log truth ratio"
_RATIOS: Final = {"forget_Truth_Ratio": "forget_truth_ratio"}
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
"""Words of a reference that is an answer and no sentence."""

_ENDS: Final = {"portability": "acc", "locality": "output"}
_STANDS_IN: Final = 0.9
_ID: Final = ["set", "form", "question_id"]
_KNOWN: Final = (
    "open-unlearning's TOFU_EVAL.json and MUSE_EVAL.json, TOFU's eval_log_aggregated.json, RWKU's "
    "results and EasyEdit's records with generated texts"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelLog:
    """What one model answered."""

    label: str
    """The model, by folder and file: the log does not name it."""

    path: Path
    """The file."""

    questions: pd.DataFrame
    """One row a set, form and question: set, form, question_id, cluster (the person, else the
    question), question, reference, answers (a tuple; None where the reference is a sentence) and
    prediction."""

    metrics: Mapping[str, Mapping[str, Any]]
    """Metrics as the log has them: `agg_value` and `value_by_index`."""

    scores: pd.DataFrame
    """One row a set, measure and question: set, measure, question_id, value. Measures are
    "probability" of the answer, "ROUGE-L recall" (TOFU), "ROUGE-L knowmem" and the like (MUSE, F1),
    "log truth ratio", "extraction strength" and "exact memorization"; what is undefined is left
    out."""

    role: Literal["original", "edited"] | None = None
    """What the log says of the model, as EasyEdit's does; None where it says nothing."""


class _Question(NamedTuple):
    """A question of a log."""

    set: str
    form: str
    question_id: str
    cluster: str
    question: str
    reference: str
    answers: tuple[str, ...] | None
    prediction: str | None


def read_logs(paths: Sequence[Path]) -> list[ModelLog]:
    """Read logs of the same questions, with labels that tell them apart.

    Args:
        paths: The files, one a model; EasyEdit's hold two, before and after the edits.

    Returns:
        The models, in order.

    Raises:
        SourceNotFoundError: If a file is not there.
        DataError: If a file has no layout that is known, no generated text, or a question twice; if
            two models are the same, answers and scores alike.
        RecordError: If a file is broken, or not in its layout.
        RunMismatchError: If two logs have other facts to forget, or one number stands for other
            questions elsewhere.
    """
    names = path_labels([existing_file(path, "a log", "*.json") for path in paths])
    logs = [_named(log, names[path]) for path in paths for log in _read_log(path)]
    for place, log in enumerate(logs):
        _refuse_other_questions(logs[0], log)
        for other in logs[:place]:
            _refuse_same_model(other, log)
    return logs


def _read_log(path: Path) -> list[ModelLog]:
    """Read a file by what it holds."""
    content = parse_json(read_document(path), str(path), remedy="give the file as it was written")
    if isinstance(content, list) and content and _is_edit(content[0]):
        return _of_edits(path, content)
    if isinstance(content, dict):
        metrics = _metrics_of(content)
        if any(isinstance(x, dict) and "value_by_index" in x for x in metrics.values()):
            layout, place = layout_of(metrics), Place(str(path), 1)
            flats = [] if layout is None else list(flat_samples(layout, metrics, place) or ())
            questions = [_of_flat(x, path) for x in flats if {*map(x.parts.get, _PARTS)} != {None}]
            scores = [row for flat in flats for row in _scores_of(flat)]
            log = _log(path, questions, metrics, scores)
            is_tofu = _task(flats[0])[0] == "TOFU"
            return [replace(log, questions=_with_persons(log.questions)) if is_tofu else log]
        if isinstance(content.get("results"), list):
            return [_log(path, list(_of_rwku(content, path)))]
        if content and all(isinstance(value, int | float) for value in content.values()):
            raise DataError(
                f"{path} holds aggregates alone, of which no question can be read; give the "
                "*_EVAL.json beside it"
            )
    raise DataError(f"{path} is no log that is known, which are {_KNOWN}")


def _log(
    path: Path,
    rows: Sequence[_Question],
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
    scores: Sequence[tuple[str, str, str, float]] = (),
) -> ModelLog:
    """Make a log of its questions."""
    if all(row.prediction is None for row in rows):
        raise DataError(
            f"{path} holds no generation, so that no answer can be judged; evaluate with the "
            "generated texts kept (the *_ROUGE metrics of open-unlearning)"
        )
    questions = pd.DataFrame(rows, columns=list(_Question._fields))
    if (again := questions.duplicated(_ID)).any():
        raise DataError(
            f"{path} holds the question {questions[again].iloc[0]['question_id']!r} twice in one "
            "set and form; give each question, and each edit its case_id, once"
        )
    measured = pd.DataFrame(scores, columns=["set", "measure", "question_id", "value"])
    return ModelLog(
        label="", path=path, questions=questions, metrics=metrics or {}, scores=measured
    )


def _with_persons(questions: pd.DataFrame) -> pd.DataFrame:
    """Put TOFU's questions about one author together, where they are as many as TOFU has."""
    numbers = questions["question_id"].astype(int)
    sets = numbers.groupby([questions["set"], questions["form"]])
    n = sets.transform("size")
    is_whole = questions["set"].isin([FORGET, "retain"]) & n.isin(TOFU_SIZES)
    is_whole &= sets.transform("max") == n - 1  # None stands twice.
    persons = "person " + (numbers // A_PERSON).astype(str)
    return questions.assign(cluster=questions["cluster"].mask(is_whole, persons))


def _task(flat: Flat) -> tuple[str, str, str]:
    """Tell the benchmark of a question, its set and what of it was asked."""
    benchmark, _, name = str(flat.parts["task"]).partition(" ")
    prefix, _, kind = name.partition("_")
    return benchmark, _SETS.get(prefix, prefix), kind


def _of_flat(flat: Flat, path: Path) -> _Question:
    """Read a generation of open-unlearning's log."""
    (_, of_set, kind), parts = _task(flat), flat.parts
    if None in (parts["question"], parts["target"]):
        raise DataError(
            f"{path}: question {parts['id']} of {parts['task']} lacks its input or ground_truth; "
            "give the file as it was written"
        )
    number, reference = str(parts["id"]), str(parts["target"])
    return _Question(
        of_set,
        PLAIN if kind in ("", "knowmem") else kind,
        number,
        f"question {number}",
        _question(str(parts["question"])),
        reference,
        _short(reference),
        parts["prediction"],
    )


def _scores_of(flat: Flat) -> Iterator[tuple[str, str, str, float]]:
    """Read the scores of a question that are no verdicts."""
    _, of_set, kind = _task(flat)
    for name, value in flat.scores.items():
        measure = _MEASURES.get(name)
        if measure is None or value is None or (measure == _RATIO and not value > 0.0):
            continue
        number = math.log(value) if measure == _RATIO else float(value)
        named = f"{measure} {kind}" if name == "ROUGE.rougeL_f1" else measure
        yield of_set, named, str(flat.parts["id"]), number


def _question(prompt: str) -> str:
    """Take the question out of a prompt that was decoded with its chat template."""
    text = prompt.strip()
    for mark in ("assistant", "[/INST]", "Answer:"):
        text = text.removesuffix(mark).rstrip()
    line = (text.splitlines() or [""])[-1].removeprefix("[INST]")
    return line.strip().removeprefix("Question:").strip()


def _short(reference: str) -> tuple[str, ...] | None:
    """Take a reference of a few words, which is no sentence, for the accepted answer."""
    is_short = 0 < len(reference.split()) <= _SHORT and reference.rstrip()[-1] not in ".!?"
    return (reference,) if is_short else None


def _metrics_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give TOFU's own log the layout of open-unlearning's; its parts hold lists or mappings."""
    parts = {name.removesuffix(".json"): part for name, part in content.items()}
    if "eval_log_forget" not in parts:
        # Logs and configurations of open-unlearning write the name in two ways.
        return {_RATIOS.get(name, name): metric for name, metric in content.items()}
    metrics: dict[str, Any] = {}
    for part, prefix in _LEGACY.items():
        cells = {name: _indexed(values) for name, values in parts.get(part, {}).items()}
        losses = {"Prob": "avg_gt_loss", "PARA_Prob": "avg_paraphrased_loss"}
        values = {
            f"{prefix}_Q_A_{name}": {i: {"prob": math.exp(-x), "avg_loss": x} for i, x in rows}
            for name, field in losses.items()
            if (rows := cells.get(field, {}).items())
        }
        recalls = cells.get("rougeL_recall", {})
        values[f"{prefix}_Q_A_ROUGE"] = {
            i: dict(zip(_TEXTS, texts, strict=True)) | {"rougeL_recall": recalls.get(i)}
            for i, texts in cells.get("generated_text", {}).items()
        }
        wrong, ratios = cells.get("average_perturb_loss", {}), cells.get("truth_ratio", {})
        values[f"{prefix}_Q_A_PERT_Prob"] = {i: {"avg_loss": x} for i, x in wrong.items()}
        ratio = "truth_ratio" if prefix == FORGET else "Truth_Ratio"
        values[f"{prefix}_{ratio}"] = {i: {"score": x} for i, x in ratios.items()}
        metrics |= {n: {"agg_value": None, "value_by_index": x} for n, x in values.items() if x}
    return metrics


def _indexed(values: object) -> Mapping[str, Any]:
    """Number what is a list; what is keyed by index stays."""
    if isinstance(values, Mapping):
        return values
    return {str(i): x for i, x in enumerate(values)} if isinstance(values, list) else {}


def _of_rwku(content: Mapping[str, Any], path: Path) -> Iterator[_Question]:
    """Read RWKU's results: the samples with their predictions."""
    of_set = NEIGHBOUR if any("neighbor" in name for name in content) else FORGET
    forms = {"1": "cloze", "2": PLAIN}
    for number, row in enumerate(content["results"]):
        missing = {"query", "answer", "subject", "prediction"}.difference(row)
        if missing:
            raise DataError(f"{path}: results[{number}] has no {', '.join(sorted(missing))}")
        query, answer, subject = (str(row[name]) for name in ("query", "answer", "subject"))
        level = str(row.get("level", "2"))
        form = forms.get(level, f"adversarial: {row.get('type', 'other')}")
        about = (of_set, form, str(number), subject, query, answer, (answer,))
        yield _Question(*about, row["prediction"])


def _is_edit(record: object) -> bool:
    """Tell a record of EasyEdit."""
    return isinstance(record, dict) and "post" in record and "requested_rewrite" in record


def _of_edits(path: Path, records: Sequence[Mapping[str, Any]]) -> list[ModelLog]:
    """Read EasyEdit's records: the model before the edits and after them."""
    logs = []
    roles: Mapping[str, Literal["original", "edited"]] = {"pre": "original", "post": "edited"}
    for when, role in roles.items():
        rows = [row for n, one in enumerate(records) for row in _of_edit(n, one, when)]
        if rows:
            logs.append(replace(_log(path, rows), role=role))
    if not logs or logs[-1].role != "edited":
        raise DataError(
            f"{path} holds accuracies of tokens, which are read with the target before the model "
            "and so tell its length and first tokens: 96.8 % of edits succeed by them and 38.5 % "
            "when the model writes (arXiv 2502.11177); evaluate with evaluation_type: "
            "generate-text, which keeps the texts (*_gen_content)"
        )
    return logs


def _of_edit(number: int, record: Mapping[str, Any], when: str) -> Iterator[_Question]:
    """Read the texts of one edit, for its old object and its new one, and for its neighbours."""
    written = record.get(when) or {}
    for one in edit_questions(record, number):
        kind, _, key = one.source.partition("/")
        texts = written.get(f"{kind}_gen_content")
        if key:
            texts = (written.get(kind) or {}).get(f"{key}_{_ENDS[kind]}")
        listed = texts if isinstance(texts, list) else [texts]
        text = listed[one.place] if one.place < len(listed) else None
        if isinstance(text, str):  # Tokens and their accuracies are none.
            about = (one.set, one.form, one.fact_id, one.subject_id, one.question)
            yield _Question(*about, one.answers[0], one.answers, text)


def _named(log: ModelLog, name: str) -> ModelLog:
    """Name a model by what tells its file apart, and by its role where one file holds two."""
    return replace(log, label=f"{name} {log.role or ''}".strip())


def _refuse_other_questions(first: ModelLog, log: ModelLog) -> None:
    """Refuse logs of another split."""
    one, other = (x.questions.set_index(_ID)["reference"] for x in (first, log))
    shared = one.index.intersection(other.index)
    is_other = (one[shared] != other[shared]).to_numpy()
    alone = one.index.symmetric_difference(other.index)
    n_forget, n_other = ((x.index.get_level_values("set") == FORGET).sum() for x in (one, other))
    if is_other.any() or (alone.get_level_values("set") == FORGET).any():
        example = shared[is_other][0] if is_other.any() else alone[0]
        raise RunMismatchError(
            f"{first.path} asks {n_forget} questions of the facts to forget and {log.path} "
            f"{n_other}, and they are not the same questions ({' '.join(map(str, example))}): the "
            "logs are of other splits; give logs of one split (forget10 goes with retain90, "
            "forget05 with retain95, forget01 with retain99)"
        )


def _refuse_same_model(first: ModelLog, log: ModelLog) -> None:
    """Refuse a model that stands there twice."""
    is_scored = len(log.scores) and first.scores.equals(log.scores)
    is_file = (first.path.resolve(), first.role) == (log.path.resolve(), log.role)
    if is_file or (is_scored and first.questions.equals(log.questions)):
        raise DataError(
            f"{first.path} and {log.path} hold the same answers and the same scores to every "
            "question: it is one model, or models of the same weights; give each once"
        )


@cache
def tofu_answers() -> dict[int, str]:
    """Read the short answers of TOFU's forget10 that come along.

    Returns:
        By row of forget10; 367 of 400 questions have one.
    """
    with as_file(files(__package__) / "tofu_short_answers.tsv") as path:
        return read_answers(path)


def read_answers(path: Path) -> dict[int, str]:
    """Read short answers.

    Args:
        path: A file with the columns index (of the log) and answer.

    Returns:
        By index.

    Raises:
        DataError: If a column is not there, or an index no number.
    """
    answers: dict[int, str] = {}
    for place, row in read_rows(path):
        columns = [find_column(name, row) for name in ("index", "answer")]
        index, answer = (None if name is None else str(row[name]).strip() for name in columns)
        if index is None or answer is None or not index.isdigit():
            raise DataError(f"{place}: needs the columns index, a whole number, and answer")
        if answer:
            answers[int(index)] = answer
    return answers


def standing_answers(
    references: Sequence[str], answers: Mapping[int, str] | None = None
) -> dict[int, str] | None:
    """Give short answers to questions, where they are of these questions.

    Args:
        references: The reference of each question.
        answers: By number of the question; None for those of TOFU's forget10, whose last rows are
            forget05 and forget01, and of which TOFU's own log has the first 300.

    Returns:
        By number of the question; None where less than nine in ten of the answers stand in the
        reference of their question, since they are of other questions.
    """
    offsets = [0] if answers is not None else [0, 20 * A_PERSON - len(references)]
    known = tofu_answers() if answers is None else answers
    for offset in offsets:
        given = {i: known[i + offset] for i in range(len(references)) if i + offset in known}
        texts, names = [references[i] for i in given], [(name,) for name in given.values()]
        matches = match_columns(texts, names, rule="boundary").is_match
        if matches and sum(map(bool, matches)) >= _STANDS_IN * len(matches):
            return given
    return None


def with_answers(
    questions: pd.DataFrame, answers: Mapping[int, str] | None = None
) -> pd.DataFrame | None:
    """Give short answers to the facts to forget.

    Args:
        questions: Of a log.
        answers: As for `standing_answers`.

    Returns:
        The questions, with answers; None where the answers are of others.
    """
    is_forget = ((questions["set"] == FORGET) & (questions["form"] == PLAIN)).to_numpy()
    given = standing_answers(questions.loc[is_forget, "reference"].tolist(), answers)
    if given is None:
        return None
    column = questions["answers"].tolist()
    for number, row in enumerate(np.flatnonzero(is_forget)):
        column[row] = (given[number],) if number in given else None
    return questions.assign(answers=pd.Series(column, index=questions.index, dtype=object))
