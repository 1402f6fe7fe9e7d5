import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics.frequency.binned_curves import binned_curve, frequency_curves
from surface_consistency.metrics.uncertainty.intervals import Intervals


def test_bins_without_ties_are_equal_counts_as_by_array_split():
    """With no ties the bins are those of cutting the sorted rows into equal parts."""
    rng = np.random.default_rng(0)
    frequency, accuracy = rng.permutation(4280) + 1, rng.integers(0, 3, 4280) / 2
    order = np.argsort(frequency)
    expected = [accuracy[part].mean() for part in np.array_split(order, 20)]

    curve = binned_curve(np.log(frequency), accuracy, intervals=Intervals(n_resamples=10))

    assert curve["n"].tolist() == [214] * 20
    assert curve["accuracy"].tolist() == pytest.approx(expected)
    assert curve["bin"].tolist() == list(range(20))


@given(
    values=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=60),
    n_bins=st.integers(1, 20),
    data=st.data(),
)
@settings(deadline=None)
def test_bins_hold_every_row_once_and_ties_together(values, n_bins, data):
    frequency, accuracy = np.array(values).T
    order = np.array(data.draw(st.permutations(range(len(values)))))

    curve = binned_curve(
        frequency, accuracy / 2, n_bins=n_bins, intervals=Intervals(n_resamples=20)
    )
    shuffled = binned_curve(
        frequency[order], accuracy[order] / 2, n_bins=n_bins, intervals=Intervals(n_resamples=20)
    )

    assert curve["n"].sum() == len(values)
    assert np.average(curve["accuracy"], weights=curve["n"]) == pytest.approx(accuracy.mean() / 2)
    lows, highs = curve["frequency_min"].to_numpy(), curve["frequency_max"].to_numpy()
    assert (lows <= highs).all()
    assert (highs[:-1] < lows[1:]).all()
    assert curve["bin"].is_monotonic_increasing
    assert curve["bin"].between(0, n_bins - 1).all()
    columns = ["bin", "n", "frequency_min"]
    assert (curve[columns] == shuffled[columns]).all(axis=None)
    assert curve["accuracy"].to_numpy() == pytest.approx(shuffled["accuracy"].to_numpy())


def test_intervals_resample_clusters_within_a_bin():
    """Rows that repeat within clusters of four have intervals twice as wide as rows."""
    rng = np.random.default_rng(1)
    frequency, accuracy = np.repeat([np.arange(2000), rng.integers(0, 2, 2000)], 4, axis=1)

    clustered = binned_curve(frequency, accuracy, n_bins=4, clusters=np.repeat(np.arange(2000), 4))
    by_row = binned_curve(frequency, accuracy, n_bins=4)

    widths = [
        (curve["accuracy_high"] - curve["accuracy_low"]).mean() for curve in (clustered, by_row)
    ]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.1)
    assert clustered["n_clusters"].tolist() == [500] * 4
    half = 1.96 * np.sqrt(clustered["accuracy"] * (1 - clustered["accuracy"]) / 500)
    assert (clustered["accuracy"] - clustered["accuracy_low"]).tolist() == pytest.approx(
        half, abs=0.01
    )


def test_bin_of_fewer_than_four_clusters_has_no_interval():
    correct, clusters = [0, 1, 0, 1] * 2, [*"aabc", *"defg"]
    curve = binned_curve(range(8), correct, n_bins=2, clusters=clusters)

    assert math.isnan(curve["accuracy_low"][0])
    assert math.isfinite(curve["accuracy_low"][1])


def test_missing_rows_are_dropped_on_request():
    with pytest.warns(UnscoredWarning, match="2 of 4 rows lack a frequency or accuracy"):
        curve = binned_curve([1, None, 3, 4], [0, 1, None, 1], n_bins=1, missing="drop")

    assert (curve["n"][0], curve["accuracy"][0]) == (2, 0.5)
    with pytest.raises(ValueError, match=r"frequency\[1\] is missing"):
        binned_curve([1, None], [0, 1])


@pytest.mark.parametrize(
    ("frequency", "accuracy", "options", "error", "message"),
    [
        ([1, 2], [0, 1.5], {}, ValueError, r"accuracy must lie in \[0, 1\]; got 1.5"),
        ([1, 2], [0], {}, ValueError, "frequency and accuracy must have equal lengths"),
        ([], [], {}, ValueError, "at least one complete row to bin; got 0"),
        ([1], [0], {"n_bins": 0}, ValueError, "n_bins must be at least 1; got 0"),
        ([1], [0], {"n_bins": 2.0}, TypeError, "n_bins must be an integer count"),
        ([1], [0], {"clusters": [None]}, ValueError, r"clusters\[0\] is None"),
    ],
)
def test_binned_curve_rejects_bad_arguments(frequency, accuracy, options, error, message):
    with pytest.raises(error, match=message):
        binned_curve(frequency, accuracy, **options)


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

    curves = frequency_curves(
        frame, accuracy=["a", "b"], n_bins=5, intervals=Intervals(n_resamples=200)
    )

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
            intervals=Intervals(n_resamples=200),
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

    curves = frequency_curves(frame, accuracy="a", intervals=Intervals(n_resamples=20))

    assert "model" not in curves
    totals = curves.groupby(["subset", "frequency"])["n"].sum()
    for subset, size in sizes.items():
        assert totals[subset].tolist() == [size, size]


def test_groups_and_gaps_are_kept_apart():
    frame = instances().assign(corpus=["pile", "mix"] * 300)
    frame.loc[frame.index[:4], "a"] = np.nan

    with pytest.warns(UnscoredWarning, match="4 of 600 surface instances lack"):
        curves = frequency_curves(
            frame, accuracy="a", by="corpus", n_bins=3, intervals=Intervals(n_resamples=20)
        )

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
        ({"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_frequency_curves_rejects_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        frequency_curves(instances(10), **({"accuracy": "a"} | options))


def test_a_grouping_may_be_called_model():
    """The column of one accuracy is no model: its name stands back behind the grouping's."""
    frame = instances(40).assign(model=["m1", "m2"] * 40)

    curves = frequency_curves(frame, accuracy="a", by="model", n_bins=2)

    assert set(curves["model"]) == {"m1", "m2"}
