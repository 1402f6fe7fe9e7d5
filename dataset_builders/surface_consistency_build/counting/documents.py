"""Read the documents of a corpus in batches, from files of lines, Parquet or text."""

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import orjson
import pyarrow as pa

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import first_names
from surface_consistency.rows.columnar import open_parquet
from surface_consistency_build.counting.texts import PackedTexts, encoded
from surface_consistency_build.unpacking.decoders import (
    PACKED_SUFFIXES,
    DamagedInputError,
    open_decoder,
)

FaultKind = Literal[
    "broken line", "no text field", "null text", "text of another type", "invalid UTF-8", "NUL"
]
"""Faults of a document. Documents with the last two kinds are counted, with U+FFFD for invalid
characters; the others are excluded."""

_CHUNK: Final = 1 << 22
_BATCH_BYTES: Final = 1 << 22
_LONGEST: Final = 1 << 30
_SHOWN: Final = 5
_LINES: Final = (".jsonl", ".ndjson", ".json")
_FORMATS: Final = (
    ".jsonl, .ndjson, .json (one object per line) and .txt, each also as .gz, .zst, .bz2 or .xz; "
    ".parquet"
)
_BOM: Final = b"\xef\xbb\xbf"
_SPLIT: Final = "split it into documents"
_Truncated = Callable[[Path, Exception | None], None]
"""Handler of a file that ends early."""


