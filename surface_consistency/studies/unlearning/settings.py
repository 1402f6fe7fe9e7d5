"""The options of the study of forgetting in weights."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from surface_consistency.engine.settings import (
    RuleScoring,
    SourceSettings,
    StudyRecords,
    check_rule,
)
from surface_consistency.schemas.settings import Rare
from surface_consistency.studies.forms.settings import FormsSettings


class UnlearningSource(SourceSettings):
    """Where facts and forms come from."""

    source: str
    """Hub id, folder, Parquet, JSONL, JSON or CSV file: TOFU, edits (CounterFact, zsRE, KnowEdit,
    RippleEdits), or a table with item, form, question and references."""

    split: str = "train"
    """Split of the data; configurations of TOFU are files or folders of its repository."""

    short_answers: Rare[Path | None] = None
    """File of short answers to TOFU's questions, with the columns index and answer; those of
    forget10 come along and serve forget05 and forget01 too."""

    set: Rare[str] = "forget"
    """Set that TOFU's questions are: forget, or another such as retain for what should be kept."""


class UnlearningSettings(FormsSettings):
    """How facts are asked."""

    frame: Rare[str | None] = None
    """What stands around a question, with {question} in it; "Question: {question}", and "Answer:"
    in a line of its own, by default."""

    max_new_tokens: int = Field(default=64, ge=1)
    """Longest answer, in tokens."""

    stop: Rare[bool] = False
    """Whether an answer ends at the newline; else whole outputs are judged."""


class UnlearningScoring(RuleScoring):
    """How answers are judged: short answers may stand within a sentence."""

    rule: Annotated[str, AfterValidator(check_rule)] = "boundary"
    """Matching rule: a name of `matching.RULES`, or one of another package as package:name."""


RECORDS: Final = StudyRecords(UnlearningSource, UnlearningSettings, UnlearningScoring)
"""The settings records of the study."""
