"""Reader of results of other tools: scores and answers from files or tables, as one long frame."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
