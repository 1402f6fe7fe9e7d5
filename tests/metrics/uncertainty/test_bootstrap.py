import itertools
import math
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PAIRED_RATES, CountRatio, Intervals, cluster_bootstrap
from surface_consistency.metrics.paired.paired_tables import cluster_counts
from surface_consistency.metrics.uncertainty import bootstrap
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from tests.refusals import refusals

consistency = PAIRED_RATES["consistency"]
mean = CountRatio(numerator=(1, 0), denominator=(0, 1))


def clustered_verdicts(rng, n_clusters, size):
    """Pairs of labels that agree more in some clusters than in others."""
    propensity = np.repeat(rng.beta(1, 1, n_clusters), size)
    first = rng.random(n_clusters * size) < 0.5
    second = np.where(rng.random(n_clusters * size) < propensity, first, ~first)
    return first, second, np.repeat(np.arange(n_clusters), size)


def clustered_counts(seed, n_clusters=300, size=4):
    first, second, clusters = clustered_verdicts(np.random.default_rng(seed), n_clusters, size)
    return cluster_counts(first, second, clusters=clusters)


@pytest.fixture(params=["patterns", "clusters"])
def resampling(request, monkeypatch):
    """Draw resamples by distinct pattern of counts, or by cluster."""
    clusters_per_pattern = {"patterns": 0, "clusters": 10**9}[request.param]
    monkeypatch.setattr(bootstrap, "_CLUSTERS_PER_PATTERN", clusters_per_pattern)
    return request.param


@pytest.mark.usefixtures("resampling")
@pytest.mark.parametrize("chunk", [4, 2**20])
def test_resample_counts_agree_with_all_possible_resamples(monkeypatch, chunk):
    """Each total is as frequent as in full enumeration, with and without chunks."""
    monkeypatch.setattr(bootstrap, "_CHUNK_CELLS", chunk)
    counts = np.array([[2, 0, 1], [0, 1, 0], [0, 1, 0], [5, 0, 0]])
    expected: dict[tuple[float, ...], float] = {}
    for drawn in itertools.product(range(4), repeat=4):
        total = tuple(map(float, counts[list(drawn)].sum(axis=0)))
        expected[total] = expected.get(total, 0) + 4.0**-4

    totals = resample_counts(counts, resamples=20_000, seed=11)

    seen, times = np.unique(totals, axis=0, return_counts=True)
    shares = dict(zip(map(tuple, seen.tolist()), times / 20_000, strict=True))
    assert set(shares) == set(expected)
    for total, share in expected.items():
        # Five standard errors of a proportion of 20,000 draws.
        assert shares[total] == pytest.approx(share, abs=5 * math.sqrt(share / 20_000))


def test_memory_of_the_bootstrap_is_bounded():
    """A hundred thousand different clusters need no array of clusters times resamples."""
    sums = np.random.default_rng(12).random((100_000, 2))
    tracemalloc.start()

    cluster_bootstrap(sums, mean, intervals=Intervals(resamples=50))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.usefixtures("resampling")
def test_percentiles_agree_with_scipy_on_single_rows():
    pytest.importorskip("scipy", minversion="1.15", reason="earlier ones have no rng=")
    from scipy import stats

    values = np.random.default_rng(6).lognormal(sigma=2, size=40)
    reference = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=40_000,
        batch=2000,
        method="percentile",
        rng=np.random.default_rng(7),
    )

    intervals = Intervals(resamples=40_000, seed=8, method="percentile")
    result = cluster_bootstrap(np.column_stack([values, np.ones(40)]), mean, intervals=intervals)

    bounds = reference.confidence_interval
    tolerance = 0.05 * reference.standard_error
    assert result == pytest.approx((values.mean(), bounds.low, bounds.high), abs=tolerance)


def test_percentiles_of_clusters_cover():
    """In 300 simulated studies coverage is about 95 %, and lower for row-level intervals."""
    rng = np.random.default_rng(20)
    covered = by_row = 0
    for _ in range(300):
        first, second, clusters = clustered_verdicts(rng, 60, 6)
        rows = cluster_counts(first, second, clusters=range(first.size))
        counts = cluster_counts(first, second, clusters=clusters)
        drawn = Intervals(resamples=999, seed=rng, method="percentile")
        _, low, high = cluster_bootstrap(counts, consistency, intervals=drawn)
        covered += low <= 0.5 <= high
        _, low, high = cluster_bootstrap(rows, consistency)
        by_row += low <= 0.5 <= high

    assert 0.91 <= covered / 300 <= 0.98
    assert by_row / 300 <= 0.85


