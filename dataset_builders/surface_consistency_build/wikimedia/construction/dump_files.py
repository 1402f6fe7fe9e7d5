"""Find the dump files of a build in a folder, and list the missing ones."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from surface_consistency.errors import SourceNotFoundError
from surface_consistency_build.wikimedia.sql import read_create_table
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

Route = Literal["sql", "xml", "uncategorised"]
"""Source of redirects and their categories: the SQL tables, the pages' text, or the SQL tables
without categories."""
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

    The route of the SQL tables needs `page`, `redirect` and, unless redirects are uncategorised,
    `categorylinks` (with `linktarget` for dumps of 2025 and later). The route of the pages' text
    needs `pages_articles`; `page` and `page_props` are used if given.
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
        """Check that the files exist and have distinct names.

        Raises:
            SourceNotFoundError: If files are missing; the message lists them.
            ValueError: If two files of the views or the text have the same name without the suffix
                of compression.
        """
        names: dict[str, Path] = {}
        for path in (*self.pages_articles, *self.pageviews):
            name = dump_name(path)
            if name in names:
                raise ValueError(
                    f"two dumps have the name {name} ({names[name]} and {path}); give one"
                )
            names[name] = path
        missing = [str(path) for path in self.paths if not path.is_file()]
        if missing:
            raise SourceNotFoundError(
                f"dump {', '.join(missing)} not found; download it or give its path"
            )


def dump_name(path: Path) -> str:
    """Return the file name of a dump without the suffixes of compression and of XML.

    Args:
        path: The file.

    Returns:
        The name; parts of one export have different names.

    Examples:
        >>> dump_name(Path("enwiki-20260101-pages-articles11.xml-p1p41242.bz2"))
        'enwiki-20260101-pages-articles11.xml-p1p41242'
        >>> dump_name(Path("pageviews-202401-user.bz2"))
        'pageviews-202401-user'
    """
    return path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".xml")


def wiki_tables(names: Mapping[str, Path], wiki: str) -> dict[str, list[Path]]:
    """Find a wiki's files of the newest date, by field of `DumpFiles`."""
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
    """Return the date of files from `wiki_tables`: "YYYYMMDD", "latest", or None without files."""
    paths = [path for files in tables.values() for path in files]
    return paths[0].name.removeprefix(f"{wiki}-").partition("-")[0] if paths else None


def dated_files(names: Iterable[str], wiki: str, role: str) -> list[str]:
    """List a wiki's files of any date for one field of `DumpFiles`."""
    kind = _EXPORT if role == "pages_articles" else rf"{role}\.sql"
    pattern = re.compile(rf"{re.escape(wiki)}-(?:\d{{8}}|latest)-{kind}{_PACKED}")
    return sorted(filter(pattern.fullmatch, names))


def _one_export(paths: list[Path]) -> list[Path]:
    """Select one export of the same pages: one kind, and a complete file rather than parts."""
    kinds: dict[tuple[int, bool], list[Path]] = {}
    for path in paths:
        parts = re.search(_EXPORT, path.name)
        if parts is not None:
            is_part = bool(parts["numbers"] or parts["range"])
            kind = _EXPORT_KINDS.index(f"{parts['kind']}{parts['multistream'] or ''}")
            kinds.setdefault((kind, is_part), []).append(path)
    return list({dump_name(path): path for path in kinds[min(kinds)]}.values())


def check_months(months: Sequence[str] | None) -> None:
    """Check that the texts are months or days."""
    for month in months or ():
        if not _MONTH.fullmatch(month):
            raise ValueError(f"months must be like '202401' (or a day, '20240131'), got {month!r}")


def pageview_files(names: Mapping[str, Path]) -> dict[str, Path]:
    """Find the pageviews of users, by month ("YYYYMM") or day ("YYYYMMDD")."""
    pattern = re.compile(rf"pageviews-(\d{{6}}(?:\d\d)?)-user{_PACKED}")
    return {match[1]: path for name, path in names.items() if (match := pattern.fullmatch(name))}


