"""Assemble the trace of one fact: its deletion, its lookups and its answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.report.page import Trace
from surface_consistency.runs.loader import Run
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import memory
from surface_consistency.schemas.generations import Generation
from surface_consistency.studies.audit.attribution import KIND_MEANINGS, KINDS
from surface_consistency.studies.audit.plan import to_audit_prompt
from surface_consistency.studies.audit.tables import STATE_COLUMNS

_ROLES = ("subject", "relation", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTrace:
    """A fact in one state of the store."""

    state: memory.MemoryState
    """The state."""

    correct: bool | None
    """The correctness label; None without one."""

    answer: str | None
    """The cleaned answer; None without one."""

    generation: Generation | None
    """The output of the model with its lookups; None if the run log contains no answer."""

    @property
    def lookups(self) -> tuple[memory.Lookup, ...]:
        """The lookups, in order."""
        return () if self.generation is None else self.generation.lookups or ()

    @property
    def verdict(self) -> str:
        """The correctness label in words."""
        if self.generation is not None and self.generation.error is not None:
            return f"no answer ({self.generation.error})"
        return {True: "correct", False: "incorrect", None: "not scored"}[self.correct]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTrace:
    """A fact of an audit in one prompt style, from its deletion to the answers."""

    model: str
    """Label of the run."""

    item: str
    """The fact within all databases, such as "countries/alias/17"."""

    style: str
    """Prompt style."""

    prompt: memory.AuditPrompt
    """The fact and its prompt."""

    n_deleted: int
    """Number of entries that its deletion removed."""

    surviving: tuple[memory.Triplet, ...]
    """Entries that still state it; empty if the deletion is complete."""

    echoes: tuple[str, ...]
    """Accepted objects that are or contain a name of the subject."""

    states: tuple[StateTrace, ...]
    """FULL, DEL-ON and DEL-OFF."""

    attribution: str | None
    """Origin of a correct DEL-ON answer, as of `Attribution`; None if it is incorrect."""

    attributed_to: str | None
    """The entry of this origin."""

    @property
    def deleted(self) -> tuple[memory.Triplet, ...]:
        """The deleted entries that a lookup found, in the order of their scores."""
        scores = {
            _entry(item): item.score
            for state in self.states
            for lookup in state.lookups
            if lookup.trace is not None
            for item in sorted(lookup.trace.deleted_candidates, key=lambda item: item.score)
        }
        return tuple(sorted(scores, key=lambda entry: -scores[entry]))

    @property
    def origin(self) -> str:
        """Description of the origin of a correct DEL-ON answer; empty if it is incorrect."""
        if self.attribution is None:
            return ""
        meanings = {str(kind): meaning for kind, meaning in KIND_MEANINGS.items()}
        label = f"{self.attribution}: {meanings.get(self.attribution, self.attribution)}"
        behind = self.attributed_to
        return label if behind is None else f"{label} ({_quoted(behind)})"

    def to_text(self) -> str:
        """Format the trace for a terminal.

        Returns:
            Lines of plain text; outputs of a model are quoted, with control characters escaped.
        """
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the trace."""
        prompt = self.prompt
        yield f"{self.item}, {self.style}, by {self.model}"
        yield f"  fact      {_line_of((prompt.subject, prompt.relation, prompt.gold_object))}"
        for role in _ROLES:
            if aliases := getattr(prompt, f"{role}_aliases"):
                yield f"  {role + 's':9} also {', '.join(map(_quoted, aliases))}"
        yield f"  prompt    {_quoted(prompt.prompt_text)}"
        yield f"  deleted   {self.n_deleted}, of which lookups found {len(self.deleted)}"
        yield from (f"            {_line_of(entry)}" for entry in self.deleted)
        if self.surviving:
            yield f"  SURVIVED  {len(self.surviving)}: the deletion is incomplete"
            yield from (f"            {_line_of(entry)}" for entry in self.surviving)
        if self.echoes:
            named = ", ".join(map(_quoted, self.echoes))
            yield f"  echoes    {named}: the correct answer contains the subject"
        for state in self.states:
            yield from _state_lines(state)
        if self.attribution is not None:
            yield f"  origin    {self.origin}"

    def to_block(self) -> Trace:
        """Convert the trace to a block of a page.

        Returns:
            One step per state, with every candidate of its lookups.
        """
        prompt = self.prompt
        facts = [
            ("fact", " · ".join((prompt.subject, prompt.relation, prompt.gold_object))),
            ("prompt", prompt.prompt_text),
            ("deleted", f"{self.n_deleted}: {_joined(self.deleted) or 'not found by any lookup'}"),
        ]
        if self.surviving:
            facts.append(("survived the deletion, which is incomplete", _joined(self.surviving)))
        return Trace(
            title=f"{self.model}: {self.item}, {self.style}: {prompt.subject}, {prompt.relation}",
            facts=facts,
            steps=[_step(state) for state in self.states],
            note=self.origin,
        )


