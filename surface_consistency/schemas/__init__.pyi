from ._record import Items as Items, Record as Record
from .generations import Generation as Generation
from .jsonl import read_jsonl as read_jsonl, write_jsonl as write_jsonl
from .memory import (
    AuditPrompt as AuditPrompt,
    Candidate as Candidate,
    LookupQuery as LookupQuery,
    MemoryState as MemoryState,
    RetrievalTrace as RetrievalTrace,
    Triplet as Triplet,
)
from .outcomes import PairedOutcome as PairedOutcome
from .prompts import GenerationParams as GenerationParams, Message as Message, Prompt as Prompt
from .questions import (
    DataSource as DataSource,
    Entity as Entity,
    FactualTriple as FactualTriple,
    QuestionRealization as QuestionRealization,
    SurfaceForm as SurfaceForm,
)
from .scoring import ScoringRequest as ScoringRequest
from .settings import Settings as Settings
from .verdicts import Verdict as Verdict
