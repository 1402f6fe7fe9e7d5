"""Base class of settings, whose fields are options, arguments and entries of the manifest."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from surface_consistency.reading import json_or_text
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.text import did_you_mean

T = TypeVar("T")

RARE: Final = "rare"
"""Marks a field without its own flag, see `Rare`."""

Rare = Annotated[T, RARE]
"""A setting that few users change: `--setting NAME=VALUE` sets it on the command line."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Annotation of a field whose flag differs from its name.

    Examples:
        >>> Annotated[int, Flag("--permutations")].__metadata__[0].name
        '--permutations'
    """

    name: str
    """The flag with its dashes."""


class Settings(BaseModel):
    """A record whose fields are options: each field's docstring is its help text."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        defer_build=True,  # Printing the options of a command does not need a validator.
    )

    if not TYPE_CHECKING:  # Type checkers derive the arguments from the fields.

        def __init__(self, /, **values: object) -> None:
            """Check the values; an invalid one raises a ValueError without pydantic's details."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                message = f"{type(self).__name__}: {describe_validation_error(error)}"
                raise ValueError(message) from error

        __init__.__pydantic_base_init__ = True  # `model_validate` does not call it.


def reject_unknown(options: Mapping[str, object], known: Collection[str], owner: str) -> None:
    """Raise an error for an unknown option.

    Args:
        options: Values by name.
        known: Names of the options.
        owner: Name of the owner of the options, for messages.

    Raises:
        ValueError: If an option is unknown.

    Examples:
        >>> reject_unknown({"limt": 3}, ["limit"], "slaq")
        Traceback (most recent call last):
        ValueError: slaq has no option 'limt' (did you mean 'limit'?); its options: limit
    """
    for name in options:
        if name not in known:
            raise ValueError(
                f"{owner} has no option {name!r}{did_you_mean(name, known)}; its options: "
                f"{', '.join(sorted(known)) or 'none'}"
            )


def made_from(
    records: Sequence[type[BaseModel]],
    options: Mapping[str, object],
    owner: str,
    *,
    strict: bool | None = None,
) -> list[Any]:
    """Create records from options, each from those that are its fields.

    Args:
        records: Classes of the records.
        options: Values by name.
        owner: Name of the owner of the options, for messages.
        strict: Whether values of other types raise an error; by default as the records define.

    Returns:
        The records in the order of their classes.

    Raises:
        ValueError: If no record has a field of that name, or a value is invalid.
    """
    reject_unknown(options, {name for record in records for name in record.model_fields}, owner)
    try:
        return [
            record.model_validate(
                {name: value for name, value in options.items() if name in record.model_fields},
                strict=strict,
            )
            for record in records
        ]
    except ValidationError as error:
        raise ValueError(f"{owner}: {describe_validation_error(error)}") from error


def values_of_items(given: Mapping[str, str], option: str) -> dict[str, object]:
    """Parse the values of NAME=VALUE items as JSON, or else as text.

    Args:
        given: Values by name.
        option: The field of the items, for messages.

    Returns:
        The values.

    Raises:
        RecordError: If a value is JSON beyond the limits of `reading.json_or_text`.

    Examples:
        >>> given = {"concurrency": "32", "base_url": "http://localhost"}
        >>> values_of_items(given, "runner_option")
        {'concurrency': 32, 'base_url': 'http://localhost'}
    """
    return {name: json_or_text(value, f"`{option}` {name}") for name, value in given.items()}
