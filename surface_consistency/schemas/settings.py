"""A settings record as command-line options and as a table: what it holds is written once.

Each field is one option: its name is the flag, its type and limits what the flag takes, its
default the default and its docstring the help. Fields of a record inside stand beside the others,
without a prefix. `Flag` in a field's annotation gives another flag, or more of them.
"""

import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from surface_consistency.reading import json_or_text

R = TypeVar("R", bound=BaseModel)

_SCALARS = (bool, int, float, str, Path)
_LIMITS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
_BROKEN_LIMITS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
}


class Settings(BaseModel):
    """A record whose fields are options: each field's docstring is its help text."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


@dataclass(frozen=True, slots=True)
class Flag:
    """Annotation of a settings field that is called otherwise on the command line.

    Examples:
        >>> Annotated[int, Flag("--permutations", "-p")].__metadata__[0].name
        '--permutations'
    """

    name: str
    """Flag with its dashes, such as "--permutations"."""

    alias: str | None = None
    """A second flag, such as "-p"; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOption:
    """One field of a settings record, as an option."""

    path: tuple[str, ...]
    """Field names from the record to the field: one, and more inside a nested record."""

    flags: tuple[str, ...]
    """Flags, the one that errors and documents name first."""

    annotation: Any
    """Type of the values, free of constraints."""

    default: Any
    """Value without the flag; of no meaning when `is_required`."""

    is_required: bool
    """Whether the field has no default."""

    takes: str
    """What the flag takes, in words, such as "int > 0"."""

    help: str
    """The field's docstring, in one line."""

    @property
    def argument(self) -> str:
        """The option as an identifier that no other option of the record has."""
        return "__".join(self.path)

    @property
    def is_mapping(self) -> bool:
        """Whether the flag takes NAME=VALUE items."""
        return _is_mapping(self.annotation)

    @property
    def default_text(self) -> str:
        """The default as it would be typed, "none" where nothing is set, "required" without one."""
        return "required" if self.is_required else _as_typed(self.default)


class _Parsed(NamedTuple):
    """Items of a mapping option, or what is wrong with one of them."""

    items: dict[object, object]
    problem: str | None


def record_options(record: type[BaseModel]) -> tuple[RecordOption, ...]:
    """List the options of a settings record.

    Args:
        record: A record class with `use_attribute_docstrings=True`; fields are booleans, numbers,
            texts, paths, literals, tuples or string-keyed mappings of those, any of them or None,
            or records of the same kind. A nested record needs a default.

    Returns:
        One option a field in order of definition, those of nested records in their place.

    Raises:
        TypeError: If a field has another type, or a nested record no default.
        ValueError: If two fields have the same flag.
    """
    options = tuple(_options(record, None, ()))
    owners: dict[str, RecordOption] = {}
    for option in options:
        for flag in option.flags:
            other = owners.setdefault(flag, option)
            if other is not option:
                raise ValueError(
                    f"{record.__name__}: fields {'.'.join(other.path)} and {'.'.join(option.path)} "
                    f"are both {flag}; annotate one with Flag('--another-name')"
                )
    return options


def record_from_options(record: type[R], given: Mapping[str, object]) -> R:
    """Make the record of what was given on the command line.

    Args:
        record: The record class.
        given: Values by `RecordOption.argument`; what is left out keeps its default. A mapping
            option has a sequence of NAME=VALUE texts, which are laid over the default's items.

    Returns:
        The record.

    Raises:
        ValueError: If values break the record's rules: one line for each, naming the flag.
    """
    options = {option.path: option for option in record_options(record)}
    values: dict[tuple[str, ...], object] = {}
    problems: list[str] = []
    for path, option in options.items():
        if option.argument not in given:
            continue
        value = given[option.argument]
        if option.is_mapping and not isinstance(value, Mapping) and isinstance(value, Iterable):
            value, problem = _parse_items(option, value)
            problems += [problem] if problem else []
        values[path] = value
    if problems:
        raise ValueError("\n".join(problems))
    made = _make(record, None, (), values, options, problems)
    if made is None:
        raise ValueError("\n".join(problems))
    return made


