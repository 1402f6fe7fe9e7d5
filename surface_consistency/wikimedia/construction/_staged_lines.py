"""Wikidata, pageviews and the pages' text to staged tables."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from surface_consistency.wikimedia.construction._arrow import (
    Tally,
    batch_of,
    import_arrow,
    surfaces_of,
    text_column,
)
from surface_consistency.wikimedia.construction._table_schemas import table_schema
from surface_consistency.wikimedia.pages_xml import categories_of_templates

if TYPE_CHECKING:
    import pyarrow as pa

    from surface_consistency.wikimedia.pages_xml import RedirectPage
    from surface_consistency.wikimedia.wikis import WikiConfig

__all__ = ["entity_rows", "redirect_page_rows", "view_rows"]

_XML_ROWS = 50_000


def view_rows(batches: Iterable["pa.RecordBatch"], tally: Tally) -> Iterator["pa.RecordBatch"]:
    """Sum the views of a title over the kinds of access, as far as its lines stand together."""
    pa = import_arrow()
    for batch in batches:
        tally.n_in += batch.num_rows
        kept, titles = text_column(batch, "title", tally)
        summed = (
            pa.table({"title": titles, "views": kept["views"]})
            .group_by("title", use_threads=False)
            .aggregate([("views", "sum")])
            .combine_chunks()
        )
        tally.n_out += kept.num_rows
        for part in summed.select(["title", "views_sum"]).to_batches():
            yield batch_of({"title": part[0], "views": part[1]}, table_schema("views"))


def entity_rows(entities: "pa.RecordBatch", tally: Tally) -> "pa.RecordBatch":
    """Keep entities that have a label or a page; page titles get their underscores."""
    pa = import_arrow()
    pc = pa.compute
    tally.n_in += entities.num_rows
    labels = entities["label"].cast(pa.string())
    titles = pc.replace_substring(entities["title"].cast(pa.string()), " ", "_")
    kept = pc.or_(labels.is_valid(), titles.is_valid())
    titles = titles.filter(kept)
    tally.n_out += len(titles)
    tally.drop("neither label nor page", len(kept) - len(titles))
    return batch_of(
        {
            "id": entities["id"].filter(kept),
            "label": labels.filter(kept),
            "title": titles,
            "surface": surfaces_of(titles),
        },
        table_schema("entities"),
    )


def redirect_page_rows(
    pages: "Iterable[RedirectPage]", config: "WikiConfig", tally: Tally
) -> Iterator[Mapping[str, "pa.RecordBatch"]]:
    """Turn redirect pages of the XML export into rows of three tables."""
    rows = iter(pages)
    while taken := list(islice(rows, _XML_ROWS)):
        tally.n_in += len(taken)
        tally.n_out += len(taken)
        yield _three_tables(taken, config)


def _three_tables(
    pages: "list[RedirectPage]", config: "WikiConfig"
) -> Mapping[str, "pa.RecordBatch"]:
    """Lay out redirect pages, their targets and their categories."""
    pa = import_arrow()
    titles = pa.array([page.title.replace(" ", "_") for page in pages], pa.string())
    numbers = pa.array([page.page_id for page in pages], pa.int64())
    labels = [(page.page_id, label) for page in pages for label in _labels(page, config)]
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


def _labels(page: "RedirectPage", config: "WikiConfig") -> set[str]:
    """Name the labels of a redirect page by its templates and the categories in its text."""
    written = (category.strip().replace(" ", "_") for category in page.categories)
    known = {config.categories[title] for title in written if title in config.categories}
    return known.union(categories_of_templates(page.templates, config.templates))
