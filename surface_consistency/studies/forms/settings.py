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
    """Where the items come from."""

    source: str = ""
    """Hub id, folder, Parquet, JSONL or CSV file with the columns item, form, question and answers
    (or choices and answer_index), or "sample" for the rows that come along; by default the hub's
    repository of `preset`."""

    preset: str | None = None
    """Layout of a known data set: popqa-robustness, pararel, mpararel, mpararel-hub, bmlama, klar,
    mkqa, global-mmlu, counterfact or reversal-curse."""

    reference_separator: Rare[str | None] = None
    """What separates several accepted answers in a cell of text, such as "|"."""

    wordings: Rare[Literal["shared", "templates", "own"] | None] = None
    """What a form is: the same for all items (shared), a template of the item's relation
    (templates), or the item's own wording (own); by default templates where rows have a relation,
    and else shared."""


class FormsSettings(OptionSettings):
    """How items are asked in their forms."""

    reference: str | None = None
    """Form that the others are held against; that of the preset, or the first, by default."""

    forms: Items[str] = ()
    """Ask in these forms alone, the reference besides."""

    shots: int = Field(default=0, ge=0)
    """Solved items before each question, in the reference form, the same ones under every form."""

    frame: Rare[str | None] = None
    """What stands around a question, with {question} in it; that of the preset, or "Q: {question}
    A:", by default."""

    chat: bool = False
    """Whether prompts are turns for the model's chat template rather than plain text."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Longest answer, in tokens."""

    stop: Rare[bool] = True
    """Whether an answer ends at the newline; without, whole outputs can be judged."""

    samples: int = Field(default=1, ge=1)
    """Answers drawn to every question, which tell the wording from the dice."""

    temperature: float = Field(default=0.0, ge=0.0)
    """Temperature of the answers; 0 is greedy."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many items, spread over the relations, each in all its forms."""

    @model_validator(mode="after")
    def _draws(self) -> "FormsSettings":
        """Refuse several samples of what is always the same, and a frame without a question."""
        if self.samples > 1 and self.temperature == 0.0:
            raise ValueError(
                f"samples={self.samples} at temperature 0 are one answer so many times; give "
                "`temperature`"
            )
        if self.samples > 1 and self.read != "generate":
            raise ValueError(
                "options are compared by their probabilities, of which there are no samples; leave "
                "out `samples` or `read`"
            )
        if self.frame is not None and self.frame.count("{question}") != 1:
            raise ValueError(f"frame must hold {{question}} once, got {self.frame!r}")
        return self


RECORDS: Final = StudyRecords(FormsSource, FormsSettings, RuleScoring)
"""The settings records of the study."""
