"""What every loader does with its questions: name them, pair them, sum them up."""

import hashlib
import json
from collections.abc import Sequence

from surface_consistency.schemas import (
    CanonicalRedirectPair,
    DataSource,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.taxonomy import CANONICAL_LABEL

__all__ = ["describe_data", "pair_questions", "question_id"]


def question_id(triple_id: str, template: str, surface: SurfaceForm) -> str:
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
        >>> question_id("1318704", "original", SurfaceForm(text="Chris Metzen", is_canonical=True))
        '1318704:original:5680837e88a7'
    """
    title = CANONICAL_LABEL if surface.is_canonical else surface.redirect_title or ""
    content = hashlib.sha256(f"{surface.text}\n{title}".encode()).hexdigest()
    return f"{triple_id}:{template}:{content[:12]}"


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
    digest = hashlib.sha256()
    for question in sorted(questions, key=lambda item: item.id):
        content = [question.id, question.question, question.triple.answers]
        digest.update(json.dumps(content).encode("ascii"))
        digest.update(b"\n")
    return DataSource(
        id=source, revision=revision, digest=digest.hexdigest(), n_questions=len(questions)
    )
