import pandas as pd
import pytest

from surface_consistency.metrics import (
    correlation,
    judge_agreement,
    paired_by,
    paired_table,
    popularity_shift,
    split_accuracy,
)


class OfAnotherLibrary:
    """A frame that is none of pandas but knows the way there, as those of polars do."""

    __module__ = "polars.dataframe.frame"

    def to_pandas(self):
        """Never called: the message says to."""


def test_frames_of_other_libraries_are_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"OfAnotherLibrary of polars: pass frame.to_pandas\(\)"):
        paired_by(OfAnotherLibrary())


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
