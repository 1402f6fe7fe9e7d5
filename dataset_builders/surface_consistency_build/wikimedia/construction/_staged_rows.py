"""Dumps to staged tables: batch by batch, wanted rows and columns only."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from surface_consistency.errors import DumpError
from surface_consistency_build.wikimedia.construction._arrow import (
    Tally,
    batch_of,
    surfaces_of,
    table_schema,
    text_column,
)
from surface_consistency_build.wikimedia.pages_xml import RedirectPage
from surface_consistency_build.wikimedia.rcat_templates import categories_of_templates
from surface_consistency_build.wikimedia.wikis import WikiConfig

Batches = Iterator[pa.RecordBatch]
ReadColumns = Callable[[Path, tuple[str, ...]], Batches]

_ARTICLES = 0
_CATEGORIES = 14
_OTHER_NAMESPACE = "outside the article namespace"
_XML_ROWS = 50_000


def page_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read articles and redirect pages off the `page` table."""
    columns = ("page_id", "page_namespace", "page_title", "page_is_redirect")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        articles = _filter(
            batch, pc.equal(batch["page_namespace"], _ARTICLES), _OTHER_NAMESPACE, tally
        )
        articles, titles = text_column(articles, "page_title", tally)
        yield _counted(
            {
                "page_id": articles["page_id"],
                "title": titles,
                "surface": surfaces_of(titles),
                "is_redirect": pc.not_equal(articles["page_is_redirect"], 0),
            },
            "pages",
            tally,
        )


def redirect_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read every redirect; those that leave the wiki or name a section are told apart later."""
    columns = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment")
    for batch in read(path, columns):
        tally.n_in += batch.num_rows
        readable, titles = text_column(batch, "rd_title", tally)
        yield _counted(
            {
                "page_id": readable["rd_from"],
                "target": titles,
                "target_namespace": readable["rd_namespace"],
                "is_interwiki": _is_given(readable["rd_interwiki"]),
                "is_section": _is_given(readable["rd_fragment"]),
            },
            "redirects",
            tally,
        )


def props_rows(path: Path, read: ReadColumns, tally: Tally) -> Batches:
    """Read Wikidata items and disambiguation marks off the `page_props` table."""
    wanted = pa.array([b"wikibase_item", b"disambiguation"], pa.binary())
    for batch in read(path, ("pp_page", "pp_propname", "pp_value")):
        tally.n_in += batch.num_rows
        names = batch["pp_propname"].cast(pa.binary())
        properties = _filter(batch, pc.is_in(names, wanted), "another property", tally)
        names = properties["pp_propname"].cast(pa.binary())
        is_item = pc.equal(names, b"wikibase_item")
        items = [
            _item_number(value) if of_item else None
            for value, of_item in zip(
                properties["pp_value"].to_pylist(), is_item.to_pylist(), strict=True
            )
        ]
        yield _counted(
            {
                "page_id": properties["pp_page"],
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
    labels = {title.encode("utf-8"): label for title, label in categories.items()}
    wanted = pa.array(sorted(labels), pa.binary())
    for batch in read(path, ("lt_id", "lt_namespace", "lt_title")):
        tally.n_in += batch.num_rows
        titles = batch["lt_title"].cast(pa.binary())
        mask = pc.and_(pc.equal(batch["lt_namespace"], _CATEGORIES), pc.is_in(titles, wanted))
        members = _filter(batch, mask, "no wanted category", tally)
        names = [labels[title] for title in members["lt_title"].cast(pa.binary()).to_pylist()]
        yield _counted(
            {"target_id": members["lt_id"], "label": pa.array(names, pa.string())},
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

    Categories are named by their titles (`cl_to`), or by the numbers of `targets` (`cl_target_id`).
    """
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
        is_wanted = labels.is_valid()
        tally.drop("no wanted category", batch.num_rows - pc.sum(is_wanted).as_py())
        yield _counted(
            {"page_id": batch["cl_from"].filter(is_wanted), "label": labels.filter(is_wanted)},
            "categories",
            tally,
        )


def _labels(batch: pa.RecordBatch, ways: list[tuple[str, Any, dict[Any, str]]]) -> pa.Array:
    """Look the category of each row up, by its title or else by its number."""
    categories = pa.nulls(batch.num_rows, pa.string())
    for name, kind, known in ways:
        keys = pa.array(list(known), kind)
        labels = pa.array(list(known.values()), pa.string())
        places = pc.index_in(batch[name].cast(kind), keys)
        categories = pc.coalesce(categories, labels.take(places))
    return categories


