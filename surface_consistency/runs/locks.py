"""One writer at a time: a lock file that the system frees when its process dies."""

import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import filelock

from surface_consistency.reading import within

_logger = logging.getLogger(__name__)

_ATTEMPTS = 10
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class FileLock:
    """Holds a lock file from construction to `release`; a context manager as well.

    On a file system without locks it holds nothing and says so in the log of the process.

    Args:
        path: The lock file; it holds the owner's process id while locked. Its folder must exist.
        held: Makes the error for a lock that is held, of its holder: "process 123" or "this
            process".

    Raises:
        Exception: What `held` makes, at once, if another process, or another lock in this one,
            holds the file.
        OSError: If the file cannot be made.
        DataError: If it is a symbolic link that leads out of its folder.
    """

    def __init__(self, path: str | os.PathLike[str], held: Callable[[str], Exception]) -> None:
        self._path = within(Path(path).parent, Path(path).name)
        self._lock = filelock.FileLock(path, timeout=0, thread_local=False)
        try:
            self._acquire(held)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _logger.warning(
                "%s: the file system has no locks (%s); make sure that no other process writes "
                "there",
                path,
                error,
            )
        else:
            # Where the lock covers the file's content, as on Windows, the owner stays unnamed.
            with suppress(OSError):
                self._path.write_text(str(os.getpid()), encoding="ascii")

    def _acquire(self, held: Callable[[str], Exception]) -> None:
        """Take the lock, at once unless its owner gives it back this very moment."""
        for attempt in range(_ATTEMPTS):
            try:
                self._lock.acquire()
            except filelock.Timeout as error:
                # Where the file is gone, its owner removed it between our opening and locking.
                if self._path.exists() or attempt == _ATTEMPTS - 1:
                    raise held(self._owner()) from error
            else:
                return

    def release(self) -> None:
        """Give the lock back and remove its file; a second call does nothing."""
        if self._lock.is_locked:
            # Before the release: afterwards the file may be another owner's. Who has opened it
            # and locks it later finds that it has no name any more, and opens the next one.
            with suppress(OSError):
                self._path.unlink()
            self._lock.release()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *error: object) -> None:
        """Release."""
        self.release()

    def _owner(self) -> str:
        """Name the process that holds the lock."""
        owner = ""
        with suppress(OSError):
            owner = self._path.read_text(encoding="ascii", errors="replace").strip()
        return "this process" if owner == str(os.getpid()) else f"process {owner or 'unknown'}"
