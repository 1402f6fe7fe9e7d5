"""The reviewed tables from which the sample is generated.

All are tab-separated UTF-8 with one header line and without quoting; a cell that holds several
values separates them with " | ".

- `facts.tsv`: one fact a line, with its Wikidata ids and all accepted answers.
- `redirects.tsv`: one redirect a line, with its categories and how it is known: `release` and
  `paper` (a row or an example of RedirectQA), `dump` (a page of an English Wikipedia dump), `hand`
  (an editor's knowledge; the categories follow their definitions on Wikipedia).
- `relations.tsv`: the 16 relations and their two templates.
- `categories.tsv`: the 33 redirect categories and their types.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SEPARATOR", "Fact", "Redirect", "Relation", "Tables", "read_tables", "surface_of"]

SEPARATOR: Final = " | "
"""What stands between the values of one cell."""

_DISAMBIGUATOR: Final = re.compile(r"\s+\([^()]*\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of `facts.tsv`."""

    triplet_id: int
    """Number of the fact in the sample; numbers are never reused."""

    subject_id: str
    """Wikidata item of the subject."""

    title: str
    """Title of the subject's English Wikipedia article, with spaces."""

    relation: str
    """Name of a relation."""

    object_id: str | None
    """Wikidata item of the object; None where it was not looked up."""

    answers: tuple[str, ...]
    """Accepted answers, the object's own name first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One line of `redirects.tsv`."""

    title: str
    """Title of the redirect page, with spaces."""

    categories: tuple[str, ...]
    """Category labels, such as "Redirects_from_birth_names"."""

    source: str
    """How the redirect is known: "release", "paper", "dump" or "hand"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One line of `relations.tsv`."""

    relation_id: str
    """Wikidata property."""

    templates: dict[str, str]
    """Template name to question, with `{}` where the subject goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All four tables, in the order of their lines."""

    facts: tuple[Fact, ...]
    """Facts in the order of the sample."""

    redirects: dict[str, tuple[Redirect, ...]]
    """Title of the subject to its redirects."""

    relations: dict[str, Relation]
    """Relations by name."""

    category_types: dict[str, str]
    """Category label to type label."""


def surface_of(title: str) -> str:
    """Name an entity as its page is titled, without underscores and trailing parentheses.

    Args:
        title: Title of an article or redirect page.

    Returns:
        The surface form that questions use.

    Examples:
        >>> surface_of("Jesus_Antunez_(musician)")
        'Jesus Antunez'
    """
    return _DISAMBIGUATOR.sub("", title.replace("_", " "))


def read_tables(folder: Path) -> Tables:
    """Read the four tables of a folder.

    Args:
        folder: Where the files are.

    Returns:
        Their lines as records; that they fit together is for `check_tables` to say.

    Raises:
        ValueError: If a line has more or fewer cells than the header.
    """
    redirects: dict[str, list[Redirect]] = {}
    for row in _lines(folder / "redirects.tsv"):
        redirects.setdefault(row["subject_wiki_title"], []).append(
            Redirect(
                title=row["redirect_title"],
                categories=_values(row["categories"]),
                source=row["source"],
            )
        )
    return Tables(
        facts=tuple(_fact(row) for row in _lines(folder / "facts.tsv")),
        redirects={title: tuple(found) for title, found in redirects.items()},
        relations={
            row["relation"]: Relation(
                relation_id=row["relation_id"],
                templates={name: row[name] for name in ("original", "paraphrase")},
            )
            for row in _lines(folder / "relations.tsv")
        },
        category_types={
            row["redirect_category"]: row["type"] for row in _lines(folder / "categories.tsv")
        },
    )


def _fact(row: dict[str, str]) -> Fact:
    """Turn a line of `facts.tsv` into a record."""
    return Fact(
        triplet_id=int(row["triplet_id"]),
        subject_id=row["subject_id"],
        title=row["subject_wiki_title"],
        relation=row["relation"],
        object_id=row["object_id"] or None,
        answers=(row["object_surface"], *_values(row["object_aliases"])),
    )


def _values(cell: str) -> tuple[str, ...]:
    """Split a cell of several values; an empty cell has none."""
    return tuple(cell.split(SEPARATOR)) if cell else ()


def _lines(path: Path) -> Iterator[dict[str, str]]:
    """Read the lines of a table by the names in its header."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise ValueError(
                f"{path.name} line {number}: {len(cells)} cells, the header has {len(names)}; "
                "separate them with single tabs"
            )
        yield dict(zip(names, cells, strict=True))
