"""Options of comparing models."""

from typing import Annotated, Literal

from pydantic import Field

from surface_consistency.matching.rule import AnswerSpan
from surface_consistency.metrics.paired.mcnemar_tests import PairedTest
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Rare, Settings


class RuleSettings(Settings):
    """How the answers of result files are scored in place of their scores."""

    rule: str | None = None
    """Matching rule that scores the answers instead of their scores."""

    region: AnswerSpan = "first_line"
    """Part of an answer that the rule scores; first_text_line skips blank lines."""

    fold_accents: bool = False
    """Ignore the accents of Latin and Greek letters under `rule`: "Zurich" is "Zürich"."""

    reasoning_opened: Rare[bool | None] = None
    """Whether every prompt opened the reasoning, so that an answer follows a closing tag."""

    def check(self) -> None:
        """Refuse options of a rule without a rule.

        Raises:
            ValueError: If there are some.
        """
        given = self.model_fields_set & {"region", "fold_accents", "reasoning_opened"}
        if self.rule is None and given:
            names = ", ".join(f"`{name}`" for name in sorted(given))
            raise ValueError(f"{names} has no effect without `rule`; name a rule, or omit it")


class ComparisonSettings(RuleSettings):
    """How models are compared."""

    baseline: str | None = None
    """Model that all others are held against; all pairs by default."""

    margin: Annotated[float | None, Field(gt=0)] = None
    """Difference that counts as none, in the unit of the scores (0.02 for 2 points of verdicts)."""

    scale: Items[float] = ()
    """Least and largest score that there can be; 0 and 1 where all scores lie there, else none."""

    lower_is_better: Items[str] = ()
    """Metrics of which lower scores are better, in addition to losses, errors and costs by their
    files or names; "none" for no metric."""

    missing: Literal["drop", "raise", "wrong"] = "drop"
    """What an error, a blank verdict or a missing score counts as."""

    fail_if: Literal["worse", "maybe-worse"] | None = None
    """End with exit code 4 if a model is worse than its reference by more than the margin, or if
    that it is not worse by more is not shown."""


class TableSettings(Settings):
    """How the table is computed."""

    by: Items[str] = ()
    """Column of groups; the page of runs has all that their study knows by default."""

    separator: str | None = None
    """What separates several labels in a cell of `by`, such as ";"."""

    test: PairedTest = "auto"
    """Form of the test; auto is the t of the interval of the difference, over clusters."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Coverage of the intervals."""
