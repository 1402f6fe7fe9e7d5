import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.metrics import (
    correlation,
    judge_agreement,
    paired_by,
    paired_table,
    popularity_shift,
    split_accuracy,
)
from surface_consistency.metrics._inputs import label_codes


@given(st.lists(st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()))))
def test_label_codes_agree_with_factorize(labels):
    """Equal labels have equal numbers, from 0 in order of first appearance."""
    codes = label_codes(labels, len(labels), "clusters")

    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    assert codes.tolist() == pd.factorize(values)[0].tolist()
    assert codes.dtype == np.int64


def test_rows_without_labels_stand_alone():
    assert label_codes(None, 3, "clusters").tolist() == [0, 1, 2]


@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan"), pd.NA, pd.NaT])
def test_label_codes_rejects_missing_labels(missing):
    with pytest.raises(ValueError, match=r"groups\[1\] is .*: every fact needs a label"):
        label_codes(["a", missing], 2, "groups", row="fact")


def test_label_codes_rejects_another_number_of_labels():
    with pytest.raises(ValueError, match="one label a row: got 3 labels for 2 rows"):
        label_codes(iter("abc"), 2, "clusters")


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