def wikidata_file(names: Mapping[str, Path]) -> Path | None:
    """Find the newest dump of Wikidata; dumps with a date are preferred."""
    pattern = re.compile(rf"(?:latest|wikidata-\d{{8}})-all\.json{_PACKED}|\d{{8}}\.json{_PACKED}")
    dumps = sorted(
        filter(pattern.fullmatch, names), key=lambda name: (re.search(r"\d{8}", name) or [""])[0]
    )
    return names[dumps[-1]] if dumps else None


_SITE: Final = "https://dumps.wikimedia.org"
_SHOWN: Final = 4
_MONTHS: Final = tuple(f"2024{month:02}" for month in range(1, 13))

# Compressed sizes of the English Wikipedia's dumps of 2024 and 2025, to the order of magnitude.
_ABOUT_BYTES: Final = {
    "page": 2_300_000_000,
    "page_props": 500_000_000,
    "redirect": 200_000_000,
    "linktarget": 1_500_000_000,
    "categorylinks": 2_500_000_000,
    "pages_articles": 23_000_000_000,
    "wikidata": 95_000_000_000,
    "pageviews": 5_000_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDump:
    """One file of a plan."""

    role: str
    """Field of `DumpFiles`."""

    name: str
    """Its name; with a placeholder for the date when it is missing."""

    path: Path | None
    """Its path; None if it is missing."""

    n_bytes: int | None
    """Its size; None if it is missing."""

    about_bytes: int | None
    """Expected size, to the order of magnitude; None if not known for this wiki."""

    is_needed: bool
    """Whether the build needs it."""

    url: str
    """URL of the folder that contains it."""

    other_dates: tuple[str, ...] = ()
    """Existing files of the same kind with another date; only for a missing file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpPlan:
    """The files of a build, found and missing."""

    folder: Path
    """The folder that was searched."""

    config: WikiConfig
    """The wiki."""

    route: Route
    """Source of redirects and their categories."""

    dumps: tuple[PlannedDump, ...]
    """The files, in the order in which they are read."""

    notes: tuple[str, ...] = ()
    """Consequences of the existing files and of the missing ones."""

    @property
    def missing(self) -> tuple[PlannedDump, ...]:
        """Needed files that are missing."""
        return tuple(dump for dump in self.dumps if dump.is_needed and dump.path is None)

    @property
    def total_bytes(self) -> int:
        """Size of the existing files."""
        return sum(dump.n_bytes or 0 for dump in self.dumps)

    @property
    def about_missing_bytes(self) -> int | None:
        """Expected size of the needed files that are missing; None if one size is not known."""
        sizes = [dump.about_bytes for dump in self.missing]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def files(self) -> DumpFiles:
        """The existing files.

        Raises:
            SourceNotFoundError: If a needed file is missing; the message lists them with URLs.
        """
        if self.missing:
            n_missing = len(self.missing)
            lines = "; ".join(map(_described, self.missing[:_SHOWN]))
            more = n_missing - _SHOWN
            rest = f"; and {more} more, which --plan lists" if more > 0 else ""
            raise SourceNotFoundError(
                f"{self.folder} lacks {n_missing} dump file{'s' * (n_missing > 1)} of "
                f"{self.config.wiki}: {lines}{rest}"
            )
        return DumpFiles(
            wikidata=self._one("wikidata"),
            pageviews=self._all("pageviews"),
            page=self._one("page"),
            redirect=self._one("redirect"),
            page_props=self._one("page_props"),
            linktarget=self._one("linktarget"),
            categorylinks=self._one("categorylinks"),
            pages_articles=self._all("pages_articles"),
        )

    def _all(self, role: str) -> tuple[Path, ...]:
        """Collect the files of a role."""
        return tuple(
            dump.path for dump in self.dumps if dump.role == role and dump.path is not None
        )

    def _one(self, role: str) -> Path | None:
        """Return the file of a role, if there is one."""
        return next(iter(self._all(role)), None)


def find_dumps(
    folder: str | os.PathLike[str],
    wiki: str | WikiConfig,
    *,
    route: Route | None = None,
    months: Sequence[str] | None = None,
    needs_views: bool = True,
) -> DumpPlan:
    """Find the dump files of a build.

    Files are recognised by their published names, in the folder and its subfolders; of two files
    with the same name, the one in the upper folder is used. The newest date of the wiki with a
    `page` table or the pages' text is selected, so that tables of different dates are not mixed.

    Args:
        folder: The folder to search.
        wiki: Name of a wiki, file of its configuration, or the configuration.
        route: Source of redirects and their categories; None for the SQL tables, unless the wiki
            has no categories, or only the pages' text exists.
        months: Months of pageviews as "YYYYMM"; None for all that exist, or for the twelve months
            of 2024 as in the paper if none exists. A daily file is skipped if the file of its month
            exists.
        needs_views: Whether the build needs pageviews; `augment_popqa` does not.

    Returns:
        The plan: existing files with sizes, and missing files. With the route "uncategorised" its
        configuration has no categories.

    Raises:
        SourceNotFoundError: If the folder or the wiki does not exist.
        ValueError: If a month is not valid, or the wiki has no categories for the given route.
    """
    check_months(months)
    place = Path(folder)
    if not place.is_dir():
        raise SourceNotFoundError(
            f"folder {place} not found; give the folder of the dumps, or make an empty one: --plan "
            "lists the files that it needs"
        )
    config = wiki if isinstance(wiki, WikiConfig) else load_wiki(wiki)
    files = sorted(place.rglob("*"), key=lambda file: (-len(file.parts), file))
    names = {file.name: file for file in files if file.is_file()}
    tables = wiki_tables(names, config.wiki)
    chosen = route or _route(config, tables)
    if chosen == "sql" and not config.categories:
        raise ValueError(
            f"the configuration {config.name!r} maps no categories, so the route 'sql' would find "
            "none; use 'uncategorised', or 'xml' if it has templates"
        )
    if chosen == "uncategorised":
        config = config.model_copy(
            update={"categories": {}, "templates": {}, "uncategorised": True}
        )
    dumps = [
        *_planned_tables(config, chosen, tables, names),
        *_planned_pageviews(names, months, is_needed=needs_views),
        *_planned_wikidata(names),
    ]
    notes = [
        *_notes(dumps, chosen, is_default=route is None, has_categories=bool(config.categories)),
        *_language_notes(config),
    ]
    return DumpPlan(
        folder=place, config=config, route=chosen, dumps=tuple(dumps), notes=tuple(notes)
    )


def _notes(
    dumps: Sequence[PlannedDump], route: Route, *, is_default: bool, has_categories: bool
) -> Iterable[str]:
    """Yield notes on the consequences of existing and missing files."""
    if is_default and route == "xml" and has_categories:
        yield (
            "route xml, because pages-articles exists and the category tables do not; --route sql "
            "needs the tables"
        )
    if any(dump.role == "page_props" and dump.path is None for dump in dumps):
        yield (
            "without page_props disambiguation pages are not recognised, and articles are matched "
            "to Wikidata only by its sitelinks"
        )
    months = [dump for dump in dumps if dump.role == "pageviews" and dump.path is not None]
    plain = [dump.name for dump in months if not dump.name.endswith((".bz2", ".gz"))]
    if plain:
        yield (
            f"{len(plain)} pageview files are not compressed ({plain[0]}) and have no end marker, "
            "so a cut between two lines cannot be detected; --require-end-mark rejects them"
        )
    if 0 < len(months) < len(_MONTHS):
        yield f"page views of {len(months)} files are summed; the paper sums the 12 months of 2024"


def _language_notes(config: WikiConfig) -> Iterable[str]:
    """Yield a note if a wiki of another language has no questions and uses the English ones."""
    if config.language != "en" and not config.questions:
        yield (
            f"the questions are English, about names in {config.language!r}, since the "
            f"configuration {config.name!r} has no questions; write them into its table [questions]"
        )


def _described(dump: PlannedDump) -> str:
    """Describe a missing dump, and existing files of another date."""
    there = f"; {', '.join(dump.other_dates)} has another date" if dump.other_dates else ""
    return f"{dump.name} (from {dump.url}{there})"


def _route(config: WikiConfig, tables: dict[str, list[Path]]) -> Route:
    """Choose the route by the configuration and the existing files."""
    if "redirect" not in tables and "pages_articles" in tables:
        return "xml"
    if not config.categories:
        needs_text = not config.uncategorised or "pages_articles" in tables
        return "xml" if config.templates and needs_text else "uncategorised"
    if "categorylinks" not in tables and "pages_articles" in tables and config.templates:
        return "xml"
    return "sql"


def _planned_tables(
    config: WikiConfig, route: Route, tables: dict[str, list[Path]], names: Mapping[str, Path]
) -> Iterable[PlannedDump]:
    """List the files of the wiki that a route reads."""
    needed = {
        "sql": ("page", "page_props", "redirect", "linktarget", "categorylinks"),
        "uncategorised": ("page", "page_props", "redirect"),
        "xml": ("page", "page_props", "pages_articles"),
    }[route]
    date = table_date(tables, config.wiki)
    for role in needed:
        is_needed = role == "pages_articles" or (route != "xml" and role != "page_props")
        if role == "linktarget":
            is_needed = not _has_titles(tables.get("categorylinks", []))
        stem = "pages-articles.xml.bz2" if role == "pages_articles" else f"{role}.sql.gz"
        yield from _planned(
            role,
            tables.get(role, [])[: None if role == "pages_articles" else 1],
            f"{config.wiki}-{date or 'YYYYMMDD'}-{stem}",
            f"{_SITE}/{config.wiki}/",
            is_needed=is_needed,
            about=_ABOUT_BYTES[role] if config.wiki == "enwiki" else None,
            others=dated_files(names, config.wiki, role),
        )


def _has_titles(paths: list[Path]) -> bool:
    """Check whether a categorylinks file contains the names of categories, as until 2025."""
    return bool(paths) and "cl_to" in read_create_table(paths[0]).names


def _planned_pageviews(
    names: dict[str, Path], months: Sequence[str] | None, *, is_needed: bool
) -> Iterable[PlannedDump]:
    """List the pageview files."""
    by_month = pageview_files(names)
    there = [
        period for period in sorted(by_month) if len(period) == 6 or period[:6] not in by_month
    ]
    for period in dict.fromkeys(months or there or _MONTHS):
        year, month = period[:4], period[4:6]
        kind = "monthly/" if len(period) == 6 else ""
        yield from _planned(
            "pageviews",
            [by_month[period]] if period in by_month else [],
            f"pageviews-{period}-user.bz2",
            f"{_SITE}/other/pageview_complete/{kind}{year}/{year}-{month}/",
            is_needed=is_needed,
            about=_ABOUT_BYTES["pageviews"] if kind else None,
        )


def _planned_wikidata(names: dict[str, Path]) -> Iterable[PlannedDump]:
    """List the dump of Wikidata, the newest one."""
    newest = wikidata_file(names)
    return _planned(
        "wikidata",
        [] if newest is None else [newest],
        "wikidata-YYYYMMDD-all.json.bz2",
        f"{_SITE}/wikidatawiki/entities/",
        is_needed=True,
        about=_ABOUT_BYTES["wikidata"],
    )


def _planned(
    role: str,
    paths: list[Path],
    name: str,
    url: str,
    *,
    is_needed: bool,
    about: int | None,
    others: Sequence[str] = (),
) -> Iterable[PlannedDump]:
    """List the existing files of a role, or the missing one."""
    files: list[Path | None] = [*paths] or [None]
    for path in files:
        yield PlannedDump(
            role=role,
            name=name if path is None else path.name,
            path=path,
            n_bytes=None if path is None else path.stat().st_size,
            about_bytes=about,
            is_needed=is_needed,
            url=url,
            other_dates=tuple(others) if path is None else (),
        )
