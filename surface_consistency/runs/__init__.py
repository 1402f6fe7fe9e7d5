"""Files of a run on disk: its log, its lock, and files that are written atomically."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
