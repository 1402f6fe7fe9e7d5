"""How many rows each step took in, how many it passed on, and why the others went."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from surface_consistency.schemas._record import NonEmpty, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StepCount", "attrition_frame"]


class StepCount(Record):
    """One line of the attrition table: rows that left a step for one reason.

    A step that lost nothing has one line with no reason. The lines of a step and unit share
    `rows_in` and `rows_out`, and their `removed` sum to the difference; only where the unit changes
    ("rows of views to titles") is there no such sum.
    """

    step: NonEmpty
    """Name of the step."""

    unit: NonEmpty
    """What its rows are, such as "triples"."""

    rows_in: int = Field(ge=0)
    """Rows that it looked at."""

    rows_out: int = Field(ge=0)
    """Rows that it passed on."""

    reason: str | None = None
    """Why rows went; None when none did."""

    removed: int = Field(default=0, ge=0)
    """Rows that went for this reason; each row counts once, under the first that holds."""


def attrition_frame(counts: Sequence[StepCount]) -> "pd.DataFrame":
    """Lay the counts out as a table.

    Args:
        counts: Counts of the steps, in their order.

    Returns:
        One row a count, with the fields of `StepCount` as columns.
    """
    import pandas as pd

    return pd.DataFrame(
        [count.model_dump() for count in counts], columns=list(StepCount.model_fields)
    )
