"""Topics and paraphrases written by a model and reviewed by a person."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
