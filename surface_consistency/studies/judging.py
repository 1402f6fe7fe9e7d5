"""Judges: whoever says of many answers at once whether they are right."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.rule import Rule
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.schemas import Verdict
from surface_consistency.text import first_line

__all__ = ["NO_ANSWER", "Judge", "RuleJudge", "judge_targets"]

NO_ANSWER = "no prediction"
"""Reason of a target whose prompt has no answer."""


@runtime_checkable
class Judge(Protocol):
    """Judges answers; any class with these two members is a judge."""

    name: str
    """What stands in every verdict, such as "popqa on first_line" or "llm:gpt-4"."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers.

        Args:
            targets: One row a target: the columns of `Plan.targets`, and text, which is missing
                where the model could not be asked.

        Returns:
            One row a target, in the same order: is_correct (missing where it could not be judged,
            then with a reason), and whatever else of the study's verdict record the judge tells.
        """


class RuleJudge:
    """Compares answers with the accepted ones, by a matching rule.

    Args:
        rule: Name of the rule, or a rule.
        region: Judged part of an answer: its first line, or all of it.

    Raises:
        ValueError: If there is no such rule or region.
    """

    name: str
    """The rule and the region."""

    def __init__(
        self,
        rule: str | Rule[Any] = "popqa",
        *,
        region: Literal["first_line", "whole"] = "first_line",
    ) -> None:
        if region not in ("first_line", "whole"):
            raise ValueError(f"region must be first_line or whole, got {region!r}")
        self._rule = resolve_rule(rule)
        self._region = region
        self.name = f"{self._rule.name} on {region}"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, is_correct, matched_answer, score and reason.
        """
        predictions = answer_spans(targets["text"], self._region)
        found = match_columns(predictions, targets["answers"].tolist(), rule=self._rule)
        return pd.DataFrame(
            {
                "prediction": pd.Series(predictions, dtype="str"),
                "is_correct": pd.array(found.is_match, dtype="boolean"),
                "matched_answer": pd.Series(found.answer, dtype="str"),
                "score": found.score,
                "reason": pd.Series(found.reason, dtype="str"),
            }
        )


def answer_spans(texts: pd.Series, region: str) -> list[str | None]:
    """Cut outputs to their judged part.

    Args:
        texts: Outputs, missing where there is none.
        region: "first_line" or "whole".

    Returns:
        The parts, None where there is none.
    """
    present = texts.notna()
    whole = texts.tolist()
    if region == "whole":
        return [text if known else None for text, known in zip(whole, present, strict=True)]
    return [first_line(text) if known else None for text, known in zip(whole, present, strict=True)]


def judge_targets(judge: Judge, targets: pd.DataFrame, record: type[Verdict]) -> pd.DataFrame:
    """Let a judge work and hold it to its task.

    Args:
        judge: The judge.
        targets: What to judge, with text.
        record: The study's verdict record.

    Returns:
        One row a target, columns of the record.

    Raises:
        DataError: If the judge returns other rows than it was given, or a verdict without a reason
            why it is missing.
    """
    found = judge.judge(targets)
    if len(found) != len(targets):
        raise DataError(
            f"judge {judge.name!r} was given {len(targets)} targets and returned {len(found)} "
            "verdicts; it must judge each, in order"
        )
    found = found.reset_index(drop=True).assign(
        target_id=targets["target_id"].to_numpy(), judged_by=judge.name
    )
    foreign: Sequence[str] = [str(name) for name in found if name not in record.model_fields]
    if foreign:
        raise DataError(
            f"judge {judge.name!r} returned the column {', '.join(foreign)}, which "
            f"{record.__name__} does not have"
        )
    for name in record.model_fields:
        if name not in found:
            found[name] = None
    unexplained = found["is_correct"].isna() & found["reason"].isna()
    if unexplained.any():
        raise DataError(
            f"judge {judge.name!r} gave neither verdict nor reason for "
            f"{found.loc[unexplained, 'target_id'].iloc[0]!r}; say why it could not be judged"
        )
    return found[list(record.model_fields)]
