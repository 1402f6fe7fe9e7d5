"""How much the verdict depends on the rule and on the judged part."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.rule import Rule
from surface_consistency.matching.rules import RULES, resolve_rule
from surface_consistency.matching.verdicts import Region, answer_region

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rule_agreement"]

_REGIONS: tuple[Region, Region] = ("first_line", "whole")


def rule_agreement(
    generations: Sequence[str | None],
    answers: Sequence[Sequence[str] | None],
    *,
    rules: Sequence[str | Rule[Any]] = tuple(RULES),
    region: Region = "first_line",
) -> "pd.DataFrame":
    r"""Count the verdicts that change with the matching rule or with the judged part.

    Args:
        generations: What the model wrote after each prompt, uncut, (n_rows,); None where there is
            nothing.
        answers: Accepted answers of each row, (n_rows,).
        rules: Names of rules, or rules with options of their own. Default is all of `RULES`.
        region: Part of the generation on which the rules are compared with each other. Default is
            "first_line".

    Returns:
        One row for each pair of rules on that part, then one row for each rule between its first
        line and the whole generation, with the columns `compared` ("rules" or "regions"),
        `first_rule`, `first_region`, `second_rule`, `second_region`, `n` (rows that are scored),
        `both` (accepted by both), `first_only`, `second_only`, `neither` and `n_differ`
        (`first_only + second_only`).

    Raises:
        TypeError: If a generation or an answer is not a string.
        ValueError: If a rule or the region is unknown, two rules share a name, the columns differ
            in length, or an accepted answer is blank.

    Notes:
        Rows without generation or accepted answers are left out of `n`. With no rows all counts
        are 0.

    References:
        Spurious credit for answers after the first line:
        https://github.com/allenai/olmo-eval/pull/307.

    Examples:
        >>> frame = rule_agreement(["Rome\nQ: Paris"], [["Paris"]], rules=["popqa", "exact"])
        >>> frame[["first_rule", "second_region", "n_differ"]].values.tolist()
        [['popqa', 'first_line', 0], ['popqa', 'whole', 1], ['exact', 'whole', 0]]
    """
    import pandas as pd

    chosen = [resolve_rule(rule) for rule in rules]
    names = [rule.name for rule in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"`rules` must have different names, got {names}")
    answer_region("", region=region)
    accepted = {
        (rule.name, part): match_columns(predictions, answers, rule=rule).is_match
        for part, predictions in _predictions(generations).items()
        for rule in chosen
    }
    sides = [((first, region), (second, region)) for first, second in combinations(names, 2)]
    sides += [((name, "first_line"), (name, "whole")) for name in names]
    rows = [
        {
            "compared": "rules" if first[1] == second[1] else "regions",
            "first_rule": first[0],
            "first_region": first[1],
            "second_rule": second[0],
            "second_region": second[1],
            **_counts(accepted[first], accepted[second]),
        }
        for first, second in sides
    ]
    return pd.DataFrame(rows)


def _predictions(generations: Sequence[str | None]) -> dict[Region, list[str | None]]:
    """Cut each generation to both of its parts."""
    return {
        part: [
            answer_region(generation, region=part) if isinstance(generation, str) else generation
            for generation in generations
        ]
        for part in _REGIONS
    }


def _counts(first: Sequence[bool | None], second: Sequence[bool | None]) -> Mapping[str, int]:
    """Count the four outcomes of paired verdicts over the rows that have both."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    both = pairs.count((True, True))
    neither = pairs.count((False, False))
    first_only, second_only = pairs.count((True, False)), pairs.count((False, True))
    return {
        "n": len(pairs),
        "both": both,
        "first_only": first_only,
        "second_only": second_only,
        "neither": neither,
        "n_differ": first_only + second_only,
    }