def name_flags(message: str, named: type[BaseModel] | Mapping[str, str]) -> str:
    """Put flags for the names of fields in an error's text.

    A name that is an English word too ("seed") is replaced where the text starts with it, quotes
    it in backticks or gives it a value (`split='test'`); one with an underscore everywhere. The
    argument that holds the items of an option goes by the plural of its field (`columns={...}`).

    Args:
        message: What code that knows fields, not flags, said.
        named: The record class, or flags by the name that they go by in code.

    Returns:
        The message for a user of the command line.

    Examples:
        >>> class Settings(BaseModel):
        ...     n_permutations: int = 5
        >>> name_flags("n_permutations must be at least 1", Settings)
        '--n-permutations must be at least 1'
        >>> name_flags("pass columns={'answers': 'gold'}", {"column": "--column"})
        'pass --column answers=gold'
    """
    if not isinstance(named, Mapping):
        named = {option.path[-1]: option.flags[0] for option in record_options(named)}
    for name, flag in named.items():
        rules = [
            (rf"`?(?<![\w.-]){name}=True\b`?", flag),
            (rf"(?<![\w.-]){name}(?=='|=\d)", flag),
            (rf"`?(?<![\w.-]){name}s=\{{'(\w+)': '([^']*)'\}}`?", rf"{flag} \1=\2"),
            (rf"`{name}`", flag),
            # "by the metric" is English.
            (rf"\A{name}\b(?=[ =:])(?! the\b)", flag),
        ]
        if "_" in name:
            rules.append((rf"(?<![\w.'-]){name}\b", flag))
        for pattern, written in rules:
            message = re.sub(pattern, written, message)
    return message


