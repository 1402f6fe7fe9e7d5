import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.matching import RULES, BoundaryRule, bulk, match, match_columns, match_many
from surface_consistency.matching.bulk import AnswerSets
from surface_consistency.matching.fuzzy import FuzzyRule
from surface_consistency.matching.popqa import PopqaRule
from surface_consistency.matching.rule import FoldedRule
from surface_consistency.matching.token_f1 import TokenF1Rule
from surface_consistency.text import normalize
from tests.refusals import refusals

TEXT = st.text(alphabet="aAbéE!ß ı\u0301東カ.-\x1e", max_size=8) | st.text(max_size=8)
TEXT |= st.text(alphabet="1205٣.,:'-−+#cC (\x01\x1e\u0640\u202f", max_size=8)
ANSWERS = st.lists(TEXT.filter(str.strip), max_size=4)
ROWS = st.lists(st.tuples(st.none() | TEXT, ANSWERS), max_size=8)
WITH_OPTIONS = [
    *RULES.values(),
    PopqaRule(normalize=normalize),
    BoundaryRule(normalize=None),
    BoundaryRule(reject_negated=True),
    TokenF1Rule(threshold=0.3),
    FuzzyRule(scorer="ratio", score_cutoff=50.0),
    *map(FoldedRule, (BoundaryRule(), TokenF1Rule(), RULES["popqa"])),
]


def rows_of(columns):
    return list(
        zip(columns.is_match, columns.reference, columns.score, columns.reason, strict=True)
    )


@pytest.mark.parametrize("rule", WITH_OPTIONS, ids=lambda rule: rule.name)
@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_match_columns_agrees_with_match(rule, rows):
    columns = match_columns([p for p, _ in rows], [a for _, a in rows], rule=rule)

    assert len(columns) == len(rows)
    for (prediction, answers), (is_match, answer, score, reason) in zip(
        rows, rows_of(columns), strict=True
    ):
        if prediction is None or not answers:
            assert (is_match, answer) == (None, None)
            assert math.isnan(score)
            assert reason == ("no prediction" if prediction is None else "no accepted answers")
        else:
            single = match(prediction, answers, rule=rule)
            assert (is_match, answer, score) == (single.is_match, single.reference, single.score)
            assert reason is None


@pytest.mark.parametrize("rule", list(RULES))
def test_match_columns_agrees_with_match_over_many_chunks(rule):
    rng = np.random.default_rng(0)
    names = [f"{first} {last}" for first in ("Ann", "Bo", "Zoé") for last in ("Li", "May", "Ōe")]
    predictions = [f"It is {names[i]}." for i in rng.integers(0, len(names), 5_000)]
    answers = [[names[i], names[i][:3]] for i in rng.integers(0, len(names), 5_000)]
    assert len(predictions) > 2 * bulk._ROWS_AT_ONCE

    columns = match_columns(predictions, answers, rule=rule)

    singles = [match(p, a, rule=rule) for p, a in zip(predictions, answers, strict=True)]
    found = zip(columns.is_match, columns.reference, columns.score.tolist(), strict=True)
    assert [*found] == [(single.is_match, single.reference, single.score) for single in singles]


def test_match_columns_counts_rows_without_prediction_or_answers():
    columns = match_columns(["", np.float32("nan"), "x", None], [["x"], ["x"], None, []])
    nothing = match_columns([], [])

    assert columns.is_match == [False, None, None, None]
    assert columns.reason == [None, "no prediction", "no accepted answers", "no prediction"]
    assert columns.n_unscored == 3
    assert (len(nothing), nothing.n_unscored, nothing.score.shape) == (0, 0, (0,))


def test_match_columns_accepts_series_arrays_and_missing_values():
    paris = np.array(["Rome", "Paris"], dtype=object)
    predictions = pd.Series(["Paris", None, np.nan], index=[2, 0, 1])
    answers = pd.Series([paris, ("Rome",), ["Rome"]], index=[2, 0, 1])

    columns = match_columns(predictions, answers)
    without = match_columns(["x", "x"], pd.Series([np.nan, None], dtype=object))
    arrays = match_columns(
        np.array(["Paris", "Rome"]), np.array([["Rome", "Paris"], ["Oslo", "É"]])
    )

    assert columns.is_match == [True, None, None]
    assert columns.reference[0] == "Paris"
    assert without.reason == ["no accepted answers"] * 2
    assert (arrays.is_match, arrays.reference) == ([True, False], ["Paris", None])


def test_match_columns_caches_answer_lists_by_content():
    """Lists made during iteration can have the id of an earlier list."""

    class Column(list):
        def __iter__(self):
            return (list(row) for row in super().__iter__())

    answers = Column([["Paris"], ["Rome"]] * 50)

    columns = match_columns(["Rome"] * 100, answers, rule="exact")

    assert columns.is_match == [False, True] * 50


