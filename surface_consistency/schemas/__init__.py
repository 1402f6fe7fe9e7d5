"""Records: the only language between the stages of a study."""

from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.jsonl import read_jsonl, write_jsonl
from surface_consistency.schemas.memory import (
    AuditPrompt,
    Candidate,
    FactDatabase,
    Lookup,
    LookupQuery,
    MemoryState,
    RetrievalTrace,
    Triplet,
    TripletDatabase,
)
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.prompts import GenerationParams, Message, Prompt
from surface_consistency.schemas.questions import (
    CanonicalRedirectPair,
    DataSource,
    Entity,
    FactualTriple,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest
from surface_consistency.schemas.settings import Settings, values_of_items
from surface_consistency.schemas.verdicts import Verdict

__all__ = [
    "AuditPrompt",
    "Candidate",
    "CanonicalRedirectPair",
    "DataSource",
    "Entity",
    "FactDatabase",
    "FactualTriple",
    "Generation",
    "GenerationParams",
    "Items",
    "Lookup",
    "LookupQuery",
    "MemoryState",
    "Message",
    "NonEmpty",
    "PairedOutcome",
    "Prompt",
    "QuestionRealization",
    "Record",
    "RetrievalTrace",
    "ScoredText",
    "ScoringRequest",
    "Settings",
    "SurfaceForm",
    "Triplet",
    "TripletDatabase",
    "Verdict",
    "read_jsonl",
    "values_of_items",
    "write_jsonl",
]
