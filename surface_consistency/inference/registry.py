"""Finding a runner by name: built in, of another package, or importable."""

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from surface_consistency.errors import RunnerError
from surface_consistency.inference.runner import Runner

__all__ = ["GROUP", "available_runners", "load_runner"]

GROUP = "surface_consistency.runners"
"""Entry point group under which packages register runners."""

_BUILT_IN = {
    "fake": "surface_consistency.inference.fake:FakeRunner",
    "openai": "surface_consistency.inference.openai_compatible:OpenAICompatibleRunner",
    "stored": "surface_consistency.inference.stored:StoredRunner",
    "transformers": "surface_consistency.inference.transformers_runner:TransformersRunner",
}
_IMPORTABLE = re.compile(r"[\w.]+:\w[\w.]*")
_MEMBERS = ("name", "fingerprint", "generate")
_OWN = "surface-consistency"


def available_runners() -> tuple[str, ...]:
    """List the names that `load_runner` knows.

    Returns:
        Built-in names first, then "package:name" of every other installed package, sorted.

    Examples:
        >>> available_runners()[:3]
        ('fake', 'openai', 'stored')
    """
    others = {f"{_distribution(point)}:{point.name}" for point in _foreign_points()}
    return (*sorted(_BUILT_IN), *sorted(others))


def load_runner(
    spec: str, *, model: object = None, options: Mapping[str, object] | None = None
) -> Runner:
    """Make the runner that a name stands for.

    Args:
        spec: A name of the entry point group `surface_consistency.runners` ("transformers"),
            "package:name" for entry point `name` of an installed package, or "module:attribute"
            for anything importable: a class or function that makes a runner, or a runner.
        model: First argument of the factory: a hub id, a folder, a file; None to call it without.
        options: Further keyword arguments of the factory.

    Returns:
        The runner.

    Raises:
        RunnerError: If there is no such runner, it does not take these options, or what it makes
            is not a runner.

    Examples:
        >>> load_runner("stored", model={"q1": "London"}).name
        'stored'
    """
    found = _find(spec)
    given = dict(options or {})
    if isinstance(found, Runner) and not isinstance(found, type):
        if model is not None or given:
            raise RunnerError(
                f"runner {spec!r} is ready-made and takes no model or options; name its class or "
                "a function that makes it instead"
            )
        return found
    made = _make(spec, found, () if model is None else (model,), given)
    if not isinstance(made, Runner):
        missing = [member for member in _MEMBERS if not hasattr(made, member)]
        raise RunnerError(
            f"runner {spec!r} made a {type(made).__name__} without {', '.join(missing)}; a runner "
            f"has {', '.join(_MEMBERS)} (see surface_consistency.inference.runner.Runner)"
        )
    return made


def _make(
    spec: str, factory: object, arguments: tuple[object, ...], options: dict[str, object]
) -> object:
    """Call a factory, saying first when it does not take the arguments."""
    if not callable(factory):
        raise RunnerError(
            f"runner {spec!r} is a {type(factory).__name__}; expected a runner, or a class or "
            "function that makes one"
        )
    try:
        signature = inspect.signature(factory)
    except ValueError:
        return factory(*arguments, **options)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        takes = ", ".join(str(parameter) for parameter in signature.parameters.values())
        raise RunnerError(
            f"runner {spec!r} cannot be made: {error}; it takes ({takes}), the first of them "
            "being the model"
        ) from error
    try:
        return factory(*arguments, **options)
    except TypeError as error:
        raise RunnerError(f"runner {spec!r} cannot be made: {error}") from error


def _find(spec: str) -> object:
    """Resolve a name to the object behind it."""
    package, separator, name = spec.partition(":")
    if not separator:
        return _find_entry_point(spec)
    for point in _foreign_points():
        if point.name == name and _canonical(_distribution(point)) == _canonical(package):
            return _load(spec, point)
    if _canonical(package) == _OWN and name in _BUILT_IN:
        return _find_entry_point(name)
    return _load(spec, EntryPoint(name=spec, value=spec, group=GROUP))


def _find_entry_point(name: str) -> object:
    """Resolve a name without a package: built in, or registered by exactly one package."""
    if name in _BUILT_IN:
        return _load(name, EntryPoint(name=name, value=_BUILT_IN[name], group=GROUP))
    points = [point for point in _foreign_points() if point.name == name]
    if not points:
        raise RunnerError(f"no runner {name!r}; {_remedy()}")
    if len(points) > 1:
        owners = ", ".join(f"{_distribution(point)}:{name}" for point in points)
        raise RunnerError(f"several packages have a runner {name!r}; name one of {owners}")
    return _load(name, points[0])


def _load(spec: str, point: EntryPoint) -> object:
    """Import what an entry point names."""
    module, _, attribute = point.value.partition(":")
    if not _IMPORTABLE.fullmatch(point.value):
        raise RunnerError(f"no runner {spec!r}; {_remedy()}")
    try:
        loaded = import_module(module)
    except ImportError as error:
        raise RunnerError(
            f"runner {spec!r} cannot be loaded: importing {module!r} failed with "
            f"{type(error).__name__}: {error}; {_remedy()}"
        ) from error
    found: object = loaded
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise RunnerError(
                f"runner {spec!r} cannot be loaded: {module!r} has no {attribute!r}; {_remedy()}"
            )
        found = getattr(found, part)
    return found


def _foreign_points() -> list[EntryPoint]:
    """List the entry points of other packages."""
    return [
        point for point in entry_points(group=GROUP) if _canonical(_distribution(point)) != _OWN
    ]


def _distribution(point: EntryPoint) -> str:
    """Name the package that registered an entry point."""
    return point.dist.name if point.dist is not None else "unknown"


def _canonical(name: str) -> str:
    """Spell a package name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _remedy() -> str:
    """Say what could be named instead."""
    return (
        f"available: {', '.join(available_runners())}; or name anything importable as "
        "'module:attribute'"
    )
