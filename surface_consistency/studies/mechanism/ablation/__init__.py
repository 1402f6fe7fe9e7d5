"""What each component of a model does for an answer: ablation, exact and batched."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
