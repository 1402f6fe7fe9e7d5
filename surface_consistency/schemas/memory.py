"""Facts in a store outside the model: triplets, lookups, and their retrieval traces."""

from typing import Literal, NamedTuple

from surface_consistency.schemas._record import Items, NonEmpty, Record

MemoryState = Literal["FULL", "DEL-ON", "DEL-OFF"]
"""The full database; the fact deleted; the fact deleted and retrieval off."""


class Triplet(NamedTuple):
    """One entry of a database; a list of three strings in its files."""

    subject: str
    """Entity that is looked up."""

    relation: str
    """Relation of the entity."""

    object: str
    """The value that a lookup returns."""


class AuditPrompt(Record):
    """One row of a prompt file: a target fact in one prompt style."""

    prompt_id: int
    """Number of the row in its file."""

    fact_id: int
    """Number of the fact in its database; not unique across databases."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    relation: NonEmpty
    """Relation as the prompt names it."""

    gold_object: NonEmpty
    """The correct object."""

    prompt_text: NonEmpty
    """Text of the prompt."""

    subject_aliases: Items[str] = ()
    """Other names of the subject that the closure covers."""

    relation_aliases: Items[str] = ()
    """Other names of the relation that the closure covers."""

    object_aliases: Items[str] = ()
    """Other names of the object that the closure covers and that count as correct."""

    base_fact: str | None = None
    """The original fact, before renaming, that this prompt states or from which its fact was made,
    as "subject | relation"; None if it is unknown or absent."""


class LookupQuery(Record):
    """Query of a model to the store."""

    entity: str
    """The entity part, as the model wrote it."""

    relation: str
    """The relation part, as the model wrote it."""


class Candidate(Record):
    """One entry that was retrieved."""

    subject: str
    """Subject of the entry."""

    relation: str
    """Relation of the entry."""

    object: str
    """Object of the entry."""

    score: float
    """Similarity to the query; higher is closer. Its range depends on the retriever."""

    matches_subject: bool
    """Whether the subject is equivalent to the target fact's."""

    matches_relation: bool
    """Whether the relation is equivalent to the target fact's."""

    matches_object: bool
    """Whether the object is equivalent to the target fact's."""

    supports_target_fact: bool
    """Whether subject, relation and object are equivalent: the entry states the target fact."""

    matches_deleted_fact: bool
    """Whether deleting the fact removes the entry; also set in FULL, when it is not deleted."""


class RetrievalTrace(Record):
    """Record of one lookup, in the published schema."""

    state: MemoryState
    """State of the store."""

    retrieval_enabled: bool
    """False if retrieval is off in this state."""

    lookup_query: LookupQuery | None
    """The query; None if the model made none."""

    threshold: float | None
    """Minimum score of an accepted entry; None for no limit."""

    all_candidates: Items[Candidate] = ()
    """The closest entries of the whole store, deleted ones included, with their scores."""

    deleted_candidates: Items[Candidate] = ()
    """Entries of `all_candidates` that are deleted."""

    retained_candidates: Items[Candidate] = ()
    """The closest entries among those that are not deleted."""

    selected_candidate: Candidate | None = None
    """The entry whose value was returned; None on abstention."""

    selected_value: str | None = None
    """The value that the model received; None if it received none."""

    is_fallback: bool = False
    """Whether the entry was below the threshold and used as a fallback."""

    error: str | None = None
    """Why the lookup failed; None if it did not fail."""


class Lookup(Record):
    """One lookup within a generation."""

    query: LookupQuery
    """The query of the model."""

    value: str | None
    """The inserted value; None if nothing was inserted."""

    trace: RetrievalTrace | None = None
    """Record of the retrieval; None if the store does not keep traces."""
