"""Coverage of 95 % intervals, and size of 5 % tests, on pairs that share a fact.

Run `python benchmarks/bench_coverage.py` (minutes on one core), or with `--short` (half a minute);
prints Markdown tables. Every function of the package that returns an interval is tested on 5, 10,
20, 50 and 200 clusters of equal and of very unequal sizes. The rows of a cluster are independent,
similar (intracluster correlation 0.3) or nearly copies (0.8), at typical and at rare (0.01, 0.99)
rates. All data sets per design are computed at once by the code of the functions. Budget: at least
0.90 with 5 and 10 clusters, and 0.92 to 0.98 with more; designs above 0.98 are counted, and designs
below the budget fail. The clustered forms of McNemar's test should reject 3 to 7 % of true null
hypotheses, and the plain form more. Facts in several topologies of an audit are an additional
design: clustered by fact, at least 0.93.
"""

import argparse
import itertools
import math
import platform
import sys
import time
import warnings
from collections import defaultdict
from statistics import NormalDist

import numpy as np
import pandas as pd
import scipy.special
from bench_claims import claims

from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    Intervals,
    JudgeError,
    PairedTable,
    clustered_auc,
    clustered_mcnemar,
    contrast,
    corrected_alignment,
    correlation,
    correlation_interval,
    discordant_odds_ratio,
    mcnemar,
    paired_by,
    wilson_interval,
    zou_interval,
)
from surface_consistency.metrics.correlation._correlations import (
    correlations_of_moments,
    partial_of_correlations,
)
from surface_consistency.metrics.forms.forms import fact_sums, form_rates
from surface_consistency.metrics.linking.linking import LINKING_RATES
from surface_consistency.metrics.paired.contrasts import matched_difference
from surface_consistency.metrics.paired.effect_sizes import DISCORDANT_ODDS, kappa_of_counts
from surface_consistency.metrics.paired.group_tests import mean_difference
from surface_consistency.metrics.popularity.score_split import split_difference
from surface_consistency.metrics.positions._momentum_null import streak_counts
from surface_consistency.metrics.positions.momentum_curves import run_statistics
from surface_consistency.metrics.positions.positions import slot_statistics
from surface_consistency.metrics.uncertainty.bootstrap import resample_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import (
    Part,
    cluster_t,
    jackknife,
    statistic_bounds,
)
from surface_consistency.metrics.uncertainty.intervals import quantiles, t_p_value

CLUSTERS = (5, 10, 20, 50, 200)
CORRELATIONS = (0.0, 0.3, 0.8)
SIZES = ("equal", "skewed")
LEVEL = 0.95
CELLS = ("both", "first_only", "second_only", "neither")
MEAN = CountRatio(numerator=(1, 0), denominator=(0, 1))

# Proportions of both, first only, second only and neither.
LAWS = {
    "typical": (0.40, 0.15, 0.10, 0.35),
    "rare flips": (0.50, 0.01, 0.01, 0.48),
    "0.99 correct": (0.98, 0.008, 0.008, 0.004),
    "0.01 correct": (0.004, 0.008, 0.008, 0.98),
}
# Rates of single proportions, and the number of events at which the Wilson interval dips.
RATES = (0.01, 0.3, 0.9, 0.99)
DIP = 0.17


class Tally:
    """Coverage by function, for few and for more clusters."""

    def __init__(self):
        self.found = defaultdict(list)

    def add(self, name, n_clusters, design, low, high, truth):
        """Count how often intervals contain the true value, and how often they are defined."""
        low, high = np.asarray(low), np.asarray(high)
        defined = ~(np.isnan(low) | np.isnan(high))
        if defined.sum() < 50:
            return
        slack = 1e-12
        covered = ((low <= truth + slack) & (truth - slack <= high))[defined].mean()
        self.found[name].append(
            (n_clusters, design, float(covered), float(defined.mean()), defined.sum())
        )

    def print(self):
        """Print the table, and return the designs below the budget."""
        print(
            "| interval of | K = 5, 10: minimum | median | K >= 20: minimum | median | "
            "above 0.98 | undefined, maximum |\n|---|---|---|---|---|---|---|"
        )
        failures = []
        for name, rows in self.found.items():
            few = [row[2] for row in rows if row[0] < 20]
            more = [row[2] for row in rows if row[0] >= 20]
            cells = []
            for part in (few, more):
                cells += [f"{min(part):.3f} | {np.median(part):.3f}" if part else " | "]
            above = f"{sum(covered > 0.98 for covered in more)} of {len(more)}"
            undefined = 1 - min(row[3] for row in rows)
            print(f"| {name} | {cells[0]} | {cells[1]} | {above} | {undefined:.2f} |")
            for n_clusters, design, covered, _, n in rows:
                least = 0.90 if n_clusters < 20 else 0.92
                error = math.sqrt(least * (1 - least) / n)
                if covered < least - 2.5 * error:
                    failures.append((name, n_clusters, design, round(covered, 3)))
        return failures


