"""Whether deletions leave what they should not, looked at by a wider rule than they were made by.

A deletion that is checked by its own predicate always passes. So entries are compared here under
alias groups: names that any chain of aliases of any prompt, or any of the keys, makes one. Where
one prompt's aliases are wrong or short, another's give it away.
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from surface_consistency.errors import IncompleteClosureWarning
from surface_consistency.retrieval.alias_groups import AliasGroups, name_key, names_in
from surface_consistency.retrieval.closure import Closure, alias_closures
from surface_consistency.schemas.memory import AuditPrompt, TripletDatabase

__all__ = ["ClosureReport", "FactClosure", "verify_closures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactClosure:
    """What the deletion of one fact leaves."""

    prompt_id: int
    """Number of the prompt."""

    fact_id: int
    """Number of the fact."""

    subject: str
    """Subject, as the prompt names it."""

    relation: str
    """Relation, as the prompt names it."""

    gold_object: str
    """The object."""

    n_deleted: int
    """Entries that are deleted; 0 when the database does not state the fact."""

    remaining: tuple[int, ...]
    """Entries that still state the fact: equivalent in subject, relation and object."""

    by_shared_alias: tuple[int, ...] = ()
    """Those of them that an alias of two things alone makes equivalent ("MJ" of two athletes): an
    alias is missing, or wrong, or the entry is about the other thing."""

    shared_surface: tuple[int, ...]
    """Entries left about the same subject, by another relation, whose object reads as the fact's
    does under the published key."""

    shared_by_punctuation: tuple[int, ...]
    """Those of them that the strict key tells apart, such as ".us" and "US"."""

    n_same_object: int
    """Entries left that hold the object, whatever they are about."""

    echoes: tuple[str, ...]
    """Accepted objects that are or contain a name of the subject: repeating the question may pass
    for an answer."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing that states the fact remains."""
        return not self.remaining


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureReport:
    """What the deletions of a database leave."""

    facts: tuple[FactClosure, ...]
    """One item a fact, in the order of the prompts."""

    @property
    def is_complete(self) -> bool:
        """Whether no deletion leaves anything that states its fact."""
        return self.n_incomplete == 0

    @property
    def n_incomplete(self) -> int:
        """Facts that a remaining entry still states."""
        return sum(not fact.is_complete for fact in self.facts)

    @property
    def n_by_shared_alias(self) -> int:
        """Facts of these that only an alias of two things makes incomplete."""
        return sum(
            bool(fact.remaining) and len(fact.by_shared_alias) == len(fact.remaining)
            for fact in self.facts
        )

    @property
    def n_absent(self) -> int:
        """Facts whose deletion deletes nothing."""
        return sum(fact.n_deleted == 0 for fact in self.facts)

    @property
    def n_shared_surface(self) -> int:
        """Facts whose object stays readable under another relation of the subject."""
        return sum(bool(fact.shared_surface) for fact in self.facts)

    @property
    def n_shared_by_punctuation(self) -> int:
        """Facts of which that holds only because the published key drops punctuation."""
        return sum(bool(fact.shared_by_punctuation) for fact in self.facts)

    @property
    def n_echoing(self) -> int:
        """Facts that repeating the question may answer."""
        return sum(bool(fact.echoes) for fact in self.facts)

    def rows(self) -> list[dict[str, object]]:
        """Give the facts as rows of a table.

        Returns:
            One dictionary a fact: its fields, and `is_complete`.
        """
        return [asdict(fact) | {"is_complete": fact.is_complete} for fact in self.facts]

    def summary(self) -> str:
        """Say in one line what holds; a study prints it with every table.

        Returns:
            The line.
        """
        state = "complete" if self.is_complete else "INCOMPLETE"
        n_doubtful = self.n_by_shared_alias
        doubtful = f" ({n_doubtful} by an alias of two things alone)" if n_doubtful else ""
        return (
            f"closure {state}: {self.n_incomplete} of {len(self.facts)} deletions leave an "
            f"equivalent triplet{doubtful}, {self.n_absent} delete nothing; "
            f"{self.n_shared_surface} golds stay readable under another relation "
            f"({self.n_shared_by_punctuation} by punctuation alone), {self.n_echoing} contain "
            "their subject"
        )


def verify_closures(
    database: TripletDatabase,
    facts: Sequence[AuditPrompt],
    closures: Sequence[Closure],
    *,
    groups: AliasGroups | None = None,
    warn: bool = False,
) -> ClosureReport:
    """Look for what deletions leave.

    Args:
        database: The database.
        facts: The facts, with their aliases.
        closures: Their deletions, in the same order.
        groups: Which names are one; None for those that the aliases of all facts join.
        warn: Whether to warn when a deletion is incomplete.

    Returns:
        The report.

    Raises:
        ValueError: If facts and closures differ in number, or a closure is of a database of another
            size.

    Warns:
        IncompleteClosureWarning: With `warn`, if an equivalent entry remains.
    """
    if len(facts) != len(closures):
        raise ValueError(f"facts and closures must pair up, got {len(facts)} and {len(closures)}")
    if any(closure.n_triplets != len(database.triplets) for closure in closures):
        raise ValueError(f"closures must be of this database of {len(database.triplets)} triplets")
    known = groups or AliasGroups.from_prompts(facts, database=database)
    wide = alias_closures(database, facts, groups=known)
    sure = alias_closures(database, facts, groups=known.without_shared_aliases())
    about = alias_closures(database, facts, groups=known, scope=("subject",))
    holding = alias_closures(database, facts, scope=("object",))
    exactly = alias_closures(database, facts, scope=("object",), key="strict")
    report = ClosureReport(
        facts=tuple(
            _fact_closure(fact, *(set(item.indices.tolist()) for item in found))
            for fact, *found in zip(
                facts, closures, wide, sure, about, holding, exactly, strict=True
            )
        )
    )
    if warn and not report.is_complete:
        warnings.warn(report.summary(), IncompleteClosureWarning, stacklevel=2)
    return report


def _fact_closure(
    fact: AuditPrompt,
    gone: set[int],
    stating: set[int],
    surely: set[int],
    about: set[int],
    holding: set[int],
    exactly: set[int],
) -> FactClosure:
    """Compare what is deleted with what states, is about and holds the fact's parts."""
    held = holding - gone
    shared = (held & about) - stating
    return FactClosure(
        prompt_id=fact.prompt_id,
        fact_id=fact.fact_id,
        subject=fact.subject,
        relation=fact.relation,
        gold_object=fact.gold_object,
        n_deleted=len(gone),
        remaining=tuple(sorted(stating - gone)),
        by_shared_alias=tuple(sorted(stating - surely - gone)),
        shared_surface=tuple(sorted(shared)),
        shared_by_punctuation=tuple(sorted(shared - exactly)),
        n_same_object=len(held),
        echoes=_echoes(fact),
    )


def _echoes(fact: AuditPrompt) -> tuple[str, ...]:
    """Find the accepted objects in which a name of the subject stands as whole words."""
    of = name_key("published")
    spoken = [f" {of(name)} " for name in names_in(fact, "subject")]
    return tuple(
        name
        for name in names_in(fact, "object")
        if any(subject in f" {of(name)} " for subject in spoken)
    )
