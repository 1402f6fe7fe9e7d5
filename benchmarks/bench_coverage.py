"""Coverage of 95 % intervals, and size of 5 % tests, on pairs that share a fact.

Run `python benchmarks/bench_coverage.py`; prints Markdown tables. As in RedirectQA one canonical
answer stands in all pairs of its fact, so pairs of a fact go together. The intervals that resample
facts should hold the truth in 93 to 97 % of data sets, percentile intervals of every rate and BCa
intervals of one, and those that resample rows visibly less;
the clustered forms of McNemar's test should reject 3 to 7 % of true null hypotheses, and the plain
form more. Exits with an error where they do not.
"""

import argparse
import math
import platform

import numpy as np
import scipy

from surface_consistency.metrics import (
    PAIRED_RATES,
    PairedTable,
    cluster_bootstrap,
    clustered_mcnemar,
    mcnemar,
    percentile_interval,
    resample_counts,
)

N_FACTS = 400
MEAN_EXTRA_PAIRS = 4.0
NOMINAL = 0.95
BCA_RATE = "consistency_given_first_correct"
CELLS = ("both", "first_only", "second_only", "neither")

# Beta parameters of: right at first; right at second given a right and a wrong first answer.
LEANING = ((0.9, 1.1), (3.0, 1.2), (0.6, 4.0))
BALANCED = ((1.0, 1.0), (2.4, 0.8), (0.8, 2.4))


def mean(parameters):
    """Return the mean of a beta distribution."""
    return parameters[0] / (parameters[0] + parameters[1])


def expected_cells(law):
    """Return the probabilities of the four cells, from which every true rate follows."""
    first, given_right, given_wrong = (mean(part) for part in law)
    return np.array(
        [
            first * given_right,
            first * (1 - given_right),
            (1 - first) * given_wrong,
            (1 - first) * (1 - given_wrong),
        ]
    )


def draw(law, rng):
    """Draw the counts of one data set: one first verdict a fact, several second ones."""
    sizes = 1 + rng.poisson(MEAN_EXTRA_PAIRS, N_FACTS)
    first = rng.random(N_FACTS) < rng.beta(*law[0], N_FACTS)
    share = np.where(first, rng.beta(*law[1], N_FACTS), rng.beta(*law[2], N_FACTS))
    right = rng.binomial(sizes, share)
    counts = np.zeros((N_FACTS, 4), dtype=np.int64)
    rows, column = np.arange(N_FACTS), np.where(first, 0, 2)
    counts[rows, column] = right
    counts[rows, column + 1] = sizes - right
    return counts


def covered(counts, truths, n_resamples, seed):
    """Tell for each rate whether its percentile interval holds the truth."""
    drawn = resample_counts(counts, n_resamples=n_resamples, rng=seed)
    found = []
    for name, rate in PAIRED_RATES.items():
        interval = percentile_interval(rate(drawn), confidence_level=NOMINAL)
        found.append(interval.low <= truths[name] <= interval.high)
    return found


def covered_by_bca(counts, truth, n_resamples, seed):
    """Tell whether the BCa interval of one rate holds the truth."""
    result = cluster_bootstrap(
        counts,
        PAIRED_RATES[BCA_RATE],
        n_resamples=n_resamples,
        confidence_level=NOMINAL,
        method="bca",
        rng=seed,
    )
    return result.estimate_interval.low <= truth <= result.estimate_interval.high


def coverage(n_datasets, n_resamples):
    """Return the share of data sets whose intervals hold the truth.

    By rate, for facts and rows; and for facts by the BCa method, of one rate.
    """
    rng = np.random.default_rng(0)
    truths = {name: float(rate(expected_cells(LEANING))) for name, rate in PAIRED_RATES.items()}
    hits, hits_of_bca = np.zeros((2, len(PAIRED_RATES))), 0
    for index in range(n_datasets):
        counts = draw(LEANING, rng)
        rows = np.repeat(np.eye(4, dtype=np.int64), counts.sum(axis=0), axis=0)
        hits[0] += covered(counts, truths, n_resamples, index)
        hits[1] += covered(rows, truths, n_resamples, index)
        hits_of_bca += covered_by_bca(counts, truths[BCA_RATE], n_resamples, index)
    return hits / n_datasets, hits_of_bca / n_datasets


def sizes(n_datasets):
    """Return how often each test rejects the true hypothesis of equal accuracies at 5 %."""
    rng = np.random.default_rng(1)
    rejected = {"McNemar, uncorrected": 0, "McNemar, corrected": 0, "Obuchowski": 0, "Durkalski": 0}
    for _ in range(n_datasets):
        counts = draw(BALANCED, rng)
        table = PairedTable(**dict(zip(CELLS, counts.sum(axis=0).tolist(), strict=True)))
        p_values = (
            mcnemar(table, method="uncorrected").p_value,
            mcnemar(table, method="corrected").p_value,
            clustered_mcnemar(counts, method="obuchowski").p_value,
            clustered_mcnemar(counts, method="durkalski").p_value,
        )
        for name, p_value in zip(rejected, p_values, strict=True):
            rejected[name] += p_value < 0.05
    return {name: count / n_datasets for name, count in rejected.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=4000, help="simulated data sets")
    parser.add_argument("--resamples", type=int, default=1000, help="resamples of each")
    options = parser.parse_args()
    shares, share_of_bca = coverage(options.datasets, options.resamples)
    error = math.sqrt(NOMINAL * (1 - NOMINAL) / options.datasets)
    print(
        f"{options.datasets:,} data sets of {N_FACTS} facts with {1 + MEAN_EXTRA_PAIRS:g} pairs on "
        f"average, {options.resamples:,} resamples, standard error {error:.4f}; Python "
        f"{platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}\n"
    )
    print("| rate | coverage, facts resampled | coverage, rows resampled |\n|---|---|---|")
    for name, by_fact, by_row in zip(PAIRED_RATES, *shares, strict=True):
        print(f"| {name} | {by_fact:.3f} | {by_row:.3f} |")
    print(f"| {BCA_RATE}, BCa | {share_of_bca:.3f} | |")
    rejected = sizes(options.datasets)
    print("\n| test of equal accuracies, nominal 5 % | rejects |\n|---|---|")
    for name, share in rejected.items():
        print(f"| {name} | {share:.3f} |")
    failures = []
    by_facts = np.append(shares[0], share_of_bca)
    if not ((by_facts >= 0.93) & (by_facts <= 0.97)).all():
        failures.append("an interval over facts covers less than 93 % or more than 97 %")
    if not (shares[1] < 0.9).all():
        failures.append("an interval over rows covers 90 % or more")
    if not all(0.03 <= rejected[name] <= 0.07 for name in ("Obuchowski", "Durkalski")):
        failures.append("a clustered test rejects less than 3 % or more than 7 %")
    if rejected["McNemar, corrected"] < 0.1:
        failures.append("the plain test rejects less than 10 %")
    if failures:
        raise SystemExit("; ".join(failures))


if __name__ == "__main__":
    main()
