"""Read plain tables of results by columns, in long format or with one column per model."""

import math
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import (
    check_columns,
    find_column,
    first_names,
    packed_text,
    shown,
    writable,
)
from surface_consistency.results.columns import (
    USUAL,
    ResultColumns,
    TableColumns,
    need_column,
    table_columns,
)
from surface_consistency.results.failures import (
    ERRORS,
    REQUEST,
    SCORER,
    SCORER_ERRORS,
    has_failed_answers,
    without_failed_answers,
)
from surface_consistency.results.names import DIRECTIONS, direction, is_flag, is_metric, is_property
from surface_consistency.results.rows import Cells, answer_of, is_labels, nested_row, without_empty
from surface_consistency.rows.cells import answers_of
from surface_consistency.rows.columnar import check_cells, open_parquet
from surface_consistency.rows.readers import FORMATS
from surface_consistency.schemas.generations import server_end

if TYPE_CHECKING:
    import pyarrow as pa

_WORDS: Final = {"true": 1.0, "false": 0.0, "nan": float("nan")}
_NO_ERRORS: Final = frozenset(
    {"none", "null", "nan", "false", "0", "0.0", "[]", "{}", "()", "-", "n/a", "na", "n", "no"}
    | {"ok", "no error", "no_error", "no exception", "passed", "success", "undefined"}
)
"""Cells of a column of errors that do not record an error."""

_QUOTE: Final = ord('"')
_PIECE: Final = 2**24
_SCORES: Final = (str, float, int, np.number, np.bool_)
_MOST_CELLS: Final = 21_000_000
_SPARSEST: Final = 4
"""Maximum number of cells of a table per value of its rows, which may have different columns."""

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_ANSWER_ENDS: Final = ("1", "2", "tool_calls", "function_call")
"""Finish reasons of answers: STOP and MAX_TOKENS as numbers of Gemini, and tool calls."""

JOINED: Final = " | "
"""Separator of the parts of an item that several columns name."""


