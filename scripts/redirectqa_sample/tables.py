"""The reviewed tables from which the sample is generated, and their checks.

All are tab-separated UTF-8 with one header line and without quoting; a cell with several
values separates them with " | ".

- `facts.tsv`: one fact per line, with its Wikidata ids and all accepted answers.
- `redirects.tsv`: one redirect per line, with its categories and its source: `release` and
  `paper` (a row or an example of RedirectQA), `dump` (a page of an English Wikipedia dump), `hand`
  (an editor's knowledge; the categories follow their definitions on Wikipedia).
- `relations.tsv`: the 16 relations and their two templates.
- `categories.tsv`: the 33 redirect categories and their types.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.redirectqa_sample.tsv import read_lines, split_values

_QID = re.compile(r"Q[1-9][0-9]*")
_SOURCES = ("release", "paper", "dump", "hand")
_MAX_REDIRECTS = 4
_MIN_FACTS = 4
_MIN_IN_CATEGORY = 2
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
    """Wikidata item of the object; None if it was not looked up."""

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
    """Source of the redirect: "release", "paper", "dump" or "hand"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One line of `relations.tsv`."""

    relation_id: str
    """Wikidata property."""

    templates: dict[str, str]
    """Template name to question, with `{}` in place of the subject."""


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
    """Return the title of a page without underscores and trailing parentheses.

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
        folder: Folder of the files.

    Returns:
        Their lines as records; `check_tables` checks their consistency.

    Raises:
        ValueError: If a line has more or fewer cells than the header.
    """
    redirects: dict[str, list[Redirect]] = {}
    for row in read_lines(folder / "redirects.tsv"):
        redirects.setdefault(row["subject_wiki_title"], []).append(
            Redirect(
                title=row["redirect_title"],
                categories=split_values(row["categories"]),
                source=row["source"],
            )
        )
    return Tables(
        facts=tuple(_fact(row) for row in read_lines(folder / "facts.tsv")),
        redirects={title: tuple(pages) for title, pages in redirects.items()},
        relations={
            row["relation"]: Relation(
                relation_id=row["relation_id"],
                templates={name: row[name] for name in ("original", "paraphrase")},
            )
            for row in read_lines(folder / "relations.tsv")
        },
        category_types={
            row["redirect_category"]: row["type"] for row in read_lines(folder / "categories.tsv")
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
        answers=(row["object_surface"], *split_values(row["object_aliases"])),
    )


def check_tables(tables: Tables) -> None:
    """Raise an error if the tables have faults.

    Args:
        tables: The tables of the sample.

    Raises:
        ValueError: If there are faults; the message lists all of `find_faults`.
    """
    faults = list(find_faults(tables))
    if faults:
        raise ValueError("the tables of the sample have faults:\n" + "\n".join(faults))


def find_faults(tables: Tables) -> Iterator[str]:
    """Find the faults of the tables.

    Args:
        tables: The tables of the sample.

    Yields:
        One sentence per fault: an identifier that is not a Wikidata item or has two titles, a
        number used twice, an answer that is empty, repeated, found in the question or holding the
        subject's name (so that echoing the question would score), a name that two subjects of one
        relation share, and a relation or category that the sample covers too thinly.
    """
    yield from _repeated("triplet_id", [fact.triplet_id for fact in tables.facts])
    yield from _repeated("fact", [(fact.title, fact.relation) for fact in tables.facts])
    yield from _subject_faults(tables)
    for fact in tables.facts:
        yield from (f"fact {fact.triplet_id}: {fault}" for fault in _fact_faults(fact, tables))
    for title, redirects in tables.redirects.items():
        yield from (f"{title}: {fault}" for fault in _redirect_faults(title, redirects, tables))
    yield from _shared_names(tables)
    yield from _coverage_faults(tables)


def _repeated(what: str, values: Sequence[Hashable]) -> Iterator[str]:
    """Find values that occur more than once."""
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{what} {value!r} occurs {count} times"


def _subject_faults(tables: Tables) -> Iterator[str]:
    """Find subjects whose identifier and title do not correspond one to one."""
    subjects = sorted({(fact.subject_id, fact.title) for fact in tables.facts})
    yield from _repeated("the subject_id of different titles,", [qid for qid, _ in subjects])
    yield from _repeated("the title of different subject_ids,", [title for _, title in subjects])
    for title in sorted(tables.redirects.keys() - {title for _, title in subjects}):
        yield f"redirects.tsv has {title!r}, which has no fact"


def _fact_faults(fact: Fact, tables: Tables) -> Iterator[str]:
    """Find the faults of one fact."""
    for qid in (fact.subject_id, fact.object_id):
        if qid is not None and not _QID.fullmatch(qid):
            yield f"{qid!r} is not a Wikidata item"
    if fact.relation not in tables.relations:
        yield f"unknown relation {fact.relation!r}"
        return
    if not all(answer and answer == answer.strip() for answer in fact.answers):
        yield f"an answer is empty or has spaces around it: {fact.answers}"
    yield from _repeated("answer", fact.answers)
    templates = tables.relations[fact.relation].templates.values()
    for surface in _surfaces(fact.title, tables):
        questions = [template.replace("{}", surface).casefold() for template in templates]
        for answer in fact.answers:
            if any(answer.casefold() in question for question in questions):
                yield f"answer {answer!r} stands in the question about {surface!r}"
            if surface.casefold() in answer.casefold():
                yield f"answer {answer!r} holds the name {surface!r}"


def _redirect_faults(title: str, redirects: tuple[Redirect, ...], tables: Tables) -> Iterator[str]:
    """Find the faults of the redirects of one subject."""
    if not 1 <= len(redirects) <= _MAX_REDIRECTS:
        yield f"{len(redirects)} redirects, not 1 to {_MAX_REDIRECTS}"
    yield from _repeated("surface", _surfaces(title, tables))
    for redirect in redirects:
        if redirect.source not in _SOURCES:
            yield f"{redirect.title!r} has source {redirect.source!r}, not one of {_SOURCES}"
        if not redirect.categories:
            yield f"{redirect.title!r} has no category"
        yield from _repeated(f"{redirect.title!r}: category", redirect.categories)
        for label in sorted(set(redirect.categories) - tables.category_types.keys()):
            yield f"{redirect.title!r} has the unknown category {label!r}"


def _shared_names(tables: Tables) -> Iterator[str]:
    """Find surfaces of two subjects of the same relation."""
    owners: dict[tuple[str, str], set[str]] = {}
    for fact in tables.facts:
        for surface in _surfaces(fact.title, tables):
            owners.setdefault((fact.relation, surface), set()).add(fact.title)
    for (relation, surface), titles in owners.items():
        if len(titles) > 1:
            yield f"{surface!r} names {sorted(titles)} in relation {relation!r}"


def _coverage_faults(tables: Tables) -> Iterator[str]:
    """Find relations, subjects and categories with too few facts."""
    n_facts = Counter(fact.relation for fact in tables.facts)
    for relation in tables.relations:
        if n_facts[relation] < _MIN_FACTS:
            yield f"relation {relation!r} has {n_facts[relation]} facts, fewer than {_MIN_FACTS}"
    for title in sorted({fact.title for fact in tables.facts} - tables.redirects.keys()):
        yield f"{title!r} has no redirect"
    n_redirects = Counter(
        label
        for redirects in tables.redirects.values()
        for redirect in redirects
        for label in redirect.categories
    )
    for label in tables.category_types:
        if n_redirects[label] < _MIN_IN_CATEGORY:
            yield f"{label} has {n_redirects[label]} redirects, fewer than {_MIN_IN_CATEGORY}"


def _surfaces(title: str, tables: Tables) -> list[str]:
    """List the canonical surface of a subject and those of its redirects."""
    redirects = tables.redirects.get(title, ())
    return [surface_of(page) for page in (title, *(redirect.title for redirect in redirects))]
