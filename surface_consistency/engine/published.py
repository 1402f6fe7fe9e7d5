"""Settings that a paper states for its experiment: the file `published.toml` of a study.

The tables `settings`, `scoring` and `model` correspond to records of a run. Each entry has the name
of a field. It contains the `value` that `as_published` sets (nothing is set without it), the
`section` of the paper that states it and, if the default differs, the `reason`. `unstated` lists,
by field or subject, details that the paper does not state ("" for those that an extending file
states); `unmatched` lists details that no setting reproduces. `rows` is the number of rows of the
published data by their id. A study with several protocols has a file for each,
`published_<protocol>.toml`; `extends` names the protocol whose entries a file changes.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, TypeAdapter

_TABLES: Final = ("settings", "scoring", "model", "unstated", "unmatched")


class Difference(NamedTuple):
    """A default that differs from the paper, or a detail that the paper does not state."""

    table: str
    """Table of the file that contains it."""

    name: str
    """Field of a settings record, or subject."""

    default: str
    """The default; "" if there is no setting for it."""

    paper: str
    """The value in the paper; "not stated" if there is none."""

    section: str
    """Section of the paper; "" if it is not stated."""

    reason: str
    """Why the default differs."""


@cache
def read_published(package: str, protocol: str | None = None) -> Mapping[str, Any]:
    """Read the settings that a paper states.

    Args:
        package: Importable name of the study's package.
        protocol: Protocol of a study with several; None for one with a single one.

    Returns:
        The tables of the file; those that it does not have are empty.
    """
    name = f"published_{protocol}.toml" if protocol else "published.toml"
    found = tomllib.loads(resources.files(package).joinpath(name).read_text("utf-8"))
    base = read_published(package, found["extends"]) if "extends" in found else {}
    tables = {name: {**base.get(name, {}), **found.get(name, {})} for name in _TABLES}
    return {**base, **found, **tables}


def values_of(record: type[BaseModel], entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Convert the values of a paper to the types of the fields of a record.

    Args:
        record: The record.
        entries: A table of `read_published`.

    Returns:
        The values by field.
    """
    return {
        name: TypeAdapter(record.model_fields[name].rebuild_annotation()).validate_python(
            entry.get("value"), strict=False
        )
        for name, entry in entries.items()
    }


def reject_contradiction(given: Mapping[str, Any], published: Mapping[str, Any]) -> None:
    """Raise an error if a value differs from the published one.

    Args:
        given: Values by field.
        published: Published values by field; fields that are not given are not compared.

    Raises:
        ValueError: If a value differs; names the field.
    """
    for name, value in published.items():
        if name in given and given[name] != value:
            raise ValueError(
                f"`as_published` sets `{name}={as_typed(value)}`, but {as_typed(given[name])} was "
                f"given; omit `{name}` or `as_published`"
            )


def differences(
    paper: Mapping[str, Any], records: Mapping[str, type[BaseModel]]
) -> Iterator[Difference]:
    """List the defaults of a study that differ from its paper, or that the paper does not state.

    Args:
        paper: The result of `read_published`.
        records: Records of the tables "settings", "scoring" and "model".

    Yields:
        Defaults that differ and have a reason, then details that no setting reproduces, then
        details that the paper does not state.
    """
    defaults = {
        name: as_typed(field.get_default())
        for record in records.values()
        for name, field in record.model_fields.items()
    }
    for table in records:
        for name, entry in paper[table].items():
            stated = as_typed(entry.get("value"))
            if stated != defaults[name] and "reason" in entry:
                shown = entry.get("shown", stated)
                section, reason = entry["section"], entry["reason"]
                yield Difference(table, name, defaults[name], shown, section, reason)
    for name, entry in paper["unmatched"].items():
        yield Difference("unmatched", name, **entry)
    for name, reason in paper["unstated"].items():
        if reason:
            yield Difference("unstated", name, defaults.get(name, ""), "not stated", "", reason)


def as_typed(value: object) -> str:
    """Format a value as on the command line."""
    if isinstance(value, tuple | list):
        return " ".join(map(as_typed, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value)
