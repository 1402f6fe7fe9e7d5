"""Records of a build: counts of its rows, its sources and its settings."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import Field, JsonValue

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.reading import shown
from surface_consistency.schemas import Record
from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.taxonomy import CANONICAL_LABEL, types_of

Row = Mapping[str, Any]
"""A row as column name to plain Python value."""

_CATEGORY_FIELDS = ("subject_surface_category", "object_surface_category")
_SURFACE_FIELDS = (
    "subject_surface",
    "subject_redirect_wiki_title",
    "object_surface",
    "object_redirect_wiki_title",
)
_DATE: Final = re.compile(r"(?<!\d)(20\d{4}(?:\d\d)?)(?!\d)")


class SourceFile(Record):
    """One file that a build read."""

    name: NonEmpty
    """Published name of the file."""

    date: str | None
    """Date in the name, "YYYYMMDD" or "YYYYMM"; None without a date."""

    n_bytes: int = Field(ge=0)
    """Size on the disk."""

    sha1: str | None
    """SHA-1 as published by Wikimedia; None if it was not computed."""


class BuildManifest(Record):
    """The settings of one build, written next to its rows and to the card."""

    builder: NonEmpty
    """Name of the builder."""

    builder_version: NonEmpty
    """Version of the rows' layout and rules."""

    package_version: NonEmpty
    """Version of this package."""

    seed: int | None = None
    """Random seed of all draws; None if nothing was drawn."""

    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Other settings, by name."""

    sources: Items[SourceFile] = ()
    """The files that were read."""


def describe_file(path: str | os.PathLike[str], *, checksum: bool = True) -> SourceFile:
    """Describe a file of a build by name, date, size and checksum.

    Args:
        path: The file.
        checksum: Whether to compute its SHA-1, which reads all bytes.

    Returns:
        The description.

    Raises:
        SourceNotFoundError: If the file does not exist.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceNotFoundError(f"file {file} not found; name the files that the build reads")
    date = _DATE.search(file.name)
    return SourceFile(
        name=file.name,
        date=date[1] if date else None,
        n_bytes=file.stat().st_size,
        sha1=file_digest(file, "sha1") if checksum else None,
    )


def file_digest(path: Path, algorithm: str) -> str:
    """Return the hash of a file, such as with "sha256"."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, algorithm).hexdigest()


@dataclass(slots=True)
class RowCounts:
    """Counts of one subset, by split and over all of its splits.

    An instance is a fact with one surface form, regardless of the number of its wordings;
    categories, types and relations count instances, as in Table 3 of RedirectQA. An instance in two
    categories counts in both.
    """

    key: Sequence[str] = ()
    """Fields that identify a row of a split; not checked if empty."""

    rows: Counter[str] = field(default_factory=Counter)
    """Number of rows, by split."""

    n_bytes: Counter[str] = field(default_factory=Counter)
    """Number of bytes of the rows in memory, by split."""

    facts: Counter[str] = field(default_factory=Counter)
    """Number of distinct facts, by split."""

    canonical: Counter[str] = field(default_factory=Counter)
    """Number of canonical instances, by split."""

    redirects: Counter[str] = field(default_factory=Counter)
    """Number of redirect instances, by split."""

    categories: Counter[str] = field(default_factory=Counter)
    """Number of redirect instances, by category."""

    types: Counter[str] = field(default_factory=Counter)
    """Number of redirect instances, by type name."""

    relations: Counter[str] = field(default_factory=Counter)
    """Number of facts, by relation."""

    templates: Counter[str] = field(default_factory=Counter)
    """Number of rows, by wording."""

    def watch(self, split: str, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows and count them.

        Args:
            split: Their split.
            rows: Rows in the columns of RedirectQA; others are counted as rows only.

        Yields:
            The same rows.

        Raises:
            DataError: If two rows have the same key; the message contains both positions.
        """
        keys: dict[bytes, int] = {}
        facts: set[Hashable] = set()
        instances: set[bytes] = set()
        for number, row in enumerate(rows, start=1):
            self._check(split, row, number, keys)
            self.rows[split] += 1
            if isinstance(template := row.get("template"), str):
                self.templates[template] += 1
            self._count(split, row, facts, instances)
            yield row

    def _check(self, split: str, row: Row, number: int, keys: dict[bytes, int]) -> None:
        """Reject a row whose key occurred before."""
        if not self.key:
            return
        key = tuple(row[name] for name in self.key)
        first = keys.setdefault(_short(key), number)
        if first != number:
            named = ", ".join(
                f"{name}={shown(value)}" for name, value in zip(self.key, key, strict=True)
            )
            raise DataError(
                f"split {shown(split)}: rows {first} and {number} have the same key ({named}); "
                "drop one of them, or name more fields as the key"
            )

    def _count(self, split: str, row: Row, facts: set[Hashable], instances: set[bytes]) -> None:
        """Count a row's fact and surface form when they first occur."""
        fact = row.get("triplet_id")
        if fact is None:
            return
        instance = _short((fact, *(row.get(name) for name in _SURFACE_FIELDS)))
        if fact not in facts:
            facts.add(fact)
            self.facts[split] += 1
            self.relations[str(row.get("relation"))] += 1
        if instance in instances:
            return
        instances.add(instance)
        labels = tuple(
            dict.fromkeys(
                label
                for name in _CATEGORY_FIELDS
                for label in row.get(name) or ()
                if label != CANONICAL_LABEL
            )
        )
        is_redirect = bool(labels) or any(
            row.get(name) is not None for name in _SURFACE_FIELDS[1::2]
        )
        (self.redirects if is_redirect else self.canonical)[split] += 1
        self.categories.update(labels)
        self.types.update(types_of(labels))


def _short(values: tuple[object, ...]) -> bytes:
    """Return a short digest of values, because the keys of millions of rows are in memory."""
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()
