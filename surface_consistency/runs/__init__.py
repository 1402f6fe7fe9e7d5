"""What a run leaves on disk: its log, its lock, and files that appear whole or not at all."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
