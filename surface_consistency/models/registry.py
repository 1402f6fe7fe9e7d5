"""Lookup of a runner by name: built in, from another package, or importable."""

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
    """Raise an error for an unknown runner, before anything is loaded.

    Args:
        spec: As for `load_runner`.

    Returns:
        The name.

    Raises:
        ValueError: If no runner has the name; the message contains the nearest name.
    """
    try:
        _RUNNERS.require(spec)
    except RunnerError as error:
        raise ValueError(str(error)) from error
    return spec


RunnerName = Annotated[str, AfterValidator(check_runner)]
"""Name of a runner in settings, as for `load_runner`; the field rejects unknown names."""


def load_runner(
    spec: str, *, model: object = None, options: Mapping[str, object] | None = None
) -> "Runner":
    """Create a runner by its name.

    Args:
        spec: A name in the entry point group `surface_consistency.runners` ("transformers"), or
            "package:name" for the entry point `name` of an installed package. A name from the user,
            but not one from a file, may also be "module:attribute" of an importable object (see
            `plugins.importable`). The object is a class or function that returns a runner, or a
            runner.
        model: First argument of the factory: a hub id, a folder, a file; None to omit it.
        options: Further keyword arguments of the factory.

    Returns:
        The runner.

    Raises:
        RunnerError: If the runner is unknown, does not accept these options, cannot be created, or
            if the factory returns an object that is not a runner.
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
                f"runner {spec!r} is an instance and accepts no model or options; name its class "
                "or a function that returns it instead"
            )
        return factory
    if not callable(factory):
        raise RunnerError(
            f"runner {spec!r} is a {type(factory).__name__}; expected a runner, or a class or "
            "function that returns one"
        )
    arguments = () if model is None else (model,)
    _check_arguments(spec, factory, arguments, given)
    try:
        made = factory(*arguments, **given)
    except SurfaceConsistencyError:
        raise
    except Exception as error:
        # A runner can be third-party code: every error is reported in the same form.
        if isinstance(error, ImportError) and error.name in ("torch", "transformers"):
            raise MissingDependencyError(f"runner {spec!r}", error.name, "inference") from error
        raise RunnerError(
            f"runner {spec!r} cannot be created: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Runner):
        raise RunnerError(
            f"runner {spec!r} returned a {type(made).__name__}, which is not a Runner; derive its "
            "class from surface_consistency.models.Runner"
        )
    return made


def contact_of(spec: str, options: Mapping[str, object]) -> str | None:
    """Describe the service that a runner will contact, before the runner is created.

    Args:
        spec: As for `load_runner`.
        options: Keyword arguments of the factory, without the model.

    Returns:
        The result of the factory's function `contacts` for the options; None without such a
        function.

    Raises:
        RunnerError: If the runner does not exist.
    """
    describe = getattr(_RUNNERS.load(spec), "contacts", None)
    return None if describe is None else str(describe(**options))


def check_runner_options(spec: str, options: Mapping[str, object]) -> None:
    """Check options before the model is available, for example before a toy model is trained.

    Args:
        spec: As for `load_runner`.
        options: Keyword arguments of the factory, without the model.

    Raises:
        RunnerError: If the runner does not exist, or it does not accept these options.
        ValueError: If the runner has a function `check_options` that rejects a value.
        MissingDependencyError: If a library that the options need is not installed.

    Examples:
        >>> check_runner_options("transformers", {"batch_size": 0})
        Traceback (most recent call last):
        ...
        ValueError: `batch_size` must be at least 1, got 0
    """
    factory = _RUNNERS.load(spec)
    _check_arguments(spec, factory, (None,), options)
    check = getattr(factory, "check_options", None)
    if check is not None:
        check(**options)


def _check_arguments(
    spec: str, factory: object, arguments: tuple[object, ...], options: Mapping[str, object]
) -> None:
    """Raise an error for arguments that a factory does not accept, if its signature is known."""
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
            f"runner {spec!r} cannot be created: {error}; it accepts ({takes}), the first of them "
            "being the model"
        ) from error
