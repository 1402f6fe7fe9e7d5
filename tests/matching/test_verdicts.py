import itertools

import pytest

from surface_consistency.matching import RULES, verdicts
from surface_consistency.matching.verdict_records import answer_span
from surface_consistency.schemas import Verdict
from tests.refusals import refusals

GENERATIONS = [" London\nQ: Paris", None, "Paris", "\nLondon", "x"]
ANSWERS = [["Paris"], ["Paris"], ["Londres", "Paris"], ["London"], []]
IDS = ["q0", "q1", "q2", "q3", "q4"]


def test_verdicts_are_records_of_the_first_line_by_default():
    fields = ("target_id", "prediction", "correct", "matched_answer", "reason")
    rows = [
        ("q0", "London", False, None, None),
        ("q1", None, None, None, "no prediction"),
        ("q2", "Paris", True, "Paris", None),
        ("q3", "", False, None, None),
        ("q4", "x", None, None, "no accepted answers"),
    ]
    records = [dict(zip(fields, row, strict=True)) for row in rows]

    made = list(verdicts(IDS, GENERATIONS, ANSWERS, rule="boundary"))

    assert made == [Verdict(judged_by="boundary on first_line", **record) for record in records]


def test_verdicts_with_region_whole_use_the_whole_generation():
    made = list(verdicts(IDS, GENERATIONS, ANSWERS, rule="popqa", region="whole"))

    assert [verdict.correct for verdict in made] == [True, None, True, True, None]
    assert [verdict.prediction for verdict in made] == GENERATIONS
    assert {verdict.judged_by for verdict in made} == {"popqa on whole"}


@pytest.mark.parametrize("rule", list(RULES))
def test_verdicts_of_infinite_columns_are_yielded_one_by_one(rule):
    columns = (
        (f"q{number}" for number in itertools.count()),
        itertools.repeat("Paris"),
        itertools.repeat(("Paris",)),
    )

    taken = list(itertools.islice(verdicts(*columns, rule=rule), 5_000))

    assert [verdict.target_id for verdict in taken] == [f"q{n}" for n in range(5_000)]
    assert all(verdict.correct for verdict in taken)


def test_verdicts_read_nan_as_missing_and_name_the_row_of_an_invalid_value():
    [made] = verdicts(["q"], [float("nan")], [["Paris"]])
    rows = 3_000

    assert (made.prediction, made.correct, made.reason) == (None, None, "no prediction")
    with pytest.raises(TypeError, match="row 2999: `predictions` must be strings or None, got int"):
        list(verdicts(map(str, range(rows)), ["x"] * (rows - 1) + [5], [["x"]] * rows))


test_verdicts_reject_unknown_rules_and_regions_at_once = refusals(
    lambda call: call(),
    (lambda: verdicts([], [], [], rule="f1"), r"`rule` must be one of popqa, .* got 'f1'"),
    (lambda: verdicts([], [], [], region="last"), "first_line, first_text_line, whole; got 'l"),
    (lambda: answer_span("x", region="last"), "first_line, first_text_line, whole; got 'last'"),
    (lambda: list(verdicts(["q0", "q1"], ["x"], [["x"], ["x"]])), "zip"),
)
