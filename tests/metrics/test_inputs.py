import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from surface_consistency.metrics import (
    _inputs,
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

# Rows are matched by position, so that a sorted column would not match.
test_columns_with_different_indices_are_rejected = refusals(
    lambda function: function(pd.Series([1, 0, 1, 0]), pd.Series([1, 1, 0, 0], index=[3, 2, 1, 0])),
    (paired_table, "first and second have different indices"),
    (correlation, "x and y have different indices"),
    (judge_agreement, "human and judge have different indices"),
    (popularity_shift, "original and perturbed have different indices"),
    (split_accuracy, "scores and correct have different indices"),
)


def test_two_dimensional_labels_are_rejected_with_a_remedy():
    first = [[1, 0, 1], [0, 1, 1]]
    with pytest.raises(ValueError, match=r"first must be .*got shape \(2, 3\); pass one column"):
        flip_rate(first, first)


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
    """A frame with these labels of clusters."""
    return pd.DataFrame(
        {"first_correct": [1, 0, 1], "second_correct": [1, 1, 0], "item": labels, "kind": "a"}
    )


MIXED = "both the text '1' and 1, which would be two different labels; convert all labels"
test_labels_that_differ_only_in_type_are_rejected = refusals(
    lambda call: call(),
    (lambda: cluster_counts([1, 0, 1], [1, 1, 0], clusters=["1", 1, 2]), MIXED),
    (lambda: alignment([1, 0, 1], [1, 1, 0], topics=np.array([1, "1", "a"], object)), MIXED),
    (lambda: paired_by(mixed([1, "1", 2])), MIXED),
)

test_inputs_other_than_two_conditions_are_rejected = refusals(
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
test_mixed_masks_and_masks_of_unequal_lengths_are_rejected = refusals(
    intersection_over_union,
    (MASKS[0], [0, 1, 2], NO_MASK),
    (MASKS[0], MASKS[1][:3], NO_MASK),
    (MASKS[0], [True, 2, True, False], NO_MASK),
    ({True, False}, {True}, NO_MASK),
)


def numbered(labels):
    """Number labels in order of first appearance, one by one."""
    numbers = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


LABELS = [3, 1, 3, 2, 1, 3]
TEXTS = ["b", "a", "b", "", "a", "b"]


@pytest.mark.parametrize(
    ("labels", "plain"),
    [
        (LABELS, LABELS),
        (TEXTS, TEXTS),
        (tuple(TEXTS), TEXTS),
        (np.array(LABELS, dtype=np.int8), LABELS),
        (np.array(LABELS) / 2, LABELS),
        (np.array([0.0, -0.0, 1.0, 0.0, 1.0, 2.0]), [0, 0, 1, 0, 1, 2]),
        (np.array([True, False, True, False, False, True]), [1, 0, 1, 0, 0, 1]),
        (np.array(TEXTS), TEXTS),
        (np.array(TEXTS, dtype=object), TEXTS),
        (pd.Series(TEXTS, index=range(6, 0, -1)), TEXTS),
        (pd.Series(LABELS, dtype="Int64"), LABELS),
        (pd.Categorical(TEXTS), TEXTS),
        (pd.Index(LABELS), LABELS),
        (pd.Series(pd.to_datetime(["2020", "2021", "2020", "2022", "2021", "2020"])), LABELS),
        ([np.int64(label) for label in LABELS], LABELS),
        ([1, 1.0, True, 2, np.float32(2), 0], [1, 1, 1, 2, 2, 0]),
        ([("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 1), ("a", 1)], LABELS),
        ([1, "a", 1, 2.5, "a", 1], LABELS),
        ((label for label in LABELS), LABELS),
        (10**30 * np.array(LABELS, dtype=object), LABELS),
        ([10**30 * label for label in LABELS], LABELS),
    ],
)
def test_labels_of_every_type_are_numbered_in_order_of_appearance(labels, plain):
    codes = _inputs.label_codes(labels, 6, "clusters")

    assert codes.dtype == np.int64
    assert codes.tolist() == numbered(plain)


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series])
@pytest.mark.parametrize("gap", [None, math.nan, pd.NA, pd.NaT, np.float32("nan")])
def test_the_error_of_a_missing_label_has_its_index(wrap, gap):
    with pytest.raises(ValueError, match=r"clusters\[1\] is .*: every row needs a label"):
        _inputs.label_codes(wrap([1.5, gap, 1.5, gap]), 4, "clusters")
    masked = np.ma.masked_array([1, 2, 1], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"clusters\[1\] is "):
        _inputs.label_codes(masked, 3, "clusters")
    with pytest.raises(ValueError, match="one label per row; got 2 labels for 3 rows"):
        _inputs.label_codes(wrap([1, 2]), 3, "clusters")
    with pytest.raises(ValueError, match="both the text '1' and 1"):
        _inputs.label_codes(pd.Categorical([1, "1"]), 2, "clusters")


def test_tensors_and_lists_of_tensors_are_read():
    torch = pytest.importorskip("torch")
    values = [0.5, 0.25, 1.0, 0.0]
    for tensor in (
        torch.tensor(values, requires_grad=True),
        torch.tensor(values, dtype=torch.bfloat16),
    ):
        for given in (tensor, list(tensor), tuple(tensor)):
            assert _inputs.numeric_vector(given, "x").tolist() == values
        assert np.asarray(_inputs.plain([tensor, tensor])).tolist() == [values, values]
        assert _inputs.label_codes(list(tensor), 4, "clusters").tolist() == [0, 1, 2, 3]
        assert _inputs.verdict_codes(list(tensor > 0.3), "first").tolist() == [1, 0, 1, 0]


def test_values_that_can_be_read_only_once_raise_an_error():
    match = "a generator can be read only once; pass a list or an array of its values"
    for read in (_inputs.numeric_vector, _inputs.verdict_codes):
        with pytest.raises(TypeError, match=match):
            read((value for value in (0, 1)), "x")
    with pytest.raises(TypeError, match=match):
        clustered_auc((value for value in (0.5, 1.0)), [0, 1], [0, 1])
