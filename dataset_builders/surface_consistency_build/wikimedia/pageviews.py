"""Read pageview files: the number of requests per title of a wiki."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from surface_consistency.errors import DataError
from surface_consistency_build.wikimedia.streams import DumpStream, MarkedReadOptions, open_ahead

_CHUNK_BYTES: Final = 4 << 20
_LONGEST_LINE: Final = 8 << 20
_MALFORMED_ALLOWED: Final = 100
_MALFORMED_SHARE: Final = 0.01
_PROJECT: Final = re.compile(r"[^\s.]+(?:\.[^\s.]+)*")
_FIELDS: Final = rb"(\S+)(?: (?:(\d{1,18})|null|-))? [a-z][a-z-]* (\d{1,18}) \S+"
_ACCESS: Final = re.compile(rb"[a-z][a-z-]*")
_SAMPLE: Final = re.compile(rb"^\S+ " + _FIELDS + rb"\r?$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class _Counts:
    """Counts that grow while a pageview file is read."""

    n_rows: int = 0
    """Lines of the project read so far."""

    n_malformed: int = 0
    """Lines of the project that could not be read, so far."""

    first_malformed: str | None = None
    """The first line that could not be read."""


def read_pageviews(
    path: str | os.PathLike[str], *, project: str, **options: Unpack[MarkedReadOptions]
) -> Iterator[pa.RecordBatch]:
    """Read the lines of one project in a `pageview_complete` file, daily or monthly.

    A line is "de.wikipedia Obergesteln 585473 desktop 2 K1U1": project, title, page, kind of
    access, views, and the views by hour or day. The page is "null" if it was not known, and is
    missing in older files. A title has one row per kind of access and per page that had the title;
    sum them. Titles are the requested ones, so redirects have their own rows.

    The format has no end marker. A last line without a line feed is incomplete, and a compressed
    file ends with a checksum. An uncompressed file that was cut at the end of a line cannot be
    detected and is read as if it were complete (`ReadProgress.is_end_unmarked` is then True).

    Args:
        path: The file, compressed or not.
        project: The project, such as "en.wikipedia".
        options: Handling of damaged files and of uncompressed files, which have no end marker; hook
            for progress; number of threads: `MarkedReadOptions`.

    Yields:
        Batches with the columns `title` (binary, with underscores), `page_id` (int64 or null) and
        `views` (int64), in the order of the file; empty batches are omitted.

    Raises:
        ValueError: If `project` cannot be the name of a project.
        SourceNotFoundError: If the file does not exist.
        DataError: If the file is cut off or damaged, its last line is incomplete, it is not a
            pageview file, or more than 1 % of the project's lines, and more than 100, cannot be
            read.

    Warns:
        DataWarning: If the file is cut off or damaged and that is allowed.
    """
    if not _PROJECT.fullmatch(project):
        raise ValueError(f"project must be a name such as 'en.wikipedia', got {project!r}")
    seen = _Counts()
    lines = re.compile(
        rb"^%b (?:%b\r?$|(.*))" % (re.escape(project.encode()), _FIELDS), re.MULTILINE
    )
    prefix = project.encode() + b" "
    with open_ahead(path, chunk_bytes=_CHUNK_BYTES, **options) as (stream, chunks):
        for block in _line_blocks(stream, chunks):
            start = 0 if block.startswith(prefix) else block.find(b"\n" + prefix)
            if start < 0:
                continue
            end = block.find(b"\n", block.rfind(b"\n" + prefix) + 1)
            last = len(block) if end < 0 else end
            batch = _plain_batch(block[start:last].lstrip(b"\n"), project)
            if batch is not None:
                seen.n_rows += batch.num_rows
                yield batch
                continue
            fields = lines.findall(block, start, last)
            rows = _sound_rows(fields, seen, project, stream)
            if rows:
                yield _batch(rows)
        if seen.n_malformed and not seen.n_rows:
            raise _too_many(seen, project, stream)


def _plain_batch(block: bytes, project: str) -> pa.RecordBatch | None:
    """Read lines of six fields at once; None if a line needs the slow parser.

    The slow parser reads blocks with quotes, lines without a page, other line ends, or unexpected
    fields.
    """
    if b' "' in block or b"\r" in block or b"\n\n" in block:
        return None
    types = {"project": pa.binary(), "title": pa.binary(), "page_id": pa.int64()}
    types |= {"access": pa.binary(), "views": pa.int64(), "hours": pa.binary()}
    try:
        table = csv.read_csv(
            pa.py_buffer(block),
            read_options=csv.ReadOptions(column_names=list(types), block_size=len(block) + 1),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False, escape_char=False),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=["null", "-"], check_utf8=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    own = pc.equal(table["project"], pa.scalar(project.encode(), pa.binary()))
    table = table.filter(own).combine_chunks()
    if not table.num_rows or not _is_sound(table):
        return None
    [batch] = table.select(["title", "page_id", "views"]).to_batches()
    return batch


def _is_sound(table: pa.Table) -> bool:
    """Check that every line has a title, views and an access of letters, like the pattern."""
    accesses = pc.unique(table["access"]).to_pylist()
    views = pc.min_max(table["views"]).as_py()
    pages = pc.min_max(table["page_id"]).as_py()["min"]
    return (
        all(_ACCESS.fullmatch(access) for access in accesses)
        and table["views"].null_count == 0
        and views["min"] >= 0
        and (pages is None or pages >= 0)
        and pc.min(pc.binary_length(table["title"])).as_py() > 0
        and pc.min(pc.binary_length(table["hours"])).as_py() > 0
    )


def _line_blocks(stream: DumpStream, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks of whole lines, about one chunk each; the first block must contain pageviews."""
    rest = b""
    is_first = True
    for chunk in chunks:
        body, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += tail
            if len(rest) > _LONGEST_LINE:
                raise _no_pageviews(stream, rest[:80])
            continue
        block, rest = rest + body, tail
        if is_first and not _SAMPLE.search(block):
            raise _no_pageviews(stream, block)
        is_first = False
        yield block
    if not rest:
        if not stream.is_truncated:
            stream.end_unmarked("pageview files have no end marker")
        return
    if is_first and not stream.is_truncated and not _SAMPLE.search(rest):
        raise _no_pageviews(stream, rest)
    if not stream.is_truncated:
        start = rest[:60].decode("utf-8", "replace")
        stream.end_early(
            f"the last line has no line feed, so it is incomplete: {start!r} at plain byte "
            f"{stream.plain_bytes - len(rest):,}"
        )


