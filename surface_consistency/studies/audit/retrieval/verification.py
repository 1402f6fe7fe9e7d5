"""Whether prompts belong to a database, and whether their deletions leave what they should not.

A deletion that is checked by its own predicate always passes. So deletions are looked at by a wider
rule than they were made by: entries are compared under alias groups, names that any chain of
aliases of any prompt, or any of the keys, makes one. Where one prompt's aliases are wrong or short,
another's give it away.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surface_consistency.errors import ContaminationWarning, DataError, IncompleteClosureWarning
from surface_consistency.schemas.memory import AuditPrompt, FactDatabase
from surface_consistency.studies.audit.retrieval.alias_groups import (
    AliasGroups,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.closure import Closure
from surface_consistency.studies.audit.retrieval.triplet_index import (
    NameFinder,
    TripletIndex,
    is_among,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCoverage:
    """How many prompts a database can answer."""

    n_prompts: int
    """All prompts."""

    n_verbatim: int
    """Prompts whose fact is an entry, word for word."""

    n_by_alias: int
    """Further prompts of whose fact an entry states an alias form, without regard to case."""

    missing: tuple[int, ...]
    """Numbers (`prompt_id`) of the prompts for which there is no entry."""

    @property
    def missing_share(self) -> float:
        """Share of prompts without an entry, in [0, 1]."""
        return len(self.missing) / self.n_prompts


def database_coverage(
    database: FactDatabase, prompts: Iterable[AuditPrompt], *, max_missing: float = 0.5
) -> DatabaseCoverage:
    """Check that prompts belong to a database.

    A prompt fits when the database holds its subject, relation and object, each by its own name or
    by an alias. Prompts of another database that were taken for this one's would come out as facts
    that the model never knew.

    Args:
        database: The database.
        prompts: Prompts that are to be asked of it, at least one.
        max_missing: Largest share of prompts without an entry that is let through, in [0, 1].

    Returns:
        The counts.

    Raises:
        DataError: If a larger share has no entry.
        ValueError: If there are no prompts.

    Warns:
        ContaminationWarning: If some have no entry, but no larger share than allowed.
    """
    wanted = list(prompts)
    if not wanted:
        raise ValueError("prompts must hold at least one prompt")
    index = TripletIndex.of(database)
    finder = NameFinder(index, wanted, key="strict")
    n_verbatim, missing = 0, []
    for prompt in wanted:
        entries = finder.entries(prompt)
        fact = (prompt.subject, prompt.relation, prompt.gold_object)
        if any(index.triplets[int(entry)] == fact for entry in entries):
            n_verbatim += 1
        elif not len(entries):
            missing.append(prompt.prompt_id)
    fit = DatabaseCoverage(
        n_prompts=len(wanted),
        n_verbatim=n_verbatim,
        n_by_alias=len(wanted) - n_verbatim - len(missing),
        missing=tuple(missing),
    )
    if not fit.missing:
        return fit
    message = (
        f"{len(fit.missing)} of {fit.n_prompts} prompts ask for facts that the database of "
        f"{len(database.triplets)} triplets does not hold (prompt_id "
        f"{', '.join(map(str, fit.missing[:5]))}{', ...' if len(fit.missing) > 5 else ''})"
    )
    if fit.missing_share > max_missing:
        raise DataError(f"{message}: they belong to another database; pass the one they came with")
    warnings.warn(message, ContaminationWarning, stacklevel=2)
    return fit


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
            f"deletion {state}: {self.n_incomplete} of {len(self.facts)} leave an entry that "
            f"states the fact under another name{doubtful}, {self.n_absent} delete nothing; the "
            f"right answers of {self.n_shared_surface} still stand under another relation of the "
            f"subject ({self.n_shared_by_punctuation} by punctuation alone), those of "
            f"{self.n_echoing} contain their subject"
        )


def verify_closures(
    database: FactDatabase,
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
    index = TripletIndex.of(database)
    known = groups or index.alias_groups(facts)
    left = _Leftovers(index, facts, known)
    report = ClosureReport(facts=tuple(map(left.of, facts, closures)))
    if warn and not report.is_complete:
        warnings.warn(report.summary(), IncompleteClosureWarning, stacklevel=2)
    return report


class _Leftovers:
    """Compares what is deleted with what states, is about and holds the parts of facts."""

    def __init__(
        self, index: TripletIndex, facts: Sequence[AuditPrompt], groups: AliasGroups
    ) -> None:
        self._index = index
        self._wide = NameFinder(index, facts, groups=groups)
        self._sure = NameFinder(index, facts, groups=groups.without_shared_aliases())
        self._holding = NameFinder(index, facts, roles=["object"])
        self._exactly = NameFinder(index, facts, roles=["object"], key="strict")

    def of(self, fact: AuditPrompt, closure: Closure) -> FactClosure:
        """Tell what the deletion of one fact leaves."""
        gone, stating = closure.indices, self._wide.entries(fact)
        remaining = np.setdiff1d(stating, gone, assume_unique=True)
        objects, held = self._index.columns["object"], self._holding.names(fact, "object")
        about: dict[Role, Any] = {"subject": self._wide.names(fact, "subject"), "object": held}
        shared = np.setdiff1d(self._index.entries(about), np.union1d(gone, stating))
        is_exact = is_among(objects.ids[shared], self._exactly.names(fact, "object"))
        n_gone = int(is_among(objects.ids[gone], held).sum())
        return FactClosure(
            prompt_id=fact.prompt_id,
            fact_id=fact.fact_id,
            subject=fact.subject,
            relation=fact.relation,
            gold_object=fact.gold_object,
            n_deleted=len(gone),
            remaining=tuple(remaining.tolist()),
            by_shared_alias=tuple(np.setdiff1d(remaining, self._sure.entries(fact)).tolist()),
            shared_surface=tuple(shared.tolist()),
            shared_by_punctuation=tuple(shared[~is_exact].tolist()),
            n_same_object=objects.count(held) - n_gone,
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
