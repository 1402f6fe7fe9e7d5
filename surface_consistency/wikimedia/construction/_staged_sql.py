"""SQL tables to staged tables: batch by batch, wanted rows and columns only."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import DumpError
from surface_consistency.wikimedia.construction._arrow import (
    Tally,
    batch_of,
    import_arrow,
    surfaces_of,
    text_column,
)
from surface_consistency.wikimedia.construction._table_schemas import table_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["categorylinks_rows", "linktarget_rows", "page_rows", "props_rows", "redirect_rows"]

Batches = Iterator["pa.RecordBatch"]
ReadColumns = Callable[[Path, tuple[str, ...]], Batches]

_ARTICLES = 0
_CATEGORIES = 14
_OTHER_NAMESPACE = "outside the article namespace"


def page_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read articles and redirect pages off the `page` table."""
    pc = import_arrow().compute
    columns = ("page_id", "page_namespace", "page_title", "page_is_redirect")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        kept = _filter(batch, pc.equal(batch["page_namespace"], _ARTICLES), _OTHER_NAMESPACE, tally)
        kept, titles = text_column(kept, "page_title", tally)
        yield _counted(
            {
                "page_id": kept["page_id"],
                "title": titles,
                "surface": surfaces_of(titles),
                "is_redirect": pc.not_equal(kept["page_is_redirect"], 0),
            },
            "pages",
            tally,
        )


def redirect_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read every redirect; those that leave the wiki or name a section are told apart later."""
    pa = import_arrow()
    pc = pa.compute
    columns = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        kept, titles = text_column(batch, "rd_title", tally)
        yield _counted(
            {
                "page_id": kept["rd_from"],
                "target": titles,
                "target_namespace": kept["rd_namespace"],
                "is_interwiki": _is_given(pc, kept["rd_interwiki"]),
                "is_section": _is_given(pc, kept["rd_fragment"]),
            },
            "redirects",
            tally,
        )


def props_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read Wikidata items and disambiguation marks off the `page_props` table."""
    pa = import_arrow()
    pc = pa.compute
    wanted = pa.array([b"wikibase_item", b"disambiguation"], pa.binary())
    for batch in read(path, ("pp_page", "pp_propname", "pp_value")):
        tally.n_in += batch.num_rows
        names = batch["pp_propname"].cast(pa.binary())
        kept = _filter(batch, pc.is_in(names, wanted), "another property", tally)
        names = kept["pp_propname"].cast(pa.binary())
        is_item = pc.equal(names, b"wikibase_item")
        items = [
            _item_number(value) if of_item else None
            for value, of_item in zip(
                kept["pp_value"].to_pylist(), is_item.to_pylist(), strict=True
            )
        ]
        yield _counted(
            {
                "page_id": kept["pp_page"],
                "entity": pa.array(items, pa.int64()),
                "is_disambiguation": pc.invert(is_item),
            },
            "page_props",
            tally,
        )


def linktarget_rows(
    path: Path, read: ReadColumns, tally: Tally, *, categories: Mapping[str, str]
) -> Batches:
    """Read the numbers of the wanted categories off the `linktarget` table."""
    pa = import_arrow()
    pc = pa.compute
    labels = {title.encode("utf-8"): label for title, label in categories.items()}
    wanted = pa.array(sorted(labels), pa.binary())
    for batch in read(path, ("lt_id", "lt_namespace", "lt_title")):
        tally.n_in += batch.num_rows
        titles = batch["lt_title"].cast(pa.binary())
        mask = pc.and_(pc.equal(batch["lt_namespace"], _CATEGORIES), pc.is_in(titles, wanted))
        kept = _filter(batch, mask, "no wanted category", tally)
        found = [labels[title] for title in kept["lt_title"].cast(pa.binary()).to_pylist()]
        yield _counted(
            {"target_id": kept["lt_id"], "label": pa.array(found, pa.string())},
            "category_targets",
            tally,
        )


def categorylinks_rows(
    path: Path,
    read: ReadColumns,
    tally: Tally,
    *,
    columns: tuple[str, ...],
    categories: Mapping[str, str],
    targets: Mapping[int, str],
) -> Batches:
    """Read the members of the wanted categories off a `categorylinks` table of any schema.

    Args:
        path: The dump.
        read: Reads columns of it.
        tally: Where rows are counted.
        columns: Columns that the table has.
        categories: Category title to label, for `cl_to`.
        targets: Number of a link target to label, for `cl_target_id`.

    Yields:
        Rows of "categories".
    """
    pa = import_arrow()
    by_title = {title.encode("utf-8"): label for title, label in categories.items()}
    ways: list[tuple[str, Any, dict[Any, str]]] = []
    if "cl_to" in columns:
        ways.append(("cl_to", pa.binary(), by_title))
    if "cl_target_id" in columns:
        ways.append(("cl_target_id", pa.int64(), dict(targets)))
    if not ways:
        raise DumpError(
            f"{path}: its table has neither cl_to nor cl_target_id, but {', '.join(columns)}; "
            "give a dump of the categorylinks table"
        )
    for batch in read(path, ("cl_from", *(name for name, _, _ in ways))):
        tally.n_in += batch.num_rows
        labels = _labels(batch, ways)
        kept = labels.is_valid()
        tally.drop("no wanted category", batch.num_rows - pa.compute.sum(kept).as_py())
        yield _counted(
            {"page_id": batch["cl_from"].filter(kept), "label": labels.filter(kept)},
            "categories",
            tally,
        )


def _labels(batch: "pa.RecordBatch", ways: list[tuple[str, Any, dict[Any, str]]]) -> "pa.Array":
    """Look the category of each row up, by its title or else by its number."""
    pa = import_arrow()
    found = pa.nulls(batch.num_rows, pa.string())
    for name, kind, known in ways:
        keys = pa.array(list(known), kind)
        labels = pa.array(list(known.values()), pa.string())
        places = pa.compute.index_in(batch[name].cast(kind), keys)
        found = pa.compute.coalesce(found, labels.take(places))
    return found


def _filter(
    batch: "pa.RecordBatch", mask: "pa.Array", reason: str, tally: Tally
) -> "pa.RecordBatch":
    """Keep the rows that the mask holds."""
    kept = batch.filter(mask)
    tally.drop(reason, batch.num_rows - kept.num_rows)
    return kept


def _counted(columns: Mapping[str, Any], table: str, tally: Tally) -> "pa.RecordBatch":
    """Lay out the rows that stay, and count them."""
    batch = batch_of(columns, table_schema(table))
    tally.n_out += batch.num_rows
    return batch


def _is_given(pc: Any, column: "pa.Array") -> "pa.Array":  # noqa: ANN401  (a module has no type)
    """Tell where a text is neither NULL nor empty."""
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)


def _item_number(value: bytes | None) -> int | None:
    """Read the number of a Wikidata item; None for anything else."""
    digits = (value or b"")[1:]
    return int(digits) if digits.isdigit() and value and value[:1] in b"Qq" else None
