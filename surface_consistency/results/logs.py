"""Collect the samples of a tool as a frame of samples and their scores."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names, shown
from surface_consistency.results import tables
from surface_consistency.results.columns import ResultColumns, need_column
from surface_consistency.results.epochs import reducer_notes, status_note
from surface_consistency.results.failures import NO_SCORES, without_failed_answers
from surface_consistency.results.layouts import Layout
from surface_consistency.results.rows import Cells, Failure, Flat, is_labels, readable
from surface_consistency.rows.cells import count_of

_CHANCE: Final = ("chance", "random")
_SUMS: Final = ("perplexity", "bits_per_byte", "loglikelihood")
_PLAIN: Final = (str, int, float, bool, list)
EXCLUDED_ENDING: Final = ", so it is excluded"
"""End of a note on a metric that has no scores."""

_LETTER: Final = re.compile(r"[A-F][+-]?")
_GRADES: Final = {"correct": 1.0, "incorrect": 0.0, "not_attempted": 0.0}
"""Scores of the grades of SimpleQA."""


def samples_part(
    flats: Iterable[Flat],
    layout: Layout,
    named: Mapping[str, str],
    given: ResultColumns,
    source: str,
    notes: list[str],
    *,
    for_judging: bool = False,
) -> tables.Part:
    """Collect the samples of a file of a tool.

    Args:
        flats: The samples.
        layout: Their layout.
        named: Task and model from the path of the file.
        given: Names of columns that replace those of the layout.
        source: The file, for messages.
        notes: List to which sentences on excluded content are added.
        for_judging: Whether the answers are to be scored. They are then read with their prompts,
            before any filter unless one is named. Scores are not read, and samples need not name an
            item.

    Returns:
        Samples and scores. Values that are not scores are excluded and reported in `notes`.

    Raises:
        DataError: If there are no samples, no samples with the requested filter, or no scores of a
            requested metric.
        RecordError: If a sample does not name an item.
    """
    rows: list[dict[str, Any]] = []
    raw: dict[str, dict[int, Any]] = {}
    numbers: list[int] = []
    filters: Counter[str] = Counter()
    filtered: list[str | None] = []
    doubts: Counter[str] = Counter()
    nested: dict[str, None] = {}
    log: Cells | None = None
    is_raw = for_judging and given.filter is None and given.prediction is None
    for number, flat in enumerate(flats, start=1):
        own = flat.parts.get("filter")
        if own is not None:
            filters[own] += 1
        if given.filter is not None and own != given.filter:
            continue
        filtered.append(own)
        numbers.append(number)
        log = log or flat.log
        nested |= {name: None for name, value in flat.fields.items() if not is_labels(value)}
        if doubt := flat.parts.get("doubt"):
            doubts[doubt] += 1
        for metric, value in flat.scores.items():
            raw.setdefault(metric, {})[len(rows)] = value
        place = f"{source}:{number}"
        with readable(place, layout.tool):
            row = _sample(flat, layout, named, given, place, needs_item=not for_judging)
            if for_judging:
                row["prompt"] = _text(flat.parts.get("prompt"))
        if is_raw and flat.parts.get("response") is not None:
            row["prediction"] = flat.parts["response"]
        if isinstance(row["prediction"], tables.Unread):
            # A frame of rows does not keep subclasses of str.
            row |= {tables.UNREAD: row["prediction"], "prediction": None}
        rows.append(row)
    if not rows:
        raise DataError(_nothing_left(source, given, filters))
    notes += [f"{source}: {n:,} of {len(rows):,} samples {doubt}" for doubt, n in doubts.items()]
    item = tables.JOINED.join(given.item) or layout.item
    if log is not None and (status := status_note(log, len(rows))):
        notes.append(f"{source}: {status}")
    samples = without_failed_answers(_typed(tables.frame_of(rows, source)))
    samples = tables.without_unread(samples, source, notes, for_judging=for_judging)
    if for_judging:
        return tables.Part(samples, {}, item=item)
    if len(filters) > 1 and given.filter is None:
        raw = _by_filter(raw, filtered)
    scores = _scores(raw, samples, given, source, numbers, notes)
    if log is not None:
        notes += [f"{source}: {note}" for note in reducer_notes(log)]
    has_hashes = any(row["content"] is not None for row in rows)
    failures = {
        name: {row: str(value) for row, value in raw[name].items() if isinstance(value, Failure)}
        for name in scores
    }
    failures = {name: own for name, own in failures.items() if own}
    left_out = [name for name in nested if name not in samples]
    return tables.Part(samples, scores, has_hashes, failures, item=item, log=log, nested=left_out)


def _nothing_left(source: str, given: ResultColumns, filters: Counter[str]) -> str:
    """Describe a file without samples."""
    if given.filter is None:
        return f"{source} contains no samples; its run may have been interrupted"
    there = f"name one of: {first_names(sorted(filters))}" if filters else "omit `filter`"
    return f"{source} contains no samples of the filter {shown(given.filter)}; {there}"


def _sample(
    flat: Flat,
    layout: Layout,
    named: Mapping[str, str],
    given: ResultColumns,
    place: str,
    *,
    needs_item: bool,
) -> dict[str, Any]:
    """Return all fields of one sample except scores."""
    parts = {**named, **{name: cell for name, cell in flat.parts.items() if cell is not None}}
    parts = _named_by_user(parts, flat, given, place)
    item = parts.get("item", parts.get(layout.item))
    if needs_item and item in (None, ""):
        named_by = " ".join(given.item) or layout.item
        raise RecordError(
            f"{place}: the sample of {layout.tool} has no {named_by}; fill it in, or name another "
            f"field by `item`: {first_names([name for name in flat.row() if name != named_by])}"
        )
    if "part" in named:
        item = f"{named['part']}:{item}"
    further = {
        tables.further_name(name): value
        for name, value in flat.fields.items()
        if isinstance(value, _PLAIN) and is_labels(value) and name not in flat.scores
    }
    question = parts.get("question", parts.get("prompt"))
    own = {
        "item": "" if item is None else str(item),
        "task": str(parts.get("task", "")),
        "model": None if parts.get("model") in (None, "") else str(parts["model"]),
        "form": str(parts.get("form", "")),
        "repeat": count_of(parts.get("repeat")) or 0,
        "prediction": _text(parts.get("prediction")),
        "references": tables.references_of(parts.get("target"), given.reference_separator),
        "question": None if question is None else str(question),
        "error": str(parts["error"]) if parts.get("error") else None,
        "content": parts.get("content"),
    }
    return own | {
        name: value
        for name, value in further.items()
        if value != own.get(name.removeprefix("row."), not value)
    }


_BY_USER: Final = {
    "task": "task",
    "model": "model",
    "form": "form",
    "repeat": "repeat",
    "prediction": "prediction",
    "references": "target",
    "question": "question",
    "error": "error",
}


def _named_by_user(
    parts: dict[str, Any], flat: Flat, given: ResultColumns, place: str
) -> dict[str, Any]:
    """Replace parts by the columns that the user names."""
    wanted = {role: getattr(given, role) for role in _BY_USER if getattr(given, role) is not None}
    if not wanted and not given.item:
        return parts
    row = flat.row()
    parts = dict(parts)
    for role, column in wanted.items():
        parts[_BY_USER[role]] = row[need_column(column, row, role, place)]
    if given.item:
        names = [need_column(name, row, "item", place) for name in given.item]
        parts["item"] = tables.JOINED.join(str(row[name]) for name in names)
    return parts


def _text(value: object) -> str | None:
    """Read an answer as text; of several texts, the first one."""
    while isinstance(value, list) and not (value and isinstance(value[0], dict)):
        value = value[0] if value else None
    return tables.read_answer(value)


def _by_filter(
    raw: Mapping[str, Mapping[int, Any]], filters: list[str | None]
) -> dict[str, dict[int, Any]]:
    """Name metrics by their filter, as lm-evaluation-harness does: "exact_match,strict"."""
    named: dict[str, dict[int, Any]] = {}
    for metric, values in raw.items():
        for row, value in values.items():
            named.setdefault(f"{metric},{filters[row]}", {})[row] = value
    return named


def _typed(samples: pd.DataFrame) -> pd.DataFrame:
    """Convert the columns to their types, and hash the questions."""
    hashed = samples["content"]
    content = tables.content_of(samples["question"], samples["references"], len(samples))
    if hashed.notna().any():
        own = tables.hashes(hashed.fillna("").astype("str"))
        content = np.where(hashed.notna(), np.maximum(own, 1), content)
    texts = {name: samples[name].astype("str") for name in ("item", "task", "form")}
    rest = {
        name: samples[name].astype(object).where(samples[name].notna(), None)
        for name in ("prediction", "question", "error", "model")
    }
    return samples.assign(**texts, **rest, content=content)


def _scores(
    raw: Mapping[str, Mapping[int, Any]],
    samples: pd.DataFrame,
    given: ResultColumns,
    source: str,
    numbers: Sequence[int],
    notes: list[str],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read the scores as numbers; exclude other values, and reject numbers that are not finite."""
    scores: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    wanted = {*given.metrics, *(() if given.score is None else (given.score,))}
    if given.score is not None:
        name = need_column(given.score, raw, "score", source)
        raw = {name: raw[name]}
    unscored = _unscored(raw, samples)
    for metric, written in raw.items():
        values, grades = _graded(written)
        if grades:
            notes.append(f"{source}: metric {shown(metric)} contains grades, read as {grades}")
        is_wanted = bool(wanted & {metric, metric.partition(",")[0]})
        finite = {row: value for row, value in values.items() if not _is_infinite(value)}
        is_broken = len(finite) < len(values) and _no_score(metric, finite.values()) is None
        if is_broken and (is_wanted or not wanted):
            row = next(row for row in values if row not in finite)
            raise RecordError(
                f"{source}:{numbers[row]}: metric {shown(metric)} contains {shown(values[row])}, "
                "which is not a finite number; correct it, leave it empty if the answer was not "
                "scored, or name the other metrics by `metrics`"
            )
        reason = _no_score(metric, values.values())
        if reason is not None:
            sentence = f"{source}: metric {shown(metric)} {reason}"
            if is_wanted:
                others = [name for name in raw if not _no_score(name, raw[name].values())]
                remedy = f"name another by `metrics`: {first_names(others)}"
                raise DataError(f"{sentence}; {remedy if others else 'no other metric has scores'}")
            if not wanted:
                notes.append(f"{sentence}{EXCLUDED_ENDING}")
            continue
        whole = {**values, **dict.fromkeys(unscored)}
        index = np.fromiter(sorted(whole), dtype=np.int64, count=len(whole))
        read = [tables.number_of(whole[row]) for row in index]
        scores[metric] = (
            index,
            np.array([np.nan if value is None else value for value in read], dtype=float),
        )
    return scores


