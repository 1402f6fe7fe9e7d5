"""Public names that a package loads on first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["attach"]


def attach(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names are loaded on first use.

    Args:
        package: The package's `__name__`.
        homes: The module of each public name, relative to the package: `{"mcnemar": "tests"}`.

    Returns:
        The two functions, to be assigned in the package's `__init__`.
    """

    def load(name: str) -> object:
        """Load a public name from its module on first use."""
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
