"""User-defined items in several forms: wordings, names, languages, prompts, orders of options."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
