"""Levels of one-sided tests at a margin, and coverage of graded means and of forms like these.

Run `python benchmarks/bench_claims.py`, minutes on one core, or with `--short`; prints Markdown
tables. `bench_coverage.py --goals` also calls it. Goals: a one-sided test at the margin rejects at
most 0.0275 of true hypotheses with 100 pairs or more, and 0.03 below, whatever the gains; intervals
cover at least 0.92 with 20 clusters or more, graded means with a median width of at most 2.5 times
that of the cluster t (1.2 times if that covers 0.93); intervals for forms like these cover 0.92.
"""

import argparse
import functools
import itertools
import math
import sys
import warnings

import numpy as np
import pandas as pd
from scipy import stats

from surface_consistency.metrics import compare_models, forms_by
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    _cluster_t,
    _fields,
    cluster_t,
)
from surface_consistency.metrics.uncertainty.means import mean_by

DIFFERENCE = Part(1.0, (-1.0, 1.0, 0.0), (0.0, 0.0, 1.0), -1.0, 1.0)
FIELDS = _fields((DIFFERENCE,))
MARGINS = (0.02, 0.03, 0.05, 0.1, 0.15)
PAIRS = (30, 80, 100, 150, 200, 300)
GAINS = {"none": 0.0, "a quarter": 0.25, "a half": 0.5, "nearly all": 1.0}


def one_sided(found, margin):
    """Return which data sets are classified as not worse and as equivalent, at half of 5 %."""
    tails = []
    for null, side in ((-margin, 1.0), (margin, -1.0)):
        tail = found.p_value(null) / 2.0
        tails.append(np.where(side * (found.value - null) > 0.0, tail, 1.0 - tail))
    return tails[0] < 0.025, np.maximum(*tails) < 0.025


def of_pairs(losses, gains, n):
    """Return the inference of independent pairs from their counts, without a row per pair."""
    rows = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    return _cluster_t(FIELDS, rows, np.array([losses, gains, n - losses - gains], dtype=float))


def exact_level(n, margin, ratio):
    """Return the exact chances of "not worse" and "equivalent" if the true loss is the margin."""
    lost = margin / (1.0 - ratio) if ratio < 1.0 else margin + 0.1
    law = np.array([lost, lost - margin, 1.0 - 2.0 * lost + margin])
    if law.min() < 0.0:
        return None
    most = [int(stats.binom.ppf(1.0 - 1e-6, n, rate)) for rate in law[:2]]
    counts = np.array(list(itertools.product(*(range(end + 1) for end in most))))
    counts = counts[counts.sum(axis=1) <= n]
    chances = stats.multinomial.pmf(np.column_stack([counts, n - counts.sum(axis=1)]), n, law)
    is_known = chances > 1e-7
    called = [one_sided(of_pairs(*one, n), margin) for one in counts[is_known]]
    return [float(chances[is_known] @ np.array(one)) for one in zip(*called, strict=True)]


def margins():
    """Print the largest exact levels of independent pairs; return the cells that miss the goal."""
    print("| gains | pairs | cells | not worse, largest | equivalent, largest | above 0.0275 |")
    print("|---|---|---|---|---|---|")
    misses = []
    for (name, ratio), is_large in itertools.product(GAINS.items(), (False, True)):
        found = []
        for n, margin in itertools.product(PAIRS, MARGINS):
            if (n >= 100) == is_large:
                level = exact_level(n, margin, ratio)
                found += [] if level is None else [(*level, n, margin)]
        goal = 0.0275 if is_large else 0.03
        misses += [("level at the margin", name, *one) for one in found if max(one[:2]) > goal]
        levels = np.array([one[:2] for one in found])
        size = ">= 100" if is_large else "< 100"
        n_above = int((levels.max(axis=1) > 0.0275).sum())
        worse, equal = levels.max(axis=0)
        print(f"| {name} | {size} | {len(found)} | {worse:.4f} | {equal:.4f} | {n_above} |")
    return misses


