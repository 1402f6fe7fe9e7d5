"""What a reader does where its dump is cut off or damaged."""

import warnings

from surface_consistency.errors import DumpError, TruncatedDumpWarning
from surface_consistency.wikimedia.streams import DumpStream

__all__ = ["end_early"]


def end_early(stream: DumpStream, problem: str, *, offset: int, n_read: str) -> None:
    """Raise, or warn where a truncated dump is allowed; once for each dump.

    Args:
        stream: The dump.
        problem: What is wrong, as the end of "<file>: ...".
        offset: Plain byte at which it was found.
        n_read: What came before and is kept, such as "12 pages".

    Raises:
        DumpError: If damage is not allowed.
    """
    place = f"{stream.path}: {problem} at plain byte {offset:,}, after {n_read}"
    if not stream.allow_truncated:
        raise DumpError(
            f"{place}. Fetch the file again, or allow a truncated dump to keep what came before."
        )
    if not stream.is_truncated:
        stream.is_truncated = True
        warnings.warn(f"{place}; what came before is kept", TruncatedDumpWarning, stacklevel=4)
