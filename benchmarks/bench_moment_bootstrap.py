"""Bootstrap of partial correlations by sums of moments, against scipy and a loop over clusters.

Run `python benchmarks/bench_moment_bootstrap.py`; prints Markdown tables. The data are synthetic,
with the sizes of RedirectQA's frequency analysis: 4,284 surface instances of 2,112 facts and 13
models (section 4.1 of arXiv 2604.21882). `--coverage` adds a simulation of how often the intervals
of clustered data hold the truth. Exits with an error where it is less than 10 times as fast as
scipy with its best batch or 40 times as fast as the loop, or takes 500 MB for 100,000 facts.
"""

import argparse
import math
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy
import scipy.stats
from timing import interleaved

from surface_consistency.metrics.correlation.correlation_resamples import correlation_bootstrap
from surface_consistency.metrics.correlation.correlations import correlation
from surface_consistency.metrics.uncertainty.intervals import Intervals

N_ROWS, N_FACTS, N_MODELS = 4_284, 2_112, 13
N_RESAMPLES = 10_000
SCIPY_BATCHES = (5, 20, 100)
NAIVE_RESAMPLES = 100
MEMORY_CLUSTERS = 100_000
SCIPY_TARGET, NAIVE_TARGET, MEMORY_TARGET = 10, 40, 500


def synthetic_instances(rng, n_rows=N_ROWS, n_facts=N_FACTS, n_models=N_MODELS):
    """Return log entity and surface frequency, accuracies and facts; a fact's rows are alike."""
    fact = np.r_[np.arange(n_facts), rng.integers(0, n_facts, n_rows - n_facts)]
    entity = rng.normal(6, 2, n_facts)[fact]
    surface = 0.56 * entity + rng.normal(0, 1.7, n_rows)
    known = rng.normal(0, 1, n_facts)[fact] + 0.2 * entity + 0.1 * surface - 2.0
    chance = 1 / (1 + np.exp(-known))
    return entity, surface, rng.binomial(2, chance[:, None], (n_rows, n_models)) / 2, fact


def partial(x, y, z, axis=-1):
    """Return the partial correlation of x and y given z by one pass over each moment."""
    n = x.shape[axis]
    mean_x, mean_y, mean_z = x.mean(axis), y.mean(axis), z.mean(axis)

    def covariance(a, b, mean_a, mean_b):
        return np.einsum("...i,...i->...", a, b) / n - mean_a * mean_b

    xx, yy, zz = (covariance(v, v, m, m) for v, m in ((x, mean_x), (y, mean_y), (z, mean_z)))
    xy = covariance(x, y, mean_x, mean_y) / np.sqrt(xx * yy)
    xz = covariance(x, z, mean_x, mean_z) / np.sqrt(xx * zz)
    yz = covariance(y, z, mean_y, mean_z) / np.sqrt(yy * zz)
    return (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))


