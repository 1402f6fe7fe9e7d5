"""Final files: each appears whole or not at all.

Writing goes to a hidden sibling that takes the file's place when it is complete, so that a kill or
a full disk never leaves half a table or page under the file's name. Lines of records are written by
`surface_consistency.schemas.write_jsonl`, by the same means.
"""

import csv
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import DataError
from surface_consistency.schemas.jsonl import (
    atomic_path,
    part_beside,
    remove_abandoned,
    writing_error,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ROW_GROUP = 65_536
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]inf", re.ASCII)


def output_folder(path: str | os.PathLike[str]) -> Path:
    """Make the folder that results go to, or take it as it is.

    Args:
        path: Where; parents are made too. What killed processes left half-written there goes.

    Returns:
        The folder.

    Raises:
        ValueError: If the name is empty: the current folder is ".".
        DataError: If a file stands there, or the folder cannot be made; names it.
    """
    if not os.fspath(path):
        raise ValueError("`out` names no folder; the current one is '.'")
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
    """Make a folder within that of the results, or take it as it is.

    Args:
        folder: The folder of the results; it must exist.
        name: Its path within, such as "tables"; one that leads nowhere else is `as_file_name`'s.

    Returns:
        The folder.

    Raises:
        DataError: If it, or a folder above it within the results, is a symbolic link, through which
            files elsewhere would be replaced; or if it cannot be made. Names it.
    """
    here = folder
    for part in Path(name).parts:
        here /= part
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


def as_file_name(label: str) -> str:
    """Name a file or folder after a label, such as that of a model.

    Args:
        label: Any text.

    Returns:
        The text, with a hyphen in the place of what is no letter, digit or one of "_.@-"; a name of
        dots alone, which would lead to another folder, is hyphens.

    Examples:
        >>> as_file_name("org/model@main"), as_file_name("..")
        ('org-model@main', '--')
    """
    name = re.sub(r"[^\w.@-]", "-", label)
    return name if name.strip(".") else "-" * max(len(name), 1)


@contextmanager
def staged(folder: Path, *, last: str, first: str = "") -> Iterator[Path]:
    """Lend a hidden folder, whose files take their places in another when all are written.

    On an error nothing of them appears. A kill while they are moved can leave old files beside
    new ones, so one of them should tell the digests of the others.

    Args:
        folder: Where the files belong; it must exist.
        last: The file that is moved after all others.
        first: The file that is moved before all others.

    Yields:
        The hidden folder, on the same disk.

    Raises:
        DataError: If the disk is full or a file cannot be moved; names the file.
    """
    remove_abandoned(folder, last)
    part = part_beside(folder / last)
    target = folder / last
    try:
        part.mkdir()
        yield part
        files = sorted(path for path in part.rglob("*") if path.is_file())
        for home in {path.parent for path in files}:
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
    """Write a value as JSON, letters of all scripts as they are.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        value: Dictionaries, lists, strings, numbers, booleans and None.
        indent: Spaces a level; None for one line.

    Raises:
        TypeError: If JSON cannot hold the value.
        DataError: If the disk is full or the file cannot be written; names the file.
    """
    write_text(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def write_csv(path: str | os.PathLike[str], frame: "pd.DataFrame") -> None:
    """Write a frame as CSV: a head line, no index, plain line feeds; missing values are empty.

    Tables are opened in spreadsheets, which run a cell that begins with "=", "+", "-" or "@":
    such a text gets an apostrophe in front (`guard_cell`), a number stays as it is.

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


def guard_cell(value: object) -> object:
    """Keep a spreadsheet from taking a text for a formula.

    Args:
        value: A cell.

    Returns:
        The cell; a text that begins with "=", "+", "-", "@", a tab or a carriage return, after
        any apostrophes, and is no number, with an apostrophe in front.

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
    """Write a frame or Arrow table as Parquet; the index of a frame is left out.

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
