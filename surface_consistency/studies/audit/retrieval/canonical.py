"""One record a fact: the second remedy of arXiv 2607.00605, section 9.

"Canonicalization at write time, in which aliases and paraphrastic forms are stored as pointers into
a single canonical record rather than as independent triplets."
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.schemas.memory import FactDatabase, LookupQuery, Triplet, TripletDatabase
from surface_consistency.studies.audit.retrieval.alias_groups import ROLES, AliasGroups, Role


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanonicalDatabase:
    """A database with one name for each thing."""

    database: TripletDatabase
    """The records, each once, in the order of their first entries."""

    record_of: npt.NDArray[np.int64]
    """For each entry of the old database, the index of its record."""

    canonical: Mapping[Role, Mapping[str, str]]
    """By role and group, the name that stands for the group."""

    groups: AliasGroups
    """The alias groups, without what shared aliases alone would join."""

    shared_aliases: Mapping[Role, Mapping[str, tuple[str, ...]]]
    """By role, the aliases that were left as they are, and the names of what shares them."""

    def resolve(self, query: LookupQuery) -> LookupQuery:
        """Follow the pointers of a lookup.

        Args:
            query: What a model asks.

        Returns:
            The same question in canonical names; a name that is none's alias stays.
        """
        return LookupQuery(
            entity=self._named("subject", query.entity),
            relation=self._named("relation", query.relation),
        )

    def _named(self, role: Role, name: str) -> str:
        """Return the canonical name of a name."""
        names = self.canonical.get(role, {})
        return names.get(self.groups.group_of(role, name), name)


def canonicalise(
    database: FactDatabase,
    groups: AliasGroups,
    *,
    roles: Sequence[Role] = ("subject", "relation"),
    preferred: Iterable[str] = (),
) -> CanonicalDatabase:
    """Give each thing one name and each fact one record.

    An alias of two things that nothing else makes one is replaced by neither name: it would turn
    facts about one into facts about the other.

    Args:
        database: The database.
        groups: Which names are one; what only a shared alias joins in them is kept apart.
        roles: Parts whose names are replaced. Objects keep theirs by default, since a lookup does
            not ask by them.
        preferred: Names that stand for their groups wherever they are in one; other groups are
            named by their first name.

    Returns:
        The records, the way from entries to records, and the pointers.

    Raises:
        ValueError: If a role is none.

    Examples:
        >>> groups = AliasGroups()
        >>> groups.join("subject", ["United States", "USA"])
        >>> old = TripletDatabase(entities=("USA", "United States"), relationships=("Capital",),
        ...     return_values=("Washington",), triplets=(
        ...     Triplet("USA", "Capital", "Washington"),
        ...     Triplet("United States", "Capital", "Washington")))
        >>> new = canonicalise(old, groups)
        >>> len(new.database.triplets), new.record_of.tolist()
        (1, [0, 0])
        >>> new.resolve(LookupQuery(entity="U.S.A.", relation="Capital")).entity
        'U.S.A.'
        >>> new.resolve(LookupQuery(entity="usa", relation="Capital")).entity
        'United States'
    """
    if set(roles) - set(ROLES):
        raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {tuple(roles)!r}")
    wanted = set(preferred)
    shared = {role: groups.shared_aliases(role) for role in roles}
    groups = groups.without_shared_aliases()
    canonical = {
        role: {
            group: next((name for name in names if name in wanted), names[0])
            for group, names in groups.members(role).items()
        }
        for role in roles
    }
    records: dict[Triplet, int] = {}
    record_of = []
    for entry in database.triplets:
        record = Triplet(
            *(
                canonical[role].get(groups.group_of(role, name), name)
                if role in canonical
                else name
                for role, name in zip(ROLES, entry, strict=True)
            )
        )
        record_of.append(records.setdefault(record, len(records)))
    return CanonicalDatabase(
        database=TripletDatabase(
            entities=tuple(sorted({record.subject for record in records})),
            relationships=tuple(sorted({record.relation for record in records})),
            return_values=tuple(sorted({record.object for record in records})),
            triplets=tuple(records),
        ),
        record_of=np.array(record_of, dtype=np.int64),
        canonical=canonical,
        groups=groups,
        shared_aliases=shared,
    )
