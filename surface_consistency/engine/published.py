"""What a paper states of how its experiment is run: the file `published.toml` of a study.

Tables of the file are records of a run: `settings`, `scoring` and `model`. Each has, by the name of
a field, the `value` that `as_published` sets (none if it is absent), the `section` of the paper
that states it and, where the default is another, the `reason`. `unstated` has, by field or
subject, what the paper leaves open ("" for what an extending file states); `unmatched` what no
setting reproduces. `rows` is the number of rows of the published data by their id. A study with
several protocols has a file for each, `published_<protocol>.toml`; `extends` names the protocol
whose entries a file changes.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, TypeAdapter

_TABLES: Final = ("settings", "scoring", "model", "unstated", "unmatched")


class Difference(NamedTuple):
    """A default that is not the paper's, or something that the paper leaves open."""

    table: str
    """Table of the file that names it."""

    name: str
    """Field of a settings record, or subject."""

    default: str
    """What is done by default; "" if no setting says it."""

    paper: str
    """What the paper states; "not stated" if it leaves this open."""

    section: str
    """Where it is stated; "" if it is not."""

    reason: str
    """Why the default is another."""


@cache
def read_published(package: str, protocol: str | None = None) -> Mapping[str, Any]:
    """Read what a paper states.

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
    """Read what a paper sets as values of the fields of a record.

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


def refuse_contradiction(given: Mapping[str, Any], published: Mapping[str, Any]) -> None:
    """Refuse values that are not the published ones.

    Args:
        given: Values by field.
        published: What they must be, where they are given.

    Raises:
        ValueError: If one is another; names the field.
    """
    for name, value in published.items():
        if name in given and given[name] != value:
            raise ValueError(
                f"`as_published` sets `{name}={as_typed(value)}`, and {as_typed(given[name])} was "
                f"given; leave out `{name}` or `as_published`"
            )


def differences(
    paper: Mapping[str, Any], records: Mapping[str, type[BaseModel]]
) -> Iterator[Difference]:
    """List what a study does by default otherwise than its paper, or where the paper is silent.

    Args:
        paper: What `read_published` returned.
        records: Records of the tables "settings", "scoring" and "model".

    Yields:
        The defaults that differ for a reason of their own, then what no setting reproduces, then
        what the paper leaves open.
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
    """Write a value as one types it."""
    if isinstance(value, tuple | list):
        return " ".join(map(as_typed, value))
    return str(value).lower() if isinstance(value, bool | None) else str(value)
