"""Rows of the outcomes frame: one pair under two conditions, for one model."""

from surface_consistency.schemas._record import NonEmpty, Record


class PairedOutcome(Record):
    """What every study records of a pair; studies add columns for what varies besides."""

    study: NonEmpty
    """Name of the study, such as "redirectqa"."""

    model: NonEmpty
    """Label of the model or run."""

    pair_id: NonEmpty
    """Identifier of the pair, unique for a model."""

    fact_id: NonEmpty
    """The fact that both conditions ask for; the default cluster of intervals."""

    first_condition: NonEmpty
    """What the first verdict stands for, such as "canonical"."""

    second_condition: NonEmpty
    """What the second verdict stands for, such as "redirect"."""

    first_correct: bool | None
    """Verdict under the first condition; None when it could not be judged."""

    second_correct: bool | None
    """Verdict under the second condition; None when it could not be judged."""
