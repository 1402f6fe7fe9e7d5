"""Rows of a batch with lookups: their tokens, their queries and the inserted results."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from surface_consistency.models.runner import cut_at_stop
from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit.lookup.fact_store import (
    FactStore,
    LookupMode,
    LookupRequest,
    ask_store,
)
from surface_consistency.studies.audit.lookup.settings import LookupSettings, TokenIds

Kind = Literal["pause", "allow", "forbid"]
"""Decoding of lookup tokens; "pause", in the modes "answer" and "null", stops for the result."""


@dataclass(slots=True)
class Row:
    """Prompts whose tokens, read and generated, are identical so far."""

    members: list[int]
    """Positions of the prompts in the batch."""

    kind: Kind
    """Decoding of its lookup tokens."""

    n_prompt: int
    """Number of tokens of the prompt."""

    ids: list[int]
    """All tokens: prompt, written, inserted."""

    n_read: int = 0
    """Number of tokens of `ids` that the model has read."""

    n_written: int = 0
    """Number of tokens that the model wrote."""

    n_lookups: int = 0
    """Number of lookups with a result."""

    opened: int | None = None
    """Position in `ids` of the start of the current lookup; None outside of lookups."""

    outside: int = 0
    """Position in `ids` of the start of the current text outside of lookups."""

    state: Literal["going", "paused", "ended", "full"] = "going"
    """Whether it generates, waits for a result, has ended, or has reached its limit of tokens."""

    text: str | None = field(default=None)
    """Its text, if a stop string cut it."""

    def split(self, members: list[int], inserted: Sequence[int]) -> "Row":
        """Return the row of some of its prompts after the insertion of a result."""
        ids = [*self.ids, *inserted]
        n_lookups = self.n_lookups + 1
        return replace(
            self, members=members, ids=ids, n_lookups=n_lookups, opened=None, outside=len(ids)
        )


@dataclass(slots=True)
class Reader:
    """Appends new tokens to rows, detects their ends, and parses their queries."""

    tokenizer: Any
    """A tokenizer of transformers."""

    tokens: TokenIds
    """The lookup tokens."""

    ends: frozenset[int]
    """End-of-sequence tokens."""

    stop: Sequence[str]
    """Stop strings."""

    max_new_tokens: int
    """Maximum number of tokens that a row may write."""

    def take(self, row: Row, token: int) -> None:
        """Append a token that the model wrote, and update the state of the row."""
        row.n_written += 1
        if token in self.ends:
            row.state = "ended"
            return
        row.ids.append(token)
        if token in self.tokens.all:
            self._follow(row, token)
        elif row.opened is None and self.stop:
            self._cut(row)
        if row.state == "going" and row.n_written >= self.max_new_tokens:
            row.state = "full"

    def query(self, row: Row) -> LookupQuery | None:
        """Parse the query of a paused row; None if it has no entity or no relation."""
        tokens = self.tokens
        query_ids = row.ids[row.n_prompt if row.opened is None else row.opened : -1]
        if tokens.entity not in query_ids:
            return None
        entity_at = len(query_ids) - 1 - query_ids[::-1].index(tokens.entity)
        query_ids = query_ids[entity_at + 1 :]
        if tokens.relation not in query_ids:
            return None
        relation_at = query_ids.index(tokens.relation)
        entity = self.decode(query_ids[:relation_at]).strip()
        relation = self.decode(
            [token for token in query_ids[relation_at + 1 :] if token != tokens.relation]
        ).strip()
        return LookupQuery(entity=entity, relation=relation) if entity and relation else None

    def written(self, row: Row) -> str:
        """Return the raw text of a row, lookups included."""
        return self.decode(row.ids[row.n_prompt :]) if row.text is None else row.text

    def decode(self, ids: Sequence[int]) -> str:
        """Decode tokens without changes, including lookup tokens."""
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _follow(self, row: Row, token: int) -> None:
        """Track the start and end of lookups."""
        if token == self.tokens.end:
            row.opened, row.outside = None, len(row.ids)
            return
        if row.opened is None:
            row.opened = len(row.ids) - 1
        if token == self.tokens.result and row.kind == "pause":
            row.state = "paused"

    def _cut(self, row: Row) -> None:
        """End a row at a stop string in the text outside of lookups."""
        before = row.ids[row.n_prompt : row.outside]
        text = self.decode(row.ids[max(row.outside, row.n_prompt) :])
        # A line break after a result ends the answer; before any answer it does not.
        cut = cut_at_stop(f"\0{text}", self.stop) if before else cut_at_stop(text, self.stop)
        if cut is not None:
            row.text = self.decode(before) + cut.removeprefix("\0")
            row.state = "ended"


@dataclass(slots=True, kw_only=True)
class Results:
    """The lookups of one batch."""

    store: FactStore
    """The store that answers."""

    prompts: Sequence[Prompt]
    """The batch."""

    modes: Sequence[LookupMode]
    """The mode of each prompt."""

    reader: Reader
    """Reads the rows."""

    settings: LookupSettings
    """Names the tokens and the null result."""

    context: int | None
    """Context length of the model in tokens; None for no limit."""

    lookups: list[list[Lookup]] = field(init=False)
    """The lookups of each prompt, in their order."""

    errors: dict[int, str] = field(default_factory=dict, init=False)
    """By position of a prompt: why it could not continue."""

    _encoded: dict[str, list[int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Start without lookups."""
        self.lookups = [[] for _ in self.prompts]

    def split(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Insert the results into waiting rows; a row splits if its prompts get different results.

        All lookups are sent at once. A query without entity or relation is not sent and gets the
        null result.
        """
        queries = [self.reader.query(row) for row in rows]
        queried = [
            (member, query)
            for row, query in zip(rows, queries, strict=True)
            for member in row.members
            if query is not None and self.modes[member] == "answer"
        ]
        requests = [LookupRequest(self.prompts[member], query) for member, query in queried]
        answers = ask_store(self.store, requests)
        answered = {member: answer for (member, _), answer in zip(queried, answers, strict=True)}
        for row, query in zip(rows, queries, strict=True):
            empty = Lookup(query=query or LookupQuery(entity="", relation=""), value=None)
            for member in row.members:
                self.lookups[member].append(answered.get(member, empty))
        return [self._parts(row) for row in rows]

    def _parts(self, row: Row) -> list[Row]:
        """Make one row per distinct result of the prompts of a row."""
        by_value: dict[str, list[int]] = {}
        for member in row.members:
            value = self.lookups[member][-1].value
            text = self.settings.null_text if value is None else value
            by_value.setdefault(text, []).append(member)
        parts = []
        for text, members in by_value.items():
            inserted = self._encode(text)
            if problem := self._problem(row, text, inserted):
                self.errors |= dict.fromkeys(members, problem)
            else:
                part = row.split(members, inserted)
                part.state = "going" if part.n_written < self.reader.max_new_tokens else "full"
                parts.append(part)
        return parts

    def _problem(self, row: Row, text: str, inserted: Sequence[int]) -> str | None:
        """Return why a value cannot be inserted; None if it can."""
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        if any(token in self.reader.tokens.all for token in inserted[:-1]):
            return f"the value {shown!r} of the store contains a lookup token; correct the store"
        n_tokens = len(row.ids) + len(inserted) + self.reader.max_new_tokens - row.n_written
        if self.context is not None and n_tokens > self.context:
            return (
                f"the value {shown!r} of the store has {len(inserted) - 1:,} tokens; with it the "
                f"text may have {n_tokens:,}, but the context has {self.context:,}. Shorten the "
                "value, or lower max_new_tokens"
            )
        return None

    def _encode(self, text: str) -> list[int]:
        """Encode a value as the tokens between the return and the end token."""
        if text not in self._encoded:
            between = f" {text}" if text else ""
            ids = self.reader.tokenizer(
                f"{self.settings.return_token}{between}{self.settings.end_token}",
                add_special_tokens=False,
                verbose=False,
            )["input_ids"]
            self._encoded[text] = list(ids[ids.index(self.reader.tokens.result) + 1 :])
        return self._encoded[text]
