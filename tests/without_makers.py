"""A pytest plugin that hides the dataset builders and the packages that only they require.

    scripts/test -p tests.without_makers --ignore tests/surface_consistency_build tests

The library alone must be importable and pass its tests.
"""

import importlib.util
import sys
from importlib import metadata
from importlib.abc import MetaPathFinder

ABSENT = frozenset({"datatrove", "duckdb", "isal", "msgspec", "numba", "surface_consistency_build"})
GROUP = "surface_consistency.commands"


class Absent(MetaPathFinder):
    """Rejects the import of these modules."""

    def find_spec(self, name, path=None, target=None):
        """Raise an error for a module of an absent distribution."""
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def find_spec(name, package=None):
    """Return None for an absent module."""
    return None if name.partition(".")[0] in ABSENT else _FIND_SPEC(name, package)


def entry_points(**parameters):
    """Return the entry points of all distributions except the absent one."""
    points = _ENTRY_POINTS(**parameters)
    if not parameters:  # A call for all entry points is not a search for commands.
        return points
    return metadata.EntryPoints(point for point in points if point.group != GROUP)


_FIND_SPEC = importlib.util.find_spec
_ENTRY_POINTS = metadata.entry_points


def block():
    """Hide the distribution from now on."""
    sys.meta_path.insert(0, Absent())
    metadata.entry_points = entry_points
    importlib.util.find_spec = find_spec


def pytest_configure(config):
    """Hide the distribution if this plugin is loaded."""
    block()
