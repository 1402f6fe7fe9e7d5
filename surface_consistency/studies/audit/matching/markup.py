"""Find the lookups that a model wrote into its text, and remove them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from surface_consistency.text import token_key

LOOKUP_TOKENS: Final = ("<|db_entity|>", "<|db_relationship|>", "<|db_return|>", "<|db_end|>")
"""Tokens that open the entity, the relation and the value of a lookup, and that end it."""

# A lookup does not extend beyond the end of its line or the start of the next lookup. Parts have a
# maximum length, so that the time for a text without an end is linear in its length.
_LEGACY_PART = r"(?:(?!\[dblookup)[^\n]){0,300}?"
_LEGACY = re.compile(
    rf"""\[dblookup\(\s*(['"])(?P<entity>{_LEGACY_PART})\1\s*,\s*"""
    rf"""(['"])(?P<relation>{_LEGACY_PART})\3\s*\)\s*->"""
    r"(?:\s*(?P<value>[^\[\]\n]*)(?P<end>\]))?"
)
_LEGACY_START = re.compile(r"\[dblookup")
_LEGACY_BROKEN = re.compile(
    r"\[dblookup(?:(?!\[dblookup)[^\]\n])*\]|\[dblookup[^)\n\[\]]*\)?(?:\s*->)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLookup:
    """One lookup in a text."""

    entity: str
    """The entity part; empty if missing."""

    relation: str
    """The relation part; empty if missing."""

    value: str | None
    """Text at the position of the result; None if the text ends or continues before it."""

    start: int
    """Position of its first character."""

    end: int
    """Position after its last character."""

    is_closed: bool
    """Whether it has its end."""

    is_malformed: bool = False
    """Whether it begins as a lookup of the older format without a valid entity and relation, and
    the text continues; the text after its bracket or its arrow is prose."""


def parse_lookups(text: str) -> tuple[WrittenLookup, ...]:
    """Find the lookups in a text, complete or not, in both formats.

    `<|db_entity|> E<|db_relationship|> R<|db_return|> V<|db_end|>`, and the older
    `[dblookup('E', 'R') -> V]`. A second entity before the result replaces the first (the query of
    a nested lookup is its innermost one); a new lookup within a value ends the one before it. An
    older one that ends with its arrow has no value yet; text after it without a bracket is prose.

    Args:
        text: The output of a model, with the inserted results.

    Returns:
        The lookups in the text's order; they do not overlap.

    Examples:
        >>> lookup, = parse_lookups("<|db_entity|> USA<|db_relationship|> Capital<|db_return|>")
        >>> lookup.entity, lookup.relation, lookup.value, lookup.is_closed
        ('USA', 'Capital', '', False)
        >>> parse_lookups("[dblookup('USA', 'Capital') -> Washington, D.C.]")[0].value
        'Washington, D.C.'
    """
    lookups = [*_with_tokens(text), *_legacy(text)]
    lookups.sort(key=lambda lookup: lookup.start)
    apart: list[WrittenLookup] = []
    for lookup in lookups:
        if not apart or lookup.start >= apart[-1].end:
            apart.append(lookup)
    return tuple(apart)


def strip_lookups(text: str, *, values: Literal["once", "drop"] = "once") -> str:
    """Remove the lookups from a text and keep the visible text.

    Args:
        text: The output of a model, with the inserted results.
        values: "once" keeps each inserted result, unless the words after it repeat it; "drop"
            removes the results, as in the visible output of limited-memory models, which repeat
            the value in their own words.

    Returns:
        The text without lookups, including unclosed ones, and without one space before each.

    Examples:
        >>> lookup = "<|db_entity|> USA<|db_relationship|> Capital<|db_return|> Rome<|db_end|>"
        >>> strip_lookups(f"It is {lookup}."), strip_lookups(f"It is {lookup} Rome, of course.")
        ('It is Rome.', 'It is Rome, of course.')
        >>> strip_lookups(f"It is {lookup} Rome.", values="drop")
        'It is Rome.'
    """
    lookups = parse_lookups(text)
    starts = [*(lookup.start for lookup in lookups[1:]), len(text)]
    pieces = [text[: lookups[0].start] if lookups else text]
    n_seen, has_text = 0, False
    for lookup, start in zip(lookups, starts, strict=True) if lookups else ():
        after = text[lookup.end : start]
        if pieces[-1][-1:].isspace():
            pieces[-1] = pieces[-1][:-1]
        value = (lookup.value or "").strip()
        if values == "once" and value and not _repeats(after, value):
            has_text = has_text or any(pieces[n_seen:])
            n_seen = len(pieces)
            pieces.append(f" {value}" if has_text else value)
        pieces.append(after)
    visible = "".join(pieces)
    for token in LOOKUP_TOKENS:
        visible = visible.replace(token, "")
    return visible


def _repeats(after: str, value: str) -> bool:
    """Return whether a text begins with the words of a value."""
    words = token_key(value).split()
    return bool(words) and token_key(after).split()[: len(words)] == words


def _with_tokens(text: str) -> Iterator[WrittenLookup]:
    """Find the lookups in the format with tokens."""
    entity, _, result, end = LOOKUP_TOKENS
    marks = [*re.finditer("|".join(map(re.escape, LOOKUP_TOKENS)), text)]
    stops = [*(mark.start() for mark in marks[1:]), len(text)]
    part: dict[str, str] = {}
    start: int | None = None
    for mark, stop in zip(marks, stops, strict=False):
        content = text[mark.end() : stop]
        if start is not None and result in part and mark[0] != end:
            yield _lookup(part, start, mark.start(), is_closed=False)
            part, start = {}, None
        if mark[0] == end:
            if start is not None:
                yield _lookup(part, start, mark.end(), is_closed=True)
            part, start = {}, None
            continue
        start = mark.start() if start is None else start
        if mark[0] == entity:
            part = {entity: content}
        else:
            part[mark[0]] = part.get(mark[0], "") + content
    if start is not None:
        yield _lookup(part, start, len(text), is_closed=False)


def _lookup(part: dict[str, str], start: int, end: int, *, is_closed: bool) -> WrittenLookup:
    """Make the record of one lookup."""
    entity, relation, result, _ = LOOKUP_TOKENS
    value = part.get(result)
    return WrittenLookup(
        entity=part.get(entity, "").strip(),
        relation=part.get(relation, "").strip(),
        value=None if value is None else value.strip(),
        start=start,
        end=end,
        is_closed=is_closed,
    )


def _legacy(text: str) -> Iterator[WrittenLookup]:
    """Find the lookups of the older format; an invalid one ends before the text that is prose."""
    end = 0
    for start in _LEGACY_START.finditer(text):
        if start.start() < end:
            continue
        match = _LEGACY.match(text, start.start())
        broken = None if match else _LEGACY_BROKEN.match(text, start.start())
        end = match.end() if match else broken.end() if broken else start.end()
        yield WrittenLookup(
            entity=match["entity"].strip() if match else "",
            relation=match["relation"].strip() if match else "",
            value=match["value"].strip() if match and match["end"] else None,
            start=start.start(),
            end=end,
            is_closed=bool(match and match["end"]),
            is_malformed=match is None and end < len(text),
        )
