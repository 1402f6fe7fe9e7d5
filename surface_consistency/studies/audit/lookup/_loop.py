"""The lookup loop: rows are generated together until half of them wait or have ended."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.models._engine import Engine
from surface_consistency.studies.audit.lookup._rows import Reader, Row
from surface_consistency.studies.audit.lookup.settings import LookupSettings, TokenIds

if TYPE_CHECKING:
    import torch

Splitter = Callable[[Sequence[Row]], list[list[Row]]]
"""Returns for each waiting row the rows that replace it, with results inserted."""


def decode(
    engine: Engine,
    rows: Sequence[Row],
    split: Splitter,
    *,
    reader: Reader,
    settings: LookupSettings,
) -> list[Row]:
    """Generate all rows of a batch to their ends; `split` answers the queries of waiting rows.

    A round lasts until at most half of its rows still generate. Then all waiting lookups are sent
    at once, and the next round has the rows with new results and those that still generate. Each
    prompt is a member of one of the returned rows, unless `split` dropped it. An engine without a
    cache of this package accepts one row.
    """
    feeder = _CachedFeeder(engine) if engine.keeps_cache else _PlainFeeder(engine)
    ended: list[Row] = []
    going, owner = list(rows), list[int]()
    while going:
        n_left = max(reader.max_new_tokens - row.n_written for row in going)
        logits = feeder.begin(going, owner, n_left)
        scorer = _Scorer(going, device=logits.device, settings=settings, tokens=reader.tokens)
        while True:
            for row, token in zip(going, scorer.choose(logits), strict=True):
                if row.state == "going":
                    reader.take(row, token)
            if 2 * sum(row.state == "going" for row in going) <= len(going):
                break
            logits = feeder.step(going)
        waiting = [row for row in going if row.state == "paused"]
        parts = dict(zip(map(id, waiting), split(waiting), strict=True))
        heirs = [
            (number, heir) for number, row in enumerate(going) for heir in parts.get(id(row), [row])
        ]
        ended += [row for _, row in heirs if row.state != "going"]
        owner = [number for number, row in heirs if row.state == "going"]
        going = [row for _, row in heirs if row.state == "going"]
    return ended


class _Scorer:
    """Chooses the next token of each row, greedily.

    Args:
        rows: The rows.
        device: Device of the model's logits.
        settings: Penalty, biases and the limit of lookups.
        tokens: The lookup tokens.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        device: "torch.device",
        settings: LookupSettings,
        tokens: TokenIds,
    ) -> None:
        import torch

        self._penalty = settings.repetition_penalty
        width = max(len(row.ids) for row in rows)
        seen = [row.ids + row.ids[:1] * (width - len(row.ids)) for row in rows]
        self._seen = torch.tensor(seen, device=device)
        self._places = torch.tensor(tokens.all, device=device)
        self._biases = torch.tensor([_biases(row, settings) for row in rows], device=device)

    def choose(self, logits: "torch.Tensor") -> list[int]:
        """Return the best token of each row.

        The penalty comes first and the biases after it, as `generate` of transformers orders them.
        """
        import torch

        scores = logits.float()
        if self._penalty != 1.0:
            of_seen = scores.gather(1, self._seen)
            of_seen = torch.where(of_seen < 0, of_seen * self._penalty, of_seen / self._penalty)
            scores = scores.scatter(1, self._seen, of_seen)
        scores[:, self._places] += self._biases
        best = scores.argmax(dim=-1, keepdim=True)
        self._seen = torch.cat([self._seen, best], dim=1)
        tokens: list[int] = best.squeeze(-1).tolist()
        return tokens


def _biases(row: Row, settings: LookupSettings) -> list[float]:
    """Return the biases of the logits of the four lookup tokens."""
    if row.kind == "forbid" or row.n_lookups >= settings.max_lookups:
        return [-math.inf] * 4
    if row.kind == "pause" or settings.biases_allowed:
        return [float(settings.entity_bias)] + [float(settings.other_bias)] * 3
    return [0.0] * 4


class _CachedFeeder:
    """Feeds rows together, and caches the keys and values of all tokens that were read.

    A row's columns are [padding | prompt | written, or padding while it waits | padding | result |
    written ...]. Padding has mask 0 and no position, so a row's tokens have the same positions as
    without other rows.

    Args:
        engine: The model; it must keep this package's cache.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cache: Any = None
        self._mask: Any = None
        self._n_columns = 0

    def begin(self, rows: Sequence[Row], owner: Sequence[int], n_left: int) -> "torch.Tensor":
        """Feed each row its unread tokens, and return the logits of its next token.

        `owner` is the index of the row in the last round that each continues, and is empty in the
        first round; `n_left` steps may follow.
        """
        import torch

        new = [row.ids[row.n_read :] for row in rows]
        width = max(map(len, new))
        start, end = self._n_columns, self._n_columns + width
        mask = torch.zeros(len(rows), end + n_left, dtype=torch.long)
        if owner:
            mask[:, :start] = self._mask[list(owner), :start]
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for number, tokens in enumerate(new):
            ids[number, width - len(tokens) :] = torch.tensor(tokens)
            mask[number, end - len(tokens) : end] = 1
        self._mask = mask
        self._cache = self._engine.new_cache(
            end + n_left, prefix=self._cache if owner else None, owner=owner
        )
        return self._feed(rows, ids)

    def step(self, rows: Sequence[Row]) -> "torch.Tensor":
        """Feed the newest token of each row that continues, and padding to the others."""
        import torch

        is_going = torch.tensor([row.state == "going" for row in rows], dtype=torch.long)
        self._mask[:, self._n_columns] = is_going
        return self._feed(rows, torch.tensor([[row.ids[-1]] for row in rows]))

    def _feed(self, rows: Sequence[Row], ids: "torch.Tensor") -> "torch.Tensor":
        """Run the model on new columns."""
        self._n_columns += ids.shape[1]
        for row in rows:
            if row.state == "going":
                row.n_read = len(row.ids)
        return self._engine.read(ids, self._mask[:, : self._n_columns], self._cache)


class _PlainFeeder:
    """Feeds one row from its beginning at every step, for models whose cache cannot be shared.

    Args:
        engine: The model.
    """

    def __init__(self, engine: Engine) -> None:
        self._model = engine.model

    def begin(self, rows: Sequence[Row], owner: Sequence[int], n_left: int) -> "torch.Tensor":
        """Feed the row; see `_CachedFeeder.begin`."""
        return self.step(rows)

    def step(self, rows: Sequence[Row]) -> "torch.Tensor":
        """Feed the row from its beginning; see `_CachedFeeder.step`."""
        import torch

        ids = torch.tensor([row.ids for row in rows], device=self._model.device)
        logits: torch.Tensor = self._model(input_ids=ids, use_cache=False).logits[:, -1]
        return logits
