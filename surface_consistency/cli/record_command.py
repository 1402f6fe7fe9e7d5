"""A command whose options are the fields of settings records, beside those of its function."""

import inspect
from collections.abc import Callable, Container
from typing import Annotated, Any

from cyclopts import Group, Parameter, convert
from pydantic import BaseModel

from surface_consistency.errors import DataError
from surface_consistency.schemas.settings import (
    RecordOption,
    name_flags,
    read_value,
    record_from_options,
    record_options,
)


def record_command(
    function: Callable[..., object],
    *,
    help_text: str | None = None,
    optional: Container[str] = (),
    **records: type[BaseModel],
) -> Callable[..., object]:
    """Make a command that builds records from its options and hands them to a function.

    Args:
        function: What the command does: takes each record by its name, and options of its own
            annotated for cyclopts (`Annotated[Path, Parameter(help=...)]`).
        help_text: What the command does; None takes the function's docstring.
        optional: Names of records that are None where no option of theirs is given and they
            have an option that must be.
        records: Settings by the name of the function's parameter; see `record_options` for what
            their fields may be. The first line of a record's docstring heads its options.

    Returns:
        A function for `App.command` or `App.default`. Called, it raises ValueError where a value
        breaks a record's rules, with a line for each that names the flag; a ValueError of
        `function` names flags for fields too.

    Raises:
        TypeError: If a field has a type that no option can hold.
        ValueError: If two options have the same flag.
    """
    own = [
        item
        for item in inspect.signature(function, eval_str=True).parameters.values()
        if item.name not in records and item.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    owners = {flag: "every such command" for item in own for flag in _flags(item)}
    described = []
    for place, (name, record) in enumerate(records.items(), start=1):
        group = Group(
            (record.__doc__ or name).strip().partition("\n")[0].rstrip("."), sort_key=place
        )
        for option in record_options(record):
            for flag in option.flags:
                if flag in owners:
                    raise ValueError(
                        f"{flag} of {record.__name__} is an option of {owners[flag]}; give the "
                        "field another flag with Flag('--another-name')"
                    )
                owners[flag] = record.__name__
            described.append((name, option, _parameter(name, option, group, name in optional)))
    parameters = [*own, *(item for _, _, item in described)]

    def command(*positional: object, **given: object) -> object:
        """Build the records, call the function."""
        values: dict[str, dict[str, object]] = {name: {} for name in records}
        for owner, option, item in described:
            if item.name in given:
                values[owner][option.argument] = given[item.name]
        required = {owner for owner, option, _ in described if option.is_required}
        made = {
            name: None
            if name in optional and name in required and not values[name]
            else record_from_options(record, values[name])
            for name, record in records.items()
        }
        others = {name: given[name] for name in given if "__of__" not in name}
        try:
            return function(*positional, **others, **made)
        except ValueError as error:
            text = str(error)
            for record in records.values():
                text = name_flags(text, record)
            if text != str(error) and (type(error) is ValueError or isinstance(error, DataError)):
                raise type(error)(text) from error
            raise

    text = help_text if help_text is not None else inspect.getdoc(function) or ""
    command.__doc__ = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def read_exactly(kind: Any, tokens: Any) -> Any:  # noqa: ANN401 - of any type that an option has
    """Read the values of an option; the library would round 1.5 where a whole number is asked.

    Args:
        kind: Type of the option.
        tokens: What was typed, as the library has it.

    Returns:
        A value of that type.

    Raises:
        CoercionError: If what was typed is none.
    """
    return convert(kind, tokens, converter=_exact_value)


def _exact_value(kind: type, text: str) -> object:
    """Read one value: numbers as they are typed, others as the library does."""
    return read_value(kind, text) if kind in (int, float) else convert(kind, [text])


def _parameter(
    owner: str, option: RecordOption, group: Group, is_optional: bool
) -> inspect.Parameter:
    """Describe one option to cyclopts, which reads its text and prints its help."""
    annotation: Any = tuple[str, ...] if option.is_mapping else option.annotation
    is_required = option.is_required and not is_optional
    if option.is_required and is_optional:
        annotation = annotation | None
    text = option.help
    if option.is_mapping:
        text = f"{text} Takes {option.takes}; names left out keep their default.".strip()
    described = Parameter(
        name=option.flags,
        help=text,
        group=group,
        show_default=False if is_required else option.default_text,
        consume_multiple=True,
        negative_iterable=(),
        negative_none=(),
        # By itself the library hands over a type without its None.
        converter=lambda _, tokens: read_exactly(annotation, tokens),
    )
    default = (option.default_text,) if option.is_mapping else option.default
    return inspect.Parameter(
        f"{owner}__of__{option.argument}",
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else default,
        annotation=Annotated[annotation, described],
    )


def _flags(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Name the flags of a function's own option; none of a positional argument."""
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return ()
    for item in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(item, Parameter) and item.name:
            return (item.name,) if isinstance(item.name, str) else tuple(item.name)
    return ("--" + parameter.name.replace("_", "-"),)
