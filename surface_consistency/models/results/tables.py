"""Plain tables of results, read by columns: long, or with a column for each model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError, RecordError
from surface_consistency.models.results.columns import (
    USUAL,
    ResultColumns,
    item_columns,
    need_column,
    table_columns,
)
from surface_consistency.models.results.rows import shown
from surface_consistency.models.results.tools import as_references
from surface_consistency.reading import find_column, first_names, json_or_text
from surface_consistency.runs.readers import FORMATS

_WORDS: Final = {"true": 1.0, "false": 0.0}
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_JOINED: Final = " | "
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)

FURTHER: Final = "row."
"""What stands before the name of a further column that is called as one of the frame's own."""


Scores: TypeAlias = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By metric, numbers of the rows that have a score, and the scores."""


class Part(NamedTuple):
    """The samples of one file."""

    samples: pd.DataFrame
    """One row a sample: what is not its scores."""

    scores: Scores
    """Their scores."""

    has_hashes: bool = False
    """Whether `content` is the tool's own hash."""


def wanted_scores(scores: Scores, given: ResultColumns) -> Scores:
    """Keep the scores of the metrics that are asked for.

    Args:
        scores: By metric.
        given: Whose `metrics` are names of metrics, with or without the filter behind a comma.

    Returns:
        Those; all where none is named.
    """
    wanted = given.metrics
    return {
        name: values
        for name, values in scores.items()
        if not wanted or name in wanted or name.partition(",")[0] in wanted
    }


def read_table(file: Path) -> pd.DataFrame | None:
    """Read a table by columns, every cell of CSV and TSV as text.

    Args:
        file: A CSV, TSV or Parquet file; those of text may be packed (.gz).

    Returns:
        The table; None where it is another kind of file, or one that only reading by rows can
        name the fault of.
    """
    import pyarrow as pa

    suffix = Path(file.stem if file.suffix.lower() == ".gz" else file.name).suffix.lower()
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(file) as opened:
                names = opened.schema_arrow.names
                return opened.read().to_pandas() if len(set(names)) == len(names) else None
        if suffix in _DELIMITERS:
            return _delimited(file, suffix)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    return None


def _delimited(file: Path, suffix: str) -> pd.DataFrame:
    """Read delimited text as text."""
    import pyarrow as pa
    from pyarrow import csv

    _, first = next(iter(FORMATS[suffix](file)), (0, {}))
    table = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=_DELIMITERS[suffix], newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(first, pa.string()), strings_can_be_null=False
        ),
    )
    return table.to_pandas() if table.column_names == list(first) else _by_rows(file, suffix)


def _by_rows(file: Path, suffix: str) -> pd.DataFrame:
    """Read delimited text row by row, which knows more writings of a header."""
    return pd.DataFrame([row for _, row in FORMATS[suffix](file)])


def table_part(frame: pd.DataFrame, given: ResultColumns, source: str, notes: list[str]) -> Part:
    """Tell samples and scores of a plain table.

    Args:
        frame: The table.
        given: What the user says of its columns.
        source: The file, for messages.
        notes: Takes sentences on what was taken for what.

    Returns:
        The samples.

    Raises:
        ColumnNotFoundError: If a named column is not there, or none names the items.
        DataError: If several columns could be scores, and nobody says which are.
        RecordError: If a score is none; names the row.
    """
    names = [str(name) for name in frame.columns]
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    roles = table_columns(names, given, source)
    items = item_columns(names, given, roles, source)
    wide = _models(frame, roles, items, given, source, notes)
    samples = _samples(frame, roles, items, given, wide, source)
    if wide:
        return _wide_part(frame, samples, wide, source)
    metrics = _metrics(frame, roles, items, given, source)
    rows = np.arange(len(frame))
    if "metric" in roles and metrics:
        scores = _numbers(frame[metrics[0]], source)
        codes, uniques = pd.factorize(_text(frame[roles["metric"]]))
        return Part(
            samples,
            {
                str(name): (rows[codes == code], scores[codes == code])
                for code, name in enumerate(uniques)
            },
        )
    return Part(samples, {name: (rows, _numbers(frame[name], source)) for name in metrics})


def _models(
    frame: pd.DataFrame,
    roles: Mapping[str, str],
    items: Iterable[str],
    given: ResultColumns,
    source: str,
    notes: list[str],
) -> list[str]:
    """Name the columns that are a model each; none in a long table."""
    if "model" in roles or given.score or given.metrics:
        return []
    named = [find_column(name, list(frame)) for name in given.label]
    if len(named) > 1 and None not in named:
        return [name for name in named if name is not None]
    if "score" in roles or "prediction" in roles or given.label:
        return []
    columns = _candidates(frame, roles, items, given)
    if len(columns) > 1:
        if not all(_is_verdict(frame[name]) for name in columns):
            raise DataError(
                f"{source}: columns {first_names(columns)} could each hold scores; say which are "
                "metrics by `metrics`, or, if each is a model, by `label`"
            )
        notes.append(
            f"{source}: columns {first_names(columns)} hold verdicts and are taken for a model each"
        )
        return columns
    return []


