"""Does a language model give the same answer when the same fact is asked another way?

Functions of a frame return a `Result` with clustered confidence intervals: `accuracy`,
`consistency`, `paired`, `compare`, `forgetting`, `alignment`, `partial_correlation`. The other
names are data sets, matching and subpackages. All are loaded on first use, so that
`import surface_consistency` stays light; `docs/reference/library.md` lists them.
"""

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name on first use; the error for an unknown name suggests a similar one."""
    try:
        return _load(name)
    except AttributeError:
        if name.startswith("_"):
            raise
        from surface_consistency.text import did_you_mean

        parts = [part for part in ("metrics", "matching", "data") if name in _load(part).__all__]
        remedy = f"; it is surface_consistency.{parts[0]}.{name}" if parts else None
        remedy = remedy or did_you_mean(name, __all__)
        raise AttributeError(f"surface_consistency has no attribute {name}{remedy}") from None
