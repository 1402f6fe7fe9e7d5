import numpy as np
import pytest

from surface_consistency.metrics import PAIRED_RATES, CountRatio


@pytest.mark.parametrize("name", PAIRED_RATES)
def test_rate_of_many_tables_agrees_with_one_by_one(name):
    """A rate keeps the leading axes, whatever they are."""
    tables = np.random.default_rng(5).integers(1, 50, size=(3, 7, 4))

    together = PAIRED_RATES[name](tables)

    assert together.shape == (3, 7)
    for index in np.ndindex(3, 7):
        assert together[index] == pytest.approx(float(PAIRED_RATES[name](tables[index])))


def test_rates_are_read_only():
    with pytest.raises(TypeError, match="does not support item assignment"):
        PAIRED_RATES["consistency"] = None


def test_count_ratio_of_zero_denominator_is_nan_or_infinite():
    odds = CountRatio(numerator=(1, 0), denominator=(0, 1))

    values = odds([[0, 0], [3, 0], [3, 2]])

    assert np.isnan(values[0])
    assert values[1:].tolist() == [np.inf, 1.5]


def test_count_ratio_rejects_weights_of_unequal_number():
    with pytest.raises(ValueError, match="got 2 and 3 weights"):
        CountRatio(numerator=(1, 0), denominator=(1, 1, 1))
