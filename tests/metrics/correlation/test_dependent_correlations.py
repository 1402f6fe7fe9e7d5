import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.correlation.dependent_correlations import (
    compare_dependent_correlations,
)

TESTS = ["zou", "steiger", "dunn_clark", "williams", "meng", "hittner"]
correlations = st.floats(-0.95, 0.95)


def compare(values, method):
    r_jk, r_jh, r_kh, n = values
    return compare_dependent_correlations(r_jk, r_jh, r_kh=r_kh, n=n, method=method)


@pytest.mark.parametrize(
    ("method", "values", "statistic", "p_value"),
    [
        # cocor.dep.groups.overlap of R; 0.4, 0.5, 0.1 with n = 103 is the example of Steiger 1980.
        ("steiger", (0.4, 0.5, 0.1, 103), -0.88871847, 0.3741544),
        ("steiger", (0.3, 0.4, 0.5, 100), -1.0718, 0.2838),
        ("steiger", (0.2, 0.5, 0.1, 315), -4.41518276, 1.009e-05),
        (
            "steiger",
            (0.693458895410494, 0.695966022434845, 0.988475791500198, 5105),
            -1.64435612,
            0.10010266,
        ),
        ("dunn_clark", (0.4, 0.5, 0.1, 103), -0.88923671, None),
        ("dunn_clark", (0.5, 0.6, 0.7, 100), -1.58388511, 0.11321987),
        ("dunn_clark", (0.2, 0.5, 0.1, 315), -4.44115532, None),
        ("meng", (0.2, 0.5, 0.1, 315), -4.38993214, None),
        ("hittner", (0.2, 0.5, 0.1, 315), -4.40774402, None),
        ("williams", (0.4, 0.5, 0.1, 103), -0.8912799, None),
    ],
)
def test_comparison_agrees_with_cocor(method, values, statistic, p_value):
    result = compare(values, method)

    digits = 5e-5 if statistic == -1.0718 else 5e-9
    assert result.statistic == pytest.approx(statistic, abs=max(digits, 1e-8))
    if p_value is not None:
        assert result.p_value == pytest.approx(p_value, rel=5e-4)
    assert (result.method, result.n) == (method, values[3])


def test_zou_interval_agrees_with_the_published_one():
    # Zou 2007, example 2: 95 % interval (-0.093, 0.517).
    result = compare((0.396, 0.179, 0.088, 66), "zou")

    assert (result.difference_interval.low, result.difference_interval.high) == pytest.approx(
        (-0.093, 0.517), abs=5e-4
    )
    assert result.difference == pytest.approx(0.217)
    assert (result.difference_interval.method, result.difference_interval.confidence_level) == (
        "zou",
        0.95,
    )


def test_p_value_of_zou_is_the_level_at_which_its_interval_reaches_0():
    result = compare((0.396, 0.179, 0.088, 66), "zou")

    at_edge = compare_dependent_correlations(
        0.396, 0.179, r_kh=0.088, n=66, confidence_level=1 - result.p_value
    )
    assert at_edge.difference_interval.low == pytest.approx(0, abs=1e-9)
    assert 0.05 < result.p_value < 0.3
    steiger = compare((0.396, 0.179, 0.088, 66), "steiger")
    assert result.p_value == pytest.approx(steiger.p_value, rel=0.05)
    assert math.isnan(steiger.difference_interval.low)


@given(
    a=correlations,
    b=correlations,
    c=correlations,
    n=st.integers(4, 5000),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
@settings(deadline=None)
def test_interval_leaves_out_0_exactly_where_the_test_rejects(a, b, c, n, level):
    assume(1 - a * a - b * b - c * c + 2 * a * b * c > 1e-6)
    result = compare_dependent_correlations(a, b, r_kh=c, n=n, confidence_level=level)
    interval = result.difference_interval

    assume(abs(result.p_value - (1 - level)) > 1e-9)
    assert (result.p_value < 1 - level) == (interval.low > 0 or interval.high < 0)


def test_claim_of_redirectqa_holds():
    """Pythia-12B, canonical names: entity frequency correlates more with accuracy, p < 0.01."""
    # Table 5 and appendix B.3 of arXiv 2604.21882; at most 2,112 canonical instances (one a fact).
    for method in ("steiger", "zou"):
        result = compare((0.244, 0.197, 0.8291, 2112), method)

        assert result.statistic > 0
        assert result.p_value < 0.01
    assert result.difference_interval.low > 0


def test_williams_p_value_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    result = compare((0.4, 0.5, 0.1, 23), "williams")

    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(result.statistic), 20))


