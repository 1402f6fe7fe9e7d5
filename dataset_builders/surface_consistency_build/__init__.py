"""Build data sets from their sources: dumps, counts, links, written questions, cards.

This package has the same version as surface-consistency, and writes the files that the library
reads.
"""

import lazy_loader

import surface_consistency
from surface_consistency.errors import MissingDependencyError

__version__ = "0.1.0"

if surface_consistency.__version__ != __version__:
    raise MissingDependencyError(
        f"surface-consistency-build {__version__}",
        "surface-consistency",
        installed=surface_consistency.__version__,
        allowed=f"=={__version__}",
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
