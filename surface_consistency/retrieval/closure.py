"""What must go for a fact to be gone: the entries that state it under any of its names.

An entry is equivalent to a fact when its subject, relation and object each are a name of the fact's
(arXiv 2607.00605, section 4). All facts of a database are served by one inverted index; no fact
looks at every entry. Closures that also take what lies near are the first remedy of section 9:
"An extended deletion closure that, in addition to alias-equivalent triplets, also removes any
triplet whose retained-candidate embedding falls within a similarity radius of the canonical entry."
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval.alias_groups import (
    ROLES,
    AliasGroups,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.retrieval.retriever import lookup_key
from surface_consistency.schemas.memory import AuditPrompt, MemoryState, Triplet, TripletDatabase

__all__ = [
    "Closure",
    "Embed",
    "alias_closures",
    "deleted_entries",
    "deletion_masks",
    "similarity_closures",
]

_NO_ENTRIES: Final = np.empty(0, dtype=np.int64)
_NO_ENTRIES.setflags(write=False)
Embed = Callable[[Sequence[str]], npt.NDArray[np.floating]]
"""Turns texts into vectors, one row a text."""
_BLOCK = 512
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """The entries of a database that state one fact."""

    indices: npt.NDArray[np.int64]
    """Entries, as indices into the database's triplets, ascending; read-only."""

    n_triplets: int
    """Entries of the whole database."""

    by_similarity: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_ENTRIES)
    """Those of `indices` that no alias found, but the similarity to an entry that one did."""

    def mask(self) -> npt.NDArray[np.bool_]:
        """Mark the entries.

        Returns:
            True for each entry of the closure, shape (n_triplets,).
        """
        marked = np.zeros(self.n_triplets, dtype=np.bool_)
        marked[self.indices] = True
        return marked


def alias_closures(
    database: TripletDatabase,
    facts: Iterable[AuditPrompt],
    *,
    key: NameKey = "published",
    scope: Sequence[Role] = ROLES,
    groups: AliasGroups | None = None,
) -> list[Closure]:
    """Find the entries that state each fact, under any of its names.

    Args:
        database: The database.
        facts: The facts and their aliases; equal ones are looked up once.
        key: When two names are one: "published" (without regard to case and punctuation),
            "strict" (without regard to case, width and spacing) or a function from names to keys.
        scope: Parts that must be equivalent. ("subject", "relation") takes every object of the
            fact's question, ("object",) whatever holds the object.
        groups: Alias groups, under which names are one when any chain of aliases joins them; `key`
            has then no effect. None for each fact's own aliases alone.

    Returns:
        One closure a fact, in order; empty where no entry states it.

    Raises:
        ValueError: If `key` or `scope` is not one of those.

    Examples:
        >>> from surface_consistency.schemas import Triplet
        >>> database = TripletDatabase(entities=("USA",), relationships=("Seat",),
        ...     return_values=("Washington",), triplets=(Triplet("USA", "Seat", "Washington"),))
        >>> fact = AuditPrompt(prompt_id=0, fact_id=0, subject="U.S.A", relation="Capital",
        ...     gold_object="washington", prompt_text="?", subject_aliases=("usa",),
        ...     relation_aliases=("Seat",))
        >>> alias_closures(database, [fact])[0].indices
        array([0])
    """
    keys = _role_keys(key, groups)
    parts = [role for role in ROLES if role in scope]
    if not parts or set(scope) - set(ROLES):
        raise ValueError(f"scope must name some of {', '.join(ROLES)}, got {tuple(scope)!r}")
    index = _index(database.triplets, parts, keys)
    total = len(database.triplets)
    known: dict[tuple[tuple[str, ...], ...], Closure] = {}
    closures = []
    for fact in facts:
        names = tuple(names_in(fact, role) for role in parts)
        if names not in known:
            wanted = [
                {keys[role](name) for name in spoken}
                for role, spoken in zip(parts, names, strict=True)
            ]
            entries = np.array(sorted(_collect(index, wanted)), dtype=np.int64)
            entries.setflags(write=False)
            known[names] = Closure(indices=entries, n_triplets=total)
        closures.append(known[names])
    return closures


def _role_keys(key: NameKey, groups: AliasGroups | None) -> dict[Role, Callable[[str], str]]:
    """Give a key function for each part; each name's key is computed once."""
    plain = name_key(key)

    def keyed(role: Role) -> Callable[[str], str]:
        """Remember the keys of a role."""
        memory: dict[str, str] = {}

        def of(name: str) -> str:
            """Return the key of a name."""
            if name not in memory:
                memory[name] = plain(name) if groups is None else groups.group_of(role, name)
            return memory[name]

        return of

    return {role: keyed(role) for role in ROLES}


def _index(
    triplets: Sequence[Triplet], parts: Sequence[Role], keys: dict[Role, Callable[[str], str]]
) -> dict[str, Any]:
    """Nest the entries by the keys of their parts; the innermost values are lists of indices."""
    places = [(ROLES.index(role), keys[role]) for role in parts]
    root: dict[str, Any] = {}
    for number, entry in enumerate(triplets):
        node = root
        for place, of in places[:-1]:
            node = node.setdefault(of(entry[place]), {})
        place, of = places[-1]
        node.setdefault(of(entry[place]), []).append(number)
    return root


def _collect(node: Any, wanted: Sequence[set[str]]) -> Iterable[int]:  # noqa: ANN401
    """Walk down the keys that are wanted, from whichever side has fewer of them."""
    if not wanted:
        yield from node
        return
    for key in wanted[0] & node.keys():
        yield from _collect(node[key], wanted[1:])


def deleted_entries(
    closures: Iterable[Closure], *, state: MemoryState = "DEL-ON"
) -> list[npt.NDArray[np.int64] | None]:
    """Give what a retriever takes as `deleted`, one item a fact.

    Args:
        closures: What shall be gone.
        state: State of the store; "FULL" deletes nothing.

    Returns:
        For each fact the indices of its deleted entries; None where all exist.

    Examples:
        >>> closure = Closure(indices=np.array([1]), n_triplets=3)
        >>> deleted_entries([closure], state="FULL"), deleted_entries([closure])
        ([None], [array([1])])
    """
    return [None if state == "FULL" else closure.indices for closure in closures]


def deletion_masks(closures: Sequence[Closure]) -> npt.NDArray[np.bool_]:
    """Mark the deleted entries of several facts, for searches that score all entries at once.

    Args:
        closures: Closures in one database, at least one.

    Returns:
        True where an entry is deleted, shape (n_facts, n_triplets): one byte each, so take the
        facts by batches where the database is large.

    Raises:
        ValueError: If there are none, or they are of databases of different sizes.
    """
    sizes = {closure.n_triplets for closure in closures}
    if len(sizes) != 1:
        raise ValueError(f"closures must be of one database, got sizes {sorted(sizes)}")
    masks = np.zeros((len(closures), sizes.pop()), dtype=np.bool_)
    for row, closure in enumerate(closures):
        masks[row, closure.indices] = True
    return masks


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
    by_text = np.argsort(text_of, kind="stable")
    entries = np.split(by_text, np.searchsorted(text_of[by_text], np.arange(1, len(numbers))))
    objects = None
    if same_object is not None:
        of, seen = name_key(same_object), dict[str, int]()
        objects = np.array(
            [seen.setdefault(of(one.object), len(seen)) for one in database.triplets]
        )
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
