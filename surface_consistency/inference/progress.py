"""How far a run is, and a line on the terminal that shows it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NoReturn, TextIO

from tqdm import tqdm

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
    if callable(progress):
        yield progress
        return
    with ExitStack() as stack:
        lines: list[tqdm[NoReturn]] = []

        def report(state: Progress) -> None:
            if not lines:
                line = tqdm(
                    total=state.n_total,
                    # What earlier starts answered does not count for the rate.
                    initial=state.n_done - state.n_asked,
                    unit=" prompts",
                    file=stream,
                    dynamic_ncols=True,
                    disable=None if progress else True,
                )
                lines.append(stack.enter_context(line))
            lines[0].update(state.n_done - lines[0].n)

        yield report
