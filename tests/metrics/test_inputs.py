import pandas as pd
import pytest

from surface_consistency.metrics import (
    correlation,
    judge_agreement,
    paired_table,
    popularity_shift,
    split_accuracy,
)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (paired_table, ("first", "second")),
        (correlation, ("x", "y")),
        (judge_agreement, ("human", "judge")),
        (popularity_shift, ("original", "perturbed")),
        (split_accuracy, ("scores", "correct")),
    ],
)
def test_columns_with_unlike_indices_are_refused(function, names):
    """Rows are matched by position, so that a sorted column would meet the wrong rows."""
    first = pd.Series([1, 0, 1, 0])
    second = pd.Series([1, 1, 0, 0], index=[3, 2, 1, 0])

    with pytest.raises(ValueError, match=f"{names[0]} and {names[1]} have different indices"):
        function(first, second)
