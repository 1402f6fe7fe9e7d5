import csv
import math
from fractions import Fraction
from functools import reduce
from operator import add

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.metrics import PairedTable, mcnemar

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
    ],
)
def test_mcnemar_agrees_with_reference_values(b, c, method, statistic, p_value):
    result = mcnemar(discordant(b, c), method=method)

    assert result.statistic == pytest.approx(statistic, abs=5e-7)
    if p_value is not None:
        assert result.p_value == pytest.approx(p_value, rel=2e-7, abs=0)
    assert (result.method, result.first_only, result.second_only) == (method, b, c)


# Recomputed from the published cells of the audit of forgetting (arXiv 2607.00605, figure 7).
@pytest.mark.parametrize(
    ("variant", "b", "c", "method", "expected"),
    [
        ("Base", 69, 2, "corrected", 61.3521),
        ("Alias", 236, 4, "corrected", 222.3375),
        ("Collision", 194, 2, "corrected", 186.1276),
        ("Noise", 418, 3, "corrected", 407.1164),
        ("Released", 4, 0, "exact", 0.125),
    ],
)
def test_mcnemar_agrees_with_the_audit(shared_dir, variant, b, c, method, expected):
    with (shared_dir / "golden" / "audit_contingencies.csv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["variant"].startswith(variant)]
    tables = [
        PairedTable(
            both=int(row["a"]),
            first_only=int(row["b"]),
            second_only=int(row["c"]),
            neither=int(row["d"]),
        )
        for row in rows
    ]

    result = mcnemar(reduce(add, tables))

    assert (result.first_only, result.second_only, result.method) == (b, c, method)
    value = result.statistic if method == "corrected" else result.p_value
    assert value == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_mcnemar_without_discordant_pairs_is_certain(method):
    result = mcnemar(discordant(0, 0), method=method)

    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert result.method == ("exact" if method == "auto" else method)


@pytest.mark.parametrize(("b", "c", "method"), [(25, 0, "exact"), (13, 12, "exact")])
def test_auto_is_exact_up_to_25_discordant_pairs(b, c, method):
    assert mcnemar(discordant(b, c)).method == method
    assert mcnemar(discordant(b + 1, c)).method == "corrected"


@pytest.mark.parametrize("method", METHODS)
def test_mcnemar_of_equal_counts_is_certain(method):
    """As many flips either way speak for no difference at all, in every form of the test."""
    result = mcnemar(discordant(30, 30), method=method)

    assert result.p_value == pytest.approx(1.0)


def test_mcnemar_p_value_is_exact_in_the_far_tail():
    """The survival function keeps the digits that 1 - cdf would lose."""
    p_value = mcnemar(discordant(418, 3), method="corrected").p_value

    # scipy 1.17.1: scipy.stats.chi2.sf((418 - 3 - 1) ** 2 / 421, 1)
    assert p_value == pytest.approx(1.5553199643904934e-90, rel=1e-10, abs=0)


@given(b=st.integers(0, 300), c=st.integers(0, 300))
@settings(deadline=None)
def test_exact_p_values_agree_with_rational_arithmetic(b, c):
    fewer, total = min(b, c), b + c
    tail = sum(Fraction(math.comb(total, k), 2**total) for k in range(fewer + 1))
    observed = Fraction(math.comb(total, fewer), 2**total)

    exact = mcnemar(discordant(b, c), method="exact")
    mid = mcnemar(discordant(b, c), method="mid-p")

    assert exact.p_value == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-10, abs=0)
    if total:
        assert mid.p_value == pytest.approx(float(2 * tail - observed), rel=1e-10, abs=0)


@given(b=st.integers(0, 500), c=st.integers(0, 500), method=st.sampled_from(METHODS))
@settings(deadline=None)
def test_mcnemar_is_symmetric_and_bounded(b, c, method):
    table = discordant(b, c)

    result, swapped = mcnemar(table, method=method), mcnemar(table.swap(), method=method)

    assert (result.statistic, result.p_value) == (swapped.statistic, swapped.p_value)
    assert 0 <= result.p_value <= 1
    assert result.statistic >= 0


@given(b=st.integers(0, 400), c=st.integers(0, 400))
@settings(deadline=None)
def test_mid_p_is_at_most_exact(b, c):
    table = discordant(b, c)

    mid, exact = mcnemar(table, method="mid-p"), mcnemar(table, method="exact")

    assert mid.p_value <= exact.p_value + 1e-12


@pytest.mark.parametrize(("b", "c"), [(1, 0), (3, 11), (40, 8), (121, 59), (86, 150), (418, 3)])
def test_mcnemar_agrees_with_statsmodels(b, c):
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    cells = [[10, b], [c, 20]]

    exact = contingency.mcnemar(cells, exact=True)
    corrected = contingency.mcnemar(cells, exact=False, correction=True)
    uncorrected = contingency.mcnemar(cells, exact=False, correction=False)

    for method, other in [("exact", exact), ("corrected", corrected), ("uncorrected", uncorrected)]:
        ours = mcnemar(discordant(b, c), method=method)
        assert ours.statistic == pytest.approx(other.statistic)
        assert ours.p_value == pytest.approx(other.pvalue, rel=1e-9, abs=0)


def test_mcnemar_rejects_an_unknown_method():
    with pytest.raises(ValueError, match=r"method must be one of auto, exact.*got 'yates'"):
        mcnemar(discordant(1, 2), method="yates")


def test_mcnemar_rejects_what_is_no_table():
    with pytest.raises(TypeError, match="table must be a PairedTable; got tuple: count verdicts"):
        mcnemar((1, 2, 3, 4))