def _graded(values: Mapping[int, Any]) -> tuple[Mapping[int, Any], str]:
    """Read grades in words as numbers, and list them; "" for other values."""
    texts = (text for text in values.values() if not isinstance(text, Failure))
    words = {text for text in texts if isinstance(text, str) and text.strip()}
    read = {word: _GRADES.get(re.sub(r"[ -]", "_", word.strip().casefold())) for word in words}
    if not words or None in read.values():
        return values, ""
    named = ", ".join(f"{word} {number:g}" for word, number in sorted(read.items()))
    return {row: read.get(value, value) for row, value in values.items()}, named


def _unscored(raw: Mapping[str, Mapping[int, Any]], samples: pd.DataFrame) -> list[int]:
    """List the samples without a score by any metric, which failed or were not scored."""
    has_score = np.zeros(len(samples), dtype=bool)
    for values in raw.values():
        has_score[list(values)] = True
    return np.flatnonzero(~has_score).tolist()


def _is_infinite(value: object) -> bool:
    """Check whether a value is a number that is not finite, or its text."""
    try:
        return isinstance(value, str | int | float) and math.isinf(float(value))
    except OverflowError:
        return True
    except ValueError:
        return False


def _no_score(metric: str, values: Iterable[object]) -> str | None:
    """Return why the values of a metric are not scores; None if they are."""
    words = metric.casefold().split(",")[0].replace("-", "_")
    if words in NO_SCORES:
        return f"is written by {NO_SCORES[words]} and is not a score"
    if any(word in words.split("_") for word in _CHANCE):
        return "is the chance level, which is not a score of the model"
    if any(name in words for name in _SUMS):
        return "is a sum of log-probabilities, which is not a score"
    for value in values:
        if isinstance(value, list | tuple):
            return "contains lists, the inputs of a metric over all samples, which are not scores"
        if isinstance(value, Failure):
            continue
        if isinstance(value, str) and _LETTER.fullmatch(value):
            return f"contains the letter grade {shown(value)}, for which the file has no number"
        if tables.number_of(value) is None:
            return f"contains {shown(value)}, which is not a score"
    return None