def powers(n_datasets):
    """Print the rates of "not worse" with 40 clusters of 5, by correlation, gains and true loss."""
    print(
        "\n| 40 clusters of 5: correlation | discordant | margin | true loss | not worse | equal |"
    )
    print("|---|---|---|---|---|---|")
    misses = []
    designs = itertools.product((0.0, 0.3, 0.8), (0.0, 0.05, 0.1), (0.05, 0.1), (0.0, 0.5, 1.0))
    for alike, both, margin, part in designs:
        rng = np.random.default_rng([int(10 * alike), int(100 * both), int(100 * margin)])
        lost, gained = both / 2 + part * margin, both / 2
        law = np.array([lost, max(gained, 1e-9), 1.0 - lost - gained])
        shares = np.broadcast_to(law, (n_datasets, 40, 3))
        if alike:
            drawn = rng.gamma(np.maximum(law * (1.0 / alike - 1.0), 1e-9), size=shares.shape)
            shares = (drawn + 1e-300) / (drawn + 1e-300).sum(axis=-1, keepdims=True)
        cells = rng.multinomial(5, shares)
        sums = np.concatenate([cells[..., :2], np.full((n_datasets, 40, 1), 5)], axis=-1)
        called = [
            float(one.mean())
            for one in one_sided(cluster_t((DIFFERENCE,), sums.astype(float)), margin)
        ]
        shown = " | ".join(f"{one:.3f}" for one in called)
        print(f"| {alike} | {both:.2f} | {margin} | {part * margin:.3f} | {shown} |")
        if part == 1.0 and called[0] > 0.0275 + 3 * math.sqrt(0.025 / n_datasets):
            misses.append(("level of clusters at the margin", alike, both, margin, called[0]))
    return misses


