"""Rows of the outcomes frame: one pair under two conditions, for one model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surface_consistency.schemas._record import NonEmpty, Record

if TYPE_CHECKING:
    import pandas as pd


class PairedOutcome(Record):
    """What every study records of a pair; studies add columns for what varies besides."""

    study: NonEmpty
    """Name of the study, such as "redirectqa"."""

    model: NonEmpty
    """Label of the model or run."""

    pair: NonEmpty
    """Identifier of the pair, unique for a model."""

    item: NonEmpty
    """The fact that both conditions ask for; the default cluster of intervals."""

    first_condition: NonEmpty
    """What the first verdict stands for, such as "canonical"."""

    second_condition: NonEmpty
    """What the second verdict stands for, such as "redirect"."""

    first_correct: bool | None
    """Verdict under the first condition; None when it could not be judged."""

    second_correct: bool | None
    """Verdict under the second condition; None when it could not be judged."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Compute columns that need more than the verdict on one side.

        Args:
            pairs: `Plan.pairs`.
            verdicts: One row per target, columns of the study's record of a verdict.

        Returns:
            Values by name, one per pair; empty by default.
        """
        return {}
