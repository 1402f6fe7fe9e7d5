"""Read the rows of a file of any kind: tables, data sets of `datasets`, logs in archives."""

import mmap
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import DataError, MissingDependencyError, RecordError
from surface_consistency.reading import (
    LONGEST_LINE,
    UnpackedSize,
    check_columns,
    parse_json,
    read_start,
    shown,
    unpacked,
    writable,
)
from surface_consistency.results import promptfoo
from surface_consistency.results.rows import Cells, without_empty
from surface_consistency.rows.columnar import check_saved_dataset
from surface_consistency.rows.readers import Place, Row, read_rows

_ZIP: Final = b"PK\x03\x04"
_ZSTANDARD: Final = 93
_STEP: Final = 4096


def packed_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a file or folder unchanged; an empty cell of CSV and TSV is None.

    Args:
        file: A file for `read_rows`, a log of inspect_ai in an archive, a workbook (.xlsx), of
            which the first sheet is read, or a folder written by `Dataset.save_to_disk`.

    Yields:
        Place and cells of each row. A sample of a log also contains the header of the log.

    Raises:
        DataError: If the kind of file is unknown, or the folder contains several splits.
        RecordError: If a row is broken; names file and line.
    """
    if file.is_dir():
        for number, row in enumerate(_dataset_rows(file), start=1):
            yield Place(str(file), number), row
    elif is_archive(file):
        from surface_consistency.results.workbooks import is_workbook, workbook_rows

        if is_workbook(file):
            for number, row in workbook_rows(file):
                yield Place(str(file), number), row
        else:
            yield from _archive_rows(file)
    elif promptfoo.is_table(file):
        yield from promptfoo.table_rows(file)
    else:
        is_delimited = file.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
        how = writable if _is_json(file) else without_empty if is_delimited else None
        rows = read_rows(file)
        yield from rows if how is None else ((place, how(row)) for place, row in rows)


def _is_json(file: Path) -> bool:
    """Return whether a JSON file may contain escaped lone surrogates, which no table can store."""
    named = {".json", ".jsonl", ".ndjson"} & {*map(str.lower, file.suffixes)}
    if not (named and file.is_file() and file.stat().st_size):
        return False
    if file.suffix.lower() == ".gz":
        return True
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        return whole.find(b"\\ud") >= 0 or whole.find(b"\\uD") >= 0


def is_archive(file: Path) -> bool:
    """Return whether a file is an archive, by its first bytes, or for inspect_ai by its name."""
    return file.suffix.lower() == ".eval" or (file.is_file() and read_start(file)[:4] == _ZIP)


def _dataset_rows(folder: Path) -> Iterator[Cells]:
    """Read a folder that `save_to_disk` wrote."""
    splits = sorted(path.parent.name for path in folder.glob("*/state.json"))
    if splits:
        raise DataError(
            f"{folder} contains several splits; use the folder of one: "
            f"{', '.join(str(folder / name) for name in splits)}"
        )
    import datasets

    check_saved_dataset(folder)
    try:
        rows = datasets.load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} cannot be read by datasets.load_from_disk: {error}") from error
    yield from map(dict, rows)


def _archive_rows(file: Path) -> Iterator[Row]:
    """Read the samples of a log of inspect_ai that is an archive, one in memory at a time."""
    size = UnpackedSize(file)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.namelist()
            names = [name for name in members if name.startswith("samples/")]
            if "header.json" not in members:
                raise DataError(
                    f"{file}: not a finished log of inspect_ai, which has a member header.json; "
                    "finish the evaluation (`inspect eval-retry`), and use its log"
                    if any(name.startswith("_journal/") for name in members)
                    else f"{file} is a zip archive, but neither a log of inspect_ai nor a workbook "
                    "(.xlsx); unpack it"
                )
            header = _member(archive, "header.json", size)
            for number, name in enumerate(names, start=1):
                sample = _member(archive, name, size)
                yield Place(str(file), number), {**header, "samples": [sample]}
    except zipfile.BadZipFile as error:
        raise DataError(f"{file}: not a readable log ({error}): copy it again") from error
    if not names:
        raise DataError(f"{file} is a log of inspect_ai without samples; log them and run again")


def _member(archive: zipfile.ZipFile, name: str, size: UnpackedSize) -> Mapping[str, Any]:
    """Read a member of an archive that is one JSON object."""
    place = f"{size.path} ({name})"
    info = archive.getinfo(name)
    if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
        try:
            import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(
                "Reading a log of inspect_ai", "inspect-ai", "inspect"
            ) from error
    if info.file_size > LONGEST_LINE:
        raise RecordError(
            f"{place}: {info.file_size:,} bytes after unpacking are more than the maximum of "
            f"{LONGEST_LINE:,} of one sample; write the log without events and attachments"
        )
    # Other decompressors unpack all of their input at once, so the input is split.
    step = LONGEST_LINE if info.compress_type == zipfile.ZIP_DEFLATED else _STEP
    try:
        with archive.open(info) as member, unpacked(member, size, step=step) as whole:
            content = whole.read(LONGEST_LINE + 1)
    except DataError:
        raise
    # The error class of zstd is not a subclass of another one.
    except Exception as error:
        raise RecordError(f"{place}: cannot be unpacked ({error}): copy the log again") from error
    value = parse_json(content, place, remedy="copy the log again")
    if not isinstance(value, dict):
        raise RecordError(f"{place}: expected a JSON object, got {shown(value)}; copy it again")
    check_columns(value, place)
    return value
