"""The options of the study of forms."""

from typing import Final, Literal

from pydantic import Field, model_validator

from surface_consistency.engine.settings import (
    OptionSettings,
    RuleScoring,
    SourceSettings,
    StudyRecords,
)
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Rare


class FormsSource(SourceSettings):
    """Source of the items."""

    source: str = ""
    """Hub id, folder, Parquet, JSONL or CSV file with the columns item, form, question and
    references (or choices and answer_index), or "sample" for the bundled rows; by default the hub
    repository of `preset`."""

    preset: str | None = None
    """Layout of a known data set: popqa-robustness, pararel, mpararel, mpararel-hub, bmlama, klar,
    mkqa, global-mmlu, counterfact or reversal-curse."""

    reference_separator: Rare[str | None] = None
    """Separator of several accepted answers in a text cell, such as "|"."""

    wordings: Rare[Literal["shared", "templates", "own"] | None] = None
    """Kind of forms: the same for all items (shared), templates of the item's relation (templates),
    or the item's own wordings (own); by default those of the preset, or templates if all rows have
    a relation, or shared."""


class FormsSettings(OptionSettings):
    """How items are queried in their forms."""

    reference: str | None = None
    """Form with which the others are compared; by default that of the preset, or the first form."""

    forms: Items[str] = ()
    """Use only these forms and the reference."""

    shots: int = Field(default=0, ge=0)
    """Number of solved items before each question, in the reference form, equal for all forms."""

    frame: Rare[str | None] = None
    """Prompt template that contains {question}; by default that of the preset, or "Q: {question}
    A:"."""

    chat: bool = False
    """Use the chat template of the model rather than plain text."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Maximum number of new tokens."""

    stop: Rare[bool] = True
    """End an answer at the newline; without it, whole outputs can be scored."""

    samples: int = Field(default=1, ge=1)
    """Number of samples per question, which separate the effect of wording from sampling noise."""

    temperature: float = Field(default=0.0, ge=0.0)
    """Temperature of the answers; 0 is greedy."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of items, spread over the relations, each in all its forms."""

    @model_validator(mode="after")
    def _draws(self) -> "FormsSettings":
        """Reject several samples of a deterministic answer, and a frame without a question."""
        if self.samples > 1 and self.temperature == 0.0:
            raise ValueError(
                f"samples={self.samples} at temperature 0 repeat one answer; set `temperature`"
            )
        if self.samples > 1 and self.read != "generate":
            raise ValueError(
                "options are compared by their probabilities, which cannot be sampled; omit "
                "`samples` or `read`"
            )
        if self.frame is not None and self.frame.count("{question}") != 1:
            raise ValueError(f"frame must contain {{question}} once; got {self.frame!r}")
        return self


RECORDS: Final = StudyRecords(FormsSource, FormsSettings, RuleScoring)
"""The settings records of the study."""
