import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    Intervals,
    cluster_bootstrap,
)
from surface_consistency.metrics.paired.paired_tables import cluster_counts
from surface_consistency.metrics.uncertainty import bootstrap
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts

consistency = PAIRED_RATES["consistency"]
mean = CountRatio(numerator=(1, 0), denominator=(0, 1))


def clustered_verdicts(rng, n_clusters, size):
    """Verdict pairs that agree more in some clusters than in others."""
    propensity = np.repeat(rng.beta(1, 1, n_clusters), size)
    first = rng.random(n_clusters * size) < 0.5
    second = np.where(rng.random(n_clusters * size) < propensity, first, ~first)
    return first, second, np.repeat(np.arange(n_clusters), size)


def clustered_counts(seed, n_clusters=300, size=4):
    first, second, clusters = clustered_verdicts(np.random.default_rng(seed), n_clusters, size)
    return cluster_counts(first, second, clusters=clusters)


def naive_totals(counts, n_resamples, seed):
    rng = np.random.default_rng(seed)
    totals = []
    for _ in range(n_resamples):
        drawn = rng.choice(len(counts), size=len(counts), replace=True)
        totals.append(sum(counts[index] for index in drawn))
    return np.array(totals)


@pytest.fixture(params=["patterns", "clusters"])
def way(request, monkeypatch):
    """Both ways to draw: by distinct pattern, and cluster by cluster."""
    clusters_per_pattern = {"patterns": 0, "clusters": 10**9}[request.param]
    monkeypatch.setattr(bootstrap, "_CLUSTERS_PER_PATTERN", clusters_per_pattern)
    return request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("chunk", [4, 2**20])
def test_resample_counts_agree_with_all_possible_resamples(monkeypatch, chunk):
    """Each total comes as often as full enumeration says, chunked or not."""
    monkeypatch.setattr(bootstrap, "_CHUNK_CELLS", chunk)
    counts = np.array([[2, 0, 1], [0, 1, 0], [0, 1, 0], [5, 0, 0]])
    expected: dict[tuple[float, ...], float] = {}
    for drawn in itertools.product(range(4), repeat=4):
        total = tuple(map(float, counts[list(drawn)].sum(axis=0)))
        expected[total] = expected.get(total, 0) + 4.0**-4

    totals = resample_counts(counts, n_resamples=20_000, rng=11)

    seen, times = np.unique(totals, axis=0, return_counts=True)
    shares = dict(zip(map(tuple, seen.tolist()), times / 20_000, strict=True))
    assert set(shares) == set(expected)
    for total, share in expected.items():
        # Five standard errors of a share of 20,000 draws.
        assert shares[total] == pytest.approx(share, abs=5 * math.sqrt(share / 20_000))


@pytest.mark.usefixtures("way")
def test_cluster_bootstrap_agrees_with_a_naive_cluster_loop():
    counts = clustered_counts(1)
    values = consistency(naive_totals(counts, 3000, seed=2))

    ours = cluster_bootstrap(counts, consistency, intervals=Intervals(rng=3))

    assert ours[0] == pytest.approx(float(consistency(counts.sum(axis=0))))
    assert ours[1:] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.2 * values.std())


def test_cluster_bootstrap_is_wider_than_one_of_rows():
    """Verdicts that agree within clusters hold less than as many independent rows."""
    first, second, clusters = clustered_verdicts(np.random.default_rng(4), 200, 10)

    clustered, by_row = (
        cluster_bootstrap(cluster_counts(first, second, clusters=labels), consistency)
        for labels in (clusters, range(first.size))
    )

    assert clustered[0] == by_row[0]
    assert clustered[2] - clustered[1] > 1.5 * (by_row[2] - by_row[1])