def with_scipy(entity, surface, accuracies, batch):
    """Bootstrap the rows of each model with scipy, generator given."""
    return [
        scipy.stats.bootstrap(
            (entity, accuracy, surface),
            partial,
            n_resamples=N_RESAMPLES,
            batch=batch,
            paired=True,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
        for accuracy in accuracies.T
    ]


def naive_loop(entity, surface, accuracies, fact, n_resamples):
    """Bootstrap facts by concatenating the rows of the drawn ones, all models at once."""
    rng = np.random.default_rng(0)
    order = np.argsort(fact, kind="stable")
    rows_of = np.split(order, np.cumsum(np.bincount(fact))[:-1])
    values = np.empty((n_resamples, accuracies.shape[1]))
    for b in range(n_resamples):
        rows = np.concatenate([rows_of[f] for f in rng.integers(0, N_FACTS, N_FACTS)])
        for k, accuracy in enumerate(accuracies.T):
            values[b, k] = partial(entity[rows], accuracy[rows], surface[rows])
    return values


def check_intervals(entity, surface, accuracies):
    """Stop where the intervals of single rows are not those of scipy."""
    ours = correlation_bootstrap(entity, accuracies, controls=surface)
    theirs = with_scipy(entity, surface, accuracies[:, :2], 20)
    for mine, other in zip(ours, theirs, strict=False):
        bounds = mine.estimate_interval
        apart = abs(bounds.low - other.low) + abs(bounds.high - other.high)
        if apart > 0.1 * (other.high - other.low):
            raise SystemExit(f"the intervals disagree: {bounds} and {other}")


def speed(rounds):
    """Print how long each way takes, and return what misses its target."""
    entity, surface, accuracies, fact = synthetic_instances(np.random.default_rng(0))
    check_intervals(entity, surface, accuracies)
    ours = {
        "correlation_bootstrap, rows": lambda: correlation_bootstrap(
            entity, accuracies, controls=surface
        ),
        "correlation_bootstrap, facts": lambda: correlation_bootstrap(
            entity, accuracies, controls=surface, clusters=fact
        ),
    }
    scipy_names = [f"scipy.stats.bootstrap, rows (batch={batch})" for batch in SCIPY_BATCHES]
    contenders: dict[str, Callable[[], object]] = dict(ours)
    for name, batch in zip(scipy_names, SCIPY_BATCHES, strict=True):
        contenders[name] = lambda batch=batch: with_scipy(entity, surface, accuracies, batch)
    naive = f"loop over facts ({NAIVE_RESAMPLES} resamples, times {N_RESAMPLES // NAIVE_RESAMPLES})"
    contenders[naive] = lambda: naive_loop(entity, surface, accuracies, fact, NAIVE_RESAMPLES)
    times = interleaved(contenders, rounds)
    times[naive] = [value * N_RESAMPLES / NAIVE_RESAMPLES for value in times[naive]]
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min(medians[name] for name in scipy_names)
    print("| what | median s | min to max s | speed over the best scipy | over the loop |")
    print("|---|---|---|---|---|")
    for name, values in times.items():
        print(
            f"| {name} | {medians[name]:.3f} | {min(values):.3f} to {max(values):.3f} "
            f"| {best / medians[name]:.1f}x | {medians[naive] / medians[name]:.1f}x |"
        )
    by_row, by_fact = (medians[name] for name in ours)
    missed = []
    if best / by_row < SCIPY_TARGET:
        missed.append(f"{best / by_row:.1f} times the best scipy's speed, not {SCIPY_TARGET}")
    if medians[naive] / by_fact < NAIVE_TARGET:
        missed.append(f"{medians[naive] / by_fact:.1f} times the loop's speed, not {NAIVE_TARGET}")
    return missed


def scaling():
    """Print time and peak memory for more and more clusters, and return what misses its target."""
    missed = []
    print("\n| facts | rows | s | peak MB |\n|---|---|---|---|")
    for n_facts in (N_FACTS, 10_000, 30_000, MEMORY_CLUSTERS):
        data = synthetic_instances(np.random.default_rng(1), 2 * n_facts, n_facts)
        entity, surface, accuracies, fact = data
        tracemalloc.start()
        start = time.perf_counter()
        correlation_bootstrap(
            entity,
            accuracies,
            controls=surface,
            clusters=fact,
            intervals=Intervals(n_resamples=1000),
        )
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"| {n_facts:,} | {2 * n_facts:,} | {seconds:.2f} | {peak / 1e6:.0f} |")
        if peak / 1e6 >= MEMORY_TARGET:
            missed.append(f"{peak / 1e6:.0f} MB for {n_facts:,} facts, not under {MEMORY_TARGET}")
    print("\n1,000 resamples of 13 models.")
    return missed


def coverage(n_studies):
    """Print how often 95 % intervals hold the true correlation of clustered rows."""
    rng = np.random.default_rng(2)
    held = {"correlation_bootstrap, clusters": 0, "correlation_bootstrap, rows": 0, "Fisher": 0}
    for _ in range(n_studies):
        shared, own = rng.normal(size=(2, 300)), rng.normal(size=(2, 300, 4))
        x = (shared[0][:, None] + 0.5 * own[0]).ravel()
        y = (0.4 * shared[0][:, None] + shared[1][:, None] + 0.5 * own[1]).ravel()
        truth = 0.4 / math.sqrt(1.25 * (0.16 + 1.25))
        fact = np.repeat(np.arange(300), 4)
        (clustered,) = correlation_bootstrap(
            x, y, clusters=fact, intervals=Intervals(n_resamples=999, rng=rng)
        )
        (by_row,) = correlation_bootstrap(x, y, intervals=Intervals(n_resamples=999, rng=rng))
        intervals = (
            clustered.estimate_interval,
            by_row.estimate_interval,
            correlation(x, y).coefficient_interval,
        )
        for name, interval in zip(held, intervals, strict=True):
            held[name] += interval.low <= truth <= interval.high
    print(f"\n| interval (nominal 95 %) | held the truth in {n_studies:,} studies |\n|---|---|")
    for name, count in held.items():
        print(f"| {name} | {100 * count / n_studies:.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (default: 3)")
    parser.add_argument("--coverage", type=int, default=0, metavar="N", help="studies to simulate")
    arguments = parser.parse_args()
    print(
        f"{N_ROWS:,} rows of {N_FACTS:,} facts, {N_MODELS} models, {N_RESAMPLES:,} resamples, "
        f"{arguments.rounds} interleaved rounds, Python {platform.python_version()}, numpy "
        f"{np.__version__}, scipy {scipy.__version__}\n"
    )
    missed = speed(arguments.rounds) + scaling()
    if arguments.coverage:
        coverage(arguments.coverage)
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
