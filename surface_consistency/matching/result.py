"""What a matching rule says about one prediction."""

from dataclasses import dataclass

__all__ = ["Match"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The judgement of one prediction against its accepted answers."""

    is_match: bool
    """Whether the rule accepts the prediction."""

    answer: str | None
    """The accepted answer that matched, as it was given; None when none did."""

    score: float
    """How well the best answer fits, in [0, 1], higher is better; 1.0 or 0.0 where a rule knows no
    degrees."""

    rule: str
    """Name of the rule."""
