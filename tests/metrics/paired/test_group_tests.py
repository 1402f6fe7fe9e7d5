import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics import group_difference_by

samples = st.tuples(
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
    st.lists(st.integers(-20, 20), min_size=2, max_size=5),
)


def compared(values, members, **options):
    """The one row of a frame with these columns."""
    columns = {name: values for name, values in options.items() if name in ("strata", "cluster")}
    frame = pd.DataFrame({"value": values, "member": members} | columns)
    options |= {name: name for name in columns}
    rows = group_difference_by(frame, value="value", group="member", **options)
    return rows.iloc[0]


def joined(first, second):
    return [*first, *second], [1] * len(first) + [0] * len(second)


# arXiv 2510.11218, section 5.2: means of aligned and misaligned facts, and the printed increase.
@pytest.mark.parametrize(
    ("aligned", "misaligned", "increase"), [(0.309, 0.261, 18.4), (0.552, 0.493, 12.0)]
)
def test_relative_difference_agrees_with_the_paper(aligned, misaligned, increase):
    row = compared([aligned] * 3 + [misaligned] * 3, [1] * 3 + [0] * 3)

    assert 100 * row["relative_difference"] == pytest.approx(increase, abs=0.05)


def test_group_difference_finds_a_planted_one():
    rng = np.random.default_rng(4)
    aligned = np.tile(np.repeat([True, False], 30), 6)
    values = 0.26 + 0.048 * aligned + rng.normal(0, 0.05, 360)

    row = compared(values, aligned)

    assert row["p_value"] < 0.001
    assert 0 < row["difference_low"] < row["difference"] < row["difference_high"]
    assert (row["n_group"], row["n_other"], row["n_clusters"]) == (180, 180, 360)
    assert row["group_mean"] == pytest.approx(values[aligned].mean())
    assert row["other_mean"] == pytest.approx(values[~aligned].mean())


@settings(deadline=None, max_examples=40)
@given(samples)
def test_swapping_the_groups_changes_the_sign(data):
    there, back = (compared(*joined(*sides)) for sides in (data, data[::-1]))

    assert back["difference"] == pytest.approx(-there["difference"])
    assert back["p_value"] == pytest.approx(there["p_value"], nan_ok=True)


def test_clusters_widen_the_interval():
    """Facts of one topic that resemble each other are less evidence than they look."""
    rng = np.random.default_rng(6)
    topic = np.repeat(np.arange(40), 9)
    aligned = rng.random(40)[topic] < 0.5
    values = rng.normal(0, 1, 40)[topic] + rng.normal(0, 0.2, 360)

    rows, topics = compared(values, aligned), compared(values, aligned, cluster=topic)

    widths = [row["difference_high"] - row["difference_low"] for row in (rows, topics)]
    assert widths[1] > 1.5 * widths[0]
    assert topics["n_clusters"] == 40


@pytest.mark.parametrize(
    ("values", "members", "options", "reason"),
    [
        ([0.5, 0.5] * 8, [1, 0] * 8, {}, "alike in all clusters"),
        ([0.5, 0.7] * 8, [1, 0] * 8, {}, "alike in all clusters"),
        ([1.0, 2.0, 3.0], [1, 0, 0], {"cluster": ["t"] * 3}, "worth 1 cluster, under 4"),
        ([1.0, 2.0], [1, 1], {}, "no stratum contains both kinds of rows"),
        ([1.0, 2.0], [1, 0], {"strata": ["a", "b"]}, "no stratum contains both kinds of rows"),
    ],
)
def test_undefined_intervals_are_nan_with_a_reason(values, members, options, reason):
    row = compared(values, members, **options)

    assert reason in row["not_inferred"]
    assert row[["difference_low", "difference_high", "p_value"]].isna().all()


def test_relative_difference_from_a_mean_of_0_is_nan():
    row = compared([1.0, 2.0, 0.0, 0.0], [1, 1, 0, 0])

    assert row["difference"] == 1.5
    assert math.isnan(row["relative_difference"])


