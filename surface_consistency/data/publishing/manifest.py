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

__all__ = ["BuildManifest", "SourceFile", "describe_files", "files_digest"]

_DATE: Final = re.compile(r"(?<!\d)(20\d{4}(?:\d\d)?)(?!\d)")
_WHOLE: Final = 64 * 1024 * 1024
_EDGE: Final = 1024 * 1024
_PROBE: Final = 64 * 1024
_N_PROBES: Final = 256


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
        _require(path)
        found = _DATE.search(path.name)
        described.append(
            SourceFile(
                name=path.name,
                date=found[1] if found else None,
                n_bytes=path.stat().st_size,
                sha1=_digest(path, "sha1") if checksums else None,
            )
        )
    return tuple(described)


def files_digest(paths: Iterable[str | os.PathLike[str]], *extra: str) -> str:
    """Name the content of files, for the identity of a cache.

    Files up to 64 MiB are read whole. Of larger ones the size counts, with the first and last MiB
    and 256 blocks of 64 KiB spread evenly between: a dump of another date differs in all of these,
    and a hundred gigabytes are not read for a name.

    Args:
        paths: The files; their order does not count, nor the folder they lie in.
        extra: Whatever else the identity depends on, such as versions.

    Returns:
        A SHA-256.

    Raises:
        SourceNotFoundError: If a file is not there.
    """
    total = hashlib.sha256("\n".join(extra).encode())
    for path in sorted(map(Path, paths), key=lambda path: path.name):
        _require(path)
        size = path.stat().st_size
        content = _digest(path, "sha256") if size <= _WHOLE else _sampled_digest(path, size)
        total.update(f"\n{path.name} {size} {content}".encode())
    return total.hexdigest()


def _require(path: Path) -> None:
    """Refuse a file that is not there."""
    if not path.is_file():
        raise SourceNotFoundError(f"no file {path}; name the files that the build reads")


def _digest(path: Path, name: str) -> str:
    """Hash a whole file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, name).hexdigest()


def _sampled_digest(path: Path, size: int) -> str:
    """Hash head, tail and blocks between."""
    digest = hashlib.sha256()
    step = (size - 2 * _EDGE) // _N_PROBES
    with path.open("rb") as content:
        digest.update(content.read(_EDGE))
        for number in range(_N_PROBES):
            content.seek(_EDGE + number * step)
            digest.update(content.read(_PROBE))
        content.seek(size - _EDGE)
        digest.update(content.read())
    return digest.hexdigest()