def cluster_sizes(kind, shape, rng):
    """Return the rows of each cluster: five, or log-normal with a mean of five."""
    if kind == "equal":
        return np.full(shape, 5)
    return np.ceil(rng.lognormal(1.0, 1.0, shape)).astype(np.int64)


def dirichlet(law, correlation, shape, rng):
    """Return the proportions of the cells in each cluster, for this correlation of its rows."""
    law = np.asarray(law)
    if correlation == 0.0:
        return np.broadcast_to(law, (*shape, law.size))
    scale = (1 - correlation) / correlation
    drawn = rng.gamma(law * scale, 1.0, (*shape, law.size))
    total = drawn.sum(axis=-1, keepdims=True)
    empty = total[..., 0] == 0
    drawn = drawn / np.where(total > 0, total, 1)
    drawn[empty] = np.eye(law.size)[rng.choice(law.size, p=law, size=int(empty.sum()))]
    return drawn


def designs(n_datasets):
    """Yield clusters, sizes, correlation, a label and a generator for each design."""
    for n_clusters, kind, correlation_ in itertools.product(CLUSTERS, SIZES, CORRELATIONS):
        seed = [n_clusters, SIZES.index(kind), int(10 * correlation_)]
        rng = np.random.default_rng(seed)
        yield (n_datasets, n_clusters), kind, correlation_, f"{kind}, {correlation_}", rng


def bounds(statistic, sums):
    """Return the default bounds of a statistic in all data sets."""
    return statistic_bounds(statistic, sums, LEVEL)


def paired(tally, n_datasets):
    """Test the statistics of tables of pairs."""
    statistics = {**PAIRED_RATES, "kappa": kappa_of_counts, "discordant odds": DISCORDANT_ODDS}
    statistics |= {"balanced_accuracy": LINKING_RATES["balanced_accuracy"]}
    groups = {
        "accuracy_difference": "accuracy_difference",
        "signed_alignment": "signed_alignment",
        "kappa": "kappa",
        "discordant odds": "discordant odds",
        "balanced_accuracy": "balanced_accuracy, linking_by",
        "consistency_given_first_correct": "rates given the first label",
        "consistency_given_first_incorrect": "rates given the first label",
    }
    for (shape, kind, alike, label, rng), (name, law) in itertools.product(
        designs(n_datasets), LAWS.items()
    ):
        sums = rng.multinomial(
            cluster_sizes(kind, shape, rng), dirichlet(law, alike, shape, rng)
        ).astype(float)
        for rate, statistic in statistics.items():
            truth = float(statistic(np.asarray(law)))
            low, high = bounds(statistic, sums)
            group = groups.get(rate, "proportions of pairs")
            tally.add(group, shape[1], f"{name}, {label}", low, high, truth)


def shares(tally, n_datasets):
    """Test single proportions at typical and rare rates, also of facts, topics and fractions."""
    part = CountRatio(numerator=(1, 0), denominator=(0, 1))
    for (shape, kind, alike, label, rng), rate in itertools.product(
        designs(n_datasets), (*RATES, None)
    ):
        sizes = cluster_sizes(kind, shape, rng)
        if rate is None:
            rate, label = DIP / (5 * shape[1]), f"one event, {label}"
        chance = dirichlet((rate, 1 - rate), alike, shape, rng)[..., 0]
        right = rng.binomial(sizes, np.clip(chance, 0, 1))
        found = bounds(part, np.stack([right, sizes], axis=-1).astype(float))
        tally.add("a proportion of clusters", shape[1], f"{rate}, {label}", *found, rate)
        # Three templates per row, so accuracies are multiples of 1/3.
        thirds = rng.binomial(3 * sizes, np.clip(chance, 0, 1)) / 3.0
        found = bounds(MEAN, np.stack([thirds, sizes], axis=-1))
        tally.add("frequency_curves", shape[1], f"{rate}, {label}", *found, rate)


def split(tally, n_datasets):
    """Test the difference of accuracies at high and low scores."""
    for shape, kind, alike, label, rng in designs(n_datasets):
        for low_rate, high_rate in ((0.4, 0.6), (0.97, 0.99)):
            columns = []
            for rate in (low_rate, high_rate):
                sizes = cluster_sizes(kind, shape, rng)
                chance = np.clip(dirichlet((rate, 1 - rate), alike, shape, rng)[..., 0], 0, 1)
                right = rng.binomial(sizes, chance)
                columns += [sizes - right, right]
            found = bounds(split_difference, np.stack(columns, axis=-1).astype(float))
            name = f"{low_rate} and {high_rate}, {label}"
            tally.add("split_accuracy: difference", shape[1], name, *found, high_rate - low_rate)


