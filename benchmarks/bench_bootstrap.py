"""Cluster bootstrap of the 37 groups of RedirectQA, and scipy.stats.bootstrap on one group.

Run `python benchmarks/bench_bootstrap.py`; prints a Markdown table. The pairs are synthetic, with
the sizes of RedirectQA: 15,888 pairs of 14,672 facts about 11,453 subjects, in 3 types and 33
categories (table 3 of arXiv 2604.21882). Exits with an error if all groups, by fact or by
subject, take 2 seconds or more.
"""

import argparse
import platform
import statistics
from collections.abc import Callable

import numpy as np
import pandas as pd
import scipy
import scipy.stats
from timing import interleaved

from surface_consistency.metrics import PAIRED_RATES, Intervals, cluster_bootstrap, paired_by
from surface_consistency.metrics.paired.paired_tables import cluster_counts

N_PAIRS, N_FACTS, N_SUBJECTS = 15_888, 14_672, 11_453
N_RESAMPLES = 10_000
BUDGET_SECONDS = 2
SCIPY_BATCHES = (5, 20, 100)

# Instances of each category, by type (arXiv 2604.21882, table 3).
CATEGORY_COUNTS = {
    "Aliases_and_Abbreviations": (
        *(1029, 985, 981, 979, 977, 863, 800, 517, 395, 374, 371, 331, 137, 122, 108, 87, 82),
        *(74, 65, 35),
    ),
    "Spelling_variants": (1019, 1014, 998, 953, 765, 56, 86, 61, 35, 23),
    "Typical_Errors": (1005, 978, 974),
}


def synthetic_pairs(rng):
    """Return pairs with labels that are correlated within a fact and a subject."""
    subject_of_fact = np.r_[
        np.arange(N_SUBJECTS), rng.integers(0, N_SUBJECTS, N_FACTS - N_SUBJECTS)
    ]
    fact = np.r_[np.arange(N_FACTS), rng.integers(0, N_FACTS, N_PAIRS - N_FACTS)]
    subject = subject_of_fact[fact]
    known = rng.random(N_SUBJECTS)[subject] * 0.5 + rng.random(N_FACTS)[fact] * 0.5
    first = (rng.random(N_FACTS)[fact] * 0.3 + known * 0.7) > 0.55
    second = np.where(rng.random(N_PAIRS) < 0.25, rng.random(N_PAIRS) < 0.2, first)
    categories = deal_categories(rng)
    return pd.DataFrame(
        {
            "item": fact,
            "subject_id": subject,
            "category": categories,
            "type": [sorted({label.split("/")[0] for label in labels}) for labels in categories],
            "first_correct": first,
            "second_correct": second,
        }
    )


def deal_categories(rng):
    """Assign one label to each pair, and the remaining labels to pairs without them."""
    names = [f"{kind}/{i}" for kind, counts in CATEGORY_COUNTS.items() for i in range(len(counts))]
    sizes = [count for counts in CATEGORY_COUNTS.values() for count in counts]
    labels = rng.permutation(np.repeat(names, sizes))
    categories = [[str(label)] for label in labels[:N_PAIRS]]
    for label in labels[N_PAIRS:]:
        pair = int(rng.integers(N_PAIRS))
        while label in categories[pair]:
            pair = int(rng.integers(N_PAIRS))
        categories[pair].append(str(label))
    return categories


def all_groups(frame, cluster):
    """Compute every rate of the 37 groups: overall, 3 types, 33 categories."""
    return [
        paired_by(frame, by=by, cluster=cluster, intervals=Intervals(resamples=N_RESAMPLES))
        for by in ((), "type", "category")
    ]


def scipy_consistency(counts, batch):
    """Bootstrap the overall consistency with scipy, with clusters as the sample."""
    return scipy.stats.bootstrap(
        (counts[:, 0] + counts[:, 3], counts.sum(axis=1)),
        lambda same, pairs, axis: same.sum(axis=axis) / pairs.sum(axis=axis),
        n_resamples=N_RESAMPLES,
        batch=batch,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds (default: 5)")
    rounds = parser.parse_args().rounds
    frame = synthetic_pairs(np.random.default_rng(0))
    counts = cluster_counts(frame["first_correct"], frame["second_correct"], clusters=frame["item"])
    ours = cluster_bootstrap(
        counts, PAIRED_RATES["consistency"], intervals=Intervals(resamples=N_RESAMPLES)
    )
    theirs = scipy_consistency(counts, SCIPY_BATCHES[0])
    _, low, high = ours
    if abs(low - theirs.low) + abs(high - theirs.high) > 0.1 * (high - low):
        raise SystemExit(f"the intervals disagree: {ours} and {theirs}")
    groups = sum(len(rows) for rows in all_groups(frame, "item"))

    scipy_names = [f"scipy.stats.bootstrap, overall, 1 rate (batch={b})" for b in SCIPY_BATCHES]
    contenders: dict[str, Callable[[], object]] = {
        f"paired_by, {groups} groups, {len(PAIRED_RATES)} rates, {N_FACTS:,} facts": (
            lambda: all_groups(frame, "item")
        ),
        f"paired_by, {groups} groups, {len(PAIRED_RATES)} rates, {N_SUBJECTS:,} subjects": (
            lambda: all_groups(frame, "subject_id")
        ),
        "cluster_bootstrap, overall, 1 rate": lambda: cluster_bootstrap(
            counts, PAIRED_RATES["consistency"], intervals=Intervals(resamples=N_RESAMPLES)
        ),
    }
    for name, batch in zip(scipy_names, SCIPY_BATCHES, strict=True):
        contenders[name] = lambda batch=batch: scipy_consistency(counts, batch)
    times = interleaved(contenders, rounds)
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min(medians[name] for name in scipy_names)
    print(
        f"{N_PAIRS:,} pairs, {N_RESAMPLES:,} resamples, {rounds} interleaved rounds, "
        f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"pandas {pd.__version__}\n"
    )
    print("| what | median s | min to max s | speed over the best scipy |")
    print("|---|---|---|---|")
    for name, values in times.items():
        print(
            f"| {name} | {medians[name]:.3f} | {min(values):.3f} to {max(values):.3f} "
            f"| {best / medians[name]:.1f}x |"
        )
    missed = [
        f"{name}: {median:.2f} s, not under {BUDGET_SECONDS}"
        for name, median in medians.items()
        if name.startswith("paired_by") and median >= BUDGET_SECONDS
    ]
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
