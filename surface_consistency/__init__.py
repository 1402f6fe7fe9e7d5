"""Does a language model answer the same fact alike under two conditions?

Schemas, datasets, matchers, paired metrics with intervals, and a reference inference runner. The
names below are loaded on first use, so `import surface_consistency` stays light.
"""

import lazy_loader

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