def alignment(tally, n_datasets):
    """Test the scores of topics of five questions in one or five orders."""
    for shape, kind, alike, label, rng in designs(n_datasets):
        for name, law in LAWS.items():
            sizes = 5 if kind == "equal" else 1 + rng.integers(0, 5, shape)
            cells = rng.multinomial(sizes, dirichlet(law, alike, shape, rng)).astype(float)
            cells /= cells.sum(axis=-1, keepdims=True)
            for rate in (
                "first_accuracy",
                "accuracy_difference",
                "consistency",
                "signed_alignment",
            ):
                truth = float(PAIRED_RATES[rate](law))
                found = bounds(PAIRED_RATES[rate], cells)
                tally.add(f"alignment_by: {rate}", shape[1], f"{name}, {label}", *found, truth)


def forms(tally, n_datasets):
    """Test the metrics of several forms of a fact; facts are the clusters."""
    for (shape, kind, alike, label, rng), rate in itertools.product(
        designs(n_datasets), (0.01, 0.3, 0.9, 0.99)
    ):
        n_forms = (
            np.full(shape, 3) if kind == "equal" else 2 + rng.poisson(rng.gamma(0.7, 3, shape))
        )
        chance = np.clip(dirichlet((rate, 1 - rate), alike, shape, rng)[..., 0], 0, 1)
        right = rng.binomial(n_forms, chance)
        sums = fact_sums(n_forms.ravel(), right.ravel()).reshape(*shape, -1)
        truths = {
            "accuracy": rate,
            "consistency": 1 - 2 * rate * (1 - rate) * (1 - alike),
            "within_item_share": 1 - alike,
            "intraclass_correlation": alike,
        }
        for name, truth in truths.items():
            found = bounds(form_rates()[name], sums)
            tally.add(f"forms: {name}", shape[1], f"{rate}, {label}", *found, truth)


def models(tally, n_datasets):
    """Test the difference of two models of equal and of unequal accuracy."""
    for (shape, kind, alike, label, rng), (base, agree) in itertools.product(
        designs(n_datasets), ((0.4, 0.5), (0.98, 0.5), (0.4, 0.98))
    ):
        law = np.array([base, 0.0, (1 - base) / 2, (1 - base) / 2])
        other = np.array([base - 0.05, 0.01, (1 - base) / 2 + 0.02, (1 - base) / 2 + 0.02])
        joint = (agree * np.diag(other) + (1 - agree) * np.outer(law, other)).ravel()
        rest = np.clip(law - joint.reshape(4, 4).sum(axis=1), 0, None)
        joint += (np.outer(rest, other)).ravel()
        joint /= joint.sum()
        sums = rng.multinomial(
            cluster_sizes(kind, shape, rng), dirichlet(joint, alike, shape, rng)
        ).astype(float)
        for rate in ("consistency", "accuracy_difference", "consistency_given_first_correct"):
            statistic, square = PAIRED_RATES[rate], joint.reshape(4, 4)
            truth = float(statistic(square.sum(axis=1)) - statistic(square.sum(axis=0)))
            found = cluster_t(matched_difference(statistic), sums).bounds(LEVEL)
            name = f"contrasts_by models: {rate}"
            tally.add(name, shape[1], f"{base}, {agree}, {label}", *found, truth)


def slots(tally, n_datasets):
    """Test accuracy by slot and its slope, and the curves of momentum."""
    n_slots = 5
    accuracies, slope = slot_statistics(n_slots)
    runs = run_statistics(n_slots)
    orders = np.array([np.roll(np.arange(n_slots), k) for k in range(n_slots)])
    for (shape, _, alike, label, rng), (rate, fall) in itertools.product(
        (design for design in designs(n_datasets) if design[1] == "equal"),
        ((0.5, 0.0), (0.6, 0.05), (0.97, 0.005)),
    ):
        chance = np.clip(dirichlet((rate, 1 - rate), alike, (*shape, n_slots), rng)[..., 0], 0, 1)
        fades = (1 - fall / rate) ** 0 - fall / rate * np.arange(n_slots)
        right = np.empty((*shape, n_slots, n_slots), dtype=bool)
        for k, order in enumerate(orders):
            right[:, :, k] = rng.random((*shape, n_slots)) < chance[..., order] * fades
        counts = right.sum(axis=2)
        sums = np.concatenate([counts, np.full((*shape, 1), n_slots)], axis=-1).astype(float)
        truth = rate * fades
        found = bounds(accuracies[1], sums)
        name = f"{rate}, {label}"
        tally.add("position_curve: accuracy", shape[1], name, *found, truth[1])
        tally.add("position_curve: slope", shape[1], name, *bounds(slope, sums), -fall)
        if fall:
            continue
        flat = right.reshape(-1, n_slots).astype(np.int8)
        topics = np.repeat(np.arange(shape[0] * shape[1]), n_slots)
        by_topic = streak_counts(flat, topics, shape[0] * shape[1]).reshape(*shape, -1)
        population = by_topic.sum(axis=(0, 1)).astype(float)
        if shape[1] == CLUSTERS[-1]:
            slots.truth[alike] = population
        slots.covered.append((shape[1], alike, label, by_topic.astype(float)))
    for n_clusters, alike, label, by_topic in slots.covered:
        for key in ("0 1", "1 1", "0 slope"):
            statistic = runs[key]
            truth = float(np.asarray(statistic(slots.truth[alike])))
            found = bounds(statistic, by_topic)
            name = "momentum: slope" if key.endswith("slope") else "momentum: P(correct)"
            tally.add(name, n_clusters, label, *found, truth)


