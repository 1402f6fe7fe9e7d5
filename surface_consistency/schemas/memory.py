"""Facts in a store outside the model: triplets, lookups, and the trace of each."""

from typing import Literal, NamedTuple

from surface_consistency.schemas._record import Items, NonEmpty, Record

MemoryState = Literal["FULL", "DEL-ON", "DEL-OFF"]
"""The database whole; the fact deleted; the fact deleted and retrieval off."""


class Triplet(NamedTuple):
    """One entry of a database; a list of three strings in its files."""

    subject: str
    """What is looked up."""

    relation: str
    """What is asked of it."""

    object: str
    """The value that a lookup returns."""


class AuditPrompt(Record):
    """One row of a prompt file: a target fact in one prompt style."""

    prompt_id: int
    """Number of the row in its file."""

    fact_id: int
    """Number of the fact in its database; repeats across databases."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    relation: NonEmpty
    """Relation as the prompt names it."""

    gold_object: NonEmpty
    """The object that is right."""

    prompt_text: NonEmpty
    """What the model reads."""

    subject_aliases: Items[str] = ()
    """Other names of the subject that the closure covers."""

    relation_aliases: Items[str] = ()
    """Other names of the relation that the closure covers."""

    object_aliases: Items[str] = ()
    """Other names of the object that the closure covers and that count as right."""

    base_fact: str | None = None
    """The fact before renaming that this one states or was made from, as "subject | relation"; None
    if it is unknown or there is none."""


class LookupQuery(Record):
    """What a model asks of the store."""

    entity: str
    """The entity part, as the model wrote it."""

    relation: str
    """The relation part, as the model wrote it."""


class Candidate(Record):
    """One entry that retrieval brought up."""

    subject: str
    """Subject of the entry."""

    relation: str
    """Relation of the entry."""

    object: str
    """Object of the entry."""

    score: float
    """Similarity to the query; higher is closer. Its range is the retriever's."""

    matches_subject: bool
    """Whether the subject is equivalent to the target fact's."""

    matches_relation: bool
    """Whether the relation is equivalent to the target fact's."""

    matches_object: bool
    """Whether the object is equivalent to the target fact's."""

    supports_target_fact: bool
    """Whether all three are: the entry states the target fact."""

    matches_deleted_fact: bool
    """Whether the deletion of the fact removes the entry, in FULL too, where it is still there."""


class RetrievalTrace(Record):
    """Everything that one lookup saw, in the published schema."""

    state: MemoryState
    """State of the store."""

    retrieval_enabled: bool
    """False when the state answers no lookup."""

    lookup_query: LookupQuery | None
    """What was asked; None when the model asked nothing."""

    threshold: float | None
    """Lowest score that is accepted; None for no limit."""

    all_candidates: Items[Candidate] = ()
    """The closest entries of the whole store, deleted ones included, with their scores."""

    deleted_candidates: Items[Candidate] = ()
    """Those of them that are deleted."""

    retained_candidates: Items[Candidate] = ()
    """The closest entries of what remains: deleted entries take no slot."""

    selected_candidate: Candidate | None = None
    """The entry that answered; None on abstention."""

    selected_value: str | None = None
    """What the model was given; None when it was given nothing."""

    is_fallback: bool = False
    """Whether the entry was below the threshold and taken all the same."""

    error: str | None = None
    """Why the lookup could not be made; None when it was."""


class Lookup(Record):
    """One lookup within a generation."""

    query: LookupQuery
    """What the model asked."""

    value: str | None
    """What was inserted; None when nothing was."""

    trace: RetrievalTrace | None = None
    """How the value came about; None when the store keeps no trace."""
