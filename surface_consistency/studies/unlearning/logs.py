"""Logs of the field's benchmarks, question by question: what was asked, said, and scored.

open-unlearning's `TOFU_EVAL.json` and `MUSE_EVAL.json`, TOFU's own `eval_log_aggregated.json`,
RWKU's results and EasyEdit's records. None of them tells model, split or reference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pandas as pd

from surface_consistency.errors import DataError, RunMismatchError
from surface_consistency.matching import match_columns
from surface_consistency.reading import existing_file, find_column, parse_json, read_document
from surface_consistency.runs.readers import read_rows
from surface_consistency.studies.unlearning.questions import (
    A_PERSON,
    FORGET,
    PLAIN,
    named_questions,
)

_SETS: Final = {
    "forget": FORGET,
    "retain": "retain",
    "ra": "real authors",
    "wf": "world facts",
}
_LEGACY: Final = {
    "eval_log_forget": "forget",
    "eval_log": "retain",
    "eval_real_author_wo_options": "ra",
    "eval_real_world_wo_options": "wf",
}
_SHORT: Final = 6
"""Words of a reference that is an answer and no sentence."""

_ENDS: Final = {"portability": "acc", "locality": "output"}
_STANDS_IN: Final = 0.9
_COLUMNS: Final = (
    *("set", "form", "question_id", "cluster", "question", "reference", "answers", "prediction"),
)
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

    role: Literal["original", "edited"] | None = None
    """What the log says of the model, as EasyEdit's does; None where it says nothing."""


class _Asked(NamedTuple):
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
        DataError: If a file has no layout that is known, or no generated text; if two models are
            the same, answers and scores alike.
        RunMismatchError: If two logs are of other questions.
    """
    logs = [log for path in paths for log in _read_log(existing_file(path, "a log", "*.json"))]
    logs = [_named(log, logs) for log in logs]
    for place, log in enumerate(logs):
        _refuse_other_questions(logs[0], log)
        for other in logs[:place]:
            _refuse_same_model(other, log)
    return logs


def _read_log(path: Path) -> list[ModelLog]:
    """Read a file by what it holds."""
    content = parse_json(read_document(path), str(path), remedy="give the file as it was written")
    if isinstance(content, dict):
        if any(name.endswith("_ROUGE") for name in content):
            return [_with_metrics(path, content, list(_of_metrics(content)))]
        legacy = {name.removesuffix(".json"): part for name, part in content.items()}
        if "eval_log_forget" in legacy:
            metrics = _metrics_of_legacy(legacy)
            return [_with_metrics(path, metrics, list(_of_metrics(metrics)))]
        if isinstance(content.get("results"), list):
            return [_with_metrics(path, {}, list(_of_rwku(content, path)))]
        if content and all(isinstance(value, int | float) for value in content.values()):
            raise DataError(
                f"{path} holds aggregates alone, of which no question can be read; give the "
                "*_EVAL.json beside it"
            )
    if isinstance(content, list) and content and _is_edit(content[0]):
        return _of_edits(path, content)
    raise DataError(f"{path} is no log that is known, which are {_KNOWN}")


def _with_metrics(
    path: Path, metrics: Mapping[str, Mapping[str, Any]], asked: Sequence[_Asked]
) -> ModelLog:
    """Make a log of its questions."""
    if not any(one.prediction for one in asked):
        raise DataError(
            f"{path} holds no generation, so that no answer can be judged; evaluate with the "
            "generated texts kept (the *_ROUGE metrics of open-unlearning)"
        )
    questions = pd.DataFrame(asked, columns=list(_COLUMNS))
    return ModelLog(label="", path=path, questions=questions, metrics=metrics)


def by_index(metric: Mapping[str, Any]) -> dict[int, Any]:
    """Sort the values of a metric by question, whose keys stand in no order.

    Args:
        metric: With `value_by_index`.

    Returns:
        By number of the question.
    """
    values = metric.get("value_by_index") or {}
    return {index: values[str(index)] for index in sorted(map(int, values))}


def _of_metrics(metrics: Mapping[str, Any]) -> Iterator[_Asked]:
    """Read the generations of open-unlearning's log."""
    for name, metric in metrics.items():
        if not name.endswith("_ROUGE"):
            continue
        prefix, _, rest = name.removesuffix("_ROUGE").partition("_")
        is_tofu = rest == "Q_A"
        form = PLAIN if rest in ("Q_A", "knowmem") else rest
        for index, cells in by_index(metric).items():
            person = index // A_PERSON if is_tofu and prefix in ("forget", "retain") else None
            reference = str(cells["ground_truth"])
            yield _Asked(
                set=_SETS.get(prefix, prefix),
                form=form,
                question_id=str(index),
                cluster=f"question {index}" if person is None else f"person {person}",
                question=_question(str(cells["input"])),
                reference=reference,
                answers=_short(reference),
                prediction=cells["generation"],
            )


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


