"""What must go for a fact to be gone, and whether it is."""

from surface_consistency.retrieval.closure.alias_closure import (
    Closure,
    alias_closure,
    alias_closures,
)
from surface_consistency.retrieval.closure.alias_groups import AliasGroups
from surface_consistency.retrieval.closure.canonical import CanonicalDatabase, canonicalise
from surface_consistency.retrieval.closure.deletion import deleted_entries, deletion_masks
from surface_consistency.retrieval.closure.keys import KEYS, NameKey
from surface_consistency.retrieval.closure.similarity_closure import similarity_closures
from surface_consistency.retrieval.closure.verification import (
    ClosureReport,
    FactClosure,
    verify_closures,
)

__all__ = [
    "KEYS",
    "AliasGroups",
    "CanonicalDatabase",
    "Closure",
    "ClosureReport",
    "FactClosure",
    "NameKey",
    "alias_closure",
    "alias_closures",
    "canonicalise",
    "deleted_entries",
    "deletion_masks",
    "similarity_closures",
    "verify_closures",
]
