"""Options for the comparison of models."""

from typing import Annotated, Literal

from pydantic import Field

from surface_consistency.matching.rule import AnswerSpan
from surface_consistency.metrics.paired.mcnemar_tests import PairedTest
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Rare, Settings


class RuleSettings(Settings):
    """Options of a matching rule that scores the answers, instead of the scores in the files."""

    rule: str | None = None
    """Matching rule that scores the answers instead of their scores."""

    region: AnswerSpan = "first_line"
    """Part of an answer that the rule scores; first_text_line skips blank lines."""

    fold_accents: bool = False
    """Ignore the accents of Latin and Greek letters under `rule`, so that "Zurich" matches
    "Zürich"."""

    reasoning_opened: Rare[bool | None] = None
    """Whether every prompt opens the reasoning, so that the answer follows a closing tag."""

    def check(self) -> None:
        """Check that options of a rule are set only with a rule.

        Raises:
            ValueError: If such an option is set without a rule.
        """
        given = self.model_fields_set & {"region", "fold_accents", "reasoning_opened"}
        if self.rule is None and given:
            names = ", ".join(f"`{name}`" for name in sorted(given))
            raise ValueError(f"{names} has no effect without `rule`; name a rule, or omit it")


class ComparisonSettings(RuleSettings):
    """Options of the comparison of models."""

    baseline: str | None = None
    """Model with which all others are compared; all pairs by default."""

    margin: Annotated[float | None, Field(gt=0)] = None
    """Equivalence margin, in the unit of the scores (0.02 for 2 percentage points of accuracy)."""

    scale: Items[float] = ()
    """Minimum and maximum possible score; by default 0 and 1 if all scores are between them."""

    lower_is_better: Items[str] = ()
    """Metrics for which lower scores are better, in addition to losses, errors and costs, which are
    detected; "none" if higher scores are better for all metrics."""

    missing: Literal["drop", "raise", "wrong"] = "drop"
    """Handling of errors and missing scores: drop excludes the item for all models, raise ends with
    an error, wrong counts them as incorrect."""

    fail_if: Literal["worse", "maybe-worse"] | None = None
    """Condition for exit code 4: worse, if a model is worse than its reference by more than the
    margin; maybe-worse, also if non-inferiority within the margin is not established."""


class TableSettings(Settings):
    """Options of the table."""

    by: Items[str] = ()
    """Columns of groups; for runs, by default those of their study."""

    separator: str | None = None
    """Separator of several labels in a cell of `by`, such as ";"."""

    test: PairedTest = "auto"
    """Test of the difference; auto is the t-test over clusters that matches the interval."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Confidence level of the intervals."""
