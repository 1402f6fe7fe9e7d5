import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics import (
    Intervals,
    correlation,
    correlation_by,
    correlation_interval,
    partial_correlation,
)
from surface_consistency.metrics.correlation._correlations import (
    correlations_of_moments,
    drawn_correlations,
    moments_of_clusters,
    partial_of_correlations,
    percentile_p_value,
    rank_correlations,
    scaled,
)
from tests.refusals import refusals

METHODS = ["pearson", "spearman"]
BOUNDS = ["coefficient_low", "coefficient_high"]
DRAWN = Intervals(method="percentile", resamples=300)


def clustered(seed, n_clusters=150, size=3):
    """A frame whose columns x, control and y are correlated within clusters."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    shared = rng.normal(size=(n_clusters, 3))[cluster]
    own = rng.normal(size=(cluster.size, 3))
    x = 2 * shared[:, 0] + 0.3 * own[:, 0]
    control = 0.6 * x + shared[:, 1] + 0.5 * own[:, 1]
    y = np.round(0.4 * x + 0.2 * control + 2 * shared[:, 2] + own[:, 2])
    return pd.DataFrame({"x": x, "control": control, "y": y, "cluster": cluster})


def row_of(frame, **options):
    """The one row of `correlation_by`."""
    return correlation_by(frame, **({"x": "x", "y": "y", "cluster": "cluster"} | options)).iloc[0]


@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda c: sum(c) > 3),
)
@settings(deadline=None)
def test_moments_of_a_resample_equal_those_of_its_rows(seed, counts):
    """Weighted sums of clusters equal the sums of their repeated rows."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(8), 4)
    x, y = 50 + rng.normal(size=(32, 2)), rng.normal(size=(32, 2))
    written_out = np.repeat(np.arange(32), np.repeat(counts, 4))
    rows = np.column_stack([x, y])[written_out]

    moments = moments_of_clusters(scaled(list(x.T)), scaled(list(y.T)), cluster)
    within, across = correlations_of_moments(np.array(counts) @ moments, 2, 2)

    expected = np.corrcoef(rows, rowvar=False)
    assert within == pytest.approx(expected[:2, :2], abs=1e-9)
    assert across == pytest.approx(expected[:2, 2:], abs=1e-9)
    partial = partial_of_correlations(within, across)
    one = partial_correlation(rows[:, 0], rows[:, 2], controls=rows[:, 1])
    assert partial[0, 0] == pytest.approx(one, abs=1e-7)


@given(
    values=st.lists(
        st.tuples(*[st.integers(-3, 3)] * 3, st.integers(0, 3)), min_size=4, max_size=25
    )
)
@settings(deadline=None)
def test_ranks_of_a_resample_equal_those_of_its_rows(values):
    """Cumulative counts give the same average ranks as sorting the repeated rows."""
    table = np.array(values, dtype=float)
    columns, counts = table[:, :3], table[:, 3]
    rows = pd.DataFrame(np.repeat(columns, counts.astype(int), axis=0))

    within, across = rank_correlations(
        [columns[:, 0], columns[:, 1]],
        [columns[:, 2]],
        np.arange(len(values)),
        [counts[None, :].astype(np.int64)],
    )

    ours = np.block([[within[0], across[0]], [across[0].T, np.ones((1, 1))]])
    with np.errstate(invalid="ignore"):
        expected = rows.rank().corr().to_numpy()
    varies = np.array([rows[k].nunique() > 1 for k in range(3)])
    both = varies[:, None] & varies[None, :]
    assert ours[both] == pytest.approx(expected[both], abs=1e-10)
    both[2, 2] = True
    assert np.isnan(ours[~both]).all()


@pytest.mark.parametrize("method", METHODS)
def test_resamples_agree_with_a_naive_cluster_loop(method):
    """Spread and quantiles are those of concatenating the rows of drawn clusters."""
    frame = clustered(1, n_clusters=60)
    x, control, y = (frame[name].to_numpy() for name in ("x", "control", "y"))
    rng = np.random.default_rng(2)
    rows_of = [np.flatnonzero(frame["cluster"] == c) for c in range(60)]
    naive = []
    for _ in range(1500):
        rows = np.concatenate([rows_of[c] for c in rng.integers(0, 60, 60)])
        naive.append(partial_correlation(control[rows], y[rows], x[rows], method=method))

    drawn = drawn_correlations(
        [control, x],
        [y],
        frame["cluster"].to_numpy(),
        method=method,
        resamples=4000,
        rng=np.random.default_rng(3),
    )

    values = partial_of_correlations(*drawn)[:, 0, 0]
    assert values.std() == pytest.approx(np.std(naive), rel=0.07)
    levels = [0.025, 0.5, 0.975]
    expected = np.quantile(naive, levels)
    assert np.quantile(values, levels) == pytest.approx(expected, abs=0.2 * np.std(naive))
    row = row_of(frame, x="control", controls="x", method=method)
    width = row["coefficient_high"] - row["coefficient_low"]
    assert width == pytest.approx(4 * np.std(naive), rel=0.15)


