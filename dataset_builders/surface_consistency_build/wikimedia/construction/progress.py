"""How far a build is, and how many rows each step took in, passed on and left out."""

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
    """The state of a build: while dumps are read by bytes, afterwards by steps."""

    stage: str
    """What is being done: name of the dump or of the step."""

    path: Path | None
    """The file that is being read; None in steps."""

    read_bytes: int
    """Bytes read of all dumps, as they lie on the disk; those of earlier starts included."""

    total_bytes: int
    """Bytes of all dumps."""

    steps_done: int
    """Steps that are finished."""

    steps_total: int
    """Steps of the build."""

    seconds: float
    """Seconds since this start."""

    new_bytes: int
    """Bytes read since this start."""

    is_reused: bool = False
    """Whether the stage was done by an earlier start, and its results are kept."""

    @property
    def seconds_left(self) -> float:
        """Seconds that reading the rest will take at the rate so far; NaN before the first byte."""
        if self.new_bytes <= 0 or self.seconds <= 0:
            return float("nan")
        return (self.total_bytes - self.read_bytes) * self.seconds / self.new_bytes


BuildHook = Callable[[BuildProgress], None]
"""What is called as a build goes on."""


class Tracker:
    """Adds up what has been read of all dumps and done of the steps after them."""

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
        """Dumps that ended early, of those read since this start, and where."""
        self.unmarked: set[Path] = set()
        """Dumps read since this start of which nothing tells whether they are whole."""

    def begin(self, stage: str, path: Path | None = None) -> None:
        """Tell that a dump or step begins."""
        self._stage = stage
        self._tell(path)

    def end_step(self) -> None:
        """Tell that a step is finished."""
        self._steps_done += 1
        self._tell(None)

    def skip(self, path: Path) -> None:
        """Count a dump that an earlier start read, and tell that it is kept."""
        self._stage = path.name
        self._old_bytes += self._sizes[path] - self._read[path]
        self._read[path] = self._sizes[path]
        self._tell(None, is_reused=True)

    def finish(self, path: Path) -> None:
        """Count a dump as read to its end; a table may end before its file does."""
        self._read[path] = self._sizes[path]
        self._tell(path)

    def read(self, state: ReadProgress) -> None:
        """Take in how far a dump is read."""
        self._read[state.path] = state.read_bytes
        if state.is_truncated:
            self.truncated.setdefault(state.path, state)
        if state.is_end_unmarked:
            self.unmarked.add(state.path)
        self._tell(state.path)

    def _tell(self, path: Path | None, *, is_reused: bool = False) -> None:
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
    """One line of the attrition table: rows that left a step for one reason.

    A step that lost nothing has one line with no reason. The lines of a step and unit share
    `rows_in` and `rows_out`, and their `removed` sum to the difference; only where the unit changes
    ("rows of views to titles") is there no such sum.
    """

    step: NonEmpty
    """Name of the step."""

    unit: NonEmpty
    """What its rows are, such as "triples"."""

    rows_in: int = Field(ge=0)
    """Rows that it looked at."""

    rows_out: int = Field(ge=0)
    """Rows that it passed on."""

    reason: str | None = None
    """Why rows went; None when none did."""

    removed: int = Field(default=0, ge=0)
    """Rows that went for this reason; each row counts once, under the first that holds."""


def step_counts(
    step: str, unit: str, rows_in: int, rows_out: int, removed: Mapping[str, int] | None = None
) -> list[StepCount]:
    """Count what a step lost: one line a reason that held, or one without a reason."""
    lost: list[tuple[str | None, int]] = [item for item in (removed or {}).items() if item[1]]
    return [
        StepCount(
            step=step, unit=unit, rows_in=rows_in, rows_out=rows_out, reason=reason, removed=n_rows
        )
        for reason, n_rows in lost or [(None, 0)]
    ]


def attrition_frame(counts: Sequence[StepCount]) -> pd.DataFrame:
    """Lay the counts out as a table.

    Args:
        counts: Counts of the steps, in their order.

    Returns:
        One row a count, with the fields of `StepCount` as columns.
    """
    return pd.DataFrame(
        [count.model_dump() for count in counts], columns=list(StepCount.model_fields)
    )
