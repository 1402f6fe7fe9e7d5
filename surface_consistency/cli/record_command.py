"""A command whose options are the fields of settings records.

Each field is one option: its name is the flag, its docstring the help. The texts of the options
are passed to pydantic, whose errors are reported by flag. Fields that are `Rare` have no flag; the
option `--setting` sets them.
"""

import inspect
import re
from collections.abc import Callable, Container, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from surface_consistency.errors import PluginError, SurfaceConsistencyError
from surface_consistency.schemas.settings import RARE, Flag
from surface_consistency.text import did_you_mean

SETTING = "--setting"
"""Option that sets `Rare` fields, as NAME=VALUE."""


COMMON = Group("Common options", sort_key=0)
"""Heading of options that a command declares itself, of required options and of `_COMMON`."""

_MORE = Group("More options", sort_key=1)
_COMMON = {
    *("source", "preset", "model", "runner", "limit", "template", "rule", "judge", "prediction"),
    *("item", "form", "score", "repeat", "cluster", "by", "names", "first", "second", "condition"),
    *("baseline", "margin", "test", "missing", "confidence"),
}
"""Fields whose options are listed first; a name has the same meaning in all commands."""

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_NAMED = re.compile(
    r"`?(?<![\w.-])(?P<plural>\w+)s=\{(?P<item>'\w+': '[^']*')\}`?"
    r"|`(?P<quoted>\w+)(?:=(?P<value>[^`]*))?`"
    r"|(?<![\w.`-])(?P<given>\w+)=(?P<literal>'[^']*'|True|False|\d[\d.]*(?!\w)|(?= the ))"
    r"|(?<![\w.'/`-])(?P<bare>[a-z]+_\w+)"
)


class _Option(NamedTuple):
    """One field of a record."""

    owner: str
    name: str
    flag: str
    field: FieldInfo


def flag_of(name: str, field: FieldInfo) -> str:
    """Return the flag of a settings field.

    Args:
        name: Name of the field.
        field: The field.

    Returns:
        The flag: "--no-..." if the field is true by default, "--setting name" if it is `Rare`.
    """
    if RARE in field.metadata:
        return f"{SETTING} {name}"
    for item in field.metadata:
        if isinstance(item, Flag):
            return item.name
    return ("--no-" if field.default is True else "--") + name.replace("_", "-")


