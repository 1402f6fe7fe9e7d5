"""A fact asked under one surface form in one wording, pairs of them, and where they come from."""

from pydantic import Field, model_validator

from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.facts import FactualTriple, SurfaceForm

__all__ = ["CanonicalRedirectPair", "DataSource", "QuestionRealization"]


class DataSource(Record):
    """Which rows were asked."""

    id: NonEmpty
    """Hub repository, file or folder that the rows came from."""

    revision: str | None
    """Commit of the repository; None for local sources."""

    digest: NonEmpty
    """SHA-256 of the questions and answers used: equal digests are equal data."""

    n_questions: int = Field(ge=0)
    """Questions used."""

    @property
    def is_sample(self) -> bool:
        """Whether this is a sample of the package, which is there to try things out."""
        return self.id == "sample" or ("/" not in self.id and self.id.endswith("-sample"))


class QuestionRealization(Record):
    """A surface instance (fact x surface form) under one template: one row of RedirectQA."""

    id: NonEmpty
    """Stable identifier, unique in its data set."""

    triple: FactualTriple
    """The fact that is asked for."""

    surface: SurfaceForm
    """The name of the subject in this question."""

    template: NonEmpty
    """Which wording: "original" or "paraphrase"."""

    question: NonEmpty
    """The question itself."""


class CanonicalRedirectPair(Record):
    """The unit of the consistency analysis: one fact, one template, two names."""

    id: NonEmpty
    """Identifier of the pair: that of its redirect question."""

    canonical: QuestionRealization
    """The question under the canonical surface form."""

    redirect: QuestionRealization
    """The question under the redirect surface form."""

    @model_validator(mode="after")
    def _differs_in_surface_alone(self) -> "CanonicalRedirectPair":
        """Refuse members that differ in more than the surface form."""
        first, second = self.canonical, self.redirect
        if first.triple.id != second.triple.id or first.template != second.template:
            raise ValueError("the members of a pair must share fact and template")
        if not first.surface.is_canonical or second.surface.is_canonical:
            raise ValueError("a pair is one canonical question and one redirect question")
        return self
