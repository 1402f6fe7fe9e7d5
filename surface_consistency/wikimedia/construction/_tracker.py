"""Bytes and steps of one build, told to whoever asks."""

import time
from pathlib import Path

from surface_consistency.wikimedia.construction.progress import BuildHook, BuildProgress
from surface_consistency.wikimedia.streams import ReadProgress

__all__ = ["Tracker"]


class Tracker:
    """Adds up what has been read and done.

    Args:
        hook: What to tell; None for nobody.
        paths: All dumps of the build.
        n_steps: Steps after the dumps.
    """

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
