"""MediaWiki's XML exports: pages, redirects and the templates that sort redirects."""

from surface_consistency.wikimedia.pages_xml.enwiki_templates import ENWIKI_SHELLS, ENWIKI_TEMPLATES
from surface_consistency.wikimedia.pages_xml.pages import WikiPage, read_pages
from surface_consistency.wikimedia.pages_xml.rcat_templates import (
    ENWIKI_TABLE,
    categories_of_templates,
    template_table,
)
from surface_consistency.wikimedia.pages_xml.redirects import RedirectPage, read_redirects
from surface_consistency.wikimedia.pages_xml.site import SiteInfo

__all__ = [
    "ENWIKI_SHELLS",
    "ENWIKI_TABLE",
    "ENWIKI_TEMPLATES",
    "RedirectPage",
    "SiteInfo",
    "WikiPage",
    "categories_of_templates",
    "read_pages",
    "read_redirects",
    "template_table",
]
