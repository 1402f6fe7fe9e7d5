"""Entities, their surface forms, facts of them, questions after these, and where rows come from."""

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record


class Entity(Record):
    """A thing with an identity, whatever it is called."""

    id: str | None
    """Wikidata item, such as "Q1077554"; None when the source names none."""

    name: NonEmpty
    """Canonical name, in its spelling in the source."""

    aliases: Items[str] = ()
    """Other names, in the source's order."""

    pageviews: int | None = Field(default=None, ge=0)
    """Views of its Wikipedia page over the source's period; None when unknown."""


class SurfaceForm(Record):
    """One name under which an entity is asked about."""

    text: NonEmpty
    """The name as the question uses it; never normalised."""

    is_canonical: bool
    """Whether this is the entity's article title rather than a redirect to it."""

    categories: Items[str] = ()
    """Redirect category labels such as "Redirects_from_birth_names"; empty when canonical."""

    types: Items[str] = ()
    """Redirect type names such as "spelling_variants"; "unknown" for categories outside the 33."""

    redirect_title: str | None = None
    """Title of the redirect page; None when canonical or not given."""

    @model_validator(mode="after")
    def _canonical_has_no_category(self) -> "SurfaceForm":
        """Refuse a surface that claims to be both canonical and a redirect."""
        if self.is_canonical and self.categories:
            raise ValueError("a canonical surface form has no redirect categories")
        return self


class FactualTriple(Record):
    """A fact: subject, relation, object, and the answers that name the object."""

    id: NonEmpty
    """Identifier of the fact in its data set; the cluster of all its questions."""

    subject: Entity
    """What is asked about."""

    relation: NonEmpty
    """Name of the relation, such as "place_of_birth"."""

    object: Entity
    """What the right answer names."""

    answers: Items[str]
    """Accepted answers, the object's name first; empty when the source gives none."""


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
