"""Correctness labels and outcomes of the linking probe."""

from typing import Literal

from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.verdicts import Verdict

LinkingKind = Literal["positive", "surface_negative", "semantic_negative"]
"""A true pair of names; a pair with one character replaced; a pair with the name of a similar
entity."""


class LinkingVerdict(Verdict):
    """Correctness label of an answer to an example, with its log-odds."""

    log_odds: float | None = None
    """Log of the odds of the words of affirmation against those of denial, in nats; None if the
    answer was generated."""

    calibrated_log_odds: float | None = None
    """Log-odds minus those of the wording with "N/A" for both names; None without calibration."""


class LinkingOutcome(PairedOutcome):
    """One example in both orders of its names."""

    source_id: NonEmpty
    """Id of the true pair that is the example, or from which it was made."""

    subject_id: str | None
    """Wikidata item of the entity; the clustering column of intervals."""

    kind: LinkingKind
    """True pair, or kind of false pair."""

    first_surface: NonEmpty
    """The canonical name or its replacement."""

    second_surface: NonEmpty
    """The redirect name or its replacement."""

    categories: Items[str]
    """The redirect category whose wording is used; empty for the wording of the same entity."""

    types: Items[str]
    """Types of that category."""

    is_main: bool
    """Whether the category is the first of the pair, so that each pair counts once in totals."""

    is_disputable: bool
    """Whether the correct answer "no" is disputable."""

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
