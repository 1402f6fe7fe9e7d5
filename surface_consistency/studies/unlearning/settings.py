"""The options of the study of unlearned and edited facts."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from surface_consistency.engine.settings import (
    RuleScoring,
    SourceSettings,
    StudyRecords,
    check_rule,
)
from surface_consistency.schemas.settings import Rare
from surface_consistency.studies.forms.settings import FormsSettings


class UnlearningSource(SourceSettings):
    """Source of the facts and forms."""

    source: str
    """Hub id, folder, Parquet, JSONL, JSON or CSV file: TOFU, edits (CounterFact, zsRE, KnowEdit,
    RippleEdits), or a table with item, form, question and references."""

    split: str = "train"
    """Split of the data; configurations of TOFU are files or folders of its repository."""

    short_answers: Rare[Path | None] = None
    """File of short answers to TOFU's questions, with the columns index and answer; those of
    forget10 are bundled and also used for forget05 and forget01."""

    set: Rare[str] = "forget"
    """Set of TOFU's questions: forget, or another, such as retain for facts to preserve."""


class UnlearningSettings(FormsSettings):
    """Settings of prompts and decoding."""

    frame: Rare[str | None] = None
    """Prompt template that contains {question}; by default "Question: {question}", and "Answer:"
    on a new line."""

    max_new_tokens: int = Field(default=64, ge=1)
    """Maximum number of new tokens."""

    stop: Rare[bool] = False
    """End an answer at the newline; otherwise whole outputs are scored."""


class UnlearningScoring(RuleScoring):
    """Settings of scoring: a short answer may be part of a sentence."""

    rule: Annotated[str, BeforeValidator(check_rule)] = "boundary"
    """Matching rule: a name of `matching.RULES`, or one of another package as package:name."""


RECORDS: Final = StudyRecords(UnlearningSource, UnlearningSettings, UnlearningScoring)
"""The settings records of the study."""
