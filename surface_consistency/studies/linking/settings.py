"""The options of the linking probe."""

from typing import ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from surface_consistency.engine.settings import JudgeScoring, PublishedSettings, StudyRecords
from surface_consistency.studies.redirectqa.settings import RedirectQASource


class LinkingSettings(PublishedSettings):
    """How the linking probe asks."""

    options_are_spellings: ClassVar[bool] = True
    """The options are spellings of yes and of no."""

    read: Literal["log-odds", "generate"] = "log-odds"
    """Whether the probabilities of yes and no are compared, or the model writes; the paper does not
    state which."""

    wording: Literal["category", "same-entity"] = "category"
    """Whether each redirect category has its own question, as in the paper, or all ask alike."""

    surface_negative: Literal["one-character", "other-entity-same-shape"] = "one-character"
    """How surface negatives are made: one character of one name is replaced, as in the paper, or
    the redirect gives way to that of another entity which looks alike, so that "no" is beyond
    dispute."""

    neighbours: str = "names"
    """Where the similar entities of semantic negatives come from: names (spelled alike), embedder
    (a sentence encoder; extra `retrieval`), a text file of word vectors such as cc.en.300.vec,
    which is the paper's way, or module:attribute, a function from names to vectors."""

    shots: int = Field(default=0, ge=0)
    """Demonstrations before each question, yes and no in turn; their entities are not asked."""

    chat: bool = False
    """Whether prompts are turns for the model's chat template rather than plain text."""

    calibrate: bool = True
    """Whether each wording is also asked with N/A for both names, to take a habit of yes or no out
    of the log-odds."""

    max_new_tokens: int = Field(default=5, ge=1)
    """Longest answer with `read=generate`, in tokens."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many pairs of names."""

    @model_validator(mode="after")
    def _has_the_papers_neighbours(self) -> Self:
        """Refuse other neighbours than those by word vectors, if the run is as published."""
        if self.as_published and self.neighbours in ("names", "embedder"):
            raise ValueError(
                "`as_published` needs `neighbours`, the fastText vectors of the paper: a text file "
                "such as cc.en.300.vec, or module:attribute, a function from names to vectors; got "
                f"{self.neighbours!r}"
            )
        return self


class LinkingScoring(JudgeScoring):
    """How answers are judged: yes is right for true pairs alone."""

    calibrated: bool = False
    """Whether yes means calibrated log-odds above 0, rather than log-odds above 0."""


RECORDS: Final = StudyRecords(RedirectQASource, LinkingSettings, LinkingScoring)
"""The settings records of the study."""