def _metrics(
    frame: pd.DataFrame,
    roles: Mapping[str, str],
    items: Iterable[str],
    given: ResultColumns,
    source: str,
) -> list[str]:
    """Name the columns that hold scores in a long table."""
    if given.score:
        return [roles["score"]]
    if given.metrics and "metric" not in roles:
        return [need_column(name, list(frame), "metrics", source) for name in given.metrics]
    if "metric" in roles and "score" in roles:
        return [roles["score"]]
    usual = [find_column(name, list(frame)) for name in USUAL["score"]]
    known = [name for name in usual if name is not None and name not in items]
    known = [name for name in known if _is_number(frame[name])] or known[:1]
    if known or "prediction" in roles:
        return list(dict.fromkeys(known))
    columns = _candidates(frame, roles, items, given)
    if len(columns) > 1:
        raise DataError(
            f"{source}: columns {first_names(columns)} could each hold scores; name one by "
            "`score`, or several by `metrics`"
        )
    return columns


def _candidates(
    frame: pd.DataFrame, roles: Mapping[str, str], items: Iterable[str], given: ResultColumns
) -> list[str]:
    """Name the columns of numbers that are nothing else."""
    taken = {*roles.values(), *items, *given.cluster}
    return [name for name in frame if name not in taken and _is_number(frame[name])]


def _samples(
    frame: pd.DataFrame,
    roles: Mapping[str, str],
    items: list[str],
    given: ResultColumns,
    wide: Iterable[str],
    source: str,
) -> pd.DataFrame:
    """Lay out what is not scores."""
    item = _text(frame[items[0]])
    for name in items[1:]:
        item = item + _JOINED + _text(frame[name])
    is_blank = (item == "").to_numpy()
    if is_blank.any():
        raise RecordError(
            f"{source}: row {int(np.argmax(is_blank)) + 1:,} names no item in column {items[0]!r}; "
            "fill it, or name another column by `item`"
        )
    taken = {*roles.values(), *items, *wide}
    parts: dict[str, Any] = {"item": item}
    for role in ("task", "model", "form"):
        if role in roles and roles[role] not in items:
            parts[role] = _text(frame[roles[role]])
    if "repeat" in roles and roles["repeat"] not in items:
        parts["repeat"] = _whole_numbers(frame[roles["repeat"]])
    for role in ("prediction", "question", "error"):
        if role in roles:
            parts[role] = _text_or_none(frame[roles[role]], blank=role == "prediction")
    if "references" in roles:
        parts["references"] = _references(frame[roles["references"]])
    if "question" in roles or "references" in roles:
        parts["content"] = content_of(parts.get("question"), parts.get("references"), len(frame))
    kept = {*given.cluster, *(items if len(items) > 1 else ())}
    for name in frame:
        if (name not in taken or name in kept) and not _is_nested(frame[name]):
            parts[name if name not in COLUMNS else f"{FURTHER}{name}"] = frame[name]
    return pd.DataFrame(parts, index=frame.index)


COLUMNS: Final = (
    *("task", "model", "item", "form", "repeat", "metric", "score", "prediction", "references"),
    *("question", "error", "content", "file"),
)
"""Columns of the frame that are always there, in this order."""


def _wide_part(frame: pd.DataFrame, samples: pd.DataFrame, models: list[str], source: str) -> Part:
    """Put the columns of models below each other."""
    parts = [samples.assign(model=name) for name in models]
    scores = np.concatenate([_numbers(frame[name], source) for name in models])
    whole = pd.concat(parts, ignore_index=True)
    return Part(whole, {"score": (np.arange(len(whole)), scores)})


def content_of(question: pd.Series | None, references: pd.Series | None, n_rows: int) -> np.ndarray:
    """Hash what was asked, so that other questions under one name are seen.

    Args:
        question: Questions; None where the file has none.
        references: Tuples of accepted answers, likewise.
        n_rows: Rows of the file.

    Returns:
        A uint64 a row, the same on every machine; 0 where neither is there.
    """
    total = np.zeros(n_rows, dtype=np.uint64)
    there = np.zeros(n_rows, dtype=bool)
    if question is not None:
        texts = pd.Series(question, dtype="str")
        there |= texts.notna().to_numpy()
        total += hashes(texts.fillna(""))
    if references is not None:
        codes, uniques = pd.factorize(references)
        texts = pd.Series(["\x1f".join(one) for one in uniques], dtype="str")
        there |= (texts != "").to_numpy()[codes]
        total += hashes(texts)[codes] * _ODD
    return np.where(there, np.maximum(total, 1), np.uint64(0)).astype(np.uint64)


