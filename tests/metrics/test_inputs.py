import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from surface_consistency.metrics import (
    alignment,
    artifact_rate,
    clustered_auc,
    consistency,
    consistency_given,
    containment,
    correlation,
    flip_rate,
    interference,
    intersection_over_union,
    judge_agreement,
    leakage,
    paired_by,
    paired_table,
    partial_correlation,
    popularity_shift,
    retrieval_mediated,
    signed_alignment,
    split_accuracy,
)
from surface_consistency.metrics.paired.paired_tables import cluster_counts
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


def tensors(dtype=None, **options):
    """Make a tensor of a list, if torch is installed."""
    return lambda values: (torch := pytest.importorskip("torch")).tensor(
        values, dtype=dtype and getattr(torch, dtype), **options
    )


ARRAYS = {
    "tuple": tuple,
    "numpy": np.array,
    "pandas": pd.Series,
    "nullable": lambda values: pd.Series(values, dtype="Float64"),
    "categorical": lambda values: pd.Series(values).astype("category"),
    "Arrow in pandas": lambda values: pd.Series(values, dtype="double[pyarrow]"),
    "Arrow": pa.array,
    "chunked": lambda values: pa.chunked_array([values[:3], values[3:]]),
    "Arrow scalars": lambda values: list(pa.array(values)),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
    "torch": tensors(),
    "bfloat16": tensors("bfloat16"),
    "gradient": tensors("float32", requires_grad=True),
    "tensors": lambda values: list(tensors()(values)),
}
FIRST, SECOND = [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
NUMBERS, CLUSTERS = (
    [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0],
    [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0],
)
OF_ARRAYS = {
    "consistency": lambda f: consistency(f(FIRST), f(SECOND)),
    "flip_rate": lambda f: flip_rate(f(FIRST), f(SECOND)),
    "consistency_given": lambda f: consistency_given(f(FIRST), f(SECOND), first_correct=True),
    "leakage": lambda f: leakage(f(SECOND)),
    "retrieval_mediated": lambda f: retrieval_mediated(f(FIRST), f(SECOND)),
    "interference": lambda f: interference(f(FIRST), f(SECOND)),
    "artifact_rate": lambda f: artifact_rate(f(FIRST), f(SECOND)),
    "alignment": lambda f: alignment(f(FIRST), f(SECOND), topics=f(CLUSTERS)),
    "signed_alignment": lambda f: signed_alignment(f(FIRST), f(SECOND), topics=f(CLUSTERS)),
    "correlation": lambda f: correlation(f(NUMBERS), f(SECOND)),
    "partial_correlation": lambda f: partial_correlation(f(NUMBERS), f(SECOND), f(CLUSTERS)),
    "clustered_auc": lambda f: str(clustered_auc(f(NUMBERS), f(FIRST), f(CLUSTERS))),
    "cluster_counts": lambda f: cluster_counts(FIRST, SECOND, clusters=f(CLUSTERS)).tolist(),
    "containment": lambda f: containment(f(NUMBERS[:4]), f(NUMBERS[2:])),
}


@pytest.mark.parametrize("call", OF_ARRAYS.values(), ids=OF_ARRAYS)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_every_library_give_the_numbers_of_a_list(array, call):
    assert call(array) == call(list)


def mixed(labels):
    """A frame whose clusters are labelled so."""
    return pd.DataFrame(
        {"first_correct": [1, 0, 1], "second_correct": [1, 1, 0], "item": labels, "kind": "a"}
    )


MIXED = "both the text '1' and 1, which would be two different labels; convert all labels"
test_labels_written_alike_are_refused = refusals(
    lambda call: call(),
    (lambda: cluster_counts([1, 0, 1], [1, 1, 0], clusters=["1", 1, 2]), MIXED),
    (lambda: alignment([1, 0, 1], [1, 1, 0], topics=np.array([1, "1", "a"], object)), MIXED),
    (lambda: paired_by(mixed([1, "1", 2])), MIXED),
)

test_what_is_not_two_conditions_is_refused = refusals(
    lambda call, *arrays: call(*arrays),
    (consistency, [1], [1], [1], TypeError, r"got 3 arrays.*surface_consistency.consistency\(df\)"),
    (flip_rate, [1], [1], [1], TypeError, "got 3 arrays"),
    (consistency, [[1, 0]], [[1, 0]], r"shape \(1, 2\)"),
    (partial_correlation, FIRST, SECOND, [NUMBERS, CLUSTERS], "pass numpy.column_stack"),
)

MASKS = [True, False, True, True], [True, True, True, False]


@pytest.mark.parametrize("mask", [list, np.array, pa.array, pd.Series, tensors("bool")])
def test_masks_of_components_are_read_as_masks(mask):
    first, second = map(mask, MASKS)

    assert containment(first, second) == containment([0, 2, 3], [0, 1, 2]) == 2 / 3
    assert intersection_over_union(first, second) == 0.5


NO_MASK = "must both list components, or both be boolean masks"
test_masks_that_do_not_fit_are_refused = refusals(
    intersection_over_union,
    (MASKS[0], [0, 1, 2], NO_MASK),
    (MASKS[0], MASKS[1][:3], NO_MASK),
    (MASKS[0], [True, 2, True, False], NO_MASK),
    ({True, False}, {True}, NO_MASK),
)