def tasks(n_datasets):
    """Print the level of "not worse" over several tasks of equal weights, at the margin."""
    print("\n| tasks, items of each | margin | not worse | coverage of the interval |")
    print("|---|---|---|---|")
    misses, few = [], max(n_datasets // 8, 100)
    for (n_tasks, n_items), margin in itertools.product(((2, 50), (5, 20), (10, 30)), (0.02, 0.1)):
        rng, found = np.random.default_rng([n_tasks, n_items, int(100 * margin)]), []
        n = n_tasks * n_items
        for _ in range(few):
            lost = rng.random(n) < margin
            frame = pd.DataFrame(
                {
                    "model": ["a"] * n + ["b"] * n,
                    "item": [*range(n)] * 2,
                    "task": [*(np.arange(n) % n_tasks)] * 2,
                    "score": [*np.ones(n), *(1.0 - lost)],
                }
            )
            row = compare_models(frame, task="task", baseline="a", margin=margin / 1.0000001)
            row = row.differences.iloc[0]
            covered = row["difference_low"] <= -margin <= row["difference_high"]
            found.append((row["p_not_worse"] < 0.025, covered))
        level, covered = np.mean(found, axis=0)
        print(f"| {n_tasks}, {n_items} | {margin} | {level:.3f} | {covered:.3f} |")
        if level > 0.0275 + 3 * math.sqrt(0.025 / few):
            misses.append(("level of tasks at the margin", n_tasks, n_items, margin, level))
    return misses


def graded_means(n_datasets):
    """Print coverage and width of means of graded scores with many ones or zeros."""
    print(
        "\n| items | clusters | exact 1 | coverage | of the cluster t | width ratio | no interval |"
    )
    print("|---|---|---|---|---|---|---|")
    misses, few = [], max(n_datasets // 4, 100)
    sizes = ((24, 24), (60, 60), (200, 200), (200, 20), (400, 20), (1000, 50))
    for (n, k), exact in itertools.product(sizes, (0.5, 0.9, 0.97)):
        rng = np.random.default_rng([n, k, int(100 * exact)])
        cluster, truth, found = np.arange(n) // (n // k), (1.0 + exact) / 2.0, []
        for _ in range(few):
            shared = rng.random(k)[cluster]
            place = np.where(rng.random(n) < (0.5 if k < n else 0.0), shared, rng.random(n))
            scores = np.where(place < exact, 1.0, rng.random(n))
            frame = pd.DataFrame({"score": scores, "cluster": cluster})
            row = mean_by(frame, cluster="cluster", scale=(0.0, 1.0)).iloc[0]
            means = np.bincount(cluster, scores) / np.bincount(cluster)
            half = stats.t.ppf(0.975, k - 1) * means.std(ddof=1) / math.sqrt(k)
            is_held = row["mean_low"] <= truth <= row["mean_high"]
            width = row["mean_high"] - row["mean_low"]
            ratio = width / (2 * half) if half else math.nan
            found.append((is_held, abs(means.mean() - truth) <= half, ratio, np.isnan(width)))
        covered, plain, ratio, undefined = np.array(found, dtype=float).T
        covered, ratio = covered[undefined == 0].mean(), np.nanmedian(ratio)
        print(
            f"| {n} | {k} | {exact} | {covered:.3f} | {plain.mean():.3f} | {ratio:.2f} | "
            f"{undefined.mean():.2f} |"
        )
        limit = 1.2 if plain.mean() >= 0.93 else 2.5
        if covered < 0.92 - 3 * math.sqrt(0.07 / few) or ratio > limit:
            misses.append(("graded mean", n, k, exact, round(covered, 3), round(ratio, 2)))
    return misses


@functools.cache
def form_truths(spread, ability):
    """Return consistency and accuracy of random forms of a probit model."""
    rng = np.random.default_rng(1)
    items, forms = rng.normal(size=400_000), spread * rng.normal(size=(2, 400_000))
    one, two = stats.norm.cdf((ability + forms + items) / 0.7)
    return float((one * two + (1 - one) * (1 - two)).mean()), float(one.mean())


def sampled_forms(n_datasets):
    """Print coverage of consistency and accuracy for forms like these."""
    print(
        "\n| forms | facts | sd of forms | consistency: coverage | width, of these forms' | "
        "not widened | accuracy: coverage | not inferred |\n|---|---|---|---|---|---|---|---|"
    )
    misses, few = [], max(n_datasets // 8, 60)
    for n_forms, n_facts, spread, ability in itertools.product(
        (3, 4, 5, 8, 12), (300, 1000), (0.15, 0.3, 0.8), (0.3,)
    ):
        rng = np.random.default_rng([n_forms, n_facts, int(100 * spread)])
        truths, found = form_truths(spread, ability), []
        for _ in range(few):
            latent = rng.normal(size=(n_facts, 1)) + ability + spread * rng.normal(size=n_forms)
            correct = latent + 0.7 * rng.normal(size=latent.shape) > 0.0
            frame = pd.DataFrame(
                {
                    "item": np.repeat(np.arange(n_facts), n_forms),
                    "form": np.tile(np.arange(n_forms), n_facts),
                    "correct": correct.ravel(),
                }
            )
            fixed, sample = (forms_by(frame, forms=one).iloc[0] for one in ("fixed", "sample"))
            width, of_these = (
                row["consistency_high"] - row["consistency_low"] for row in (sample, fixed)
            )
            covered = [
                sample[f"{name}_low"] <= truth <= sample[f"{name}_high"]
                for name, truth in zip(("consistency", "accuracy"), truths, strict=True)
            ]
            found.append((*covered, width / of_these, width < 1.0001 * of_these, np.isnan(width)))
        covered, accurate, ratio, same, refused = np.array(found, dtype=float).T
        label = f"| {n_forms} | {n_facts} | {spread} |"
        if refused.all():
            print(f"{label} | | | | 1.00 |")
            continue
        print(
            f"{label} {covered.mean():.3f} | {np.median(ratio):.2f} | {same.mean():.2f} | "
            f"{accurate.mean():.3f} | {refused.mean():.2f} |"
        )
        for name, share in (("consistency", covered.mean()), ("accuracy", accurate.mean())):
            if share < 0.92 - 3 * math.sqrt(0.07 / few):
                misses.append((f"{name} of forms like these", n_forms, n_facts, spread, share))
    return misses


def claims(n_datasets):
    """Print all tables; return the missed goals."""
    return [
        *margins(),
        *powers(n_datasets),
        *tasks(n_datasets),
        *graded_means(n_datasets),
        *sampled_forms(n_datasets),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=2000, help="data sets per design")
    parser.add_argument("--short", action="store_true", help="400 data sets per design")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    missed = claims(400 if options.short else options.datasets)
    print(*missed, sep="\n", file=sys.stderr)
    raise SystemExit(len(missed))


if __name__ == "__main__":
    main()