def correlated(n_datasets, n_clusters, n_rows, alike, strength, kind, rng):
    """Draw two log frequencies and an accuracy of rows in clusters."""

    def noise():
        """Draw standard normal rows with a component per cluster."""
        shape = (n_datasets, n_clusters)
        own = np.sqrt(1 - alike) * rng.normal(size=(*shape, n_rows))
        return np.sqrt(alike) * rng.normal(size=(*shape, 1)) + own

    entity = noise()
    surface = 0.6 * entity + 0.8 * noise()
    score = strength * entity + np.sqrt(1 - strength**2) * noise()
    return entity, surface, score if kind == "continuous" else (score > 0.3).astype(float)


def moments(entity, surface, score):
    """Return the sums of each cluster for correlations."""
    columns = [np.ones_like(entity), entity, surface, score, entity**2, entity * surface]
    columns += [surface**2, score**2, entity * score, surface * score]
    return np.stack([column.sum(axis=-1) for column in columns], axis=-1)


def three_statistics(totals):
    """Stack a correlation, a partial correlation and a difference of two in the first axis."""
    within, across = correlations_of_moments(totals, 2, 1)
    partial = partial_of_correlations(within, across)
    return np.stack(
        [across[..., 0, 0], partial[..., 0, 0], across[..., 0, 0] - across[..., 1, 0]], axis=0
    )


def correlations(tally, n_datasets):
    """Test clustered correlations, and those of independent rows."""
    names = ("correlation", "partial correlation", "difference of two")
    for (rows, alike), strength, kind in itertools.product(
        ((1, 0.0), (4, 0.3), (4, 0.8)), (0.0, 0.3, 0.8), ("continuous", "binary")
    ):
        large = correlated(1, 400_000, rows, alike, strength, kind, np.random.default_rng(1))
        truths = three_statistics(moments(*large).sum(axis=1))[:, 0]
        for n_clusters in CLUSTERS:
            rng = np.random.default_rng([n_clusters, rows, int(10 * strength)])
            sums = moments(*correlated(n_datasets, n_clusters, rows, alike, strength, kind, rng))
            totals = sums.sum(axis=1)
            with np.errstate(all="ignore"):
                estimates = three_statistics(totals)
                left = three_statistics(totals[:, None] - sums)
            for k, name in enumerate(names):
                scale = "fisher-z" if k < 2 else "plain"
                found = jackknife(estimates[k], left[k], scale=scale).bounds(LEVEL)
                label = f"{strength}, {kind}, {rows} rows alike {alike}"
                tally.add(
                    f"frequency_analysis: {name}", n_clusters, label, *found, float(truths[k])
                )


def independent(tally, n_datasets):
    """Test the intervals that assume independent rows, by their functions."""
    rng = np.random.default_rng(3)
    for n, rate in itertools.product(CLUSTERS, RATES):
        limits = [wilson_interval(k, n) for k in range(n + 1)]
        drawn = rng.binomial(n, rate, n_datasets)
        found = np.array(limits)[drawn].T
        tally.add("wilson_interval", n, f"{rate}", *found, rate)
    for n, share in itertools.product(CLUSTERS, (0.5, 0.9)):
        tables = {}
        found = []
        for b in rng.binomial(n, share, n_datasets).tolist():
            if b not in tables:
                table = PairedTable(both=0, first_only=b, second_only=n - b, neither=0)
                tables[b] = discordant_odds_ratio(table)[1:]
            found.append((tables[b].low, tables[b].high))
        tally.add("discordant_odds_ratio", n, f"{share}", *np.array(found).T, share / (1 - share))
    few = min(n_datasets, 1000)
    for n, strength, method in itertools.product(CLUSTERS, (0.0, 0.8), ("pearson", "spearman")):
        truth = strength if method == "pearson" else 6 / math.pi * math.asin(strength / 2)
        found = []
        for _ in range(few):
            x = rng.normal(size=n)
            y = strength * x + math.sqrt(1 - strength**2) * rng.normal(size=n)
            r = correlation(x, y, method=method)
            found.append(correlation_interval(r, df=n - 2, method=method)[:2])
        ends = np.array(found).T
        tally.add(f"correlation, {method}", n, f"{strength}", *ends, truth)
    for n in CLUSTERS:
        found = []
        for _ in range(few):
            entity, surface, score = (
                column[0, :, 0] for column in correlated(1, n, 1, 0.0, 0.5, "continuous", rng)
            )
            r = np.corrcoef([score, entity, surface])
            found.append(zou_interval(r[0, 1], r[0, 2], r_kh=r[1, 2], n=n)[:2])
        tally.add("zou_interval", n, "0.5, 0.3", *np.array(found).T, 0.2)


