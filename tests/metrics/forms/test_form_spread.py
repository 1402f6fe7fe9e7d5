import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    form_answers_by,
    form_contrasts,
    form_spread_by,
    forms_by,
    variance_shares_by,
)
from surface_consistency.metrics.forms.form_spread import correct_counts_by, expected_range
from tests.metrics.harness import long
from tests.refusals import refusals


@pytest.mark.parametrize("n", [2, 3, 10, 50])
def test_expected_range_agrees_with_scipy(n):
    # The mean of the studentized range with infinite degrees of freedom.
    grid = np.linspace(0, 12, 2401)
    expected = np.trapezoid(stats.studentized_range.sf(grid, n, np.inf), grid)
    assert expected_range(n) == pytest.approx(expected, abs=1e-4)


def test_cochrans_q_agrees_with_the_published_formula():
    # Cochran 1950, equation 1: Q = k (k - 1) sum (T_j - T)^2 / (k sum u_i - sum u_i^2).
    right = np.random.default_rng(0).random((40, 5)) < [0.3, 0.5, 0.5, 0.6, 0.8]
    totals, rows = right.sum(0), right.sum(1)
    q = 5 * 4 * ((totals - totals.mean()) ** 2).sum() / (5 * rows.sum() - (rows**2).sum())

    row = form_spread_by(long(right)).iloc[0]

    assert row["cochran_q"] == pytest.approx(q)
    assert row["p_value"] == pytest.approx(stats.chi2.sf(q, 4))


def test_null_of_the_spread_equals_that_of_permuted_forms():
    rng = np.random.default_rng(2)
    right = rng.random((80, 6)) < rng.random((80, 1))
    permuted = [np.ptp(rng.permuted(right, axis=1).mean(0)) for _ in range(2000)]

    row = form_spread_by(long(right)).iloc[0]

    assert row["spread_null"] == pytest.approx(np.mean(permuted), rel=0.03)


def test_forms_without_effect_are_significant_in_one_of_twenty_data_sets():
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(300):
        right = rng.random((60, 5)) < rng.random((60, 1))
        found += form_spread_by(long(right))["p_value"].iloc[0] < 0.05
    assert 4 <= found <= 27  # Binomial(300, .05), within three standard errors.


def test_incomplete_items_are_excluded_and_counted():
    frame = long(np.random.default_rng(5).random((20, 3)) < 0.5).drop(index=0)
    row = form_spread_by(frame).iloc[0]

    assert (row["n_items"], row["n_incomplete"]) == (19, 1)


def test_counts_of_independent_forms_agree_with_the_binomial_distribution():
    right = np.tile([[1, 0], [0, 1]], (10, 1))
    table = correct_counts_by(long(right))

    assert table["n_items"].tolist() == [0, 20, 0]
    np.testing.assert_allclose(table["share_independent"], stats.binom.pmf([0, 1, 2], 2, 0.5))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("item", None, "column 'item' has no fact in row 0"),
        ("topic", "other", "belongs to more than one cluster of column 'topic'"),
    ],
)
@pytest.mark.parametrize("metric", [form_spread_by, form_answers_by, form_contrasts, forms_by])
def test_missing_facts_and_topics_raise_an_error(metric, column, value, message):
    frame = long(np.random.default_rng(7).random((9, 3)) < 0.5)
    frame = frame.assign(topic="t", model="a", answer="x").astype({"item": object})
    frame.loc[0, column] = value
    with pytest.raises(ValueError, match=message):
        metric(frame, cluster="topic")


@pytest.mark.parametrize("metric", [form_spread_by, form_answers_by, form_contrasts, forms_by])
def test_a_repeated_form_of_a_fact_raises_an_error(metric):
    frame = pd.DataFrame(
        {"model": "a", "item": [1, 1], "form": ["a", "a"], "correct": 1, "answer": "x"}
    )
    with pytest.raises(ValueError, match="item=1, form='a' occurs more than once"):
        metric(frame)


RIGHT = np.random.default_rng(6).random((60, 3)) < 0.5
TOPICS = np.where(np.arange(60) < 40, 0, np.arange(60)).repeat(3)
ALIKE = long(np.ones((9, 3))).assign(answer="x\n\u202e")
GAPS = long(np.ones((5, 3))).assign(correct=np.nan)
APART = pd.DataFrame({"item": [1, 2], "form": ["a", "b"], "correct": [1, 0]})
FEW = pd.concat([long(np.ones((3, 2)), model=model) for model in "ab"])
NOTHING = "no fact has two forms with a correctness label"


SAMPLE = functools.partial(forms_by, forms="sample")
OF_TOPICS = functools.partial(form_spread_by, cluster="topic")
ONE_ANSWER = "kappa: all answers or all clusters are equal"
TWO_FORMS = "at least 4 forms are needed for an interval of forms like these"


@pytest.mark.parametrize(
    ("metric", "frame", "undefined", "reason"),
    [
        (form_spread_by, APART, "spread", "no fact has a correctness label in every form"),
        (
            OF_TOPICS,
            long(RIGHT, topic=TOPICS),
            "p_value",
            "effective number of clusters 2.22, minimum 4",
        ),
        (forms_by, GAPS, "consistency", NOTHING),
        (SAMPLE, GAPS, "consistency", NOTHING),
        (SAMPLE, long(RIGHT[:, :2]), "consistency_low", TWO_FORMS),
        (SAMPLE, long(RIGHT), "accuracy_high", TWO_FORMS),
        (form_answers_by, ALIKE, "kappa_low", ONE_ANSWER),
        (variance_shares_by, ALIKE, "form_share", "all scores are equal"),
        (variance_shares_by, long(RIGHT[:, :1]), "form_share", "a single item or form"),
        (
            variance_shares_by,
            long(RIGHT[:3]),
            "form_share_low",
            "effective number of clusters 3, minimum 4",
        ),
        (form_contrasts, FEW, "p_value_holm", "effective number of clusters 3, minimum 4"),
    ],
)
def test_missing_inference_has_a_reason(metric, frame, undefined, reason):
    with warnings.catch_warnings(record=True, action="always") as caught:
        rows = metric(frame)

    expected = {UnscoredWarning, UndefinedMetricWarning} if frame is GAPS else set()
    assert {one.category for one in caught} == expected
    assert set(rows["not_inferred"]) == {reason}
    assert rows[undefined].isna().all()


test_scores_to_divide_are_numbers = refusals(
    lambda score: variance_shares_by(long(np.array([[1, score]] * 5, dtype=object))),
    ("x", TypeError, r"correct\[1\] is 'x', which is not a number"),
    (np.inf, r"correct\[1\] is inf"),
)
