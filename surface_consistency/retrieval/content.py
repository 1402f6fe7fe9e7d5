"""What a store holds, as one digest."""

import hashlib
from collections.abc import Iterable
from itertools import chain, islice

from surface_consistency.schemas.memory import Triplet

__all__ = ["content_digest"]

_CHUNK = 4096


def content_digest(triplets: Iterable[Triplet]) -> str:
    """Return a digest that is equal for equal triplets in equal order, and for no others.

    Everything that depends on a store (an index on disk, a retriever, a run) is tied to it by this
    digest, never by a file's name or by a number of entries.

    Args:
        triplets: The entries, in order.

    Returns:
        SHA-256 of all parts with their lengths, as 64 hex digits.

    Examples:
        >>> one = content_digest([Triplet("ab", "c", "d")])
        >>> one == content_digest([Triplet("a", "bc", "d")])
        False
    """
    digest = hashlib.sha256()
    parts = chain.from_iterable(triplets)
    while text := "".join(f"{len(part)}:{part}" for part in islice(parts, _CHUNK)):
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
