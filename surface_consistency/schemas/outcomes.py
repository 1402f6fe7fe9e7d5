"""Rows of the outcomes frame: one pair under two conditions, for one model."""

from surface_consistency.schemas._record import Items, NonEmpty, Record

__all__ = ["PairedOutcome", "RedirectOutcome"]


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


class RedirectOutcome(PairedOutcome):
    """A canonical-redirect pair of RedirectQA."""

    subject_id: str | None
    """Wikidata item of the subject: the coarser cluster."""

    relation: NonEmpty
    """Name of the relation."""

    template: NonEmpty
    """Which wording of the question."""

    categories: Items[str]
    """Redirect category labels of the second surface."""

    types: Items[str]
    """Redirect type names of the second surface."""

    first_surface: NonEmpty
    """Canonical name of the subject."""

    second_surface: NonEmpty
    """Redirect name of the subject."""

    first_prediction: str | None
    """Judged part of the answer under the canonical name."""

    second_prediction: str | None
    """Judged part of the answer under the redirect name."""
