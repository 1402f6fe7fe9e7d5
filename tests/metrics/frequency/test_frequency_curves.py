import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.frequency.binned_curve import binned_curve
from surface_consistency.metrics.frequency.frequency_curves import frequency_curves


def instances(n_facts=300):
    rng = np.random.default_rng(0)
    fact = np.repeat(np.arange(n_facts), 2)
    entity = np.ceil(np.exp(rng.normal(5, 2, n_facts)))[fact]
    return pd.DataFrame(
        {
            "fact_id": fact,
            "is_canonical": np.tile([True, False], n_facts),
            "entity_frequency": entity,
            "surface_frequency": np.floor(entity * rng.beta(0.6, 1, 2 * n_facts)),
            "a": rng.integers(0, 3, 2 * n_facts) / 2,
            "b": rng.integers(0, 3, 2 * n_facts) / 2,
        }
    )


def test_curves_agree_with_binned_curve_on_the_filtered_rows():
    frame = instances()
    kept = frame[(frame["surface_frequency"] > 10) & ~frame["is_canonical"]]

    curves = frequency_curves(frame, accuracy=["a", "b"], n_bins=5, n_resamples=200)

    for frequency in ("entity", "surface"):
        ours = curves[
            (curves["model"] == "b")
            & (curves["subset"] == "redirect_high_frequency")
            & (curves["frequency"] == frequency)
        ].reset_index(drop=True)
        expected = binned_curve(
            kept[f"{frequency}_frequency"],
            kept["b"],
            n_bins=5,
            clusters=kept["fact_id"],
            n_resamples=200,
        )
        pd.testing.assert_frame_equal(ours[expected.columns], expected)


def test_every_usable_row_is_in_one_bin_of_each_curve():
    frame = instances()
    usable = frame[frame["surface_frequency"] > 0]
    sizes = {
        "overall": len(usable),
        "canonical": int(usable["is_canonical"].sum()),
        "redirect": int((~usable["is_canonical"]).sum()),
    }

    curves = frequency_curves(frame, accuracy="a", n_resamples=20)

    assert "model" not in curves
    totals = curves.groupby(["subset", "frequency"])["n"].sum()
    for subset, size in sizes.items():
        assert totals[subset].tolist() == [size, size]


def test_groups_and_gaps_are_kept_apart():
    frame = instances().assign(corpus=["pile", "mix"] * 300)
    frame.loc[frame.index[:4], "a"] = np.nan

    with pytest.warns(UnscoredWarning, match="4 of 600 surface instances lack"):
        curves = frequency_curves(frame, accuracy="a", by="corpus", n_bins=3, n_resamples=20)

    # The rows of "pile" are the canonical ones.
    subsets = curves.groupby("corpus")["subset"].unique()
    assert subsets["pile"].tolist() == ["overall", "canonical"]
    assert subsets["mix"].tolist() == ["overall", "redirect", "redirect_high_frequency"]
    with pytest.raises(ValueError, match=r"a\[0\] is missing"):
        frequency_curves(frame, accuracy="a", missing="raise")


def test_no_usable_rows_give_no_bins():
    curves = frequency_curves(instances().assign(surface_frequency=0), accuracy="a")

    assert len(curves) == 0
    assert curves.columns[:3].tolist() == ["subset", "frequency", "bin"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"accuracy": "c"}, ColumnNotFoundError, "column 'c' is not in the frame"),
        ({"n_bins": 0}, ValueError, "n_bins must be at least 1"),
        ({"high_frequency_above": -1}, ValueError, "high_frequency_above must be at least 0"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_frequency_curves_rejects_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        frequency_curves(instances(10), **({"accuracy": "a"} | options))