def _no_pageviews(stream: DumpStream, block: bytes) -> DataError:
    """Return the error for a file of another format."""
    start = block[:60].decode("utf-8", "replace")
    return DataError(
        f"{stream.path}: not a pageview_complete file; it starts with {start!r}, but a line is "
        "like 'de.wikipedia Obergesteln 585473 desktop 2 K1U1'"
    )


def _sound_rows(
    fields: list[tuple[bytes, bytes, bytes, bytes]],
    counts: _Counts,
    project: str,
    stream: DumpStream,
) -> list[tuple[bytes, bytes, bytes, bytes]]:
    """Count the lines, and skip those that cannot be read."""
    rows = [row for row in fields if row[2]]
    counts.n_rows += len(rows)
    n_malformed = len(fields) - len(rows)
    if n_malformed:
        counts.n_malformed += n_malformed
        if counts.first_malformed is None:
            rest = next(row[3] for row in fields if not row[2])
            counts.first_malformed = f"{project} {rest.decode('utf-8', 'replace')}"
        n_lines = counts.n_rows + counts.n_malformed
        if counts.n_malformed > max(_MALFORMED_ALLOWED, _MALFORMED_SHARE * n_lines):
            raise _too_many(counts, project, stream)
    return rows


def _too_many(counts: _Counts, project: str, stream: DumpStream) -> DataError:
    """Return the error for too many unreadable lines."""
    return DataError(
        f"{stream.path}: {counts.n_malformed:,} of {counts.n_rows + counts.n_malformed:,} lines of "
        f"{project} cannot be read, up to plain byte {stream.plain_bytes:,}; the first is "
        f"{counts.first_malformed!r}. Download the file again, or check that it is a "
        "pageview_complete file"
    )


def _batch(rows: list[tuple[bytes, bytes, bytes, bytes]]) -> pa.RecordBatch:
    """Convert rows to a batch."""
    titles, pages, views, _ = zip(*rows, strict=True)
    page_text = pa.array(pages, pa.string())
    known = pc.if_else(pc.equal(page_text, ""), pa.scalar(None, pa.string()), page_text)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([_title(title) if title[:1] == b'"' else title for title in titles]),
            known.cast(pa.int64()),
            pa.array(views, pa.string()).cast(pa.int64()),
        ],
        schema=pa.schema([("title", pa.binary()), ("page_id", pa.int64()), ("views", pa.int64())]),
    )


def _title(title: bytes) -> bytes:
    """Undo CSV quoting, which some files apply to titles that contain quotes.

    A title that only starts and ends with a quote is unchanged: CSV would have doubled the quotes.
    """
    inner = title[1:-1]
    if len(title) < 4 or title[-1:] != b'"' or b'""' not in inner:
        return title
    single = inner.replace(b'""', b"")
    return title if b'"' in single else inner.replace(b'""', b'"')
