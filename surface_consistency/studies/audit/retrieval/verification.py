"""Whether prompts belong to a database, and whether their deletions leave what they should not.

A deletion that is checked by its own predicate always passes. So deletions are looked at by a wider
rule than they were made by: entries are compared under alias groups, names that any chain of
aliases of any prompt, or any of the keys, makes one. Where one prompt's aliases are wrong or short,
another's give it away.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from surface_consistency.errors import DataError, DataWarning
from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import (
    AliasGroups,
    Role,
    name_key,
    names_in,
)
from surface_consistency.studies.audit.retrieval.closure import (
    alias_closures,
    check_closures,
    equivalent_entries,
    equivalent_names,
    split_by_fact,
)
from surface_consistency.studies.audit.retrieval.triplets import Ints, Triplets, is_among


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
    triplets: Triplets, prompts: Sequence[AuditPrompt], *, max_missing: float = 0.5
) -> DatabaseCoverage:
    """Check that prompts belong to a database.

    A prompt fits when the database holds its subject, relation and object, each by its own name or
    by an alias. Prompts of another database that were taken for this one's would come out as facts
    that the model never knew.

    Args:
        triplets: The database.
        prompts: Prompts that are to be asked of it, at least one.
        max_missing: Maximum share of prompts without an entry, in [0, 1].

    Returns:
        The counts.

    Raises:
        DataError: If a larger share has no entry.
        ValueError: If there are no prompts.

    Warns:
        DataWarning: If some have no entry, but no larger share than allowed.
    """
    if not prompts:
        raise ValueError("prompts must hold at least one prompt")
    n_verbatim, missing = 0, []
    closures = alias_closures(triplets, prompts, rule="strict")
    for prompt, entries in zip(prompts, closures, strict=True):
        fact = (prompt.subject, prompt.relation, prompt.gold_object)
        if any(triplets[int(entry)] == fact for entry in entries):
            n_verbatim += 1
        elif not len(entries):
            missing.append(prompt.prompt_id)
    fit = DatabaseCoverage(
        n_prompts=len(prompts),
        n_verbatim=n_verbatim,
        n_by_alias=len(prompts) - n_verbatim - len(missing),
        missing=tuple(missing),
    )
    if not fit.missing:
        return fit
    message = (
        f"{len(fit.missing)} of {fit.n_prompts} prompts ask for facts that the database of "
        f"{len(triplets)} triplets does not hold (prompt_id "
        f"{', '.join(map(str, fit.missing[:5]))}{', ...' if len(fit.missing) > 5 else ''})"
    )
    if fit.missing_share > max_missing:
        raise DataError(f"{message}: they belong to another database; pass the one they came with")
    warnings.warn(message, DataWarning, stacklevel=2)
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
    triplets: Triplets,
    facts: Sequence[AuditPrompt],
    closures: Sequence[Ints],
    *,
    groups: AliasGroups | None = None,
    warn: bool = False,
) -> ClosureReport:
    """Look for what deletions leave.

    Args:
        triplets: The database.
        facts: The facts, with their aliases.
        closures: Their deletions, in the same order, as of `alias_closures`.
        groups: Which names are one; None for those that the aliases of all facts join.
        warn: Whether to warn when a deletion is incomplete.

    Returns:
        The report.

    Raises:
        ValueError: If facts and closures differ in number, or a closure is of another database.

    Warns:
        DataWarning: With `warn`, if an equivalent entry remains.
    """
    if len(facts) != len(closures):
        raise ValueError(f"facts and closures must pair up, got {len(facts)} and {len(closures)}")
    check_closures(closures, len(triplets))
    known = groups or triplets.alias_groups(facts)
    report = ClosureReport(facts=tuple(_leftovers(triplets, facts, closures, known)))
    if warn and not report.is_complete:
        warnings.warn(report.summary(), DataWarning, stacklevel=2)
    return report


def _leftovers(
    triplets: Triplets,
    facts: Sequence[AuditPrompt],
    closures: Sequence[Ints],
    groups: AliasGroups,
) -> Iterator[FactClosure]:
    """Compare what is deleted with what states, is about and holds the parts of facts.

    A pair of a fact and an entry is `fact * n_entries + entry`.
    """
    n_facts, n_entries = len(facts), len(triplets)
    sizes = [len(closure) for closure in closures]
    gone = np.repeat(np.arange(n_facts) * n_entries, sizes)
    gone += np.concatenate([np.empty(0, np.int64), *closures])
    wide = equivalent_names(triplets, facts, groups)
    held = equivalent_names(triplets, facts, roles=["object"])["object"]
    stating = equivalent_entries(triplets, wide)
    remaining = np.setdiff1d(stating, gone, assume_unique=True)
    # Few facts leave an entry; only for these the groups without shared aliases are computed.
    numbers = np.unique(remaining // max(n_entries, 1))
    some = [facts[number] for number in numbers]
    apart = groups.of_facts(some).without_shared_aliases()
    sure = equivalent_entries(triplets, equivalent_names(triplets, some, apart))
    sure = numbers[sure // n_entries] * n_entries + sure % n_entries
    doubtful = np.setdiff1d(remaining, sure, assume_unique=True)
    about: dict[Role, Ints] = {"subject": wide["subject"], "object": held}
    shared = np.setdiff1d(equivalent_entries(triplets, about), np.union1d(gone, stating))
    strict = equivalent_names(triplets, facts, "strict", ["object"])["object"]
    by_punctuation = shared[~is_among(_objects(triplets, shared), strict)]
    objects = triplets.columns["object"]
    holders, names = np.divmod(held, max(len(objects.names), 1))
    counts = np.bincount(objects.ids, minlength=len(objects.names))
    n_same = np.bincount(holders, counts[names], n_facts).astype(np.int64)
    n_same -= np.bincount(
        gone[is_among(_objects(triplets, gone), held)] // n_entries, None, n_facts
    )
    parted = [
        split_by_fact(pairs, n_facts, n_entries)
        for pairs in (remaining, doubtful, shared, by_punctuation)
    ]
    for fact, n_deleted, n_same_object, *left in zip(
        facts, sizes, n_same.tolist(), *parted, strict=True
    ):
        yield FactClosure(
            prompt_id=fact.prompt_id,
            fact_id=fact.fact_id,
            subject=fact.subject,
            relation=fact.relation,
            gold_object=fact.gold_object,
            n_deleted=n_deleted,
            remaining=tuple(left[0].tolist()),
            by_shared_alias=tuple(left[1].tolist()),
            shared_surface=tuple(left[2].tolist()),
            shared_by_punctuation=tuple(left[3].tolist()),
            n_same_object=n_same_object,
            echoes=_echoes(fact),
        )


def _objects(triplets: Triplets, pairs: Ints) -> Ints:
    """Return the objects of pairs of a fact and an entry, each as a name of its fact."""
    column, n_entries = triplets.columns["object"], max(len(triplets), 1)
    return pairs // n_entries * len(column.names) + column.ids[pairs % n_entries]


def _echoes(fact: AuditPrompt) -> tuple[str, ...]:
    """Find the accepted objects in which a name of the subject stands as whole words."""
    of = name_key("published")
    spoken = [f" {of(name)} " for name in names_in(fact, "subject")]
    return tuple(
        name
        for name in names_in(fact, "object")
        if any(subject in f" {of(name)} " for subject in spoken)
    )
