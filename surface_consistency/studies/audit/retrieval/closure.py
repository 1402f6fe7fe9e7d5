"""What must go for a fact to be gone: the entries that state it under any of its names.

An entry is equivalent to a fact when its subject, relation and object each are a name of the fact's
(arXiv 2607.00605, section 4). All facts of a database are served by one inverted index; no fact
looks at every entry. Closures that also take what lies near are the first remedy of section 9:
"An extended deletion closure that, in addition to alias-equivalent triplets, also removes any
triplet whose retained-candidate embedding falls within a similarity radius of the canonical entry."
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.memory import AuditPrompt, FactDatabase
from surface_consistency.studies.audit.retrieval.alias_groups import (
    ROLES,
    AliasGroups,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.triplet_index import (
    NameFinder,
    TripletIndex,
    key_column,
    split_by_fact,
)

_NO_ENTRIES: Final = np.empty(0, dtype=np.int64)
_NO_ENTRIES.setflags(write=False)
Embed = Callable[[Sequence[str]], npt.NDArray[np.floating]]
"""Turns texts into vectors, one row a text."""
_BLOCK, _TEXTS = 512, 16_384
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


def alias_closures(
    database: FactDatabase,
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
        >>> from surface_consistency.schemas import Triplet, TripletDatabase
        >>> database = TripletDatabase(entities=("USA",), relationships=("Seat",),
        ...     return_values=("Washington",), triplets=(Triplet("USA", "Seat", "Washington"),))
        >>> fact = AuditPrompt(prompt_id=0, fact_id=0, subject="U.S.A", relation="Capital",
        ...     gold_object="washington", prompt_text="?", subject_aliases=("usa",),
        ...     relation_aliases=("Seat",))
        >>> alias_closures(database, [fact])[0].indices
        array([0])
    """
    parts = [role for role in ROLES if role in scope]
    if not parts or set(scope) - set(ROLES):
        raise ValueError(f"scope must name some of {', '.join(ROLES)}, got {tuple(scope)!r}")
    wanted, index = list(facts), TripletIndex.of(database)
    names = [tuple(names_in(fact, role) for role in parts) for fact in wanted]
    distinct = dict(zip(names, wanted, strict=True))
    finder = NameFinder(index, list(distinct.values()), roles=parts, key=key, groups=groups)
    n_triplets = len(index.triplets)
    closures = {}
    for own, entries in zip(
        distinct, split_by_fact(finder.entries(), len(distinct), n_triplets), strict=True
    ):
        entries.setflags(write=False)
        closures[own] = Closure(indices=entries, n_triplets=n_triplets)
    return [closures[own] for own in names]


def similarity_closures(
    database: FactDatabase,
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
        embed: Encoder of the retriever that is audited. Called with distinct texts: once, or of
            large databases with the texts of the closures, then block by block.
        radius: Largest cosine distance (1 - similarity) from an entry of the closure, in [0, 2].
        same_object: Key under which an entry must hold an object of the closure to be taken; None
            to take entries with any object.

    Returns:
        The wider closures, in order; `by_similarity` tells what came on top.

    Raises:
        ValueError: If `radius` is out of range or a closure is of a database of another size.
        RunnerError: If the encoder gives anything but one finite, nonzero vector a text.
    """
    if not 0 <= radius <= 2:
        raise ValueError(f"radius must be a cosine distance in [0, 2], got {radius}")
    total = len(database.triplets)
    if any(closure.n_triplets != total for closure in closures):
        raise ValueError(f"closures must be of this database of {total} triplets")
    if not closures or not total:
        return list(closures)
    keys = key_column(database.triplets)
    anchors = np.unique(keys.ids[np.concatenate([closure.indices for closure in closures])])
    if not anchors.size:
        return list(closures)
    near = _neighbours(embed, keys.names, anchors, 1 - radius)
    objects = TripletIndex.of(database).columns["object"]
    of = None if same_object is None else name_key(same_object)

    def widened(closure: Closure) -> Closure:
        """Add the entries near those of one closure."""
        if not closure.indices.size:
            return closure
        own = np.unique(keys.ids[closure.indices])
        near_entries = keys.entries(np.unique(np.concatenate([near[int(one)] for one in own])))
        if of is not None:
            names = {
                int(one): of(objects.names[int(one)])
                for one in np.unique(objects.ids[near_entries])
            }
            held = {of(objects.names[int(one)]) for one in objects.ids[closure.indices]}
            alike = [one for one, name in names.items() if name in held]
            near_entries = near_entries[np.isin(objects.ids[near_entries], alike)]
        whole = np.union1d(closure.indices, near_entries)
        added = np.setdiff1d(whole, closure.indices, assume_unique=True)
        for array in (whole, added):
            array.setflags(write=False)
        return Closure(
            indices=whole,
            n_triplets=total,
            by_similarity=np.union1d(closure.by_similarity, added),
        )

    return [widened(closure) for closure in closures]


def _vectors(embed: Embed, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Encode texts as vectors of length one."""
    given = np.asarray(embed(texts))
    if given.ndim != 2 or given.shape[0] != len(texts):
        raise RunnerError(
            f"the encoder must give one vector a text, shape ({len(texts)}, d); got {given.shape}"
        )
    lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    wrong = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if wrong.size:
        raise RunnerError(
            f"the encoder gave no usable vector for {wrong.size} texts, such as "
            f"{texts[int(wrong[0])]!r}; a vector must be finite and not zero"
        )
    return np.asarray(given / lengths, dtype=np.float32)


def _neighbours(
    embed: Embed, texts: Sequence[str], anchors: npt.NDArray[np.int64], threshold: float
) -> dict[int, npt.NDArray[np.int64]]:
    """Find the texts near each anchor, which are texts too; some texts and anchors at a time."""
    near: dict[int, list[npt.NDArray[np.int64]]] = {int(anchor): [] for anchor in anchors}
    is_one_block = len(texts) <= _TEXTS
    first = _vectors(embed, texts[:_TEXTS]) if is_one_block else None
    own = _vectors(embed, [texts[one] for one in near]) if first is None else first[anchors]
    for start in range(0, len(texts), _TEXTS):
        some = _vectors(embed, texts[start : start + _TEXTS]) if first is None else first
        for place in range(0, len(anchors), _BLOCK):
            close = own[place : place + _BLOCK] @ some.T >= threshold - _ROUNDING
            for anchor, row in zip(anchors[place : place + _BLOCK], close, strict=True):
                near[int(anchor)].append(start + np.flatnonzero(row))
    return {anchor: np.concatenate(blocks) for anchor, blocks in near.items()}