Scores: TypeAlias = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By metric, the positions of the rows that have a score, and the scores."""


class Part(NamedTuple):
    """The samples of one file."""

    samples: pd.DataFrame
    """One row per sample: all columns except scores."""

    scores: Scores
    """Their scores."""

    has_hashes: bool = False
    """Whether `content` is a hash that the tool wrote."""

    failures: Mapping[str, Mapping[int, str]] = MappingProxyType({})
    """By metric and row, the reason for a missing score."""

    columns: Sequence[str] = ()
    """Columns of the file, if it is a plain table."""

    item: str = "item"
    """Name of an item in the file."""

    roles: Mapping[str, str] = MappingProxyType({})
    """Column by role, if it is a plain table."""

    log: Cells | None = None
    """Metadata of the run in the file; see `Flat`."""

    nested: Collection[str] = ()
    """Columns that are excluded because they contain objects or long lists."""

    ids: str = ""
    """Type of the ids of items, "numbers" or "texts", if it is a plain table with types."""


def frame_of(rows: Sequence[Cells], source: str) -> pd.DataFrame:
    """Make a frame of the rows of a file; lone surrogates, invalid in UTF-8, become "?"."""
    names: set[str] = set()
    for row in rows:
        if not row.keys() <= names:
            names.update(row)
    check_columns(names, f"{source}: the rows together")
    if len(rows) * len(names) > max(_MOST_CELLS, _SPARSEST * sum(map(len, rows))):
        raise DataError(
            f"{source}: the {len(rows):,} rows have {len(names):,} different columns, and most "
            f"cells of their table would be empty; the maximum is {_MOST_CELLS:,} cells. Remove "
            "the columns that are not needed, or split the file into files whose rows have the "
            "same columns"
        )
    try:
        frame = pd.DataFrame(rows)
        for name, kind in frame.dtypes.items():  # pandas 3 encodes texts; pandas 2 does not.
            if kind.kind == "O" and not isinstance(kind, pd.StringDtype):
                "".join(cell for cell in frame[name] if isinstance(cell, str)).encode()
        return frame
    except OverflowError:  # of pandas 2, from an integer that exceeds a float
        return pd.DataFrame(rows, dtype=object)
    except UnicodeEncodeError:
        return pd.DataFrame([writable(dict(row)) for row in rows])


def wanted_scores(scores: Scores, given: ResultColumns) -> Scores:
    """Keep the scores of the requested metrics.

    Args:
        scores: Scores by metric.
        given: Names of columns and metrics. Its `metrics` are names with or without a filter after
            a comma.

    Returns:
        The scores of these metrics; all if `metrics` is empty.
    """
    wanted = given.metrics
    return {
        name: values
        for name, values in scores.items()
        if not wanted or name in wanted or name.partition(",")[0] in wanted
    }


def read_table(file: Path) -> pd.DataFrame | None:
    """Read a table by columns, every cell of CSV and TSV as text, or None if it is empty.

    Args:
        file: A CSV, TSV or Parquet file; CSV and TSV may be compressed (.gz).

    Returns:
        The table; None if it is another kind of file, or has an error that only the reader by rows
        can locate.
    """
    import pyarrow as pa

    suffix = Path(file.stem if file.suffix.lower() == ".gz" else file.name).suffix.lower()
    try:
        if suffix == ".parquet":
            with open_parquet(file) as opened:
                names = opened.schema_arrow.names
                if len(set(names)) < len(names):
                    return None
                table = opened.read()
            check_cells(table, str(file))
            frame: pd.DataFrame = table.to_pandas()
            return frame
        if suffix in _DELIMITERS:
            return _delimited(file, suffix)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None
    return None


def _delimited(file: Path, suffix: str) -> pd.DataFrame:
    """Read delimited text as text, and empty cells as missing."""
    import pyarrow as pa
    from pyarrow import csv

    _, first = next(iter(FORMATS[suffix](file)), (0, {}))
    # Threads of pyarrow that read a Python file object can prevent the process from ending.
    if (packed := packed_text(file)) is None:
        source = pa.memory_map(str(file)).read_buffer()
    else:
        with packed:
            source = pa.py_buffer(packed.read())
    if not _is_quoted(source, _DELIMITERS[suffix].encode()):
        return frame_of([without_empty(row) for _, row in FORMATS[suffix](file)], str(file))
    table = csv.read_csv(
        pa.BufferReader(source),
        parse_options=csv.ParseOptions(delimiter=_DELIMITERS[suffix], newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(first, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    if table.column_names != list(first):
        # Only the reader by rows handles a header with duplicate or unusual names.
        return frame_of([without_empty(row) for _, row in FORMATS[suffix](file)], str(file))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _is_quoted(text: "pa.Buffer", delimiter: bytes) -> bool:
    """Check that quotes enclose whole cells: pyarrow reads an open quote to the end of the file."""
    content = np.frombuffer(text, dtype=np.uint8)
    pieces = range(0, len(content), _PIECE)
    places = [np.flatnonzero(content[at : at + _PIECE] == _QUOTE) + at for at in pieces]
    quotes = np.concatenate([*places, np.array([], dtype=np.int64)]).astype(np.int64)
    if len(quotes) % 2:
        return False
    # Two quotes in a row within a cell are one that closes and one that opens.
    opening, closing = quotes[::2], quotes[1::2]
    first = 3 if bytes(content[:3]) == BOM_UTF8 else 0
    is_end = np.isin(np.arange(256), [*delimiter, *b'\r\n"'])
    before = is_end[content[opening - 1]] | (opening == first)
    after = is_end[content[np.minimum(closing + 1, len(content) - 1)]]
    return bool((before & (after | (closing + 1 == len(content)))).all())


def table_part(
    frame: pd.DataFrame,
    given: ResultColumns,
    source: str,
    notes: list[str],
    *,
    for_judging: bool = False,
) -> Part:
    """Return the samples and scores of a plain table.

    Args:
        frame: The table.
        given: Names of columns that the user gives.
        source: The file, for messages.
        notes: List to which sentences on assumed roles of columns are added.
        for_judging: Whether the answers are to be scored. Scores are then not read, and the column
            "prompt" is also kept under its name if it is the question.

    Returns:
        The samples.

    Raises:
        ColumnNotFoundError: If a named column is missing, or no column names the items.
        DataError: If several columns could be scores, and `metrics` and `names` are not given.
        RecordError: If a score is not valid; the message names the row.
    """
    names = [str(name) for name in frame.columns]
    check_columns(names, source)
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    columns = table_columns(names, given, source, for_judging=for_judging)
    table = _Table(frame, columns, given, source, for_judging)
    if for_judging:
        prompt = find_column("prompt", names)
        prompts = {} if prompt is None else {"prompt": text_or_none(table.frame[prompt])}
        part = Part(table.samples(notes).assign(**prompts), {})
    else:
        models = table.models(notes)
        part = table.wide(models, notes) if models else table.long(notes)
    samples = without_unread(part.samples, source, notes, for_judging=for_judging)
    samples = _without_answered_errors(samples, source, notes)
    ids = table.ids() if len(columns.items) == 1 and not for_judging else ""
    item = JOINED.join(columns.items)
    roles = columns.roles
    nested = [name for name in names if further_name(name) not in samples and table.is_nested(name)]
    return part._replace(
        samples=samples, columns=names, item=item, roles=roles, ids=ids, nested=nested
    )


COLUMNS: Final = (
    *("task", "model", "item", "form", "repeat", "metric", "score", "prediction", "references"),
    *("question", "error", "content", "file"),
)
"""Columns that the frame always has, in this order."""


class _Table(NamedTuple):
    """A plain table and the roles of its columns."""

    frame: pd.DataFrame
    columns: TableColumns
    given: ResultColumns
    source: str
    for_judging: bool

    def models(self, notes: list[str]) -> list[str]:
        """Return the columns that are the scores of one model each; empty for a long table."""
        roles, given = self.columns.roles, self.given
        if "model" in roles or given.score or given.metrics:
            return []
        named = [find_column(name, self.names) for name in given.names]
        if None not in named and (len(named) > 1 or (named and "score" not in roles)):
            return [name for name in named if name is not None]
        if "score" in roles or "prediction" in roles or given.names:
            return []
        columns = self._candidates()
        if len(columns) < 2 or direction(columns[0]) == "cost":
            return []
        if not all(_is_binary(self.frame[name]) for name in columns):
            raise self._several(columns)
        if flags := list(filter(is_flag, columns)):
            raise DataError(
                f"{self.source}: columns {first_names(columns)} contain only 0 and 1, but "
                f"{first_names(flags)} may be a property of the items; name the columns of models "
                "by `names`"
            )
        notes.append(
            f"{self.source}: columns {first_names(columns)} contain only 0 and 1; each is read as "
            "one model"
        )
        return columns

    def metrics(self, notes: list[str]) -> list[str]:
        """Return the columns of scores of a long table; costs only if there are no others."""
        roles, given = self.columns.roles, self.given
        if "score" in roles and (given.score or "metric" in roles):
            return [roles["score"]]
        if given.metrics:
            return [need_column(one, self.names, "metrics", self.source) for one in given.metrics]
        usual = [find_column(name, self.names) for name in USUAL["score"]]
        there = [name for name in usual if name is not None and name not in self.columns.items]
        known = [name for name in there if _is_number(self.frame[name])] or there[:1]
        if known or "prediction" in roles:
            return known
        candidates = self._candidates()
        if not candidates or direction(candidates[0]) == "cost":
            return candidates
        if len(candidates) > 1:
            raise self._several(candidates)
        (name,) = candidates
        values, _ = _as_numbers(self.frame[name])
        is_share = not ((values < 0) | (values > 1)).any()
        is_score = sum((is_share, is_metric(name), not is_property(name))) > 1
        if not is_score and "metric" not in roles:
            raise DataError(
                f"{self.source}: column {shown(name)} is the only column of numbers, and it may be "
                "a property of the items; name the column of scores by `score`, or that of the "
                "answers by `prediction`"
            )
        notes.append(f"{self.source}: column {shown(name)} is read as the score")
        return candidates

    def _several(self, columns: Sequence[str]) -> DataError:
        """Return the error on several columns that could be scores."""
        models = "" if "model" in self.columns.roles else ", or, if each is a model, by `names`"
        return DataError(
            f"{self.source}: columns {first_names(columns)} could each contain scores; name those "
            f"that are metrics by `metrics`{models}"
        )

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.frame.columns))

    def _candidates(self) -> list[str]:
        """Return the columns of numbers without another role; costs only if there are no others."""
        taken = {*self.columns.roles.values(), *self.columns.items, *self.given.cluster}
        taken |= DIRECTIONS
        free = [name for name in self.names if name not in taken and _is_number(self.frame[name])]
        return [name for name in free if direction(name) != "cost"] or free

    def numbers(self, name: str) -> np.ndarray:
        """Read a column of scores; raise an error with the row of a cell that is not a score."""
        values, is_broken = _as_numbers(self.frame[name])
        if is_broken.any():
            row = int(np.argmax(is_broken))
            raise RecordError(
                f"{self.source}: row {row + 1:,} of column {shown(name)} contains "
                f"{shown(self.frame[name].iloc[row])}, which is not a score: a finite number in "
                "the digits 0 to 9, true or false, or an empty cell if the answer was not scored"
            )
        return values

    def long(self, notes: list[str]) -> Part:
        """Read a table with one row per score, or one column per metric."""
        samples, metrics = self.samples(notes), self.metrics(notes)
        rows = np.arange(len(self.frame))
        if "metric" not in self.columns.roles or not metrics:
            return Part(samples, {name: (rows, self.numbers(name)) for name in metrics})
        scores = self.numbers(metrics[0])
        codes, uniques = pd.factorize(self.names_in(self.columns.roles["metric"], "metric"))
        is_of = {str(name): codes == code for code, name in enumerate(uniques)}
        return Part(samples, {name: (rows[of], scores[of]) for name, of in is_of.items()})

    def wide(self, models: Sequence[str], notes: list[str]) -> Part:
        """Concatenate the columns of models."""
        samples = self.samples(notes, models)
        whole = pd.concat([samples.assign(model=name) for name in models], ignore_index=True)
        scores = np.concatenate([self.numbers(name) for name in models])
        return Part(whole, {"score": (np.arange(len(whole)), scores)})

    def items(self) -> pd.Series:
        """Return the names of the items; raise an error for rows without one."""
        if not self.columns.items:
            return pd.Series("", index=self.frame.index, dtype="str")
        first, *others = self.columns.items
        item = self.names_in(first, "item")
        for name in others:
            item = item + JOINED + self.names_in(name, "item")
        is_blank = (item == "").to_numpy()
        if is_blank.any() and not self.for_judging:
            raise RecordError(
                f"{self.source}: row {int(np.argmax(is_blank)) + 1:,} has no item in column "
                f"{shown(first)}; fill it, or name another column by `item`"
            )
        return item

    def names_in(self, name: str, role: str) -> pd.Series:
        """Read a column of names as text; raise an error with the row of a list or an object."""
        cells = self.frame[name]
        if (row := nested_row(cells)) is not None:
            raise RecordError(
                f"{self.source}: row {row + 1:,} of column {shown(name)} contains "
                f"{shown(cells.iloc[row])}, and a list or an object is not a name; name a "
                f"column of texts or numbers by `{role}`, or rename or drop this one"
            )
        return as_text(cells)

    def ids(self) -> str:
        """Return whether ids are numbers or texts; reject ids that are both, such as 1 and "1"."""
        (name,) = self.columns.items
        column = self.frame[name]
        if pd.api.types.is_numeric_dtype(column):
            return "numbers"
        if column.dtype == object:
            texts = {one for one in column if isinstance(one, str)}
            others = {str(one) for one in column if not isinstance(one, str)}
            if both := texts & others:
                raise RecordError(
                    f"{self.source}: column {shown(name)} contains the id {min(both)} both as a "
                    "number and as a text; convert the column to one type, such as "
                    f"frame[{shown(name)}].astype(str)"
                )
            return "" if others else "texts"
        return "texts"

    def samples(self, notes: list[str], models: Iterable[str] = ()) -> pd.DataFrame:
        """Return all columns except scores."""
        frame, (roles, items) = self.frame, self.columns
        for role in {*roles} & {"task", "model", "form", "repeat"}:
            self.names_in(roles[role], role)
        read: dict[str, Callable[[pd.Series], pd.Series]] = {
            **dict.fromkeys(("task", "model", "form"), as_text),
            "repeat": _whole_numbers,
            "prediction": _answers,
            "question": text_or_none,
            "references": partial(_references, separator=self.given.reference_separator),
        }
        parts = {"item": self.items()} | {
            role: how(frame[roles[role]])
            for role, how in read.items()
            if role in roles and (role == "question" or roles[role] not in items)
        }
        errors, ends = [*self.errors(notes)], find_column("finish_reason", self.names)
        if ends is not None and "prediction" in parts:
            stated = text_or_none(frame[ends])
            is_answer = stated.map(server_end).isin(("stop", "length"))
            is_answer |= stated.isin(_ANSWER_ENDS) & is_answered(parts["prediction"])
            parts["prediction"] = parts["prediction"].where(is_answer, None)
            failed = (f"{REQUEST}: finish_reason is " + stated).where(~is_answer, None)
            errors.append(failed)
        for messages in errors:
            known = parts.get("error", messages)
            parts["error"] = known.where(known.notna(), messages)
        if "question" in parts or "references" in parts:
            hashed = content_of(parts.get("question"), parts.get("references"), len(frame))
            parts["content"] = pd.Series(hashed, index=frame.index)
        kept = {*self.given.cluster, *(items if len(items) > 1 else ())}
        further = {*self.names} - {*roles.values(), *items, *models} | kept
        samples = pd.DataFrame(
            parts
            | {
                further_name(name): frame[name]
                for name in self.names
                if name in further and not self.is_nested(name)
            }
        )
        return without_failed_answers(samples) if self._may_have_failed() else samples

    def is_nested(self, name: str) -> bool:
        """Check whether a column contains a cell that is neither a label nor a list of labels."""
        cells = self.frame[name]
        return cells.dtype == object and not all(map(is_labels, cells))

    def errors(self, notes: list[str]) -> Iterator[pd.Series]:
        """Read the columns of errors, except those that are scores, or 1 minus the score."""
        score = self.columns.roles.get("score")
        taken = {score, *self.given.metrics}
        usual = ERRORS if self.given.error is None else (self.columns.roles["error"],)
        for name in usual:
            column = find_column(name, self.names)
            if column is None or column in taken:
                continue
            cells, is_named = self.frame[column], self.given.error is not None
            if score and not is_named and _is_complement(cells, self.frame[score]):
                notes.append(
                    f"{self.source}: column {shown(column)} is 1 for each incorrect answer and 0 "
                    "for the others, so that it is read as a measure; if it records failed "
                    "requests, leave the scores of these rows empty"
                )
                continue
            messages = _errors(cells)
            is_scorer = messages.notna() & (name in SCORER_ERRORS)
            yield messages.mask(is_scorer, f"{SCORER}: " + messages)

    def _may_have_failed(self) -> bool:
        """Return whether the answers of a table may contain texts that mark a failure."""
        import pyarrow as pa

        role = self.columns.roles.get("prediction")
        if role is None or not isinstance(self.frame[role].dtype, pd.StringDtype):
            return role is not None
        return has_failed_answers(pa.array(self.frame[role]))


def plain_metric(
    schema: pd.DataFrame, columns: TableColumns, given: ResultColumns, source: str
) -> str | None:
    """Return the column of scores of a long table, by the types of its columns.

    Args:
        schema: The table without its rows.
        columns: Roles of its columns.
        given: Names of columns that the user gives.
        source: The file, for messages.

    Returns:
        The column; None if there may be several, if columns may be models, or if the types are not
        sufficient.
    """
    table = _Table(schema, columns, given, source, for_judging=False)
    usual = [find_column(name, table.names) for name in (*USUAL["score"], given.score or "")]
    there = [name for name in usual if name is not None and name not in columns.items]
    if "score" not in columns.roles or table.models([]):
        return None
    if not all(pd.api.types.is_numeric_dtype(schema[name]) for name in there):
        return None
    metrics = table.metrics([])
    return metrics[0] if len(metrics) == 1 else None


def further_name(name: str) -> str:
    """Return the name of a further column, with a prefix if it is one of `COLUMNS`."""
    return f"row.{name}" if name in COLUMNS else name


def content_of(question: pd.Series | None, references: pd.Series | None, n_rows: int) -> np.ndarray:
    """Return hashes of the questions, by which different questions with one name are detected.

    Args:
        question: Questions; None if the file has none.
        references: Tuples of accepted answers; None if the file has none.
        n_rows: Rows of the file.

    Returns:
        One uint64 per row, equal on every machine; 0 if both are missing.
    """
    total = np.zeros(n_rows, dtype=np.uint64)
    there = np.zeros(n_rows, dtype=bool)
    if question is not None:
        there |= question.notna().to_numpy()
        total += hashes(as_text(question))
    if references is not None:
        codes, uniques = pd.factorize(references)
        texts = pd.Series(["\x1f".join(one) for one in uniques], dtype="str")
        there |= (texts != "").to_numpy()[codes]
        total += hashes(texts)[codes] * _ODD
    return np.where(there, np.maximum(total, 1), np.uint64(0)).astype(np.uint64)


def hashes(texts: pd.Series) -> np.ndarray:
    """Return hashes of texts as uint64, equal on every machine."""
    return pd.util.hash_array(texts.to_numpy(dtype=object), categorize=False)


def as_text(column: pd.Series) -> pd.Series:
    """Return a column as text, integers without a point, missing values as empty text."""
    if isinstance(column.dtype, pd.StringDtype):
        return column.fillna("")
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype("str").where(column.notna(), "").astype("str")


def text_or_none(column: pd.Series, *, blank: bool = False) -> pd.Series:
    """Read a column as text or None.

    Args:
        column: Any values.
        blank: Whether an empty cell is "" instead of None, as for answers.

    Returns:
        Texts and None.
    """
    texts = as_text(column).astype(object)
    is_missing = column.isna() if blank else column.isna() | (texts == "")
    return texts.where(~is_missing, None)


class Unread(str):
    """Text of a cell that cannot be read as references or as an answer; no rule uses it."""

    __slots__ = ()


UNREAD: Final = "unread_prediction"
"""Column of the unreadable predictions, which exists only if there are any."""


def read_answer(value: object) -> str | None:
    """Read an answer. If it cannot be read no error is raised, because it may not be needed.

    Args:
        value: The cell.

    Returns:
        The answer; None if there is none; an `Unread` if the cell cannot be read.
    """
    try:
        return answer_of(value)
    except ValueError:
        return Unread(writable(str(value)))


def without_unread(
    samples: pd.DataFrame, source: str, notes: list[str], *, for_judging: bool
) -> pd.DataFrame:
    """Move the unreadable predictions to a separate column, and report them.

    Args:
        samples: Samples.
        source: The file, for the message.
        notes: List to which the sentence is added.
        for_judging: Whether the answers are needed.

    Returns:
        The samples, with the column `UNREAD` if there are any.

    Raises:
        RecordError: If there are unreadable predictions and the answers are needed.
    """
    if UNREAD not in samples:
        texts = samples.get("prediction", pd.Series(dtype=object))
        is_unread = np.array([type(text) is Unread for text in texts.tolist()], dtype=bool)
        if not is_unread.any():
            return samples
        unread = texts.where(is_unread, None)
        samples = samples.assign(**{"prediction": texts.mask(is_unread, None), UNREAD: unread})
    problem = f"{source}: {unread_problem(samples[UNREAD])}"
    if for_judging:
        raise RecordError(problem)
    notes.append(f"{problem}; they are read as missing")
    return samples


def _without_answered_errors(samples: pd.DataFrame, source: str, notes: list[str]) -> pd.DataFrame:
    """Keep the scores of rows that have both an answer and an error, and report them."""
    if not {"prediction", "error"} <= {*samples}:
        return samples
    errors = samples["error"]
    is_kept = is_answered(samples["prediction"]) & errors.notna()
    is_kept &= ~errors.str.startswith((REQUEST, SCORER), na=False)
    if not is_kept.any():
        return samples
    notes.append(
        f"{source}: {is_kept.sum():,} of {len(samples):,} rows have an answer and an error, such "
        f"as {shown(errors[is_kept].iloc[0])}; their scores count"
    )
    return samples.assign(error=errors.mask(is_kept, None))


def _is_complement(errors: pd.Series, scores: pd.Series) -> bool:
    """Check whether a column of errors is 1 for each incorrect answer, and 0 for the others."""
    (values, is_text), (labels, is_other) = _as_numbers(errors), _as_numbers(scores)
    is_opposite = not (is_text | is_other).any() and bool((values == 1.0 - labels).all())
    # If the column has only one value, all requests may have failed.
    return is_opposite and {*values} == {0.0, 1.0}


def is_answered(answers: pd.Series) -> pd.Series:
    """Return which cells of a column of answers are texts that are not blank."""
    return answers.notna() & (answers.astype(object).astype("str").str.strip() != "")


def unread_problem(texts: pd.Series) -> str:
    """Describe the unreadable predictions of a column `UNREAD`."""
    unread = texts.dropna()
    return (
        f"{len(unread):,} of {len(texts):,} predictions are lists or objects that are not one "
        f"text, first {shown(str(unread.iloc[0]))}; write one text per row, several samples of a "
        "prompt as rows with a column `repeat`, or name another column by `prediction`"
    )


def references_of(value: object, separator: str | None) -> tuple[str, ...]:
    """Read accepted answers. If they cannot be read no error is raised, as for `read_answer`.

    Args:
        value: The cell.
        separator: As for `answers_of`.

    Returns:
        The answers, without lone surrogates; an `Unread` if the cell cannot be read.
    """
    for is_repaired in (False, True):
        with suppress(ValueError):
            return answers_of(writable(value) if is_repaired else value, separator)
    return (Unread(writable(str(value))),)


def _answers(column: pd.Series) -> pd.Series:
    """Read a column of answers: text, None, or an `Unread`."""
    if column.dtype == object and not {*map(type, column)} <= {str, type(None)}:
        read = [read_answer(value) for value in column]
        return pd.Series(read, index=column.index, dtype=object)
    return text_or_none(column, blank=True)


def _errors(column: pd.Series) -> pd.Series:
    """Read messages of errors; None for a cell without an error, and for a measured error."""
    texts = text_or_none(column)
    texts = texts.mask(texts.str.strip().str.casefold().isin(_NO_ERRORS), None)
    numbers = pd.to_numeric(texts.dropna(), errors="coerce")
    # Whole numbers from 400 to 599 are codes of failed requests.
    is_code = (numbers == 1) | (numbers.between(400, 599) & (numbers % 1 == 0))
    if numbers.notna().all() and not is_code.all():
        return pd.Series(None, index=column.index, dtype=object)
    return texts


def _references(column: pd.Series, separator: str | None) -> pd.Series:
    """Read a column of accepted answers, each text once."""
    if not isinstance(column.dtype, pd.StringDtype):
        values = [references_of(value, separator) for value in column]
        return pd.Series(values, index=column.index)
    codes, uniques = pd.factorize(column)
    known = [references_of(text, separator) for text in uniques]
    read = np.empty(len(known) + 1, dtype=object)
    read[:-1], read[-1] = known, ()
    return pd.Series(read[codes], index=column.index)


def _whole_numbers(column: pd.Series) -> pd.Series:
    """Read numbers of repeats; labels that are not numbers are numbered in their order."""
    column = as_text(column).where(column.notna())
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.notna().all() and (numbers % 1 == 0).all() and (numbers.abs() < 2**63).all():
        return numbers.astype("int64")
    return pd.Series(pd.factorize(column, sort=True)[0].astype("int64"), index=column.index)


def _is_number(column: pd.Series) -> bool:
    """Return whether a column has scores: numbers, truth values or their text, at least one."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return True
    values, is_broken = _as_numbers(column)
    return not is_broken.any() and bool(np.isfinite(values).any())


