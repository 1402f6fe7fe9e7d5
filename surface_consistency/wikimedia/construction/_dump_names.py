"""Dump files by the names under which Wikimedia publishes them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from surface_consistency.wikimedia.construction.dump_files import dump_name

__all__ = [
    "check_months",
    "dated_files",
    "pageview_files",
    "table_date",
    "wiki_tables",
    "wikidata_file",
]

_PACKED: Final = r"(?:\.gz|\.bz2)?"
_TABLES: Final = ("page", "page_props", "redirect", "linktarget", "categorylinks")
_EXPORT: Final = (
    r"(?P<kind>pages-articles|pages-meta-current)(?P<multistream>-multistream)?(?P<numbers>\d*)"
    r"\.xml(?P<range>-p\d+p\d+)?"
)
_EXPORT_KINDS: Final = ("pages-articles", "pages-articles-multistream", "pages-meta-current")
_MONTH: Final = re.compile(r"\d{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?", re.ASCII)


def wiki_tables(names: Mapping[str, Path], wiki: str) -> dict[str, list[Path]]:
    """Find a wiki's own files of the newest date.

    Args:
        names: Files by name.
        wiki: Name of the wiki, such as "enwiki".

    Returns:
        Field of `DumpFiles` to the files for it.
    """
    pattern = re.compile(
        rf"{re.escape(wiki)}-(\d{{8}}|latest)-(?:({'|'.join(_TABLES)})\.sql|{_EXPORT}){_PACKED}"
    )
    dates: dict[str, dict[str, list[Path]]] = {}
    for name, path in names.items():
        if found := pattern.fullmatch(name):
            role = found[2] or "pages_articles"
            dates.setdefault(found[1], {}).setdefault(role, []).append(path)
    whole = [date for date, roles in dates.items() if roles.keys() & {"page", "pages_articles"}]
    if not dates:
        return {}
    # "latest" sorts after every date.
    tables = dates[max(whole or dates)]
    if "pages_articles" in tables:
        tables["pages_articles"] = _one_export(tables["pages_articles"])
    return tables


def table_date(tables: Mapping[str, Sequence[Path]], wiki: str) -> str | None:
    """Tell of which date a wiki's own files are.

    Args:
        tables: What `wiki_tables` found.
        wiki: Name of the wiki.

    Returns:
        "YYYYMMDD" or "latest"; None if there are no files.
    """
    paths = [path for found in tables.values() for path in found]
    return paths[0].name.removeprefix(f"{wiki}-").partition("-")[0] if paths else None


def dated_files(names: Iterable[str], wiki: str, role: str) -> list[str]:
    """List a wiki's files of one kind, whatever their date.

    Args:
        names: File names.
        wiki: Name of the wiki.
        role: Field of `DumpFiles`.

    Returns:
        Their names, sorted.
    """
    kind = _EXPORT if role == "pages_articles" else rf"{role}\.sql"
    pattern = re.compile(rf"{re.escape(wiki)}-(?:\d{{8}}|latest)-{kind}{_PACKED}")
    return sorted(filter(pattern.fullmatch, names))


def _one_export(paths: list[Path]) -> list[Path]:
    """Choose among exports of the same pages: of one kind, and the whole one rather than parts."""
    kinds: dict[tuple[int, bool], list[Path]] = {}
    for path in paths:
        found = re.search(_EXPORT, path.name)
        if found is not None:
            is_part = bool(found["numbers"] or found["range"])
            kind = _EXPORT_KINDS.index(f"{found['kind']}{found['multistream'] or ''}")
            kinds.setdefault((kind, is_part), []).append(path)
    return list({dump_name(path): path for path in kinds[min(kinds)]}.values())


def check_months(months: Sequence[str] | None) -> None:
    """Refuse what is no month or day.

    Args:
        months: What was asked for.

    Raises:
        ValueError: If one is none.
    """
    for month in months or ():
        if not _MONTH.fullmatch(month):
            raise ValueError(f"months must be like '202401' (or a day, '20240131'), got {month!r}")


def pageview_files(names: Mapping[str, Path]) -> dict[str, Path]:
    """Find the pageviews of users.

    Args:
        names: Files by name.

    Returns:
        Month ("YYYYMM") or day ("YYYYMMDD") to its file.
    """
    pattern = re.compile(rf"pageviews-(\d{{6}}(?:\d\d)?)-user{_PACKED}")
    return {match[1]: path for name, path in names.items() if (match := pattern.fullmatch(name))}


def wikidata_file(names: Mapping[str, Path]) -> Path | None:
    """Find the newest dump of Wikidata; one with a date before one without.

    Args:
        names: Files by name.

    Returns:
        The file; None if there is none.
    """
    pattern = re.compile(rf"(?:latest|wikidata-\d{{8}})-all\.json{_PACKED}|\d{{8}}\.json{_PACKED}")
    found = sorted(filter(pattern.fullmatch, names), key=_date_of)
    return names[found[-1]] if found else None


def _date_of(name: str) -> str:
    """Find the date in a name of a dump of Wikidata."""
    found = re.search(r"\d{8}", name)
    return found[0] if found else ""
