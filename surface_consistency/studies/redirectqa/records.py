"""The row of the outcomes frame of RedirectQA."""

from surface_consistency.schemas import PairedOutcome
from surface_consistency.schemas._record import Items, NonEmpty

__all__ = ["RedirectOutcome"]


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
