import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics import adjust_p_values, with_adjusted_p_values
from tests.refusals import refusals

METHODS = ["holm", "benjamini-hochberg", "benjamini-yekutieli"]
p_lists = st.lists(st.floats(0.0, 1.0), max_size=40)

# Table 1 of Benjamini and Hochberg 1995: 15 comparisons of thrombolysis. At 5 %,
# control of the familywise error rejects the first 3 and of the false discovery rate the first 4.
THROMBOLYSIS = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]


@pytest.mark.parametrize(("method", "rejected"), [("holm", 3), ("benjamini-hochberg", 4)])
def test_adjusted_p_values_agree_with_benjamini_hochberg_1995(method, rejected):
    adjusted = adjust_p_values(THROMBOLYSIS, method=method)

    assert (adjusted <= 0.05).sum() == rejected
    assert (np.diff(adjusted) >= 0).all()


# R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm"); p.adjust(.., "BH"); p.adjust(.., "BY")
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("holm", [0.05, 0.08, 0.09, 0.09, 0.09]),
        ("benjamini-hochberg", [0.05] * 5),
        ("benjamini-yekutieli", [0.1141667] * 5),
    ],
)
def test_adjusted_p_values_agree_with_r(method, expected):
    adjusted = adjust_p_values([0.01, 0.02, 0.03, 0.04, 0.05], method=method)

    assert adjusted == pytest.approx(expected, abs=5e-8)


@settings(deadline=None, max_examples=20)  # statsmodels takes 50 ms a call
@given(p_values=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_holm_agrees_with_statsmodels(p_values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")

    expected = multitest.multipletests(p_values, method="holm")[1]

    assert adjust_p_values(p_values) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(p_values=p_lists, method=st.sampled_from(METHODS), data=st.data())
def test_adjustment_is_monotone_and_independent_of_order(p_values, method, data):
    """Order is kept, permuting commutes with it, and a missing p-value does not count."""
    order = data.draw(st.permutations(range(len(p_values))))
    raw = np.asarray(p_values, dtype=float)

    adjusted = adjust_p_values(raw, method=method)

    assert (adjusted >= raw).all()
    assert (adjusted <= 1).all()
    assert len(raw) != 1 or adjusted.tolist() == raw.tolist()
    assert (np.diff(adjusted[np.argsort(raw, kind="stable")]) >= 0).all()
    shuffled = adjust_p_values(raw[list(order)], method=method)
    assert shuffled == pytest.approx(adjusted[list(order)], abs=1e-15)
    gaps = adjust_p_values([np.nan, *raw, np.nan], method=method)
    assert np.isnan(gaps[[0, -1]]).all()
    assert gaps[1:-1].tolist() == adjusted.tolist()
    if method != "holm" and len(raw):
        name = {"benjamini-hochberg": "bh", "benjamini-yekutieli": "by"}[method]
        expected = stats.false_discovery_control(p_values, method=name)
        assert adjusted == pytest.approx(expected, abs=1e-12)


def test_families_of_a_table_are_adjusted_separately():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"model": rng.choice(["a", "b"], 20), "p_value": rng.random(20)})

    table = with_adjusted_p_values(rows, within="model", method="benjamini-hochberg")

    assert list(table.columns) == [*rows.columns, "p_value_benjamini_hochberg"]
    for _, part in table.groupby("model"):
        expected = adjust_p_values(part["p_value"], method="benjamini-hochberg")
        assert part.iloc[:, -1].tolist() == expected.tolist()
    whole = with_adjusted_p_values(rows)["p_value_holm"]
    assert whole.tolist() == adjust_p_values(rows["p_value"]).tolist()
    assert with_adjusted_p_values(rows[:0])["p_value_holm"].tolist() == []


ROWS = pd.DataFrame({"list": [["a", "b"], ["a"]], "gap": ["none", None], "p": [0.01, 0.2]})


test_adjustment_rejects_bad_input = refusals(
    lambda call, argument, options: call(
        argument, **({"column": "p"} | options if call is with_adjusted_p_values else options)
    ),
    (adjust_p_values, [0.5, 1.5], {}, r"p_values\[1\] must be in \[0, 1\]; got"),
    (adjust_p_values, [-0.1], {}, r"p_values\[0\]"),
    (adjust_p_values, [[0.1]], {}, "one-dimensional"),
    (adjust_p_values, [0.1], {"method": "bonferroni"}, "'holm', 'benjamini-hoch"),
    (with_adjusted_p_values, ROWS, {"column": "q"}, ColumnNotFoundError, "'q' not found"),
    (with_adjusted_p_values, ROWS, {"within": "m"}, ColumnNotFoundError, "'m' not found"),
    # A test in two families would be adjusted in whichever comes last.
    (with_adjusted_p_values, ROWS, {"within": "list"}, "of within contains lists"),
    (with_adjusted_p_values, ROWS, {"within": "gap"}, "has empty cells and also"),
)


def test_holm_of_simulated_p_values_that_cannot_reject_raises_with_the_number_of_draws():
    """With 99 draws no p-value is below .01, and six of them give .06 by Holm."""
    rows = pd.DataFrame({"p_value": 0.01, "p_value_smallest": 0.01, "n_null": 99}, index=range(6))

    with pytest.raises(ValueError, match=r"6 p-values .* below 0\.05, .* draw n_null=120 null"):
        with_adjusted_p_values(rows)

    enough = rows.assign(p_value=1 / 121, p_value_smallest=1 / 121, n_null=120)
    assert with_adjusted_p_values(enough)["p_value_holm"].max() < 0.05
    few = with_adjusted_p_values(rows[:4])
    assert few["p_value_holm"].tolist() == [0.04] * 4
    # A test without a p-value does not count, and each family is checked by itself.
    with_adjusted_p_values(rows.assign(p_value=[0.01] * 4 + [np.nan] * 2))
    with_adjusted_p_values(rows.assign(model=[*"aaabbb"]), within="model")
    assert with_adjusted_p_values(rows, method="benjamini-hochberg").iloc[0, -1] == 0.01
