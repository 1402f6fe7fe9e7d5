import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.correlation._correlations import (
    correlations_of_moments,
    moments_of_clusters,
    partial_of_correlations,
    percentile_p_value,
    rank_correlations,
    scaled,
)
from surface_consistency.metrics.correlation.correlation_resamples import (
    correlation_bootstrap,
    resample_correlations,
)
from surface_consistency.metrics.correlation.correlations import correlation, partial_correlation
from surface_consistency.metrics.uncertainty.intervals import Intervals

METHODS = ["pearson", "spearman"]


def clustered(seed, n_clusters=150, size=3, n_targets=2):
    """Rows whose predictors and targets share much within a cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    n = cluster.size
    shared = rng.normal(size=(n_clusters, 2 + n_targets))[cluster]
    own = rng.normal(size=(n, 2 + n_targets))
    entity = 2 * shared[:, 0] + 0.3 * own[:, 0]
    surface = 0.6 * entity + shared[:, 1] + 0.5 * own[:, 1]
    scores = 0.4 * entity[:, None] + 0.2 * surface[:, None] + 2 * shared[:, 2:] + own[:, 2:]
    return np.column_stack([entity, surface]), np.round(scores), cluster


def pairs(result):
    return (result.resampled_correlations, result.resampled_partial_correlations)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_predictors", [1, 2, 4])
def test_correlations_of_the_data_agree_with_the_single_functions(method, n_predictors):
    rng = np.random.default_rng(n_predictors)
    x = rng.normal(size=(80, n_predictors)) + rng.normal(size=(80, 1))
    y = np.round(x[:, :1] + rng.normal(size=(80, 3)))

    result = resample_correlations(x, y, method=method, n_resamples=1)

    for i in range(n_predictors):
        others = np.delete(x, i, axis=1)
        for k in range(3):
            plain = correlation(x[:, i], y[:, k], method=method).coefficient
            partial = partial_correlation(x[:, i], y[:, k], controls=others, method=method)
            assert result.correlations[i, k] == pytest.approx(plain, abs=1e-10)
            assert result.partial_correlations[i, k] == pytest.approx(
                partial.coefficient, abs=1e-10
            )


@given(
    seed=st.integers(0, 2**32 - 1),
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda c: sum(c) > 3),
)
@settings(deadline=None)
def test_moments_of_a_resample_are_those_of_its_rows(seed, counts):
    """Weighting the sums of clusters gives what writing their rows out gives."""
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
    one = partial_correlation(rows[:, 0], rows[:, 2], controls=rows[:, 1]).coefficient
    assert partial[0, 0] == pytest.approx(one, abs=1e-7)


@given(
    values=st.lists(
        st.tuples(*[st.integers(-3, 3)] * 3, st.integers(0, 3)), min_size=4, max_size=25
    )
)
@settings(deadline=None)
def test_ranks_of_a_resample_are_those_of_its_rows(values):
    """Running sums of counts give the average ranks that sorting the rows anew gives."""
    table = np.array(values, dtype=float)
    columns, counts = table[:, :3], table[:, 3]
    rows = pd.DataFrame(np.repeat(columns, counts.astype(int), axis=0))

    within, across = rank_correlations(
        [columns[:, 0], columns[:, 1]], [columns[:, 2]], counts[None, :]
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
    x, y, cluster = clustered(1, n_clusters=60, size=3)
    rng = np.random.default_rng(2)
    rows_of = [np.flatnonzero(cluster == c) for c in range(60)]
    naive = []
    for _ in range(1500):
        rows = np.concatenate([rows_of[c] for c in rng.integers(0, 60, 60)])
        result = [
            correlation(x[rows, 0], y[rows, 1], method=method).coefficient,
            partial_correlation(
                x[rows, 1], y[rows, 0], controls=x[rows, 0], method=method
            ).coefficient,
        ]
        naive.append(result)
    naive = np.array(naive)

    ours = resample_correlations(x, y, clusters=cluster, method=method, n_resamples=4000, rng=3)

    for values, theirs in (
        (ours.resampled_correlations[:, 0, 1], naive[:, 0]),
        (ours.resampled_partial_correlations[:, 1, 0], naive[:, 1]),
    ):
        assert values.std() == pytest.approx(theirs.std(), rel=0.07)
        assert np.quantile(values, [0.025, 0.5, 0.975]) == pytest.approx(
            np.quantile(theirs, [0.025, 0.5, 0.975]), abs=0.2 * theirs.std()
        )


def test_correlation_bootstrap_agrees_with_scipy_on_single_rows():
    stats = pytest.importorskip("scipy.stats")
    x, y, _ = clustered(4, n_clusters=200, size=1)

    def partial(a, b, c, axis):
        a, b, c = (stats.zscore(values, axis=axis) for values in (a, b, c))
        r = [(u * v).mean(axis=axis) for u, v in ((a, b), (a, c), (b, c))]
        return (r[0] - r[1] * r[2]) / np.sqrt((1 - r[1] ** 2) * (1 - r[2] ** 2))

    theirs = stats.bootstrap(
        (x[:, 0], y[:, 0], x[:, 1]),
        partial,
        paired=True,
        vectorized=True,
        n_resamples=4000,
        batch=100,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    ours, _ = correlation_bootstrap(
        x[:, 0], y, controls=x[:, 1], intervals=Intervals(method="percentile")
    )

    bounds = theirs.confidence_interval
    assert (ours.estimate_interval.low, ours.estimate_interval.high) == pytest.approx(
        (bounds.low, bounds.high), abs=0.15 * theirs.standard_error
    )


def test_cluster_intervals_cover_where_those_of_rows_do_not():
    """Of 300 simulated studies about 95 % hold the true correlation, and row intervals fewer."""
    rng = np.random.default_rng(5)
    covered = by_row = 0
    for _ in range(300):
        # Within a cluster of 5 all values agree, so the truth is the correlation of clusters, 0.5.
        shared = rng.normal(size=(80, 2))
        x, y = shared[:, 0], 0.5 * shared[:, 0] + math.sqrt(0.75) * shared[:, 1]
        x, y, cluster = np.repeat(x, 5), np.repeat(y, 5), np.repeat(np.arange(80), 5)
        (result,) = correlation_bootstrap(x, y, clusters=cluster)
        covered += result.estimate_interval.low <= 0.5 <= result.estimate_interval.high
        rows = correlation(x, y).coefficient_interval
        by_row += rows.low <= 0.5 <= rows.high

    assert 0.90 <= covered / 300 <= 0.98
    assert by_row / 300 <= 0.75


@given(seed=st.integers(0, 1000), data=st.data())
@settings(deadline=None, max_examples=25)
def test_resamples_are_free_of_the_order_of_rows(seed, data):
    x, y, cluster = clustered(seed, n_clusters=12, size=2)
    order = np.array(data.draw(st.permutations(range(24))))

    ours = resample_correlations(x, y, clusters=cluster, n_resamples=50, rng=1)
    shuffled = resample_correlations(
        x[order], y[order], clusters=cluster[order], n_resamples=50, rng=1
    )

    for left, right in zip(pairs(ours), pairs(shuffled), strict=True):
        assert left == pytest.approx(right, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_resamples_are_shared_by_predictors_and_targets(method):
    """A target that stands twice has the same value twice in every resample."""
    x, y, cluster = clustered(6)

    result = resample_correlations(
        x, y[:, [0, 1, 0]], clusters=cluster, method=method, n_resamples=40
    )

    for values in pairs(result):
        assert values[..., 0] == pytest.approx(values[..., 2], abs=1e-12)
        assert not np.allclose(values[..., 0], values[..., 1])


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_resampled_correlations_are_bounded(method, seed):
    x, y, cluster = clustered(seed, n_clusters=4, size=2)

    result = resample_correlations(x, y, clusters=cluster, method=method, n_resamples=100)

    for values in pairs(result):
        assert (np.isnan(values) | (np.abs(values) <= 1)).all()


def test_labels_of_clusters_may_be_anything_hashable():
    x, y, cluster = clustered(7, n_clusters=20)
    labels = [("Q", int(c)) for c in cluster]

    by_label = resample_correlations(x, y, clusters=labels, n_resamples=30)

    by_number = resample_correlations(x, y, clusters=cluster, n_resamples=30)
    assert by_label.n_clusters == 20
    for left, right in zip(pairs(by_label), pairs(by_number), strict=True):
        assert (left == right).all()


def test_correlation_bootstrap_is_deterministic_for_a_seed():
    x, y, cluster = clustered(8)

    ours, again, other = (
        correlation_bootstrap(
            x[:, 0],
            y,
            controls=x[:, 1],
            clusters=cluster,
            intervals=Intervals(method="percentile", n_resamples=200, rng=rng),
        )
        for rng in (1, np.random.default_rng(1), 2)
    )

    assert ours == again
    assert ours != other


def test_correlation_bootstrap_without_controls_is_of_the_plain_correlation():
    x, y, cluster = clustered(9)

    first, second = correlation_bootstrap(
        x[:, 0], y, clusters=cluster, intervals=Intervals(n_resamples=500)
    )

    assert first.estimate == pytest.approx(correlation(x[:, 0], y[:, 0]).coefficient)
    assert second.estimate_interval.low < second.estimate < second.estimate_interval.high
    assert (first.n_clusters, first.n_resamples, first.n_undefined) == (150, None, 0)
    assert first.estimate_interval.method == "jackknife"


@given(
    seed=st.integers(0, 2**32 - 1),
    method=st.sampled_from(METHODS),
    interval=st.sampled_from(["auto", "percentile"]),
    level=st.sampled_from([0.5, 0.9, 0.95]),
)
@settings(deadline=None, max_examples=30)
def test_interval_leaves_out_0_exactly_where_the_test_rejects(seed, method, interval, level):
    x, y, cluster = clustered(seed, n_clusters=12, size=2)

    results = correlation_bootstrap(
        x[:, 0],
        np.column_stack([y, x[:, 0] + y[:, 0]]),
        controls=x[:, 1],
        clusters=cluster,
        method=method,
        intervals=Intervals(level=level, method=interval, n_resamples=201),
    )

    for result in results:
        bounds = result.estimate_interval
        assume(abs(result.p_value - (1 - level)) > 1e-9)
        assert (result.p_value < 1 - level) == (bounds.low > 0 or bounds.high < 0)


def test_p_value_of_resamples_is_where_their_quantiles_reach_0():
    values = np.arange(-3.0, 98.0)
    assert percentile_p_value(values) == pytest.approx(2 * 0.03)
    assert percentile_p_value(-values) == pytest.approx(2 * 0.03)
    assert percentile_p_value(values + 3.5) == pytest.approx(1 / 101)
    assert percentile_p_value(np.r_[np.nan, -1.0, 1.0]) == 1.0
    assert math.isnan(percentile_p_value(np.array([np.nan])))


def test_rows_with_gaps_are_dropped_with_their_cluster_labels():
    x, y, cluster = clustered(10, n_clusters=30)
    gappy = y.copy()
    gappy[4, 1] = np.nan
    kept = np.arange(90) != 4

    ours = resample_correlations(x, gappy, clusters=cluster, n_resamples=20, missing="drop")

    expected = resample_correlations(x[kept], y[kept], clusters=cluster[kept], n_resamples=20)
    assert (ours.n, ours.n_dropped) == (89, 1)
    for left, right in zip(pairs(ours), pairs(expected), strict=True):
        assert (left == right).all()
    with pytest.raises(ValueError, match=r"targets\[:, 1\]\[4\] is missing"):
        resample_correlations(x, gappy, clusters=cluster)


@pytest.mark.parametrize("method", METHODS)
def test_constants_and_collinear_predictors_are_nan(method):
    x, y, cluster = clustered(11, n_clusters=20)
    constant = np.full(60, 0.1)

    of_constant = resample_correlations(
        x, np.column_stack([y[:, 0], constant]), clusters=cluster, method=method, n_resamples=10
    )
    collinear = resample_correlations(
        np.column_stack([x[:, 0], 3 - 2 * x[:, 0]]),
        y,
        clusters=cluster,
        method=method,
        n_resamples=10,
    )

    assert np.isnan(of_constant.correlations[:, 1]).all()
    assert np.isnan(of_constant.resampled_partial_correlations[:, :, 1]).all()
    assert np.isfinite(of_constant.resampled_partial_correlations[:, :, 0]).all()
    assert np.isfinite(collinear.correlations).all()
    assert np.isnan(collinear.partial_correlations).all()
    assert np.isnan(collinear.resampled_partial_correlations).all()


def test_target_that_the_controls_determine_is_nan_and_not_one():
    x, _, cluster = clustered(12, n_clusters=30)

    with pytest.warns(UndefinedMetricWarning, match="1 of 1 targets.*the controls determine it"):
        (result,) = correlation_bootstrap(
            x[:, 0],
            5 * x[:, 1] + 1,
            controls=x[:, 1],
            clusters=cluster,
            intervals=Intervals(method="percentile", n_resamples=50),
        )

    assert math.isnan(result.estimate)
    assert math.isnan(result.p_value)
    assert result.n_resamples == 50


def test_undefined_resamples_are_left_out_and_counted():
    """A target that varies in one of four clusters is constant when that cluster is not drawn."""
    x = np.arange(12.0)
    y = np.r_[1.0, np.zeros(11)]

    (result,) = correlation_bootstrap(
        x, y, clusters=np.arange(12) // 3, intervals=Intervals(method="percentile")
    )

    assert result.n_undefined == pytest.approx(10_000 * (3 / 4) ** 4, abs=250)
    assert result.estimate_interval.high < 0


def test_single_cluster_has_a_nan_interval_with_a_warning():
    x, y, _ = clustered(13, n_clusters=10)

    with pytest.warns(UndefinedMetricWarning, match="2 of 2 targets.*one cluster only") as caught:
        results = correlation_bootstrap(
            x[:, 0], y, clusters=[1] * 30, intervals=Intervals(n_resamples=20)
        )

    assert [math.isnan(result.estimate_interval.low) for result in results] == [True, True]
    assert math.isfinite(results[0].estimate)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("method", METHODS)
def test_memory_of_the_bootstrap_is_bounded(method):
    """A hundred thousand clusters take no array of clusters times resamples."""
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(100_000, 2)), rng.normal(size=(100_000, 3))
    tracemalloc.start()

    resample_correlations(x, y, method=method, n_resamples=20)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150e6


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([1, 2, 3], [1, 2], {}, ValueError, "predictors and targets must have equal lengths"),
        ([1, 2], [1, 2], {"clusters": [1]}, ValueError, "one label a row: got 1"),
        ([1, 2], [1, 2], {"clusters": [1, None]}, ValueError, r"clusters\[1\] is None: every row"),
        ([], [], {}, ValueError, "there must be at least one complete row; got 0"),
        (np.ones((3, 0)), [1, 2, 3], {}, ValueError, "a predictor and a target; got 0 and 1"),
        ([1, 2], np.ones((2, 1, 1)), {}, ValueError, r"targets must have shape \(n_rows,\) or"),
        ([1, math.inf], [1, 2], {}, ValueError, r"predictors\[1\] is inf"),
        (["a", "b"], [1, 2], {}, TypeError, r"predictors\[0\] is 'a', which is no number"),
        ([1, 2], [1, 2], {"n_resamples": 0}, ValueError, "n_resamples must be at least 1"),
        ([1, 2], [1, 2], {"n_resamples": 1e3}, TypeError, "n_resamples must be an integer"),
        ([1, 2], [1, 2], {"method": "kendall"}, ValueError, "method must be 'pearson' or"),
        ([1, 2], [1, 2], {"missing": "omit"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_resample_correlations_rejects_bad_arguments(x, y, options, error, message):
    with pytest.raises(error, match=message):
        resample_correlations(x, y, **options)


def test_correlation_bootstrap_rejects_bad_arguments():
    with pytest.raises(ValueError, match=r"intervals.method must be 'auto' or 'percentile'"):
        correlation_bootstrap([1, 2], [1, 2], intervals=Intervals(method="bca"))
    with pytest.raises(ValueError, match="x and controls must have equal lengths; got 2 and 3"):
        correlation_bootstrap([1, 2], [1, 2], controls=[1, 2, 3])
    with pytest.raises(ValueError, match=r"x must be one-dimensional; got shape \(2, 1\)"):
        correlation_bootstrap([[1], [2]], [1, 2])
