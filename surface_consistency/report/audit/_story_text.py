"""The story of a fact as lines of plain text."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from surface_consistency.report.audit._names import KIND_MEANINGS
from surface_consistency.schemas.memory import Candidate, Lookup, RetrievalTrace

if TYPE_CHECKING:
    from surface_consistency.report.audit.story import FactStory, StateStory

__all__ = [
    "entry_text",
    "marks",
    "origin",
    "policy_text",
    "quoted",
    "seen",
    "story_lines",
    "verdict_text",
]

_MATCHES = ("subject", "relation", "object")


def story_lines(story: "FactStory") -> Iterator[str]:
    """Write a story, one line after the other."""
    target, prompt = story.target, story.target.prompt
    yield f"{target.fact_id}, {target.style}, by {story.model}"
    yield f"  fact      {entry_text((prompt.subject, prompt.relation, prompt.gold_object))}"
    for role in _MATCHES:
        if aliases := getattr(prompt, f"{role}_aliases"):
            yield f"  {role + 's':9} also {', '.join(map(quoted, aliases))}"
    yield f"  prompt    {quoted(prompt.prompt_text)}"
    yield f"  deleted   {target.n_deleted}, of which lookups brought up {len(story.deleted)}"
    yield from (f"            {entry_text(entry)}" for entry in story.deleted)
    if target.surviving:
        yield f"  SURVIVED  {len(target.surviving)}: the closure is incomplete"
        yield from (f"            {entry_text(entry)}" for entry in target.surviving)
    if target.echoes:
        yield f"  echoes    {', '.join(map(quoted, target.echoes))}: the subject is in the gold"
    for state in story.states:
        yield from _state_lines(state)
    if story.attribution is not None:
        yield f"  origin    {origin(story)}"


def origin(story: "FactStory") -> str:
    """Say where the right DEL-ON answer came from."""
    meanings = {str(kind): meaning for kind, meaning in KIND_MEANINGS.items()}
    kind = story.attribution or ""
    said = f"{kind}: {meanings.get(kind, kind)}"
    return said if story.attributed_to is None else f"{said} ({quoted(story.attributed_to)})"


def verdict_text(state: "StateStory") -> str:
    """Say how an answer was judged."""
    if state.generation is not None and state.generation.error is not None:
        return f"no answer ({state.generation.error})"
    return {True: "right", False: "wrong", None: "not judged"}[state.is_correct]


def policy_text(trace: RetrievalTrace) -> str:
    """Say what a lookup came to."""
    if trace.error is not None:
        return f"not asked: {trace.error}"
    if not trace.retrieval_enabled:
        return "retrieval off"
    bar = "no threshold" if trace.threshold is None else f"threshold {trace.threshold:g}"
    if trace.selected_candidate is None:
        return f"abstained, {bar}"
    return f"{'fallback below' if trace.is_fallback else 'above'} {bar}"


def marks(candidate: Candidate, trace: RetrievalTrace) -> str:
    """Say what a candidate shares with the fact and what became of it."""
    said = [name for name in _MATCHES if getattr(candidate, f"matches_{name}")]
    said = [f"same {', '.join(said)}"] if said else []
    if candidate in trace.deleted_candidates:
        said.append("deleted")
    elif candidate in trace.retained_candidates:
        said.append("retained")
    if candidate == trace.selected_candidate:
        said.append("SELECTED")
    return "; ".join(said)


def entry_text(entry: tuple[str, str, str]) -> str:
    """Write an entry of a store."""
    return " | ".join(quoted(part) for part in entry)


def quoted(text: str) -> str:
    """Put a text in quotes, control characters escaped."""
    return json.dumps(text, ensure_ascii=False)


def _state_lines(state: "StateStory") -> Iterator[str]:
    """Write what happened in one state."""
    yield f"  {state.state}: {verdict_text(state)}"
    if state.generation is not None and state.generation.text is not None:
        yield f"    wrote   {quoted(state.generation.text)}"
    if state.answer is not None:
        yield f"    answer  {quoted(state.answer)}"
    for lookup in state.lookups:
        yield from _lookup_lines(lookup)


def _lookup_lines(lookup: Lookup) -> Iterator[str]:
    """Write one lookup with all its candidates."""
    given = "nothing" if lookup.value is None else quoted(lookup.value)
    asked = f"{quoted(lookup.query.entity)} | {quoted(lookup.query.relation)}"
    yield f"    lookup  {asked} gave {given}"
    if lookup.trace is None:
        return
    yield f"            {policy_text(lookup.trace)}"
    for item in seen(lookup.trace):
        entry = entry_text((item.subject, item.relation, item.object))
        yield f"      {item.score:7.4f}  {entry}  [{marks(item, lookup.trace)}]"


def seen(trace: RetrievalTrace) -> list[Candidate]:
    """List every candidate of a lookup once, best first: those before masking, then the rest."""
    every = dict.fromkeys((*trace.all_candidates, *trace.retained_candidates))
    return sorted(every, key=lambda item: -item.score)
