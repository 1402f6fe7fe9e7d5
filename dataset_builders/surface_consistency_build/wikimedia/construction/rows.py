"""One row of a built data set, and its Parquet file."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ConfigDict, Field, ValidationError

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency_build.wikimedia.construction._arrow import TableWriter

_ROWS_AT_ONCE = 10_000


class BuiltRow(Record):
    """A fact under one surface form in one wording.

    The first fifteen columns are those that this package writes for RedirectQA v1.0.0
    everywhere; readers of that layout read these rows as they are.
    """

    # The card shows what each column is.
    model_config = ConfigDict(use_attribute_docstrings=True)

    triplet_id: int = Field(ge=0)
    """Number of the fact: its rank among the candidate triples, whatever the sample."""

    subject_id: str | None
    """Wikidata item of the subject."""

    subject_surface: NonEmpty
    """Name of the subject in the question."""

    subject_surface_category: Items[str]
    """Redirect categories; "__MAIN__" when the subject's name is canonical."""

    subject_wiki_title: NonEmpty
    """Title of the subject's article, with spaces."""

    subject_redirect_wiki_title: str | None
    """Title of the redirect page that names the subject, with underscores; None when canonical."""

    subject_pageviews: int | None = Field(ge=0)
    """Views of the subject's article over the period."""

    subject_aliases: Items[str]
    """Names of the subject: label, title, aliases, and redirects in the wanted categories."""

    relation: NonEmpty
    """Name of the relation."""

    relation_id: str | None
    """Its Wikidata property."""

    object_id: str | None
    """Wikidata item of the gold object."""

    object_surface: str | None
    """Name of the object: its label."""

    object_aliases: Items[str]
    """Accepted answers, `object_surface` first."""

    template: NonEmpty
    """Which wording of the question."""

    question: NonEmpty
    """The question."""

    object_surface_category: Items[str]
    """As `subject_surface_category`, for the object."""

    object_wiki_title: str | None
    """Title of the object's article, with spaces; None when not known."""

    object_redirect_wiki_title: str | None
    """As `subject_redirect_wiki_title`, for the object: None, since its name does not vary."""

    object_pageviews: int | None = Field(ge=0)
    """Views of the object's article over the period."""

    redirect_pageviews: int | None = Field(ge=0)
    """Views of the redirect page's own title over the period; None when canonical."""

    n_objects: int | None = Field(ge=1)
    """Right objects of the question in Wikidata; all of them are accepted; None when not known."""


def read_rows(path: str | os.PathLike[str]) -> Iterator[BuiltRow]:
    """Read the rows of a build, each checked against its record.

    Args:
        path: The Parquet file that a build wrote.

    Yields:
        The rows in the file's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a row breaks its record; names row, field and value.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"no rows {file}; build them first")
    number = 0
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches():
            for row in batch.to_pylist():
                try:
                    yield BuiltRow.model_validate(row)
                except ValidationError as error:
                    message = describe_validation_error(error)
                    raise RecordError(f"{file}, row {number}: {message}") from error
                number += 1


def row_schema() -> pa.Schema:
    """Return the Arrow schema of built rows: the fields of `BuiltRow` in their order."""
    kinds: dict[Any, Any] = {
        int: pa.int64(),
        int | None: pa.int64(),
        tuple[str, ...]: pa.list_(pa.string()),
    }
    fields = BuiltRow.model_fields.items()
    return pa.schema([(name, kinds.get(field.annotation, pa.string())) for name, field in fields])


def write_rows(path: Path, rows: Iterable[BuiltRow]) -> int:
    """Check rows against their record, and write them; equal rows give equal bytes.

    Args:
        path: The file.
        rows: The rows.

    Returns:
        The number of rows.

    Raises:
        RecordError: If a row is no `BuiltRow`.
    """
    schema = row_schema()
    n_rows = 0
    source = iter(rows)
    with TableWriter(path, schema, use_dictionary=True) as writer:
        while taken := list(islice(source, _ROWS_AT_ONCE)):
            content = [_checked(row).model_dump() for row in taken]
            n_rows += len(taken)
            writer.write(pa.RecordBatch.from_pylist(content, schema=schema))
    return n_rows


def _checked(row: BuiltRow) -> BuiltRow:
    """Validate a row that was put together from parts."""
    try:
        return BuiltRow.model_validate(row.__dict__)
    except ValidationError as error:
        message = describe_validation_error(error)
        raise RecordError(f"fact {row.triplet_id}: {message}") from error
