"""Results of other tools: any file or table of scores and answers as one long frame."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
