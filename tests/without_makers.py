"""A plugin of pytest: as if the distribution that makes data, and what only it needs, were absent.

    scripts/test -p tests.without_makers --ignore tests/surface_consistency_build tests

What is tested so is the library alone: it must import, and pass its tests.
"""

import importlib.util
import sys
from importlib import metadata
from importlib.abc import MetaPathFinder

ABSENT = frozenset({"datatrove", "duckdb", "isal", "msgspec", "numba", "surface_consistency_build"})
GROUP = "surface_consistency.commands"


class Absent(MetaPathFinder):
    """Finds nothing of these names."""

    def find_spec(self, name, path=None, target=None):
        """Refuse a module of an absent distribution."""
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def find_spec(name, package=None):
    """Say that there is no such module, as where it is absent."""
    return None if name.partition(".")[0] in ABSENT else _FIND_SPEC(name, package)


def entry_points(**parameters):
    """Entry points of all distributions but the absent one."""
    points = _ENTRY_POINTS(**parameters)
    if not parameters:  # What asks for all of them looks for no command.
        return points
    return metadata.EntryPoints(point for point in points if point.group != GROUP)


_FIND_SPEC = importlib.util.find_spec
_ENTRY_POINTS = metadata.entry_points


def block():
    """Let the distribution be absent from now on."""
    sys.meta_path.insert(0, Absent())
    metadata.entry_points = entry_points
    importlib.util.find_spec = find_spec


def pytest_configure(config):
    """Let it be absent for a run of the tests that names this plugin."""
    block()
