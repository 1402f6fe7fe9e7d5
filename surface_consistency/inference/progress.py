"""How far a run is, and a line on the terminal that shows it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TextIO

__all__ = ["Progress", "progress_reporter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run after a batch."""

    n_done: int
    """Prompts answered, those of earlier starts included."""

    n_total: int
    """Prompts of the run."""

    n_asked: int
    """Prompts answered since this start."""

    seconds: float
    """Seconds since this start."""

    @property
    def rate(self) -> float:
        """Prompts a second since this start; NaN before the first."""
        return self.n_asked / self.seconds if self.n_asked and self.seconds > 0 else float("nan")

    @property
    def seconds_left(self) -> float:
        """Seconds that the rest will take at this rate; NaN before the first answer."""
        return (self.n_total - self.n_done) / self.rate


@contextmanager
def progress_reporter(
    progress: bool | Callable[[Progress], None], *, stream: TextIO | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Turn the option `progress` into something to call after each batch.

    Args:
        progress: A function is used as it is; True writes one line that renews itself, but only
            to a terminal; False writes nothing.
        stream: Where to write; None for standard error.

    Yields:
        The function to call.
    """
    target = sys.stderr if stream is None else stream
    if callable(progress):
        yield progress
    elif not progress or not target.isatty():
        yield _silent
    else:
        try:
            yield partial(_write_line, target)
        finally:
            target.write("\n")


def _silent(state: Progress) -> None:
    """Show nothing."""


def _write_line(stream: TextIO, state: Progress) -> None:
    """Write the line over the one before."""
    share = state.n_done / state.n_total if state.n_total else 1.0
    text = f"{state.n_done:,}/{state.n_total:,} prompts  {share:4.0%}"
    if state.n_asked:
        left = _duration(state.seconds_left)
        text += f"  {state.rate:,.1f} prompts/s  {left} left"
    stream.write(f"\r\x1b[K{text}")
    stream.flush()


def _duration(seconds: float) -> str:
    """Write seconds as 1:02:03 or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
