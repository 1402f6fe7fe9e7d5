import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PairedTable, clustered_mcnemar, mcnemar
from surface_consistency.metrics.paired.paired_tables import table_of
from tests.refusals import refusals

METHODS = ("exact", "corrected", "uncorrected", "mid-p")


def discordant(b, c):
    return PairedTable(both=10, first_only=b, second_only=c, neither=20)


# R: mcnemar.test(tbl, correct = TRUE), mcnemar.test(tbl, correct = FALSE) and
# exact2x2(tbl, paired = TRUE). The exact values are those of rational arithmetic as well: twice
# the sum of choose(b + c, k) / 2^(b + c) for k up to min(b, c).
@pytest.mark.parametrize(
    ("b", "c", "method", "statistic", "p_value"),
    [
        (40, 8, "corrected", 20.020833, 7.660302e-06),
        (40, 8, "uncorrected", 21.333333, None),
        (40, 8, "exact", 8, 3.305267e-06),
        (121, 59, "corrected", 20.672222, 5.450095e-06),
        (121, 59, "exact", 59, 4.434449e-06),
        (86, 150, "corrected", 16.817797, 4.114562e-05),
        (86, 150, "exact", 86, 3.715936e-05),
        # scipy 1.17.1: scipy.stats.chi2.sf((418 - 3 - 1) ** 2 / 421, 1)
        (418, 3, "corrected", 407.116390, 1.5553199643904934e-90),
    ],
)
def test_mcnemar_agrees_with_reference_values(b, c, method, statistic, p_value):
    found = mcnemar(discordant(b, c), method=method)

    assert found[0] == pytest.approx(statistic, abs=5e-7)
    if p_value is not None:
        assert found[1] == pytest.approx(p_value, rel=2e-7, abs=0)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_mcnemar_of_equal_counts_has_p_one(method):
    assert mcnemar(discordant(0, 0), method=method) == (0.0, 1.0)
    assert mcnemar(discordant(30, 30), method=method)[1] == pytest.approx(1.0)


@pytest.mark.parametrize(("b", "c"), [(25, 0), (13, 12)])
def test_auto_is_exact_up_to_25_discordant_pairs(b, c):
    few, many = discordant(b, c), discordant(b + 1, c)

    assert mcnemar(few) == mcnemar(few, method="exact") != mcnemar(few, method="corrected")
    assert mcnemar(many) == mcnemar(many, method="corrected") != mcnemar(many, method="exact")


@given(b=st.integers(0, 300), c=st.integers(0, 300))
@settings(deadline=None)
def test_exact_p_values_agree_with_rational_arithmetic(b, c):
    fewer, total = min(b, c), b + c
    tail = sum(Fraction(math.comb(total, k), 2**total) for k in range(fewer + 1))
    observed = Fraction(math.comb(total, fewer), 2**total)

    exact, mid = (mcnemar(discordant(b, c), method=method)[1] for method in ("exact", "mid-p"))

    assert exact == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-10, abs=0)
    if total:
        assert mid == pytest.approx(float(2 * tail - observed), rel=1e-10, abs=0)


@pytest.mark.parametrize("b", [0, 1_000, 499_000])
def test_exact_p_values_of_many_pairs_agree_with_scipy(b):
    c = 1_000_000 - b
    binomial = stats.binom(b + c, 0.5)

    exact, mid = (mcnemar(discordant(b, c), method=method)[1] for method in ("exact", "mid-p"))

    assert exact == pytest.approx(2 * binomial.cdf(b), rel=1e-9, abs=0)
    assert mid == pytest.approx(2 * binomial.cdf(b) - binomial.pmf(b), rel=1e-6, abs=0)


@given(b=st.integers(0, 500), c=st.integers(0, 500))
@settings(deadline=None)
def test_mcnemar_is_symmetric_and_bounded_and_mid_p_at_most_exact(b, c):
    found = {method: mcnemar(discordant(b, c), method=method) for method in METHODS}

    for method, result in found.items():
        assert result == mcnemar(discordant(c, b), method=method)
        assert 0 <= result[1] <= 1
        assert result[0] >= 0
    assert found["mid-p"][1] <= found["exact"][1] + 1e-12


