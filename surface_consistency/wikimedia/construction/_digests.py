"""What a result was made from, in one string: files by their content, settings by their value."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["digest_of", "file_digest"]

_ENDS = 1 << 20


def file_digest(path: Path) -> str:
    """Tell a file by its size, its first and its last mebibyte: dumps are too large to hash whole.

    Args:
        path: The file.

    Returns:
        A hexadecimal digest.
    """
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode("ascii"))
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(size - _ENDS, 0))
        digest.update(file.read(_ENDS))
    return digest.hexdigest()


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
