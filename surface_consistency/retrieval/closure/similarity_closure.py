"""Closures that also take what lies near: the first remedy of arXiv 2607.00605, section 9.

"An extended deletion closure that, in addition to alias-equivalent triplets, also removes any
triplet whose retained-candidate embedding falls within a similarity radius of the canonical entry."
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval.closure.alias_closure import Closure
from surface_consistency.retrieval.closure.keys import NameKey, name_key
from surface_consistency.retrieval.lookup_key import lookup_key
from surface_consistency.schemas.memory import TripletDatabase

__all__ = ["Embed", "similarity_closures"]

Embed = Callable[[Sequence[str]], npt.NDArray[np.floating]]
"""Turns texts into vectors, one row a text."""

_BLOCK = 512
_ROUNDING = 1e-6


def similarity_closures(
    database: TripletDatabase,
    closures: Sequence[Closure],
    *,
    embed: Embed,
    radius: float,
    same_object: NameKey | None = None,
) -> list[Closure]:
    """Widen closures by the entries whose lookup text lies near one of theirs.

    The text of an entry is its subject and relation, as retrievers embed it; the value is no part
    of it. So a radius takes facts with other objects, too: the price of catching decoys whose names
    no alias map holds. `same_object` spares them.

    Args:
        database: The database.
        closures: Closures in it, as of `alias_closures`; an empty one stays empty.
        embed: Encoder of the retriever that is audited. Called once, with distinct texts.
        radius: Largest cosine distance (1 - similarity) from an entry of the closure, in [0, 2].
        same_object: Key under which an entry must hold an object of the closure to be taken; None
            to take entries with any object.

    Returns:
        The wider closures, in order; `by_similarity` tells what came on top.

    Raises:
        ValueError: If `radius` is out of range or a closure is of a database of another size.
        RetrievalError: If the encoder gives anything but one finite, nonzero vector a text.
    """
    if not 0 <= radius <= 2:
        raise ValueError(f"radius must be a cosine distance in [0, 2], got {radius}")
    total = len(database.triplets)
    if any(closure.n_triplets != total for closure in closures):
        raise ValueError(f"closures must be of this database of {total} triplets")
    if not closures or not total:
        return list(closures)
    texts = [lookup_key(entry.subject, entry.relation) for entry in database.triplets]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    text_of = np.array([numbers[text] for text in texts], dtype=np.int64)
    vectors = _vectors(embed, list(numbers))
    anchors = np.unique(text_of[np.concatenate([closure.indices for closure in closures])])
    near = dict(_neighbours(vectors, anchors, 1 - radius))
    entries = _entries_by_text(text_of, len(numbers))
    objects = _object_numbers(database, same_object)
    return [_widened(closure, text_of, near, entries, objects) for closure in closures]


def _widened(
    closure: Closure,
    text_of: npt.NDArray[np.int64],
    near: dict[int, npt.NDArray[np.int64]],
    entries: list[npt.NDArray[np.int64]],
    objects: npt.NDArray[np.int64] | None,
) -> Closure:
    """Add the entries near those of one closure."""
    texts = np.unique(text_of[closure.indices])
    if not texts.size:
        return closure
    reached = np.unique(np.concatenate([near[int(text)] for text in texts]))
    found = np.concatenate([entries[int(text)] for text in reached])
    if objects is not None:
        found = found[np.isin(objects[found], objects[closure.indices])]
    whole = np.union1d(closure.indices, found)
    added = np.setdiff1d(whole, closure.indices, assume_unique=True)
    for array in (whole, added):
        array.setflags(write=False)
    return Closure(
        indices=whole,
        n_triplets=closure.n_triplets,
        by_similarity=np.union1d(closure.by_similarity, added),
    )


def _vectors(embed: Embed, texts: list[str]) -> npt.NDArray[np.float32]:
    """Encode texts as vectors of length one."""
    given = np.asarray(embed(texts))
    if given.ndim != 2 or given.shape[0] != len(texts):
        raise RetrievalError(
            f"the encoder must give one vector a text, shape ({len(texts)}, d); got {given.shape}"
        )
    lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    wrong = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if wrong.size:
        raise RetrievalError(
            f"the encoder gave no usable vector for {wrong.size} texts, such as "
            f"{texts[int(wrong[0])]!r}; a vector must be finite and not zero"
        )
    return np.asarray(given / lengths, dtype=np.float32)


def _neighbours(
    vectors: npt.NDArray[np.float32], anchors: npt.NDArray[np.int64], threshold: float
) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Find the texts near each anchor, some anchors at a time."""
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        close = vectors[block] @ vectors.T >= threshold - _ROUNDING
        for anchor, row in zip(block, close, strict=True):
            yield int(anchor), np.flatnonzero(row)


def _entries_by_text(text_of: npt.NDArray[np.int64], n_texts: int) -> list[npt.NDArray[np.int64]]:
    """List the entries of each text."""
    order = np.argsort(text_of, kind="stable")
    return np.split(order, np.searchsorted(text_of[order], np.arange(1, n_texts)))


def _object_numbers(
    database: TripletDatabase, same_object: NameKey | None
) -> npt.NDArray[np.int64] | None:
    """Number the objects of the entries, equivalent ones alike."""
    if same_object is None:
        return None
    of = name_key(same_object)
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(of(entry.object), len(seen)) for entry in database.triplets])