GOAL_CLUSTERS = (5, 10, 20, 50, 200, 1000)
GOAL_SIZES = ("1", "3", "geometric", "giant")
GOAL_CORRELATIONS = (0.0, 0.5, 0.95)
DIFFERENCES = (
    *((0.01, 0.01), (0.05, 0.0), (0.02, 0.0), (0.1, 0.02)),
    *((0.1, 0.1), (0.3, 0.1), (0.4, 0.4), (0.005, 0.0)),
    *((0.9, 0.05), (0.98, 0.005)),
)
TWO_RATES = (
    (0.02, 0.02),
    (0.1, 0.1),
    (0.35, 0.1),
    (0.3, 0.3),
    (0.05, 0.01),
    (0.5, 0.5),
    (0.95, 0.02),
)
GOAL_SHARES = (0.005, 0.02, 0.1, 0.3, 0.5, 0.9, 0.99)


def goal_sizes(kind, shape, rng):
    """Return the rows of each cluster; one large cluster has half of all."""
    if kind == "geometric":
        return rng.geometric(1 / 3, shape)
    sizes = np.full(shape, 1 if kind == "1" else 3)
    if kind == "giant":
        sizes[..., 0] = 3 * (shape[-1] - 1)
    return sizes


def goal_designs(n_datasets):
    """Yield the cases: family, clusters, label, means, sums, weights, ranges, truth, rates."""
    for n_clusters, kind, alike in itertools.product(GOAL_CLUSTERS, GOAL_SIZES, GOAL_CORRELATIONS):
        if kind == "1" and alike:
            continue
        rng = np.random.default_rng([n_clusters, GOAL_SIZES.index(kind), int(100 * alike)])
        shape, label = (n_datasets, n_clusters), f"{kind}, {alike}"
        one = ((1.0,), ((0.0, 1.0),))
        for rate in GOAL_SHARES:
            sizes = goal_sizes(kind, shape, rng)
            chance = np.clip(dirichlet((rate, 1 - rate), alike, shape, rng)[..., 0], 0, 1)
            sums = np.stack([rng.binomial(sizes, chance), sizes], axis=-1)
            yield "proportion", n_clusters, f"{label}, {rate}", sums, *one, rate, rate
        for lost, gained in DIFFERENCES:
            sizes = goal_sizes(kind, shape, rng)
            law = (lost, max(gained, 1e-12), 1 - lost - gained)
            cells = rng.multinomial(sizes, dirichlet(law, alike, shape, rng))
            sums = np.concatenate([cells[..., :2], sizes[..., None]], axis=-1)
            name = f"{label}, {lost} and {gained}"
            ranges = ((-1.0, 1.0),)
            yield "difference", n_clusters, name, sums, (1.0,), ranges, gained - lost, lost
        for rates, shared in itertools.product(TWO_RATES, (False, True)):
            sizes = goal_sizes(kind, (2, *shape), rng)
            events = np.empty_like(sizes)
            common = rng.normal(size=shape)
            for group, rate in enumerate(rates):
                # The threshold is on a normal variable of the cluster, common to groups or not.
                own = common if shared else rng.normal(size=shape)
                cut = NormalDist().inv_cdf(rate)
                chance = scipy.special.ndtr((cut - math.sqrt(alike) * own) / math.sqrt(1 - alike))
                events[group] = rng.binomial(sizes[group], chance)
            sums = np.stack([events[0], sizes[0], events[1], sizes[1]], axis=-1)
            if not shared:
                apart = np.zeros((n_datasets, 2 * n_clusters, 4))
                apart[:, :n_clusters, :2], apart[:, n_clusters:, 2:] = sums[..., :2], sums[..., 2:]
                sums = apart
            family = "contrast, shared clusters" if shared else "contrast, separate clusters"
            two = ((1.0, -1.0), ((0.0, 1.0),) * 2)
            name = f"{label}, {rates[0]} and {rates[1]}"
            yield family, n_clusters, name, sums, *two, rates[0] - rates[1], min(rates)


TOPOLOGIES = (1, 2, 4, 6)


def topologies(n_datasets):
    """Print coverage of leakage by fact-topology pair and by fact; return the missed goals.

    A fact has two prompts per topology with the same answer; in 5 % of the pairs of a fact that
    leaks and a topology the answer does not leak, since the wording differs.
    """
    misses = []
    print(
        "| topologies | leakage | facts | by pair: coverage | width | by fact: coverage | width |\n"
        "|---|---|---|---|---|---|---|"
    )
    share = CountRatio(numerator=(1, 0), denominator=(0, 1))
    for n_topologies, rate, n_facts in itertools.product(TOPOLOGIES, (0.1, 0.3), (40, 100)):
        rng = np.random.default_rng([n_topologies, int(100 * rate), n_facts])
        leaks = rng.random((n_datasets, n_facts, 1)) < rate
        right = leaks & (rng.random((n_datasets, n_facts, n_topologies)) >= 0.05)
        pairs = np.stack([2 * right, np.full(right.shape, 2)], axis=-1).astype(float)
        cells = []
        for sums in (pairs.reshape(n_datasets, -1, 2), pairs.sum(axis=2)):
            low, high = bounds(share, sums)
            covered = ((low <= 0.95 * rate) & (0.95 * rate <= high)).mean()
            cells.append(f"{covered:.3f} | {(high - low).mean():.3f}")
        print(f"| {n_topologies} | {rate} | {n_facts} | {' | '.join(cells)} |")
        if covered < 0.93 - math.sqrt(0.07 * 0.93 / n_datasets):
            label = f"{n_topologies} topologies, {rate}"
            misses.append(("leakage by fact: coverage", n_facts, label, round(float(covered), 3)))
    print()
    return misses


