"""Atomic writing of files.

Each file is written to a hidden sibling, which replaces the file when it is complete. So a killed
process or a full disk never leaves a partial table or page under the name of the file. Lines of
records are written by `surface_consistency.schemas.write_jsonl` in the same way.
"""

import csv
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import DataError
from surface_consistency.reading import file_digest, parse_json, read_document, within
from surface_consistency.schemas.jsonl import (
    atomic_path,
    partial_path,
    remove_abandoned,
    writing_error,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ROW_GROUP = 65_536
_PAGE = "report.html"
_SOURCES = "tables/SOURCES.txt"
"""Path of the file that lists the runs of a report, and the SHA-256 of its files."""
CLAIMED = ".surface-consistency-files"
"""Name of the hidden file that lists the files of a folder which `claim_files` allows to be
written."""
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]inf", re.ASCII)


def output_folder(path: str | os.PathLike[str]) -> Path:
    """Create the folder of results if it does not exist.

    Args:
        path: Its path; parents are also created. Partial files of killed processes are removed.

    Returns:
        The folder.

    Raises:
        ValueError: If the name is empty: the current folder is ".".
        DataError: If it is a file, or the folder cannot be created; names it.
    """
    if not os.fspath(path):
        raise ValueError("`out` is empty; give the name of a folder, '.' for the current one")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; give `out` a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise writing_error(folder, error) or error from error
    remove_abandoned(folder)
    return folder


def subfolder(folder: Path, name: str) -> Path:
    """Create a folder within that of the results if it does not exist.

    Args:
        folder: The folder of the results; it must exist.
        name: Its path within, such as "tables"; `as_file_name` makes a safe name.

    Returns:
        The folder.

    Raises:
        DataError: If it, or a folder above it within the results, is a symbolic link, through which
            files elsewhere would be replaced; or if it cannot be created. Names it.
    """
    here = folder
    for part in Path(name).parts:
        here /= part
        if here.is_file():
            raise DataError(f"{here} is not a folder; move it, or choose another `out`")
        if here.is_symlink():
            raise DataError(
                f"{here} is a symbolic link, through which files in {os.path.realpath(here)} would "
                "be replaced; remove the link, or choose another `out`"
            )
        try:
            here.mkdir(exist_ok=True)
        except OSError as error:
            raise writing_error(here, error) or error from error
    return here


def reject_foreign(folder: Path, names: Iterable[str], known: Collection[str] = ()) -> None:
    """Raise an error if a file that this package did not write would be replaced.

    Args:
        folder: The folder of the results.
        names: Paths of files and folders within it that will be written.
        known: Those that an earlier command wrote.

    Raises:
        DataError: If another file, folder or symbolic link of such a name exists, except for an
            empty folder; names the first.
    """
    for name in sorted({*names}.difference(known)):
        path = folder / name
        is_empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
        if os.path.lexists(path) and not is_empty:
            raise DataError(
                f"{path} exists and is not listed as written by an earlier command, so it is not "
                "replaced; move or rename it, or choose another `out`"
            )


def claim_files(folder: Path, names: Iterable[str]) -> None:
    """Check that only files of this package would be replaced, and list the new ones.

    The list is a hidden file of the folder. It is written first, so that the same command can
    replace the files after it was killed.

    Args:
        folder: The folder of the results; created if it does not exist.
        names: Paths of files and folders within it that will be written.

    Raises:
        DataError: As for `reject_foreign`, or if the folder cannot be written.
    """
    known: set[str] = set()
    wanted = {*names}
    if not wanted:
        return
    record = within(output_folder(folder), CLAIMED)
    if record.is_file():
        listed = parse_json(read_document(record), str(record), remedy="delete the file")
        known = {str(name) for name in listed} if isinstance(listed, list) else known
    reject_foreign(folder, wanted, known)
    if not wanted <= known:
        write_json(record, sorted(wanted | known), indent=None)


def report_files(folder: Path) -> dict[str, str]:
    """List the files of an earlier report, which another report replaces.

    Args:
        folder: The folder of the report.

    Returns:
        Path within the folder to SHA-256, including `tables/SOURCES.txt` (without a digest); empty
        if there is no report. Files that were edited since are also listed.
    """
    sources = within(folder, _SOURCES)
    if not sources.is_file():
        return {}
    text = read_document(sources).decode("utf-8", errors="replace")
    named = re.findall(r"(?m)^([0-9a-f]{64})  (tables/[^/\n]+|report\.html)$", text)
    return {name: digest for digest, name in named} | ({_SOURCES: ""} if named else {})


@contextmanager
def staged_report(folder: Path) -> Iterator[Path]:
    """Yield a hidden folder for `report.html` and `tables/`, which are then moved together.

    The SHA-256 of each file is added to `tables/SOURCES.txt`. Files of an earlier report that are
    not replaced are removed, unless they were edited.

    Args:
        folder: The folder of the report; it must exist.

    Yields:
        The hidden folder, with `tables/`.

    Raises:
        DataError: If a file would be replaced that no report wrote, `tables` is a symbolic link, or
            a file cannot be written; names it.
    """
    if (folder / "tables").is_symlink():
        subfolder(folder, "tables")
    known = report_files(folder)
    with staged(folder, first=_SOURCES, last=_PAGE) as part:
        (part / "tables").mkdir()
        yield part
        made = {
            path.relative_to(part).as_posix(): file_digest(path)
            for path in sorted(part.rglob("*"))
            if path.is_file() and path != part / _SOURCES
        }
        reject_foreign(folder, [*made, _SOURCES], known)
        sources = part / _SOURCES
        about = sources.read_text(encoding="utf-8") + "\n" if sources.exists() else ""
        write_text(sources, about + "".join(f"{sha}  {name}\n" for name, sha in made.items()))
        for name in known.keys() - {*made, _SOURCES}:
            if (folder / name).is_file() and file_digest(folder / name) == known[name]:
                (folder / name).unlink()


