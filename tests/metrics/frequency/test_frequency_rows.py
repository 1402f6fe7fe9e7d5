import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.frequency.frequency_rows import surface_accuracy
from tests.refusals import refusals


def realizations(verdicts, **columns):
    """Two realizations of each instance, from pairs of labels."""
    n = len(verdicts)
    return pd.DataFrame(
        {
            "item": np.repeat(np.arange(n) // 2, 2),
            "surface": np.repeat([f"name {k % 2}" for k in range(n)], 2),
            "template": ["original", "paraphrase"] * n,
            "correct": [verdict for pair in verdicts for verdict in pair],
            **columns,
        }
    )


@given(
    verdicts=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20),
    data=st.data(),
)
@settings(deadline=None)
def test_surface_accuracy_is_the_mean_of_two_labels(verdicts, data):
    frame = realizations(verdicts)
    order = data.draw(st.permutations(range(len(frame))))

    rows = surface_accuracy(frame)
    shuffled = surface_accuracy(frame.iloc[order]).sort_values(["item", "surface"])

    assert rows["accuracy"].tolist() == [sum(pair) / 2 for pair in verdicts]
    assert (rows["n_templates"] == 2).all()
    assert shuffled["accuracy"].tolist() == rows["accuracy"].tolist()


def test_models_of_a_long_frame_are_separate_and_columns_are_kept():
    models = (("a", [(1, 0)]), ("b", [(1, 1)]))
    frame = pd.concat([realizations(pair, model=model, entity=7) for model, pair in models])
    frame["model"] = frame["model"].astype("category")

    rows = surface_accuracy(frame, instance=["model", "item", "surface"], keep=["entity"])

    names = ["model", "item", "surface", "entity", "accuracy", "n_templates"]
    assert rows.columns.tolist() == names
    assert rows[["entity", "accuracy"]].values.tolist() == [[7, 0.5], [7, 1.0]]
    with pytest.raises(ValueError, match=r"2 rows repeat an instance and template.*the model\?"):
        surface_accuracy(frame)


@pytest.mark.parametrize("gap", ["row", "verdict"])
def test_instances_without_both_labels_are_excluded_with_a_warning(gap):
    frame = realizations([(1, 0), (1, None), (0, 0)])
    if gap == "row":
        frame = frame.drop(index=3)

    with pytest.warns(UnscoredWarning, match="1 of 3 surface instances lack a label under a"):
        rows = surface_accuracy(frame)

    assert rows["accuracy"].tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match=r"1 of 3 surface instances lack.*missing='drop'"):
        surface_accuracy(frame, missing="raise")
    with pytest.raises(TypeError, match="must be a pandas DataFrame, one row per question real"):
        surface_accuracy([{"item": 1}])


test_surface_accuracy_rejects_bad_arguments = refusals(
    lambda change, options: surface_accuracy(realizations([(1, 0)]).assign(**change), **options),
    ({"correct": [1, 2]}, {}, r"correct\[1\] must be in \[0, 1\]; got 2"),
    ({"correct": ["yes", "no"]}, {}, TypeError, r"correct\[0\] is 'yes'"),
    ({"surface": ["a", None]}, {}, "column 'surface' is missing in row 1"),
    ({"template": [None, "x"]}, {}, "column 'template' is missing in row 0"),
    ({}, {"template": "wording"}, ColumnNotFoundError, "column 'wording' not found; pass"),
    ({}, {"instance": []}, "instance must name at least one column"),
    ({}, {"instance": ["surface", "surface"]}, "instance contains a column twice"),
    ({}, {"missing": "zero"}, "missing must be 'raise' or 'drop'"),
    ({"accuracy": [1, 1]}, {"keep": ["accuracy"]}, "'accuracy' has the name of"),
    ({"n": [1, 2]}, {"keep": ["n"]}, "'n' has 2 values within the instance"),
)
