import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import form_contrasts, forms_by, paired_by


@pytest.fixture(scope="module")
def frame():
    """Three models on 80 facts in four forms; the third was not asked half of the forms."""
    rng = np.random.default_rng(0)
    known, parts = rng.random((80, 1)), []
    for name, noise in (("a", 0.0), ("b", 0.9), ("c", 0.0)):
        right = (1 - noise) * known + noise * rng.random((80, 4)) > 0.5
        facts, forms = np.indices(right.shape)
        part = pd.DataFrame(
            {"fact_id": facts.ravel(), "form": forms.ravel(), "correct": right.ravel()}
        )
        parts.append(part.assign(model=name))
    whole = pd.concat(parts, ignore_index=True)
    return whole[(whole["model"] != "c") | (whole["form"] < 2)]


def test_the_difference_is_that_of_forms_by(frame):
    row = form_contrasts(frame).set_index(["a", "b", "rate"]).loc[("a", "b", "consistency")]
    values = forms_by(frame, by="model")["consistency"]

    assert row["difference"] == pytest.approx(values[0] - values[1])
    assert row["p_value"] < 1e-6


def test_models_are_compared_on_the_forms_that_both_were_asked(frame):
    table = form_contrasts(frame)
    assert table.set_index(["a", "b"])["n_forms"].loc[("a", "c")].tolist() == [160] * 3


def test_p_is_below_five_per_cent_exactly_where_the_interval_leaves_out_zero(frame):
    table = form_contrasts(frame).dropna(subset="p_value")
    leaves_out = (table["difference_low"] > 0) | (table["difference_high"] < 0)

    assert (leaves_out == (table["p_value"] < 0.05)).all()


def test_one_against_the_others_makes_fewer_rows(frame):
    table = form_contrasts(frame, reference="b")
    assert table[["a", "b"]].drop_duplicates().to_numpy().tolist() == [["b", "a"], ["b", "c"]]


def test_models_without_a_common_form_make_no_row():
    frame = pd.DataFrame(
        {"model": ["a", "a", "b", "b"], "fact_id": 1, "form": [1, 2, 3, 4], "correct": 1}
    )
    assert form_contrasts(frame).empty


def test_an_unknown_reference_is_refused(frame):
    with pytest.raises(ValueError, match="reference must be one of"):
        form_contrasts(frame, reference="d")


def test_accuracy_of_two_forms_is_inferred_as_a_paired_table_is():
    """With one scored form on either side twice, the mean of facts is the accuracy of pairs."""
    rng = np.random.default_rng(1)
    right = rng.random((60, 2)) < [0.7, 0.4]
    pairs = pd.DataFrame({"fact_id": np.arange(60), "first": right[:, 0], "second": right[:, 1]})
    pairs = pairs.rename(columns={"first": "first_correct", "second": "second_correct"})
    long = pd.DataFrame(
        [
            (name, fact, form, right[fact, place])
            for place, name in enumerate(("y", "x"))
            for fact in range(60)
            for form in ("a", "b")
        ],
        columns=["model", "fact_id", "form", "correct"],
    )

    row = form_contrasts(long, reference="x").set_index("rate").loc["accuracy"]
    paired = paired_by(pairs).iloc[0]

    assert row["difference"] == pytest.approx(paired["accuracy_difference"])
    assert row["difference_low"] == pytest.approx(paired["accuracy_difference_low"])
    assert row["p_value"] == pytest.approx(paired["mcnemar_p_value"])


def test_too_few_clusters_give_a_reason():
    rows = [(model, fact, form, 1) for model in "ab" for fact in range(3) for form in "xy"]
    frame = pd.DataFrame(rows, columns=["model", "fact_id", "form", "correct"])

    table = form_contrasts(frame)

    assert table["not_inferred"].tolist() == ["worth 3 clusters, under 4"] * 3
    assert table["p_value_holm"].isna().all()


def test_a_missing_model_is_refused(frame):
    with pytest.raises(ValueError, match="column 'model' names no group in row 0"):
        form_contrasts(frame.assign(model=[None, *frame["model"].iloc[1:]]))
