"""The pages of an export."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from surface_consistency.wikimedia._ahead import open_ahead
from surface_consistency.wikimedia.pages_xml._export_parser import export_pages
from surface_consistency.wikimedia.streams import ProgressHook

__all__ = ["WikiPage", "read_pages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiPage:
    """One page of a wiki."""

    page_id: int
    """Number of the page."""

    namespace: int
    """Number of its namespace; 0 holds the articles."""

    title: str
    """Title with namespace prefix and spaces."""

    redirect: str | None
    """Title in the export's `<redirect>` element; "" if the element gives none (before schema
    0.6), None if there is no such element."""

    text: str
    """Wikitext of the last revision in the export; "" where it was hidden."""


def read_pages(
    path: str | os.PathLike[str],
    *,
    namespaces: Collection[int] | None = (0,),
    allow_truncated: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
) -> Iterator[WikiPage]:
    """Read the pages of a MediaWiki export (`pages-articles` and its like).

    Memory holds one chunk of the file and the pages that it completes.

    Args:
        path: The export, packed or not.
        namespaces: Namespaces to keep; all when None.
        allow_truncated: Keep what came before the place where the file is cut off or damaged, and
            warn, rather than raise.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2; as many as there are processors when None.

    Yields:
        The pages in order. Of several revisions the last one counts.

    Raises:
        SourceNotFoundError: If there is no such file.
        DumpError: If the file is cut off, damaged, or no MediaWiki export.

    Warns:
        TruncatedDumpWarning: If the file is cut off or damaged and that is allowed.
    """
    with open_ahead(path, allow_truncated=allow_truncated, progress=progress, threads=threads) as (
        stream,
        chunks,
    ):
        for page in export_pages(stream, chunks, namespaces=namespaces, only_redirects=False):
            yield WikiPage(
                page_id=page.page_id or 0,
                namespace=page.namespace or 0,
                title=page.title,
                redirect=page.redirect,
                text=page.text,
            )
