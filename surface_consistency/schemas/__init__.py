"""Records: the only language between the stages of a study."""

from surface_consistency.schemas._record import Record
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
    "Lookup",
    "LookupQuery",
    "MemoryState",
    "Message",
    "PairedOutcome",
    "Prompt",
    "QuestionRealization",
    "Record",
    "RetrievalTrace",
    "ScoredText",
    "ScoringRequest",
    "SurfaceForm",
    "Triplet",
    "TripletDatabase",
    "Verdict",
    "read_jsonl",
    "write_jsonl",
]