@dataclass(slots=True)
class ReadReport:
    """Counts of the documents that were read, and of their faults."""

    documents: int = 0
    """Number of documents returned."""

    n_bytes: int = 0
    """Number of bytes of UTF-8 returned."""

    not_sampled: int = 0
    """Number of documents that sampling skipped."""

    faults: dict[str, int] = field(default_factory=dict)
    """Number of documents by `FaultKind`."""

    places: dict[str, list[str]] = field(default_factory=dict)
    """The first five places of each kind."""

    truncated: list[str] = field(default_factory=list)
    """Files that ended early, if that is allowed."""

    def add(self, kind: FaultKind, place: str) -> None:
        """Record a fault.

        Args:
            kind: Kind of the fault.
            place: File and position in it.
        """
        self.faults[kind] = self.faults.get(kind, 0) + 1
        shown = self.places.setdefault(kind, [])
        if len(shown) < _SHOWN:
            shown.append(place)

    def merge(self, other: "ReadReport") -> None:
        """Add the report of another part of the corpus.

        Args:
            other: That report.
        """
        self.documents += other.documents
        self.n_bytes += other.n_bytes
        self.not_sampled += other.not_sampled
        for kind, n in other.faults.items():
            self.faults[kind] = self.faults.get(kind, 0) + n
            self.places[kind] = (self.places.get(kind, []) + other.places[kind])[:_SHOWN]
        self.truncated += other.truncated

    def lines(self) -> list[str]:
        """Describe the faults, one sentence per kind.

        Returns:
            The sentences; empty without faults.
        """
        done = {"invalid UTF-8": "repaired", "NUL": "counted"}
        messages = [
            f"{n:,} documents: {kind} ({done.get(kind, 'excluded')}), first at "
            f"{', '.join(self.places[kind])}"
            for kind, n in self.faults.items()
        ]
        early = [f"{name} ended early; the data before that was counted" for name in self.truncated]
        return messages + early


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file: whole lines, row groups, or all of it."""

    path: Path
    """The file."""

    start: int = 0
    """First byte, or row group; a line belongs to the part that contains its start."""

    stop: int | None = None
    """The byte or row group after the last; None for the end of the file."""


class DocumentReader:
    """Documents in batches, with a report; returned by `read_documents`."""

    def __init__(
        self,
        parts: Sequence[FilePart] | Iterable[Mapping[str, Any]],
        *,
        text: str,
        id: str | None,
        sample: float,
        seed: int,
        allow_truncated: bool,
    ) -> None:
        if not 0.0 < sample <= 1.0:
            raise ValueError(f"sample must be above 0 and at most 1, got {sample!r}")
        self.report = ReadReport()
        """Report of the documents read so far."""
        self._parts = parts
        self._text = text
        self._id = id
        self._sample = sample
        self._bound = int(sample * (1 << 64))
        self._seed = seed
        self._allow_truncated = allow_truncated

    def __iter__(self) -> Iterator[PackedTexts]:
        """Yield batches of some megabytes, once."""
        waiting: list[bytes] = []
        size = 0
        for text in self._documents():
            waiting.append(text)
            size += len(text)
            if size >= _BATCH_BYTES:
                yield self._batch(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._batch(waiting)

    def _batch(self, texts: list[bytes]) -> PackedTexts:
        """Pack valid documents."""
        packed = PackedTexts.join(texts)
        self.report.documents += len(packed)
        self.report.n_bytes += packed.buffer.size
        return packed

    def _documents(self) -> Iterator[bytes]:
        """Yield documents one by one."""
        parts: Iterator[Any] = iter(self._parts)
        for part in parts:
            if not isinstance(part, FilePart):
                yield from self._rows(chain((part,), parts))
                return
            suffix = _suffix(part.path)
            if suffix == ".parquet":
                yield from self._parquet(part)
            elif suffix == ".txt":
                yield from self._whole(part.path)
            else:
                yield from self._lines(part)

    def _rows(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
        """Read rows of a data set."""
        for number, row in enumerate(rows):
            found = self._row(row, f"row {number}", str(number))
            if found is not None:
                yield found

    def _lines(self, part: FilePart) -> Iterator[bytes]:
        """Read lines of JSON."""
        name = part.path.name
        n_lines, n_found, seen = 0, 0, ""
        by_place = self._sample < 1.0 and self._id is None
        for offset, line in _file_lines(part, self._truncated):
            if not line or line.isspace():
                continue
            n_lines += 1
            if by_place and not self._is_sampled(f"{name}:{offset}"):
                n_found += 1
                continue
            place = f"{part.path}:byte {offset}"
            try:
                row = orjson.loads(line)
            except ValueError:
                row = self._second_try(line, place)
            if not isinstance(row, dict):
                self.report.add("broken line", place)
                continue
            seen = seen or first_names(row)
            n_found += self._text in row
            found = self._row(row, place, None if by_place else f"{name}:{offset}")
            if found is not None:
                yield found
        if n_lines and not n_found:
            raise DataError(
                f"{part.path}: none of the {n_lines:,} lines is an object with the field "
                f"{self._text!r}; "
                + (f"the first has {seen}" if seen else "they are not JSON objects")
                + ". Name the field of the text (`text`)"
            )

    def _second_try(self, line: bytes, place: str) -> object:
        """Read a line that the fast reader rejects: lone surrogates, NaN, invalid UTF-8."""
        plain, is_repaired = encoded(line)
        try:
            row = json.loads(plain)
        except (ValueError, RecursionError):
            return None
        if is_repaired and isinstance(row, dict):
            self.report.add("invalid UTF-8", place)
        return row

    def _row(self, row: Mapping[str, Any], place: str, position: str | None) -> bytes | None:
        """Return the text of a row, if the row is sampled and has a text."""
        if position is not None and self._sample < 1.0:
            if self._id is not None and row.get(self._id) is None:
                raise DataError(
                    f"{place}: field {self._id!r} not found; documents are sampled by it. Name "
                    "another field by `id`, or omit `id` to sample by position"
                )
            if not self._is_sampled(position if self._id is None else str(row[self._id])):
                return None
        if self._text not in row:
            self.report.add("no text field", place)
            return None
        return self._checked(row[self._text], place)

    def _checked(self, text: object, place: str) -> bytes | None:
        """Convert a text to valid UTF-8, and record its faults."""
        if text is None:
            self.report.add("null text", place)
            return None
        if not isinstance(text, str | bytes):
            self.report.add("text of another type", place)
            return None
        plain, is_repaired = encoded(text)
        if is_repaired:
            self.report.add("invalid UTF-8", place)
        if b"\x00" in plain:
            self.report.add("NUL", place)
        return plain

    def _is_sampled(self, identity: str) -> bool:
        """Draw a document by its identity, independently of other documents."""
        key = f"{self._seed}\0{identity}".encode("utf-8", "replace")
        drawn = hashlib.blake2b(key, digest_size=8).digest()
        if int.from_bytes(drawn, "little") < self._bound:
            return True
        self.report.not_sampled += 1
        return False

    def _whole(self, path: Path) -> Iterator[bytes]:
        """Read a text file as one document."""
        if self._sample < 1.0 and not self._is_sampled(path.name):
            return
        parts, size = [], 0
        for chunk in _plain_chunks(path, 0, self._truncated):
            parts.append(chunk)
            size += len(chunk)
            if size > _LONGEST:
                raise DataError(f"{path} is a text of more than {_LONGEST:,} bytes; {_SPLIT}")
        found = self._checked(b"".join(parts).removeprefix(_BOM), str(path))
        if found is not None:
            yield found

    def _parquet(self, part: FilePart) -> Iterator[bytes]:
        """Read a column of Parquet."""
        try:
            groups = slice(part.start, part.stop)
            file = open_parquet(part.path, groups=groups)
            names = file.schema_arrow.names
            wanted = [*dict.fromkeys(name for name in (self._text, self._id) if name is not None)]
            if missing := [name for name in wanted if name not in names]:
                role = "text" if missing[0] == self._text else "id"
                raise DataError(
                    f"{part.path} has no column {missing[0]!r}; it has {first_names(names)}. Name "
                    f"the column (`{role}`)"
                )
            first = sum(file.metadata.row_group(k).num_rows for k in range(part.start))
            numbers = [*range(file.num_row_groups)[groups]]
            for batch in file.iter_batches(1024, row_groups=numbers, columns=wanted):
                texts = batch.column(0)
                if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
                    batch = batch.set_column(0, self._text, texts.cast(pa.large_binary()))
                for number, row in enumerate(batch.to_pylist(), start=first):
                    place = f"{part.path}:row {number}"
                    found = self._row(row, place, f"{part.path.name}:{number}")
                    if found is not None:
                        yield found
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{part.path}: cannot be read as Parquet ({error}); download the file again"
            ) from error

    def _truncated(self, path: Path, error: Exception | None) -> None:
        """Raise an error for a file that ends early, or record it."""
        if not self._allow_truncated:
            reason = f" ({error})" if error is not None and str(error) else ""
            raise DataError(
                f"{path} is cut off or damaged{reason}; download it again, exclude it, or allow "
                "truncated files to count the data before that (`allow_truncated`)"
            ) from error
        self.report.truncated.append(str(path))


def read_documents(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Mapping[str, Any]],
    *,
    text: str = "text",
    id: str | None = None,
    sample: float = 1.0,
    seed: int = 0,
    allow_truncated: bool = False,
) -> DocumentReader:
    """Read the documents of a corpus.

    Args:
        source: Files, folders (with all subfolders) and patterns such as "pile/*.jsonl.zst"; or
            rows, such as a streaming `datasets.IterableDataset`.
        text: Field of the text.
        id: Field by which documents are drawn; None draws by file name and position.
        sample: Proportion of the documents, in (0, 1]. A document is drawn by its id or position
            and the seed, so the sample does not depend on the order, the shards or the distribution
            of the work.
        seed: Seed of the sample.
        allow_truncated: Count the data before the place at which a compressed file is cut off.

    Returns:
        Batches of documents, which can be read once, with a `report`. Documents without a text are
        excluded and reported; invalid UTF-8 becomes U+FFFD and is reported.

    Raises:
        SourceNotFoundError: If nothing matches.
        DataError: If the format of a file is not known. While reading: if a file is damaged, no
            line of it has the field, or a document is longer than a gibibyte; the message contains
            the file.
        ValueError: If `sample` is out of range.

    Examples:
        >>> reader = read_documents([{"text": "New York"}, {"text": None}, {"text": "York"}])
        >>> [list(batch) for batch in reader], reader.report.faults
        ([['New York', 'York']], {'null text': 1})
    """
    is_paths = isinstance(source, str | os.PathLike) or (
        isinstance(source, Sequence) and all(isinstance(s, str | os.PathLike) for s in source)
    )
    parts: Any = [FilePart(path) for path in corpus_files(source)] if is_paths else source  # type: ignore[arg-type]
    return DocumentReader(
        parts, text=text, id=id, sample=sample, seed=seed, allow_truncated=allow_truncated
    )


def corpus_files(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """List the files of a corpus.

    Args:
        paths: Files, folders and patterns.

    Returns:
        The distinct files, sorted.

    Raises:
        SourceNotFoundError: If a path or pattern matches nothing.
        DataError: If a given file has an unknown format.
    """
    found: set[Path] = set()
    for given in [paths] if isinstance(paths, str | os.PathLike) else paths:
        place = Path(given)
        if place.is_dir():
            files = [file for file in place.rglob("*") if file.is_file() and _is_known(file)]
        elif place.is_file():
            files = [place]
        else:
            files = [Path(name) for name in glob.glob(str(given), recursive=True)]
            files = [file for file in files if file.is_file()]
        if not files:
            raise SourceNotFoundError(
                f"no documents at {given}: the path does not exist, or contains no files of a "
                f"known format ({_FORMATS}); check it"
            )
        for file in files:
            if not _is_known(file):
                raise DataError(f"cannot read {file}; the known formats are {_FORMATS}")
        found.update(file.resolve() for file in files)
    return sorted(found)


def is_splittable(path: Path) -> bool:
    """Check whether parts of a file can be read separately.

    Args:
        path: The file.

    Returns:
        True for uncompressed lines and Parquet.
    """
    return path.suffix.lower() in (*_LINES, ".parquet")


def _suffix(path: Path) -> str:
    """Return the format of a file: .jsonl, .txt or .parquet."""
    name = path.name.lower()
    for packed in PACKED_SUFFIXES:
        name = name.removesuffix(packed)
    end = "." + name.rpartition(".")[2]
    return ".jsonl" if end in _LINES else end


def _is_known(path: Path) -> bool:
    """Check whether files of this format can be read."""
    if path.name.startswith("."):
        return False
    return _suffix(path) in {".jsonl", ".txt"} or path.suffix.lower() == ".parquet"


def _file_lines(part: FilePart, truncated: _Truncated) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in a part of a file, with their positions in the plain bytes."""
    # A line begins after a line feed, so the byte before the part shows whether one begins.
    offset = max(part.start - 1, 0)
    is_inside = part.start > 0
    waiting: list[bytes] = []
    n_waiting = 0
    for chunk in _plain_chunks(part.path, offset, truncated):
        first, *rest = chunk.split(b"\n")
        waiting.append(first)
        n_waiting += len(first)
        if n_waiting > _LONGEST:
            raise DataError(
                f"{part.path}: the line at byte {offset} is longer than {_LONGEST:,} bytes; "
                f"{_SPLIT}"
            )
        for following in rest:
            line = b"".join(waiting)
            if not is_inside:
                if part.stop is not None and offset >= part.stop:
                    return
                yield offset, line.removeprefix(_BOM) if offset == 0 else line
            is_inside = False
            offset += len(line) + 1
            waiting, n_waiting = [following], len(following)
    if not is_inside and n_waiting and (part.stop is None or offset < part.stop):
        yield offset, b"".join(waiting).removeprefix(_BOM if offset == 0 else b"")


def _plain_chunks(path: Path, start: int, truncated: _Truncated) -> Iterator[bytes]:
    """Yield the bytes of a file; files with a suffix of compression are decompressed by content."""
    if path.suffix.lower() not in PACKED_SUFFIXES:
        with path.open("rb") as file:
            file.seek(start)
            while chunk := file.read(_CHUNK):
                yield chunk
        return
    try:
        decoder = open_decoder(path, threads=1)
    except DamagedInputError as error:
        if path.stat().st_size:
            raise DataError(f"{path}: {error}; correct its suffix") from error
        truncated(path, error)
        return
    try:
        while chunk := decoder.read(_CHUNK):
            yield chunk
    except DamagedInputError as error:
        truncated(path, error)
    finally:
        decoder.close()
