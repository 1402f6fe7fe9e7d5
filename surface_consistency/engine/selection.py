"""What every loader does with its questions: name, pair, spread, sum up, tell what is missing."""

import gc
import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, zip_longest
from json.encoder import encode_basestring_ascii
from typing import Final, Protocol, TypeVar

from surface_consistency.schemas import (
    CanonicalRedirectPair,
    DataSource,
    QuestionRealization,
)
from surface_consistency.taxonomy import CANONICAL_LABEL

__all__ = [
    "Named",
    "chosen_names",
    "describe_data",
    "first_few",
    "pair_questions",
    "pause_gc",
    "question_id",
    "repeated_rows",
    "spread",
    "surface_digest",
    "tell_limit",
    "unanswerable",
]

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_SHOWN: Final = 5


class Named(Protocol):
    """What names a question: a `SurfaceForm`, or whatever has its fields."""

    @property
    def text(self) -> str:
        """The name as the question uses it."""

    @property
    def is_canonical(self) -> bool:
        """Whether it is the article's title."""

    @property
    def redirect_title(self) -> str | None:
        """Title of the redirect page."""


def question_id(triple_id: str, template: str, surface: Named) -> str:
    """Name a question by what it asks, so that the name survives a new order of the rows.

    Args:
        triple_id: Identifier of the fact.
        template: Name of the wording.
        surface: The name that is asked about.

    Returns:
        `<triple id>:<template>:<hash>`, where the hash is the first 12 hexadecimal digits of the
        SHA-256 of the surface, a line feed and the redirect's title ("__MAIN__" when canonical, ""
        when unknown): two redirects may share a surface once their parentheses are gone.

    Examples:
        >>> from surface_consistency.schemas import SurfaceForm
        >>> question_id("1318704", "original", SurfaceForm(text="Chris Metzen", is_canonical=True))
        '1318704:original:5680837e88a7'
    """
    return f"{triple_id}:{template}:{surface_digest(surface)}"


def surface_digest(surface: Named) -> str:
    """Sum up a name: the last part of `question_id`."""
    title = CANONICAL_LABEL if surface.is_canonical else surface.redirect_title or ""
    return hashlib.sha256(f"{surface.text}\n{title}".encode()).hexdigest()[:12]


def pair_questions(
    questions: Sequence[QuestionRealization],
) -> tuple[tuple[CanonicalRedirectPair, ...], tuple[QuestionRealization, ...]]:
    """Pair each redirect question with the canonical one of the same fact and template.

    Args:
        questions: Questions with unique ids.

    Returns:
        The pairs and the redirect questions that have no canonical one, both in order.
    """
    canonical = {
        (question.triple.id, question.template): question
        for question in questions
        if question.surface.is_canonical
    }
    pairs, unpaired = [], []
    for question in questions:
        if question.surface.is_canonical:
            continue
        partner = canonical.get((question.triple.id, question.template))
        if partner is None:
            unpaired.append(question)
        else:
            pairs.append(
                CanonicalRedirectPair(id=question.id, canonical=partner, redirect=question)
            )
    return tuple(pairs), tuple(unpaired)


def spread(grouped: Iterable[tuple[str, T]], limit: int) -> set[T]:
    """Take items from all groups in turn, so that a part of a data set is not of one kind.

    Args:
        grouped: Group and item; an item that comes again counts once.
        limit: How many items to take, 1 or more.

    Returns:
        The first item of each group, groups in order of appearance, then the second of each, and so
        on; all items where there are no more than `limit`.

    Examples:
        >>> sorted(spread([("a", 1), ("a", 2), ("a", 3), ("b", 4)], 3))
        [1, 2, 4]
    """
    groups: dict[str, dict[T, None]] = {}
    for group, item in grouped:
        groups.setdefault(group, {})[item] = None
    columns = ([(item,) for item in group] for group in groups.values())
    rounds = chain.from_iterable(zip_longest(*columns, fillvalue=()))
    return set(islice(chain.from_iterable(rounds), limit))


def tell_limit(limit: int | None, n_asked: int, n_held: int, what: str) -> None:
    """Say in the log of the package where a limit takes all, since there are not so many.

    Args:
        limit: The limit; None for none.
        n_asked: What is asked.
        n_held: What there is.
        what: What is counted, such as "topics".
    """
    if limit not in (None, n_held) and n_asked == n_held:
        _LOG.info("--limit %s: all %s %s are asked, there are no more", limit, f"{n_held:,}", what)


def chosen_names(names: str | Iterable[str] | None, what: str, present: Iterable[str]) -> set[str]:
    """Check a choice of some of what is there, by name; None chooses all.

    Raises:
        ValueError: If the choice is empty, or a name is not there; says what is.
    """
    known = dict.fromkeys(present)
    wanted = set(known) if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted(wanted - known.keys())
    if unknown or not wanted:
        raise ValueError(
            f"{what} must be among those of the data, {', '.join(known)}; got "
            f"{', '.join(map(repr, unknown)) or 'none'}"
        )
    return wanted


def describe_data(
    questions: Sequence[QuestionRealization], *, source: str, revision: str | None
) -> DataSource:
    """Sum up which questions are in use.

    Args:
        questions: The questions.
        source: Where they came from.
        revision: Commit of the hub repository; None elsewhere.

    Returns:
        The facts for a run's manifest. The digest covers id, wording and answers of each question
        and does not depend on their order.
    """
    quoted = encode_basestring_ascii
    answers: dict[tuple[str, ...], str] = {}
    digest = hashlib.sha256()
    for question in sorted(questions, key=lambda item: item.id):
        accepted = question.triple.answers
        if accepted not in answers:
            answers[accepted] = f"[{', '.join(map(quoted, accepted))}]"
        line = f"[{quoted(question.id)}, {quoted(question.question)}, {answers[accepted]}]\n"
        digest.update(line.encode("ascii"))
    return DataSource(
        id=source, revision=revision, digest=digest.hexdigest(), n_questions=len(questions)
    )


@contextmanager
def pause_gc() -> Iterator[None]:
    """Keep the garbage collector from walking new records, which hold no cycles, over and over."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def repeated_rows(source: str, n_rows: int) -> str:
    """Tell of rows that repeat others; "" of none."""
    return (
        f"{source} repeats {n_rows} rows to the letter; each question is used once"
        if n_rows
        else ""
    )


def unanswerable(source: str, without: Sequence[str]) -> str:
    """Tell of the questions, by their facts, for which a source accepts no answer; "" of none."""
    facts = list(dict.fromkeys(without))
    return (
        f"{len(without)} questions of {source} have no accepted answer ({len(facts)} facts: "
        f"{first_few(facts)}); they are kept, but no answer to them can be scored: fill in the "
        "answers or leave these facts out"
        if without
        else ""
    )


def first_few(items: Sequence[str]) -> str:
    """List the first five, for a message."""
    return ", ".join(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
