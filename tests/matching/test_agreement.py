import pytest

from surface_consistency.matching import RULES, match, rule_agreement
from surface_consistency.matching.boundary import BoundaryRule
from surface_consistency.text import first_line

GENERATIONS = ["Tirana", "Paris.", "Paris", "Rome\nQ: What about Paris?", "George Bush", None, "x"]
ANSWERS = [["Iran"], ["Paris"], ["Paris"], ["Paris"], ["George W. Bush"], ["Paris"], None]


def naive_counts(first, second):
    """Count with `match` in a loop over the rows."""
    counts = {"n": 0, "both": 0, "first_only": 0, "second_only": 0, "neither": 0}
    names = {(1, 1): "both", (1, 0): "first_only", (0, 1): "second_only", (0, 0): "neither"}
    for text, answers in zip(GENERATIONS, ANSWERS, strict=True):
        if text is None or not answers:
            continue
        found = tuple(
            match(first_line(text) if part == "first_line" else text, answers, rule=rule).is_match
            for rule, part in (first, second)
        )
        counts["n"] += 1
        counts[names[found]] += 1
    return counts


@pytest.mark.parametrize("region", ["first_line", "whole"])
def test_rule_agreement_agrees_with_a_naive_loop(region):
    frame = rule_agreement(GENERATIONS, ANSWERS, region=region)

    assert frame["compared"].tolist() == ["rules"] * 10 + ["regions"] * 5
    assert frame.loc[frame["compared"] == "regions", "first_rule"].tolist() == list(RULES)[:5]
    for row in frame.to_dict("records"):
        first = (row["first_rule"], row["first_region"])
        second = (row["second_rule"], row["second_region"])
        expected = naive_counts(first, second)
        assert {name: row[name] for name in expected} == expected
        assert row["n_differ"] == row["first_only"] + row["second_only"]


def test_rule_agreement_counts_rows_on_which_rules_and_regions_differ():
    """Only one rule finds "Iran" in "Tirana"; further lines only match on the whole output."""
    frame = rule_agreement(GENERATIONS, ANSWERS, rules=["popqa", "boundary"])

    rules, popqa, boundary = frame.to_dict("records")
    assert (rules["n"], rules["first_only"], rules["second_only"]) == (5, 1, 0)
    assert (popqa["first_only"], popqa["second_only"]) == (0, 1)
    assert (boundary["first_only"], boundary["second_only"]) == (0, 1)
    # The region first_text_line skips blank lines.
    options = {"rules": ["popqa", "exact"], "region": "first_text_line"}
    frame = rule_agreement(["\nParis\nRome"], [["Paris"]], **options)
    regions = [*zip(frame["first_region"], frame["second_region"], strict=True)]
    assert regions == [("first_text_line",) * 2, *[("first_text_line", "whole")] * 2]
    assert frame[["both", "first_only"]].values.tolist() == [[1, 0], [1, 0], [0, 1]]


def test_rule_agreement_without_rows_is_zero_and_rejects_invalid_names():
    frame = rule_agreement([], [])

    assert len(frame) == 15
    assert frame[["n", "n_differ"]].to_numpy().sum() == 0
    with pytest.raises(ValueError, match=r"different names, got \['boundary', 'boundary'\]"):
        rule_agreement([], [], rules=["boundary", BoundaryRule(reject_negated=True)])
    with pytest.raises(ValueError, match="first_line, first_text_line, whole; got 'last'"):
        rule_agreement([], [], region="last")
