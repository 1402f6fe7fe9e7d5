"""The log of a run: one line a generation, safe against kills, full disks and second writers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from surface_consistency.errors import RunLogError, SourceNotFoundError
from surface_consistency.inference._lock import FileLock
from surface_consistency.inference._log_lines import key_of, log_lines
from surface_consistency.inference._log_settings import agree_on_settings
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.manifest import RunManifest

__all__ = ["RunLog", "read_generations"]


class RunLog:
    """Generations on disk, keyed by the content of their prompts.

    Use as a context manager. Beside the log stand its manifest (`<stem>.manifest.json`) and, while
    it is open, a lock. In memory there are only the keys of what was answered.
    """

    def __init__(self, path: Path, manifest: RunManifest, lock: FileLock, *, sync: bool) -> None:
        """Take over a checked and locked log; call `RunLog.open` instead."""
        self._path = path
        self._manifest = manifest
        self._lock = lock
        self._sync = sync
        self._keys: set[str] = set()
        self._size = 0
        for self._size, generation in log_lines(path, keyed=True) if path.exists() else ():
            if generation.finish_reason != "error":
                self._keys.add(key_of(generation))
        self._file = path.open("ab", buffering=0)
        self._file.truncate(self._size)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        manifest: RunManifest,
        *,
        manifest_path: str | os.PathLike[str] | None = None,
        sync: bool = True,
    ) -> Self:
        """Start a run's log, or take up the one that is there.

        A last line that was cut off by a kill is dropped, with a message in the log of the
        process. Answers that are errors do not count as done.

        Args:
            path: The log, JSON lines; its folder is made.
            manifest: The settings of the run that starts now.
            manifest_path: Where the settings stand; None for `<stem>.manifest.json` beside the log.
            sync: Whether each batch is forced to the disk (`fsync`) before the next is asked.

        Returns:
            The log, locked for this process.

        Raises:
            RunLogLockedError: If another process writes to the run.
            RunMismatchError: If the run was made with other settings; names each of them.
            RunLogError: If a line is corrupt or of another kind, or the files cannot be written.
        """
        log = Path(path)
        settings = Path(manifest_path or log.with_name(f"{log.stem}.manifest.json"))
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(log.with_name(f"{log.name}.lock"))
        except OSError as error:
            raise RunLogError(
                f"{log}: cannot be opened for writing ({error.strerror}); choose another --out"
            ) from error
        try:
            return cls(log, agree_on_settings(log, settings, manifest), lock, sync=sync)
        except BaseException:
            lock.release()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def manifest(self) -> RunManifest:
        """The settings of the run, as written at its first start."""
        return self._manifest

    def __contains__(self, key: object) -> bool:
        """Tell whether the prompt of this `Prompt.key` was answered without an error."""
        return key in self._keys

    def __len__(self) -> int:
        """Count the prompts answered without an error."""
        return len(self._keys)

    def append(self, generations: Sequence[Generation]) -> None:
        """Write one batch: whole, in one piece, and flushed before this returns.

        Args:
            generations: What was answered, each with its `prompt_key`.

        Raises:
            ValueError: If a generation has no `prompt_key`.
            RunLogError: If the disk is full or cannot be written; the log then ends with the batch
                before and can be taken up again.
        """
        done = {key_of(item) for item in generations if item.finish_reason != "error"}
        if any(item.prompt_key is None for item in generations):
            raise ValueError("every generation of a run log needs `prompt_key` (`Prompt.key`)")
        data = b"".join(item.model_dump_json().encode("utf-8") + b"\n" for item in generations)
        try:
            self._write(data)
        except BaseException as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            if isinstance(error, OSError):
                raise self._unwritable(error, len(generations)) from error
            raise
        self._size += len(data)
        self._keys |= done

    def close(self) -> None:
        """Close the file and free the run for others; a second call does nothing."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _write(self, data: bytes) -> None:
        """Hand all bytes to the system, and to the disk when asked."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        if self._sync:
            os.fsync(self._file.fileno())

    def _unwritable(self, error: OSError, n_lost: int) -> RunLogError:
        """Say what was kept and how to go on."""
        return RunLogError(
            f"{self._path}: writing {n_lost} generations failed ({error.strerror}); the log is "
            f"whole and keeps the {len(self):,} answers before them. Free disk space, then run the "
            "same command again: it resumes there"
        )


def read_generations(path: str | os.PathLike[str]) -> Iterator[Generation]:
    """Read a run log, one generation for each prompt content.

    The file is read line by line. An answer replaces the errors of earlier tries; errors that no
    answer replaced come last. A cut-off last line is passed over.

    Args:
        path: The log.

    Yields:
        The generations. Lines without `prompt_key`, of predictions made elsewhere, go by their id.

    Raises:
        SourceNotFoundError: If there is no such file.
        RunLogError: If a line is corrupt or of another kind; names file and line.
    """
    log = Path(path)
    if not log.is_file():
        raise SourceNotFoundError(f"no run log {log}; run the study first, or name its folder")
    seen: set[str] = set()
    errors: dict[str, Generation] = {}
    for _, generation in log_lines(log, keyed=False):
        key = key_of(generation)
        if generation.finish_reason == "error":
            errors[key] = generation
        elif key not in seen:
            seen.add(key)
            yield generation
    for key, generation in errors.items():
        if key not in seen:
            yield generation
