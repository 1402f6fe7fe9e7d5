"""Matching rules, which score predictions by their references, one by one and in bulk."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
