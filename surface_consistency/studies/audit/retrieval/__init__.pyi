from .closure import alias_closures as alias_closures
from .retriever import Retriever as Retriever
from .triplet_store import TripletStore as TripletStore
from .triplets import Triplets as Triplets
from .verification import closure_counts as closure_counts, verify_closures as verify_closures