@pytest.mark.parametrize(("b", "c"), [(1, 0), (3, 11), (40, 8), (121, 59), (86, 150), (418, 3)])
def test_mcnemar_agrees_with_statsmodels(b, c):
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    cells = [[10, b], [c, 20]]

    exact = contingency.mcnemar(cells, exact=True)
    corrected = contingency.mcnemar(cells, exact=False, correction=True)
    uncorrected = contingency.mcnemar(cells, exact=False, correction=False)

    for method, other in [("exact", exact), ("corrected", corrected), ("uncorrected", uncorrected)]:
        ours = mcnemar(discordant(b, c), method=method)
        assert ours[0] == pytest.approx(other.statistic)
        assert ours[1] == pytest.approx(other.pvalue, rel=1e-9, abs=0)


# Data `psychiatry` of the R package clust.bin.pair 0.1.2 (Donner and Petryshen 1989): 29
# psychiatrists with 1 to 8 patients, pairs that only the patient (b) or only the psychiatrist (c)
# found relevant. The split of the concordant pairs does not enter.
PSYCHIATRY = {
    "b": [0, 1, 1, 1, 0, 3, 3, 3, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 1, 1, 2, *[0] * 7],
    "c": [4, 2, 3, 2, 1, 3, 0, 2, 2, 4, 2, 4, 3, 2, 1, 3, 1, 2, 0, 0, 0, 2, 1, 2, 2, 0, 0, 1, 1],
    "n": [7, 6, 7, 6, 4, 6, 5, 8, 4, 7, 3, 6, 7, 6, 5, 4, 6, 5, 4, 3, 5, 4, 4, 2, 3, 2, 2, 3, 1],
}
# Data `thyroids` of the same package (Obuchowski 1998): glands of 21 patients, PET and SPECT.
PET = (
    *("000", "110", "111", "1", "110", "1111", "111", "11", "11", "1", "110", "11", "111", "11"),
    *("00", "110", "110", "110", "11", "1", "11"),
)
SPECT = (
    *("011", "111", "111", "1", "111", "1111", "111", "11", "10", "1", "110", "11", "111", "11"),
    *("11", "110", "110", "111", "11", "1", "11"),
)


def psychiatry():
    """Counts of each psychiatrist."""
    return [[n - b - c, b, c, 0] for b, c, n in zip(*PSYCHIATRY.values(), strict=True)]


def thyroids():
    """Counts of each patient."""
    glands = [[*map("".join, zip(*pair, strict=True))] for pair in zip(PET, SPECT, strict=True)]
    return [[one.count(cell) for cell in ("11", "10", "01", "00")] for one in glands]


# Statistics that Durkalski et al. 2003 report, to the digits they print; the test suite of
# clust.bin.pair 0.1.2 contains the same. The plain statistic shows that the data are theirs.
@pytest.mark.parametrize(
    ("counts", "obuchowski", "durkalski", "digits", "plain"),
    [(psychiatry(), 7.19, 7.542, 3, 11.8451), (thyroids(), 2.86, 2.32, 2, 4.5)],
)
def test_statistics_agree_with_durkalski_2003(counts, obuchowski, durkalski, digits, plain):
    b, c = np.sum(counts, axis=0)[1:3]

    assert round(clustered_mcnemar(counts, method="obuchowski")[0], 2) == obuchowski
    assert round(clustered_mcnemar(counts, method="durkalski")[0], digits) == durkalski
    uncorrected = mcnemar(discordant(int(b), int(c)), method="uncorrected")[0]
    assert uncorrected == pytest.approx(plain, abs=5e-5)


def naive(counts, method):
    """Loop over clusters, following the text of the two papers."""
    kept = [row for row in counts if sum(row)]
    sizes = [sum(row) if method == "durkalski" else 1 for row in kept]
    differences = [(row[1] - row[2]) / size for row, size in zip(kept, sizes, strict=True)]
    squares = sum(difference**2 for difference in differences)
    statistic = sum(differences) ** 2 / squares if squares else 0.0
    return statistic * (len(kept) - 1) / len(kept) if method == "obuchowski" else statistic


tables = st.lists(
    st.tuples(*[st.integers(0, 6)] * 4).filter(lambda row: sum(row) > 0), min_size=2, max_size=15
)


@settings(deadline=None)
@given(counts=tables, method=st.sampled_from(["obuchowski", "durkalski"]))
def test_clustered_mcnemar_agrees_with_a_naive_loop(counts, method):
    """Neither the order of clusters nor that of the conditions changes the result."""
    swapped = [(a, c, b, d) for a, b, c, d in reversed(counts)]

    statistic, p_value = clustered_mcnemar(counts, method=method)

    assert statistic == pytest.approx(naive(counts, method), rel=1e-12)
    assert p_value == pytest.approx(math.erfc(math.sqrt(naive(counts, method) / 2)), rel=1e-9)
    assert 0 <= p_value <= 1
    assert clustered_mcnemar(swapped, method=method) == pytest.approx((statistic, p_value))
    tenfold = clustered_mcnemar(10 * np.asarray(counts), method=method)
    assert tenfold == pytest.approx((statistic, p_value), rel=1e-9)


