"""Frames of records: their columns, types and Parquet files derived from the record class."""

import types
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.reading import first_names, shown
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.rows.readers import python_values
from surface_consistency.schemas._record import Record
from surface_consistency.schemas.jsonl import atomic_path

_SCALARS: Final = {bool: pa.bool_(), float: pa.float64(), int: pa.int64(), str: pa.string()}
_DTYPES: Final = {pa.bool_(): "boolean", pa.int64(): "Int64", pa.float64(): "float64"}
TEXT: Final = pd.Series([""]).dtype
"""The type of columns of text: `str` from pandas 3 on, before that `object`, which keeps None."""
_ROW_GROUP: Final = 65_536
_ROWS_AT_ONCE: Final = 8_192


@cache
def arrow_schema(record: type[Record]) -> pa.Schema:
    """Derive the columns of a file from its record.

    Args:
        record: The record class. Strings (literal ones too), whole numbers, floats and booleans
            become scalars, tuples lists, records structures; a field is nullable where its
            annotation allows None.

    Returns:
        The schema, in the order of the fields.

    Raises:
        TypeError: If a field has a type that no column can hold; names the field.
    """
    return pa.schema(
        [
            pa.field(
                name,
                arrow_type(field.annotation, f"{record.__name__}.{name}"),
                nullable=type(None) in get_args(field.annotation),
            )
            for name, field in record.model_fields.items()
        ]
    )


