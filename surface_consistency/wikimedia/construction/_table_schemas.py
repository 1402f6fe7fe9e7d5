"""The staged tables and their columns."""

from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction._arrow import import_arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TABLES", "table_schema"]

TABLES: dict[str, dict[str, str]] = {
    "pages": {"page_id": "int64", "title": "string", "surface": "string", "is_redirect": "bool"},
    "redirects": {
        "page_id": "int64",
        "target": "string",
        "target_namespace": "int64",
        "is_interwiki": "bool",
        "is_section": "bool",
    },
    "page_props": {"page_id": "int64", "entity": "int64", "is_disambiguation": "bool"},
    "category_targets": {"target_id": "int64", "label": "string"},
    "categories": {"page_id": "int64", "label": "string"},
    "entities": {"id": "int64", "label": "string", "title": "string", "surface": "string"},
    "aliases": {"id": "int64", "alias": "string"},
    "claims": {"subject": "int64", "property": "int64", "object": "int64"},
    "views": {"title": "string", "views": "int64"},
}
"""Staged table to its columns and their Arrow types."""


def table_schema(table: str) -> "pa.Schema":
    """Return the Arrow schema of a staged table.

    Args:
        table: One of `TABLES`.

    Returns:
        The schema.
    """
    pa = import_arrow()
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in TABLES[table].items()])