def test_t_of_single_rows_agrees_with_scipy():
    """Equally many independent rows: Student's test, with its degrees less one."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.4, 1.0, (2, 30))

    row = compared(*joined(first, second))

    expected = stats.ttest_ind(first, second)
    # Left out one at a time, rows have the variance of either group times 30 / 29, and a half
    # of the pooled degrees more.
    scale = math.sqrt(59 / 60 * 30 / 29)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(expected.statistic) / scale, 59))


@settings(deadline=None)
@given(st.data())
def test_p_is_below_a_twentieth_exactly_if_the_interval_excludes_0(data):
    n = data.draw(st.integers(8, 40))
    values = data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    members = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    topics = data.draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))
    assume(0 < sum(members) < n)

    row = compared(values, members, cluster=topics)

    low, high = row["difference_low"], row["difference_high"]
    assert math.isnan(row["p_value"]) == math.isnan(low) == bool(row["not_inferred"])
    assert (row["p_value"] < 0.05) == (low > 0 or high < 0)


def test_a_hundred_thousand_pairs_are_compared_at_once():
    rng = np.random.default_rng(0)
    start = time.perf_counter()

    row = compared(rng.random(100_000), rng.random(100_000) < 0.3, cluster=np.arange(100_000) // 5)

    assert time.perf_counter() - start < 5.0
    assert row["difference_low"] < row["difference_high"]


@pytest.mark.parametrize(
    ("values", "members", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "no rows"),
        ([1, np.nan], [1, 0], {}, ValueError, r"value\[1\] is missing: leave the row out"),
        ([1, np.inf], [1, 0], {}, ValueError, r"value\[1\] is inf"),
        ([1, "a"], [1, 0], {}, TypeError, r"value\[1\] is 'a', which is no number"),
        ([1, 2], [1, None], {}, ValueError, r"member\[1\] is missing"),
        ([1, 2], [1, 3], {}, ValueError, r"member\[1\] is 3"),
        ([1, 2], [1, 0], {"cluster": ["a", None]}, ValueError, "no cluster id in row 1"),
        ([1, 2], [1, 0], {"strata": ["a", None]}, ValueError, "'strata' has no"),
        ([1, 2], [1, 0], {"by": "difference"}, ValueError, "name of a column of the result"),
        ([1, 2], [1, 0], {"by": "model"}, ColumnNotFoundError, "model"),
        ([1, 2], [1, 0], {"confidence_level": 95}, ValueError, "confidence_level must lie"),
    ],
)
def test_group_difference_rejects_bad_input(values, members, options, error, message):
    with pytest.raises(error, match=message):
        compared(values, members, **options)


def test_t_under_strata_is_the_regression_with_an_intercept_a_stratum():
    """Models that differ in level and in share of the group show no difference."""
    rng = np.random.default_rng(3)
    model = np.repeat([0, 1, 2], 400)
    topic = np.tile(np.repeat(np.arange(40), 10), 3)
    aligned = rng.random(1200) < np.array([0.2, 0.5, 0.8])[model]
    values = 0.3 + 0.2 * model + rng.normal(0, 0.05, 1200)
    intercepts = model[:, None] == np.arange(3)
    slope = np.linalg.lstsq(np.column_stack([aligned, intercepts]), values, rcond=None)[0][0]

    whole = compared(values, aligned, cluster=topic)
    within = compared(values, aligned, strata=model, cluster=topic)

    assert whole["p_value"] < 1e-6
    assert within["p_value"] > 0.05
    assert within["difference_low"] < 0.0 < within["difference_high"]
    assert within["difference"] == pytest.approx(slope, abs=1e-12)
    means = ["group_mean", "other_mean"]
    assert within[means].tolist() == whole[means].tolist()
    shown = compared(values + 0.05 * aligned, aligned, strata=model, cluster=topic)
    assert shown["difference"] == pytest.approx(slope + 0.05, abs=1e-12)
    assert shown["difference_low"] > 0.0
    assert shown["p_value"] < 0.05


def test_t_under_one_stratum_is_that_of_all_rows():
    values, members = joined([0.9, 0.8, 0.7, 0.65], [0.3, 0.2, 0.1, 0.0])

    assert compared(values, members, strata=["m"] * 8).equals(compared(values, members))


def test_groups_are_those_of_single_calls_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "model": np.repeat(["b", "a"], 60),
            "topic": rng.integers(0, 15, 120),
            "value": rng.normal(size=120),
            "member": rng.random(120) < 0.4,
        }
    )
    options = {"value": "value", "group": "member", "cluster": "topic"}

    rows = group_difference_by(frame.sample(frac=1, random_state=1), by="model", **options)

    assert rows["model"].tolist() == ["a", "b"]
    for name, part in frame.groupby("model"):
        alone = group_difference_by(part, **options)
        found = rows[rows["model"] == name].drop(columns="model").reset_index(drop=True)
        pd.testing.assert_frame_equal(found, alone)
