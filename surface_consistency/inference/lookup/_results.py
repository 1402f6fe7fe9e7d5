"""Looking up what waiting rows ask, and putting the results into them."""

from collections.abc import Sequence

from surface_consistency.inference.lookup._row import Reader, Row
from surface_consistency.inference.lookup.settings import LookupSettings
from surface_consistency.inference.lookup.source import (
    LookupMode,
    LookupRequest,
    LookupSource,
    ask_source,
)
from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.schemas.prompts import Prompt

__all__ = ["Results"]


class Results:
    """The lookups of one batch.

    Args:
        source: The store.
        prompts: The batch.
        modes: The mode of each prompt.
        reader: Reads the rows.
        settings: Names the tokens and the null result.
        context: Tokens that the model can read and write together; None for no limit.
    """

    def __init__(
        self,
        source: LookupSource,
        prompts: Sequence[Prompt],
        modes: Sequence[LookupMode],
        *,
        reader: Reader,
        settings: LookupSettings,
        context: int | None,
    ) -> None:
        self.lookups: list[list[Lookup]] = [[] for _ in prompts]
        """The lookups of each prompt, in their order."""
        self.errors: dict[int, str] = {}
        """Why a prompt could not go on, by its position."""
        self._source = source
        self._prompts = prompts
        self._modes = modes
        self._reader = reader
        self._settings = settings
        self._context = context
        self._encoded: dict[str, list[int]] = {}

    def split(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Insert the results into waiting rows; a row splits where its prompts get different ones.

        All lookups are asked at once. A query without entity or relation is not asked: it gets the
        null result.

        Args:
            rows: Rows that wait.

        Returns:
            For each the rows that it becomes.
        """
        queries = [self._reader.query(row) for row in rows]
        asking = [
            (member, query)
            for row, query in zip(rows, queries, strict=True)
            for member in row.members
            if query is not None and self._modes[member] == "answer"
        ]
        requests = [LookupRequest(self._prompts[member], query) for member, query in asking]
        answers = ask_source(self._source, requests)
        answered = {member: answer for (member, _), answer in zip(asking, answers, strict=True)}
        for row, query in zip(rows, queries, strict=True):
            empty = Lookup(query=query or LookupQuery(entity="", relation=""), value=None)
            for member in row.members:
                self.lookups[member].append(answered.get(member, empty))
        return [self._parts(row) for row in rows]

    def _parts(self, row: Row) -> list[Row]:
        """Make one row for each result that the prompts of a row got."""
        by_value: dict[str, list[int]] = {}
        for member in row.members:
            value = self.lookups[member][-1].value
            text = self._settings.null_text if value is None else value
            by_value.setdefault(text, []).append(member)
        parts = []
        for text, members in by_value.items():
            inserted = self._encode(text)
            if problem := self._problem(row, text, inserted):
                self.errors |= dict.fromkeys(members, problem)
            else:
                part = row.split(members, inserted)
                part.state = "going" if part.n_written < self._reader.max_new_tokens else "full"
                parts.append(part)
        return parts

    def _problem(self, row: Row, text: str, inserted: Sequence[int]) -> str | None:
        """Say why a value cannot be inserted."""
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        if any(token in self._reader.tokens.all for token in inserted[:-1]):
            return f"the value {shown!r} of the store holds a lookup token; mend the store"
        n_tokens = len(row.ids) + len(inserted) + self._reader.max_new_tokens - row.n_written
        if self._context is not None and n_tokens > self._context:
            return (
                f"the value {shown!r} of the store has {len(inserted) - 1:,} tokens; with it the "
                f"text may grow to {n_tokens:,} and the model takes {self._context:,}. Shorten the "
                "value, or lower max_new_tokens"
            )
        return None

    def _encode(self, text: str) -> list[int]:
        """Turn a value into tokens as they stand between the return and the end token."""
        if text not in self._encoded:
            between = f" {text}" if text else ""
            ids = self._reader.tokenizer(
                f"{self._settings.return_token}{between}{self._settings.end_token}",
                add_special_tokens=False,
                verbose=False,
            )["input_ids"]
            self._encoded[text] = list(ids[ids.index(self._reader.tokens.result) + 1 :])
        return self._encoded[text]
