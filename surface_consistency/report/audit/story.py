"""The whole story of one fact: what was deleted, what was found, and what was answered."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.report.audit._names import KIND_MEANINGS, STATE_COLUMNS
from surface_consistency.report.audit.run import AuditRun, load_audit_runs
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas.audit import AuditTarget
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.jsonl import read_jsonl
from surface_consistency.schemas.memory import Lookup, MemoryState, Triplet
from surface_consistency.schemas.prompts import Prompt

__all__ = ["FactStory", "StateStory", "fact_story", "load_stories", "surviving_facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStory:
    """A fact in one state of the store."""

    state: MemoryState
    """The state."""

    is_correct: bool | None
    """The verdict; None without one."""

    answer: str | None
    """The cleaned answer; None without one."""

    generation: Generation | None
    """What the model wrote and looked up; None when the run log holds no answer."""

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups, in order."""
        return () if self.generation is None else self.generation.lookups or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactStory:
    """A fact of an audit in one prompt style, from its deletion to the answers."""

    model: str
    """Label of the run."""

    target: AuditTarget
    """The fact, its prompt, and what its deletion leaves."""

    deleted: tuple[Triplet, ...]
    """The deleted entries that a lookup brought up, in the order of their scores; others among
    the `target.n_deleted` did not come near a query."""

    states: tuple[StateStory, ...]
    """FULL, DEL-ON and DEL-OFF."""

    attribution: str | None
    """Where a right DEL-ON answer came from, of `Attribution`; None unless it is right."""

    attributed_to: str | None
    """The entry behind it."""

    def to_text(self) -> str:
        """Write the story for a terminal.

        Returns:
            Lines of plain text; what a model wrote stands in quotes, control characters escaped.
        """
        from surface_consistency.report.audit._story_text import story_lines

        return "\n".join(story_lines(self))


def fact_story(
    folder: str | os.PathLike[str], fact_id: str, *, style: str | None = None
) -> FactStory:
    """Tell what became of one fact in an audit.

    Args:
        folder: The run folder.
        fact_id: The fact, as outcomes name it, such as "countries/alias/17".
        style: Prompt style; None for the first in which the fact was asked.

    Returns:
        The story; `to_text()` writes it for a terminal.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        DataError: If the run has no such fact, or not in this style.
    """
    run = load_audit_runs([folder])[0]
    rows = run.outcomes[run.outcomes["fact_id"] == fact_id]
    if rows.empty:
        known = ", ".join(run.outcomes["fact_id"].drop_duplicates().head(3))
        raise DataError(f"{run.home} has no fact {fact_id!r}; it has {known} and others")
    chosen = rows if style is None else rows[rows["style"] == style]
    if chosen.empty:
        raise DataError(
            f"{run.home} asks fact {fact_id!r} not in style {style!r}; it does in "
            f"{', '.join(rows['style'])}"
        )
    return load_stories(run, [str(chosen["pair_id"].iloc[0])])[0]


def load_stories(run: AuditRun, pair_ids: Sequence[str]) -> list[FactStory]:
    """Read the stories of facts in styles; targets, prompts and run log are each read once.

    Args:
        run: The run.
        pair_ids: The facts in their styles, as outcomes name them.

    Returns:
        The stories, in the same order.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        DataError: If the run has no such target.
    """
    wanted = set(pair_ids)
    targets = {
        target.pair_id: target
        for target in read_jsonl(_file(run.home, "targets.jsonl"), AuditTarget)
        if target.pair_id in wanted
    }
    if missing := wanted - targets.keys():
        raise DataError(
            f"{run.home}: targets.jsonl lacks {', '.join(sorted(missing))}; make the run again"
        )
    asked = {
        target.prompt_id(state): (pair_id, state)
        for pair_id, target in targets.items()
        for state in STATE_COLUMNS
    }
    answers = _answers(run.home, asked)
    chosen = run.outcomes[run.outcomes["pair_id"].isin(wanted)]
    records = chosen.astype(object).where(chosen.notna(), None).to_dict("records")
    rows: dict[str, dict[Any, Any]] = {row["pair_id"]: row for row in records}
    return [_story(run.label, targets[pair_id], rows[pair_id], answers) for pair_id in pair_ids]


def surviving_facts(run: AuditRun, limit: int) -> list[str]:
    """Pick facts that were answered after deletion, from as many origins as there are.

    Args:
        run: The run.
        limit: How many, at most.

    Returns:
        Their pair ids: the first of each attribution, then the second of each, and so on.
    """
    right = run.outcomes[run.outcomes["first_correct"].fillna(False).astype(bool)]
    kinds = right["attribution"].fillna("")
    place = right.groupby(kinds, sort=False).cumcount()
    order = {kind: number for number, kind in enumerate([*KIND_MEANINGS, ""])}
    picked = right.assign(place=place, kind=kinds.map(order)).sort_values(
        ["place", "kind"], kind="stable"
    )
    return [str(pair_id) for pair_id in picked["pair_id"].head(limit)]


def _file(home: Path, name: str) -> Path:
    """Find a file of a run."""
    path = home / name
    if not path.is_file():
        raise SourceNotFoundError(
            f"{home} has no {name}, which `surface-consistency audit --out` writes; the story of a "
            "fact needs the whole run folder"
        )
    return path


def _answers(
    home: Path, asked: Mapping[str, tuple[str, MemoryState]]
) -> dict[tuple[str, MemoryState], Generation]:
    """Find the answers to some prompts in the run log; prompts that ask the same share one."""
    keys: dict[str, list[tuple[str, MemoryState]]] = {}
    for prompt in read_jsonl(_file(home, "prompts.jsonl"), Prompt):
        if prompt.id in asked:
            keys.setdefault(prompt.key, []).append(asked[prompt.id])
    found = {}
    for generation in read_generations(_file(home, "generations.jsonl")):
        for place in keys.get(generation.prompt_key or "", ()):
            found[place] = generation
    return found


def _story(
    model: str,
    target: AuditTarget,
    row: Mapping[Any, Any],
    answers: Mapping[tuple[str, MemoryState], Generation],
) -> FactStory:
    """Put the story of a fact together."""
    states = tuple(
        StateStory(
            state=state,
            is_correct=row[f"{column}_correct"],
            answer=row[f"{column}_prediction"],
            generation=answers.get((target.pair_id, state)),
        )
        for state, column in STATE_COLUMNS.items()
    )
    return FactStory(
        model=model,
        target=target,
        deleted=tuple(_deleted(states)),
        states=states,
        attribution=row["attribution"],
        attributed_to=row["attributed_to"],
    )


def _deleted(states: Collection[StateStory]) -> "Iterator[Triplet]":
    """Gather the deleted entries that lookups after deletion brought up, each once."""
    found = {
        Triplet(item.subject, item.relation, item.object): item.score
        for state in states
        for lookup in state.lookups
        if lookup.trace is not None
        for item in sorted(lookup.trace.deleted_candidates, key=lambda item: item.score)
    }
    yield from sorted(found, key=lambda entry: -found[entry])
