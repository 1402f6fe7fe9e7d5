"""Where a right answer after deletion came from, read off the traces of its lookups.

What is right with retrieval off too is the parameters'; `AuditOutcome.derived`, which sees both
answers, says so. Of the rest this module says what the model was given.
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
"""Where a right answer after deletion may come from, in order."""

KIND_TITLES: Final[Mapping[Attribution, str]] = {
    "parameters": "known without retrieval",
    "surviving_equivalent": "entry that survived",
    "same_object": "same object elsewhere",
    "echo": "echo of the prompt",
    "same_subject": "other object of the subject",
    "unrelated": "unrelated entry",
    "no_candidate": "no entry",
}
"""The same in few words."""

KIND_MEANINGS: Final[Mapping[Attribution, str]] = {
    "parameters": "the model is right with retrieval off too, whatever it was given",
    "surviving_equivalent": "an entry that still states the deleted fact was given to the model",
    "same_object": "an entry with the right object under another subject or relation was given",
    "echo": "the answer stands in the prompt, and no entry given holds it",
    "same_subject": "an entry about the subject with another object was given, which does not "
    "explain the answer",
    "unrelated": "an entry that shares neither was given, which does not explain the answer",
    "no_candidate": "no entry was given at all",
}
"""The same in a sentence."""


def attribute(
    prompt: AuditPrompt,
    answer: str,
    traces: Sequence[RetrievalTrace],
    *,
    surviving: Collection[Sequence[str]] = (),
    equivalence: str | Equivalence = "audit",
    n_facts: int | None = None,
) -> tuple[Attribution, Triplet | None]:
    """Tell where a right answer after deletion came from.

    Only what the model was given counts, over all its lookups; entries that retrieval ranked but
    did not hand over could not have answered. The first of these that holds is the result: an entry
    that states the deleted fact; an entry with its object under another subject or relation; the
    answer standing in the prompt as whole words; an entry about the subject with another object; an
    entry that shares neither; none at all. It is never "parameters", which no trace can tell.

    Args:
        prompt: The fact and its prompt.
        answer: The cleaned answer, which is right.
        traces: Traces of the lookups, in order.
        surviving: Entries that still state the fact by a wider closure than the deletion's.
        equivalence: How the answer and objects are compared: a name or a value of `EQUIVALENCES`.
        n_facts: Facts that the runner puts before a prompt, maximum; None where the model looks
            facts up itself. See `given_candidates`.

    Returns:
        Where the answer came from, and the entry behind it, among those of one kind the first; None
        for an echo and without candidate.

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
    if _stands_in(answer, prompt.prompt_text, rule):
        sources["echo"] = None
    for kind in KINDS:
        if kind in sources:
            return kind, sources[kind]
    return "no_candidate", None


def given_candidates(trace: RetrievalTrace, n_facts: int | None) -> Sequence[Candidate]:
    """Return the candidates of a lookup that the model was given.

    Args:
        trace: The lookup.
        n_facts: Maximum number of facts, for runners that put several before a prompt; None where
            the model is given what was selected.

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
    """Tell what one entry that the model was given has of the fact."""
    entry = (candidate.subject, candidate.relation, candidate.object)
    if candidate.supports_target_fact or entry in surviving:
        return "surviving_equivalent"
    if rule.key(candidate.object) in golds:
        return "same_object"
    return "same_subject" if candidate.matches_subject else "unrelated"


def _stands_in(answer: str, text: str, rule: Equivalence) -> bool:
    """Tell whether the answer stands in a text as whole words."""
    key = rule.key(answer)
    return bool(key) and f" {key} " in f" {rule.key(text)} "
