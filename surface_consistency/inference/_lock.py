"""A lock file that at most one process holds."""

import errno
import logging
import os
import sys
from pathlib import Path

from surface_consistency.errors import RunLogLockedError

__all__ = ["FileLock"]

_logger = logging.getLogger(__name__)

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_BEYOND_PID = 1 << 20
_HELD = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})


class FileLock:
    """Holds a lock file from construction to `release`; the system frees it when a process dies.

    Args:
        path: The lock file; it holds the owner's process id while locked.

    Raises:
        RunLogLockedError: If another process, or another log in this one, holds it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = self._acquire()

    def release(self) -> None:
        """Give the lock back and remove its file; a second call does nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if sys.platform != "win32":
            self._path.unlink(missing_ok=True)
        os.close(descriptor)

    def _acquire(self) -> int | None:
        """Open and lock the file; again when its last owner removed it in between."""
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                _lock(descriptor)
            except OSError as error:
                os.close(descriptor)
                if error.errno in _NO_LOCKS:
                    _logger.warning(
                        "%s: the file system has no locks (%s); make sure that no other process "
                        "writes to this run",
                        self._path,
                        error,
                    )
                    return None
                if error.errno in _HELD:
                    raise self._locked() from error
                raise
            if _is_same(descriptor, self._path):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, str(os.getpid()).encode("ascii"))
                return descriptor
            os.close(descriptor)

    def _locked(self) -> RunLogLockedError:
        """Name the process that holds the lock."""
        owner = self._path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
        who = "this process" if owner == str(os.getpid()) else f"process {owner}"
        return RunLogLockedError(
            f"{who} writes to this run (lock {self._path}); wait for it to end, or choose another "
            "--out"
        )


def _lock(descriptor: int) -> None:
    """Take the exclusive lock or raise OSError at once."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _BEYOND_PID, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_same(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is still the one under its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
