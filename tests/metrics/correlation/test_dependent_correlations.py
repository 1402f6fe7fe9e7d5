import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import steiger_test, zou_interval

correlations = st.floats(-0.95, 0.95)
LEVELS = [0.5, 0.9, 0.95, 0.99]


def have_data(a, b, c):
    return 1 - a * a - b * b - c * c + 2 * a * b * c > 1e-6


@pytest.mark.parametrize(
    ("values", "statistic", "p_value"),
    [
        # cocor.dep.groups.overlap of R; 0.4, 0.5, 0.1 with n = 103 is the example of Steiger 1980.
        ((0.4, 0.5, 0.1, 103), -0.88871847, 0.3741544),
        ((0.3, 0.4, 0.5, 100), -1.0718, 0.2838),
        ((0.2, 0.5, 0.1, 315), -4.41518276, 1.009e-05),
        (
            (0.693458895410494, 0.695966022434845, 0.988475791500198, 5105),
            -1.64435612,
            0.10010266,
        ),
    ],
)
def test_steiger_test_agrees_with_cocor(values, statistic, p_value):
    r_jk, r_jh, r_kh, n = values

    z, p = steiger_test(r_jk, r_jh, r_kh=r_kh, n=n)

    assert z == pytest.approx(statistic, abs=5e-5 if statistic == -1.0718 else 1e-8)
    assert p == pytest.approx(p_value, rel=5e-4)


def test_zou_interval_agrees_with_the_published_one():
    # Zou 2007, example 2: 95 % interval (-0.093, 0.517).
    low, high, _ = zou_interval(0.396, 0.179, r_kh=0.088, n=66)

    assert (low, high) == pytest.approx((-0.093, 0.517), abs=5e-4)


def test_p_value_of_zou_is_the_level_at_which_its_interval_reaches_0():
    p_value = zou_interval(0.396, 0.179, r_kh=0.088, n=66)[2]

    at_edge = zou_interval(0.396, 0.179, r_kh=0.088, n=66, confidence_level=1 - p_value)
    assert at_edge[0] == pytest.approx(0, abs=1e-9)
    assert 0.05 < p_value < 0.3
    assert p_value == pytest.approx(steiger_test(0.396, 0.179, r_kh=0.088, n=66)[1], rel=0.05)


@given(
    a=correlations,
    b=correlations,
    c=correlations,
    n=st.integers(4, 5000),
    level=st.sampled_from(LEVELS),
)
@settings(deadline=None)
def test_interval_excludes_0_exactly_if_the_test_rejects(a, b, c, n, level):
    assume(have_data(a, b, c))
    low, high, p_value = zou_interval(a, b, r_kh=c, n=n, confidence_level=level)

    assume(abs(p_value - (1 - level)) > 1e-9)
    assert (p_value < 1 - level) == (low > 0 or high < 0)


def test_claim_of_redirectqa_holds():
    """Pythia-12B, canonical names: entity frequency correlates more with accuracy, p < 0.01."""
    # Table 5 and appendix B.3 of arXiv 2604.21882; at most 2,112 canonical instances (one a fact).
    z, p_value = steiger_test(0.244, 0.197, r_kh=0.8291, n=2112)
    low, _, p_of_zou = zou_interval(0.244, 0.197, r_kh=0.8291, n=2112)

    assert z > 0
    assert max(p_value, p_of_zou) < 0.01
    assert low > 0


@given(a=correlations, b=correlations, c=correlations, n=st.integers(4, 5000))
@settings(deadline=None)
def test_swapping_the_correlations_changes_the_sign(a, b, c, n):
    assume(have_data(a, b, c))
    z, p_value = steiger_test(a, b, r_kh=c, n=n)
    low, high, p_of_zou = zou_interval(a, b, r_kh=c, n=n)

    assert steiger_test(b, a, r_kh=c, n=n) == pytest.approx((-z, p_value), rel=1e-6, abs=1e-12)
    assert zou_interval(b, a, r_kh=c, n=n) == pytest.approx((-high, -low, p_of_zou), rel=1e-6)
    assert 0 <= p_value <= 1
    assert 0 <= p_of_zou <= 1
    assert low <= a - b <= high


