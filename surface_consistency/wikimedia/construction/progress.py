"""How far a build is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BuildHook", "BuildProgress"]


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
