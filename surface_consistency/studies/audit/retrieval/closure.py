"""Deletion closures: the entries that state a fact under any of its names.

An entry is equivalent to a fact if its subject, relation and object are each a name of the fact's
(arXiv 2607.00605, section 4). The closures of all facts are found by one join on the keys of their
names. Closures that also contain similar entries are the first remedy of section 9: "An extended
deletion closure that, in addition to alias-equivalent triplets, also removes any triplet whose
retained-candidate embedding falls within a similarity radius of the canonical entry."
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import (
    ROLES,
    AliasGroups,
    NameKey,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.triplets import (
    Ints,
    NameRule,
    Triplets,
    is_among,
    name_id,
    spread,
)

Embed = Callable[[Sequence[str]], npt.NDArray[np.floating]]
"""Encodes texts as vectors, one row per text."""
_BLOCK, _TEXTS = 512, 16_384
_ROUNDING = 1e-6


def alias_closures(
    triplets: Triplets,
    facts: Sequence[AuditPrompt],
    *,
    rule: NameRule = "published",
    scope: Sequence[Role] = ROLES,
) -> list[Ints]:
    """Find the entries that state each fact, under any of its names.

    Args:
        triplets: The database.
        facts: The facts and their aliases.
        rule: When two names are equivalent: "published" (ignores case and punctuation), "strict"
            (ignores case, width and spacing), a function from names to keys, or alias groups,
            under which names are equivalent if a chain of aliases joins them.
        scope: Parts that must be equivalent. ("subject", "relation") accepts every object,
            ("object",) every entry with the object.

    Returns:
        For each fact the indices of its entries, ascending and read-only; empty if no entry states
        it.

    Raises:
        ValueError: If `rule` or `scope` is invalid.

    Examples:
        >>> from surface_consistency.schemas import Triplet
        >>> database = Triplets.of([Triplet("USA", "Seat", "Washington")])
        >>> fact = AuditPrompt(prompt_id=0, fact_id=0, subject="U.S.A", relation="Capital",
        ...     gold_object="washington", prompt_text="?", subject_aliases=("usa",),
        ...     relation_aliases=("Seat",))
        >>> alias_closures(database, [fact])[0]
        array([0])
    """
    parts = [role for role in ROLES if role in scope]
    if not parts or set(scope) - set(ROLES):
        raise ValueError(f"scope must name some of {', '.join(ROLES)}, got {tuple(scope)!r}")
    found = equivalent_entries(triplets, equivalent_names(triplets, facts, rule, parts))
    closures = split_by_fact(found, len(facts), len(triplets))
    for indices in closures:
        indices.setflags(write=False)
    return closures


def equivalent_names(
    triplets: Triplets,
    facts: Sequence[AuditPrompt],
    rule: NameRule = "published",
    roles: Sequence[Role] = ROLES,
) -> dict[Role, Ints]:
    """Find the names of a database that are equivalent to a name of a fact.

    Args:
        triplets: The database.
        facts: The facts.
        rule: When two names are equivalent.
        roles: Parts to compare.

    Returns:
        By part, `fact * n_names + name` for each pair, ascending, each once.
    """
    return {role: _names_of_role(triplets, facts, rule, role) for role in roles}


def _names_of_role(
    triplets: Triplets, facts: Sequence[AuditPrompt], rule: NameRule, role: Role
) -> Ints:
    """Join the names of facts with those of one part of the database."""
    id_of: dict[str, int] = {}
    of = partial(rule.group_of, role) if isinstance(rule, AliasGroups) else name_key(rule)
    owners, wanted = [], []
    for number, fact in enumerate(facts):
        for name in names_in(fact, role):
            if name not in id_of:
                id_of[name] = name_id(of(name))
            owners.append(number)
            wanted.append(id_of[name])
    sought = np.array(wanted, np.uint64)
    names, ids = triplets.names_among(role, rule, sought)
    rows, places = _matches(sought, ids)
    n_names = len(triplets.columns[role].names)
    return np.unique(np.array(owners, np.int64)[rows] * n_names + names[places])


def _matches(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Join two arrays on equal values: the positions of each pair in both."""
    order = np.argsort(right, kind="stable")
    low = np.searchsorted(right[order], left, "left")
    rows, within = spread(np.searchsorted(right[order], left, "right") - low)
    return rows, order[low[rows] + within]


def equivalent_entries(triplets: Triplets, names: Mapping[Role, Ints]) -> Ints:
    """Find the entries whose parts are equivalent to those of a fact.

    Args:
        triplets: The database.
        names: By part, names of facts as of `equivalent_names`; at least one part.

    Returns:
        `fact * n_entries + entry` for each pair, ascending, each once.
    """
    n_entries = len(triplets)
    pairs, is_candidate = {}, np.ones(n_entries, np.bool_)
    for role, codes in names.items():
        column = triplets.columns[role]
        owners, own = np.divmod(codes, max(len(column.names), 1))
        is_wanted = np.zeros(len(column.names), np.bool_)
        is_wanted[own] = True
        is_candidate &= is_wanted[column.ids]
        pairs[role] = owners, own
    candidates = np.flatnonzero(is_candidate)
    # The join starts from the part that pairs the fewest facts and entries.
    sizes = {
        role: np.bincount(triplets.columns[role].ids[candidates], minlength=own.max(initial=0) + 1)
        for role, (_, own) in pairs.items()
    }
    first = min(names, key=lambda role: sizes[role][pairs[role][1]].sum())
    rows, places = _matches(pairs[first][1], triplets.columns[first].ids[candidates])
    owners, entries = pairs[first][0][rows], candidates[places]
    for role in set(names) - {first}:
        column = triplets.columns[role]
        is_equal = is_among(owners * len(column.names) + column.ids[entries], names[role])
        owners, entries = owners[is_equal], entries[is_equal]
    return np.sort(owners * n_entries + entries)


