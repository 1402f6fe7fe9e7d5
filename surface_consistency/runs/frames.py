"""Frames of records: columns, types and Parquet files are derived from the record class."""

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
"""The dtype of columns of text: `str` since pandas 3, before that `object`, which keeps None."""
_ROW_GROUP: Final = 65_536
_ROWS_AT_ONCE: Final = 8_192


@cache
def arrow_schema(record: type[Record]) -> pa.Schema:
    """Derive the columns of a file from its record.

    Args:
        record: The record class. Strings (including literals), integers, floats and booleans become
            scalars, tuples become lists, records become structures; a field is nullable if its
            annotation allows None.

    Returns:
        The schema, in the order of the fields.

    Raises:
        TypeError: If a field has a type that a column cannot have; names the field.
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
        TypeError: If a column cannot have this type.
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
        f"{where}: a column cannot have the type {annotation}; use str, int, float, bool, a tuple "
        "of one type, a record, or one of these or None"
    )


def make_frame(columns: Mapping[str, Any], record: type[Record]) -> pd.DataFrame:
    """Make a frame with the types of a record from columns.

    Args:
        columns: Values by field, (n_rows,) each; a single value is used for all rows.
        record: The record class; every field needs a column, and other columns are an error.

    Returns:
        The frame, columns in the order of the fields: nullable booleans and integers, floats with
        NaN for missing values.

    Raises:
        ColumnNotFoundError: If a field has no column.
        DataError: If a column belongs to no field, or its field does not allow a value of it.
    """
    # Missing values would convert integers to floats, in which those above 2**53 lose digits.
    values = {
        name: pd.array(column, dtype="Int64") if _is_whole(column) else column
        for name, column in columns.items()
    }
    return _typed(pd.DataFrame(values), record, record.__name__)


def shared_lists(column: pa.ChunkedArray) -> list[tuple[str, ...] | None]:
    """Convert a column of lists of strings to tuples; equal tuples are one object.

    Args:
        column: The column; equal lists, such as those of the rows of a fact, are stored once.

    Returns:
        One tuple per row, None for a missing list.
    """
    known: dict[tuple[str, ...] | None, tuple[str, ...] | None] = {None: None}
    rows: list[tuple[str, ...] | None] = []
    for start in range(0, len(column), _ROWS_AT_ONCE):
        for texts in python_values(column.slice(start, _ROWS_AT_ONCE)):
            item = None if texts is None else tuple(texts)
            rows.append(known.setdefault(item, item))
    return rows


def write_frame(path: Path, frame: pd.DataFrame, record: type[Record]) -> None:
    """Write a frame as Parquet rows of a record; the file is written atomically.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        frame: Rows with the columns of the record, and no other columns.
        record: The record class.

    Raises:
        ColumnNotFoundError: If a field has no column.
        DataError: If a column belongs to no field or its field does not allow a value; names it.
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
        remedy: Remedy if the file is missing or invalid, for messages.
        only: Whether columns that belong to no field are ignored, rather than an error.

    Returns:
        The frame, typed as by `make_frame`.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a field has no column.
        DataError: If it is not a Parquet file, a column belongs to no field, or its field does not
            allow a value of it.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"{path.parent} has no {path.name}; {remedy}")
    try:
        with open_parquet(path) as file:
            table = file.read(columns=[*record.model_fields] if only else None)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}); {remedy}") from error
    frame = table.to_pandas(ignore_metadata=True)
    types_of = dict(zip(table.column_names, table.schema.types, strict=False))
    for field in arrow_schema(record):
        kind = types_of.get(field.name, field.type)
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if pa.types.is_string(field.type) and not (is_text or pa.types.is_null(kind)):
            raise DataError(
                f"{path} ({remedy}): column {shown(field.name)} has values that {record.__name__} "
                f"does not allow: {kind} instead of text"
            )
        if types_of.get(field.name) == field.type == pa.list_(pa.string()):
            # Equal lists are one object, so grouping by them is fast.
            frame[field.name] = pd.Series(shared_lists(table[field.name]), dtype=object)
        if types_of.get(field.name) == field.type == pa.int64():
            # Missing values convert integers to floats, in which those above 2**53 lose digits.
            frame[field.name] = table[field.name].to_pandas(
                types_mapper={pa.int64(): pd.Int64Dtype()}.get
            )
    return _typed(frame, record, f"{path} ({remedy})")


