"""The data sets: their loaders, one frame each, and the sources that they read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
