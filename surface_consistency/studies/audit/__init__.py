"""The audit of forgetting: what survives the deletion of a fact, by which way, and from where."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
