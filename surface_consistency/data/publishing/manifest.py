"""What a data set was built from and how: enough to build it again."""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue

from surface_consistency.errors import SourceNotFoundError
from surface_consistency.schemas._record import Items, NonEmpty, Record

__all__ = ["BuildManifest", "SourceFile", "describe_files"]

_DATE: Final = re.compile(r"(?<!\d)(20\d{4}(?:\d\d)?)(?!\d)")


class SourceFile(Record):
    """One file that a build read."""

    name: NonEmpty
    """File name, as it was published."""

    date: str | None
    """Date in the name, "YYYYMMDD" or "YYYYMM"; None when it holds none."""

    n_bytes: int = Field(ge=0)
    """Size as it lies on the disk."""

    sha1: str | None
    """SHA-1 as Wikimedia publishes it; None when it was not asked for."""


class BuildManifest(Record):
    """The settings of one build, written beside its rows and into the card."""

    builder: NonEmpty
    """What built the rows."""

    builder_version: NonEmpty
    """Version of the rows' layout and rules."""

    package_version: NonEmpty
    """Version of this package."""

    seed: int
    """Seed of all draws."""

    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What else was settled, by name."""

    sources: Items[SourceFile] = ()
    """The files that were read."""


def describe_files(
    paths: Iterable[str | os.PathLike[str]], *, checksums: bool = True
) -> tuple[SourceFile, ...]:
    """Describe the files of a build by name, date, size and checksum.

    Args:
        paths: The files.
        checksums: Whether to compute the SHA-1 of each; it reads every byte.

    Returns:
        One description a file, in order.

    Raises:
        SourceNotFoundError: If a file is not there.
    """
    described = []
    for path in map(Path, paths):
        if not path.is_file():
            raise SourceNotFoundError(f"no file {path}; name the files that the build reads")
        found = _DATE.search(path.name)
        described.append(
            SourceFile(
                name=path.name,
                date=found[1] if found else None,
                n_bytes=path.stat().st_size,
                sha1=_sha1(path) if checksums else None,
            )
        )
    return tuple(described)


def _sha1(path: Path) -> str:
    """Hash a whole file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha1").hexdigest()