def test_cluster_bootstrap_agrees_with_scipy_on_single_rows():
    """Both intervals are those of scipy.stats.bootstrap, and the skew tells them apart."""
    pytest.importorskip("scipy", minversion="1.15", reason="earlier ones have no rng=")
    from scipy import stats

    values = np.random.default_rng(6).lognormal(sigma=2, size=40)
    sums = np.column_stack([values, np.ones(40)])
    ours, theirs = {}, {}
    for method in ("percentile", "bca"):
        result = cluster_bootstrap(
            sums, mean, intervals=Intervals(n_resamples=40_000, rng=8, method=method)
        )
        reference = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=40_000,
            batch=2000,
            method=method,
            rng=np.random.default_rng(7),
        )
        interval = reference.confidence_interval
        ours[method] = np.array(result[1:])
        theirs[method] = np.array([interval.low, interval.high])

    shift = theirs["bca"] - theirs["percentile"]

    assert (shift > 0.2 * reference.standard_error).all()
    for method in ("percentile", "bca"):
        assert (np.abs(ours[method] - theirs[method]) < 0.2 * shift).all()


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_cluster_bootstrap_intervals_cover(method):
    """Of 300 simulated studies about 95 % hold the truth, and row-level intervals fewer."""
    rng = np.random.default_rng(20)
    covered = by_row = 0
    for _ in range(300):
        first, second, clusters = clustered_verdicts(rng, 60, 6)
        counts = cluster_counts(first, second, clusters=clusters)
        _, low, high = cluster_bootstrap(
            counts, consistency, intervals=Intervals(n_resamples=999, rng=rng, method=method)
        )
        covered += low <= 0.5 <= high
        rows = cluster_counts(first, second, clusters=range(first.size))
        _, low, high = cluster_bootstrap(
            rows, consistency, intervals=Intervals(n_resamples=999, rng=rng)
        )
        by_row += low <= 0.5 <= high

    assert 0.91 <= covered / 300 <= 0.98
    assert by_row / 300 <= 0.85


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=30),
    method=st.sampled_from(["percentile", "bca"]),
    data=st.data(),
)
@settings(deadline=None)
def test_cluster_bootstrap_is_free_of_the_order_of_clusters(rows, method, data):
    shuffled = data.draw(st.permutations(rows))
    statistic = CountRatio(numerator=(1, 0, 0, 1), denominator=(1, 1, 1, 2))
    rows, shuffled = [np.add(each, [0, 0, 0, 1]) for each in (rows, shuffled)]

    options = {"intervals": Intervals(method=method, n_resamples=200, rng=5)}
    try:
        ours = cluster_bootstrap(rows, statistic, **options)
    except UndefinedMetricWarning:
        with pytest.raises(UndefinedMetricWarning, match="undefined"):
            cluster_bootstrap(shuffled, statistic, **options)
    else:
        assert cluster_bootstrap(shuffled, statistic, **options) == ours


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=30))
@settings(deadline=None)
def test_cluster_bootstrap_stays_within_the_range_of_the_clusters(rows):
    counts = np.add(rows, [0, 0, 0, 1])

    _, low, high = cluster_bootstrap(
        counts, consistency, intervals=Intervals(n_resamples=200, method="percentile")
    )

    by_cluster = consistency(counts)
    assert by_cluster.min() - 1e-12 <= low <= high <= by_cluster.max() + 1e-12


def test_cluster_bootstrap_is_deterministic_for_a_seed():
    counts = clustered_counts(9)

    assert cluster_bootstrap(counts, consistency, intervals=Intervals(rng=1)) == cluster_bootstrap(
        counts, consistency, intervals=Intervals(rng=np.random.default_rng(1))
    )
    assert cluster_bootstrap(
        counts, consistency, intervals=Intervals(rng=1, method="percentile")
    ) != cluster_bootstrap(counts, consistency, intervals=Intervals(rng=2, method="percentile"))


def test_wider_confidence_is_wider():
    counts = clustered_counts(10)

    narrow, wide = (
        cluster_bootstrap(counts, consistency, intervals=Intervals(level=level))
        for level in (0.5, 0.99)
    )

    assert wide[1] < narrow[1] < narrow[2] < wide[2]


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_statistic_that_never_varies_has_an_interval_of_no_width(method):
    result = cluster_bootstrap([[3, 0, 0, 1]] * 20, consistency, intervals=Intervals(method=method))

    assert result == (1, 1, 1)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_single_cluster_has_a_nan_interval_with_a_warning(method):
    with pytest.warns(UndefinedMetricWarning, match="worth 1 cluster, under 2"):
        result = cluster_bootstrap([[3, 1, 0, 1]], consistency, intervals=Intervals(method=method))

    assert result[0] == 0.8
    assert all(map(math.isnan, result[1:]))