@settings(deadline=None)
@given(cells=st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_one_pair_per_cluster_gives_the_unclustered_test(cells):
    """With clusters of one pair Durkalski's statistic is McNemar's, Obuchowski's (K-1)/K of it."""
    counts = np.eye(4, dtype=int)[cells]
    plain = mcnemar(table_of(counts.sum(axis=0)), method="uncorrected")

    durkalski = clustered_mcnemar(counts, method="durkalski")
    obuchowski = clustered_mcnemar(counts, method="obuchowski")

    assert durkalski == pytest.approx(plain, rel=1e-12)
    share = (len(cells) - 1) / len(cells)
    assert obuchowski[0] == pytest.approx(share * plain[0], rel=1e-12)


def test_clustered_mcnemar_with_empty_clusters_and_one_cluster():
    counts = [[0, 2, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0], [0, 1, 0, 0]]

    assert clustered_mcnemar([[2, 0, 0, 1], [0, 1, 1, 0]]) == (0.0, 1.0)
    assert clustered_mcnemar(counts) == clustered_mcnemar([counts[0], *counts[2:]])
    with pytest.warns(UndefinedMetricWarning, match="one cluster"):
        assert all(map(math.isnan, clustered_mcnemar([[3, 5, 1, 2]])))


test_tests_of_equal_accuracy_reject_bad_input = refusals(
    lambda call, counts, options: call(counts, **options),
    (clustered_mcnemar, [[1, 2, 3]], {}, r"shape \(n_clusters, 4\).*got \(1, 3\)"),
    (clustered_mcnemar, [1, 2, 3, 4], {}, r"shape \(n_clusters, 4\)"),
    (clustered_mcnemar, [[1, -1, 0, 0]], {}, r"row 0 is \[1, -1, 0, 0\]"),
    (clustered_mcnemar, [[1, 0, 0, 0], [0, 0.5, 0, 0]], {}, "row 1 is"),
    (clustered_mcnemar, [[1, np.nan, 0, 0]], {}, "row 0 is"),
    (clustered_mcnemar, [[0, 0, 0, 0]], {}, "contain no pair"),
    (clustered_mcnemar, np.empty((0, 4)), {}, "contain no pair"),
    (clustered_mcnemar, [["a", "b", "c", "d"]], {}, TypeError, "whole numbers"),
    (clustered_mcnemar, [[1, 1, 0, 0]], {"method": "yang"}, "got 'yang'"),
    (mcnemar, discordant(1, 2), {"method": "yates"}, "method must.*got 'yates'"),
    (mcnemar, (1, 2, 3, 4), {}, TypeError, "PairedTable or counts of the shape .2, 2.; got tuple"),
)


@pytest.mark.parametrize(("half", "apart"), [(2_400, 100), (2**30, 20_000), (2**30, 60_000)])
def test_exact_p_value_of_large_counts_agrees_with_sums_of_logarithms(half, apart):
    """Beyond 2**31 pairs 32-bit counts wrap around; a sum over logarithms of terms does not."""
    few, many = half - apart, half + apart
    steps = np.arange(min(few, 2_000_000), dtype=float)
    ratios = np.cumsum(np.log(few - steps) - np.log(many + steps + 1))
    first = math.lgamma(2 * half + 1) - math.lgamma(few + 1) - math.lgamma(many + 1)
    tail = math.exp(first - 2 * half * math.log(2)) * (1 + np.exp(ratios).sum())

    p_value = mcnemar(discordant(many, few), method="exact")[1]

    assert p_value == pytest.approx(2 * tail, rel=1e-4)
    assert mcnemar(discordant(few, many), method="exact")[1] == p_value
    assert mcnemar(discordant(few, many), method="mid-p")[1] < p_value
    assert mcnemar(discordant(half, half), method="exact")[1] == 1.0


def test_counts_of_the_shape_of_statsmodels_give_the_result_of_a_table():
    result = mcnemar([[10, 5], [2, 3]])

    assert result == mcnemar(PairedTable(both=10, first_only=5, second_only=2, neither=3))
    assert (result.statistic, result.p_value) == result
