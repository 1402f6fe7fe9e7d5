"""What every loader does with its rows: choose, spread over groups, tell what is missing."""

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
    """Take items from all groups in turn, so that a part of a data set is not of one kind.

    Args:
        grouped: Group and item; an item that comes again counts once.
        limit: How many items to take, 1 or more.

    Returns:
        The first item of each group, groups in order of appearance, then the second of each, and so
        on; all items where there are no more than `limit`.

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
    """Say in the log of the package where a limit takes all, since there are not so many.

    Args:
        limit: The limit; None for none.
        n_asked: What is asked.
        n_held: What there is.
        what: What is counted, such as "topics".
    """
    if limit not in (None, n_held) and n_asked == n_held:
        _LOG.info("`limit` %s: all %s %s are asked, there are no more", limit, f"{n_held:,}", what)


def chosen_names(names: str | Iterable[str] | None, what: str, present: Iterable[str]) -> set[str]:
    """Check a choice of some of what is there, by name; None chooses all.

    Raises:
        ValueError: If the choice is empty, or a name is not there; says what is.
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
    """Keep the garbage collector from walking new records, which hold no cycles, over and over."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def repeated_rows(source: str, n_rows: int) -> str:
    """Tell of rows that repeat others; "" of none."""
    return (
        f"{source} repeats {n_rows} rows to the letter; each question is used once"
        if n_rows
        else ""
    )


def first_few(items: Sequence[str]) -> str:
    """List the first five, for a message."""
    return first_names(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