@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=30), data=st.data())
@settings(deadline=None)
def test_percentiles_stay_within_the_range_of_clusters_in_any_order(rows, data):
    counts, shuffled = (np.add(x, [0, 0, 0, 1]) for x in (rows, data.draw(st.permutations(rows))))
    drawn = Intervals(resamples=200, method="percentile", seed=5)

    value, low, high = cluster_bootstrap(counts, consistency, intervals=drawn)

    by_cluster = consistency(counts)
    assert by_cluster.min() - 1e-12 <= low <= high <= by_cluster.max() + 1e-12
    assert cluster_bootstrap(shuffled, consistency, intervals=drawn) == (value, low, high)


def test_bootstrap_follows_its_seed_and_level():
    counts = clustered_counts(9)

    def drawn(method="percentile", **options):
        return cluster_bootstrap(counts, consistency, intervals=Intervals(method=method, **options))

    assert drawn(seed=1) == drawn(seed=np.random.default_rng(1)) != drawn(seed=2)
    for method in ("auto", "percentile"):
        narrow, wide = drawn(method, confidence=0.5), drawn(method, confidence=0.99)
        assert wide[1] < narrow[1] < narrow[2] < wide[2]


CONDITIONAL = PAIRED_RATES["consistency_given_first_correct"]
HALF = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 3]]
POWERS = 2.0 ** np.arange(8)[:, None]
UNKNOWN = (math.nan, math.nan)


def whole_data(totals):
    """Return 1 if each of the eight powers occurs once, and NaN otherwise."""
    return np.where(totals[..., 0] == 255, 1.0, np.nan)


@pytest.mark.parametrize(
    ("counts", "statistic", "reason", "expected"),
    [
        ([[3, 0, 0, 1]] * 20, consistency, "", (1, 1, 1)),
        # Odds of 1 to 0 are infinite, as is the upper bound.
        ([[1, 0], [1, 0], [1, 0], [0, 1]], mean, "", (3, 1 / 3, math.inf)),
        ([[3, 1, 0, 1]], consistency, "effective number of clusters 1, minimum 2", (0.8, *UNKNOWN)),
        ([[0, 0, 1, 2], [0, 0, 0, 3]], CONDITIONAL, "clusters is undefined", (math.nan, *UNKNOWN)),
        # Half the clusters have such pairs; resamples without one are excluded.
        (HALF, CONDITIONAL, "", (2 / 3, 0.5, 1)),
        # None of the few resamples equals the data.
        (POWERS, whole_data, "the statistic is undefined in all resamples", (1, *UNKNOWN)),
    ],
)
def test_resampled_intervals_in_extreme_and_undefined_cases(counts, statistic, reason, expected):
    resamples = 5 if len(counts) == 8 else 10_000
    drawn = Intervals(method="percentile", resamples=resamples)

    with pytest.warns(UndefinedMetricWarning, match=reason) if reason else nullcontext():
        result = cluster_bootstrap(counts, statistic, intervals=drawn)

    assert result == pytest.approx(expected, nan_ok=True)


def test_custom_functions_that_do_not_vary_have_no_interval():
    with pytest.warns(UndefinedMetricWarning, match="changes nothing"):
        result = cluster_bootstrap([[1, 0, 0, 1]] * 9, lambda sums: sums[..., 0] / sums.sum(-1))
    assert math.isnan(result[1])


def test_counts_of_large_numbers_are_exact():
    counts = np.array([[2**40 + 1, 1], [2**40 + 1, 1]])

    assert (resample_counts(counts, resamples=10) == [2**41 + 2, 2]).all()


test_bootstrap_rejects_bad_counts_and_statistics = refusals(
    lambda counts, statistic=mean, call=cluster_bootstrap: call(counts, statistic),
    (np.empty((0, 4)), r"one cluster and one column; got \(0, 4\)"),
    (np.empty((3, 0)), r"got \(3, 0\)"),
    ([1, 2, 3], r"got \(3,\)"),
    ([1, 2, 3], mean, lambda counts, _: resample_counts(counts), r"got \(3,\)"),
    ([[1, 2], [3, np.nan]], r"counts must be finite; row 1 is \[3\.0, nan\]"),
    ([[np.inf, 2.0]], "row 0 is"),
    ([["1", "2"]], TypeError, "counts must be numeric"),
    ([[1, 1], [2, 3]], np.sum, "statistic must map summed.*sum over axis=-1"),
    ([[1, 1], [2, 3]], lambda totals: totals, "sum over axis=-1"),
)
