"""A command whose options are the fields of a settings record, beside those of its function."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from cyclopts import Group, Parameter
from pydantic import BaseModel

from surface_consistency.settings_options import (
    RecordOption,
    name_flags,
    record_from_options,
    record_options,
)

__all__ = ["record_command"]

P = ParamSpec("P")
R = TypeVar("R", bound=BaseModel)


def record_command(
    record: type[R],
    function: Callable[Concatenate[R, P], object],
    *,
    title: str = "Settings",
    help_text: str | None = None,
) -> Callable[..., object]:
    """Make a command that builds a record from its options and hands it to a function.

    Args:
        record: The settings; see `record_options` for what its fields may be.
        function: What the command does: takes the record first and then, by keyword, options of
            its own, annotated for cyclopts (`Annotated[Path, Parameter(help=...)]`).
        title: Heading of the record's options in the help.
        help_text: What the command does; None takes the function's docstring.

    Returns:
        A function for `App.command` or `App.default`. Called, it raises ValueError where a value
        breaks the record's rules, with a line for each that names the flag; a ValueError of
        `function` names flags for fields too.

    Raises:
        TypeError: If a field has a type that no option can hold.
        ValueError: If two options have the same flag.
    """
    options = record_options(record)
    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    if clash := sorted({_flag(item) for item in own} & {f for o in options for f in o.flags}):
        raise ValueError(
            f"{', '.join(clash)} of {record.__name__} is an option of every such command; "
            "give the field another flag with Flag('--another-name')"
        )
    group = Group(title, sort_key=1)
    parameters = [*own, *(_parameter(option, group) for option in options)]
    names = {option.argument for option in options}

    def command(**given: Any) -> object:  # noqa: ANN401
        """Build the record, call the function."""
        settings = record_from_options(record, {n: v for n, v in given.items() if n in names})
        others = {name: value for name, value in given.items() if name not in names}
        try:
            return function(settings, **others)  # type: ignore[call-arg]
        except ValueError as error:
            if type(error) is ValueError and (text := name_flags(str(error), record)) != str(error):
                raise ValueError(text) from error
            raise

    command.__doc__ = help_text if help_text is not None else inspect.getdoc(function)
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameter(option: RecordOption, group: Group) -> inspect.Parameter:
    """Describe one option to cyclopts, which reads its text and prints its help."""
    annotation = tuple[str, ...] if option.is_mapping else option.annotation
    text = option.help
    if option.is_mapping:
        text = f"{text} Takes {option.takes}; names left out keep their default.".strip()
    described = Parameter(
        name=option.flags,
        help=text,
        group=group,
        show_default=False if option.is_required else option.default_text,
        consume_multiple=True,
        negative_iterable=(),
        negative_none=(),
    )
    default = (option.default_text,) if option.is_mapping else option.default
    return inspect.Parameter(
        option.argument,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.is_required else default,
        annotation=Annotated[annotation, described],
    )


def _flag(parameter: inspect.Parameter) -> str:
    """Name the flag of a function's own option."""
    for item in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(item, Parameter) and item.name:
            return item.name if isinstance(item.name, str) else next(iter(item.name))
    return "--" + parameter.name.replace("_", "-")
