"""The dump files of a build, and the names under which Wikimedia publishes them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from surface_consistency.errors import SourceNotFoundError

Route = Literal["sql", "xml", "uncategorised"]
"""Where redirects and their categories come from: the SQL tables, the pages' text, or the SQL
tables without categories."""
_PACKED: Final = r"(?:\.gz|\.bz2)?"
_TABLES: Final = ("page", "page_props", "redirect", "linktarget", "categorylinks")
_EXPORT: Final = (
    r"(?P<kind>pages-articles|pages-meta-current)(?P<multistream>-multistream)?(?P<numbers>\d*)"
    r"\.xml(?P<range>-p\d+p\d+)?"
)
_EXPORT_KINDS: Final = ("pages-articles", "pages-articles-multistream", "pages-meta-current")
_MONTH: Final = re.compile(r"\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?", re.ASCII)


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


def wiki_tables(names: Mapping[str, Path], wiki: str) -> dict[str, list[Path]]:
    """Find a wiki's own files of the newest date, by the field of `DumpFiles` that they fill."""
    pattern = re.compile(
        rf"{re.escape(wiki)}-(\d{{8}}|latest)-(?:({'|'.join(_TABLES)})\.sql|{_EXPORT}){_PACKED}"
    )
    dates: dict[str, dict[str, list[Path]]] = {}
    for name, path in names.items():
        if parts := pattern.fullmatch(name):
            role = parts[2] or "pages_articles"
            dates.setdefault(parts[1], {}).setdefault(role, []).append(path)
    whole = [date for date, roles in dates.items() if roles.keys() & {"page", "pages_articles"}]
    if not dates:
        return {}
    # "latest" sorts after every date.
    tables = dates[max(whole or dates)]
    if "pages_articles" in tables:
        tables["pages_articles"] = _one_export(tables["pages_articles"])
    return tables


def table_date(tables: Mapping[str, Sequence[Path]], wiki: str) -> str | None:
    """Tell the date of what `wiki_tables` found: "YYYYMMDD", "latest", or None for no files."""
    paths = [path for files in tables.values() for path in files]
    return paths[0].name.removeprefix(f"{wiki}-").partition("-")[0] if paths else None


def dated_files(names: Iterable[str], wiki: str, role: str) -> list[str]:
    """List a wiki's files for one field of `DumpFiles`, whatever their date."""
    kind = _EXPORT if role == "pages_articles" else rf"{role}\.sql"
    pattern = re.compile(rf"{re.escape(wiki)}-(?:\d{{8}}|latest)-{kind}{_PACKED}")
    return sorted(filter(pattern.fullmatch, names))


def _one_export(paths: list[Path]) -> list[Path]:
    """Choose among exports of the same pages: of one kind, and the whole one rather than parts."""
    kinds: dict[tuple[int, bool], list[Path]] = {}
    for path in paths:
        parts = re.search(_EXPORT, path.name)
        if parts is not None:
            is_part = bool(parts["numbers"] or parts["range"])
            kind = _EXPORT_KINDS.index(f"{parts['kind']}{parts['multistream'] or ''}")
            kinds.setdefault((kind, is_part), []).append(path)
    return list({dump_name(path): path for path in kinds[min(kinds)]}.values())


def check_months(months: Sequence[str] | None) -> None:
    """Refuse what is no month or day."""
    for month in months or ():
        if not _MONTH.fullmatch(month):
            raise ValueError(f"months must be like '202401' (or a day, '20240131'), got {month!r}")


def pageview_files(names: Mapping[str, Path]) -> dict[str, Path]:
    """Find the pageviews of users, by month ("YYYYMM") or day ("YYYYMMDD")."""
    pattern = re.compile(rf"pageviews-(\d{{6}}(?:\d\d)?)-user{_PACKED}")
    return {match[1]: path for name, path in names.items() if (match := pattern.fullmatch(name))}


def wikidata_file(names: Mapping[str, Path]) -> Path | None:
    """Find the newest dump of Wikidata; one with a date before one without."""
    pattern = re.compile(rf"(?:latest|wikidata-\d{{8}})-all\.json{_PACKED}|\d{{8}}\.json{_PACKED}")
    dumps = sorted(
        filter(pattern.fullmatch, names), key=lambda name: (re.search(r"\d{8}", name) or [""])[0]
    )
    return names[dumps[-1]] if dumps else None
