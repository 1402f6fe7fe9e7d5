"""The options of RedirectQA."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from surface_consistency.engine.settings import (
    OptionSettings,
    PublishedSettings,
    RuleScoring,
    SourceSettings,
    StudyRecords,
)
from surface_consistency.schemas.settings import Rare
from surface_consistency.taxonomy import TEMPLATES, is_template


def _checked_frame(frame: str | None) -> str | None:
    """Reject a text that is not a frame, and return the value unchanged."""
    from surface_consistency.studies.redirectqa.prompts import resolve_frame

    if frame is not None:
        resolve_frame(frame)
    return frame


class RedirectQASource(SourceSettings):
    """Source of the questions."""

    source: str = "naist-nlp/RedirectQA"
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the bundled rows."""

    ask_by_template: Rare[bool] = False
    """Write the question of rows without one by the templates of this package."""


class RedirectQASettings(PublishedSettings, OptionSettings):
    """Prompts and generation of RedirectQA."""

    protocol: Rare[Literal["local", "api", "japanese"]] = "local"
    """Protocol that `as_published` sets: that of the paper's open models (local), that of
    GPT-4o-mini (api), or that of the Japanese paper."""

    template: Literal["original", "paraphrase", "both"] = "original"
    """Question template: "original" is that of the paper's figure 2, "paraphrase" selects all
    paraphrases in the data, "both" selects all templates."""

    shots: int | None = Field(default=None, ge=0)
    """Number of demonstrations before each question; by default one of each other relation, at most
    15."""

    seed: int = 0
    """Seed of demonstrations and of the repeated sample."""

    demonstrations: Literal["per_relation", "per_fact", "per_question"] = "per_relation"
    """Draw demonstrations once per relation, per fact or per question."""

    demonstration_file: str | None = None
    """File of custom demonstrations (.jsonl, .csv, .parquet: question, answer, and relation and
    template if known), used in its order instead of demonstrations drawn from the data."""

    frame: Annotated[str | None, AfterValidator(_checked_frame)] = None
    """Text around a question: a language that has a frame, such as ja ("en" is "Q: ... A:"), or a
    custom text that contains {question}; by default the language of the questions."""

    chat: bool = False
    """Send prompts as turns by the model's chat template instead of plain text."""

    truncate: Rare[bool] = False
    """Drop demonstrations if a prompt exceeds the model's context."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of facts, spread over the relations, each under all its names."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Maximum number of new tokens."""

    stop: Rare[bool] = True
    """Stop an answer at the newline; if not, whole outputs can be scored."""

    repeat: int = Field(default=1_000, ge=0)
    """Number of questions sent a second time in other batches, for the test-retest flip rate (noise
    floor); 0 to omit it."""

    @model_validator(mode="after")
    def _draws_or_reads(self) -> "RedirectQASettings":
        """Reject options of drawing if demonstrations are given, and a protocol without effect."""
        if self.protocol != "local" and not self.as_published:
            raise ValueError("`protocol` needs `as_published`; add it, or omit `protocol`")
        if self.demonstration_file is not None and "demonstrations" in self.model_fields_set:
            raise ValueError(
                "`demonstrations` sets how they are drawn from the data, and `demonstration_file` "
                "contains them; omit one of the two"
            )
        return self

    def templates_of(self, available: Iterable[str]) -> tuple[str, ...]:
        """List the selected templates.

        Args:
            available: Templates of the data.

        Returns:
            Their names; "paraphrase" selects all paraphrases.
        """
        named = TEMPLATES if self.template == "both" else (self.template,)
        further = {name for name in available if is_template(name)} - {*TEMPLATES}
        return (*named, *(sorted(further) if TEMPLATES[1] in named else ()))


RECORDS: Final = StudyRecords(RedirectQASource, RedirectQASettings, RuleScoring)
"""The settings records of the study."""