def load_traces(run: Run, pair_ids: Sequence[str]) -> list[FactTrace]:
    """Read the traces of facts in styles; targets and run logs are each read once.

    Args:
        run: The run.
        pair_ids: The facts in their styles, as outcomes name them.

    Returns:
        The traces, in the same order.

    Raises:
        SourceNotFoundError: If a file of the run is missing.
        DataError: If the run does not contain a target.
    """
    targets, _ = run.folder.read_plan()
    names = [f"{pair}/{state}" for pair in pair_ids for state in STATE_COLUMNS]
    chosen = targets[targets["target_id"].isin(names)]
    answers = _answers(run, chosen)
    by_id: dict[Any, dict[Any, Any]] = {row["target_id"]: row for row in chosen.to_dict("records")}
    outcomes = run.outcomes[run.outcomes["pair"].isin(set(pair_ids))]
    plain = outcomes.astype(object).where(outcomes.notna(), None)
    rows: dict[Any, dict[Any, Any]] = {row["pair"]: row for row in plain.to_dict("records")}
    traces = []
    for pair in pair_ids:
        own = [by_id[name] for state in STATE_COLUMNS if (name := f"{pair}/{state}") in by_id]
        if not own:
            raise DataError(
                f"{run.folder.targets}: {pair} not found; repeat the same `run` command"
            )
        traces.append(_trace(run.label, own[0], rows[pair], answers))
    return traces


def surviving_facts(run: Run, limit: int) -> list[str]:
    """Select facts that were answered correctly after deletion, from all origins.

    Args:
        run: The run.
        limit: Maximum number of facts.

    Returns:
        Their pair ids: the first of each attribution, then the second of each, and so on.
    """
    right = run.outcomes[run.outcomes["first_correct"].eq(True).fillna(False).astype(bool)]
    kinds = right["attribution"].fillna("")
    place = right.groupby(kinds, sort=False).cumcount()
    order = {kind: number for number, kind in enumerate([*KINDS, ""])}
    picked = right.assign(place=place, kind=kinds.map(order)).sort_values(
        ["place", "kind"], kind="stable"
    )
    return [str(pair) for pair in picked["pair"].head(limit)]


def _answers(run: Run, targets: pd.DataFrame) -> dict[str, Generation]:
    """Find the answers to some targets in the run logs; identical prompts have one answer."""
    answers = {}
    for group, part in targets.groupby("group"):
        log = run.folder.log(str(group))
        if not log.is_file():
            raise SourceNotFoundError(
                f"{run.folder.path} has no {log.name}; the trace of a fact needs the complete run "
                "folder"
            )
        names: dict[str, list[str]] = {}
        for name, key in zip(part["target_id"], part["prompt_key"], strict=True):
            names.setdefault(key, []).append(name)
        for generation in read_generations(log):
            for name in names.get(generation.prompt_key or "", ()):
                answers[name] = generation
    return answers


def _trace(
    model: str, target: Mapping[Any, Any], row: Mapping[Any, Any], answers: Mapping[str, Generation]
) -> FactTrace:
    """Assemble the trace of a fact."""
    return FactTrace(
        model=model,
        item=target["item"],
        style=target["style"],
        prompt=to_audit_prompt(target),
        n_deleted=int(target["n_deleted"]),
        surviving=tuple(memory.Triplet(*map(str, entry)) for entry in target["surviving"]),
        echoes=tuple(map(str, target["echoes"])),
        states=tuple(
            StateTrace(
                state=state,
                correct=row[f"{column}_correct"],
                answer=row[f"{column}_prediction"],
                generation=answers.get(f"{row['pair']}/{state}"),
            )
            for state, column in STATE_COLUMNS.items()
        ),
        attribution=row["attribution"],
        attributed_to=row["attributed_to"],
    )


