"""A part of a dump's plain bytes that moves forward."""

from collections.abc import Iterator

from surface_consistency.wikimedia.streams import DumpStream

__all__ = ["MAX_STATEMENT_BYTES", "DumpFaultError", "Window"]

MAX_STATEMENT_BYTES = 1 << 28
"""No row or statement is longer; one that seems to be is a string that never ends."""


_FIRST_READ = 1 << 19


class DumpFaultError(Exception):
    """What the dump says at a window's position is not what it must be."""


class Window:
    """Bytes of a stream from `position` on, as many as have been asked for.

    Args:
        stream: The dump.
    """

    def __init__(self, stream: DumpStream) -> None:
        self.stream = stream
        """The dump."""
        self.data = b""
        """The bytes held."""
        self.position = 0
        """Where in `data` the bytes start that have not been used."""
        self.is_at_end = False
        """Whether the stream has nothing more."""
        self._base = 0
        self._chunks: Iterator[bytes] = stream.chunks(_FIRST_READ)

    @property
    def offset(self) -> int:
        """Plain bytes of the dump before `position`."""
        return self._base + self.position

    @property
    def unused(self) -> int:
        """How many bytes are held from `position` on."""
        return len(self.data) - self.position

    def fill(self) -> bool:
        """Hold more bytes, twice as many if all those held are still needed.

        Returns:
            Whether there were more.
        """
        parts = [self.data[self.position :]]
        wanted = max(1, len(parts[0]))
        while wanted > 0:
            chunk = next(self._chunks, b"")
            if not chunk:
                self.is_at_end = True
                break
            parts.append(chunk)
            wanted -= len(chunk)
        self._base += self.position
        self.position = 0
        self.data = b"".join(parts)
        return len(parts) > 1
