import math

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    CountRatio,
    design_effect,
    minimum_detectable_difference,
    required_pairs,
)
from tests.refusals import refusals

shares = st.floats(0.01, 1.0)


# R, MESS 0.5: round(power_mcnemar_test(paid = 0.05, psi = 45/5, power = .8)$n) is 22 in the
# package's own tests, so the smallest whole number is 22 or 23. Duffy 1984: 12.5 % against 25 % at
# a power of 90 % needs 248 pairs.
@pytest.mark.parametrize(
    ("rare", "ratio", "options", "pairs"),
    [
        (0.05, 9, {}, (22, 23)),
        (0.125, 2, {"power": 0.9}, (248, 249)),
        # With alternative = "one.sided" n is 17; one side at 5 % is two sides at 10 %.
        (0.05, 9, {"significance": 0.1}, (17, 18)),
    ],
)
def test_required_pairs_agree_with_r(rare, ratio, options, pairs):
    difference, rate = rare * ratio - rare, rare * ratio + rare

    assert required_pairs(difference, discordant_rate=rate, **options) in pairs
    assert required_pairs(-difference, discordant_rate=rate, **options) in pairs


@settings(deadline=None)
@given(
    rate=shares,
    share=st.floats(0.05, 0.999),
    power=st.floats(0.5, 0.99),
    significance=st.sampled_from([0.01, 0.05, 0.2]),
    effect=st.floats(0.5, 6.0),
)
@pytest.mark.filterwarnings("ignore:no difference can be detected")
def test_difference_and_pairs_invert_each_other(rate, share, power, significance, effect):
    """The required pairs detect the difference, and one pair fewer does not.

    Below a power of 1/2 larger differences may need more pairs in the approximation.
    """
    options = {"discordant_rate": rate, "power": power}
    options |= {"significance": significance, "design_effect": effect}
    difference = share * rate

    n = required_pairs(difference, **options)
    if n == 1:
        return

    assert minimum_detectable_difference(n, **options) <= difference * (1 + 1e-9)
    found = minimum_detectable_difference(n - 1, **options)
    assert math.isnan(found) or found >= difference * (1 - 1e-9)


def test_design_effect_divides_the_pairs():
    plain = minimum_detectable_difference(1000, discordant_rate=0.2)

    assert minimum_detectable_difference(2500, discordant_rate=0.2, design_effect=2.5) == plain
    assert required_pairs(0.05, discordant_rate=0.2, design_effect=2.0) == pytest.approx(
        2 * required_pairs(0.05, discordant_rate=0.2), abs=2
    )


@pytest.mark.parametrize(
    ("n", "options"), [(0, {}), (1, {}), (5, {}), (3, {"discordant_rate": 1.0, "power": 0.9})]
)
def test_detectable_difference_of_too_few_pairs_is_nan(n, options):
    with pytest.warns(UndefinedMetricWarning, match=f"{n} pairs .* are too few"):
        assert math.isnan(minimum_detectable_difference(n, **{"discordant_rate": 0.2} | options))


OPTIONS = [
    ({"discordant_rate": 0}, "discordant_rate must be in"),
    ({"discordant_rate": 1.2}, "discordant_rate must be in"),
    ({"power": 1}, "power must be strictly"),
    ({"significance": 0}, "significance must be strictly"),
    ({"design_effect": 0}, "design_effect must be above 0"),
    ({"design_effect": math.nan}, "design_effect must be above 0"),
    # At a power of significance / 2 no pairs are needed.
    ({"power": 0.025}, "power must exceed significance / 2.*power=0.025"),
    ({"power": 0.01}, "power must exceed significance / 2.*power=0.01"),
    ({"power": 0.1, "significance": 0.3}, "power must exceed significance / 2.*power=0.1"),
]
test_power_rejects_options_out_of_range = refusals(
    lambda call, n, options: call(n, **{"discordant_rate": 0.2} | options),
    *((required_pairs, 0.01, *row) for row in OPTIONS),
    *((minimum_detectable_difference, 100, *row) for row in OPTIONS),
    *((required_pairs, n, {}, "difference must be betw") for n in (0.0, 0.3, math.nan)),
    (minimum_detectable_difference, 100.5, {}, TypeError, "n_pairs must be an integer"),
)


counts_of_clusters = st.lists(
    st.tuples(*[st.integers(0, 4)] * 4).filter(lambda row: sum(row) > 0), min_size=2, max_size=12
)


@settings(deadline=None)
@given(counts=counts_of_clusters)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_design_effect_agrees_with_a_naive_loop(counts):
    """Residuals of single pairs, summed within clusters or not, give the two variances."""
    n = sum(sum(row) for row in counts)
    difference = sum(c - b for _, b, c, _ in counts) / n
    by_pair, by_cluster = 0.0, 0.0
    for row in counts:
        residuals = [
            value - difference
            for value, k in zip((0, -1, 1, 0), row, strict=True)
            for _ in range(k)
        ]
        by_pair += sum(r * r for r in residuals)
        by_cluster += sum(residuals) ** 2
    size = len(counts)

    effect = design_effect(counts)
    own = CountRatio(numerator=(0, -1, 1, 0), denominator=(1, 1, 1, 1))

    assert design_effect(counts, rate=own) == pytest.approx(effect, nan_ok=True)
    if math.isnan(effect):
        assert by_pair == pytest.approx(0, abs=1e-9) or n == size == 1
    else:
        expected = (by_cluster * size / (size - 1)) / (by_pair * n / (n - 1))
        assert effect == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        ([[3, 1, 0, 0]], "consistency"),
        ([[3, 0, 0, 0], [2, 0, 0, 0]], "consistency"),
        ([[0, 0, 1, 0], [0, 0, 1, 1]], "consistency_given_first_correct"),
    ],
)
def test_design_effect_of_a_constant_rate_is_undefined(counts, rate):
    with pytest.warns(UndefinedMetricWarning, match="design effect is undefined"):
        effect = design_effect(counts, rate=rate)

    assert math.isnan(effect)


test_design_effect_rejects_bad_input = refusals(
    lambda counts, rate: design_effect(counts, rate=rate),
    ([[1, 1, 1, 1]], "recall", "one of consistency, flip_rate.*got 'recall'"),
    ([[1, 1, 1, 1]], 3, TypeError, "a name or a CountRatio; got int"),
    ([[1, 1, 1]], "consistency", "shape"),
)


@settings(deadline=None)
@given(n_pairs=st.integers(1, 40), discordant_rate=shares, power=st.floats(0.55, 0.99))
@pytest.mark.filterwarnings("ignore:no difference can be detected")
def test_detectable_difference_solves_its_equation(n_pairs, discordant_rate, power):
    """Squaring the equation adds roots that do not solve it; they are not returned."""
    found = minimum_detectable_difference(n_pairs, discordant_rate=discordant_rate, power=power)

    if not math.isnan(found):
        pairs = required_pairs(found, discordant_rate=discordant_rate, power=power)
        assert pairs in (n_pairs, n_pairs + 1)