def option_table(record: type[BaseModel]) -> str:
    """Write the options of a record as a table for documents.

    Args:
        record: The record class.

    Returns:
        Markdown: a row a field with its name, flags, what it takes, default and help.

    Examples:
        >>> from pydantic import Field
        >>> class Settings(BaseModel):
        ...     n_permutations: int = Field(default=5, gt=0, description="Orders of a query.")
        >>> print(option_table(Settings).splitlines()[-1])
        | `n_permutations` | `--n-permutations` | int > 0 | `5` | Orders of a query. |
    """
    rows = ["| Field | Flag | Takes | Default | Meaning |", "| --- | --- | --- | --- | --- |"]
    for option in record_options(record):
        default = "required" if option.is_required else f"`{option.default_text}`"
        cells = (
            f"`{'.'.join(option.path)}`",
            ", ".join(f"`{flag}`" for flag in option.flags),
            option.takes,
            default,
            option.help,
        )
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def _options(
    record: type[BaseModel], instance: BaseModel | None, path: tuple[str, ...]
) -> Iterator[RecordOption]:
    """List options, defaults from an instance where the record is inside another."""
    for name, field in record.model_fields.items():
        here = (*path, name)
        required = instance is None and field.is_required()
        default = _default(field) if instance is None else getattr(instance, name)
        annotation = _bare(field.annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if not isinstance(default, BaseModel):
                raise TypeError(
                    f"{record.__name__}.{name}: a record within settings needs a default; "
                    f"give it `= {annotation.__name__}()`"
                )
            yield from _options(annotation, default, here)
            continue
        if not _is_supported(annotation):
            raise TypeError(
                f"{record.__name__}.{name}: no option can hold {annotation}; use booleans, "
                "numbers, texts, paths, literals, tuples or mappings of them, or a nested record"
            )
        flag = next((item for item in field.metadata if isinstance(item, Flag)), None)
        flags = (flag.name, *((flag.alias,) if flag.alias else ())) if flag else (_dashed(name),)
        yield RecordOption(
            path=here,
            flags=flags,
            annotation=annotation,
            default=default,
            is_required=required,
            takes=_takes(annotation, field),
            help=" ".join((field.description or "").split()),
        )


def _make(
    record: type[R],
    instance: BaseModel | None,
    path: tuple[str, ...],
    values: Mapping[tuple[str, ...], object],
    options: Mapping[tuple[str, ...], RecordOption],
    problems: list[str],
) -> R | None:
    """Make a record from its given fields, nested ones first; note what is wrong."""
    start = len(problems)
    arguments = {} if instance is None else {n: getattr(instance, n) for n in record.model_fields}
    for name, field in record.model_fields.items():
        here = (*path, name)
        if here in values:
            arguments[name] = values[here]
        elif here not in options and any(key[: len(here)] == here for key in values):
            default = _default(field) if instance is None else getattr(instance, name)
            if isinstance(default, BaseModel):
                arguments[name] = _make(type(default), default, here, values, options, problems)
    if len(problems) > start:
        return None
    try:
        return record(**arguments)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            problems.append(_problem(detail, path, options, record))
        return None


def _problem(
    detail: ErrorDetails,
    path: tuple[str, ...],
    options: Mapping[tuple[str, ...], RecordOption],
    record: type[BaseModel],
) -> str:
    """Say what a validator found, by flag."""
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    location = (*path, *map(str, detail["loc"]))
    option = next(
        (
            options[location[:end]]
            for end in range(len(location), 0, -1)
            if location[:end] in options
        ),
        None,
    )
    if option is None:
        return name_flags(message, record)
    if detail["type"] == "missing":
        return f"{option.flags[0]} is required"
    if detail["type"] in _BROKEN_LIMITS:
        limit = _BROKEN_LIMITS[detail["type"]].format(**detail.get("ctx", {}))
        return f"{option.flags[0]} {limit}, got {_as_typed(detail['input'])}"
    got = "" if detail["type"] == "value_error" else f", got {_as_typed(detail['input'])}"
    message = name_flags(message, record)
    if message.startswith(option.flags[0]):
        return f"{message}{got}"
    return f"{option.flags[0]}: {message[:1].lower()}{message[1:]}{got}"


def _parse_items(option: RecordOption, texts: Iterable[str]) -> _Parsed:
    """Lay NAME=VALUE texts over the default of a mapping."""
    types_of_items = get_args(_without_none(option.annotation))
    items = dict(option.default) if isinstance(option.default, Mapping) else {}
    choices = get_args(types_of_items[0]) if get_origin(types_of_items[0]) is Literal else None
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            return _Parsed(items, f"{option.flags[0]} takes NAME=VALUE, got {text!r}")
        if choices is not None and name not in choices:
            allowed = ", ".join(choices)
            return _Parsed(items, f"{option.flags[0]}: NAME is one of {allowed}, got {name!r}")
        try:
            items[name] = _convert(types_of_items[1], value)
        except ValueError:
            kind = _words(types_of_items[1])
            return _Parsed(items, f"{option.flags[0]}: {name} takes {kind}, got {value!r}")
    return _Parsed(items, None)


def _convert(kind: object, text: str) -> object:
    """Read one value of a mapping."""
    if kind != (inner := _without_none(kind)):
        return None if text.lower() == "none" else _convert(inner, text)
    if kind is bool:
        if text.lower() not in {"true", "false", "yes", "no", "1", "0"}:
            raise ValueError(text)
        return text.lower() in {"true", "yes", "1"}
    if get_origin(kind) is Literal:
        return next(value for value in (*get_args(kind), text) if str(value) == text)
    return read_value(cast("type", kind), text)


def read_value(kind: type, text: str) -> Any:  # noqa: ANN401 - an instance of `kind`
    """Read one value as it is typed, and lose nothing of it.

    Args:
        kind: A type that is made from text, such as int.
        text: What was typed.

    Returns:
        The value.

    Raises:
        ValueError: If it is none of that type: 1.5 is no whole number, 1e999 none that there is.

    Examples:
        >>> read_value(int, "15"), read_value(float, "1.5")
        (15, 1.5)
    """
    value = kind(text)
    if isinstance(value, float) and math.isinf(value) and "inf" not in text.lower():
        raise ValueError(f"{text} is beyond what a number can be")
    return value


def _default(field: FieldInfo) -> object:
    """Return the default; None for a required field."""
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _dashed(name: str) -> str:
    """Turn the name of a field into its flag."""
    return "--" + name.replace("_", "-")


def _bare(annotation: object) -> object:
    """Strip constraints from a type, and from the types inside it."""
    annotation = getattr(annotation, "__value__", annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        return _bare(get_args(annotation)[0])
    if origin is None or origin is Literal:
        return annotation
    inner = tuple(item if item is Ellipsis else _bare(item) for item in get_args(annotation))
    if origin in (Union, types.UnionType):
        return Union[inner]  # noqa: UP007
    return cast("types.GenericAlias", origin)[inner]


def _without_none(annotation: object) -> object:
    """Take None out of a union."""
    if get_origin(annotation) is not Union:
        return annotation
    return Union[tuple(item for item in get_args(annotation) if item is not types.NoneType)]  # noqa: UP007


def _is_mapping(annotation: object) -> bool:
    """Tell whether a type is a mapping, or one or None."""
    origin = get_origin(_without_none(annotation))
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_supported(annotation: object) -> bool:
    """Tell whether an option can hold a type."""
    kind = _without_none(annotation)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is None:
        return kind in _SCALARS
    if origin is Literal:
        return True
    if origin is Union:
        return all(item in _SCALARS or get_origin(item) is Literal for item in inner)
    if origin is tuple:
        return len(inner) == 2 and inner[1] is Ellipsis and _is_scalar(inner[0])
    if _is_mapping(kind):
        is_text = inner[0] is str or get_origin(inner[0]) is Literal
        return is_text and _is_scalar(_without_none(inner[1]))
    return False


def _is_scalar(kind: object) -> bool:
    """Tell whether a type is one value, None allowed."""
    kind = _without_none(kind)
    return kind in _SCALARS or get_origin(kind) is Literal


def _takes(annotation: object, field: FieldInfo) -> str:
    """Describe what a flag takes, limits included."""
    limits = [
        f"{sign} {value}"
        for item in field.metadata
        for name, sign in _LIMITS
        if (value := getattr(item, name, None)) is not None
    ]
    kind = _without_none(annotation)
    words = " ".join([_words(kind), " and ".join(limits)]).strip()
    return words if kind == annotation else f"{words}, or none"


def _words(kind: object) -> str:
    """Describe a type in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is Union:
        return " or ".join(_words(item) for item in inner)
    if origin is tuple:
        if get_origin(inner[0]) is Literal:
            return f"some of {', '.join(map(str, get_args(inner[0])))}"
        return f"one or more: {_words(inner[0])}"
    if _is_mapping(kind):
        names = "NAME" if inner[0] is str else "|".join(map(str, get_args(inner[0])))
        return f"{names}={_words(_without_none(inner[1]))} items"
    in_words = {bool: "yes or no", str: "text", Path: "path", types.NoneType: "none"}
    return in_words.get(cast(type, kind)) or cast(type, kind).__name__


def _as_typed(value: object) -> str:
    """Write a value as a user would type it; control characters escaped."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_as_typed(item)}" for name, item in value.items()) or "nothing"
    if isinstance(value, tuple | list):
        return " ".join(map(_as_typed, value)) or "nothing"
    text = str(value)
    return text if text.isprintable() and text and " " not in text else repr(text)


def values_of_items(given: Mapping[str, str], option: str) -> dict[str, object]:
    """Read the values of NAME=VALUE items, which are JSON, or else text.

    Args:
        given: Values by name.
        option: The field that they were given to, for messages.

    Returns:
        The values.

    Raises:
        RecordError: If a value is JSON beyond the bounds of `reading.json_or_text`.

    Examples:
        >>> given = {"concurrency": "32", "base_url": "http://localhost"}
        >>> values_of_items(given, "runner_option")
        {'concurrency': 32, 'base_url': 'http://localhost'}
    """
    return {name: json_or_text(value, f"`{option}` {name}") for name, value in given.items()}
