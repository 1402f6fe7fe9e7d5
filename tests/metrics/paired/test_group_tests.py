import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from surface_consistency.metrics import group_difference_by
from tests.refusals import refusals

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


@settings(deadline=None, max_examples=40)
@given(samples)
def test_swapping_the_groups_changes_the_sign(data):
    there, back = (compared(*joined(*sides)) for sides in (data, data[::-1]))
    one_stratum = compared(*joined(*data), strata=["m"] * sum(map(len, data)))

    assert one_stratum.equals(there)
    assert np.isnan(there["relative_difference"]) == (there["other_mean"] == 0)
    assert back["difference"] == pytest.approx(-there["difference"])
    assert back["p_value"] == pytest.approx(there["p_value"], nan_ok=True)


@pytest.mark.parametrize(
    ("values", "members", "options", "reason"),
    [
        ([0.5, 0.5] * 8, [1, 0] * 8, {}, "equal in all clusters"),
        ([0.5, 0.7] * 8, [1, 0] * 8, {}, "equal in all clusters"),
        ([1.0, 2.0, 3.0], [1, 0, 0], {"cluster": ["t"] * 3}, "of clusters 1, minimum 4"),
        ([1.0, 2.0], [1, 1], {}, "no stratum contains both kinds of rows"),
        ([1.0, 2.0], [1, 0], {"strata": ["a", "b"]}, "no stratum contains both kinds of rows"),
    ],
)
def test_undefined_intervals_are_nan_with_a_reason(values, members, options, reason):
    row = compared(values, members, **options)

    assert reason in row["not_inferred"]
    assert row[["difference_low", "difference_high", "p_value"]].isna().all()


def test_t_of_single_rows_agrees_with_scipy():
    """Groups of equal size with independent rows: Student's test, with one degree less."""
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.4, 1.0, (2, 30))

    row = compared(*joined(first, second))

    expected = stats.ttest_ind(first, second)
    # Left out one at a time, rows have the variance of either group times 30 / 29, and a half
    # of the pooled degrees more.
    scale = math.sqrt(59 / 60 * 30 / 29)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(expected.statistic) / scale, 59))


def test_a_hundred_thousand_pairs_are_compared_at_once():
    rng = np.random.default_rng(0)
    start = time.perf_counter()

    row = compared(rng.random(100_000), rng.random(100_000) < 0.3, cluster=np.arange(100_000) // 5)

    assert time.perf_counter() - start < 5.0
    assert row["difference_low"] < row["difference_high"]


test_group_difference_rejects_bad_input = refusals(
    lambda values, members, options: compared(values, members, **options),
    ([1, np.nan], [1, 0], {}, r"value\[1\] is missing: drop the row"),
    ([1, np.inf], [1, 0], {}, r"value\[1\] is inf"),
    ([1, "a"], [1, 0], {}, TypeError, r"value\[1\] is 'a', which is not a number"),
    ([1, 2], [1, None], {}, r"member\[1\] is missing"),
    ([1, 2], [1, 3], {}, r"member\[1\] is 3"),
    ([1, 2], [1, 0], {"strata": ["a", None]}, "'strata' has no"),
    ([1, 2], [1, 0], {"confidence": 95}, "confidence must be"),
)


def test_t_under_strata_is_the_regression_with_an_intercept_per_stratum():
    """Models that differ in level and in group size give no difference."""
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
