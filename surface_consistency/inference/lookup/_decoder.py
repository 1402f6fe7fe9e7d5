"""The lookup loop: rows write together until half of them wait or have ended."""

from collections.abc import Callable, Sequence

from surface_consistency.inference._engine import Engine
from surface_consistency.inference.lookup._feeder import CachedFeeder, PlainFeeder
from surface_consistency.inference.lookup._row import Reader, Row
from surface_consistency.inference.lookup._scores import Scorer
from surface_consistency.inference.lookup.settings import LookupSettings

__all__ = ["Splitter", "decode"]

Splitter = Callable[[Sequence[Row]], list[list[Row]]]
"""Takes the rows that wait; gives for each the rows that it becomes, results inserted."""


def decode(
    engine: Engine,
    rows: Sequence[Row],
    split: Splitter,
    *,
    reader: Reader,
    settings: LookupSettings,
) -> list[Row]:
    """Write all rows of a batch to their ends.

    A round lasts until no more than half of its rows still write. Then all lookups that wait are
    asked at once, and the next round has the rows that got their results and those that write on.

    Args:
        engine: The model; without a cache of this package it takes one row.
        rows: Rows that hold their prompts.
        split: Looks up what the waiting rows ask.
        reader: Reads the rows.
        settings: The decoding.

    Returns:
        The rows at their ends; each prompt is a member of one of them, unless `split` dropped it.
    """
    feeder = CachedFeeder(engine) if engine.keeps_cache else PlainFeeder(engine)
    ended: list[Row] = []
    going, owner = list(rows), list[int]()
    while going:
        n_left = max(reader.max_new_tokens - row.n_written for row in going)
        logits = feeder.begin(going, owner, n_left)
        scorer = Scorer(going, device=logits.device, settings=settings, tokens=reader.tokens)
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
