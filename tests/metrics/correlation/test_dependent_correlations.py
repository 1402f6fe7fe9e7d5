import math

import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import steiger_test, zou_interval

correlations = st.floats(-0.95, 0.95)


@pytest.mark.parametrize(
    ("values", "statistic", "p_value", "digits"),
    [
        # cocor.dep.groups.overlap of R; 0.4, 0.5, 0.1 with n = 103 is the example of Steiger 1980.
        ((0.4, 0.5, 0.1, 103), -0.88871847, 0.3741544, 1e-8),
        ((0.3, 0.4, 0.5, 100), -1.0718, 0.2838, 5e-5),
        ((0.2, 0.5, 0.1, 315), -4.41518276, 1.009e-05, 1e-8),
        (
            (0.693458895410494, 0.695966022434845, 0.988475791500198, 5105),
            -1.64435612,
            0.1001,
            1e-8,
        ),
    ],
)
def test_steiger_test_agrees_with_cocor(values, statistic, p_value, digits):
    r_jk, r_jh, r_kh, n = values

    z, p = steiger_test(r_jk, r_jh, r_kh=r_kh, n=n)

    assert z == pytest.approx(statistic, abs=digits)
    assert p == pytest.approx(p_value, rel=5e-4)


def test_zou_interval_agrees_with_the_published_one_and_reaches_0_at_its_p_value():
    # Zou 2007, example 2: 95 % interval (-0.093, 0.517).
    low, high, p_value = zou_interval(0.396, 0.179, r_kh=0.088, n=66)

    assert (low, high) == pytest.approx((-0.093, 0.517), abs=5e-4)
    at_edge = zou_interval(0.396, 0.179, r_kh=0.088, n=66, confidence=1 - p_value)
    assert at_edge[0] == pytest.approx(0, abs=1e-9)
    assert p_value == pytest.approx(steiger_test(0.396, 0.179, r_kh=0.088, n=66)[1], rel=0.05)


def test_published_comparison_of_redirectqa_is_significant():
    """Pythia-12B, canonical names: entity frequency correlates more with accuracy, p < 0.01."""
    # Table 5 and appendix B.3 of arXiv 2604.21882; at most 2,112 canonical instances, one per fact.
    z, p_value = steiger_test(0.244, 0.197, r_kh=0.8291, n=2112)
    low, _, p_of_zou = zou_interval(0.244, 0.197, r_kh=0.8291, n=2112)

    assert z > 0
    assert max(p_value, p_of_zou) < 0.01
    assert low > 0


@given(
    a=correlations,
    b=correlations,
    c=correlations,
    n=st.integers(4, 5000),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
@settings(deadline=None)
def test_swapping_changes_the_sign_and_intervals_exclude_0_if_the_test_rejects(
    a, b, c, n, confidence
):
    assume(1 - a * a - b * b - c * c + 2 * a * b * c > 1e-6)
    options = {"r_kh": c, "n": n}
    z, p_value = steiger_test(a, b, **options)
    low, high, p_of_zou = zou_interval(a, b, **options, confidence=confidence)

    assert steiger_test(b, a, **options) == pytest.approx((-z, p_value), rel=1e-6, abs=1e-12)
    swapped = zou_interval(b, a, **options, confidence=confidence)
    assert swapped == pytest.approx((-high, -low, p_of_zou), rel=1e-6)
    assert 0 <= p_value <= 1
    assert 0 <= p_of_zou <= 1
    assert low <= a - b <= high
    if abs(p_of_zou - (1 - confidence)) > 1e-9:
        assert (p_of_zou < 1 - confidence) == (low > 0 or high < 0)
    if 1 - 2 * a * a - c * c + 2 * a * a * c > 1e-6:
        assert steiger_test(a, a, **options) == (0, 1)
        low, high, p_of_zou = zou_interval(a, a, **options)
        assert p_of_zou == 1
        assert low < 0 < high


@pytest.mark.parametrize("values", [(1.0, 0.5, 0.5, 20), (0.5, -1.0, -0.5, 20), (0.5, 0.5, 1, 20)])
@pytest.mark.parametrize("function", [steiger_test, zou_interval])
def test_perfect_correlations_are_nan_with_a_warning(values, function):
    r_jk, r_jh, r_kh, n = values

    with pytest.warns(UndefinedMetricWarning, match="a correlation is perfect in r_jk") as caught:
        result = function(r_jk, r_jh, r_kh=r_kh, n=n)

    assert all(map(math.isnan, result))
    assert caught[0].filename == __file__


def test_extreme_cases_are_defined():
    assert steiger_test(0.0, 0.0, r_kh=-1.0, n=20)[1] == 1.0
    assert zou_interval(0.0, 0.0, r_kh=-1.0, n=20)[2] == 1.0
    assert zou_interval(0.9, -0.9, r_kh=-0.9, n=50_000)[2] < 1e-300


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ((1.1, 0, 0, 20), ValueError, r"r_jk must be in \[-1, 1\]; got 1\.1"),
        ((0.1, math.nan, 0, 20), ValueError, r"r_jh must be in \[-1, 1\]; got nan"),
        ((0.1, 0, -2, 20), ValueError, r"r_kh must be in \[-1, 1\]; got -2"),
        ((0.9, 0.9, -0.9, 20), ValueError, "no data have the correlations r_jk=0.9, r_jh=0.9"),
        ((0.1, 0.2, 0.3, 3), ValueError, "n must be at least 4 to compare correlations; got 3"),
        ((0.1, 0.2, 0.3, 20.0), TypeError, "n must be an integer count"),
        ((0.1, 0.2, 0.3, 20, 95), ValueError, "confidence must be strictly"),
    ],
)
@pytest.mark.parametrize("function", [steiger_test, zou_interval])
def test_comparison_rejects_bad_arguments(values, error, message, function):
    r_jk, r_jh, r_kh, n, *confidence = values
    options = {"confidence": confidence[0]} if confidence else {}
    function = zou_interval if confidence else function

    with pytest.raises(error, match=message):
        function(r_jk, r_jh, r_kh=r_kh, n=n, **options)
