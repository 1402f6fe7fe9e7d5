"""The audit of forgetting: which answers survive the deletion of a fact, and from which source."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
