"""Find the origin of a correct answer after deletion in the traces of its lookups.

`AuditOutcome.derived`, which has both answers, attributes an answer to the parameters if it is
also correct with retrieval off. This module attributes the others to an entry or to the prompt.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, get_args

from surface_consistency.schemas.memory import AuditPrompt, Candidate, RetrievalTrace, Triplet
from surface_consistency.studies.audit.matching.judgement import (
    EQUIVALENCES,
    Equivalence,
    rule_named,
)
from surface_consistency.studies.audit.records import Attribution

KINDS: Final[tuple[Attribution, ...]] = get_args(Attribution)
"""Possible origins of a correct answer after deletion, in order."""

KIND_TITLES: Final[Mapping[Attribution, str]] = {
    "parameters": "known without retrieval",
    "surviving_equivalent": "entry that survived",
    "same_object": "same object elsewhere",
    "echo": "echo of the prompt",
    "same_subject": "other object of the subject",
    "unrelated": "unrelated entry",
    "no_candidate": "no entry",
}
"""Title of each origin."""

KIND_MEANINGS: Final[Mapping[Attribution, str]] = {
    "parameters": "the model is also correct with retrieval off, whichever entry it was given",
    "surviving_equivalent": "an entry that still states the deleted fact was given to the model",
    "same_object": "an entry with the correct object under another subject or relation was given",
    "echo": "the prompt contains the answer, and no entry that was given contains it",
    "same_subject": "an entry about the subject with another object was given, which does not "
    "explain the answer",
    "unrelated": "an entry that shares neither was given, which does not explain the answer",
    "no_candidate": "no entry was given",
}
"""Description of each origin in a sentence."""


def attribute(
    prompt: AuditPrompt,
    answer: str,
    traces: Sequence[RetrievalTrace],
    *,
    surviving: Collection[Sequence[str]] = (),
    equivalence: str | Equivalence = "audit",
    n_facts: int | None = None,
) -> tuple[Attribution, Triplet | None]:
    """Find the origin of a correct answer after deletion.

    Only entries that the model was given in any of its lookups count, not those that retrieval
    ranked but did not pass on. The result is the first of these that applies: an entry that states
    the deleted fact; an entry with its object under another subject or relation; the answer as
    whole words in the prompt; an entry about the subject with another object; an entry that shares
    neither; no entry. It is never "parameters", which traces do not show.

    Args:
        prompt: The fact and its prompt.
        answer: The cleaned answer, which is correct.
        traces: Traces of the lookups, in order.
        surviving: Entries that still state the fact by a wider closure than the deletion's.
        equivalence: How the answer and objects are compared: a name or a value of `EQUIVALENCES`.
        n_facts: Maximum number of facts that the runner puts before a prompt; None if the model
            looks facts up itself. See `given_candidates`.

    Returns:
        The origin, and the first entry of this kind; None in place of an entry for an echo and
        without a candidate.

    Examples:
        >>> fact = AuditPrompt(prompt_id=0, fact_id=0, subject="Japan", relation="Capital",
        ...     gold_object="Tokyo", prompt_text="The capital of Japan, Tokyo or Kyoto?")
        >>> attribute(fact, "Tokyo", []), attribute(fact, "Tôkyô", [])
        (('echo', None), ('no_candidate', None))
    """
    rule = rule_named("equivalence", equivalence, EQUIVALENCES)
    golds = {rule.key(name) for name in (prompt.gold_object, *prompt.object_aliases, answer)} - {""}
    stated = {tuple(entry) for entry in surviving}
    sources: dict[Attribution, Triplet | None] = {}
    for trace in traces:
        for candidate in given_candidates(trace, n_facts):
            kind = _kind(candidate, golds, stated, rule)
            sources.setdefault(
                kind, Triplet(candidate.subject, candidate.relation, candidate.object)
            )
    if _contains_answer(answer, prompt.prompt_text, rule):
        sources["echo"] = None
    for kind in KINDS:
        if kind in sources:
            return kind, sources[kind]
    return "no_candidate", None


def given_candidates(trace: RetrievalTrace, n_facts: int | None) -> Sequence[Candidate]:
    """Return the candidates of a lookup that the model was given.

    Args:
        trace: The lookup.
        n_facts: Maximum number of facts, for runners that put several before a prompt; None if
            the model is given the selected candidate.

    Returns:
        The retained candidates at or above the threshold, else the selected one, if any.
    """
    accepted = [
        candidate
        for candidate in trace.retained_candidates[: n_facts or 0]
        if trace.threshold is None or candidate.score >= trace.threshold
    ]
    selected = () if trace.selected_candidate is None else (trace.selected_candidate,)
    return accepted or selected


def _kind(
    candidate: Candidate, golds: set[str], surviving: set[tuple[str, ...]], rule: Equivalence
) -> Attribution:
    """Return the origin to which one entry that the model was given belongs."""
    entry = (candidate.subject, candidate.relation, candidate.object)
    if candidate.supports_target_fact or entry in surviving:
        return "surviving_equivalent"
    if rule.key(candidate.object) in golds:
        return "same_object"
    return "same_subject" if candidate.matches_subject else "unrelated"


def _contains_answer(answer: str, text: str, rule: Equivalence) -> bool:
    """Return whether a text contains the answer as whole words."""
    key = rule.key(answer)
    return bool(key) and f" {key} " in f" {rule.key(text)} "
