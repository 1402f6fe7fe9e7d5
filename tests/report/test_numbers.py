import math

import pytest

from surface_consistency.report._numbers import (
    count,
    interval,
    number,
    p_value,
    percent,
    with_interval,
)


@pytest.mark.parametrize(
    ("value", "signed", "shown"),
    [
        (0.2366, False, "23.7"),
        (1.0, False, "100.0"),
        (-0.1527, True, "−15.3"),
        (0.0123, True, "+1.2"),
        (-0.0001, True, "0.0"),
        (-0.0001, False, "0.0"),
        (math.nan, False, "–"),
    ],
)
def test_percent_is_a_hundred_times_the_fraction(value, signed, shown):
    assert percent(value, signed=signed) == shown


def test_interval_is_empty_where_undefined():
    """Bounds go together: one that is undefined hides both."""
    assert interval(0.1, 0.25) == "[10.0, 25.0]"
    assert interval(-0.1, 0.25, signed=True) == "[−10.0, +25.0]"
    assert interval(math.nan, 0.25) == ""
    assert with_interval(0.5, math.nan, math.nan) == "50.0\u00a0%"
    assert with_interval(0.5, 0.25, 0.75) == "50.0\u00a0% [25.0, 75.0]"


@pytest.mark.parametrize(
    ("write", "value", "shown"),
    [
        (count, 14489, "14,489"),
        (count, math.nan, "–"),
        (p_value, 0.0009, "< 0.001"),
        (p_value, 0.04951, "0.050"),
        (p_value, math.nan, "–"),
        (number, 12345.0, "12,345"),
        (number, -0.12345, "−0.1235"),
        (number, -12.0, "−12"),
        (number, -math.inf, "−∞"),
        (number, math.nan, "–"),
    ],
)
def test_numbers_is_readable(write, value, shown):
    assert write(value) == shown
