"""How often a corpus names things: entities, surface forms, pairs and n-grams."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