def arrow_type(annotation: object, where: str) -> pa.DataType:
    """Map the annotation of a field to a column type.

    Args:
        annotation: The annotation.
        where: Name of the field, for the error.

    Returns:
        The type of the column.

    Raises:
        TypeError: If no column can hold it.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return arrow_type(arguments[0], where)
    if origin in {Union, types.UnionType}:
        options = [option for option in arguments if option is not type(None)]
        if len(options) == 1:
            return arrow_type(options[0], where)
    elif origin is Literal and all(isinstance(value, str) for value in arguments):
        return pa.string()
    elif origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return pa.list_(arrow_type(arguments[0], where))
    elif isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    elif isinstance(annotation, type) and issubclass(annotation, Record):
        return pa.struct(list(arrow_schema(annotation)))
    raise TypeError(
        f"no column can hold {where}: {annotation}; use str, int, float, bool, a tuple of one "
        "type, a record, or one of these or None"
    )


def make_frame(columns: Mapping[str, Any], record: type[Record]) -> pd.DataFrame:
    """Gather columns into a frame with the types of a record.

    Args:
        columns: Values by field, (n_rows,) each; a single value stands for all rows.
        record: The record class; every field needs a column, and there is no other.

    Returns:
        The frame, columns in the order of the fields: booleans and whole numbers nullable, floats
        with NaN where they are missing.

    Raises:
        ColumnNotFoundError: If a field has no column.
        DataError: If a column is of no field, or holds what its field does not allow.
    """
    # As floats, which gaps would make of them, whole numbers above 2**53 lose their last digits.
    values = {
        name: pd.array(column, dtype="Int64") if _is_whole(column) else column
        for name, column in columns.items()
    }
    return _typed(pd.DataFrame(values), record, record.__name__)


def shared_lists(column: pa.ChunkedArray) -> list[tuple[str, ...] | None]:
    """Convert a column of lists of strings to tuples, of which equal ones are one object.

    Args:
        column: The column; what the rows of a fact have in common takes the room of one row.

    Returns:
        A tuple a row, None where it is missing.
    """
    known: dict[tuple[str, ...] | None, tuple[str, ...] | None] = {None: None}
    rows: list[tuple[str, ...] | None] = []
    for start in range(0, len(column), _ROWS_AT_ONCE):
        for texts in python_values(column.slice(start, _ROWS_AT_ONCE)):
            item = None if texts is None else tuple(texts)
            rows.append(known.setdefault(item, item))
    return rows


def write_frame(path: Path, frame: pd.DataFrame, record: type[Record]) -> None:
    """Write a frame as Parquet rows of a record; the file appears whole or not at all.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        frame: Rows with the columns of the record, and no other.
        record: The record class.

    Raises:
        ColumnNotFoundError: If a field has no column.
        DataError: If a column is of no field or holds what its field does not allow; names it.
    """
    schema = arrow_schema(record)
    _check_columns(frame, record, f"the rows of {path.name}")
    arrays = []
    for field in schema:
        array = _array(frame[field.name], field, f"column {shown(field.name)}", record)
        if array.null_count and not field.nullable:
            row = array.is_null().index(True).as_py()
            raise DataError(
                f"column {shown(field.name)} of {record.__name__} is empty in row {row}; each row "
                "needs it"
            )
        arrays.append(array)
    with atomic_path(path) as part:
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), part, row_group_size=_ROW_GROUP)


def read_frame(
    path: Path, record: type[Record], *, remedy: str, only: bool = False
) -> pd.DataFrame:
    """Read the rows of a record and check their columns.

    Args:
        path: The Parquet file.
        record: The record class.
        remedy: What to do when the file is missing or broken, for messages.
        only: Whether columns of no field are left unread, rather than refused.

    Returns:
        The frame, typed as by `make_frame`.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a field has no column.
        DataError: If it is no Parquet file, a column is of no field, or holds what its field does
            not allow.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"{path.parent} has no {path.name}; {remedy}")
    try:
        with open_parquet(path) as file:
            table = file.read(columns=[*record.model_fields] if only else None)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}); {remedy}") from error
    frame = table.to_pandas(ignore_metadata=True)
    held = dict(zip(table.column_names, table.schema.types, strict=False))
    for field in arrow_schema(record):
        kind = held.get(field.name, field.type)
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if pa.types.is_string(field.type) and not (is_text or pa.types.is_null(kind)):
            raise DataError(
                f"{path} ({remedy}): column {shown(field.name)} holds what {record.__name__} does "
                f"not allow: {kind} instead of text"
            )
        if held.get(field.name) == field.type == pa.list_(pa.string()):
            # Equal lists are one object, which those who group by them need not read again.
            frame[field.name] = pd.Series(shared_lists(table[field.name]), dtype=object)
        if held.get(field.name) == field.type == pa.int64():
            # As floats, which gaps make of them, whole numbers above 2**53 lose digits.
            frame[field.name] = table[field.name].to_pandas(
                types_mapper={pa.int64(): pd.Int64Dtype()}.get
            )
    return _typed(frame, record, f"{path} ({remedy})")


def check_frame(
    frame: pd.DataFrame, record: type[Record], where: str, *, is_whole: bool = True
) -> None:
    """Refuse a frame whose columns are not those that a record declares; further ones may stand.

    Args:
        frame: The frame.
        record: What is declared: the type of each column, and by None where it may be missing.
        where: What the frame is, for messages.
        is_whole: Whether every column must be there; without, those that are there are checked.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column holds what its field does not allow; names it.
    """
    if is_whole:
        _refuse_missing(frame, record, where)
    for field in arrow_schema(record):
        if field.name in frame:
            _check_values(frame[field.name], field, where)
            _array(frame[field.name], field, f"{where}: column {shown(field.name)}", record)


def check_rows(table: pa.Table, record: type[Record], where: str) -> None:
    """Refuse stored rows that are not those of a record; further columns may be there.

    Args:
        table: The rows.
        record: The record class; its first field is an id.
        where: The file, for messages.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column has another type, an empty cell that its field does not allow, or an
            id twice; names the column.
    """
    _refuse_missing(table.column_names, record, where, only_required=True)
    for field in arrow_schema(record):
        if field.name not in table.column_names:
            continue
        held = table.schema.field(field.name).type
        plain = str(held).replace("large_", "").replace("element", "item").replace("null", "string")
        if plain != str(field.type).replace("element", "item") and not pa.types.is_null(held):
            raise DataError(
                f"{where}: column {shown(field.name)} has the type {held}, where "
                f"{record.__name__} has {field.type}"
            )
        if not field.nullable and (column := table[field.name]).null_count:
            row = column.is_null().index(True).as_py()
            raise DataError(
                f"{where}: column {shown(field.name)} is empty in row {row}; each row needs it"
            )
    name = next(iter(record.model_fields))
    refuse_repeated(table.select([name]).to_pandas(), record, where)


