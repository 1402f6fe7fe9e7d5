"""Finding studies, analyses, runners and matching rules by name, whoever wrote them.

Packages register them as entry points; those of this package are registered in the same way.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from surface_consistency.errors import PluginError

__all__ = ["Plugins"]

_IMPORTABLE = re.compile(r"[\w.]+:\w[\w.]*")
_OWN = "surface-consistency"


class Plugins:
    """What packages register in one entry point group.

    Args:
        group: Name of the group, such as "surface_consistency.studies".
        what: What stands in it, for messages, such as "study".
        error: What to raise when one cannot be found or loaded.
    """

    def __init__(self, group: str, what: str, *, error: type[PluginError] = PluginError) -> None:
        self.group = group
        self._what = what
        self._error = error

    def names(self) -> tuple[str, ...]:
        """List what is registered, without loading it.

        Returns:
            Names of this package, then "package:name" of every other, each sorted.
        """
        own, others = set(), set()
        for point in entry_points(group=self.group):
            owner = distribution_of(point)
            if _canonical(owner) == _OWN:
                own.add(point.name)
            else:
                others.add(f"{owner}:{point.name}")
        return (*sorted(own), *sorted(others))

    def points(self) -> Mapping[str, EntryPoint]:
        """Gather the entry points by their bare name.

        Returns:
            The entry points, sorted by name.

        Raises:
            PluginError: If two packages register one name; names both.
        """
        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self.group), key=lambda item: item.name):
            known = found.setdefault(point.name, point)
            if known.value != point.value:
                raise self._error(
                    f"{distribution_of(known)} and {distribution_of(point)} both register the "
                    f"{self._what} {point.name!r}; name one as package:name, or uninstall one"
                )
        return found

    def load(self, spec: str) -> Any:  # noqa: ANN401 - whatever is registered
        """Load what a name stands for.

        Args:
            spec: A registered name, "package:name" for that of one package, or "module:attribute"
                for anything importable.

        Returns:
            What stands there.

        Raises:
            PluginError: If there is nothing of that name, several packages have it, or it does not
                import; names the distribution and what there is.
        """
        package, separator, name = spec.partition(":")
        points = list(entry_points(group=self.group))
        if separator:
            own = [p for p in points if p.name == name and _same(distribution_of(p), package)]
            if own:
                return self._loaded(spec, own[0])
            return self._loaded(spec, EntryPoint(name=spec, value=spec, group=self.group))
        named = [point for point in points if point.name == spec]
        ours = [point for point in named if _canonical(distribution_of(point)) == _OWN]
        if len({point.value for point in named}) > 1 and not ours:
            owners = ", ".join(f"{distribution_of(point)}:{spec}" for point in named)
            raise self._error(
                f"several packages have a {self._what} {spec!r}; name one of {owners}"
            )
        if not named:
            raise self._error(f"no {self._what} {spec!r}; {self._remedy()}")
        return self._loaded(spec, (ours or named)[0])

    def check(self, spec: str, found: Any, members: tuple[str, ...]) -> Any:  # noqa: ANN401
        """Refuse what lacks a member.

        Args:
            spec: Its name.
            found: What stands there.
            members: What it must have.

        Returns:
            The same.

        Raises:
            PluginError: If a member is missing; names it and the distribution.
        """
        missing = [name for name in members if not hasattr(found, name)]
        if missing:
            raise self._error(
                f"{self._what} {spec!r}{self._of(spec)} lacks {', '.join(missing)}; it is a "
                f"{type(found).__name__}"
            )
        return found

    def _loaded(self, spec: str, point: EntryPoint) -> Any:  # noqa: ANN401
        """Import what an entry point names."""
        module, _, attribute = point.value.partition(":")
        if not _IMPORTABLE.fullmatch(point.value):
            raise self._error(f"no {self._what} {spec!r}; {self._remedy()}")
        owner = "" if point.dist is None else f" of {distribution_of(point)}"
        try:
            found: Any = import_module(module)
        except Exception as error:
            # A plugin is anyone's code: whatever it raises on import is told the same way.
            raise self._error(
                f"{self._what} {spec!r}{owner} cannot be loaded: importing {module!r} failed with "
                f"{type(error).__name__}: {error}; {self._remedy()}"
            ) from error
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise self._error(
                    f"{self._what} {spec!r}{owner} cannot be loaded: {module!r} has no "
                    f"{attribute!r}; {self._remedy()}"
                )
            found = getattr(found, part)
        return found

    def _of(self, spec: str) -> str:
        """Name the package that registers a name."""
        point = next((p for p in entry_points(group=self.group) if p.name == spec), None)
        return "" if point is None else f" of {distribution_of(point)}"

    def _remedy(self) -> str:
        """Say what could be named instead."""
        return (
            f"available: {', '.join(self.names()) or 'none'}; or name anything importable as "
            "'module:attribute'"
        )


def distribution_of(point: EntryPoint) -> str:
    """Name the package that registers an entry point.

    Args:
        point: The entry point.

    Returns:
        The distribution's name, or "unknown".
    """
    return point.dist.name if point.dist is not None else "unknown"


def _canonical(name: str) -> str:
    """Spell a package name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _same(one: str, other: str) -> bool:
    """Tell whether two spellings name one package."""
    return _canonical(one) == _canonical(other)
