import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.metrics.frequency.log_frequency import log_frequency

frequencies = st.lists(st.one_of(st.integers(0, 30), st.floats(0, 1e6), st.none()), max_size=40)


@given(values=frequencies, above=st.sampled_from([0, 0.5, 10]))
@settings(deadline=None)
def test_log_frequency_agrees_with_a_naive_loop(values, above):
    """Each row is kept, or counted under one reason why not."""
    result = log_frequency(values, above=above, missing="drop")

    kept = [value is not None and value > above for value in values]
    assert result.kept.tolist() == kept
    assert result.n_kept == sum(kept)
    assert result.n_zero == sum(value == 0 for value in values)
    assert result.n_missing == sum(value is None for value in values)
    assert result.n_below == sum(value is not None and 0 < value <= above for value in values)
    assert result.n_kept + result.n_zero + result.n_below + result.n_missing == len(values)
    for value, is_kept, log in zip(values, kept, result.values, strict=True):
        assert log == pytest.approx(math.log(value)) if is_kept else math.isnan(log)


def test_nullable_columns_are_read():
    result = log_frequency(pd.Series([1, None, 0], dtype="Int64"), missing="drop")

    assert (result.n_kept, result.n_missing, result.n_zero) == (1, 1, 1)
    assert result.values[0] == 0.0


@pytest.mark.parametrize(
    ("values", "options", "error", "message"),
    [
        ([3, -1], {}, ValueError, r"frequencies\[1\] must be at least 0; got -1"),
        ([3, None], {}, ValueError, r"frequencies\[1\] is missing \(in all 1 of 2\).*'drop'"),
        ([3, np.inf], {}, ValueError, r"frequencies\[1\] is inf"),
        ([3, "4"], {}, TypeError, r"frequencies\[1\] is '4', which is no number"),
        ([[3]], {}, ValueError, "frequencies must be one-dimensional"),
        ([3], {"above": -1}, ValueError, "above must be at least 0; got -1"),
        ([3], {"above": math.nan}, ValueError, "above must be at least 0; got nan"),
        ([3], {"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_log_frequency_rejects_bad_arguments(values, options, error, message):
    with pytest.raises(error, match=message):
        log_frequency(values, **options)
