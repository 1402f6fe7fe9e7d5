"""Size of the package's 5 % tests on data without an effect, and coverage over new relations.

Run `python benchmarks/bench_tests.py`; prints Markdown tables; about two minutes on one core. Every
test is run on data for which its null hypothesis is true, with dependent rows as in the papers:
redirects of a fact, facts of a topic, facts that recur in every model. Exits with an error if a
test rejects more than 8 % of them (the proportion has a standard error of 0.7 points for 1,000 data
sets, and of 1.5 for the 250 and 200 of groups and bands).
"""

import argparse
import sys
import warnings

import numpy as np
import pandas as pd

from surface_consistency.metrics import (
    Intervals,
    clustered_mcnemar,
    contrast,
    group_difference_by,
    mcnemar,
    momentum,
    paired_by,
    paired_table,
)
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, cluster_counts
from surface_consistency.metrics.positions.topic_layout import reorder_to_slots

MOST = 0.08
CLUSTERS = (10, 20, 50)
SLOTS = 5
LATIN = (np.arange(SLOTS)[:, None] + np.arange(SLOTS)) % SLOTS


def flips_of(rng, own, sizes):
    """Draw flips of clusters with their own rates, as counts of the four cells."""
    flips = rng.binomial(sizes, own)
    zeros = np.zeros_like(flips)
    return np.column_stack([sizes - flips, flips, zeros, zeros])


def rates_of(rng, n_clusters, mean, correlation):
    """Draw the flip rates of clusters, spread around a mean."""
    spread = (1 - correlation) / correlation
    return rng.beta(mean * spread, (1 - mean) * spread, n_clusters)


def contrast_size(kind, n_clusters, mean, n):
    """Return how often a contrast of two groups with equal flip rates is significant."""
    rejected = 0
    for seed in range(n):
        rng = np.random.default_rng([seed, n_clusters])
        own = rates_of(rng, n_clusters, mean, 0.2)
        a = flips_of(rng, own, 1 + rng.poisson(4, n_clusters))
        b = flips_of(rng, own, 1 + rng.poisson(2, n_clusters))
        if kind == "apart":
            other = rates_of(rng, n_clusters, mean, 0.2)
            b = flips_of(rng, other, 1 + rng.poisson(2, n_clusters))
            none = np.zeros_like(a)
            a, b = np.vstack([a, none]), np.vstack([none, b])
        elif kind == "first in 5":
            a[5:] = 0
        rejected += contrast(a, b)["p_value"] <= 0.05
    return rejected / n


def mcnemar_size(form, n_clusters, n):
    """Return how often symmetric flips, clustered by fact, are significantly asymmetric."""
    rejected = 0
    for seed in range(n):
        rng = np.random.default_rng([seed, n_clusters])
        fact = np.repeat(np.arange(n_clusters), 1 + rng.poisson(4, n_clusters))
        lean = rng.beta(0.5, 0.5, n_clusters)[fact]
        flips = rng.random(fact.size) < 0.35
        to_first = rng.random(fact.size) < lean
        first, second = ~flips | to_first, ~flips | ~to_first
        if form == "obuchowski":
            _, p_value = clustered_mcnemar(cluster_counts(first, second, clusters=fact))
        else:
            _, p_value = mcnemar(paired_table(first, second))
        rejected += p_value <= 0.05
    return rejected / n


def group_size(kind, n_topics, n):
    """Return how often a membership without effect is significant, with facts in six models."""
    rejected, n_models, n_facts = 0, 6, 4
    for seed in range(n):
        rng = np.random.default_rng([seed, n_topics])
        fact = np.repeat(np.arange(n_topics * n_facts), n_models)
        topic, model = fact // n_facts, np.tile(np.arange(n_models), n_topics * n_facts)
        values = rng.normal(0, 0.7, n_topics)[topic] + rng.normal(0, 1, fact.max() + 1)[fact]
        values += 0.5 * model + rng.normal(0, 0.3, fact.size)
        if kind == "fact":
            members = rng.random(fact.size) < rng.beta(0.4, 0.4, fact.max() + 1)[fact]
        elif kind == "topic":
            members = rng.random(fact.size) < rng.beta(0.4, 0.4, n_topics)[topic]
        else:
            members = (rng.permutation(n_topics) % 2 == 0)[topic]
            members[0] = ~members[0]
        frame = pd.DataFrame({"value": values, "member": members, "topic": topic})
        rows = group_difference_by(frame, value="value", group="member", cluster="topic")
        rejected += rows["p_value"].iloc[0] <= 0.05
    return rejected / n


