"""One row of a batch that looks facts up: what it has written and where it stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from surface_consistency.inference._decoding import cut_at_stop
from surface_consistency.inference.lookup.settings import TokenIds
from surface_consistency.schemas.memory import LookupQuery

__all__ = ["Kind", "Reader", "Row"]

Kind = Literal["pause", "allow", "forbid"]
"""How lookup tokens are decoded: as in "answer" and "null", which stop for the result, or not."""


@dataclass(slots=True)
class Row:
    """Prompts that have read and written the same so far."""

    members: list[int]
    """Positions of the prompts in the batch."""

    kind: Kind
    """How its lookup tokens are decoded."""

    n_prompt: int
    """Tokens of the prompt."""

    ids: list[int]
    """All tokens: prompt, written, inserted."""

    n_read: int = 0
    """Tokens of `ids` that the model has read."""

    n_written: int = 0
    """Tokens that the model wrote."""

    n_lookups: int = 0
    """Lookups that have their result."""

    opened: int | None = None
    """Position in `ids` where the current lookup began; None outside of lookups."""

    outside: int = 0
    """Position in `ids` where the current text outside of lookups began."""

    state: Literal["going", "paused", "ended", "full"] = "going"
    """Whether it writes, waits for a result, came to its end, or may write no more."""

    text: str | None = field(default=None)
    """Its text when a stop string cut it."""

    def split(self, members: list[int], inserted: Sequence[int]) -> "Row":
        """Give the row of some of its prompts after a result was inserted."""
        ids = [*self.ids, *inserted]
        n_lookups = self.n_lookups + 1
        return replace(
            self, members=members, ids=ids, n_lookups=n_lookups, opened=None, outside=len(ids)
        )


class Reader:
    """Reads rows: takes their new tokens, finds their ends, parses their queries.

    Args:
        tokenizer: A tokenizer of transformers.
        tokens: The lookup tokens.
        ends: End-of-sequence tokens.
        stop: Stop strings.
        max_new_tokens: Upper limit of tokens that the model writes.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401
        *,
        tokens: TokenIds,
        ends: frozenset[int],
        stop: Sequence[str],
        max_new_tokens: int,
    ) -> None:
        self.tokenizer = tokenizer
        self.tokens = tokens
        self.max_new_tokens = max_new_tokens
        self._ends = ends
        self._stop = stop

    def take(self, row: Row, token: int) -> None:
        """Add a token that the model wrote and see what it means."""
        row.n_written += 1
        if token in self._ends:
            row.state = "ended"
            return
        row.ids.append(token)
        if token in self.tokens.all:
            self._follow(row, token)
        elif row.opened is None and self._stop:
            self._cut(row)
        if row.state == "going" and row.n_written >= self.max_new_tokens:
            row.state = "full"

    def query(self, row: Row) -> LookupQuery | None:
        """Parse the query of a paused row; None when it has no entity or no relation."""
        tokens = self.tokens
        asked = row.ids[row.n_prompt if row.opened is None else row.opened : -1]
        if tokens.entity not in asked:
            return None
        entity_at = len(asked) - 1 - asked[::-1].index(tokens.entity)
        asked = asked[entity_at + 1 :]
        if tokens.relation not in asked:
            return None
        relation_at = asked.index(tokens.relation)
        entity = self.decode(asked[:relation_at]).strip()
        relation = self.decode(
            [token for token in asked[relation_at + 1 :] if token != tokens.relation]
        ).strip()
        return LookupQuery(entity=entity, relation=relation) if entity and relation else None

    def written(self, row: Row) -> str:
        """Return the raw text of a row, lookups included."""
        return self.decode(row.ids[row.n_prompt :]) if row.text is None else row.text

    def decode(self, ids: Sequence[int]) -> str:
        """Turn tokens into text as they are, lookup tokens included."""
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _follow(self, row: Row, token: int) -> None:
        """Keep track of lookups."""
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
        cut = cut_at_stop(f"\0{text}", self._stop) if before else cut_at_stop(text, self._stop)
        if cut is not None:
            row.text = self.decode(before) + cut.removeprefix("\0")
            row.state = "ended"
