import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import minimum_detectable_difference, required_pairs

shares = st.floats(0.01, 1.0)


# R, MESS 0.5: round(power_mcnemar_test(paid = 0.05, psi = 45/5, power = .8)$n) is 22 in the
# package's own tests, so the smallest whole number is 22 or 23. Duffy 1984: 12.5 % against 25 % at
# a power of 90 % needs 248 pairs.
@pytest.mark.parametrize(
    ("rare", "ratio", "power", "pairs"), [(0.05, 9, 0.8, (22, 23)), (0.125, 2, 0.9, (248, 249))]
)
def test_required_pairs_agree_with_r(rare, ratio, power, pairs):
    found = required_pairs(rare * ratio - rare, discordant_rate=rare * ratio + rare, power=power)

    assert found in pairs


# R, MESS 0.5: power_mcnemar_test(paid = 0.05, psi = 9, power = .8, alternative = "one.sided") has
# n of 17; one side at 5 % is two sides at 10 %.
def test_required_pairs_agree_with_r_one_sided():
    found = required_pairs(0.4, discordant_rate=0.5, significance=0.1)

    assert found in (17, 18)


@settings(deadline=None)
@given(
    rate=shares,
    share=st.floats(0.05, 0.999),
    power=st.floats(0.5, 0.99),
    significance=st.sampled_from([0.01, 0.05, 0.2]),
    effect=st.floats(0.5, 6.0),
)
def test_difference_and_pairs_invert_each_other(rate, share, power, significance, effect):
    """The pairs required for a difference find that difference, and one pair fewer does not.

    Below a power of 1/2 larger differences need not need fewer pairs in the approximation.
    """
    options = {
        "discordant_rate": rate,
        "power": power,
        "significance": significance,
        "design_effect": effect,
    }
    difference = share * rate

    n = required_pairs(difference, **options)
    if n == 1:
        return

    assert minimum_detectable_difference(n, **options) <= difference * (1 + 1e-9)
    before = n - 1
    found = detectable(before, options)
    assert math.isnan(found) or found >= difference * (1 - 1e-9)


def detectable(n, options):
    """The difference, whether or not it warns."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return minimum_detectable_difference(n, **options)


@pytest.mark.parametrize(("n", "rate", "power"), [(500, 0.24, 0.8), (2000, 0.1, 0.9)])
def test_detectable_difference_has_the_power_in_simulation(n, rate, power):
    """Tables drawn with that difference are found about as often as asked for."""
    rng = np.random.default_rng(12)
    difference = minimum_detectable_difference(n, discordant_rate=rate, power=power)

    draws = rng.multinomial(
        n, [1 - rate, (rate + difference) / 2, (rate - difference) / 2], size=20_000
    )
    b, c = draws[:, 1], draws[:, 2]
    statistic = (b - c) ** 2 / (b + c)

    assert (statistic > 3.841459).mean() == pytest.approx(power, abs=0.015)


def test_design_effect_divides_the_pairs():
    plain = minimum_detectable_difference(1000, discordant_rate=0.2)

    assert minimum_detectable_difference(2500, discordant_rate=0.2, design_effect=2.5) == plain
    assert required_pairs(0.05, discordant_rate=0.2, design_effect=2.0) == pytest.approx(
        2 * required_pairs(0.05, discordant_rate=0.2), abs=2
    )


def test_required_pairs_are_free_of_the_sign():
    assert required_pairs(-0.05, discordant_rate=0.2) == required_pairs(0.05, discordant_rate=0.2)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_too_few_pairs_find_nothing(n):
    with pytest.warns(UndefinedMetricWarning, match=f"{n} pairs .* are too few"):
        found = minimum_detectable_difference(n, discordant_rate=0.2)

    assert math.isnan(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discordant_rate": 0}, "discordant_rate must lie in"),
        ({"discordant_rate": 1.2}, "discordant_rate must lie in"),
        ({"discordant_rate": 0.2, "power": 1}, "power must lie strictly"),
        ({"discordant_rate": 0.2, "significance": 0}, "significance must lie strictly"),
        ({"discordant_rate": 0.2, "design_effect": 0}, "design_effect must be above 0"),
        ({"discordant_rate": 0.2, "design_effect": math.nan}, "design_effect must be above 0"),
    ],
)
def test_power_rejects_shares_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        required_pairs(0.01, **options)
    with pytest.raises(ValueError, match=message):
        minimum_detectable_difference(100, **options)


@pytest.mark.parametrize("difference", [0.0, 0.3, math.nan])
def test_required_pairs_reject_impossible_differences(difference):
    with pytest.raises(ValueError, match="difference must lie between 0 and discordant_rate"):
        required_pairs(difference, discordant_rate=0.2)


def test_detectable_difference_rejects_what_is_no_count():
    with pytest.raises(TypeError, match="n_pairs must be an integer"):
        minimum_detectable_difference(100.5, discordant_rate=0.2)


@pytest.mark.parametrize(("power", "significance"), [(0.025, 0.05), (0.01, 0.05), (0.1, 0.3)])
def test_power_rejects_what_chance_alone_reaches(power, significance):
    """At a power of significance / 2 no pairs are needed, and below it fewer would do better."""
    options = {"discordant_rate": 0.2, "power": power, "significance": significance}

    with pytest.raises(ValueError, match=f"power must exceed significance / 2.*power={power}"):
        required_pairs(0.01, **options)
    with pytest.raises(ValueError, match=f"power must exceed significance / 2.*power={power}"):
        minimum_detectable_difference(100, **options)
