"""Lock file for one writer at a time, which the system releases when its process dies."""

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
    """Locks a file from construction to `release`; also a context manager.

    On a file system without locks it does not lock the file and logs a warning.

    Args:
        path: The lock file; it contains the process id of the owner while locked. Its folder must
            exist.
        error_for: Returns the error for a locked file from its owner: "process 123" or "this
            process".

    Raises:
        Exception: The error that `error_for` returns, immediately, if another process, or another
            lock in this process, has locked the file.
        OSError: If the file cannot be created.
        DataError: If it is a symbolic link that leads out of its folder.
    """

    def __init__(self, path: str | os.PathLike[str], error_for: Callable[[str], Exception]) -> None:
        self._path = within(Path(path).parent, Path(path).name)
        self._lock = filelock.FileLock(path, timeout=0, thread_local=False)
        try:
            self._acquire(error_for)
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
            # If the lock covers the content of the file, as on Windows, the owner is not recorded.
            with suppress(OSError):
                self._path.write_text(str(os.getpid()), encoding="ascii")

    def _acquire(self, error_for: Callable[[str], Exception]) -> None:
        """Acquire the lock without waiting; retry if its owner is just releasing it."""
        for attempt in range(_ATTEMPTS):
            try:
                self._lock.acquire()
            except filelock.Timeout as error:
                # If the file does not exist, its owner removed it between our opening and locking.
                if self._path.exists() or attempt == _ATTEMPTS - 1:
                    raise error_for(self._owner()) from error
            else:
                return

    def release(self) -> None:
        """Release the lock and remove its file; a second call does nothing."""
        if self._lock.is_locked:
            # Unlink before the release, because afterwards the file may belong to another owner. A
            # process that has opened it and locks it later detects that it was removed, and
            # retries.
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
        """Return the process that has the lock."""
        owner = ""
        with suppress(OSError):
            owner = self._path.read_text(encoding="ascii", errors="replace").strip()
        return "this process" if owner == str(os.getpid()) else f"process {owner or 'unknown'}"
