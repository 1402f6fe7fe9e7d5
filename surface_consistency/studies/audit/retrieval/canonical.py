"""Rewrite a database to one record per fact: the second remedy of arXiv 2607.00605, section 9.

"Canonicalization at write time, in which aliases and paraphrastic forms are stored as pointers into
a single canonical record rather than as independent triplets."
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from surface_consistency.schemas.memory import LookupQuery, Triplet
from surface_consistency.studies.audit.retrieval.alias_groups import ROLES, AliasGroups, Role
from surface_consistency.studies.audit.retrieval.triplets import Triplets

_REWRITTEN: Final[tuple[Role, ...]] = ("subject", "relation")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanonicalDatabase:
    """A database with one name per entity and relation."""

    database: Triplets
    """The records, each once, in the order of their first entries."""

    canonical: Mapping[Role, Mapping[str, str]]
    """By role and group, the canonical name of the group."""

    groups: AliasGroups
    """The alias groups, without the links by shared aliases."""

    def resolve(self, query: LookupQuery) -> LookupQuery:
        """Replace the names of a query by their canonical names.

        Args:
            query: The query that a model wrote.

        Returns:
            The same query in canonical names; unknown names are kept.
        """
        return LookupQuery(
            entity=self.name("subject", query.entity),
            relation=self.name("relation", query.relation),
        )

    def name(self, role: Role, name: str) -> str:
        """Return the canonical name of a name.

        Args:
            role: The role of the name.
            name: Any name.

        Returns:
            The canonical name; the name itself if it is in no group or `role` is not rewritten.
        """
        names = self.canonical.get(role, {})
        return names.get(self.groups.group_of(role, name), name)


def canonicalise(
    database: Triplets, groups: AliasGroups, *, preferred: Iterable[str] = ()
) -> CanonicalDatabase:
    """Give each entity and relation one name and each fact one record.

    An alias that two entities share is not replaced, since this would turn facts about one into
    facts about the other. Objects keep their names, since queries do not contain them.

    Args:
        database: The database.
        groups: Groups of equivalent names; links by shared aliases are not used.
        preferred: Names that become the canonical name of their group; the canonical name of other
            groups is their first name.

    Returns:
        The records, and the canonical name of each name.

    Examples:
        >>> groups = AliasGroups()
        >>> groups.join("subject", ["United States", "USA"])
        >>> old = Triplets.of([Triplet("USA", "Capital", "Washington"),
        ...     Triplet("United States", "Capital", "Washington")])
        >>> new = canonicalise(old, groups)
        >>> list(new.database)
        [Triplet(subject='United States', relation='Capital', object='Washington')]
        >>> new.resolve(LookupQuery(entity="U.S.A.", relation="Capital")).entity
        'U.S.A.'
        >>> new.resolve(LookupQuery(entity="usa", relation="Capital")).entity
        'United States'
    """
    wanted = set(preferred)
    groups = groups.without_shared_aliases()
    canonical: dict[Role, dict[str, str]] = {
        role: {
            group: next((name for name in names if name in wanted), names[0])
            for group, names in groups.members(role).items()
        }
        for role in _REWRITTEN
    }
    made = CanonicalDatabase(database=database, canonical=canonical, groups=groups)
    records = (Triplet(*map(made.name, ROLES, entry)) for entry in database)
    return replace(made, database=Triplets.of(dict.fromkeys(records)))
