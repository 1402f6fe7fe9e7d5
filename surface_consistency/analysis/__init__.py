"""Comparisons of results: models on the same items, and two conditions of one file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
