import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PairedTable, discordant_odds_ratio, mcnemar
from surface_consistency.metrics.paired.odds_ratio import DISCORDANT_ODDS


def table(b, c):
    return PairedTable(both=3, first_only=b, second_only=c, neither=5)


# StatsDirect help, "McNemar and exact test for matched pairs", Armitage and Berry 1994 p. 127:
# 12 and 2 discordant pairs, R' = 6, exact 95 % interval 1.335744 to 55.197091.
def test_discordant_odds_ratio_agrees_with_statsdirect():
    result = discordant_odds_ratio(table(12, 2))

    assert result.odds_ratio == 6
    assert result.interval.low == pytest.approx(1.335744, abs=5e-7)
    assert result.interval.high == pytest.approx(55.197091, abs=5e-6)


@settings(deadline=None)
@given(
    b=st.integers(0, 400),
    c=st.integers(0, 400),
    confidence=st.sampled_from([0.8, 0.95, 0.99]),
    method=st.sampled_from(["exact", "wilson"]),
)
def test_interval_agrees_with_scipy(b, c, confidence, method):
    """The bounds are the odds at scipy's binomial bounds."""
    stats = pytest.importorskip("scipy.stats")
    if b + c == 0:
        return
    share = stats.binomtest(b, b + c).proportion_ci(confidence, method=method)

    result = discordant_odds_ratio(table(b, c), confidence=confidence, method=method)

    assert result.interval.low / (1 + result.interval.low) == pytest.approx(share.low, abs=1e-9)
    high = result.interval.high
    assert (1.0 if math.isinf(high) else high / (1 + high)) == pytest.approx(share.high, abs=1e-9)
    assert result.interval.low <= result.odds_ratio <= result.interval.high


@settings(deadline=None)
@given(b=st.integers(1, 300), c=st.integers(1, 300), method=st.sampled_from(["exact", "wilson"]))
def test_swapped_conditions_give_the_reciprocal(b, c, method):
    result = discordant_odds_ratio(table(b, c), method=method)
    swapped = discordant_odds_ratio(table(b, c).swap(), method=method)

    assert swapped.odds_ratio == pytest.approx(1 / result.odds_ratio, rel=1e-12)
    assert swapped.interval.low == pytest.approx(1 / result.interval.high, rel=1e-6)
    assert swapped.interval.high == pytest.approx(1 / result.interval.low, rel=1e-6)


@settings(deadline=None)
@given(b=st.integers(0, 60), c=st.integers(0, 60))
def test_exact_interval_excludes_one_where_the_exact_test_is_significant(b, c):
    if b + c == 0:
        return

    result = discordant_odds_ratio(table(b, c))

    excludes = result.interval.low > 1 or result.interval.high < 1
    assert excludes == (mcnemar(table(b, c), method="exact").p_value < 0.05)


@pytest.mark.parametrize("method", ["exact", "wilson"])
def test_empty_side_has_one_finite_bound(method):
    none_second = discordant_odds_ratio(table(4, 0), method=method)
    none_first = discordant_odds_ratio(table(0, 4), method=method)

    assert math.isinf(none_second.odds_ratio)
    assert math.isinf(none_second.interval.high)
    assert 0 < none_second.interval.low < math.inf
    assert (none_first.odds_ratio, none_first.interval.low) == (0, 0)
    assert 0 < none_first.interval.high < math.inf


def test_discordant_odds_ratio_without_flips_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no pair is discordant"):
        result = discordant_odds_ratio(table(0, 0))

    assert math.isnan(result.odds_ratio)
    assert math.isnan(result.interval.low)


def test_odds_as_a_statistic_agree_with_the_result():
    assert DISCORDANT_ODDS([3, 12, 2, 5]) == discordant_odds_ratio(table(12, 2)).odds_ratio


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "wald"}, "'exact' or 'wilson'; got 'wald'"), ({"confidence": 1}, "strictly")],
)
def test_discordant_odds_ratio_rejects_unknown_options(options, message):
    with pytest.raises(ValueError, match=message):
        discordant_odds_ratio(table(1, 2), **options)


def test_discordant_odds_ratio_rejects_what_is_no_table():
    with pytest.raises(TypeError, match="table must be a PairedTable; got list: count verdicts"):
        discordant_odds_ratio([1, 2, 3, 4])
