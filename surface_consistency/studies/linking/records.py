"""Verdicts and outcomes of the linking probe."""

from typing import Literal

from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.verdicts import Verdict

LinkingKind = Literal["positive", "surface_negative", "semantic_negative"]
"""A true pair of names; one with a character replaced; one with the name of a similar entity."""


class LinkingVerdict(Verdict):
    """What a model said of an example."""

    log_odds: float | None = None
    """Log of the odds of the words of affirmation against those of denial, in nats; None where it
    wrote its answer."""

    calibrated_log_odds: float | None = None
    """The same, less that of the wording with "N/A" for both names; None without calibration."""


class LinkingOutcome(PairedOutcome):
    """One example in both orders of its names."""

    source_id: NonEmpty
    """The true pair that it is, or that it was made from."""

    subject_id: str | None
    """Wikidata item of the entity: what intervals take as a whole."""

    kind: LinkingKind
    """Whether it is true, and how it was made false."""

    first_surface: NonEmpty
    """What stands for the canonical name."""

    second_surface: NonEmpty
    """What stands for the redirect name."""

    categories: Items[str]
    """The redirect category whose wording asks; empty where the same entity is asked for."""

    types: Items[str]
    """Types of that category."""

    is_main: bool
    """Whether the category is the first of the pair's, so that each pair counts once in totals."""

    is_disputable: bool
    """Whether "no" can be held against it."""

    first_prediction: str | None
    """The answer with the redirect first."""

    second_prediction: str | None
    """The answer with the canonical name first."""

    first_log_odds: float | None
    """Log-odds of yes with the redirect first, in nats."""

    second_log_odds: float | None
    """Log-odds of yes with the canonical name first, in nats."""

    first_calibrated_log_odds: float | None
    """Calibrated log-odds with the redirect first."""

    second_calibrated_log_odds: float | None
    """Calibrated log-odds with the canonical name first."""