RAISE = {"on_missing": "raise", "first_row": 10}
BLANK = "row 4999: `references` must not be blank, got"


test_match_columns_rejects_invalid_columns = refusals(
    lambda predictions, answers, options: match_columns(predictions, answers, **options),
    (["x", None], [["x"]] * 2, RAISE, "row 11: no prediction; exclude the row, pass ''"),
    (["x", "x"], [["x"], []], RAISE, "row 11: no accepted answers"),
    ([5], [["x"]], {}, TypeError, "row 0: `predictions` must be strings or None, got int"),
    (["x"], [7], {}, TypeError, "row 0: `references` must be strings or lists of strings, got 7"),
    (["x"], [["Paris", None]], {}, TypeError, "row 0: `references` must be strings, got None"),
    (["x", "y"], [["x"]], {}, "one entry per row, got 2 and 1"),
    (["a", "b"], "ab", {}, TypeError, "`references` must .* got the string 'ab'; pass a list"),
    ([], [], {"on_missing": "drop"}, "must be 'unscored' or 'raise', got 'drop'"),
    *(
        ([None, "x"] * 2500, [None, []] + [["x"]] * 4997 + [["x", blank]], {}, BLANK)
        for blank in ("", "  ")
    ),
)


def test_number_of_cached_answer_sets_is_bounded(monkeypatch):
    monkeypatch.setattr("surface_consistency.matching.bulk._MAX_ANSWERS", 100)
    sets = AnswerSets(RULES["exact"])

    for start in range(0, 10_000, 50):
        rows = [(f"answer {number}",) for number in range(start, start + 50)]
        assert sets.get(rows, 0) == [{row[0]: 0} for row in rows]
        assert len(sets._prepared) <= 100 + 50 + 1


def test_answer_sets_are_prepared_once_for_all_models(monkeypatch):
    prepared, prepare = [], BoundaryRule.prepare

    def counted(self, answers, keys):
        prepared.append(answers)
        return prepare(self, answers, keys)

    monkeypatch.setattr(BoundaryRule, "prepare", counted)
    for prediction in ("Paris", "Rome"):
        match_columns([prediction] * 3, [["Paris"], ["Paris"], ["Rome"]], rule="boundary")

    assert prepared == [("Paris",), ("Rome",)]


COLUMNS = {
    "list": list,
    "array": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "arrow": pa.array,
    "chunked": lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
    "Arrow in pandas": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.array(texts).type)),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_match_many_scores_columns_of_every_type_as_match_does(column):
    predictions = ["It is Paris.", "Bonn", ""]
    lists = [["Paris"], ["Berlin", "Bonn"], ["Rome"]]
    found = match_many(column(predictions), column(lists), rule="boundary")

    assert found.dtype == bool
    assert found.tolist() == [
        bool(match(one, many, rule="boundary"))
        for one, many in zip(predictions, lists, strict=True)
    ]
    firsts = column([one[0] for one in lists])
    assert match_many(column(predictions), firsts).tolist() == [True, False, False]
    folded = column(["Zurich", None, "x"]), column(["Zürich", "y", "x"])
    assert match_columns(*folded, fold_accents=True).is_match == [True, None, True]
    assert match_many(["Zurich"], ["Zürich"], fold_accents=True).tolist() == [True]


test_match_many_rejects_missing_values_and_unequal_lengths = refusals(
    match_many,
    (["a", None], ["a", "b"], "row 1: no prediction; exclude the row, pass '' .*match_columns"),
    (["a"], [[]], "row 0: no accepted answers"),
    (["a"], [None], "row 0: no accepted answers"),
    (["a", "b"], ["a"], "one entry per row, got 2 and 1"),
    ("a", ["a"], TypeError, "`predictions` must have one entry per row, got the string 'a'"),
)


@pytest.mark.parametrize("text", ['["a", "b"]', "['a' 'b']", "[0, 1]", "{1, 2}", "[a, b]"])
def test_a_list_written_as_text_is_not_one_reference(text):
    remedy = r"`references` must be texts, got .*; pass a list of its texts, or \[text\] "
    with pytest.raises(ValueError, match=f"^row 1: {remedy}"):
        match_many(["Paris", "Paris"], ["Paris", text])
    with pytest.raises(ValueError, match=f"^{remedy}"):
        match("Paris", text)
    assert match_many([text], [[text]], rule="exact").all()
    assert match(text, [text], rule="exact")


@pytest.mark.parametrize("text", ['"He"', "[Untitled]", "(0, 1)", "(I Can't) Get", "{x", " [x] "])
def test_names_in_brackets_are_one_reference(text):
    assert match_many([text], [text], rule="exact").all()
    assert match(text, text, rule="exact")


def test_truth_value_of_matched_columns_raises_an_error():
    with pytest.raises(TypeError, match=r"test all\(columns.is_match\), or len\(columns\)"):
        bool(match_columns(["a"], [["a"]]))
