"""The story of a fact as a part of the report page."""

from typing import TYPE_CHECKING, Final

from surface_consistency.report._markup import Html, data_text, join, tag
from surface_consistency.report.audit._story_text import (
    marks,
    origin,
    policy_text,
    seen,
    verdict_text,
)
from surface_consistency.schemas.memory import Lookup, Triplet

if TYPE_CHECKING:
    from surface_consistency.report.audit.story import FactStory, StateStory

__all__ = ["story_html"]

_CANDIDATE_HEADS: Final = ("score", "subject", "relation", "object", "")


def story_html(story: "FactStory") -> Html:
    """Show a fact: what was deleted, what each lookup found, and the answers in three states."""
    target, prompt = story.target, story.target.prompt
    heading = f"{target.fact_id}, {target.style}: {prompt.subject}, {prompt.relation}"
    parts = [
        _line("Fact", _entry(Triplet(prompt.subject, prompt.relation, prompt.gold_object))),
        _line("Prompt", data_text(prompt.prompt_text)),
        _line(
            "Deleted",
            join([f"{target.n_deleted}, brought up by lookups: ", _entries(story.deleted)]),
        ),
    ]
    if target.surviving:
        survived = join(
            ["survived the deletion, which is incomplete: ", _entries(target.surviving)]
        )
        parts.append(tag("p", f"{len(target.surviving)} ", survived, class_="note"))
    if story.attribution is not None:
        parts.append(_line("Where the answer came from", data_text(origin(story))))
    parts.extend(_state(state) for state in story.states)
    return tag("details", tag("summary", join([f"{story.model}: ", heading])), *parts)


def _state(state: "StateStory") -> Html:
    """Show one state: the verdict, what was written, and each lookup."""
    parts = [tag("h3", f"{state.state}: {verdict_text(state)}")]
    if state.generation is not None and state.generation.text is not None:
        parts.append(_line("Wrote", data_text(state.generation.text)))
    parts.append(_line("Answer", data_text(state.answer)))
    return join([*parts, *(_lookup(lookup) for lookup in state.lookups)])


def _lookup(lookup: Lookup) -> Html:
    """Show one lookup with its candidates."""
    said = join(
        [
            data_text(lookup.query.entity),
            ", ",
            data_text(lookup.query.relation),
            " gave ",
            data_text(lookup.value),
        ]
    )
    trace = lookup.trace
    if trace is None:
        return _line("Lookup", said)
    rows = [
        tag(
            "tr",
            tag("td", f"{item.score:.4f}", class_="number"),
            *(
                tag("td", data_text(part), class_="text")
                for part in (item.subject, item.relation, item.object)
            ),
            tag("td", marks(item, trace), class_="text"),
        )
        for item in seen(trace)
    ]
    head = tag("tr", *(tag("th", name, scope="col", class_="text") for name in _CANDIDATE_HEADS))
    caption = f"Candidates: {policy_text(trace)}"
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *rows))
    shown = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)
    return join([_line("Lookup", said), shown if rows else tag("p", caption)])


def _line(name: str, value: Html) -> Html:
    """Show one named value."""
    return tag("p", tag("strong", f"{name}: "), value)


def _entry(entry: Triplet) -> Html:
    """Show an entry of a store."""
    return join([data_text(part) for part in entry], Html(" | "))


def _entries(entries: tuple[Triplet, ...]) -> Html:
    """Show entries one after the other."""
    return join([_entry(entry) for entry in entries], Html("; ")) if entries else data_text(None)