def _filter(batch: pa.RecordBatch, mask: pa.Array, reason: str, tally: Tally) -> pa.RecordBatch:
    """Keep the rows that the mask holds."""
    rows = batch.filter(mask)
    tally.drop(reason, batch.num_rows - rows.num_rows)
    return rows


def _counted(columns: Mapping[str, Any], table: str, tally: Tally) -> pa.RecordBatch:
    """Lay out the rows that stay, and count them."""
    batch = batch_of(columns, table_schema(table))
    tally.n_out += batch.num_rows
    return batch


def _is_given(column: pa.Array) -> pa.Array:
    """Tell where a text is neither NULL nor empty."""
    return pc.fill_null(pc.greater(pc.binary_length(column), 0), False)


def _item_number(value: bytes | None) -> int | None:
    """Read the number of a Wikidata item; None for anything else."""
    digits = (value or b"")[1:]
    return int(digits) if digits.isdigit() and value and value[:1] in b"Qq" else None


def view_rows(batches: Iterable[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
    """Sum the views of a title over the kinds of access, as far as its lines stand together."""
    for batch in batches:
        tally.n_in += batch.num_rows
        readable, titles = text_column(batch, "title", tally)
        summed = (
            pa.table({"title": titles, "views": readable["views"]})
            .group_by("title", use_threads=False)
            .aggregate([("views", "sum")])
            .combine_chunks()
        )
        tally.n_out += readable.num_rows
        for part in summed.select(["title", "views_sum"]).to_batches():
            yield batch_of({"title": part[0], "views": part[1]}, table_schema("views"))


def entity_rows(entities: pa.RecordBatch, tally: Tally) -> pa.RecordBatch:
    """Keep entities that have a label or a page; page titles get their underscores."""
    tally.n_in += entities.num_rows
    labels = entities["label"].cast(pa.string())
    titles = pc.replace_substring(entities["title"].cast(pa.string()), " ", "_")
    has_name = pc.or_(labels.is_valid(), titles.is_valid())
    titles = titles.filter(has_name)
    tally.n_out += len(titles)
    tally.drop("neither label nor page", len(has_name) - len(titles))
    return batch_of(
        {
            "id": entities["id"].filter(has_name),
            "label": labels.filter(has_name),
            "title": titles,
            "surface": surfaces_of(titles),
        },
        table_schema("entities"),
    )


def redirect_page_rows(
    pages: "Iterable[RedirectPage]", config: "WikiConfig", tally: Tally
) -> Iterator[Mapping[str, pa.RecordBatch]]:
    """Turn redirect pages of the XML export into rows of three tables."""
    rows = iter(pages)
    while taken := list(islice(rows, _XML_ROWS)):
        tally.n_in += len(taken)
        tally.n_out += len(taken)
        yield _three_tables(taken, config)


def _three_tables(
    pages: "list[RedirectPage]", config: "WikiConfig"
) -> Mapping[str, pa.RecordBatch]:
    """Lay out redirect pages, their targets and their categories."""
    titles = pa.array([page.title.replace(" ", "_") for page in pages], pa.string())
    numbers = pa.array([page.page_id for page in pages], pa.int64())
    labels = [(page.page_id, label) for page in pages for label in _page_labels(page, config)]
    columns: dict[str, dict[str, Any]] = {
        "pages": {
            "page_id": numbers,
            "title": titles,
            "surface": surfaces_of(titles),
            "is_redirect": pa.array([True] * len(pages)),
        },
        "redirects": {
            "page_id": numbers,
            "target": pa.array([page.target.replace(" ", "_") for page in pages], pa.string()),
            "target_namespace": pa.array(
                [page.target_namespace or 0 for page in pages], pa.int64()
            ),
            "is_interwiki": pa.array([page.is_interwiki for page in pages], pa.bool_()),
            "is_section": pa.array([bool(page.fragment) for page in pages], pa.bool_()),
        },
        "categories": {
            "page_id": pa.array([number for number, _ in labels], pa.int64()),
            "label": pa.array([label for _, label in labels], pa.string()),
        },
    }
    return {name: batch_of(table, table_schema(name)) for name, table in columns.items()}


def _page_labels(page: "RedirectPage", config: "WikiConfig") -> set[str]:
    """Name the labels of a redirect page by its templates and the categories in its text."""
    written = (category.strip().replace(" ", "_") for category in page.categories)
    known = {config.categories[title] for title in written if title in config.categories}
    return known.union(categories_of_templates(page.templates, config.templates))