def test_undefined_estimate_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="itself undefined"):
        result = cluster_bootstrap(
            [[0, 0, 1, 2], [0, 0, 0, 3]],
            PAIRED_RATES["consistency_given_first_correct"],
            intervals=Intervals(method="percentile"),
        )

    assert all(map(math.isnan, result))


def test_undefined_resamples_are_left_out_and_counted():
    """A resample without any pair right at first defines no conditional rate."""
    counts = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 3]]

    rate, options = PAIRED_RATES["consistency_given_first_correct"], Intervals(method="percentile")
    _, *bounds = cluster_bootstrap(counts, rate, intervals=options)
    found = bootstrap.group_values(np.array(counts, dtype=float), {"rate": rate}, options)["rate"]

    # Half the clusters have such pairs, so all four draws miss them with probability 1/16.
    assert found.n_undefined == pytest.approx(10_000 / 16, abs=125)
    assert bounds == [found.low, found.high] == [0.5, 1.0]


def test_interval_is_nan_where_no_resample_defines_the_statistic():
    """The whole data, each of eight clusters once, is not among a few resamples."""
    sums = 2.0 ** np.arange(8)[:, None]

    with pytest.warns(UndefinedMetricWarning, match="no resample defines the statistic"):
        result = cluster_bootstrap(
            sums,
            lambda totals: np.where(totals[..., 0] == 255, 1.0, np.nan),
            intervals=Intervals(n_resamples=5, method="percentile"),
        )

    assert result[0] == 1.0
    assert math.isnan(result[1])


def test_infinite_resamples_take_part():
    """Odds of 1 to 0 are infinite, and the upper bound with them."""
    odds = CountRatio(numerator=(1, 0), denominator=(0, 1))

    result = cluster_bootstrap(
        [[1, 0], [1, 0], [1, 0], [0, 1]], odds, intervals=Intervals(method="percentile")
    )

    assert result[0] == 3
    assert result[2] == math.inf


def test_counts_of_large_numbers_are_exact():
    counts = np.array([[2**40 + 1, 1], [2**40 + 1, 1]])

    assert (resample_counts(counts, n_resamples=10) == [2**41 + 2, 2]).all()


def test_memory_of_the_bootstrap_is_bounded():
    """A hundred thousand clusters, all different, take no array of clusters times resamples."""
    sums = np.random.default_rng(12).random((100_000, 2))
    tracemalloc.start()

    cluster_bootstrap(sums, mean, intervals=Intervals(n_resamples=50))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.empty((0, 4)), r"at least one cluster and one column; got \(0, 4\)"),
        (np.empty((3, 0)), r"got \(3, 0\)"),
        ([1, 2, 3], r"got \(3,\)"),
        ([[1, 2], [3, np.nan]], r"counts must be finite; row 1 is \[3\.0, nan\]"),
        ([[np.inf, 2.0]], "row 0 is"),
    ],
)
def test_bootstrap_rejects_counts_of_another_form(counts, message):
    with pytest.raises(ValueError, match=message):
        cluster_bootstrap(counts, mean)
    with pytest.raises(ValueError, match=message):
        resample_counts(counts)


def test_bootstrap_rejects_counts_that_are_no_numbers():
    with pytest.raises(TypeError, match="counts must hold numbers"):
        resample_counts([["1", "2"]])


@pytest.mark.parametrize("statistic", [np.sum, lambda totals: totals])
def test_bootstrap_rejects_a_statistic_of_another_shape(statistic):
    with pytest.raises(ValueError, match=r"statistic must map summed counts.*sum over axis=-1"):
        cluster_bootstrap([[1, 1], [2, 3]], statistic)
