"""Facts and their redirects to rows, and rows to Parquet."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from surface_consistency.errors import RecordError
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.taxonomy import CANONICAL_LABEL, RELATIONS
from surface_consistency.wikimedia.construction._arrow import TableWriter, import_arrow
from surface_consistency.wikimedia.construction._asked_facts import AskedFact, Redirect
from surface_consistency.wikimedia.construction.rows import BuiltRow
from surface_consistency.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "asked_in_each_wording",
    "object_rows",
    "plain_title",
    "row_schema",
    "subject_rows",
    "with_subject_redirect",
    "write_rows",
]

_ROWS_AT_ONCE = 10_000
_LISTS = (
    "subject_surface_category",
    "subject_aliases",
    "object_aliases",
    "object_surface_category",
)
_NUMBERS = (
    "triplet_id",
    "subject_pageviews",
    "object_pageviews",
    "redirect_pageviews",
    "n_objects",
)


def subject_rows(fact: AskedFact, config: WikiConfig) -> Iterator[BuiltRow]:
    """Ask a fact under its subject's canonical name and redirects.

    Args:
        fact: The fact.
        config: The wiki, for the questions.

    Yields:
        The canonical rows, then those of each redirect; one row a wording.
    """
    answers = tuple(dict.fromkeys(name for item in fact.objects for name in fact.names[item]))
    canonical = _canonical_row(fact, config, answers)
    yield from asked_in_each_wording(canonical, config)
    for redirect in fact.redirects:
        yield from asked_in_each_wording(with_subject_redirect(canonical, redirect), config)


def object_rows(fact: AskedFact, config: WikiConfig) -> Iterator[BuiltRow]:
    """Ask a fact once a name of its object; the question stays, the one accepted answer varies.

    Args:
        fact: The fact, with the redirects of its object.
        config: The wiki, for the questions.

    Yields:
        The rows of the object's canonical name, then those of each redirect; one row a wording.
    """
    name = fact.object.surface
    canonical = _canonical_row(fact, config, (name,))
    yield from asked_in_each_wording(canonical, config)
    for redirect in fact.redirects:
        yield from asked_in_each_wording(
            canonical.model_copy(
                update={
                    "object_surface": redirect.surface,
                    "object_aliases": (redirect.surface,),
                    "object_surface_category": redirect.labels,
                    "object_redirect_wiki_title": redirect.title,
                    "redirect_pageviews": redirect.views,
                }
            ),
            config,
        )


def with_subject_redirect(
    canonical: BuiltRow, redirect: Redirect, *, has_views: bool = True
) -> BuiltRow:
    """Name the subject of a canonical row by a redirect.

    Args:
        canonical: The row.
        redirect: The redirect.
        has_views: Whether views are known.

    Returns:
        The row; its question is still that of the canonical one.
    """
    return canonical.model_copy(
        update={
            "subject_surface": redirect.surface,
            "subject_surface_category": redirect.labels,
            "subject_redirect_wiki_title": redirect.title,
            "redirect_pageviews": redirect.views if has_views else None,
        }
    )


def plain_title(title: str) -> str:
    """Write a title with spaces, as the release writes those of articles."""
    return title.replace("_", " ")


def _canonical_row(fact: AskedFact, config: WikiConfig, answers: tuple[str, ...]) -> BuiltRow:
    """Make the row of the canonical names; its wording is filled in later."""
    relation = RELATIONS[config.properties[fact.property]]
    return BuiltRow(
        triplet_id=fact.triplet_id,
        subject_id=f"Q{fact.subject.entity}",
        subject_surface=fact.subject.surface,
        subject_surface_category=(CANONICAL_LABEL,),
        subject_wiki_title=plain_title(fact.subject.title),
        subject_redirect_wiki_title=None,
        subject_pageviews=fact.subject.views,
        subject_aliases=tuple(sorted(fact.names[fact.subject.entity])),
        relation=relation.name,
        relation_id=relation.property_id,
        object_id=f"Q{fact.object.entity}",
        object_surface=answers[0],
        object_aliases=answers,
        template="-",
        question="-",
        object_surface_category=(CANONICAL_LABEL,),
        object_wiki_title=plain_title(fact.object.title),
        object_redirect_wiki_title=None,
        object_pageviews=fact.object.views,
        redirect_pageviews=None,
        n_objects=len(fact.objects),
    )


def asked_in_each_wording(row: BuiltRow, config: WikiConfig) -> Iterator[BuiltRow]:
    """Word the question of a row in each way.

    Args:
        row: The row, whatever its question.
        config: The wiki.

    Yields:
        One row a wording; they are checked as they are written.
    """
    for template in config.question_templates:
        question = config.question(row.relation, row.subject_surface, template=template)
        yield row.model_copy(update={"template": template, "question": question})


def row_schema() -> "pa.Schema":
    """Return the Arrow schema of built rows: the fields of `BuiltRow` in their order."""
    pa = import_arrow()
    kinds = {name: pa.list_(pa.string()) for name in _LISTS}
    kinds |= {name: pa.int64() for name in _NUMBERS}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in BuiltRow.model_fields])


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
    pa = import_arrow()
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
