"""Wikis by name, or from a file."""

import json
import os
import tomllib
from pathlib import Path

from pydantic import ValidationError

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.wikimedia.wikis._dewiki import DEWIKI
from surface_consistency.wikimedia.wikis._enwiki import ENWIKI, ENWIKI_V0_1_0, SIMPLEWIKI
from surface_consistency.wikimedia.wikis._jawiki import JAWIKI
from surface_consistency.wikimedia.wikis._zhwiki import ZHWIKI
from surface_consistency.wikimedia.wikis.config import WikiConfig

__all__ = ["WIKIS", "load_wiki"]

WIKIS: dict[str, WikiConfig] = {
    config.name: config for config in (ENWIKI, ENWIKI_V0_1_0, SIMPLEWIKI, ZHWIKI, JAWIKI, DEWIKI)
}
"""The wikis that come with this package, by name."""


def load_wiki(source: str | os.PathLike[str]) -> WikiConfig:
    """Find a wiki's configuration.

    Args:
        source: One of `WIKIS`, or a TOML or JSON file with the fields of `WikiConfig`. A file may
            hold `base = "enwiki"`: fields that it does not give are taken from there.

    Returns:
        The configuration.

    Raises:
        SourceNotFoundError: If there is neither such a name nor such a file.
        RecordError: If the file is not a configuration; names the field and the rule.

    Examples:
        >>> load_wiki("enwiki").project
        'en.wikipedia'
    """
    if str(source) in WIKIS:
        return WIKIS[str(source)]
    path = Path(source)
    if not path.is_file():
        raise SourceNotFoundError(
            f"no wiki {str(source)!r}: neither a file nor one of {', '.join(WIKIS)}; "
            "describe it in a TOML file with the fields of WikiConfig"
        )
    return _validated(path, _fields(path))


def _fields(path: Path) -> dict[str, object]:
    """Read the file's fields over those of its base."""
    try:
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise RecordError(f"{path}: not {kind}: {error}") from error
    if not isinstance(fields, dict):
        raise RecordError(f"{path}: a configuration is a table of fields")
    base = fields.pop("base", None)
    if base is None:
        return fields
    if not isinstance(base, str) or base not in WIKIS:
        raise RecordError(f"{path}: base must be one of {', '.join(WIKIS)}, got {base!r}")
    return WIKIS[base].model_dump() | fields


def _validated(path: Path, fields: dict[str, object]) -> WikiConfig:
    """Build the record."""
    try:
        return WikiConfig.model_validate(fields)
    except ValidationError as error:
        raise RecordError(f"{path}: {_described(error)}") from error


def _described(error: ValidationError) -> str:
    """Say which field broke which rule; a rule about several fields names them itself."""
    clauses = []
    for detail in error.errors(include_url=False):
        rule = detail["msg"].removeprefix("Value error, ")
        field = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            fields = ", ".join(("base", *WikiConfig.model_fields))
            rule = f"there is no such field; the fields are {fields}"
        elif detail["type"] not in {"missing", "value_error"}:
            rule = f"{rule}, got {detail['input']!r}"
        clauses.append(f"field {field!r}: {rule}" if field else rule)
    return "; ".join(clauses)