def hashes(texts: pd.Series) -> np.ndarray:
    """Hash texts to uint64, the same on every machine."""
    return pd.util.hash_array(texts.to_numpy(dtype=object), categorize=False)


def _text(column: pd.Series) -> pd.Series:
    """Read a column as text, whole numbers without a point; missing is empty."""
    if isinstance(column.dtype, pd.StringDtype):
        return column.fillna("")
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype("str").where(column.notna(), "").astype("str")


def _text_or_none(column: pd.Series, *, blank: bool) -> pd.Series:
    """Read a column as text or None; an empty cell is text where it may be an answer."""
    texts = _text(column).astype(object)
    missing = column.isna().to_numpy()
    if not blank:
        missing = missing | (texts == "").to_numpy()
    return texts.where(~missing, None)


def _references(column: pd.Series) -> pd.Series:
    """Read accepted answers: one, a list, or a list as JSON text."""
    if not isinstance(column.dtype, pd.StringDtype):
        values = [_plain(value) for value in column]
        return pd.Series([as_references(value) for value in values], index=column.index)
    codes, uniques = pd.factorize(column)
    known = [as_references(_parsed(str(text))) for text in uniques]
    read = np.empty(len(known) + 1, dtype=object)
    read[:-1], read[-1] = known, ()
    return pd.Series(read[codes], index=column.index)


def _plain(value: object) -> object:
    """Turn what pandas holds into plain values: an array to a list, NaN to None."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, str):
        return _parsed(value)
    return None if isinstance(value, float) and np.isnan(value) else value


def _parsed(text: str) -> object:
    """Read a list that is written as JSON; other text is one answer, an empty one none."""
    if text.lstrip().startswith("["):
        value = json_or_text(text, "references")
        return value if isinstance(value, list) else text
    return text or None


def _whole_numbers(column: pd.Series) -> pd.Series:
    """Read numbers of repeats; other labels are numbered in their order."""
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.notna().all() and (numbers % 1 == 0).all():
        return numbers.astype("int64")
    return pd.Series(pd.factorize(column, sort=True)[0].astype("int64"), index=column.index)


def _is_nested(column: pd.Series) -> bool:
    """Tell a column of lists or objects."""
    if column.dtype != object:
        return False
    first = next((value for value in column if value is not None), None)
    return isinstance(first, list | dict | tuple | np.ndarray)


def _is_number(column: pd.Series) -> bool:
    """Tell a column of scores: numbers, verdicts or their text, and at least one of them."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return True
    values, is_broken = _as_numbers(column)
    return not is_broken.any() and bool(np.isfinite(values).any())


def _is_verdict(column: pd.Series) -> bool:
    """Tell a column of zeros and ones."""
    values, _ = _as_numbers(column)
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())


def _numbers(column: pd.Series, source: str) -> np.ndarray:
    """Read a column of scores; refuse what is none by row."""
    values, is_broken = _as_numbers(column)
    if is_broken.any():
        row = int(np.argmax(is_broken))
        raise RecordError(
            f"{source}: row {row + 1:,} of column {column.name!r} holds "
            f"{shown(column.iloc[row])}, which is no score: a number, true or false, or an empty "
            "cell where the answer was not scored"
        )
    return values


def _as_numbers(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Read scores as numbers, NaN where there is none, and tell which cells are broken."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
    numbers = _cast(column)
    if numbers is not None:
        return numbers, np.zeros(len(column), dtype=bool)
    codes, uniques = pd.factorize(column.astype(object))
    read = [*map(number_of, uniques), float("nan")]
    numbers = np.array([np.nan if value is None else value for value in read])
    return numbers[codes], np.array([value is None for value in read])[codes]


def _cast(column: pd.Series) -> np.ndarray | None:
    """Read text that is numbers alone, all at once; None where there is other text."""
    import pyarrow as pa

    if not isinstance(column.dtype, pd.StringDtype):
        return None
    try:
        numbers = pa.array(column).cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        return None
    return numbers if np.isfinite(numbers).all() else None


def number_of(value: object) -> float | None:
    """Read a score.

    Args:
        value: A number, True or False, their text, or what stands for no score: None, NaN or
            empty text.

    Returns:
        The number, NaN for no score; None for what is none, such as a list or a word.
    """
    if value is None or isinstance(value, float | int | np.number | np.bool_):
        return float("nan") if value is None else float(value)
    if not isinstance(value, str):
        return float("nan") if value is pd.NA else None
    word = value.strip().casefold()
    if not word or word in _WORDS:
        return _WORDS.get(word, float("nan"))
    try:
        return None if word in ("nan", "inf", "-inf", "infinity") else float(word)
    except ValueError:
        return None
