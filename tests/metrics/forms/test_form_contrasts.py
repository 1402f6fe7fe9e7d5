import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import form_contrasts, paired_by
from tests.metrics.harness import long
from tests.refusals import refusals


@pytest.fixture(scope="module")
def frame():
    """Three models on 80 facts in four forms; the third has labels for half of the forms only."""
    rng = np.random.default_rng(0)
    known, parts = rng.random((80, 1)), []
    for name, noise in (("a", 0.0), ("b", 0.9), ("c", 0.0)):
        right = (1 - noise) * known + noise * rng.random((80, 4)) > 0.5
        parts.append(long(right, model=name))
    whole = pd.concat(parts, ignore_index=True)
    return whole[(whole["model"] != "c") | (whole["form"] < 2)]


def test_models_are_compared_on_their_common_forms(frame):
    table = form_contrasts(frame).set_index(["a", "b"])
    assert table["n_forms"].loc[("a", "c")].tolist() == [2] * 3
    assert table.index.unique().tolist() == [("a", "b"), ("a", "c"), ("b", "c")]
    table = form_contrasts(frame, reference="b")
    assert table[["a", "b"]].drop_duplicates().to_numpy().tolist() == [["b", "a"], ["b", "c"]]


def test_models_without_a_common_form_have_no_row():
    frame = pd.DataFrame(
        {"model": ["a", "a", "b", "b"], "item": 1, "form": [1, 2, 3, 4], "correct": 1}
    )
    assert form_contrasts(frame).empty


def test_accuracy_of_two_forms_has_the_inference_of_a_paired_table():
    """With one scored form on either side twice, the mean of facts is the accuracy of pairs."""
    rng = np.random.default_rng(1)
    right = rng.random((60, 2)) < [0.7, 0.4]
    columns = {"first_correct": right[:, 0], "second_correct": right[:, 1]}
    pairs = pd.DataFrame({"item": np.arange(60)} | columns)
    models = [
        long(np.repeat(right[:, [place]], 2, axis=1), model=name) for place, name in enumerate("yx")
    ]
    row = form_contrasts(pd.concat(models), reference="x").set_index("rate").loc["accuracy"]
    paired = paired_by(pairs).iloc[0]

    assert row["difference"] == pytest.approx(paired["accuracy_difference"])
    assert row["difference_low"] == pytest.approx(paired["accuracy_difference_low"])
    assert row["p_value"] == pytest.approx(paired["p_value"])


test_invalid_columns_and_options_are_rejected = refusals(
    lambda frame, change, options: form_contrasts(frame.assign(**change), **options),
    ({}, {"reference": "d"}, "reference must be one of"),
    ({"model": None}, {}, "column 'model' is empty in row 0"),
    ({"correct": 3}, {}, r"correct\[0\] is 3"),
    fixture="frame",
)
