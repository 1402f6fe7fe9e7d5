"""A folder in the hub's layout: Parquet shards, a card that names them, and the build's records."""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final

from surface_consistency.data.category_types import CATEGORY_TYPES_PATH
from surface_consistency.data.features import features_of, to_parquet
from surface_consistency.data.publishing.card import (
    AttritionLine,
    CardSubset,
    CardText,
    render_card,
)
from surface_consistency.data.publishing.claim import SHARD_NAME
from surface_consistency.data.publishing.counts import RowCounts
from surface_consistency.data.publishing.manifest import BuildManifest
from surface_consistency.errors import DataError
from surface_consistency.schemas import Record
from surface_consistency.taxonomy import CATEGORIES, TYPES

__all__ = ["PublishedFolder", "Subset", "write_folder"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ATTRITION: Final = ("step", "unit", "rows_in", "rows_out", "reason", "removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One configuration of a data set, not yet written."""

    name: str
    """Its name: letters, digits, dots, dashes and underscores."""

    splits: Mapping[str, Iterable[Record]]
    """Split to rows; each is read once."""

    record: type[Record]
    """Class of the rows; its fields are the columns."""

    key: tuple[str, ...] = ()
    """Fields that no two rows of a split may share; not checked when empty."""

    attrition: Sequence[AttritionLine] = ()
    """What the build left out, for the card and for `metadata/<name>/attrition.csv`."""

    manifest: BuildManifest | None = None
    """How it was built, for the card and for `metadata/<name>/build.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFolder:
    """A folder that `load_dataset` reads and `publish_folder` uploads."""

    folder: Path
    """Where it is."""

    files: tuple[Path, ...]
    """Its files, relative to the folder, sorted."""

    counts: Mapping[str, RowCounts]
    """Subset to what is in its rows."""


def write_folder(
    folder: str | os.PathLike[str],
    subsets: Sequence[Subset],
    *,
    card: CardText,
    default: str | None = None,
    rows_per_shard: int = 100_000,
) -> PublishedFolder:
    """Write subsets as Parquet shards with a generated card.

    The same rows give the same bytes. Shards of an earlier, longer subset of the same name go, so
    that the card's patterns find none of them.

    Args:
        folder: Where to write; made if need be.
        subsets: The configurations, in the order of the card.
        card: What the card says that cannot be counted.
        default: The configuration for those who name none; the first when None.
        rows_per_shard: Rows a file.

    Returns:
        What was written.

    Raises:
        DataError: If a split has no rows, two rows share their key, or a name cannot be a folder's.
        TypeError: If a row is of another class than its subset says.
        ValueError: If there are no subsets, two of one name, or `rows_per_shard` is below 1.
    """
    names = [subset.name for subset in subsets]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"subsets need one or more distinct names, got {names}")
    if rows_per_shard < 1:
        raise ValueError(f"rows_per_shard must be at least 1, got {rows_per_shard}")
    for subset in subsets:
        _check_names(subset)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    shown = [_write_subset(place, subset, rows_per_shard) for subset in subsets]
    _write(place / CATEGORY_TYPES_PATH, _category_types())
    _write(place / "README.md", render_card(card, shown, default=default or names[0]))
    return PublishedFolder(
        folder=place,
        files=tuple(sorted(_files(place))),
        counts={subset.name: subset.counts for subset in shown},
    )


def _check_names(subset: Subset) -> None:
    """Refuse names that are no plain folder and file names, and a subset without splits."""
    if not subset.splits:
        raise DataError(f"subset {subset.name!r} has no splits")
    if subset.name == "metadata":
        raise DataError("no subset can be named 'metadata': the build's records lie there")
    for name in (subset.name, *subset.splits):
        if not _NAME.fullmatch(name) or (name != subset.name and "-" in name):
            raise DataError(
                f"subset {subset.name!r}: {name!r} cannot name a folder or split; use letters, "
                "digits, dots and underscores"
            )


def _write_subset(place: Path, subset: Subset, rows_per_shard: int) -> CardSubset:
    """Write the shards and the records of one configuration."""
    target = place / subset.name
    target.mkdir(exist_ok=True)
    for stale in target.glob("*.parquet"):
        if SHARD_NAME.fullmatch(stale.name):
            stale.unlink()
    counts = RowCounts(key=subset.key)
    for split, rows in subset.splits.items():
        watched = counts.watch(split, _of_class(rows, subset))
        if not _write_shards(target, split, watched, subset.record, rows_per_shard):
            raise DataError(f"subset {subset.name!r} has no rows in split {split!r}")
    records = place / "metadata" / subset.name
    if subset.attrition:
        _write(records / "attrition.csv", _attrition_csv(subset.attrition))
    if subset.manifest is not None:
        content = subset.manifest.model_dump(mode="json")
        _write(records / "build.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return CardSubset(
        name=subset.name,
        counts=counts,
        data_files={split: f"{subset.name}/{split}-*.parquet" for split in subset.splits},
        columns={name: _type_name(kind) for name, kind in features_of(subset.record).items()},
        meanings={
            name: known.description
            for name, known in subset.record.model_fields.items()
            if known.description
        },
        attrition=subset.attrition,
        manifest=subset.manifest,
    )


def _of_class(rows: Iterable[Record], subset: Subset) -> Iterator[Record]:
    """Refuse rows of another class, whose fields would be cast or dropped."""
    for row in rows:
        if type(row) is not subset.record:
            raise TypeError(
                f"subset {subset.name!r} has {subset.record.__name__} rows, "
                f"got {type(row).__name__}"
            )
        yield row


def _write_shards(
    target: Path, split: str, rows: Iterator[Record], record: type[Record], rows_per_shard: int
) -> int:
    """Write files of so many rows; their number goes into their names once it is known."""
    parts: list[Path] = []
    try:
        for first in rows:
            part = target / f".{split}-{len(parts):05d}.unnamed"
            to_parquet(part, chain([first], islice(rows, rows_per_shard - 1)), record)
            parts.append(part)
        for number, part in enumerate(parts):
            part.replace(target / f"{split}-{number:05d}-of-{len(parts):05d}.parquet")
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return len(parts)


def _type_name(feature: object) -> str:
    """Name a column's type for people."""
    inner = getattr(feature, "feature", None)
    return (
        f"list of {_type_name(inner)}"
        if inner is not None
        else str(getattr(feature, "dtype", feature))
    )


def _attrition_csv(lines: Sequence[AttritionLine]) -> str:
    """Lay out the attrition table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_ATTRITION)
    writer.writerows([getattr(line, name) for name in _ATTRITION] for line in lines)
    return text.getvalue()


def _category_types() -> str:
    """Lay out which type each category has, as the hub repository of RedirectQA does."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("redirect_category", "type"))
    writer.writerows((label, TYPES[category.type].label) for label, category in CATEGORIES.items())
    return text.getvalue()


def _write(path: Path, content: str) -> None:
    """Write a text file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(content, encoding="utf-8", newline="\n")
    part.replace(path)


def _files(folder: Path) -> Iterator[Path]:
    """List the files of a folder that belong to the data set: none that are hidden."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name