def record_command(
    function: Callable[..., object],
    *,
    help_text: str | None = None,
    optional: Container[str] = (),
    **records: type[BaseModel],
) -> Callable[..., object]:
    """Make a command that builds records from its options and passes them to a function.

    Args:
        function: Implements the command: takes each record by its name, and its own options
            annotated for cyclopts (`Annotated[Path, Parameter(help=...)]`).
        help_text: Help of the command; None takes the function's docstring.
        optional: Names of records that are None if none of their options is given and one of them
            is required.
        records: Settings by the name of the function's parameter. Fields are values that pydantic
            reads from text, sequences of them, or mappings of names to them.

    Returns:
        A function for `App.command` or `App.default`. Called, it raises ValueError if a value
        violates a rule of its record, with one line per problem that names the flag. In errors of
        `function`, names of fields in backticks become flags.

    Raises:
        PluginError: If two records have a field of the same name, or a field is a record. A `Rare`
            field with the name and type of a field of an earlier record shares its option.
    """
    own = [
        item
        for item in inspect.signature(function, eval_str=True).parameters.values()
        if item.name not in records and item.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    options: dict[str, _Option] = {}
    sharing: dict[str, list[str]] = {}
    flags = {item.name: "--" + item.name.replace("_", "-") for item in own}
    parameters: dict[str, inspect.Parameter] = {item.name: item for item in own}
    for owner, record in records.items():
        for name, field in record.model_fields.items():
            flag = flag_of(name, field)
            first = options.get(name)
            if first and RARE in field.metadata and first.field.annotation == field.annotation:
                sharing.setdefault(name, []).append(owner)
                continue
            if flag in flags.values():
                raise PluginError(
                    f"{record.__name__}.{name}: another option of the command has this name; "
                    "rename the field"
                )
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                raise PluginError(
                    f"{record.__name__}.{name}: an option cannot contain a record; put its fields "
                    f"into {record.__name__}"
                )
            key = f"{owner}_{name}" if name in flags else name
            options[key] = _Option(owner, name, flag, field)
            flags[key] = flag
    for key, option in options.items():
        if RARE not in option.field.metadata:
            text = name_flags(" ".join((option.field.description or "").split()), flags)
            if option.field.default is True:
                text = f"Do not {text[:1].lower()}{text[1:]}"
            is_optional = option.owner in optional
            parameters[key] = _parameter(key, option, text, is_optional)
    rare = [name for name, option in options.items() if RARE in option.field.metadata]
    if rare:
        text = f"Set one of the settings without a flag, as NAME=VALUE: {', '.join(sorted(rare))}."
        described = Parameter(
            name=SETTING,
            help=text,
            group=_MORE,
            consume_multiple=True,
            negative=(),
            show_default=False,
        )
        parameters["setting"] = inspect.Parameter(
            "setting", _KEYWORD, default=(), annotation=Annotated[tuple[str, ...], described]
        )

    def command(*positional: object, **given: Any) -> object:  # noqa: ANN401 - as typed
        """Build the records and call the function."""
        values: dict[str, dict[str, object]] = {name: {} for name in records}
        further = _items(SETTING, given.pop("setting", ()))
        if unknown := [name for name in further if name not in rare]:
            listed = ", ".join(sorted(rare))
            near = did_you_mean(unknown[0], rare)
            raise ValueError(f"{SETTING} has no setting {unknown[0]!r}{near}; it has {listed}")
        for name, value in {**given, **further}.items():
            if name in options:
                option = options[name]
                for owner in (option.owner, *sharing.get(name, ())):
                    values[owner][option.name] = _read(option, value)
        made: dict[str, object] = {}
        problems = []
        for name, record in records.items():
            is_required = any(field.is_required() for field in record.model_fields.values())
            if name in optional and is_required and not values[name]:
                made[name] = None
                continue
            try:
                made[name] = record.model_validate(values[name], strict=False)
            except ValidationError as error:
                own_flags = {one.name: one.flag for one in options.values() if one.owner == name}
                problems.append(describe_problems(error, flags | own_flags))
        if problems:
            raise ValueError("\n".join(problems))
        others = {name: value for name, value in given.items() if name not in options}
        try:
            return function(*positional, **others, **made)
        except ValidationError as error:
            raise ValueError(describe_problems(error, flags)) from error
        except (SurfaceConsistencyError, ValueError) as error:
            if error.args == (str(error),):
                error.args = (name_flags(str(error), flags),)
            raise

    text = help_text if help_text is not None else inspect.getdoc(function) or ""
    command.__doc__ = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    command.__annotations__ = {name: item.annotation for name, item in parameters.items()}
    signature = inspect.Signature([*parameters.values()])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.settings_without_flag = rare  # type: ignore[attr-defined]
    return command


def name_flags(message: str, flags: Mapping[str, str]) -> str:
    """Replace names of fields by flags: those in backticks, with a value, or of several words.

    Args:
        message: Message of an error that names fields.
        flags: Flags by name of field.

    Returns:
        The message for a user of the command line.

    Examples:
        >>> name_flags("`n_items` is 0; omit `seed=1`", {"n_items": "--n-items"})
        '--n-items is 0; omit `seed=1`'
        >>> name_flags("pass split='test'", {"split": "--split"})
        'pass --split test'
        >>> name_flags("pass columns={'answers': 'gold'}", {"column": "--column"})
        'pass --column answers=gold'
    """

    def flag(found: re.Match[str]) -> str:
        name = found["quoted"] or found["given"] or found["plural"] or found["bare"]
        value = found["value"] or found["literal"] or found["item"] or ""
        if name not in flags:
            return found[0]
        value = re.sub(r"^'(\w+)': '(.*)'$", r"\1=\2", value).strip("'\"")
        if flags[name].startswith(SETTING) and value:
            return f"{flags[name]}={value}"
        is_switch = value == str(not flags[name].startswith("--no-"))
        return flags[name] if is_switch or not value else f"{flags[name]} {value}"

    return _NAMED.sub(flag, message)


def describe_problems(error: ValidationError, flags: Mapping[str, str]) -> str:
    """Describe the errors of pydantic, by flag.

    Args:
        error: The error.
        flags: Flags by name of field.

    Returns:
        One line per problem.
    """
    lines: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False):
        message = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        message = name_flags(message, flags)
        name = str(detail["loc"][0]) if detail["loc"] else ""
        if name not in flags:
            lines.setdefault(message, [])
        elif detail["type"] == "missing":
            lines.setdefault(f"{flags[name]} is required", [])
        elif detail["type"] == "value_error":
            lines.setdefault(flags[name], []).append(message)
        else:
            value = detail["input"]
            got = repr(value) if isinstance(value, str) else str(value)
            text = f"{message[:1].lower()}{message[1:]}, got {got}"
            lines.setdefault(flags[name], []).append(text)
    return "\n".join(
        f"{line}: {' or '.join(rules)}" if rules else line for line, rules in lines.items()
    )


