"""Progress of a build, and numbers of rows that each step read, kept and excluded."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pydantic import Field

from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency_build.wikimedia.streams import ReadProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """Progress of a build: in bytes while dumps are read, afterwards in steps."""

    stage: str
    """Name of the current dump or step."""

    path: Path | None
    """The file that is read; None during steps."""

    read_bytes: int
    """Number of bytes read of all dumps, as stored on the disk; includes those of earlier
    starts."""

    total_bytes: int
    """Number of bytes of all dumps."""

    steps_done: int
    """Number of finished steps."""

    steps_total: int
    """Number of steps of the build."""

    seconds: float
    """Seconds since this start."""

    new_bytes: int
    """Number of bytes read since this start."""

    is_reused: bool = False
    """Whether the stage was done by an earlier start and its results are reused."""

    @property
    def seconds_left(self) -> float:
        """Estimated seconds for reading the rest at the rate so far; NaN before the first byte."""
        if self.new_bytes <= 0 or self.seconds <= 0:
            return float("nan")
        return (self.total_bytes - self.read_bytes) * self.seconds / self.new_bytes


BuildHook = Callable[[BuildProgress], None]
"""Function that is called with the progress of a build."""


class Tracker:
    """Tracks the bytes read of all dumps and the finished steps."""

    def __init__(self, hook: BuildHook | None, paths: tuple[Path, ...], *, n_steps: int) -> None:
        self._hook = hook
        self._sizes = {path: path.stat().st_size for path in paths}
        self._read = dict.fromkeys(paths, 0)
        self._old_bytes = 0
        self._n_steps = n_steps
        self._steps_done = 0
        self._start = time.perf_counter()
        self._stage = ""
        self.truncated: dict[Path, ReadProgress] = {}
        """Dumps read since this start that ended early, with the place."""
        self.unmarked: set[Path] = set()
        """Dumps read since this start that have no end marker."""

    def begin(self, stage: str, path: Path | None = None) -> None:
        """Report the start of a dump or step."""
        self._stage = stage
        self._report(path)

    def end_step(self) -> None:
        """Report the end of a step."""
        self._steps_done += 1
        self._report(None)

    def skip(self, path: Path) -> None:
        """Count a dump that an earlier start read, and report that its results are reused."""
        self._stage = path.name
        self._old_bytes += self._sizes[path] - self._read[path]
        self._read[path] = self._sizes[path]
        self._report(None, is_reused=True)

    def finish(self, path: Path) -> None:
        """Count a dump as read to its end; a table may end before its file does."""
        self._read[path] = self._sizes[path]
        self._report(path)

    def read(self, state: ReadProgress) -> None:
        """Record the progress of reading a dump."""
        self._read[state.path] = state.read_bytes
        if state.is_truncated:
            self.truncated.setdefault(state.path, state)
        if state.is_end_unmarked:
            self.unmarked.add(state.path)
        self._report(state.path)

    def _report(self, path: Path | None, *, is_reused: bool = False) -> None:
        """Call the hook."""
        if self._hook is None:
            return
        done = sum(self._read.values())
        self._hook(
            BuildProgress(
                stage=self._stage,
                path=path,
                read_bytes=done,
                total_bytes=sum(self._sizes.values()),
                steps_done=self._steps_done,
                steps_total=self._n_steps,
                seconds=time.perf_counter() - self._start,
                new_bytes=done - self._old_bytes,
                is_reused=is_reused,
            )
        )


class StepCount(Record):
    """One line of the attrition table: rows that a step excluded for one reason.

    A step that excluded no rows has one line without a reason. The lines of a step and unit have
    the same `rows_in` and `rows_out`. Their `removed` sum to the difference, unless the unit
    changes ("rows of views to titles").
    """

    step: NonEmpty
    """Name of the step."""

    unit: NonEmpty
    """Unit of its rows, such as "triples"."""

    rows_in: int = Field(ge=0)
    """Number of rows that it read."""

    rows_out: int = Field(ge=0)
    """Number of rows that it kept."""

    reason: str | None = None
    """Reason for the exclusion; None if no rows were excluded."""

    removed: int = Field(default=0, ge=0)
    """Number of rows excluded for this reason; a row counts once, under the first reason that
    applies."""


def step_counts(
    step: str, unit: str, rows_in: int, rows_out: int, removed: Mapping[str, int] | None = None
) -> list[StepCount]:
    """Return the counts of a step: one line per reason with rows, or one without a reason."""
    lost: list[tuple[str | None, int]] = [item for item in (removed or {}).items() if item[1]]
    return [
        StepCount(
            step=step, unit=unit, rows_in=rows_in, rows_out=rows_out, reason=reason, removed=n_rows
        )
        for reason, n_rows in lost or [(None, 0)]
    ]


def attrition_frame(counts: Sequence[StepCount]) -> pd.DataFrame:
    """Return the counts as a table.

    Args:
        counts: Counts of the steps, in their order.

    Returns:
        One row per count, with the fields of `StepCount` as columns.
    """
    return pd.DataFrame(
        [count.model_dump() for count in counts], columns=list(StepCount.model_fields)
    )
