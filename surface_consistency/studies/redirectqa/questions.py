"""Questions of RedirectQA: their names, their pairs, what a manifest says of them."""

import hashlib
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Protocol

from surface_consistency.engine.selection import first_few
from surface_consistency.schemas import CanonicalRedirectPair, DataSource, QuestionRealization
from surface_consistency.taxonomy import CANONICAL_LABEL

__all__ = [
    "Named",
    "describe_data",
    "pair_questions",
    "question_id",
    "surface_digest",
    "unanswerable",
]


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