def _metrics_of_legacy(parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give TOFU's own log the layout of open-unlearning's; its parts hold lists or mappings."""
    metrics: dict[str, dict[str, Any]] = {}

    def put(name: str, rows: Mapping[str, object]) -> None:
        metrics[name] = {"agg_value": None, "value_by_index": dict(rows)}

    for part, prefix in _LEGACY.items():
        if part not in parts:
            continue
        cells = {name: _indexed(values) for name, values in parts[part].items()}
        texts, recalls = cells.get("generated_text", {}), cells.get("rougeL_recall", {})
        put(
            f"{prefix}_Q_A_ROUGE",
            {
                index: {
                    "input": text[0],
                    "generation": text[1],
                    "ground_truth": text[2],
                    "rougeL_recall": recalls.get(index, math.nan),
                }
                for index, text in texts.items()
            },
        )
        for name, field in (("Q_A_Prob", "avg_gt_loss"), ("Q_A_PARA_Prob", "avg_paraphrased_loss")):
            losses = cells.get(field, {})
            put(
                f"{prefix}_{name}",
                {i: {"prob": math.exp(-x), "avg_loss": x} for i, x in losses.items()},
            )
        wrong = cells.get("average_perturb_loss", {})
        put(f"{prefix}_Q_A_PERT_Prob", {i: {"avg_loss": x} for i, x in wrong.items()})
        ratio = "forget_truth_ratio" if prefix == "forget" else f"{prefix}_Truth_Ratio"
        ratios = cells.get("truth_ratio", {})
        put(ratio, {i: {"score": x} for i, x in ratios.items()})
    return metrics


def _indexed(values: object) -> Mapping[str, Any]:
    """Number what is a list; what is keyed by index stays."""
    if isinstance(values, Mapping):
        return values
    return {str(i): x for i, x in enumerate(values)} if isinstance(values, list) else {}


def _of_rwku(content: Mapping[str, Any], path: Path) -> Iterator[_Asked]:
    """Read RWKU's results: the samples with their predictions."""
    is_near = any("neighbor" in name for name in content)
    forms = {"1": "cloze", "2": PLAIN}
    for number, row in enumerate(content["results"]):
        missing = {"query", "answer", "subject", "prediction"}.difference(row)
        if missing:
            raise DataError(f"{path}: results[{number}] has no {', '.join(sorted(missing))}")
        level = str(row.get("level", "2"))
        yield _Asked(
            set="neighbour" if is_near else FORGET,
            form=forms.get(level, f"adversarial: {row.get('type', 'other')}"),
            question_id=str(number),
            cluster=str(row["subject"]),
            question=str(row["query"]),
            reference=str(row["answer"]),
            answers=(str(row["answer"]),),
            prediction=row["prediction"],
        )


def _is_edit(record: object) -> bool:
    """Tell a record of EasyEdit."""
    return isinstance(record, dict) and "post" in record and "requested_rewrite" in record


def _of_edits(path: Path, records: Sequence[Mapping[str, Any]]) -> list[ModelLog]:
    """Read EasyEdit's records: the model before the edits and after them."""
    logs = []
    roles: Mapping[str, Literal["original", "edited"]] = {"pre": "original", "post": "edited"}
    for when, role in roles.items():
        asked = [row for n, one in enumerate(records) for row in _of_edit(n, one, when)]
        if asked:
            logs.append(replace(_with_metrics(path, {}, asked), role=role))
    if not logs or logs[-1].role != "edited":
        raise DataError(
            f"{path} holds accuracies of tokens, which are read with the target before the model "
            "and so tell its length and first tokens: 96.8 % of edits succeed by them and 38.5 % "
            "when the model writes (arXiv 2502.11177); evaluate with evaluation_type: "
            "generate-text, which keeps the texts (*_gen_content)"
        )
    return logs


def _of_edit(number: int, record: Mapping[str, Any], when: str) -> Iterator[_Asked]:
    """Read the texts of one edit, for its old object and its new one, and for its neighbours."""
    said = record.get(when) or {}
    for name, subject, one in named_questions(record, number):
        kind, _, key = one.source.partition("/")
        texts = said.get(f"{kind}_gen_content")
        if key:
            texts = (said.get(kind) or {}).get(f"{key}_{_ENDS[kind]}")
        listed = texts if isinstance(texts, list) else [texts]
        text = listed[one.place] if one.place < len(listed) else None
        if isinstance(text, str):  # Tokens and their accuracies are none.
            about = (one.set, one.form, name, subject, one.question)
            yield _Asked(*about, one.answers[0], one.answers, text)


def _named(log: ModelLog, logs: Sequence[ModelLog]) -> ModelLog:
    """Name a model by as much of its path as tells it apart."""
    others = {one.path for one in logs if one.path != log.path}
    name = log.path.stem
    if any(other.name == log.path.name for other in others):
        depth = 2
        while any(other.parts[-depth:-1] == log.path.parts[-depth:-1] for other in others):
            depth += 1
        name = "/".join(log.path.parts[-depth:-1]) or name
    return replace(log, label=f"{name} {log.role or ''}".strip())


_ID: Final = ["set", "form", "question_id"]


def _refuse_other_questions(first: ModelLog, log: ModelLog) -> None:
    """Refuse logs of another split."""
    one, other = (x.questions.set_index(_ID)["reference"] for x in (first, log))
    one, other = (x[x.index.get_level_values("set") == FORGET] for x in (one, other))
    if set(one.index) != set(other.index) or (one != other.reindex(one.index)).any():
        raise RunMismatchError(
            f"{first.path} asks {len(one)} questions of the facts to forget and {log.path} "
            f"{len(other)}, and they are not the same: the logs are of other splits; give logs of "
            "one split (forget10 goes with retain90, forget05 with retain95, forget01 with "
            "retain99)"
        )


def _refuse_same_model(first: ModelLog, log: ModelLog) -> None:
    """Refuse a model that stands there twice."""
    scores = scores_of(log)
    if len(scores) and first.questions.equals(log.questions) and scores_of(first).equals(scores):
        raise DataError(
            f"{first.path} and {log.path} hold the same answers and the same scores to every "
            "question: it is one model, or models of the same weights; give each once"
        )


def scores_of(log: ModelLog) -> pd.DataFrame:
    """List the scores of a log that are no verdicts.

    Args:
        log: The log.

    Returns:
        One row a set, measure and question: set, measure, question_id, value. Measures are
        "probability" of the answer, "ROUGE-L recall" (TOFU), "ROUGE-L knowmem" and the like (MUSE,
        F1), "log truth ratio", "extraction strength" and "exact memorization"; what is undefined is
        left out.
    """
    rows = []
    for name, metric in log.metrics.items():
        measured = _measure(name)
        if measured is None:
            continue
        of_set, measure, field = measured
        for index, cells in by_index(metric).items():
            value = cells.get(field)
            if value is None or (measure == "log truth ratio" and not value > 0.0):
                continue
            number = math.log(value) if measure == "log truth ratio" else float(value)
            rows.append((of_set, measure, str(index), number))
    return pd.DataFrame(rows, columns=["set", "measure", "question_id", "value"])


def _measure(name: str) -> tuple[str, str, str] | None:
    """Tell of a metric its set, what it measures, and its field."""
    prefix = name.partition("_")[0]
    of_set = _SETS.get(prefix, prefix)
    if name.endswith("_Q_A_Prob"):
        return of_set, "probability", "prob"
    if name.endswith("_ROUGE"):
        kind = name.removeprefix(f"{prefix}_").removesuffix("ROUGE").replace("_", " ")
        return (
            of_set,
            "ROUGE-L " + ("recall" if kind == "Q A " else kind).strip(),
            rouge_field(name),
        )
    if name.lower().endswith("truth_ratio"):
        return of_set, "log truth ratio", "score"
    if name in ("extraction_strength", "exact_memorization"):
        return FORGET, name.replace("_", " "), "score"
    return None


def rouge_field(name: str) -> str:
    """Tell which ROUGE a metric's aggregate is the mean of.

    Args:
        name: The metric.

    Returns:
        Recall for TOFU, F1 for MUSE.
    """
    return "rougeL_recall" if "Q_A" in name else "rougeL_f1"


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
        found = match_columns(texts, names, rule="boundary").is_match
        if found and sum(map(bool, found)) >= _STANDS_IN * len(found):
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
    column = questions["answers"].copy()
    column[is_forget] = [(given[i],) if i in given else None for i in range(is_forget.sum())]
    return questions.assign(answers=column)
