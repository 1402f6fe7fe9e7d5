"""The folder of a build, for one build at a time."""

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surface_consistency.errors import WorkFolderLockedError

__all__ = ["locked_folder"]

_logger = logging.getLogger(__name__)

_LOCK = ".lock"
_HELD = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_BEYOND_PID = 1 << 20


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Keep a work folder for one build.

    The lock is the system's own on the file `.lock`, which holds the owner's process id; it ends
    with the process, however that ends. The file itself stays.

    Args:
        folder: The folder; made if need be.

    Yields:
        The folder.

    Raises:
        WorkFolderLockedError: If another build, of this process or another, uses the folder.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor, place)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode("ascii"))
        yield place
    finally:
        os.close(descriptor)


def _lock(descriptor: int, place: Path) -> None:
    """Take the lock, or say who has it."""
    try:
        _lock_file(descriptor)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            _logger.warning(
                "%s: the file system has no locks (%s); make sure that no other build uses it",
                place,
                error,
            )
        elif error.errno in _HELD:
            owner = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            who = "this process" if owner == str(os.getpid()) else f"process {owner}"
            raise WorkFolderLockedError(
                f"another build ({who}) uses the work folder {place}; wait for it to end, or "
                "choose another folder"
            ) from error
        else:
            raise


def _lock_file(descriptor: int) -> None:
    """Take the system's exclusive lock, or raise OSError at once."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _BEYOND_PID, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
