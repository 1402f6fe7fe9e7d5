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
    """Refuse a text that is not a frame; the value stays as it was given."""
    from surface_consistency.studies.redirectqa.prompts import resolve_frame

    if frame is not None:
        resolve_frame(frame)
    return frame


class RedirectQASource(SourceSettings):
    """Where the questions come from."""

    source: str = "naist-nlp/RedirectQA"
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the rows that come along."""

    ask_by_template: Rare[bool] = False
    """Whether rows without a question are asked in the words of this package's templates."""


class RedirectQASettings(PublishedSettings, OptionSettings):
    """How RedirectQA asks."""

    protocol: Rare[Literal["local", "api", "japanese"]] = "local"
    """What `as_published` sets: the paper's protocol of open models (local), that of GPT-4o-mini
    (api), or that of the Japanese paper."""

    template: Literal["original", "paraphrase", "both"] = "original"
    """Question wording; "original" is that of the paper's figure 2, "paraphrase" all paraphrases
    that the data have."""

    shots: int | None = Field(default=None, ge=0)
    """Demonstrations before each question; one of each other relation, at most 15, by default."""

    seed: int = 0
    """Seed of demonstrations and of the repeated sample."""

    demonstrations: Literal["per_relation", "per_fact", "per_question"] = "per_relation"
    """Whether the facts of a relation share their demonstrations, or each fact or question draws
    its own."""

    demonstration_file: str | None = None
    """File of demonstrations of your own (.jsonl, .csv, .parquet: question, answer, and relation
    and template if known), used in its order in place of ones drawn from the data."""

    frame: Annotated[str | None, AfterValidator(_checked_frame)] = None
    """What stands around a question: a language that has a frame, such as ja ("en" is "Q: ... A:"),
    or a text of your own with {question} in it; the language of the questions by default."""

    chat: bool = False
    """Whether prompts are turns for the model's chat template rather than plain text."""

    truncate: Rare[bool] = False
    """Whether demonstrations are dropped where a prompt exceeds the model's context."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many facts, spread over the relations, each under all its names."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Longest answer, in tokens."""

    stop: Rare[bool] = True
    """Whether an answer ends at the newline; without, whole outputs can be judged."""

    repeat: int = Field(default=1_000, ge=0)
    """Questions asked a second time in other batches, for the noise floor; 0 for none."""

    @model_validator(mode="after")
    def _draws_or_reads(self) -> "RedirectQASettings":
        """Refuse a way of drawing what is not drawn, and a protocol without effect."""
        if self.protocol != "local" and not self.as_published:
            raise ValueError("`protocol` needs `as_published`; add it, or leave out `protocol`")
        if self.demonstration_file is not None and "demonstrations" in self.model_fields_set:
            raise ValueError(
                "`demonstrations` says how they are drawn from the data, and `demonstration_file` "
                "gives them; leave one of the two out"
            )
        return self

    def templates_of(self, held: Iterable[str]) -> tuple[str, ...]:
        """List the wordings that are asked.

        Args:
            held: Templates of the data.

        Returns:
            Their names; "paraphrase" stands for all paraphrases.
        """
        named = TEMPLATES if self.template == "both" else (self.template,)
        further = {name for name in held if is_template(name)} - {*TEMPLATES}
        return (*named, *(sorted(further) if TEMPLATES[1] in named else ()))


RECORDS: Final = StudyRecords(RedirectQASource, RedirectQASettings, RuleScoring)
"""The settings records of the study."""
