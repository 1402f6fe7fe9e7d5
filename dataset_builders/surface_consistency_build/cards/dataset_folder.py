"""Write a folder in the hub's layout: Parquet shards, a card, and the records of the build.

A folder is reserved before anything is read. Files of other origin, and data sets of other
settings, are only replaced with `overwrite`.
"""

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from surface_consistency.data.redirectqa_release import CATEGORY_TYPES_PATH
from surface_consistency.errors import DataError, RecordError, RunError
from surface_consistency.reading import parse_json, read_document
from surface_consistency.runs.files import claim_files, write_text
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.taxonomy import CATEGORIES, TYPES
from surface_consistency_build.cards.build_records import BuildManifest, Row, RowCounts, file_digest
from surface_consistency_build.cards.dataset_card import CardSubset, CardText, render_card
from surface_consistency_build.wikimedia.construction.progress import StepCount

if TYPE_CHECKING:
    import datasets

_SHARD_NAME: Final = re.compile(r"(?P<split>[^-]+)-\d{5}-of-\d{5}\.parquet")
BUILD_METADATA_FILES: Final = ("attrition.csv", "build.json")
"""Files that `write_folder` may write to `metadata/<subset>`."""

_CARD: Final = "README.md"
_RECORD: Final = ".surface-consistency.json"
_SUBSETS: Final = "subsets"
_SHOWN: Final = 3
_ROW_GROUP: Final = 8_192
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ATTRITION: Final = tuple(StepCount.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One configuration of a data set, not yet written."""

    name: str
    """Its name: letters, digits, dots, dashes and underscores."""

    splits: Mapping[str, Iterable[Row]]
    """Split to rows, which are read once."""

    features: "datasets.Features"
    """Columns of the rows, and their types."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    """Description of each column's content, by column, for the card, which also lists columns
    without a description."""

    key: tuple[str, ...] = ()
    """Fields that identify a row of a split; not checked if empty."""

    attrition: Sequence[StepCount] = ()
    """Rows that the build excluded, for the card and for `metadata/<name>/attrition.csv`."""

    manifest: BuildManifest | None = None
    """Settings of the build, for the card and for `metadata/<name>/build.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFolder:
    """A folder that `load_dataset` reads and `publish_folder` uploads."""

    folder: Path
    """Its path."""

    files: tuple[Path, ...]
    """Its files, relative to the folder, sorted."""

    counts: Mapping[str, RowCounts]
    """Subset to the counts of its rows."""


def write_folder(
    folder: str | os.PathLike[str],
    subsets: Sequence[Subset],
    *,
    card: CardText,
    default: str | None = None,
    rows_per_shard: int = 100_000,
) -> PublishedFolder:
    """Write subsets as Parquet shards with a generated card.

    The same rows give the same bytes. Shards of an earlier, longer subset of the same name are
    deleted, so that the card's patterns do not match them.

    Args:
        folder: Folder to write; created if it does not exist.
        subsets: The configurations, in the order of the card.
        card: Text of the card.
        default: The default configuration; None for the first.
        rows_per_shard: Number of rows per file.

    Returns:
        The written folder.

    Raises:
        DataError: If a file of other origin exists, a split has no rows, two rows have the same
            key, a row has other columns or types than its subset, or a name is not valid for a
            folder.
        ValueError: If `subsets` is empty, two subsets have the same name, or `rows_per_shard` is
            below 1.
    """
    names = [subset.name for subset in subsets]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"subsets must have one or more distinct names, got {names}")
    if rows_per_shard < 1:
        raise ValueError(f"rows_per_shard must be at least 1, got {rows_per_shard}")
    for subset in subsets:
        _check_names(subset)
    place = Path(folder)
    if not (place / _RECORD).exists():
        claim_files(place, [_CARD, *names])
    shown = [_write_subset(place, subset, rows_per_shard) for subset in subsets]
    if any("subject_surface_category" in subset.features for subset in subsets):
        labels = ((label, TYPES[category.type].label) for label, category in CATEGORIES.items())
        _write(place / CATEGORY_TYPES_PATH, _csv(("redirect_category", "type"), labels))
    _write(place / _CARD, render_card(card, shown, default=default or names[0]))
    return PublishedFolder(
        folder=place,
        files=tuple(sorted(map(Path, _files(place)))),
        counts={subset.name: subset.counts for subset in shown},
    )


def reserve_output_dir(
    folder: str | os.PathLike[str],
    settings: Mapping[str, JsonValue],
    *,
    subsets: Sequence[str],
    overwrite: bool = False,
) -> Path:
    """Create a folder for a data set, or check that it may be overwritten, before rows are read.

    The settings are stored in a hidden file of the folder, which is not uploaded.

    Args:
        folder: The folder.
        settings: Settings that determine its rows, by name, as JSON values.
        subsets: Names of the subsets to write.
        overwrite: Whether a finished data set of other settings, and a card of other origin, may be
            replaced; files of its other subsets are deleted. Other foreign files are not changed.

    Returns:
        The folder.

    Raises:
        DataError: If the folder is a file, cannot be written, or contains files of other origin.
        RunError: If it contains a data set of other settings; the message lists the differences.
    """
    place = make_folder(folder, "out")
    record = place / _RECORD
    wanted: dict[str, JsonValue] = {**settings, _SUBSETS: list(subsets)}
    known = _recorded(record)
    listed = known.get(_SUBSETS)
    earlier = listed if isinstance(listed, list) else []
    if not overwrite:
        _check_foreign_files(place, earlier)
        if known and (place / _CARD).exists():
            _check_settings(place, known, wanted)
    removed = [name for name in earlier if name not in subsets]
    for file in list(_files(place)):
        if _is_build_file(file, removed):
            (place / file).unlink()
    write_text(record, json.dumps(wanted, ensure_ascii=False))
    return place


def make_folder(folder: str | os.PathLike[str], option: str) -> Path:
    """Create a folder; errors contain the name of the option.

    Args:
        folder: The folder.
        option: Name of its option.

    Returns:
        The folder.

    Raises:
        DataError: If it is a file, or cannot be created or written.
    """
    if not os.fspath(folder):
        raise DataError(f"{option} is empty; name a folder")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{option} {place} cannot be a folder ({error.strerror}); choose another folder"
        ) from error
    if not os.access(place, os.W_OK | os.X_OK):
        raise DataError(f"{option} {place} is not writable; choose another folder")
    return place


def _recorded(record: Path) -> dict[str, JsonValue]:
    """Read the settings of the written data set; empty without a record."""
    try:
        content = parse_json(read_document(record), str(record))
    except (FileNotFoundError, RecordError):
        return {}
    return content if isinstance(content, dict) else {}


def _check_foreign_files(place: Path, subsets: Collection[JsonValue]) -> None:
    """Raise an error for files that were not written by a build of these subsets."""
    foreign = sorted(name for name in _files(place) if not _is_build_file(name, subsets))
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", ..." if len(foreign) > _SHOWN else "")
        raise DataError(
            f"out {place} contains files of other origin ({shown}); choose a new or empty folder, "
            "or pass overwrite (--overwrite) to write to it"
        )


def _is_build_file(name: str, subsets: Collection[JsonValue]) -> bool:
    """Check whether a build writes a file of this name."""
    *folders, last = name.split("/")
    if folders[:1] == ["metadata"] and len(folders) == 2:
        return folders[1] in subsets and last in BUILD_METADATA_FILES
    if len(folders) == 1 and folders[0] in subsets:
        return _SHARD_NAME.fullmatch(last) is not None
    return bool(subsets) and name in {_CARD, CATEGORY_TYPES_PATH}


def _check_settings(
    place: Path, known: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue]
) -> None:
    """Raise an error if the settings differ from those of the existing data set."""
    differences = [
        f"{name}: {_short(known.get(name))} there, {_short(wanted.get(name))} now"
        for name in sorted({*known, *wanted})
        if known.get(name) != wanted.get(name)
    ]
    if differences:
        raise RunError(
            f"out {place} contains a data set of other settings ({'; '.join(differences)}); choose "
            "another folder, or pass overwrite (--overwrite) to replace it"
        )


def _short(value: JsonValue) -> str:
    """Return a short text for a value."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _check_names(subset: Subset) -> None:
    """Reject names that are not valid for folders and files, and subsets without splits."""
    if not subset.splits:
        raise DataError(f"subset {subset.name!r} has no splits; pass at least one")
    if subset.name == "metadata":
        raise DataError("a subset cannot be named 'metadata', the folder of the build's records")
    for name in (subset.name, *subset.splits):
        if not _NAME.fullmatch(name) or (name != subset.name and "-" in name):
            raise DataError(
                f"subset {subset.name!r}: {name!r} is not valid as the name of a folder or split; "
                "use letters, digits, dots and underscores"
            )


def _write_subset(place: Path, subset: Subset, rows_per_shard: int) -> CardSubset:
    """Write the shards and the records of one configuration."""
    target = place / subset.name
    target.mkdir(exist_ok=True)
    for stale in target.glob("*.parquet"):
        if _SHARD_NAME.fullmatch(stale.name):
            stale.unlink()
    counts = RowCounts(key=subset.key)
    for split, rows in subset.splits.items():
        watched = counts.watch(split, rows)
        counts.n_bytes[split] = _write_shards(target, split, watched, subset, rows_per_shard)
        if not counts.n_bytes[split]:
            raise DataError(f"subset {subset.name!r} has no rows in split {split!r}")
    shards = sorted(file for file in target.iterdir() if _SHARD_NAME.fullmatch(file.name))
    digest = hashlib.sha256("".join(file_digest(file, "sha256") for file in shards).encode())
    records = place / "metadata" / subset.name
    if subset.attrition:
        _write(
            records / "attrition.csv",
            _csv(_ATTRITION, map(attrgetter(*_ATTRITION), subset.attrition)),
        )
    if subset.manifest is not None:
        content = subset.manifest.model_dump(mode="json")
        _write(records / "build.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return CardSubset(
        name=subset.name,
        counts=counts,
        data_files={split: f"{subset.name}/{split}-*.parquet" for split in subset.splits},
        features=subset.features,
        n_bytes=sum(file.stat().st_size for file in shards),
        digest=digest.hexdigest(),
        meanings=subset.meanings,
        attrition=subset.attrition,
        manifest=subset.manifest,
    )


def _write_shards(
    target: Path, split: str, rows: Iterator[Row], subset: Subset, rows_per_shard: int
) -> int:
    """Write files of at most `rows_per_shard` rows, and return the bytes of the rows."""
    parts: list[Path] = []
    n_bytes = 0
    try:
        for first in rows:
            part = target / f".{split}-{len(parts):05d}.unnamed"
            n_bytes += _write_shard(part, chain([first], islice(rows, rows_per_shard - 1)), subset)
            parts.append(part)
        for number, part in enumerate(parts):
            part.replace(target / f"{split}-{number:05d}-of-{len(parts):05d}.parquet")
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return n_bytes


def _write_shard(path: Path, rows: Iterator[Row], subset: Subset) -> int:
    """Write one file; raise an error if a row would be cast or lose a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, names, n_bytes = subset.features.arrow_schema, subset.features.keys(), 0
    with atomic_path(path) as part, pq.ParquetWriter(part, schema) as writer:
        while items := list(islice(rows, _ROW_GROUP)):
            if other := next((row.keys() ^ names for row in items if row.keys() != names), None):
                raise DataError(
                    f"subset {subset.name!r}: a row has missing or additional columns: "
                    f"{', '.join(sorted(other))}; its columns are {', '.join(names)}"
                )
            try:
                table = pa.Table.from_pylist(items, schema=schema)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise DataError(
                    f"subset {subset.name!r}: a cell does not have the type of its column; "
                    f"convert it: {error}"
                ) from error
            writer.write_table(table)
            n_bytes += table.nbytes
    return n_bytes


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _write(path: Path, content: str) -> None:
    """Write a text file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, content)


def _files(folder: Path) -> Iterator[str]:
    """List the files of a folder that belong to the data set, without hidden files."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()
