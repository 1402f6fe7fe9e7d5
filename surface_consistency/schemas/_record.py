"""The base of every record: strict, frozen, closed."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Field(strict=False)]
"""A sequence field: lists are taken as tuples, the items themselves stay strict."""

NonEmpty = Annotated[str, Field(min_length=1)]
"""A string of at least one character."""


class Record(BaseModel):
    """A strict, immutable value; unknown fields and silent casts are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants"
    )