def plain_t(sums, weights):
    """Return the p-values of the t test of the sums of clusters, under the null hypothesis."""
    if sums.shape[-1] == 3:
        sums = np.stack([sums[..., 1] - sums[..., 0], sums[..., 2]], axis=-1)
    below, above = sums[..., 1::2], sums[..., ::2]
    total = below.sum(axis=-2, keepdims=True)
    means = above.sum(axis=-2, keepdims=True) / total
    added = ((above - means * below) / total * weights).sum(axis=-1)
    n_clusters = sums.shape[-2]
    error = np.sqrt((added**2).sum(axis=-1) * n_clusters / (n_clusters - 1))
    return t_p_value((means[..., 0, :] * weights).sum(axis=-1) / error, n_clusters - 1)


def goals(n_datasets):
    """Print coverage, width, size and power of the shared inference; return missed goals."""
    found, misses, n_rows = defaultdict(list), [], 0
    for family, n_clusters, label, sums, weights, ranges, truth, rate in goal_designs(n_datasets):
        sums = sums.astype(float)
        eye = np.eye(sums.shape[-1])
        parts = [
            Part(weight, tuple(eye[2 * place]), tuple(eye[2 * place + 1]), *ends)
            for place, (weight, ends) in enumerate(zip(weights, ranges, strict=True))
        ]
        if family == "difference":
            parts = [Part(1.0, (-1.0, 1.0, 0.0), (0.0, 0.0, 1.0), -1.0, 1.0)]
        with np.errstate(all="ignore"):
            inferred = cluster_t(parts, sums)
            (low, high), p_value = inferred.bounds(LEVEL), inferred.p_value()
            plain = plain_t(sums, np.asarray(weights)) < 0.05
        known = inferred.is_inferred
        if family != "proportion":
            leaves_out = (low > 0) | (high < 0)
            n_rows += int(known.sum())
            if (leaves_out != (p_value < 0.05)).any():
                misses.append((f"{family}: p and interval", n_clusters, label, "disagree"))
        row = {"known": known.mean()}
        if known.mean() >= 0.25:
            row["covered"] = ((low <= truth + 1e-12) & (truth - 1e-12 <= high))[known].mean()
            if 0.1 <= rate <= 0.9 and "giant" not in label:
                spread = inferred.value.std() * 2 * NormalDist().inv_cdf(0.975)
                row["width"] = (high - low)[known].mean() / spread
            rejected, reference = (p_value < 0.05)[known].mean(), plain[known].mean()
            if family != "proportion" and truth == 0:
                row["size"] = rejected
            elif family != "proportion" and 0.15 < reference < 0.98:
                row["power"] = rejected / reference
                if not label.startswith("geometric"):
                    row["power of one size"] = row["power"]
            least = 0.90 if n_clusters < 20 else 0.92
            error = 3 * math.sqrt(0.07 * 0.93 / known.sum())
            for name, value, is_missed in (
                ("coverage", row["covered"], row["covered"] < least - error),
                ("size", row.get("size"), row.get("size", 0.0) > 0.07 + error),
            ):
                if is_missed:
                    misses.append((f"{family}: {name}", n_clusters, label, round(value, 3)))
        found[family, n_clusters].append(row)
    print(
        "| interval and test of | K | coverage, minimum | median | width, median | largest size | "
        "power, minimum | clusters of one size | median | not inferred |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    for (family, n_clusters), rows in found.items():
        column = {
            name: [row[name] for row in rows if name in row]
            for name in ("covered", "width", "size", "power", "power of one size", "known")
        }

        def cell(name, summary, column=column):
            """Summarise a column; empty if no design has it."""
            return f"{summary(column[name]):.3f}" if column[name] else ""

        cells = [cell("covered", min), cell("covered", np.median), cell("width", np.median)]
        cells += [cell("size", max), cell("power", min), cell("power of one size", min)]
        cells += [cell("power", np.median)]
        cells += [f"{1 - np.mean(column['known']):.2f}"]
        print(f"| {family} | {n_clusters} | {' | '.join(cells)} |")
    print(f"\n{n_rows:,} rows with an interval and a p-value of 0 were compared.")
    return misses


def contrasts(tally, n_datasets):
    """Test differences of two groups in the same clusters, by their function.

    In the second group every other flip is changed to the first label.
    """
    mended = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1]])
    for shape, kind, alike, label, rng in designs(n_datasets):
        for name in ("typical", "rare flips"):
            law, ends = np.asarray(LAWS[name]), defaultdict(list)
            for _ in range(n_datasets):
                own = dirichlet(law, alike, (shape[1],), rng)
                sizes = cluster_sizes(kind, (2, shape[1]), rng)
                counts = (rng.multinomial(sizes[0], own), rng.multinomial(sizes[1], own @ mended))
                for rate in ("flip_rate", "second_accuracy"):
                    row = contrast(*counts, rate=rate)
                    ends[rate].append((row["difference_low"], row["difference_high"]))
            for rate, found in ends.items():
                truth = float(PAIRED_RATES[rate](law) - PAIRED_RATES[rate](law @ mended))
                design = f"{name}, {label}"
                tally.add(f"contrast: {rate}", shape[1], design, *np.array(found).T, truth)


