"""The dump files of a build."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from surface_consistency.errors import SourceNotFoundError

__all__ = ["DumpFiles", "Route", "dump_name"]

Route = Literal["sql", "xml", "uncategorised"]
"""Where redirects and their categories come from: the SQL tables, the pages' text, or the SQL
tables without categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFiles:
    """The files that a build reads.

    By the SQL tables it needs `page`, `redirect` and, unless redirects are uncategorised,
    `categorylinks` (with `linktarget` for dumps of 2025 and later). By the pages' text it needs
    `pages_articles`; `page` and `page_props` are used where given.
    """

    wikidata: Path | None
    """The JSON dump of Wikidata."""

    pageviews: tuple[Path, ...] = ()
    """Pageview files, usually the twelve months of a year; their views are summed."""

    page: Path | None = None
    """The `page` table."""

    redirect: Path | None = None
    """The `redirect` table."""

    page_props: Path | None = None
    """The `page_props` table: Wikidata items and disambiguation pages."""

    linktarget: Path | None = None
    """The `linktarget` table."""

    categorylinks: Path | None = None
    """The `categorylinks` table, of either schema."""

    pages_articles: tuple[Path, ...] = ()
    """The pages' text, in one file or several."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in the order in which they are read."""
        single = (
            self.page,
            self.page_props,
            self.redirect,
            self.linktarget,
            self.categorylinks,
            *self.pages_articles,
            *self.pageviews,
            self.wikidata,
        )
        return tuple(path for path in single if path is not None)

    def check_paths(self) -> None:
        """Refuse files that are not there, and two of one name.

        Raises:
            SourceNotFoundError: If one is missing; names each.
            ValueError: If two files of the views or the text have one name, packed or not.
        """
        names: dict[str, Path] = {}
        for path in (*self.pages_articles, *self.pageviews):
            name = dump_name(path)
            if name in names:
                raise ValueError(
                    f"two dumps are called {name} ({names[name]} and {path}); give each once"
                )
            names[name] = path
        missing = [str(path) for path in self.paths if not path.is_file()]
        if missing:
            raise SourceNotFoundError(
                f"there is no dump {', '.join(missing)}; fetch it or give its path"
            )


def dump_name(path: Path) -> str:
    """Name a dump after its file, without what says how it is packed.

    Args:
        path: The file.

    Returns:
        The name; parts of one export have different ones.

    Examples:
        >>> dump_name(Path("enwiki-20260101-pages-articles11.xml-p1p41242.bz2"))
        'enwiki-20260101-pages-articles11.xml-p1p41242'
        >>> dump_name(Path("pageviews-202401-user.bz2"))
        'pageviews-202401-user'
    """
    return path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".xml")
