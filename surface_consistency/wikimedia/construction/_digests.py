"""What a result was made from, in one string: files by their content, settings by their value."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from surface_consistency.errors import SourceNotFoundError

__all__ = ["digest_of", "file_digest", "files_digest"]

_WHOLE: Final = 64 * 1024 * 1024
_EDGE: Final = 1024 * 1024
_PROBE: Final = 64 * 1024
_N_PROBES: Final = 256


def file_digest(path: Path) -> str:
    """Tell a file by its content; dumps are too large to be read whole for a name.

    Files up to 64 MiB are read whole. Of larger ones the size counts, with the first and last MiB
    and 256 blocks of 64 KiB spread evenly between: a dump of another date differs in all of these.

    Args:
        path: The file.

    Returns:
        A hexadecimal digest.
    """
    size = path.stat().st_size
    with path.open("rb") as content:
        if size <= _WHOLE:
            return hashlib.file_digest(content, "sha256").hexdigest()
        digest = hashlib.sha256(b"%d" % size)
        digest.update(content.read(_EDGE))
        for number in range(_N_PROBES):
            content.seek(_EDGE + number * ((size - 2 * _EDGE) // _N_PROBES))
            digest.update(content.read(_PROBE))
        content.seek(size - _EDGE)
        digest.update(content.read())
    return digest.hexdigest()


def files_digest(paths: Iterable[str | os.PathLike[str]], *extra: str) -> str:
    """Name the content of dumps, for the identity of a cache.

    Args:
        paths: The files; their order does not count, nor the folder they lie in.
        extra: Whatever else the identity depends on, such as versions.

    Returns:
        A SHA-256 over names and `file_digest`.

    Raises:
        SourceNotFoundError: If a file is not there.
    """
    total = hashlib.sha256("\n".join(extra).encode())
    for path in sorted(map(Path, paths), key=lambda path: path.name):
        if not path.is_file():
            raise SourceNotFoundError(f"no file {path}; name the files that the build reads")
        total.update(f"\n{path.name} {path.stat().st_size} {file_digest(path)}".encode())
    return total.hexdigest()


def digest_of(name: str, settings: Mapping[str, object], inputs: Sequence[str]) -> str:
    """Tell a result by its maker, its settings and the digests of what went in.

    Args:
        name: What made it.
        settings: Values that JSON can hold.
        inputs: Digests.

    Returns:
        A hexadecimal digest.
    """
    content = json.dumps([name, settings, list(inputs)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()
