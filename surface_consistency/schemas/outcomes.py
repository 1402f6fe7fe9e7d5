"""Rows of the outcomes frame: one pair under two conditions, for one model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surface_consistency.schemas._record import NonEmpty, Record

if TYPE_CHECKING:
    import pandas as pd


class PairedOutcome(Record):
    """Fields of a pair that all studies record; studies add columns."""

    study: NonEmpty
    """Name of the study, such as "redirectqa"."""

    model: NonEmpty
    """Label of the model or run."""

    pair: NonEmpty
    """Identifier of the pair, unique per model."""

    item: NonEmpty
    """The fact of both conditions; the default cluster of intervals."""

    first_condition: NonEmpty
    """Name of the first condition, such as "canonical"."""

    second_condition: NonEmpty
    """Name of the second condition, such as "redirect"."""

    first_correct: bool | None
    """Correctness label under the first condition; None if unscored."""

    second_correct: bool | None
    """Correctness label under the second condition; None if unscored."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Compute columns that need more than one correctness label.

        Args:
            pairs: `Plan.pairs`.
            verdicts: One row per target, with the columns of the study's verdict record.

        Returns:
            Values by name, one per pair; empty by default.
        """
        return {}
