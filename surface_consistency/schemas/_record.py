"""The base class of all records: strict, immutable, without unknown fields."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Field(strict=False)]
"""A sequence field: lists are converted to tuples, and the items are validated strictly."""

NonEmpty = Annotated[str, Field(min_length=1)]
"""A string of at least one character."""


class Record(BaseModel):
    """An immutable record; unknown fields and implicit type conversions raise an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants"
    )
