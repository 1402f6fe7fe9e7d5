import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.frequency.frequency_rows import log_frequency, surface_accuracy

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


def realizations(verdicts, **columns):
    """Two realizations for each instance, from pairs of verdicts."""
    n = len(verdicts)
    return pd.DataFrame(
        {
            "fact_id": np.repeat(np.arange(n) // 2, 2),
            "surface": np.repeat([f"name {k % 2}" for k in range(n)], 2),
            "template": ["original", "paraphrase"] * n,
            "is_correct": [verdict for pair in verdicts for verdict in pair],
            **columns,
        }
    )


@given(
    verdicts=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20),
    data=st.data(),
)
@settings(deadline=None)
def test_surface_accuracy_is_the_mean_of_two_verdicts(verdicts, data):
    frame = realizations(verdicts)
    order = data.draw(st.permutations(range(len(frame))))

    rows = surface_accuracy(frame)
    shuffled = surface_accuracy(frame.iloc[order]).sort_values(["fact_id", "surface"])

    assert rows["accuracy"].tolist() == [sum(pair) / 2 for pair in verdicts]
    assert (rows["n_templates"] == 2).all()
    assert shuffled["accuracy"].tolist() == rows["accuracy"].tolist()


def test_kept_columns_are_carried_along():
    frame = realizations([(1, 0), (1, 1)], entity_frequency=[7, 7, 9, 9])

    rows = surface_accuracy(frame, keep=["entity_frequency"])

    assert rows.columns.tolist() == [
        *("fact_id", "surface", "entity_frequency", "accuracy", "n_templates")
    ]
    assert rows["entity_frequency"].tolist() == [7, 9]


def test_models_of_a_long_frame_are_kept_apart():
    frame = pd.concat(
        [realizations([(1, 0)]).assign(model="a"), realizations([(1, 1)]).assign(model="b")]
    )
    frame["model"] = frame["model"].astype("category")

    rows = surface_accuracy(frame, instance=["model", "fact_id", "surface"])

    assert rows["accuracy"].tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match=r"2 rows repeat an instance and template.*the model\?"):
        surface_accuracy(frame)


@pytest.mark.parametrize("gap", ["row", "verdict"])
def test_instances_without_both_verdicts_are_left_out_with_a_warning(gap):
    frame = realizations([(1, 0), (1, None), (0, 0)])
    if gap == "row":
        frame = frame.drop(index=3)

    with pytest.warns(UnscoredWarning, match="1 of 3 surface instances lack a verdict under a"):
        rows = surface_accuracy(frame)

    assert rows["accuracy"].tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match=r"1 of 3 surface instances lack.*missing='drop'"):
        surface_accuracy(frame, missing="raise")


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({"is_correct": [1, 2]}, {}, ValueError, r"is_correct\[1\] must lie in \[0, 1\]; got 2"),
        ({"is_correct": ["yes", "no"]}, {}, TypeError, r"is_correct\[0\] is 'yes'"),
        ({"surface": ["a", None]}, {}, ValueError, "column 'surface' is missing in row 1"),
        ({"template": [None, "x"]}, {}, ValueError, "column 'template' is missing in row 0"),
        ({}, {"template": "wording"}, ColumnNotFoundError, "column 'wording' is not in the frame"),
        ({}, {"instance": []}, ValueError, "instance must name at least one column"),
        ({}, {"instance": ["surface", "surface"]}, ValueError, "instance names a column twice"),
        ({}, {"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
        ({"accuracy": [1, 1]}, {"keep": ["accuracy"]}, ValueError, "'accuracy' has the name of"),
        (
            {"frequency": [1, 2]},
            {"keep": ["frequency"]},
            ValueError,
            "column 'frequency' has 2 values within the instance",
        ),
    ],
)
def test_surface_accuracy_rejects_bad_arguments(change, options, error, message):
    frame = realizations([(1, 0)]).assign(**change)

    with pytest.raises(error, match=message):
        surface_accuracy(frame, **options)


def test_surface_accuracy_rejects_what_is_no_frame():
    with pytest.raises(
        TypeError, match="frame must be a pandas DataFrame, one row a question real"
    ):
        surface_accuracy([{"fact_id": 1}])
