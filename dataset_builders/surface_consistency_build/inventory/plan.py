"""Which dump files an inventory of a wiki's redirects reads."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from surface_consistency.errors import SourceNotFoundError
from surface_consistency_build.wikimedia.construction.dump_files import (
    dated_files,
    table_date,
    wiki_tables,
    wikis_of,
)
from surface_consistency_build.wikimedia.sql import read_create_table
from surface_consistency_build.wikimedia.wikis import WIKIS, WikiConfig, load_wiki, unmapped_wiki

Kind = Literal["category", "template"]
KINDS: Final[tuple[Kind, ...]] = ("category", "template")
"""What redirects are sorted by."""

LINK_TABLES: Final[Mapping[Kind, str]] = {"category": "categorylinks", "template": "templatelinks"}
"""The table that says which pages carry which."""

_TITLES: Final = {"categorylinks": "cl_to", "templatelinks": "tl_title"}
_MORE: Final = {
    "page_props": "which categories are hidden is not known",
    "langlinks": (
        "no category or template is recognised by its link to the English wiki, only by the names "
        "that the configuration maps"
    ),
}
_SITE: Final = "https://dumps.wikimedia.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryPlan:
    """The dump files of an inventory."""

    config: WikiConfig
    """The wiki, with what of it is mapped already."""

    is_known: bool
    """Whether a configuration was there; if not, it is guessed from the wiki's name."""

    date: str
    """Date of the dumps, "YYYYMMDD" or "latest"."""

    tables: Mapping[str, Path]
    """SQL tables that are read, by name; with `page` among them, it and `redirect` say which pages
    are redirects, else the pages' text does."""

    pages_articles: tuple[Path, ...]
    """The pages' text; none where the tables say all."""

    notes: tuple[str, ...]
    """What is lost without the files that are not there."""

    @property
    def sources(self) -> dict[Kind, str]:
        """What each kind is counted from: the table of its links, or else "text".

        A kind that neither tells is left out.
        """
        kinds: dict[Kind, str] = {}
        for kind in KINDS:
            if LINK_TABLES[kind] in self.tables:
                kinds[kind] = LINK_TABLES[kind]
            elif self.pages_articles:
                kinds[kind] = "text"
        return kinds

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in the order in which they are read."""
        return (*self.tables.values(), *self.pages_articles)


def plan_inventory(folder: str | os.PathLike[str], wiki: str | None = None) -> InventoryPlan:
    """Look for the dump files of an inventory, by the names under which Wikimedia publishes them.

    It needs `page` and `redirect`, or `pages-articles`; and for categories `categorylinks`, for
    templates `templatelinks` (both with `linktarget` where they name their targets by numbers), or
    `pages-articles`, whose text tells what it names itself. `page_props` tells hidden categories,
    `langlinks` the English name of a category or template. Of several dates the newest one is taken
    for which `page` or `pages-articles` is there.

    Args:
        folder: Where to look, the folders in it included.
        wiki: A known wiki, a file that describes one, or any database name such as "frwiki"; None
            for the only wiki of the folder.

    Returns:
        The files.

    Raises:
        SourceNotFoundError: If there is no such folder, no or several wikis in it, or a file is
            missing that the inventory cannot do without; names it and where to fetch it.
        RecordError: If the file that describes the wiki is broken.
        ValueError: If `wiki` is no name of a wiki.
    """
    place = Path(folder)
    if not place.is_dir():
        raise SourceNotFoundError(f"no folder {place}; give the folder that holds the dumps")
    files = sorted(place.rglob("*"), key=lambda file: (-len(file.parts), file))
    names = {file.name: file for file in files if file.is_file()}
    config, is_known = _config(wiki, wikis_of(names), place)
    by_role = {role: paths for role, paths in wiki_tables(names, config.wiki).items() if paths}
    if not by_role:
        there = ", ".join(wikis_of(names)) or "no wiki"
        raise SourceNotFoundError(
            f"{place} holds no dump of {config.wiki}, but of {there}; name one with --wiki, or "
            f"fetch the tables from {_SITE}/{config.wiki}/"
        )
    date = table_date(by_role, config.wiki) or ""
    text = tuple(by_role.pop("pages_articles", ()))
    tables = {role: paths[0] for role, paths in by_role.items()}
    _check_redirects(tables, text, place, config.wiki, date)
    others = [*_other_dates(names, tables, config.wiki, date)]
    if "page" not in tables or "redirect" not in tables:
        tables = {role: path for role, path in tables.items() if role not in {"page", "redirect"}}
    notes = [*_unusable_links(tables), *_notes(tables, text, config), *others]
    is_text_needed = "page" not in tables or any(
        table not in tables for table in LINK_TABLES.values()
    )
    plan = InventoryPlan(
        config=config,
        is_known=is_known,
        date=date,
        tables=_in_order(tables),
        pages_articles=text if is_text_needed else (),
        notes=tuple(notes),
    )
    if not plan.sources:
        raise SourceNotFoundError(
            f"{place} tells of no category and no template of {config.wiki}: categorylinks or "
            f"templatelinks (with linktarget) of {date} is needed, or pages-articles; from "
            f"{_SITE}/{config.wiki}/"
        )
    return plan


def _config(wiki: str | None, there: list[str], place: Path) -> tuple[WikiConfig, bool]:
    """Find what is known about the wiki."""
    if wiki is None:
        if len(there) != 1:
            raise SourceNotFoundError(
                f"{place} holds dumps of {', '.join(there) or 'no wiki'}; name one with --wiki"
            )
        [wiki] = there
    if wiki in WIKIS or Path(wiki).is_file() or Path(wiki).suffix:
        return load_wiki(wiki), True
    return unmapped_wiki(wiki), False


def _check_redirects(
    tables: Mapping[str, Path], text: tuple[Path, ...], place: Path, wiki: str, date: str
) -> None:
    """Refuse files that do not tell the redirects."""
    missing = [role for role in ("page", "redirect") if role not in tables]
    if missing and not text:
        named = " and ".join(f"{wiki}-{date}-{role}.sql.gz" for role in missing)
        raise SourceNotFoundError(
            f"{place} lacks {named}, which tell the redirects and where they lead (or, instead of "
            f"both, pages-articles); from {_SITE}/{wiki}/"
        )


def _unusable_links(tables: dict[str, Path]) -> Iterable[str]:
    """Leave out tables whose links are numbers that nothing names, and tell."""
    for table in LINK_TABLES.values():
        if table not in tables or "linktarget" in tables:
            continue
        if _TITLES[table] not in read_create_table(tables[table]).names:
            yield (
                f"{tables.pop(table).name} names its targets by numbers, and the linktarget dump "
                "of the same date, which tells their names, is not there: it is not read"
            )


def _notes(tables: Mapping[str, Path], text: tuple[Path, ...], config: WikiConfig) -> Iterable[str]:
    """Say what is lost without the files that are not there."""
    for kind, table in LINK_TABLES.items():
        if table in tables:
            continue
        if not text:
            yield f"without {table} (and linktarget) no {kind} is counted"
        elif kind == "category":
            yield (
                "categories are those that redirects name in their own text, since categorylinks "
                "is not there: what templates put them into is not counted"
            )
    for table, loss in _MORE.items():
        is_wanted = table != "langlinks" or config.language != "en"
        if table not in tables and is_wanted:
            yield f"without {table} {loss}"
    if "page" not in tables and {"page_props", "langlinks"} & tables.keys():
        yield "without page no number of page_props and langlinks is known by its title"


def _other_dates(
    names: Iterable[str], tables: Mapping[str, Path], wiki: str, date: str
) -> Iterable[str]:
    """Name files that stay unread because they are of another date."""
    known = list(names)
    for role in ("page", "redirect", "linktarget", *LINK_TABLES.values(), *_MORE):
        others = [name for name in dated_files(known, wiki, role) if f"-{date}-" not in name]
        if others and role not in tables:
            yield f"{', '.join(others)} is of another date than {date} and is not read"


def _in_order(tables: Mapping[str, Path]) -> dict[str, Path]:
    """Put tables in the order in which they are read: what names pages and targets first."""
    order = ("page", "redirect", "linktarget", *LINK_TABLES.values(), *_MORE)
    return {role: tables[role] for role in order if role in tables}
