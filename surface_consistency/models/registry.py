"""Finding a runner by name: built in, of another package, or importable."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

from surface_consistency.errors import MissingDependencyError, RunnerError, SurfaceConsistencyError
from surface_consistency.plugins import Plugins

if TYPE_CHECKING:
    from surface_consistency.models.runner import Runner

GROUP = "surface_consistency.runners"
"""Entry point group under which packages register runners."""

_RUNNERS: Final = Plugins(
    GROUP,
    "runner",
    built_in={
        "fake": "surface_consistency.models.runner:FakeRunner",
        "lookup": "surface_consistency.studies.audit.study:LookupModel",
        "minimal": "surface_consistency.models.minimal:MinimalRunner",
        "openai": "surface_consistency.models.server.openai_compatible:OpenAICompatibleRunner",
        "stored": "surface_consistency.models.stored:StoredRunner",
        "stored-scores": "surface_consistency.models.stored_scores:StoredScores",
        "transformers": "surface_consistency.models.transformers_runner:TransformersRunner",
    },
    error=RunnerError,
)


def check_runner(spec: str) -> str:
    """Refuse a name that no runner goes by, before anything is loaded.

    Args:
        spec: As for `load_runner`.

    Returns:
        The same.

    Raises:
        ValueError: If nothing registers it; names the nearest.
    """
    try:
        _RUNNERS.require(spec)
    except RunnerError as error:
        raise ValueError(str(error)) from error
    return spec


RunnerName = Annotated[str, AfterValidator(check_runner)]
"""Name of a runner in settings, as for `load_runner`: one that is none is refused by the field."""


def load_runner(
    spec: str, *, model: object = None, options: Mapping[str, object] | None = None
) -> "Runner":
    """Make the runner that a name stands for.

    Args:
        spec: A name of the entry point group `surface_consistency.runners` ("transformers"),
            "package:name" for entry point `name` of an installed package, or "module:attribute"
            for anything importable that a person named (see `plugins.importable`): a class or
            function that makes a runner, or a runner.
        model: First argument of the factory: a hub id, a folder, a file; None to call it without.
        options: Further keyword arguments of the factory.

    Returns:
        The runner.

    Raises:
        RunnerError: If the runner is unknown, it does not take these options, it cannot be
            made, or what it makes is not a runner.
        MissingDependencyError: If torch or transformers is needed and not installed.

    Examples:
        >>> load_runner("stored", model={"q1": "London"}).name
        'stored'
    """
    from surface_consistency.models.runner import Runner

    factory = _RUNNERS.load(spec)
    given = dict(options or {})
    if isinstance(factory, Runner):
        if model is not None or given:
            raise RunnerError(
                f"runner {spec!r} is ready-made and takes no model or options; name its class or "
                "a function that makes it instead"
            )
        return factory
    if not callable(factory):
        raise RunnerError(
            f"runner {spec!r} is a {type(factory).__name__}; expected a runner, or a class or "
            "function that makes one"
        )
    arguments = () if model is None else (model,)
    _check_arguments(spec, factory, arguments, given)
    try:
        made = factory(*arguments, **given)
    except SurfaceConsistencyError:
        raise
    except Exception as error:
        # A runner is anyone's code: every error is reported in the same form.
        if isinstance(error, ImportError) and error.name in ("torch", "transformers"):
            raise MissingDependencyError(f"runner {spec!r}", error.name, "inference") from error
        raise RunnerError(
            f"runner {spec!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Runner):
        raise RunnerError(
            f"runner {spec!r} made a {type(made).__name__}, which is not a Runner; derive its "
            "class from surface_consistency.models.Runner"
        )
    return made


def contact_of(spec: str, options: Mapping[str, object]) -> str | None:
    """Describe what a runner will contact, before it is made.

    Args:
        spec: As for `load_runner`.
        options: Keyword arguments of the factory besides the model.

    Returns:
        What the function `contacts` of the factory returns for the options; None without one.

    Raises:
        RunnerError: If there is no such runner.
    """
    describe = getattr(_RUNNERS.load(spec), "contacts", None)
    return None if describe is None else str(describe(**options))


def check_runner_options(spec: str, options: Mapping[str, object]) -> None:
    """Refuse options before the model is there, such as one that must be trained first.

    Args:
        spec: As for `load_runner`.
        options: Keyword arguments of the factory besides the model.

    Raises:
        RunnerError: If there is no such runner, or it does not take these options.
        ValueError: If the runner has a function `check_options` that refuses a value.
        MissingDependencyError: If such a function misses a library.

    Examples:
        >>> check_runner_options("transformers", {"batch_size": 0})
        Traceback (most recent call last):
        ...
        ValueError: `batch_size` is at least 1, got 0
    """
    factory = _RUNNERS.load(spec)
    _check_arguments(spec, factory, (None,), options)
    check = getattr(factory, "check_options", None)
    if check is not None:
        check(**options)


def _check_arguments(
    spec: str, factory: object, arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Refuse arguments that a factory does not take, as far as it tells what it takes."""
    try:
        signature = inspect.signature(factory)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        if not arguments:
            with suppress(TypeError):
                signature.bind(None, **options)
                raise RunnerError(
                    f"runner {spec!r} needs a model (`model`), such as a hub id or a folder"
                ) from error
        takes = ", ".join(signature.parameters)
        raise RunnerError(
            f"runner {spec!r} cannot be made: {error}; it takes ({takes}), the first of them "
            "being the model"
        ) from error
