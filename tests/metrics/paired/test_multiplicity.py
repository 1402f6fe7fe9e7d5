import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics import (
    Intervals,
    adjust_p_values,
    paired_by,
    with_adjusted_p_values,
)

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


@settings(deadline=None)
@given(p_values=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_false_discovery_rates_agree_with_scipy(p_values):
    stats = pytest.importorskip("scipy.stats")

    for method, name in (("benjamini-hochberg", "bh"), ("benjamini-yekutieli", "by")):
        expected = stats.false_discovery_control(p_values, method=name)
        assert adjust_p_values(p_values, method=method) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=20)  # statsmodels takes 50 ms a call
@given(p_values=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40))
def test_holm_agrees_with_statsmodels(p_values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")

    expected = multitest.multipletests(p_values, method="holm")[1]

    assert adjust_p_values(p_values) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(p_values=p_lists, method=st.sampled_from(METHODS), data=st.data())
def test_adjustment_is_monotone_and_free_of_order(p_values, method, data):
    """No adjusted value lies below the raw one, order is kept, and permuting commutes with it."""
    order = data.draw(st.permutations(range(len(p_values))))
    raw = np.asarray(p_values, dtype=float)

    adjusted = adjust_p_values(raw, method=method)

    assert (adjusted >= raw).all()
    assert (adjusted <= 1).all()
    ranked = adjusted[np.argsort(raw, kind="stable")]
    assert (np.diff(ranked) >= 0).all()
    shuffled = adjust_p_values(raw[list(order)], method=method)
    assert shuffled == pytest.approx(adjusted[list(order)], abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_missing_p_values_do_not_count(method):
    adjusted = adjust_p_values([0.02, np.nan, 0.01, np.nan], method=method)

    assert np.isnan(adjusted).tolist() == [False, True, False, True]
    assert adjusted[[0, 2]].tolist() == adjust_p_values([0.02, 0.01], method=method).tolist()


def test_one_test_is_left_as_it_is():
    for method in METHODS:
        assert adjust_p_values([0.03], method=method).tolist() == [0.03]


@pytest.mark.parametrize(
    ("p_values", "options", "message"),
    [
        ([0.5, 1.5], {}, r"p_values\[1\] must lie in \[0, 1\]; got 1.5"),
        ([-0.1], {}, r"p_values\[0\]"),
        ([[0.1]], {}, "one-dimensional"),
        ([0.1], {"method": "bonferroni"}, "'holm', 'benjamini-hochberg'"),
    ],
)
def test_adjust_p_values_rejects_bad_input(p_values, options, message):
    with pytest.raises(ValueError, match=message):
        adjust_p_values(p_values, **options)


def test_adjusted_column_stands_beside_the_groups():
    """The p-values of all groups of one model are one family."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "model": rng.choice(["a", "b"], 400),
            "category": rng.choice(list("xyz"), 400),
            "first_correct": rng.random(400) < 0.6,
            "second_correct": rng.random(400) < 0.45,
        }
    )
    rows = paired_by(
        frame, by=["model", "category"], cluster=None, intervals=Intervals(n_resamples=50)
    )

    adjusted = with_adjusted_p_values(rows, within="model", method="benjamini-hochberg")

    assert list(adjusted.columns) == [*rows.columns, "mcnemar_p_value_benjamini_hochberg"]
    for _, part in adjusted.groupby("model"):
        expected = adjust_p_values(part["mcnemar_p_value"], method="benjamini-hochberg")
        assert part.iloc[:, -1].tolist() == expected.tolist()
    whole = with_adjusted_p_values(rows)
    assert (
        whole["mcnemar_p_value_holm"].tolist() == adjust_p_values(rows["mcnemar_p_value"]).tolist()
    )


def test_adjusted_column_of_an_empty_table_is_empty():
    rows = pd.DataFrame({"group": [], "mcnemar_p_value": []})

    assert with_adjusted_p_values(rows)["mcnemar_p_value_holm"].tolist() == []


@pytest.mark.parametrize("options", [{"column": "p"}, {"within": "model"}])
def test_with_adjusted_p_values_rejects_missing_columns(options):
    rows = pd.DataFrame({"group": ["a"], "mcnemar_p_value": [0.1]})

    with pytest.raises(ColumnNotFoundError, match=r"is not in the table, which has \['group'"):
        with_adjusted_p_values(rows, **options)


def test_with_adjusted_p_values_rejects_lists_in_within():
    """A test in two families would be adjusted in whichever comes last."""
    rows = pd.DataFrame({"family": [["a", "b"], ["a"]], "mcnemar_p_value": [0.01, 0.2]})

    with pytest.raises(ValueError, match="column 'family' of within holds lists"):
        with_adjusted_p_values(rows, within="family")


def test_with_adjusted_p_values_rejects_gaps_besides_their_name():
    rows = pd.DataFrame({"family": ["none", None], "mcnemar_p_value": [0.01, 0.2]})

    with pytest.raises(ValueError, match="column 'family' has empty cells besides"):
        with_adjusted_p_values(rows, within="family")
