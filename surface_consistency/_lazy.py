"""Names of a package that are imported when they are asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["attach"]


def attach(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package whose names load their modules late.

    Args:
        package: The package's `__name__`.
        names: Public name to the module of the package that defines it, such as "sql".

    Returns:
        The two functions, to be assigned at the package's top.

    Examples:
        >>> get, names = attach("surface_consistency", {"surface_from_title": "text"})
        >>> get("surface_from_title")("Paris_(Texas)"), names()
        ('Paris', ['surface_from_title'])
    """

    def get(name: str) -> object:
        """Import the module that defines a name, and return what it names."""
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{names[name]}"), name)

    return get, lambda: sorted(names)