def areas(tally, n_datasets):
    """Test the area under the curve of clusters with their own level, by its function."""
    rng = np.random.default_rng(7)
    for n, alike, apart in itertools.product(CLUSTERS, (0.0, 0.5), (0.0, 0.8, 2.5)):
        truth = NormalDist().cdf(apart / math.sqrt(2.0))
        labels, owners = np.r_[np.ones(3 * n), np.zeros(3 * n)], np.tile(np.arange(n), 6)
        ends = []
        for _ in range(n_datasets):
            level = rng.normal(0, math.sqrt(alike), n)[owners]
            scores = level + rng.normal(0, math.sqrt(1 - alike), 6 * n) + apart * labels
            area = clustered_auc(scores, labels, owners)
            ends.append((area["auc_low"], area["auc_high"]))
        tally.add("clustered_auc", n, f"{apart}, {alike}", *np.array(ends).T, truth)


def group_means(tally, n_datasets):
    """Test the difference of means of a group and the rest."""
    for shape, kind, alike, label, rng in designs(n_datasets):
        n_rows = cluster_sizes(kind, (*shape, 2), rng).astype(float)
        effects = np.sqrt(alike) * rng.normal(size=(*shape, 1))
        means = effects + rng.normal(size=(*shape, 2)) * np.sqrt((1 - alike) / n_rows)
        sums = np.stack(
            [
                (means[..., 0] + 0.5) * n_rows[..., 0],
                n_rows[..., 0],
                means[..., 1] * n_rows[..., 1],
                n_rows[..., 1],
            ],
            axis=-1,
        )
        tally.add("group_difference_by", shape[1], label, *mean_difference(sums).bounds(LEVEL), 0.5)


def corrected(tally, n_datasets):
    """Test the corrected scores, by their function; each data set has new labels of judges."""
    rng = np.random.default_rng(4)
    rates = (0.95, 0.92)
    for n_topics, n_labels in itertools.product(CLUSTERS, (40, 200)):
        found = defaultdict(list)
        law = np.array([0.35, 0.2, 0.1, 0.35])
        for _ in range(n_datasets):
            errors = []
            for _ in range(2):
                hits = rng.binomial(n_labels // 2, rates)
                hits = np.clip(hits, 1, None)
                errors.append(
                    JudgeError(
                        true_positives=int(hits[0]),
                        false_negatives=n_labels // 2 - int(hits[0]),
                        true_negatives=int(hits[1]),
                        false_positives=n_labels // 2 - int(hits[1]),
                    )
                )
            chance = dirichlet(law, 0.3, (n_topics,), rng)
            cells = np.array([rng.choice(4, 5, p=row) for row in chance])
            right = [cells < 2, cells % 2 == 0]
            seen = [
                np.where(
                    truth, rng.random(truth.shape) < rates[0], rng.random(truth.shape) > rates[1]
                )
                for truth in right
            ]
            result = corrected_alignment(
                *seen,
                short_error=errors[0],
                long_error=errors[1],
                intervals=Intervals(resamples=400),
            )
            for name in ("short_accuracy", "accuracy_difference", "alignment"):
                found[name].append((result[f"{name}_low"], result[f"{name}_high"]))
        truths = {"short_accuracy": 0.55, "accuracy_difference": -0.1, "alignment": 0.7}
        for name, ends in found.items():
            low, high = np.array(ends).T
            label = f"{n_labels} labels"
            tally.add(f"corrected_alignment: {name}", n_topics, label, low, high, truths[name])


def same_as_functions():
    """Check that the tested intervals equal those of `paired_by`, except for rounding."""
    rng = np.random.default_rng(6)
    counts = rng.multinomial(5, LAWS["typical"], 30)
    cells = np.repeat(np.tile(np.arange(4), 30), counts.ravel())
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(30), 5),
            "first_correct": cells < 2,
            "second_correct": cells % 2 == 0,
        }
    )
    row = paired_by(frame).iloc[0]
    for name, rate in PAIRED_RATES.items():
        low, high = bounds(rate, counts[None].astype(float))
        if not np.allclose((row[f"{name}_low"], row[f"{name}_high"]), (low[0], high[0]), 1e-12):
            raise SystemExit(f"paired_by gives other bounds of {name} than the benchmark")


