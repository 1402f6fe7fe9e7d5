"""The items of a Wikidata dump, one line each."""

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from surface_consistency.wikimedia._ahead import open_ahead
from surface_consistency.wikimedia._wikidata_counts import WikidataCounts
from surface_consistency.wikimedia._wikidata_decoder import EntityDecoder
from surface_consistency.wikimedia._wikidata_shapes import Entity
from surface_consistency.wikimedia.streams import DumpStream, ProgressHook

__all__ = ["dump_items"]

_FRAME = b" \t\r\n,[]"
_NEWLINE = 10


def dump_items(
    path: str | os.PathLike[str],
    decoder: EntityDecoder,
    counts: WikidataCounts,
    *,
    allow_truncated: bool,
    progress: ProgressHook | None,
    threads: int | None,
) -> Iterator[tuple[int, Entity]]:
    """Yield the items of a dump with their numbers, and count what is passed over.

    Args:
        path: The dump: one entity a line, in an array or without.
        decoder: Decodes entities.
        counts: Where to count.
        allow_truncated: Whether damage ends the items with a warning.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2.

    Yields:
        The number after Q, and the decoded entity.

    Raises:
        DumpError: If the dump is cut off or damaged and that is not allowed.
    """
    with open_ahead(path, allow_truncated=allow_truncated, progress=progress, threads=threads) as (
        stream,
        chunks,
    ):
        reader = _BlockReader(stream, decoder, counts)
        for block in _line_blocks(stream, chunks):
            yield from reader.items(block)
            if reader.is_damaged:
                return
        reader.finish()


class _BlockReader:
    """Decodes blocks of whole lines."""

    def __init__(self, stream: DumpStream, decoder: EntityDecoder, counts: WikidataCounts) -> None:
        self.is_damaged = False
        self._stream = stream
        self._decoder = decoder
        self._counts = counts
        self._n_lines = 0
        self._offset = 0
        self._first = b""
        self._last = b""

    def items(self, block: bytes) -> Iterator[tuple[int, Entity]]:
        """Yield the items of a block; those before a line that is no entity, if there is one."""
        bare = block[:64].strip() or block.strip()
        if bare:
            self._first = self._first or bare[:1]
            self._last = block[-64:].strip()[-1:] or block.strip()[-1:]
        problem = None
        try:
            entities: Sequence[Entity] = self._decoder.decode_array(_array(block))
        except self._decoder.errors:
            entities, problem = self._line_by_line(block)
        yield from self._counted(entities)
        if problem is not None:
            self._end_early(*problem)
        # Several times as fast as `bytes.count`, which would take as long as the decoding.
        self._n_lines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        self._offset += len(block)

    def finish(self) -> None:
        """Check that an array was closed."""
        if self._first == b"[" and self._last != b"]" and not self._stream.is_truncated:
            self._end_early(
                "the array of entities has no closing bracket, so the file is cut off",
                self._offset,
            )

    def _line_by_line(self, block: bytes) -> tuple[list[Entity], tuple[str, int] | None]:
        """Decode lines until one is no entity; blocks without commas, or damaged, come here."""
        found: list[Entity] = []
        offset = self._offset
        for number, line in enumerate(block.split(b"\n"), self._n_lines + 1):
            body = line.strip(_FRAME)
            try:
                found.extend(self._decoder.decode_array(b"[%b]" % body))
            except self._decoder.errors as error:
                return found, (f"line {number:,} is no Wikidata entity ({error})", offset)
            offset += len(line) + 1
        return found, None

    def _counted(self, entities: Iterable[Entity]) -> Iterator[tuple[int, Entity]]:
        """Yield the items among entities, with their numbers."""
        counts = self._counts
        for entity in entities:
            identifier = entity.id
            if entity.type == "item" and identifier[:1] == "Q" and identifier[1:].isdecimal():
                counts.n_items += 1
                yield int(identifier[1:]), entity
            else:
                counts.skipped[entity.type] = counts.skipped.get(entity.type, 0) + 1

    def _end_early(self, problem: str, offset: int) -> None:
        """Raise, or warn where that is allowed."""
        self.is_damaged = True
        self._stream.end_early(
            f"{problem} at plain byte {offset:,}, after {self._counts.n_items:,} items"
        )


def _array(block: bytes) -> bytes:
    """Put lines of entities into brackets of their own; with few copies, as they are large."""
    start, end = block.find(b"{"), block.rfind(b"}") + 1
    if start < 0 or block[:start].strip(_FRAME) or block[end:].strip(_FRAME):
        return b"[%b]" % block.strip(_FRAME)
    return b"".join((b"[", memoryview(block)[start:end], b"]"))


def _line_blocks(stream: DumpStream, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines, about a chunk's worth at a time."""
    parts: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*parts, memoryview(chunk)[:cut]))
            parts = [chunk[cut:]]
        else:
            parts.append(chunk)
    rest = b"".join(parts)
    if rest and not stream.is_truncated:
        yield rest
