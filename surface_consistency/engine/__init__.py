"""The engine: base classes of studies, and running, scoring and reporting of all studies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