def split_by_fact(pairs: Ints, n_facts: int, n_entries: int) -> list[Ints]:
    """Split pairs as of `equivalent_entries`: one array of entries per fact."""
    bounds = np.searchsorted(pairs, np.arange(1, n_facts) * n_entries)
    return np.split(pairs % max(n_entries, 1), bounds) if n_facts else []


def relations_of(triplets: Triplets, subjects: Sequence[str], objects: Sequence[str]) -> list[str]:
    """List the relations of the entries with a subject and an object.

    Args:
        triplets: The database.
        subjects: Names of the subject, compared by the published key.
        objects: Names of the object.

    Returns:
        The relations, in order of their first entry.
    """
    of, is_equal = name_key("published"), np.ones(len(triplets), np.bool_)
    names_of: Mapping[Role, Sequence[str]] = {"subject": subjects, "object": objects}
    for role, names in names_of.items():
        wanted = np.array([name_id(of(name)) for name in names], np.uint64)
        found, _ = triplets.names_among(role, "published", wanted)
        is_equal &= np.isin(triplets.columns[role].ids, found)
    column = triplets.columns["relation"]
    numbers = list(dict.fromkeys(column.ids[is_equal].tolist()))
    relations: list[str] = column.names.take(pa.array(numbers, pa.int64())).to_pylist()
    return relations


def similarity_closures(
    triplets: Triplets,
    closures: Sequence[Ints],
    *,
    embed: Embed,
    radius: float,
    same_object: NameKey | None = None,
) -> list[Ints]:
    """Extend closures by the entries with a lookup text similar to that of one of their entries.

    The text of an entry is its subject and relation, as retrievers embed it, without the value. A
    radius therefore finds decoys whose names are in no alias map, but also facts with other
    objects; `same_object` excludes those.

    Args:
        triplets: The database.
        closures: Closures in it, as of `alias_closures`; an empty one remains empty.
        embed: Encoder of the retriever that is audited. Called with the distinct texts of the
            closures, then with those of the database, block by block.
        radius: Maximum cosine distance (1 - similarity) from an entry of the closure, in [0, 2].
        same_object: Key under which the object of an added entry must equal one of the closure's;
            None for any object.

    Returns:
        The extended closures, in order; each contains the original one.

    Raises:
        ValueError: If `radius` is out of range or an index of a closure does not exist.
        RunnerError: If the encoder does not return one finite, nonzero vector per text.
    """
    if not 0 <= radius <= 2:
        raise ValueError(f"radius must be a cosine distance in [0, 2], got {radius}")
    check_closures(closures, len(triplets))
    keys = triplets.keys
    anchors = np.unique(keys.ids[np.concatenate([*closures, np.empty(0, np.int64)])])
    if not anchors.size:
        return list(closures)
    near = _neighbours(embed, keys.names, anchors, 1 - radius)
    objects = triplets.columns["object"].ids
    values = None if same_object is None else triplets.name_ids("object", same_object)

    def widened(closure: Ints) -> Ints:
        """Add the entries similar to those of one closure."""
        if not closure.size:
            return closure
        texts = np.unique(np.concatenate([near[int(one)] for one in np.unique(keys.ids[closure])]))
        _, entries = keys.entries(texts)
        if values is not None:
            allowed = np.unique(values[objects[closure]])
            entries = entries[is_among(values[objects[entries]], allowed)]
        extended = np.union1d(closure, entries)
        extended.setflags(write=False)
        return extended

    return [widened(closure) for closure in closures]


def check_closures(closures: Sequence[Ints], n_entries: int) -> None:
    """Raise an error for closures with indices outside the database."""
    for closure in closures:
        if closure.size and not 0 <= closure.min() <= closure.max() < n_entries:
            raise ValueError(
                f"closures must be of this database of {n_entries} triplets, got the index "
                f"{closure.max()}; compute them by `alias_closures` of this database"
            )


def _vectors(embed: Embed, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Encode texts as vectors of length one."""
    given = np.asarray(embed(texts))
    if given.ndim != 2 or given.shape[0] != len(texts):
        raise RunnerError(
            f"the encoder must return one vector per text, shape ({len(texts)}, d); got "
            f"{given.shape}"
        )
    lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    invalid = np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))
    if invalid.size:
        raise RunnerError(
            f"the encoder returned an invalid vector for {invalid.size} texts, such as "
            f"{texts[int(invalid[0])]!r}; a vector must be finite and not zero"
        )
    return np.asarray(given / lengths, dtype=np.float32)


def _neighbours(embed: Embed, texts: pa.Array, anchors: Ints, threshold: float) -> dict[int, Ints]:
    """Find the texts similar to each anchor, which is also a text, in blocks of both."""
    near: dict[int, list[Ints]] = {int(anchor): [] for anchor in anchors}
    own = _vectors(embed, texts.take(pa.array(anchors)).to_pylist())
    for start in range(0, len(texts), _TEXTS):
        some = _vectors(embed, texts[start : start + _TEXTS].to_pylist())
        for place in range(0, len(anchors), _BLOCK):
            close = own[place : place + _BLOCK] @ some.T >= threshold - _ROUNDING
            for anchor, row in zip(anchors[place : place + _BLOCK], close, strict=True):
                near[int(anchor)].append(start + np.flatnonzero(row))
    return {anchor: np.concatenate(blocks) for anchor, blocks in near.items()}