def percentiles(n_datasets):
    """Print the coverage of percentile intervals in some of the designs, for comparison."""
    print("\n| percentile intervals of 1,000 resamples | K = 5 | 10 | 20 | 50 | 200 |")
    print("|---|---|---|---|---|---|")
    for name, rate in (("typical", "flip_rate"), ("0.99 correct", "first_accuracy")):
        cells = []
        for n_clusters in CLUSTERS:
            rng = np.random.default_rng(n_clusters)
            law, covered = LAWS[name], 0
            truth = float(PAIRED_RATES[rate](law))
            for index in range(n_datasets):
                shares_ = dirichlet(law, 0.3, (n_clusters,), rng)
                counts = rng.multinomial(5, shares_)
                drawn = resample_counts(counts, resamples=1000, seed=index)
                low, high = quantiles(PAIRED_RATES[rate](drawn), (0.025, 0.975))
                covered += low <= truth <= high
            cells.append(f"{covered / n_datasets:.3f}")
        print(f"| {rate}, {name} | {' | '.join(cells)} |")


# Beta parameters: first correct; second correct, given a correct and an incorrect first answer.
BALANCED = ((1.0, 1.0), (2.4, 0.8), (0.8, 2.4))
N_FACTS = 400


def draw(law, rng):
    """Draw the counts of one data set: one first label per fact, several second labels."""
    sizes = 1 + rng.poisson(4.0, N_FACTS)
    first = rng.random(N_FACTS) < rng.beta(*law[0], N_FACTS)
    share = np.where(first, rng.beta(*law[1], N_FACTS), rng.beta(*law[2], N_FACTS))
    right = rng.binomial(sizes, share)
    counts = np.zeros((N_FACTS, 4), dtype=np.int64)
    rows, column = np.arange(N_FACTS), np.where(first, 0, 2)
    counts[rows, column] = right
    counts[rows, column + 1] = sizes - right
    return counts


def sizes_of_tests(n_datasets):
    """Return how often each test rejects the true hypothesis of equal accuracies at 5 %."""
    rng = np.random.default_rng(1)
    rejected = {"McNemar, uncorrected": 0, "McNemar, corrected": 0, "Obuchowski": 0, "Durkalski": 0}
    for _ in range(n_datasets):
        counts = draw(BALANCED, rng)
        table = PairedTable(**dict(zip(CELLS, counts.sum(axis=0).tolist(), strict=True)))
        p_values = (
            mcnemar(table, method="uncorrected")[1],
            mcnemar(table, method="corrected")[1],
            clustered_mcnemar(counts, method="obuchowski")[1],
            clustered_mcnemar(counts, method="durkalski")[1],
        )
        for name, p_value in zip(rejected, p_values, strict=True):
            rejected[name] += p_value < 0.05
    return {name: count / n_datasets for name, count in rejected.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=2000, help="data sets per design")
    parser.add_argument("--goals", action="store_true", help="only the designs of the inference")
    parser.add_argument("--short", action="store_true", help="300 data sets per design")
    options = parser.parse_args()
    n_datasets = 300 if options.short else options.datasets
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    same_as_functions()
    missed = goals(n_datasets) + topologies(n_datasets) + claims(n_datasets)
    if options.goals:
        print(f"\n{time.perf_counter() - start:.0f} s")
        print(*missed, sep="\n", file=sys.stderr)
        raise SystemExit(len(missed))
    slots.truth, slots.covered = {}, []
    tally = Tally()
    for step in (paired, shares, split, alignment, forms, models, slots, correlations):
        step(tally, n_datasets)
    independent(tally, n_datasets)
    group_means(tally, n_datasets)
    corrected(tally, n_datasets)
    contrasts(tally, n_datasets)
    areas(tally, n_datasets)
    print(
        f"{n_datasets:,} data sets per design, standard error "
        f"{math.sqrt(0.0475 / n_datasets):.4f}; Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}\n"
    )
    failures = missed + tally.print()
    percentiles(n_datasets // 4)
    rejected = sizes_of_tests(n_datasets)
    print("\n| test of equal accuracies, nominal 5 % | rejects |\n|---|---|")
    for name, share in rejected.items():
        print(f"| {name} | {share:.3f} |")
    print(f"\n{time.perf_counter() - start:.0f} s")
    problems = [
        f"{name} with {k} clusters ({design}): {covered}" for name, k, design, covered in failures
    ]
    print(*problems, sep="\n", file=sys.stderr)
    if not options.short:
        if not all(0.03 <= rejected[name] <= 0.07 for name in ("Obuchowski", "Durkalski")):
            problems.append("a clustered test rejects less than 3 % or more than 7 %")
        if rejected["McNemar, corrected"] < 0.1:
            problems.append("the plain test rejects less than 10 %")
    if problems:
        raise SystemExit(f"{len(problems)} designs are outside the budget")


if __name__ == "__main__":
    main()
