"""One row of a file of stored predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surface_consistency.errors import RecordError
from surface_consistency.schemas.generations import replace_surrogates

__all__ = ["Row", "identifier", "shown", "text_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file and where it stands."""

    place: str
    fields: Mapping[str, Any]


def identifier(row: Row, field: str, value: object) -> str:
    """Read an identifier: a string, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return value
    raise RecordError(
        f"{row.place}: field {field!r}: an identifier is a string or a whole number, got "
        f"{shown(value)}"
    )


def text_of(row: Row, value: object) -> str | None:
    """Read a predicted text; what UTF-8 cannot hold is replaced."""
    if value is None:
        return None
    if isinstance(value, str):
        return replace_surrogates(value)
    raise RecordError(f"{row.place}: a prediction is a string, got {shown(value)}")


def shown(value: object) -> str:
    """Show a value, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
