"""`run STUDY` for every installed study: found by entry point, loaded when it is run."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter

__all__ = ["STUDIES", "StudyEntry", "add_studies", "find_studies", "run_app"]

STUDIES: Final = "surface_consistency.studies"
"""Entry point group of studies."""

_OURS: Final = "surface-consistency"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEntry:
    """One installed study."""

    name: str
    """What it is called on the command line."""

    description: str
    """Its first line of documentation, or why it cannot be run."""

    points: tuple[EntryPoint, ...]
    """Where it is defined; more than one where distributions share a name."""

    def load(self) -> Any:  # noqa: ANN401
        """Import the study.

        Returns:
            What the entry point names.

        Raises:
            ValueError: If it cannot be imported or is defined twice; names the distribution.
        """
        if len(self.points) > 1:
            raise ValueError(f"study {self.name!r} {_twice(self.points)}")
        try:
            return self.points[0].load()
        except Exception as error:
            raise ValueError(
                f"study {self.name!r} {_broken(self.points[0], error)}; repair or uninstall it"
            ) from error


def find_studies(points: Iterable[EntryPoint] | None = None) -> dict[str, StudyEntry]:
    """List the installed studies without importing those that come along with this package.

    Ours are described from their source, so that `--help` loads no numpy; a study from elsewhere
    is imported, so that the list tells whether it works. None can break the list.

    Args:
        points: Entry points; None for all that are installed.

    Returns:
        The studies by name, sorted.
    """
    named: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=STUDIES) if points is None else points:
        named.setdefault(point.name, []).append(point)
    return {
        name: StudyEntry(name=name, description=_describe(group), points=tuple(group))
        for name, group in sorted(named.items())
    }


def add_studies(
    app: App,
    make_command: Callable[[Any], Callable[..., object]],
    *,
    studies: Iterable[StudyEntry] | None = None,
) -> None:
    """Add a subcommand for each study, which is loaded when it is run or its help is asked for.

    Args:
        app: The command above, such as `run`.
        make_command: Makes the command of a loaded study, as `record_command` does.
        studies: The studies; None for all that are installed.
    """
    for study in find_studies().values() if studies is None else studies:
        source = _Source(study, make_command)
        key = f"{study.name}@{id(app)}"
        _sources[key] = source
        app.command(f"{__name__}:{key}", name=study.name, help=study.description)


def run_app(app: App, argv: Sequence[str] | None = None) -> int:
    """Run a command line; a user's mistake is one line on standard error and code 2.

    Args:
        app: The command line.
        argv: Arguments after the program's name; None takes those of the process.

    Returns:
        0, or 2 for arguments that cannot be read and for a ValueError of the command.
    """
    try:
        app(argv, exit_on_error=False, print_error=False, result_action="return_value")
    except MissingArgumentError as error:
        name = error.argument.name if error.argument else "an option"
        print(f"error: {name} is required and takes a value", file=sys.stderr)
        return 2
    except (CycloptsError, ValueError) as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 2
    return 0


@dataclass(frozen=True, slots=True)
class _Source:
    """What makes the command of a study."""

    study: StudyEntry
    make_command: Callable[[Any], Callable[..., object]]


_sources: dict[str, _Source] = {}


def __getattr__(name: str) -> Callable[..., object]:
    """Make the command of a study: cyclopts imports commands as attributes of a module."""
    if name not in _sources:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    source = _sources[name]
    try:
        study = source.study.load()
    except ValueError as error:
        return _refusal(str(error), source.study.description)
    try:
        return source.make_command(study)
    except Exception as error:
        reason = f"study {source.study.name!r} {_broken(source.study.points[0], error)}"
        return _refusal(reason, source.study.description)


def _refusal(reason: str, description: str) -> Callable[..., object]:
    """Make a command that only refuses: listing commands must not fail on a broken one."""

    def refuse(
        *_: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    ) -> None:
        raise ValueError(reason)

    refuse.__doc__ = description
    return refuse


def _describe(points: list[EntryPoint]) -> str:
    """Return a study's first line of documentation, or what is wrong with it."""
    if len(points) > 1:
        return f"cannot be run: {_twice(points)}"
    point = points[0]
    try:
        if point.dist is not None and point.dist.name == _OURS:
            text = _from_source(point)
        else:
            study = point.load()
            text = getattr(study, "__doc__", None) or inspect.getmodule(study).__doc__
    except Exception as error:
        return f"cannot be run: {_distribution(point)}: {_cause(error)}"
    return (text or "").strip().partition("\n")[0]


def _from_source(point: EntryPoint) -> str | None:
    """Read the docstring of what an entry point names, or of its module, without importing it."""
    spec = importlib.util.find_spec(point.module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module named {point.module!r}")
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    documented = {
        node.name: ast.get_docstring(node)
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        made = node.value.func.id if _is_plain_call(node.value) else None  # type: ignore[union-attr]
        for target in targets:
            if isinstance(target, ast.Name) and made in documented:
                documented[target.id] = documented[made]
    return documented.get(point.attr) or ast.get_docstring(tree)


def _is_plain_call(node: ast.expr | None) -> bool:
    """Tell whether an expression calls something by its bare name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _broken(point: EntryPoint, error: Exception) -> str:
    """Say that a study cannot be imported, why, and whose it is."""
    return f"of {_distribution(point)} cannot be loaded: {_cause(error)}"


def _cause(error: Exception) -> str:
    """Write an error in one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _twice(points: Iterable[EntryPoint]) -> str:
    """Say that several distributions define a study."""
    owners = " and ".join(_distribution(point) for point in points)
    return f"is defined by {owners}; uninstall all but one"


def _distribution(point: EntryPoint) -> str:
    """Name the distribution of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else f"'{point.value}'"
