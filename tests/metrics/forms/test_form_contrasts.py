import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import form_consistency, form_contrasts


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


def test_the_difference_is_that_of_form_consistency(frame):
    row = form_contrasts(frame).set_index(["a", "b", "rate"]).loc[("a", "b", "consistency")]
    values = [
        form_consistency([part["correct"].to_numpy() for _, part in of_model.groupby("fact_id")])
        for _, of_model in frame.groupby("model")
    ]

    assert row["difference"] == pytest.approx(values[0].consistency - values[1].consistency)
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
