"""The entries that state a fact under any of its names: what must go for the fact to be gone.

An entry is equivalent to a fact when its subject, relation and object each are a name of the fact's
(arXiv 2607.00605, section 4). All facts of a database are served by one inverted index; no fact
looks at every entry.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.retrieval.closure.alias_groups import AliasGroups
from surface_consistency.retrieval.closure.keys import (
    ROLES,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.schemas.memory import AuditPrompt, Triplet, TripletDatabase

__all__ = ["Closure", "alias_closure", "alias_closures"]

_NO_ENTRIES: Final = np.empty(0, dtype=np.int64)
_NO_ENTRIES.setflags(write=False)


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


def alias_closure(
    database: TripletDatabase,
    fact: AuditPrompt,
    *,
    key: NameKey = "published",
    scope: Sequence[Role] = ROLES,
    groups: AliasGroups | None = None,
) -> Closure:
    """Find the entries that state one fact; `alias_closures` does many at once.

    Args:
        database: The database.
        fact: The fact and its aliases.
        key: As in `alias_closures`.
        scope: As in `alias_closures`.
        groups: As in `alias_closures`.

    Returns:
        The closure.

    Raises:
        ValueError: As in `alias_closures`.
    """
    return alias_closures(database, (fact,), key=key, scope=scope, groups=groups)[0]


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
