"""Entities, their surface forms, facts, questions, and the source of the rows."""

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record


class Entity(Record):
    """A real-world entity, independent of its name."""

    id: str | None
    """Wikidata item, such as "Q1077554"; None if the source does not contain it."""

    name: NonEmpty
    """Canonical name, spelled as in the source."""

    aliases: Items[str] = ()
    """Other names, in the source's order."""

    pageviews: int | None = Field(default=None, ge=0)
    """Views of its Wikipedia page over the source's period; None if unknown."""


class SurfaceForm(Record):
    """One name of an entity, as used in a question."""

    text: NonEmpty
    """The name as in the question; not normalised."""

    is_canonical: bool
    """Whether this is the entity's article title rather than a redirect to it."""

    categories: Items[str] = ()
    """Redirect category labels such as "Redirects_from_birth_names"; empty if canonical."""

    types: Items[str] = ()
    """Redirect type names such as "spelling_variants"; "unknown" for categories outside the 33."""

    redirect_title: str | None = None
    """Title of the redirect page; None if canonical or not given."""

    @model_validator(mode="after")
    def _canonical_has_no_category(self) -> "SurfaceForm":
        """Raise an error for a surface form that is both canonical and a redirect."""
        if self.is_canonical and self.categories:
            raise ValueError("a canonical surface form has no redirect categories")
        return self


class FactualTriple(Record):
    """A fact: subject, relation, object, and the answers that name the object."""

    id: NonEmpty
    """Identifier of the fact in its data set; the cluster of all its questions."""

    subject: Entity
    """The subject of the question."""

    relation: NonEmpty
    """Name of the relation, such as "place_of_birth"."""

    object: Entity
    """The object, which the correct answer names."""

    answers: Items[str]
    """Accepted answers, the object's name first; empty if the source contains none."""


class DataSource(Record):
    """The source of the questions of a run."""

    id: NonEmpty
    """Hub repository, file or folder of the rows."""

    revision: str | None
    """Commit of the repository; None for local sources."""

    digest: NonEmpty
    """SHA-256 of the questions and answers used; equal digests mean equal data."""

    n_questions: int = Field(ge=0)
    """Number of questions used."""

    @property
    def is_sample(self) -> bool:
        """Whether this is a sample bundled with the package, for trying out."""
        return self.id == "sample" or ("/" not in self.id and self.id.endswith("-sample"))


class QuestionRealization(Record):
    """A surface instance (fact x surface form) under one template: one row of RedirectQA."""

    id: NonEmpty
    """Stable identifier, unique in its data set."""

    triple: FactualTriple
    """The fact of the question."""

    surface: SurfaceForm
    """The name of the subject in this question."""

    template: NonEmpty
    """The wording: "original" or "paraphrase"."""

    question: NonEmpty
    """Text of the question."""
