import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PairedTable, clustered_mcnemar, mcnemar

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
    return [
        [n - b - c, b, c, 0]
        for b, c, n in zip(PSYCHIATRY["b"], PSYCHIATRY["c"], PSYCHIATRY["n"], strict=True)
    ]


def thyroids():
    """Counts of each patient."""
    rows = []
    for pet, spect in zip(PET, SPECT, strict=True):
        pairs = list(zip(pet, spect, strict=True))
        rows.append(
            [pairs.count(cell) for cell in (("1", "1"), ("1", "0"), ("0", "1"), ("0", "0"))]
        )
    return rows


# Statistics that Durkalski et al. 2003 report, to the digits they print; the test suite of
# clust.bin.pair 0.1.2 holds the same.
@pytest.mark.parametrize(
    ("counts", "method", "statistic", "digits"),
    [
        (psychiatry(), "obuchowski", 7.19, 2),
        (psychiatry(), "durkalski", 7.542, 3),
        (thyroids(), "obuchowski", 2.86, 2),
        (thyroids(), "durkalski", 2.32, 2),
    ],
)
def test_clustered_mcnemar_agrees_with_durkalski_2003(counts, method, statistic, digits):
    result = clustered_mcnemar(counts, method=method)

    assert round(result.statistic, digits) == statistic
    assert result.n_clusters == len(counts)


@pytest.mark.parametrize(("counts", "statistic"), [(psychiatry(), 11.8451), (thyroids(), 4.5)])
def test_unclustered_statistic_agrees_with_durkalski_2003(counts, statistic):
    """The data are those of the paper: the plain McNemar statistic is the one it prints."""
    b, c = np.sum(counts, axis=0)[1:3]

    plain = mcnemar(
        PairedTable(both=0, first_only=int(b), second_only=int(c), neither=0), method="uncorrected"
    )

    assert plain.statistic == pytest.approx(statistic, abs=5e-5)


def naive(counts, method):
    """Loop over clusters in the words of the two papers."""
    total, squares, size = 0.0, 0.0, 0
    for row in counts:
        if sum(row) == 0:
            continue
        difference = row[1] - row[2]
        if method == "durkalski":
            difference /= sum(row)
        total += difference
        squares += difference * difference
        size += 1
    if squares == 0:
        return 0.0
    statistic = total * total / squares
    return statistic * (size - 1) / size if method == "obuchowski" else statistic


tables = st.lists(
    st.tuples(*[st.integers(0, 6)] * 4).filter(lambda row: sum(row) > 0), min_size=2, max_size=15
)


@settings(deadline=None)
@given(counts=tables, method=st.sampled_from(["obuchowski", "durkalski"]))
def test_clustered_mcnemar_agrees_with_a_naive_loop(counts, method):
    result = clustered_mcnemar(counts, method=method)

    assert result.statistic == pytest.approx(naive(counts, method), rel=1e-12)
    assert result.p_value == pytest.approx(
        math.erfc(math.sqrt(naive(counts, method) / 2)), rel=1e-9
    )
    assert 0 <= result.p_value <= 1
    assert (result.first_only, result.second_only) == tuple(np.sum(counts, axis=0)[1:3])


@settings(deadline=None)
@given(counts=tables, method=st.sampled_from(["obuchowski", "durkalski"]))
def test_clustered_mcnemar_is_free_of_order_and_direction(counts, method):
    """Clusters may come in any order, and swapping the conditions swaps the discordant counts."""
    swapped = [(a, c, b, d) for a, b, c, d in reversed(counts)]

    result, other = (
        clustered_mcnemar(counts, method=method),
        clustered_mcnemar(swapped, method=method),
    )

    assert other.statistic == pytest.approx(result.statistic, rel=1e-12)
    assert (other.first_only, other.second_only) == (result.second_only, result.first_only)


@settings(deadline=None)
@given(cells=st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_one_pair_a_cluster_is_the_plain_test(cells):
    """With clusters of one pair Durkalski's statistic is McNemar's, Obuchowski's (K-1)/K of it."""
    counts = np.eye(4, dtype=int)[cells]
    table = PairedTable(
        **dict(
            zip(
                ("both", "first_only", "second_only", "neither"),
                counts.sum(axis=0).tolist(),
                strict=True,
            )
        )
    )
    plain = mcnemar(table, method="uncorrected")

    durkalski = clustered_mcnemar(counts, method="durkalski")
    obuchowski = clustered_mcnemar(counts, method="obuchowski")

    assert durkalski.statistic == pytest.approx(plain.statistic, rel=1e-12)
    assert durkalski.p_value == pytest.approx(plain.p_value, rel=1e-12)
    share = (len(cells) - 1) / len(cells)
    assert obuchowski.statistic == pytest.approx(share * plain.statistic, rel=1e-12)


def test_copies_of_a_pair_do_not_count_as_evidence():
    """Ten copies of each pair leave the clustered tests as they were; the plain test explodes."""
    single = np.eye(4, dtype=int)[[1, 1, 1, 1, 1, 1, 2, 2, 0, 3, 3, 3]]

    for method in ("obuchowski", "durkalski"):
        once, tenfold = (
            clustered_mcnemar(single, method=method),
            clustered_mcnemar(10 * single, method=method),
        )
        assert tenfold.statistic == pytest.approx(once.statistic, rel=1e-12)


def test_no_flip_gives_p_of_one():
    result = clustered_mcnemar([[2, 0, 0, 1], [0, 1, 1, 0]])

    assert (result.statistic, result.p_value) == (0.0, 1.0)


def test_clusters_without_pairs_are_left_out():
    counts = [[0, 2, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0], [0, 1, 0, 0]]

    result = clustered_mcnemar(counts)

    assert result == clustered_mcnemar([counts[0], counts[2], counts[3]])
    assert result.n_clusters == 3


def test_one_cluster_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="one cluster"):
        result = clustered_mcnemar([[3, 5, 1, 2]])

    assert math.isnan(result.statistic)
    assert math.isnan(result.p_value)


@pytest.mark.parametrize(
    ("counts", "options", "error", "message"),
    [
        ([[1, 2, 3]], {}, ValueError, r"shape \(n_clusters, 4\).*got \(1, 3\)"),
        ([1, 2, 3, 4], {}, ValueError, r"shape \(n_clusters, 4\)"),
        ([[1, -1, 0, 0]], {}, ValueError, r"row 0 is \[1, -1, 0, 0\]"),
        ([[1, 0, 0, 0], [0, 0.5, 0, 0]], {}, ValueError, "row 1 is"),
        ([[1, np.nan, 0, 0]], {}, ValueError, "row 0 is"),
        ([[0, 0, 0, 0]], {}, ValueError, "hold no pair"),
        (np.empty((0, 4)), {}, ValueError, "hold no pair"),
        ([["a", "b", "c", "d"]], {}, TypeError, "whole numbers"),
        ([[1, 1, 0, 0]], {"method": "yang"}, ValueError, "obuchowski, durkalski; got 'yang'"),
    ],
)
def test_clustered_mcnemar_rejects_bad_input(counts, options, error, message):
    with pytest.raises(error, match=message):
        clustered_mcnemar(counts, **options)
