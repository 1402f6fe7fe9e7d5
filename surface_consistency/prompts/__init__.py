"""Records to prompts: what is asked of the model, and in which company."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
