import pandas as pd

from surface_consistency.metrics import (
    correlation,
    judge_agreement,
    paired_table,
    popularity_shift,
    split_accuracy,
)
from tests.refusals import refusals

# Rows are matched by position, so that a sorted column would meet the wrong rows.
test_columns_with_unlike_indices_are_refused = refusals(
    lambda function: function(pd.Series([1, 0, 1, 0]), pd.Series([1, 1, 0, 0], index=[3, 2, 1, 0])),
    (paired_table, "first and second have different indices"),
    (correlation, "x and y have different indices"),
    (judge_agreement, "human and judge have different indices"),
    (popularity_shift, "original and perturbed have different indices"),
    (split_accuracy, "scores and correct have different indices"),
)
