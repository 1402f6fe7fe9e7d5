"""Does a language model give the same answer when the same fact is asked another way?

Functions of a frame return a `Result` with clustered confidence intervals: `accuracy`,
`consistency`, `paired`, `compare`, `forgetting`, `alignment`, `partial_correlation`. The other
names are data sets, matching and subpackages. All are loaded on first use, so that
`import surface_consistency` stays light; `docs/reference/library.md` lists them.
"""

import lazy_loader

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
