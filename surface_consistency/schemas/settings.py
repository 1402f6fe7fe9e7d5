"""Settings: records whose fields are options of a command, entries of a manifest and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from surface_consistency.reading import json_or_text

T = TypeVar("T")

RARE: Final = "rare"
"""Marks a field that has no flag of its own, see `Rare`."""

Rare = Annotated[T, RARE]
"""A setting that few users change: `--setting NAME=VALUE` sets it on the command line."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Annotation of a field whose flag is not its name.

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
        defer_build=True,  # Printing the options of a command validates nothing.
    )


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