def band_size(kind, n_topics, n):
    """Return how often curves without momentum leave their band at some point."""
    left = 0
    for seed in range(n):
        rng = np.random.default_rng([seed, n_topics])
        labels = rng.permuted(np.tile(np.arange(SLOTS), (n_topics, 1)), axis=1)
        orders = labels[:, LATIN]
        ease = 0.5 * rng.beta(1, 1.5, (n_topics, 1)) + 0.5 * rng.beta(1, 1.5, (n_topics, SLOTS))
        ease = reorder_to_slots(np.repeat(ease[:, None], SLOTS, axis=1), orders)
        fade = 1 - 0.1 * np.arange(SLOTS) if kind == "fading" else 1.0
        slots = rng.random(orders.shape) < ease * fade
        points, _ = momentum(
            slots, orders=orders, intervals=Intervals(resamples=1, seed=seed), n_null=1_000
        )
        below = points["probability"] < points["null_probability_low"] - 1e-12
        above = points["probability"] > points["null_probability_high"] + 1e-12
        left += (below | above).any()
    return left / n


def relation_coverage(n):
    """Return the coverage of new relations by intervals over facts, subjects and relations.

    There are 16 relations of 30 subjects with one fact each and two redirects. The flip rates of
    relations, and of subjects in a relation, vary around a mean.
    """
    covered, mean = dict.fromkeys(("fact", "subject", "relation"), 0), 0.25
    for seed in range(n):
        rng = np.random.default_rng(seed)
        of_relation = rng.beta(mean * 12, (1 - mean) * 12, 16)
        relation = np.repeat(np.arange(16), 60)
        fact = np.arange(960) // 2
        subject = fact % 160
        tilt = rng.normal(0, 0.05, 160)[subject]
        chance = np.clip(of_relation[relation] + tilt, 0.0, 1.0)
        flips = rng.random(960) < chance
        frame = pd.DataFrame(
            {
                "fact": fact,
                "subject": subject,
                "relation": relation,
                "first_correct": True,
                "second_correct": ~flips,
            }
        )
        rates = {"flip_rate": PAIRED_RATES["flip_rate"]}
        for cluster in covered:
            row = paired_by(
                frame, cluster=cluster, rates=rates, intervals=Intervals(resamples=1_000, seed=seed)
            )
            low, high = row.loc[0, ["flip_rate_low", "flip_rate_high"]]
            covered[cluster] += low <= mean <= high
    return {cluster: count / n for cluster, count in covered.items()}


def main() -> None:
    """Print the tables, and exit with an error if a test misses its level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=1_000, help="Data sets of each cell.")
    n = parser.parse_args().data_sets
    warnings.simplefilter("ignore")
    rows = []
    for kind in ("shared", "apart", "first in 5"):
        for mean in (0.05, 0.2, 0.5):
            sizes = [contrast_size(kind, k, mean, n) for k in CLUSTERS]
            rows.append((f"`contrast`, clusters {kind}, rate {mean}", sizes))
    rows.append(
        ("`clustered_mcnemar` (Obuchowski)", [mcnemar_size("obuchowski", k, n) for k in CLUSTERS])
    )
    for kind, label in (
        ("fact", "membership by fact"),
        ("topic", "membership by topic"),
        ("one mixed", "whole topics, one mixed"),
    ):
        sizes = [group_size(kind, k, max(100, n // 4)) for k in CLUSTERS]
        rows.append((f"`group_difference_by`, clusters, {label}", sizes))
    for kind in ("level", "fading"):
        sizes = [band_size(kind, k, max(100, n // 5)) for k in (20, 50, 200)]
        rows.append((f"band of `momentum`, {kind}, 20 / 50 / 200 topics", sizes))
    print("| test, null hypothesis true | 10 | 20 | 50 clusters |\n|---|---|---|---|")
    for name, sizes in rows:
        print(f"| {name} | " + " | ".join(f"{100 * size:.1f} %" for size in sizes) + " |")
    plain = " | ".join(f"{100 * mcnemar_size('plain', k, n):.1f} %" for k in CLUSTERS)
    print(f'| `test="independent"`, for comparison | {plain} |')
    print("\n| 95 % interval of the flip rate resamples | coverage of new relations |\n|---|---|")
    for cluster, share in relation_coverage(max(100, n // 5)).items():
        print(f"| {cluster}s | {100 * share:.0f} % |")
    over = [name for name, sizes in rows if max(sizes) > MOST]
    if over:
        sys.exit(f"rejects more than {100 * MOST} %: {'; '.join(over)}")


if __name__ == "__main__":
    main()