def test_percentile_interval_agrees_with_scipy_on_single_rows():
    frame = clustered(4, n_clusters=200, size=1)

    def partial(a, b, c, axis):
        a, b, c = (stats.zscore(values, axis=axis) for values in (a, b, c))
        r = [(u * v).mean(axis=axis) for u, v in ((a, b), (a, c), (b, c))]
        return (r[0] - r[1] * r[2]) / np.sqrt((1 - r[1] ** 2) * (1 - r[2] ** 2))

    theirs = stats.bootstrap(
        [frame[name].to_numpy() for name in ("x", "y", "control")],
        partial,
        paired=True,
        vectorized=True,
        n_resamples=4000,
        batch=100,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    row = row_of(frame, controls="control", intervals=Intervals(method="percentile"))

    expected = [theirs.confidence_interval.low, theirs.confidence_interval.high]
    assert row[BOUNDS].tolist() == pytest.approx(expected, abs=0.15 * theirs.standard_error)


@pytest.mark.parametrize("method", METHODS)
def test_resamples_follow_the_seed_and_the_labels_of_groups(method):
    frame = clustered(6, n_clusters=24).assign(model=[["a", "b"]] * 72)
    options = {"controls": "control", "method": method, "intervals": DRAWN}

    rows, again = (
        correlation_by(frame, x="x", y="y", cluster="cluster", by="model", **options) for _ in "12"
    )

    assert rows.equals(again)
    assert rows["coefficient"].nunique() == 1
    assert rows["coefficient_low"].nunique() == 2


@given(
    seed=st.integers(0, 2**32 - 1),
    method=st.sampled_from(METHODS),
    interval=st.sampled_from(["auto", "percentile"]),
    confidence=st.sampled_from([0.5, 0.9, 0.95]),
)
@settings(deadline=None, max_examples=30)
def test_interval_excludes_0_exactly_if_the_test_rejects(seed, method, interval, confidence):
    intervals = Intervals(confidence=confidence, method=interval, resamples=201)

    row = row_of(
        clustered(seed, n_clusters=12, size=2),
        controls="control",
        method=method,
        intervals=intervals,
    )

    low, high, p_value = row[[*BOUNDS, "p_value"]]
    assert -1 <= low <= high <= 1
    assume(abs(p_value - (1 - confidence)) > 1e-9)
    assert (p_value < 1 - confidence) == (low > 0 or high < 0)


def test_p_value_of_resamples_is_the_level_at_which_their_quantiles_reach_0():
    values = np.arange(-3.0, 98.0)
    assert percentile_p_value(values) == pytest.approx(2 * 0.03)
    assert percentile_p_value(-values) == pytest.approx(2 * 0.03)
    assert percentile_p_value(values + 3.5) == pytest.approx(1 / 101)
    assert percentile_p_value(np.r_[np.nan, -1.0, 1.0]) == 1.0
    assert math.isnan(percentile_p_value(np.array([np.nan])))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda frame: frame.assign(x=0.1), "x is constant"),
        (lambda frame: frame.assign(y=5 * frame["control"] + 1), "y is a linear function"),
        (lambda frame: frame.assign(cluster=1), "one cluster, or undefined"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_undefined_correlations_have_a_reason(change, reason, method):
    frame = change(clustered(12, n_clusters=30))

    row = row_of(frame, controls="control", method=method, intervals=DRAWN)

    assert reason in row["not_inferred"]
    assert row[[*BOUNDS, "p_value"]].isna().all()
    assert math.isnan(row["coefficient"]) == ("one cluster" not in reason)


def test_undefined_resamples_are_excluded_and_counted():
    """A target that varies in one of four clusters is constant when that cluster is not drawn."""
    frame = pd.DataFrame({"x": np.arange(12.0), "y": np.r_[1.0, np.zeros(11)]})

    row = row_of(frame.assign(cluster=np.arange(12) // 3), intervals=Intervals(method="percentile"))

    assert row["n_undefined"] == pytest.approx(10_000 * (3 / 4) ** 4, abs=250)
    assert row["coefficient_high"] < 0


def test_rows_are_resampled_without_clusters():
    frame = clustered(9)

    row = row_of(frame, cluster=None, intervals=DRAWN)

    assert row["n_clusters"] == row["n"] == 450
    exact = correlation_interval(correlation(frame["x"], frame["y"]), df=448)
    assert row[BOUNDS].tolist() == pytest.approx(exact[:2], abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_memory_of_the_resamples_is_bounded(method):
    """A hundred thousand clusters need no array of clusters times resamples."""
    rng = np.random.default_rng(14)
    x, y = list(rng.normal(size=(2, 100_000))), list(rng.normal(size=(3, 100_000)))
    tracemalloc.start()

    drawn_correlations(x, y, np.arange(100_000), method=method, resamples=20, rng=rng)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150e6


test_correlation_by_rejects_bad_arguments = refusals(
    lambda change, options: row_of(
        pd.DataFrame({"x": 1.0, "control": 1.0, "y": 1.0, "cluster": [1, 2]}).assign(**change),
        **options,
    ),
    ({}, {"controls": ["control", "z"]}, ColumnNotFoundError, "x, y, controls, by or cluster"),
    ({"x": [1.0, math.inf]}, {}, r"x\[1\] is inf"),
    ({"x": ["a", "b"]}, {}, TypeError, r"x\[0\] is 'a', which is not a number"),
    ({}, {"method": "kendall"}, "method must be 'pearson' or"),
)