@given(
    a=correlations, b=correlations, c=correlations, n=st.integers(4, 5000), m=st.sampled_from(TESTS)
)
@settings(deadline=None)
def test_swapping_the_correlations_turns_the_sign(a, b, c, n, m):
    assume(1 - a * a - b * b - c * c + 2 * a * b * c > 1e-6)
    try:
        forth = compare((a, b, c, n), m)
    except UndefinedMetricWarning:
        assume(False)

    back = compare((b, a, c, n), m)

    assert back.statistic == pytest.approx(-forth.statistic, rel=1e-9, abs=1e-12)
    assert back.p_value == pytest.approx(forth.p_value, rel=1e-6, abs=1e-300)
    assert back.difference == -forth.difference
    bounds = (-back.difference_interval.high, -back.difference_interval.low)
    expected = (forth.difference_interval.low, forth.difference_interval.high)
    assert bounds == pytest.approx(expected, nan_ok=True)
    assert 0 <= forth.p_value <= 1
    assert (m == "zou") == (expected[0] <= forth.difference <= expected[1])


@given(r=correlations, c=correlations, n=st.integers(4, 5000), m=st.sampled_from(TESTS))
@settings(deadline=None)
def test_equal_correlations_do_not_differ(r, c, n, m):
    assume(1 - 2 * r * r - c * c + 2 * r * r * c > 1e-6)

    result = compare((r, r, c, n), m)

    assert (result.difference, result.statistic, result.p_value) == (0, 0, 1)
    assert (m == "zou") == (result.difference_interval.low < 0 < result.difference_interval.high)


@pytest.mark.parametrize("method", TESTS)
def test_level_of_the_tests_is_nominal(method):
    """Of 3,000 samples with equal correlations, about 5 % are significant at 0.05."""
    rng = np.random.default_rng(1)
    covariance = np.array([[1, 0.4, 0.4], [0.4, 1, 0.6], [0.4, 0.6, 1]])
    draws = rng.multivariate_normal(np.zeros(3), covariance, size=(3000, 50))
    significant = covered = 0
    for rows in draws:
        matrix = np.corrcoef(rows, rowvar=False)
        result = compare((matrix[0, 1], matrix[0, 2], matrix[1, 2], 50), method)
        significant += result.p_value < 0.05
        covered += result.difference_interval.low <= 0 <= result.difference_interval.high

    assert 0.04 < significant / 3000 < 0.06
    assert covered == (3000 - significant if method == "zou" else 0)


@pytest.mark.parametrize("values", [(1.0, 0.5, 0.5, 20), (0.5, -1.0, -0.5, 20), (0.5, 0.5, 1, 20)])
@pytest.mark.parametrize("method", TESTS)
def test_perfect_correlations_are_nan_with_a_warning(values, method):
    with pytest.warns(UndefinedMetricWarning, match="a correlation is perfect in r_jk") as caught:
        result = compare(values, method)

    assert math.isnan(result.statistic)
    assert math.isnan(result.p_value)
    assert math.isnan(result.difference_interval.low)
    assert caught[0].filename == __file__


def test_correlations_that_cannot_be_pooled_are_nan_with_a_warning():
    with pytest.warns(
        UndefinedMetricWarning, match="too far apart to be pooled; method='williams'"
    ):
        result = compare((0.516, 0.981, 0.494, 20), "hittner")

    assert math.isnan(result.statistic)
    assert compare((0.516, 0.981, 0.494, 20), "williams").p_value < 0.01
    zou = compare((0.516, 0.981, 0.494, 20), "zou")
    assert zou.p_value < 0.01
    assert zou.difference_interval.high < 0


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        ((1.1, 0, 0, 20), {}, ValueError, r"r_jk must lie in \[-1, 1\]; got 1\.1"),
        ((0.1, math.nan, 0, 20), {}, ValueError, r"r_jh must lie in \[-1, 1\]; got nan"),
        ((0.1, 0, -2, 20), {}, ValueError, r"r_kh must lie in \[-1, 1\]; got -2"),
        ((0.9, 0.9, -0.9, 20), {}, ValueError, "no data have the correlations r_jk=0.9, r_jh=0.9"),
        ((0.1, 0.2, 0.3, 3), {}, ValueError, "n must be at least 4 to compare correlations; got 3"),
        ((0.1, 0.2, 0.3, 20.0), {}, TypeError, "n must be an integer count"),
        ((0.1, 0.2, 0.3, 20), {"method": "olkin"}, ValueError, "method must be .zou."),
        (
            (0.1, 0.2, 0.3, 20),
            {"confidence_level": 95},
            ValueError,
            "confidence_level must lie strictly",
        ),
    ],
)
def test_comparison_rejects_bad_arguments(values, options, error, message):
    r_jk, r_jh, r_kh, n = values

    with pytest.raises(error, match=message):
        compare_dependent_correlations(r_jk, r_jh, r_kh=r_kh, n=n, **options)


def test_williams_is_infinite_where_the_difference_is_certain():
    """Correlations of 0.5 and -0.5 beside 0.5 leave no other difference possible."""
    result = compare((0.5, -0.5, 0.5, 20), "williams")

    assert (result.statistic, result.p_value) == (math.inf, 0.0)
    assert compare((-0.5, 0.5, 0.5, 20), "williams").statistic == -math.inf


@pytest.mark.parametrize("method", TESTS)
def test_opposite_variables_without_correlation_do_not_differ(method):
    assert compare((0.0, 0.0, -1.0, 20), method).p_value == 1.0
