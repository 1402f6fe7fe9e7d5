"""The options of the linking probe."""

from typing import ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from surface_consistency.engine.settings import JudgeScoring, PublishedSettings, StudyRecords
from surface_consistency.studies.redirectqa.settings import RedirectQASource


class LinkingSettings(PublishedSettings):
    """How the linking probe queries a model."""

    options_are_spellings: ClassVar[bool] = True
    """The options are spellings of yes and of no."""

    read: Literal["log-odds", "generate"] = "log-odds"
    """Compare the probabilities of yes and no, or let the model generate an answer; the paper does
    not state which."""

    wording: Literal["category", "same-entity"] = "category"
    """Use one question per redirect category, as in the paper, or the same question for all."""

    surface_negative: Literal["one-character", "other-entity-same-shape"] = "one-character"
    """Method of making surface negatives: replace one character of one name, as in the paper, or
    replace the redirect by a redirect of similar shape to another entity, for which the answer "no"
    is not disputable."""

    neighbours: str = "names"
    """Source of the similar entities for semantic negatives: names (similar spelling), embedder
    (a sentence encoder; extra `retrieval`), a text file of word vectors such as cc.en.300.vec,
    which is the paper's method, or module:attribute, a function from names to vectors."""

    shots: int = Field(default=0, ge=0)
    """Number of demonstrations before each question, yes and no in turn; their entities are
    excluded from the questions."""

    chat: bool = False
    """Use the chat template of the model rather than plain text."""

    calibrate: bool = True
    """Calibrate the log-odds against a bias towards yes or no, by prompts with N/A for both
    names."""

    max_new_tokens: int = Field(default=5, ge=1)
    """Maximum number of new tokens with `read=generate`."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of pairs of names."""

    @model_validator(mode="after")
    def _has_the_papers_neighbours(self) -> Self:
        """Reject neighbours that are not by word vectors if the run is as published."""
        if self.as_published and self.neighbours in ("names", "embedder"):
            raise ValueError(
                "`as_published` needs the fastText vectors of the paper; pass `neighbours`, a text "
                "file such as cc.en.300.vec, or module:attribute, a function from names to "
                f"vectors; got {self.neighbours!r}"
            )
        return self


class LinkingScoring(JudgeScoring):
    """How answers are scored: yes is correct for true pairs only."""

    calibrated: bool = False
    """Read yes from calibrated log-odds above 0 instead of log-odds above 0."""


RECORDS: Final = StudyRecords(RedirectQASource, LinkingSettings, LinkingScoring)
"""The settings records of the study."""
