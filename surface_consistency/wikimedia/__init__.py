"""Wikimedia dumps: readers of their files, and the construction of RedirectQA from them."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.wikimedia.pages_xml import read_pages, read_redirects
    from surface_consistency.wikimedia.pageviews import read_pageviews
    from surface_consistency.wikimedia.sql import read_create_table, read_sql
    from surface_consistency.wikimedia.streams import open_dump
    from surface_consistency.wikimedia.wikidata import read_entities, read_entity_batches
    from surface_consistency.wikimedia.wikis import WIKIS, WikiConfig, load_wiki

__all__ = [
    "WIKIS",
    "WikiConfig",
    "load_wiki",
    "open_dump",
    "read_create_table",
    "read_entities",
    "read_entity_batches",
    "read_pages",
    "read_pageviews",
    "read_redirects",
    "read_sql",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        **dict.fromkeys(("WIKIS", "WikiConfig", "load_wiki"), "wikis"),
        **dict.fromkeys(("read_create_table", "read_sql"), "sql"),
        **dict.fromkeys(("read_entities", "read_entity_batches"), "wikidata"),
        **dict.fromkeys(("read_pages", "read_redirects"), "pages_xml"),
        "open_dump": "streams",
        "read_pageviews": "pageviews",
    },
)