def read_exactly(kind: Any, tokens: Any) -> Any:  # noqa: ANN401 - of any type that an option has
    """Read the texts of an option with pydantic, which does not round numbers.

    Args:
        kind: Type of the option.
        tokens: The tokens of cyclopts.

    Returns:
        A value of that type.

    Raises:
        ValueError: If the texts are not of that type.
    """
    texts = tuple(token.value for token in tokens)
    try:
        return TypeAdapter(kind).validate_python(_plain(kind, texts))
    except ValidationError as error:
        raise ValueError(f"{_rules(error)}, got {' '.join(texts)!r}") from error


def _rules(error: ValidationError) -> str:
    """Join the rules that a value violates: one per member of a union."""
    messages = [detail["msg"] for detail in error.errors(include_url=False)]
    text = " or ".join(dict.fromkeys(messages))
    return f"{text[:1].lower()}{text[1:]}"


def _parameter(name: str, option: _Option, text: str, is_optional: bool) -> inspect.Parameter:
    """Describe one option for cyclopts, which parses the command line and prints help."""
    field = option.field
    kind: Any = _bare(field.annotation)
    default = field.get_default(call_default_factory=True)
    is_shown = default not in (None, True, False, (), {}) and not field.is_required()
    typed = _as_typed(default)
    if _is(Mapping, kind):
        kind, default = tuple[str, ...], ()
    described = Parameter(
        name=option.flag,
        help=text,
        group=COMMON if field.is_required() or option.name in _COMMON else _MORE,
        show_default=(lambda _: typed) if is_shown else False,
        consume_multiple=True,
        negative=(),
        converter=lambda _, tokens: read_exactly(kind, tokens),
    )
    if field.is_required():
        default = None if is_optional else inspect.Parameter.empty
    kind = kind | None if default is None else kind
    annotation: Any = Annotated[kind, described]
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation)


def _read(option: _Option, value: Any) -> object:  # noqa: ANN401 - texts, or the value of a switch
    """Prepare the value of an option for pydantic."""
    kind, default = _bare(option.field.annotation), option.field.default
    if _is(Mapping, kind):
        default = option.field.get_default(call_default_factory=True)
        return {**(default or {}), **_items(option.flag, _split(value))}
    if _is(Sequence, kind):
        return _plain(kind, _split(value))
    if isinstance(value, bool):
        return not value if default is True else value
    return _plain(kind, (value,)) if isinstance(value, str) else value


def _plain(kind: Any, texts: Sequence[Any]) -> object:  # noqa: ANN401 - of any type of a field
    """Return the texts of a sequence or the last text, with None for "none" if the type has it."""
    if _is(Sequence, kind):
        several = kind if get_origin(kind) is tuple else get_args(kind)[0]
        return tuple(_plain(_bare(get_args(several)[0]), (text,)) for text in texts)
    is_optional = NoneType in get_args(kind) and str not in get_args(kind)
    return None if is_optional and texts[-1] == "none" else texts[-1]


def _split(value: str | Sequence[str]) -> Sequence[str]:
    """Return several texts; those of `--setting` are separated by commas."""
    return value.split(",") if isinstance(value, str) else value


def _items(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """Split NAME=VALUE texts."""
    for text in texts:
        if text.find("=") < 1:
            raise ValueError(f"{flag} requires NAME=VALUE, got {text!r}")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def _bare(kind: Any) -> Any:  # noqa: ANN401 - of any type that a field has
    """Remove annotations from a type, or from the members of a union."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(map(_bare, get_args(kind)))]  # noqa: UP007
    return kind


def _is(container: type, kind: Any) -> bool:  # noqa: ANN401 - of any type that a field has
    """Return whether a type is a container, or a container or None."""
    is_union = get_origin(kind) in (Union, UnionType)
    origins = map(get_origin, get_args(kind) if is_union else [kind])
    return any(isinstance(one, type) and issubclass(one, container) for one in origins)


def _as_typed(value: object) -> str:
    """Format a default as it is typed on the command line."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={item}" for name, item in value.items())
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