def as_file_name(label: str) -> str:
    """Convert a label, such as that of a model, to the name of a file or folder.

    Args:
        label: Any text.

    Returns:
        The text; characters that are not letters, digits or one of "_.@-" are replaced by hyphens,
        and so is a name of only dots, which would be another folder.

    Examples:
        >>> as_file_name("org/model@main"), as_file_name("..")
        ('org-model@main', '--')
    """
    name = re.sub(r"[^\w.@-]", "-", label)
    return name if name.strip(".") else "-" * max(len(name), 1)


@contextmanager
def staged(folder: Path, *, last: str, first: str = "") -> Iterator[Path]:
    """Yield a hidden folder, whose files are moved to another folder when all are written.

    On an error no file is moved. If the process is killed while files are moved, old files can
    remain next to new ones, so one of them should contain the digests of the others.

    Args:
        folder: The destination of the files; it must exist.
        last: The file that is moved after all others.
        first: The file that is moved before all others.

    Yields:
        The hidden folder, on the same disk.

    Raises:
        DataError: If the disk is full or a file cannot be moved; names the file.
    """
    remove_abandoned(folder, last)
    part = partial_path(folder / last)
    target = folder / last
    try:
        part.mkdir()
        yield part
        files = sorted(path for path in part.rglob("*") if path.is_file())
        for home in sorted({path.parent for path in files}):
            subfolder(folder, str(home.relative_to(part)))
        for path in sorted(files, key=lambda path: (path == part / last, path != part / first)):
            target = folder / path.relative_to(part)
            path.replace(target)
    except OSError as error:
        raise writing_error(target, error) or error from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        content: Its content.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    with atomic_path(path) as part:
        part.write_bytes(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, UTF-8 with plain line feeds on every system.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        text: Its content.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: object, *, indent: int | None = 2) -> None:
    """Write a value as JSON, without escapes of non-ASCII letters.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        value: Dictionaries, lists, strings, numbers, booleans and None.
        indent: Spaces per level; None for one line.

    Raises:
        TypeError: If the value cannot be written as JSON.
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def write_csv(path: str | os.PathLike[str], frame: "pd.DataFrame") -> None:
    """Write a frame as CSV: a header line, no index, plain line feeds; missing values are empty.

    Spreadsheets execute a cell that begins with "=", "+", "-" or "@", so such a text gets a leading
    apostrophe (`guard_cell`). Numbers are not changed.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        frame: The table.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    import pandas as pd

    guarded = frame.rename(columns=guard_cell)
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" or isinstance(dtype, pd.StringDtype):
            cells = frame.iloc[:, place].map(guard_cell, na_action="ignore")
            guarded.isetitem(place, cells.array)
    texts = guarded.select_dtypes(["object", "string"]).to_numpy().ravel()
    has_returns = any("\r" in str(cell) for cell in (*guarded.columns, *texts))
    # The csv library quotes a line feed, but a carriage return only from Python 3.13 on.
    quoting: Any = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    with atomic_path(path) as part:
        guarded.to_csv(part, index=False, lineterminator="\n", encoding="utf-8", quoting=quoting)


def write_sheet(path: str | os.PathLike[str], frame: "pd.DataFrame") -> None:
    """Write a sheet for human annotators as `write_csv` does; an existing sheet is not replaced.

    Args:
        path: The file; its folder must exist. If it already has the same content, as after a
            command that was killed, it is not changed.
        frame: The table.

    Raises:
        DataError: If another file of that name exists, or it cannot be written; names it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(f"folder {target.parent} not found; create it, or choose another name")
    fresh = partial_path(target)
    try:
        write_csv(fresh, frame)
        try:
            # Fails if the file exists, even if another process has made it since.
            os.link(fresh, target)
        except OSError as error:
            if not os.path.lexists(target):  # The file system has no hard links.
                fresh.replace(target)
            elif file_digest(fresh) != file_digest(target):
                raise DataError(
                    f"{target} exists and may contain labels or other work, so it is not replaced; "
                    "choose another name"
                ) from error
    finally:
        fresh.unlink(missing_ok=True)


def guard_cell(value: object) -> object:
    """Prevent a spreadsheet from reading a text as a formula.

    Args:
        value: A cell.

    Returns:
        The cell; with a leading apostrophe if it is a text that begins with "=", "+", "-", "@", a
        tab or a carriage return, after any apostrophes, and is not a number.

    Examples:
        >>> [guard_cell(cell) for cell in ("=1+1", "-0.5", "- none", -0.5, "'=1")]
        ["'=1+1", '-0.5', "'- none", -0.5, "''=1"]
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unguard_cell(value: object) -> object:
    """Undo `guard_cell`.

    Args:
        value: A cell as written.

    Returns:
        The cell as it was.

    Examples:
        >>> [unguard_cell(cell) for cell in ("'=1+1", "-0.5", "''=1", "'tis")]
        ['=1+1', '-0.5', "'=1", "'tis"]
    """
    return value[1:] if isinstance(value, str) and _GUARDED.match(value) else value


def write_parquet(path: str | os.PathLike[str], table: "pd.DataFrame | pa.Table") -> None:
    """Write a frame or Arrow table as Parquet, without the index of a frame.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        table: The rows.

    Raises:
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False)
    with atomic_path(path) as part:
        pq.write_table(table, part, row_group_size=_ROW_GROUP)
