"""The readable tables that the miniature wiki is made from.

All are tab-separated UTF-8 with one header line and without quoting; a cell that holds several
values separates them with " | ". The last column says which oddity a line is there for.

- `entities.tsv`: Wikidata items with their label, page, aliases and views in two months.
- `claims.tsv`: statements, with their rank; an object is an item, "somevalue" or "novalue".
- `redirects.tsv`: redirect pages, where they point and their categories.
- `pages.tsv`: pages that are neither an entity's article nor a redirect.
- `templates.tsv`: the template that puts a page into each category.
"""

from dataclasses import dataclass
from pathlib import Path

from scripts.redirectqa_sample.tsv import read_lines, split_values

__all__ = ["Claim", "Entity", "Page", "Redirect", "Tables", "read_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One line of `entities.tsv`."""

    qid: str
    label: str | None
    title: str | None
    page_id: int | None
    aliases: tuple[str, ...]
    views: tuple[int, int]
    label_ja: str | None
    label_mul: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of `claims.tsv`."""

    subject: str
    property: str
    rank: str
    object: str
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One line of `redirects.tsv`."""

    page_id: int
    namespace: int
    title: str
    interwiki: str
    target_namespace: int
    target: str
    fragment: str
    categories: tuple[str, ...]
    wikitext: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One line of `pages.tsv`."""

    page_id: int
    namespace: int
    title: str
    page_prop: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All tables, in the order of their lines."""

    entities: tuple[Entity, ...]
    claims: tuple[Claim, ...]
    redirects: tuple[Redirect, ...]
    pages: tuple[Page, ...]
    templates: dict[str, str]


def read_tables(folder: Path) -> Tables:
    """Read the tables of a folder."""
    return Tables(
        entities=tuple(map(_entity, read_lines(folder / "entities.tsv"))),
        claims=tuple(map(_claim, read_lines(folder / "claims.tsv"))),
        redirects=tuple(map(_redirect, read_lines(folder / "redirects.tsv"))),
        pages=tuple(
            Page(
                page_id=int(row["page_id"]),
                namespace=int(row["namespace"]),
                title=row["title"],
                page_prop=row["page_prop"] or None,
            )
            for row in read_lines(folder / "pages.tsv")
        ),
        templates={
            row["category"]: row["template"] for row in read_lines(folder / "templates.tsv")
        },
    )


def _entity(row: dict[str, str]) -> Entity:
    """Read one item."""
    return Entity(
        qid=row["qid"],
        label=row["label"] or None,
        title=row["title"] or None,
        page_id=int(row["page_id"]) if row["page_id"] else None,
        aliases=split_values(row["aliases"]),
        views=(int(row["views_november"]), int(row["views_december"])),
        label_ja=row["label_ja"] or None,
        label_mul=row["label_mul"] or None,
    )


def _claim(row: dict[str, str]) -> Claim:
    """Read one statement."""
    return Claim(**{name: row[name] for name in Claim.__slots__})


def _redirect(row: dict[str, str]) -> Redirect:
    """Read one redirect page."""
    return Redirect(
        page_id=int(row["page_id"]),
        namespace=int(row["namespace"]),
        title=row["title"],
        interwiki=row["interwiki"],
        target_namespace=int(row["target_namespace"]),
        target=row["target"],
        fragment=row["fragment"],
        categories=tuple(map(_category_title, split_values(row["categories"]))),
        wikitext=row["wikitext"].replace("\\n", "\n") or None,
    )


def _category_title(name: str) -> str:
    """Write a category as its page is titled; "from birth names" is short for the full name."""
    full = f"Redirects {name}" if name.startswith(("from ", "to ")) else name
    return full.replace(" ", "_")
