"""Subcommands for whatever packages register: listed without loading, loaded when called."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from cyclopts import App, CycloptsError, MissingArgumentError

from surface_consistency.errors import PluginError, SurfaceConsistencyError

__all__ = ["ANALYSES", "STUDIES", "add_plugins", "run_app"]

STUDIES: Final = "surface_consistency.studies"
"""Entry point group of studies."""

ANALYSES: Final = "surface_consistency.analyses"
"""Entry point group of analyses."""

_OURS: Final = "surface-consistency"


def add_plugins(
    app: App,
    group: str,
    make_command: Callable[[Any], Callable[..., object]],
    *,
    called: str | None,
    points: Iterable[EntryPoint] | None = None,
) -> None:
    """Add a subcommand for each entry point of a group; one that is broken breaks no other.

    Those of this package are described from their source, so that `--help` loads no numpy; one of
    another package is imported, so that the list tells whether it works.

    Args:
        app: The command above, such as `run`.
        group: The entry point group.
        make_command: Makes the command of what is loaded.
        called: The subcommand that is called, which is loaded; None for none.
        points: Entry points; None for all that are installed.
    """
    named: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group) if points is None else points:
        if all(point.value != other.value for other in named.setdefault(point.name, [])):
            named[point.name].append(point)
    for name, found in sorted(named.items()):
        command = _loaded(found, make_command) if name == called else _unloaded
        app.command(command, name=name, help=_describe(found) if command is _unloaded else None)


def run_app(app: App, argv: Sequence[str], *, debug: bool = False) -> int:
    """Run a command line; a user's mistake is one line on standard error and code 2.

    Args:
        app: The command line.
        argv: Arguments after the program's name.
        debug: Whether errors keep their traceback.

    Returns:
        0, or 2 for arguments that cannot be read and for what the command refuses.
    """
    try:
        app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except MissingArgumentError as error:
        name = error.argument.name if error.argument else "an option"
        print(f"error: {name} is required and takes a value", file=sys.stderr)
        return 2
    except (CycloptsError, SurfaceConsistencyError, ValueError, OSError) as error:
        if debug and not isinstance(error, CycloptsError):
            raise
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 2
    return 0


def _unloaded() -> None:
    """Stand for a command that is not called."""


def _loaded(
    points: list[EntryPoint], make_command: Callable[[Any], Callable[..., object]]
) -> Callable[..., object]:
    """Load what is called and make its command."""
    if len(points) > 1:
        raise PluginError(f"{points[0].name!r} {_twice(points)}")
    try:
        return make_command(points[0].load())
    except Exception as error:
        # An entry point is anyone's code: whatever it raises is told the same way.
        raise PluginError(
            f"{points[0].name!r} of {_distribution(points[0])} cannot be loaded: {_cause(error)}; "
            "repair or uninstall it"
        ) from error


def _describe(points: list[EntryPoint]) -> str:
    """Return a first line of documentation, or what is wrong."""
    if len(points) > 1:
        return f"cannot be run: {_twice(points)}"
    point = points[0]
    try:
        if point.dist is not None and point.dist.name == _OURS:
            text = _from_source(point)
        else:
            found = point.load()
            text = getattr(found, "__doc__", None) or inspect.getmodule(found).__doc__
    except Exception as error:
        # As above: a broken plugin must not break the list.
        return f"cannot be run: {_distribution(point)}: {_cause(error)}"
    return (text or "").strip().partition("\n")[0]


def _from_source(point: EntryPoint) -> str | None:
    """Read the docstring of the class that an entry point names, without importing it."""
    spec = importlib.util.find_spec("surface_consistency")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no module named 'surface_consistency'")
    path = Path(spec.origin).parent.joinpath(*point.module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    named = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == point.attr)
    node = next(named, None)
    return ast.get_docstring(tree if node is None else node)


def _cause(error: Exception) -> str:
    """Write an error in one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _twice(points: Iterable[EntryPoint]) -> str:
    """Say that several distributions register one name."""
    owners = " and ".join(_distribution(point) for point in points)
    return f"is defined by {owners}; uninstall all but one"


def _distribution(point: EntryPoint) -> str:
    """Name the distribution of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else f"'{point.value}'"