def refuse_repeated(frame: pd.DataFrame, record: type[Record], where: str) -> None:
    """Refuse rows of one id.

    Args:
        frame: The rows.
        record: The record class; its first field is the id.
        where: What the rows are, for messages.

    Raises:
        DataError: If two rows have one id; names it.
    """
    name = next(iter(record.model_fields))
    if (repeated := frame[name].duplicated()).any():
        again = shown(frame.loc[repeated, name].iloc[0])
        raise DataError(
            f"{where}: column {name!r} has {again} more than once; each row needs its own"
        )


def _array(column: pd.Series, field: pa.Field, where: str, record: type[Record]) -> pa.Array:
    """Convert a column to the type of its field."""
    try:
        return pa.array(column, type=field.type, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{where} holds what {record.__name__} does not allow: {error}") from error


def _is_whole(column: object) -> bool:
    """Tell whether a column is a list of whole numbers, some of them missing."""
    return isinstance(column, list | tuple) and {type(v) for v in column} == {int, type(None)}


def _refuse_missing(
    columns: Iterable[object], record: type[Record], where: str, *, only_required: bool = False
) -> None:
    """Refuse a frame that lacks columns, or those without a default."""
    there, fields = list(columns), record.model_fields.items()
    needed = (name for name, one in fields if one.is_required() or not only_required)
    missing = [name for name in needed if name not in there]
    if missing:
        raise ColumnNotFoundError(
            f"{where}: no column {', '.join(map(shown, missing))} of {record.__name__}; there are "
            f"{first_names([*map(shown, there)])}"
        )


def _check_columns(frame: pd.DataFrame, record: type[Record], where: str) -> None:
    """Refuse columns that are missing, and columns that the record does not have."""
    _refuse_missing(frame, record, where)
    foreign = [str(name) for name in frame.columns if name not in record.model_fields]
    if foreign:
        raise DataError(
            f"{where}: column {', '.join(map(shown, foreign))} is no field of {record.__name__}; "
            "declare it in the record, or drop it"
        )


def _typed(frame: pd.DataFrame, record: type[Record], where: str) -> pd.DataFrame:
    """Give the columns of a frame the order and types of a record."""
    _check_columns(frame, record, where)
    schema = arrow_schema(record)
    typed = {}
    for field in schema:
        column, dtype = frame[field.name], _DTYPES.get(field.type)
        _check_values(column, field, where)
        try:
            if dtype is not None:
                typed[field.name] = column.astype(dtype)
            elif column.dtype == object and pa.types.is_string(field.type):
                typed[field.name] = column.astype(TEXT)
            else:
                typed[field.name] = column
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{where}: column {shown(field.name)} holds what {record.__name__} does not allow: "
                f"{error}"
            ) from error
    return pd.DataFrame(typed, columns=list(schema.names))


def _check_values(column: pd.Series, field: pa.Field, where: str) -> None:
    """Refuse gaps where a field needs a value, and labels that are no lists."""
    if pa.types.is_list(field.type):
        strange = [
            value for value in column if isinstance(value, str) or not hasattr(value, "__len__")
        ]
        if strange:
            raise DataError(
                f"{where}: column {shown(field.name)} must hold lists of labels, got "
                f"{shown(strange[0])}"
            )
    elif not field.nullable and column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise DataError(f"{where}: column {field.name!r} is empty in row {row}; each row needs it")
