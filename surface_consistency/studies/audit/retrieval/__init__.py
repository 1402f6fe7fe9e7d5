"""Stores of facts: triplet databases, deletion, retrievers and their traces."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