@given(r=correlations, c=correlations, n=st.integers(4, 5000))
@settings(deadline=None)
def test_equal_correlations_do_not_differ(r, c, n):
    assume(have_data(r, r, c))
    low, high, p_of_zou = zou_interval(r, r, r_kh=c, n=n)

    assert steiger_test(r, r, r_kh=c, n=n) == (0, 1)
    assert p_of_zou == 1
    assert low < 0 < high


def test_level_of_the_tests_is_nominal():
    """Of 3,000 samples with equal correlations, about 5 % are significant at 0.05."""
    rng = np.random.default_rng(1)
    covariance = np.array([[1, 0.4, 0.4], [0.4, 1, 0.6], [0.4, 0.6, 1]])
    draws = rng.multivariate_normal(np.zeros(3), covariance, size=(3000, 50))
    rejected = np.zeros(2)
    covered = 0
    for rows in draws:
        matrix = np.corrcoef(rows, rowvar=False)
        values = {"r_kh": matrix[1, 2], "n": 50}
        low, high, p_of_zou = zou_interval(matrix[0, 1], matrix[0, 2], **values)
        p_value = steiger_test(matrix[0, 1], matrix[0, 2], **values)[1]
        rejected += np.array([p_value, p_of_zou]) < 0.05
        covered += low <= 0 <= high

    assert ((rejected > 0.04 * 3000) & (rejected < 0.06 * 3000)).all()
    assert covered == 3000 - rejected[1]


@pytest.mark.parametrize("values", [(1.0, 0.5, 0.5, 20), (0.5, -1.0, -0.5, 20), (0.5, 0.5, 1, 20)])
@pytest.mark.parametrize("function", [steiger_test, zou_interval])
def test_perfect_correlations_are_nan_with_a_warning(values, function):
    r_jk, r_jh, r_kh, n = values

    with pytest.warns(UndefinedMetricWarning, match="a correlation is perfect in r_jk") as caught:
        result = function(r_jk, r_jh, r_kh=r_kh, n=n)

    assert all(map(math.isnan, result))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ((1.1, 0, 0, 20), ValueError, r"r_jk must lie in \[-1, 1\]; got 1\.1"),
        ((0.1, math.nan, 0, 20), ValueError, r"r_jh must lie in \[-1, 1\]; got nan"),
        ((0.1, 0, -2, 20), ValueError, r"r_kh must lie in \[-1, 1\]; got -2"),
        ((0.9, 0.9, -0.9, 20), ValueError, "no data have the correlations r_jk=0.9, r_jh=0.9"),
        ((0.1, 0.2, 0.3, 3), ValueError, "n must be at least 4 to compare correlations; got 3"),
        ((0.1, 0.2, 0.3, 20.0), TypeError, "n must be an integer count"),
    ],
)
@pytest.mark.parametrize("function", [steiger_test, zou_interval])
def test_comparison_rejects_bad_arguments(values, error, message, function):
    r_jk, r_jh, r_kh, n = values

    with pytest.raises(error, match=message):
        function(r_jk, r_jh, r_kh=r_kh, n=n)


def test_zou_interval_rejects_a_bad_level():
    with pytest.raises(ValueError, match="confidence_level must lie strictly"):
        zou_interval(0.1, 0.2, r_kh=0.3, n=20, confidence_level=95)


def test_opposite_variables_without_correlation_do_not_differ():
    assert steiger_test(0.0, 0.0, r_kh=-1.0, n=20)[1] == 1.0
    assert zou_interval(0.0, 0.0, r_kh=-1.0, n=20)[2] == 1.0


def test_p_value_of_certain_differences_is_almost_0():
    assert zou_interval(0.9, -0.9, r_kh=-0.9, n=50_000)[2] < 1e-300