def _is_binary(column: pd.Series) -> bool:
    """Return whether a column contains only 0 and 1."""
    values, _ = _as_numbers(column)
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())


def _as_numbers(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Read scores as numbers, NaN if missing, and return which cells are not valid."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        return numbers, np.isinf(numbers)
    known = _cast(column)
    if known is not None:
        return known, np.zeros(len(column), dtype=bool)
    codes, cells = np.arange(len(column)), column.tolist()
    if column.dtype != object:
        codes, uniques = pd.factorize(column)
        cells = uniques.tolist()
    read = [*map(number_of, cells), float("nan")]
    numbers = np.array([np.nan if value is None else value for value in read])
    return numbers[codes], np.array([value is None for value in read])[codes]


def _cast(column: pd.Series) -> np.ndarray | None:
    """Convert a column of text that contains only numbers; None if there is other text."""
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
        value: A number, True or False, their text, or a missing score: None, NaN or empty text.

    Returns:
        The number, NaN for a missing score; None for a value that is not a score, such as a list, a
        word, or an infinite number.
    """
    if value is None or value is pd.NA:
        return float("nan")
    word = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(word, str):
        if not word or word in _WORDS:
            return _WORDS.get(word, float("nan"))
        # Python reads "1_000" and digits of other scripts as numbers; tools do not write these.
        word = word if word.isascii() and "_" not in word else ""
    try:
        number = float(word) if isinstance(word, _SCORES) else math.inf
    except (ValueError, OverflowError):
        return None
    return None if math.isinf(number) else number
