"""Common functions of the loaders: selection of rows, limits, and messages on rows."""

import gc
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, zip_longest
from typing import Final, TypeVar

from surface_consistency.reading import first_names

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_SHOWN: Final = 5


def spread(grouped: Iterable[tuple[str, T]], limit: int) -> set[T]:
    """Select items from all groups in turn, so that a subset contains items of every group.

    Args:
        grouped: Group and item; an item that is repeated counts once.
        limit: Number of items to select, 1 or more.

    Returns:
        The first item of each group, groups in order of appearance, then the second of each, and so
        on; all items if there are not more than `limit`.

    Examples:
        >>> sorted(spread([("a", 1), ("a", 2), ("a", 3), ("b", 4)], 3))
        [1, 2, 4]
    """
    groups: dict[str, dict[T, None]] = {}
    for group, item in grouped:
        groups.setdefault(group, {})[item] = None
    columns = ([(item,) for item in group] for group in groups.values())
    rounds = chain.from_iterable(zip_longest(*columns, fillvalue=()))
    return set(islice(chain.from_iterable(rounds), limit))


def warn_limited(limit: int | None, n_asked: int, n_held: int, what: str) -> None:
    """Log that a limit has no effect, because there are not more items.

    Args:
        limit: The limit; None for no limit.
        n_asked: Number of selected items.
        n_held: Number of items in the data.
        what: Name of the items, such as "topics".
    """
    if limit not in (None, n_held) and n_asked == n_held:
        _LOG.info(
            "`limit` %s: all %s %s are used; the data contain no more", limit, f"{n_held:,}", what
        )


def chosen_names(names: str | Iterable[str] | None, what: str, present: Iterable[str]) -> set[str]:
    """Check a selection of names; None selects all.

    Raises:
        ValueError: If the selection is empty, or a name is not in the data; lists the names of the
            data.
    """
    known = dict.fromkeys(present)
    wanted = set(known) if names is None else {names} if isinstance(names, str) else set(names)
    unknown = sorted(wanted - known.keys())
    if unknown or not wanted:
        raise ValueError(
            f"{what} must be among those of the data, {', '.join(known)}; got "
            f"{', '.join(map(repr, unknown)) or 'none'}"
        )
    return wanted


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the garbage collector while records, which have no cycles, are created."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def repeated_rows(source: str, n_rows: int) -> str:
    """Report the number of repeated rows; "" if there are none."""
    return f"{source} repeats {n_rows} rows exactly; each question is used once" if n_rows else ""


def first_few(items: Sequence[str]) -> str:
    """List the first five, for a message."""
    return first_names(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