def _state_lines(state: StateTrace) -> Iterator[str]:
    """Format the answer and the lookups of one state."""
    yield f"  {state.state}: {state.verdict}"
    if state.generation is not None and state.generation.text is not None:
        yield f"    wrote   {_quoted(state.generation.text)}"
    if state.answer is not None:
        yield f"    answer  {_quoted(state.answer)}"
    for lookup in state.lookups:
        given = "nothing" if lookup.value is None else _quoted(lookup.value)
        query = f"{_quoted(lookup.query.entity)} | {_quoted(lookup.query.relation)}"
        yield f"    lookup  {query} gave {given}"
        if lookup.trace is not None:
            yield f"            {_policy(lookup.trace)}"
            for item in _seen(lookup.trace):
                marks = _marks(item, lookup.trace)
                yield f"      {item.score:7.4f}  {_line_of(_entry(item))}  [{marks}]"


def _step(state: StateTrace) -> tuple[str, str, list[tuple[str, str, str]], str, bool | None]:
    """Convert the answer and the lookups of one state to a step of a page."""
    done, entries = [], []
    for lookup in state.lookups:
        policy = "" if lookup.trace is None else f", {_policy(lookup.trace)}"
        done.append(f"looks up {lookup.query.entity}, {lookup.query.relation}{policy}")
        for item in () if lookup.trace is None else _seen(lookup.trace):
            is_deleted = item in lookup.trace.deleted_candidates  # type: ignore[union-attr]
            is_chosen = item == lookup.trace.selected_candidate  # type: ignore[union-attr]
            mark = "deleted" if is_deleted else "selected" if is_chosen else ""
            entries.append((f"{item.score:.4f}", " · ".join(_entry(item)), mark))
    answer = state.answer if state.answer is not None else state.verdict
    return state.state, "; ".join(done) or "no lookup", entries, answer, state.correct


def _policy(trace: memory.RetrievalTrace) -> str:
    """Describe the result of a lookup."""
    if trace.error is not None:
        return f"not searched: {trace.error}"
    if not trace.retrieval_enabled:
        return "retrieval off"
    bar = "no threshold" if trace.threshold is None else f"threshold {trace.threshold:g}"
    if trace.selected_candidate is None:
        return f"abstained, {bar}"
    return f"{'fallback below' if trace.is_fallback else 'above'} {bar}"


def _marks(candidate: memory.Candidate, trace: memory.RetrievalTrace) -> str:
    """Describe the parts that a candidate shares with the fact, and its role in the lookup."""
    shared = [role for role in _ROLES if getattr(candidate, f"matches_{role}")]
    marks = [f"same {', '.join(shared)}"] if shared else []
    if candidate in trace.deleted_candidates:
        marks.append("deleted")
    elif candidate in trace.retained_candidates:
        marks.append("retained")
    if candidate == trace.selected_candidate:
        marks.append("SELECTED")
    return "; ".join(marks)


def _seen(trace: memory.RetrievalTrace) -> list[memory.Candidate]:
    """List every candidate of a lookup once, best first: those before masking, then the rest."""
    every = dict.fromkeys((*trace.all_candidates, *trace.retained_candidates))
    return sorted(every, key=lambda item: -item.score)


def _entry(candidate: memory.Candidate) -> memory.Triplet:
    """Return the entry of a candidate."""
    return memory.Triplet(candidate.subject, candidate.relation, candidate.object)


def _joined(entries: Sequence[memory.Triplet]) -> str:
    """Join entries into one line."""
    return "; ".join(" · ".join(entry) for entry in entries)


def _line_of(entry: tuple[str, str, str]) -> str:
    """Format an entry for a terminal."""
    return " | ".join(map(_quoted, entry))


def _quoted(text: str) -> str:
    """Put a text in quotes, control characters escaped."""
    return json.dumps(text, ensure_ascii=False)
