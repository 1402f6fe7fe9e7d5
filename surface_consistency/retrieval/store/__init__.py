"""A store of facts as a model meets it: lookups in, traces out, under an explicit policy."""

from surface_consistency.retrieval.store.policy import Fallback, Selection, select_candidate
from surface_consistency.retrieval.store.triplet_store import TripletStore

__all__ = ["Fallback", "Selection", "TripletStore", "select_candidate"]
