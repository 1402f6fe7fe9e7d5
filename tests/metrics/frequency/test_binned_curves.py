import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UnscoredWarning
from surface_consistency.metrics import Intervals, frequency_curves
from tests.metrics.harness import instances
from tests.refusals import refusals


def curve_of(frequency, accuracy, *, clusters=None, **options):
    """The curve over all rows by the frequency of the entity."""
    frame = pd.DataFrame({"entity_frequency": frequency, "accuracy": accuracy})
    frame = frame.assign(surface_frequency=1, is_canonical=True)
    cluster = None if clusters is None else "item"
    frame = frame if clusters is None else frame.assign(item=clusters)
    curves = frequency_curves(frame, cluster=cluster, **options)
    is_wanted = (curves["subset"] == "overall") & (curves["frequency"] == "entity")
    return curves[is_wanted].reset_index(drop=True)


def test_bins_without_ties_are_equal_counts_as_by_array_split():
    rng = np.random.default_rng(0)
    frequency, accuracy = rng.permutation(4280) + 1, rng.integers(0, 3, 4280) / 2
    order = np.argsort(frequency)

    curve = curve_of(frequency, accuracy, intervals=Intervals(resamples=10))

    expected = [accuracy[part].mean() for part in np.array_split(order, 20)]
    assert curve["n"].tolist() == [214] * 20
    assert curve["accuracy"].tolist() == pytest.approx(expected)
    assert curve["bin"].tolist() == list(range(20))


@given(
    values=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=60),
    n_bins=st.integers(1, 20),
    data=st.data(),
)
@settings(deadline=None)
def test_bins_contain_every_row_once_and_ties_together(values, n_bins, data):
    frequency, accuracy = np.array(values).T
    order = np.array(data.draw(st.permutations(range(len(values)))))

    curve = curve_of(frequency, accuracy / 2, n_bins=n_bins)
    shuffled = curve_of(frequency[order], accuracy[order] / 2, n_bins=n_bins)

    assert curve["n"].sum() == len(values)
    assert np.average(curve["accuracy"], weights=curve["n"]) == pytest.approx(accuracy.mean() / 2)
    lows, highs = curve["frequency_min"].to_numpy(), curve["frequency_max"].to_numpy()
    assert (lows <= highs).all()
    assert (highs[:-1] < lows[1:]).all()
    assert curve["bin"].is_monotonic_increasing
    assert curve["bin"].between(0, n_bins - 1).all()
    columns = ["bin", "n", "frequency_min", "accuracy"]
    pd.testing.assert_frame_equal(curve[columns], shuffled[columns])


def test_intervals_resample_clusters_within_a_bin():
    """Rows that repeat within clusters of four have intervals twice as wide as rows."""
    rng = np.random.default_rng(1)
    frequency, accuracy = np.repeat([np.arange(1, 2001), rng.integers(0, 2, 2000)], 4, axis=1)

    clustered = curve_of(frequency, accuracy, n_bins=4, clusters=np.repeat(np.arange(2000), 4))
    by_row = curve_of(frequency, accuracy, n_bins=4)

    widths = [
        (curve["accuracy_high"] - curve["accuracy_low"]).mean() for curve in (clustered, by_row)
    ]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.1)
    assert clustered["n_clusters"].tolist() == [500] * 4
    half = 1.96 * np.sqrt(clustered["accuracy"] * (1 - clustered["accuracy"]) / 500)
    lower = clustered["accuracy"] - clustered["accuracy_low"]
    assert lower.tolist() == pytest.approx(half, abs=0.01)


def test_bin_of_fewer_than_four_clusters_has_no_interval():
    curve = curve_of(range(1, 9), [0, 1, 0, 1] * 2, n_bins=2, clusters=[*"aabc", *"defg"])

    assert math.isnan(curve["accuracy_low"][0])
    assert math.isfinite(curve["accuracy_low"][1])


def test_every_usable_row_is_in_one_bin_of_each_curve():
    frame = instances(0, 300)
    usable = frame[frame["surface_frequency"] > 0]
    high = usable[(usable["surface_frequency"] > 10) & ~usable["is_canonical"]]

    curves = frequency_curves(frame, accuracy=["small", "large"], n_bins=5)

    of_b = curves[curves["model"] == "large"]
    totals = of_b.groupby(["subset", "frequency"])["n"].sum()
    n_canonical = int(usable["is_canonical"].sum())
    sizes = {"overall": len(usable), "canonical": n_canonical}
    sizes |= {"redirect": len(usable) - n_canonical, "redirect_high_frequency": len(high)}
    assert {subset: totals[subset].tolist() for subset in sizes} == {
        subset: [size, size] for subset, size in sizes.items()
    }
    for name in ("entity", "surface"):
        ours = of_b[(of_b["subset"] == "redirect_high_frequency") & (of_b["frequency"] == name)]
        expected = curve_of(
            high[f"{name}_frequency"], high["large"], n_bins=5, clusters=high["item"]
        )
        columns = ["bin", "frequency_min", "n", "n_clusters", "accuracy", "accuracy_low"]
        pd.testing.assert_frame_equal(ours[columns].reset_index(drop=True), expected[columns])


def test_groups_and_missing_values_are_separate():
    frame = instances(0, 300).assign(corpus=["pile", "mix"] * 300)
    frame.loc[frame.index[:4], "small"] = np.nan

    with pytest.warns(UnscoredWarning, match="4 of 600 surface instances lack"):
        curves = frequency_curves(frame, accuracy="small", by="corpus", n_bins=3)

    # The rows of "pile" are the canonical ones.
    subsets = curves.groupby("corpus")["subset"].unique()
    assert subsets["pile"].tolist() == ["overall", "canonical"]
    assert subsets["mix"].tolist() == ["overall", "redirect", "redirect_high_frequency"]
    # The column of one accuracy is not a model, so that a grouping may have that name.
    assert "model" not in curves
    named = frequency_curves(
        frame.rename(columns={"corpus": "model"}).dropna(), accuracy="small", by="model", n_bins=2
    )
    assert set(named["model"]) == {"pile", "mix"}


def test_no_usable_rows_give_no_bins():
    curves = frequency_curves(instances(0, 9).assign(surface_frequency=0), accuracy="small")

    assert len(curves) == 0
    assert curves.columns[:3].tolist() == ["subset", "frequency", "bin"]


test_frequency_curves_rejects_bad_arguments = refusals(
    lambda change, options: frequency_curves(
        instances(0, 10).assign(**change), **({"accuracy": "small"} | options)
    ),
    ({}, {"accuracy": "c"}, ColumnNotFoundError, "column 'c' not found; pass"),
    ({}, {"n_bins": 0}, "n_bins must be at least 1"),
    ({}, {"n_bins": 2.0}, TypeError, "n_bins must be an integer count"),
    ({}, {"high_frequency_above": -1}, "high_frequency_above must be at least 0"),
    ({}, {"missing": "zero"}, "missing must be 'raise' or 'drop'"),
    ({"small": 1.5}, {}, r"small\[0\] must be in \[0, 1\]; got 1.5"),
    ({"small": np.nan}, {"missing": "raise"}, r"small\[0\] is missing"),
    ({"item": None}, {}, "no cluster id in row 0"),
)
