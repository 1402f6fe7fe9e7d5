"""The room proves the doors of the others: it imports public names alone, and in no circle."""

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import surface_consistency

PACKAGE = Path(surface_consistency.__file__).parent
ROOM = PACKAGE / "studies" / "mechanism"
FILES = sorted(ROOM.rglob("*.py"))
OWN = "surface_consistency.studies.mechanism"


def imports(file):
    """All imports of a file: those within functions and those for types alone too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((name.name, ()) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: imports are absolute"
            yield node.module, tuple(name.name for name in node.names)


def door_names(door):
    """The names that a room or a module of the top shows: its stub's, or its `__all__`."""
    stub = PACKAGE / door / "__init__.pyi"
    if stub.is_file():
        return {
            name.asname
            for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
    return set(importlib.import_module(f"surface_consistency.{door}").__all__)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOM)))
def test_other_rooms_are_entered_by_their_doors(file):
    """`from surface_consistency.<door> import <name of the door>`, and nothing else."""
    for module, names in imports(file):
        top, *rest = module.split(".")
        if top != "surface_consistency" or module.startswith(OWN):
            continue
        assert len(rest) == 1, f"{file.name} imports {module}, which is no door"
        hidden = set(names) - door_names(rest[0])
        assert names, f"{file.name} imports the whole of {module}; name what it needs"
        assert not hidden, f"{module} does not export {sorted(hidden)}"


def test_no_circle_of_files():
    """Imports for types alone count as well."""
    modules = {
        f"{OWN}.{'.'.join(file.relative_to(ROOM).with_suffix('').parts)}": file for file in FILES
    }
    graph = {
        name: {
            known
            for module, names in imports(file)
            for known in (module, *(f"{module}.{one}" for one in names))
            if known in modules
        }
        for name, file in modules.items()
    }

    assert len(list(TopologicalSorter(graph).static_order())) == len(FILES)