def check_frame(
    frame: pd.DataFrame, record: type[Record], where: str, *, is_whole: bool = True
) -> None:
    """Raise an error if columns do not have the types of a record; further columns are allowed.

    Args:
        frame: The frame.
        record: The record: the type of each column, with None if it may be missing.
        where: Description of the frame, for messages.
        is_whole: Whether every column is required; otherwise only existing columns are checked.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column has a value that its field does not allow; names it.
    """
    if is_whole:
        _reject_missing(frame, record, where)
    for field in arrow_schema(record):
        if field.name in frame:
            _check_values(frame[field.name], field, where)
            _array(frame[field.name], field, f"{where}: column {shown(field.name)}", record)


def check_rows(table: pa.Table, record: type[Record], where: str) -> None:
    """Raise an error if stored rows do not match a record; further columns are allowed.

    Args:
        table: The rows.
        record: The record class; its first field is an id.
        where: The file, for messages.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If a column has another type, an empty cell that its field does not allow, or a
            repeated id; names the column.
    """
    _reject_missing(table.column_names, record, where, only_required=True)
    for field in arrow_schema(record):
        if field.name not in table.column_names:
            continue
        found = table.schema.field(field.name).type
        text = str(found).replace("large_", "").replace("element", "item").replace("null", "string")
        if text != str(field.type).replace("element", "item") and not pa.types.is_null(found):
            raise DataError(
                f"{where}: column {shown(field.name)} has the type {found}, but "
                f"{record.__name__} has {field.type}"
            )
        if not field.nullable and (column := table[field.name]).null_count:
            row = column.is_null().index(True).as_py()
            raise DataError(
                f"{where}: column {shown(field.name)} is empty in row {row}; each row needs it"
            )
    name = next(iter(record.model_fields))
    reject_repeated(table.select([name]).to_pandas(), record, where)


def reject_repeated(frame: pd.DataFrame, record: type[Record], where: str) -> None:
    """Raise an error if an id is repeated.

    Args:
        frame: The rows.
        record: The record class; its first field is the id.
        where: Description of the rows, for messages.

    Raises:
        DataError: If two rows have the same id; names it.
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
        raise DataError(
            f"{where} has values that {record.__name__} does not allow: {error}"
        ) from error


def _is_whole(column: object) -> bool:
    """Return whether a column is a list of integers with missing values."""
    return isinstance(column, list | tuple) and {type(v) for v in column} == {int, type(None)}


def _reject_missing(
    columns: Iterable[object], record: type[Record], where: str, *, only_required: bool = False
) -> None:
    """Raise an error if columns are missing, or only those without a default."""
    there, fields = list(columns), record.model_fields.items()
    needed = (name for name, one in fields if one.is_required() or not only_required)
    missing = [name for name in needed if name not in there]
    if missing:
        raise ColumnNotFoundError(
            f"{where}: no column {', '.join(map(shown, missing))} of {record.__name__}. Columns: "
            f"{first_names([*map(shown, there)])}"
        )


def _check_columns(frame: pd.DataFrame, record: type[Record], where: str) -> None:
    """Raise an error for missing columns, and for columns that the record does not have."""
    _reject_missing(frame, record, where)
    foreign = [str(name) for name in frame.columns if name not in record.model_fields]
    if foreign:
        raise DataError(
            f"{where}: column {', '.join(map(shown, foreign))} is not a field of "
            f"{record.__name__}; declare it in the record, or drop it"
        )


def _typed(frame: pd.DataFrame, record: type[Record], where: str) -> pd.DataFrame:
    """Convert the columns of a frame to the order and types of a record."""
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
                f"{where}: column {shown(field.name)} has values that {record.__name__} does not "
                f"allow: {error}"
            ) from error
    return pd.DataFrame(typed, columns=list(schema.names))


def _check_values(column: pd.Series, field: pa.Field, where: str) -> None:
    """Raise an error for missing values of a required field, and for labels that are not lists."""
    if pa.types.is_list(field.type):
        strange = [
            value for value in column if isinstance(value, str) or not hasattr(value, "__len__")
        ]
        if strange:
            raise DataError(
                f"{where}: column {shown(field.name)} must contain lists of labels, got "
                f"{shown(strange[0])}"
            )
    elif not field.nullable and column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise DataError(f"{where}: column {field.name!r} is empty in row {row}; each row needs it")
