"""Find studies, analyses, runners and matching rules of all installed packages by name.

Packages register them as entry points. The studies of this package are registered in the same way;
its runners and rules are built in. Other objects are imported by "module:attribute" only if the
user names them, on the command line or within `importable`. Names in files, such as the manifest of
a downloaded run, import registered objects only.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from surface_consistency.errors import MissingDependencyError, PluginError, SurfaceConsistencyError
from surface_consistency.reading import shown
from surface_consistency.text import did_you_mean

__all__ = [
    "ANALYSES",
    "COMMANDS",
    "STUDIES",
    "Plugins",
    "distribution_of",
    "importable",
    "load_maker",
]

T = TypeVar("T")

_IMPORTABLE = re.compile(r"[\w.]+:\w[\w.]*")
_OWN = "surface-consistency"
_NAMED: Final[ContextVar[frozenset[str]]] = ContextVar("importable", default=frozenset())


@contextmanager
def importable(*words: str) -> Iterator[None]:
    """Allow the import of "module:attribute" names that the user passed, not of those in files.

    Args:
        words: Names, or words of a command line: the name is read from a word such as
            "--runner=module:attribute", and words without a name are ignored.

    Yields:
        None; afterwards they cannot be imported.

    Examples:
        >>> with importable("surface_consistency.matching:ExactRule"):
        ...     Plugins("surface_consistency.rules", "rule").load(
        ...         "surface_consistency.matching:ExactRule"
        ...     ).__name__
        'ExactRule'
    """
    names = {word.rpartition("=")[2] for word in words}
    token = _NAMED.set(_NAMED.get() | set(filter(_IMPORTABLE.fullmatch, names)))
    try:
        yield
    finally:
        _NAMED.reset(token)


class Plugins:
    """The objects that packages register in one entry point group.

    Args:
        group: Name of the group, such as "surface_consistency.studies"; "" if packages cannot
            register any.
        what: Name of one of its objects in messages, such as "study".
        built_in: Objects of this package that no entry point registers, as "module:attribute".
        error: Type of the error if one cannot be found or loaded.
    """

    def __init__(
        self,
        group: str,
        what: str,
        *,
        built_in: Mapping[str, str] = MappingProxyType({}),
        error: type[SurfaceConsistencyError] = PluginError,
    ) -> None:
        self.group = group
        self.what = what
        self._built_in = [EntryPoint(name, value, group) for name, value in built_in.items()]
        self._error = error

    def names(self) -> tuple[str, ...]:
        """List the registered names, without loading the objects.

        Returns:
            Names of this package, then "package:name" of all others, each sorted.
        """
        known, own, others = self._own(), set(), set()
        for point in self._registered():
            if point in known:
                own.add(point.name)
            else:
                others.add(f"{distribution_of(point)}:{point.name}")
        return (*sorted(own), *sorted(others))

    def describe(self) -> Mapping[str, str]:
        """Describe each object in one line; a broken one does not affect the others.

        Objects of this package are described from their source, so that a list of commands does not
        load numpy; those of other packages are imported, so that the list shows whether they work.

        Returns:
            By name, sorted: the first line of a docstring, or why it cannot be loaded.
        """
        lines = {}
        for name in sorted({point.name for point in self._registered()}):
            try:
                point = self._named(name)
                is_own = self._is_own(point)
                text = _doc_in_source(point) if is_own else _doc(self._loaded(name, point))
            except self._error as error:
                lines[name] = f"cannot be loaded: {error}".partition("\n")[0].partition("; ")[0]
            else:
                lines[name] = text.strip().partition("\n")[0]
        return lines

    def own_source(self, spec: str) -> tuple[str, str] | None:
        """Find a plugin of this package without importing it.

        Args:
            spec: As for `load`.

        Returns:
            Its module and the first line of its docstring; None for a plugin of another package.

        Raises:
            PluginError: If the plugin does not exist, or several packages register it.
        """
        point = self._point(spec)
        return (point.module, _doc_in_source(point).strip()) if self._is_own(point) else None

    def load(self, spec: str) -> Any:  # noqa: ANN401 - whatever is registered
        """Load an object by its name.

        Args:
            spec: A registered name, "package:name" for an object of that package, or
                "module:attribute" for any importable object that the user named (see `importable`).

        Returns:
            The object.

        Raises:
            PluginError: If the name is not registered, several packages register it, or it does not
                import; names the distribution and the available names.
        """
        return self._loaded(spec, self._point(spec))

    def make(self, spec: str) -> object:
        """Load an object by its name; if it is a class, create an instance.

        Args:
            spec: As for `load`.

        Returns:
            The instance, or the object.

        Raises:
            PluginError: As for `load`; or if the class does not define a member, or cannot be
                created without arguments.
        """
        plugin = self.load(spec)
        if not isinstance(plugin, type):
            return plugin
        whose = self.named(spec)
        if missing := sorted(getattr(plugin, "__abstractmethods__", ())):
            raise self._error(f"{whose} lacks {', '.join(missing)}, which a subclass must define")
        try:
            return plugin()
        except Exception as error:
            # A plugin may raise any error; all are reported in the same way.
            raise self._error(
                f"{whose} cannot be created: {type(error).__name__}: {error}; fix or uninstall it"
            ) from error

    def _registered(self) -> list[EntryPoint]:
        """Return the built-in and the registered objects of all packages."""
        return [*self._built_in, *entry_points(group=self.group)]

    def _is_own(self, point: EntryPoint) -> bool:
        """Return whether an entry point is of this package."""
        return point in self._own()

    def _own(self) -> list[EntryPoint]:
        """List the objects of this package, from its own metadata only."""
        try:
            registered = [*distribution(_OWN).entry_points.select(group=self.group)]
        except PackageNotFoundError:
            registered = []
        return [*self._built_in, *registered]

    def _point(self, spec: str) -> EntryPoint:
        """Find the entry point of a name, or create one for a name that the user passed."""
        package, separator, name = spec.partition(":")
        if not separator:
            return self._named(spec)
        points = self._registered()
        own = [
            point
            for point in points
            if point.name == name
            and _same(_OWN if self._is_own(point) else distribution_of(point), package)
        ]
        if not own and spec not in _NAMED.get():
            raise self._error(f"{self.what} {shown(spec)} not found; {self._remedy()}")
        return own[0] if own else EntryPoint(name=spec, value=spec, group=self.group)

    def _named(self, name: str) -> EntryPoint:
        """Find the entry point of a name without a package; this package has priority."""
        # The metadata of all other packages takes longer to read than the options of a study.
        if ours := [point for point in self._own() if point.name == name]:
            return ours[0]
        points = [point for point in self._registered() if point.name == name]
        if len({point.value for point in points}) > 1:
            owners = ", ".join(f"{distribution_of(point)}:{name}" for point in points)
            raise self._error(f"several packages have a {self.what} {name!r}; name one of {owners}")
        if not points:
            near = did_you_mean(name, self.names())
            raise self._error(f"{self.what} {shown(name)} not found{near}; {self._remedy()}")
        return points[0]

    def check(self, spec: str, plugin: T, members: tuple[str, ...]) -> T:
        """Check that an object has all required members.

        Args:
            spec: Its name.
            plugin: The object.
            members: The required members.

        Returns:
            The object.

        Raises:
            PluginError: If a member is missing; names it and the distribution.
        """
        missing = [name for name in members if not hasattr(plugin, name)]
        if missing:
            raise self._error(
                f"{self.named(spec)} lacks {', '.join(missing)}; it is a {type(plugin).__name__}"
            )
        return plugin

    def require(self, spec: str) -> None:
        """Check that a name is registered, or was passed by the user; nothing is imported.

        Args:
            spec: As for `load`; importable objects are not checked.

        Raises:
            PluginError: If no package, or more than one, registers it.
        """
        self._point(spec)

    def named(self, spec: str) -> str:
        """Return a name with its kind and distribution, for messages.

        Args:
            spec: As for `load`.

        Returns:
            Such as "study 'toy' of toy-dist"; without the distribution if it is not registered.
        """
        try:
            point = self._point(spec)
        except self._error:
            return f"{self.what} {shown(spec)}"
        return f"{self.what} {shown(spec)}" + (f" of {point.dist.name}" if point.dist else "")

    def _loaded(self, spec: str, point: EntryPoint) -> Any:  # noqa: ANN401
        """Import the object of an entry point."""
        module, _, attribute = point.value.partition(":")
        if not _IMPORTABLE.fullmatch(point.value):
            raise self._error(f"{self.what} {shown(spec)} not found; {self._remedy()}")
        try:
            plugin: Any = import_module(module)
        except (Exception, SystemExit) as error:
            # A plugin may raise any error on import; all are reported in the same way.
            raise self._error(
                f"{self.named(spec)} cannot be loaded: importing {shown(module)} failed with "
                f"{type(error).__name__}: {' '.join(str(error).split())}; {self._remedy()}"
            ) from error
        for part in attribute.split("."):
            if not hasattr(plugin, part):
                raise self._error(
                    f"{self.named(spec)} cannot be loaded: {shown(module)} has no "
                    f"{shown(attribute)}; {self._remedy()}"
                )
            plugin = getattr(plugin, part)
        return plugin

    def _remedy(self) -> str:
        """Return the available names, for messages."""
        return (
            f"available: {', '.join(self.names()) or 'none'}; or name your own {self.what} as "
            "'module:attribute', on the command line or, in Python, within "
            "surface_consistency.plugins.importable('module:attribute'). Names in files must be "
            "registered"
        )


STUDIES: Final = Plugins("surface_consistency.studies", "study")
"""Studies of all installed packages."""

ANALYSES: Final = Plugins("surface_consistency.analyses", "analysis")
"""Analyses of all installed packages."""

COMMANDS: Final = Plugins("surface_consistency.commands", "command")
"""Commands of other distributions, each a function that adds its command to a cyclopts App."""


def load_maker(name: str, feature: str) -> Callable[..., Any]:
    """Load a command of the distribution that builds data sets.

    Args:
        name: Its name, such as "count".
        feature: Feature that the user requested, for the message.

    Returns:
        The function.

    Raises:
        MissingDependencyError: If the distribution is not installed.
        PluginError: If it does not import, for example because the versions of the distributions
            differ.
    """
    if name not in {registered.rpartition(":")[2] for registered in COMMANDS.names()}:
        raise MissingDependencyError(feature, "surface-consistency-build", "build")
    maker: Callable[..., Any] = COMMANDS.load(name)
    return maker


def _doc(plugin: object) -> str:
    """Return the docstring of a registered object, or of its module."""
    named = plugin if isinstance(plugin, type) else type(plugin)
    return plugin.__doc__ or sys.modules[named.__module__].__doc__ or ""


def _doc_in_source(point: EntryPoint) -> str:
    """Read the docstring of the class of an entry point of this package from its source."""
    source = Path(__file__).parent.joinpath(*point.module.split(".")[1:]).with_suffix(".py")
    if not source.is_file():
        return f"cannot be loaded: module {point.module} not found"
    docstring = rf'^class {re.escape(point.attr)}\b[^\n]*\n +"""([^\n"]*)'
    match = re.search(docstring, source.read_text(encoding="utf-8"), re.MULTILINE)
    return "" if match is None else match[1]


def distribution_of(point: EntryPoint) -> str:
    """Name the package that registers an entry point.

    Args:
        point: The entry point.

    Returns:
        The distribution's name, or "unknown".
    """
    return point.dist.name if point.dist is not None else "unknown"


def _same(one: str, other: str) -> bool:
    """Return whether two spellings name one package."""
    from packaging.utils import canonicalize_name  # Only names of packages need it.

    return canonicalize_name(one) == canonicalize_name(other)
