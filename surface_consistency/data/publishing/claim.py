"""A folder for one data set: nothing in it that somebody else made, or that other settings made."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from surface_consistency.data.category_types import CATEGORY_TYPES_PATH
from surface_consistency.errors import DataError, RunMismatchError

__all__ = ["RECORDS_OF_A_BUILD", "SHARD_NAME", "claim_folder", "make_folder"]

SHARD_NAME: Final = re.compile(r"(?P<split>[^-]+)-\d{5}-of-\d{5}\.parquet")
"""File names of shards, as `write_folder` gives them."""

RECORDS_OF_A_BUILD: Final = ("attrition.csv", "build.json")
"""What `write_folder` may lay into `metadata/<subset>`."""

_CARD: Final = "README.md"
_RECORD: Final = ".surface-consistency.json"
_SUBSETS: Final = "subsets"
_SHOWN: Final = 3


def claim_folder(
    folder: str | os.PathLike[str],
    settings: Mapping[str, JsonValue],
    *,
    subsets: Sequence[str],
    overwrite: bool = False,
) -> Path:
    """Make a folder for a data set, or see that it may be written again, before anything is read.

    The settings are kept in a hidden file of the folder, which is not uploaded.

    Args:
        folder: The folder.
        settings: What decides its rows, by name; values that JSON can hold.
        subsets: Names of the subsets that will be written.
        overwrite: Whether a finished data set of other settings, and a card of somebody else's,
            may be replaced; other files are left alone.

    Returns:
        The folder.

    Raises:
        DataError: If the folder is a file, cannot be written, or holds files of other origin.
        RunMismatchError: If it holds a data set of other settings; names each of them.
    """
    place = make_folder(folder, "out")
    record = place / _RECORD
    told: dict[str, JsonValue] = {**settings, _SUBSETS: list(subsets)}
    if not overwrite:
        known = _recorded(record)
        earlier = known.get(_SUBSETS)
        _refuse_foreign(place, earlier if isinstance(earlier, list) else [])
        if known and (place / _CARD).exists():
            _refuse_others(place, known, told)
    record.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    return place


def make_folder(folder: str | os.PathLike[str], option: str) -> Path:
    """Make a folder, or say which option names what cannot be one.

    Args:
        folder: The folder.
        option: Name of the option that gave it.

    Returns:
        The folder.

    Raises:
        DataError: If it is a file, or cannot be made or written.
    """
    if not os.fspath(folder):
        raise DataError(f"{option} is empty; name a folder")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{option} {place} cannot be a folder ({error.strerror}); choose another"
        ) from error
    if not os.access(place, os.W_OK | os.X_OK):
        raise DataError(f"{option} {place} cannot be written; choose another or change its rights")
    return place


def _recorded(record: Path) -> dict[str, JsonValue]:
    """Read the settings of what was written; none where nothing tells of them."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _refuse_foreign(place: Path, subsets: Collection[JsonValue]) -> None:
    """Refuse files that no build of these subsets wrote."""
    foreign = sorted(name for name in _visible(place) if not _is_ours(name, subsets))
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", ..." if len(foreign) > _SHOWN else "")
        raise DataError(
            f"out {place} holds files that no such build wrote ({shown}); choose a new or empty "
            "folder, or pass overwrite (--overwrite) to write into it all the same"
        )


def _is_ours(name: str, subsets: Collection[JsonValue]) -> bool:
    """Tell whether a build writes a file of this name."""
    *folders, last = name.split("/")
    if folders[:1] == ["metadata"] and len(folders) == 2:
        return folders[1] in subsets and last in RECORDS_OF_A_BUILD
    if len(folders) == 1 and folders[0] in subsets:
        return SHARD_NAME.fullmatch(last) is not None
    return bool(subsets) and name in {_CARD, CATEGORY_TYPES_PATH}


def _visible(place: Path) -> Iterator[str]:
    """List files, without those that are hidden."""
    for path in place.rglob("*"):
        name = path.relative_to(place)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()


def _refuse_others(
    place: Path, known: Mapping[str, JsonValue], told: Mapping[str, JsonValue]
) -> None:
    """Refuse other settings than those of the data set that is there."""
    differences = [
        f"{name}: {_short(known.get(name))} there, {_short(told.get(name))} now"
        for name in sorted({*known, *told})
        if known.get(name) != told.get(name)
    ]
    if differences:
        raise RunMismatchError(
            f"out {place} holds a data set of other settings ({'; '.join(differences)}); choose "
            "another folder, or pass overwrite (--overwrite) to replace it"
        )


def _short(value: JsonValue) -> str:
    """Show a value in a few words."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}..."
