import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics.correlation.correlations import correlation, partial_correlation
from surface_consistency.metrics.correlation.dependent_correlations import (
    steiger_test,
    zou_interval,
)
from surface_consistency.metrics.frequency.frequency import frequency_analysis
from surface_consistency.metrics.uncertainty.intervals import Intervals
from tests.metrics.harness import correlation_row, instances
from tests.refusals import refusals

SUBSETS = ["overall", "canonical", "redirect", "redirect_high_frequency"]
GIVEN = ["entity_given_surface", "surface_given_entity"]
STATISTICS = ["entity", "surface", *GIVEN, "entity_minus_surface"]
MODELS = ["small", "large"]


def subset_of(frame, subset):
    frame = frame[(frame["entity_frequency"] > 0) & (frame["surface_frequency"] > 0)]
    if subset == "overall":
        return frame
    frame = frame[frame["is_canonical"] == (subset == "canonical")]
    return frame[frame["surface_frequency"] > 10] if "high" in subset else frame


def vectors(frame, model):
    return (
        np.log(frame["entity_frequency"].to_numpy()),
        np.log(frame["surface_frequency"].to_numpy()),
        frame[model].to_numpy(),
    )


def assert_same_numbers(row, expected):
    """Compare estimate, bounds and p-value of a row with those of `correlation_by`."""
    for end in ("", "_low", "_high"):
        assert row[f"estimate{end}"] == pytest.approx(expected[f"coefficient{end}"], abs=1e-10)
    assert row["p_value"] == pytest.approx(expected["p_value"], rel=1e-6)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_analysis_agrees_with_the_single_functions(method):
    """Each row is what `correlation_by` gives on the filtered rows."""
    frame = instances(0)

    rows = frequency_analysis(
        frame, accuracy=MODELS, method=method, cluster=None, intervals=Intervals(confidence=0.9)
    )
    of_clusters = frequency_analysis(frame, accuracy=MODELS, method=method)

    assert rows["subset"].tolist() == [s for _ in MODELS for s in SUBSETS for _ in STATISTICS]
    assert rows["statistic"].tolist() == STATISTICS * 8
    keys = ["model", "subset", "statistic"]
    cells, clustered = rows.set_index(keys), of_clusters.set_index(keys)
    for model, subset in itertools.product(MODELS, SUBSETS):
        kept = subset_of(frame, subset)
        entity, surface, accuracy = vectors(kept, model)
        vectors_of = {
            "entity": (entity, accuracy),
            "surface": (surface, accuracy),
            "entity_given_surface": (entity, accuracy, surface),
            "surface_given_entity": (surface, accuracy, entity),
        }
        expected = {}
        for statistic, own in vectors_of.items():
            row = cells.loc[(model, subset, statistic)]
            expected[statistic] = correlation_row(*own, method=method, confidence=0.9)
            assert_same_numbers(row, expected[statistic])
            assert row["p_value_independent"] == row["p_value"]
            assert row["n"] == row["n_clusters"] == len(kept)
            row = clustered.loc[(model, subset, statistic)]
            assert_same_numbers(row, correlation_row(*own, cluster=[*kept["item"]], method=method))
            assert row["n_clusters"] == kept["item"].nunique() <= row["n"] == len(kept)
        first, second = (expected[name]["coefficient"] for name in ("entity", "surface"))
        among = {"r_kh": correlation(entity, surface, method=method), "n": len(kept)}
        low, high, p_value = zou_interval(first, second, confidence=0.9, **among)
        row = cells.loc[(model, subset, "entity_minus_surface")]
        ours = row[["estimate", "estimate_low", "estimate_high"]].tolist()
        assert ours == pytest.approx([first - second, low, high], abs=1e-10)
        p_values = [p_value, steiger_test(first, second, **among)[1]]
        assert row[["p_value", "p_value_independent"]].tolist() == pytest.approx(p_values, rel=1e-6)


def test_every_row_of_a_subset_is_used_or_counted_as_dropped():
    frame = instances(4)
    frame.loc[frame.index[:7], "entity_frequency"] = 0
    frame.loc[frame.index[10:16], "surface_frequency"] = np.nan
    frame.loc[frame.index[20:25], "small"] = np.nan

    with pytest.warns(UnscoredWarning, match="11 of 800 surface instances lack a frequency or an"):
        rows = frequency_analysis(frame, accuracy=MODELS)

    sizes = {"overall": 800, "canonical": 400, "redirect": 400, "redirect_high_frequency": 400}
    total = rows[["n", "n_zero", "n_below", "n_missing"]].sum(axis=1)
    assert total.tolist() == [sizes[subset] for subset in rows["subset"]]
    cells = rows.drop_duplicates(["model", "subset"]).set_index(["model", "subset"])
    n_missing = cells.xs("overall", level="subset")["n_missing"]
    assert n_missing["small"] - n_missing["large"] == pytest.approx(5, abs=2)
    assert (cells.xs("redirect_high_frequency", level="subset")["n_below"] > 0).all()
    assert (cells.drop(index="redirect_high_frequency", level="subset")["n_below"] == 0).all()


def test_missing_accuracies_exclude_rows_of_the_same_model_only():
    frame = instances(5)
    gappy = frame.copy()
    gappy.loc[gappy.index[:9], "small"] = np.nan

    with pytest.warns(UnscoredWarning, match="9 of 800"):
        both = frequency_analysis(gappy, accuracy=MODELS)
    alone = frequency_analysis(frame, accuracy=["large"])
    dropped = frequency_analysis(frame.iloc[9:], accuracy=["small"])

    large = both[both["model"] == "large"].reset_index(drop=True)
    small = both[both["model"] == "small"].reset_index(drop=True)
    pd.testing.assert_frame_equal(large, alone)
    assert small["estimate"].tolist() == pytest.approx(dropped["estimate"].tolist())
    assert small["n"].tolist() == dropped["n"].tolist()


def test_long_and_wide_frames_agree():
    frame = instances(6)
    others = [column for column in frame if column not in MODELS]
    long = frame.melt(others, MODELS, var_name="model", value_name="accuracy")

    wide = frequency_analysis(frame, accuracy=MODELS, cluster=None)
    by_model = frequency_analysis(long, by="model", cluster=None)

    assert sorted(by_model["model"].unique()) == sorted(MODELS)
    keys = ["model", "subset", "statistic"]
    left, right = (rows.set_index(keys).sort_index() for rows in (wide, by_model))
    pd.testing.assert_frame_equal(left, right)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_estimates_are_bounded_independent_of_order_and_opposite_for_errors(seed):
    frame = instances(seed, n_facts=30)

    right = frequency_analysis(frame, accuracy="small")

    shuffled = frequency_analysis(frame.sample(frac=1, random_state=seed), accuracy="small")
    pd.testing.assert_frame_equal(right, shuffled, rtol=1e-6)
    turned = frame.assign(small=1 - frame["small"])
    wrong = frequency_analysis(turned, accuracy="small", cluster=None)
    assert wrong["estimate"].tolist() == pytest.approx((-right["estimate"]).tolist(), abs=1e-9)
    bound = np.where(right["statistic"] == "entity_minus_surface", 2, 1)
    assert (right["estimate"].abs() <= bound).all()
    assert (right["estimate_low"] <= right["estimate_high"]).all()
    assert right["p_value"].between(0, 1).all()


@given(
    seed=st.integers(0, 10_000),
    cluster=st.sampled_from(["item", None]),
    interval=st.sampled_from(["auto", "percentile"]),
    confidence=st.sampled_from([0.5, 0.9, 0.95]),
)
@settings(deadline=None, max_examples=20)
def test_intervals_exclude_0_exactly_if_the_test_rejects(seed, cluster, interval, confidence):
    rows = frequency_analysis(
        instances(seed, n_facts=40),
        accuracy="small",
        cluster=cluster,
        intervals=Intervals(confidence=confidence, method=interval, resamples=101),
    )

    clear = rows[(rows["p_value"] - (1 - confidence)).abs() > 1e-9]
    rejects = clear["p_value"] < 1 - confidence
    leaves_out = (clear["estimate_low"] > 0) | (clear["estimate_high"] < 0)
    assert len(clear) > 10
    assert rejects.tolist() == leaves_out.tolist()


def test_threshold_of_the_high_frequency_subset_is_strict():
    frame = instances(8)
    n_at_ten = int(((frame["surface_frequency"] == 10) & ~frame["is_canonical"]).sum())
    above = [
        frequency_analysis(frame, accuracy="small", cluster=None, high_frequency_above=threshold)
        .set_index("subset")["n"]["redirect_high_frequency"]
        .iloc[0]
        for threshold in (9, 10)
    ]

    assert n_at_ten > 0
    assert above[0] - above[1] == n_at_ten


@pytest.mark.parametrize(
    ("change", "message", "defined"),
    [
        ({"small": 1.0}, r"entity \(4, such as small, overall", set()),
        # Statistics of both frequencies are NaN if one is constant.
        ({"surface_frequency": 5}, "surface", {"entity"}),
        (
            {"surface_frequency": lambda frame: frame["entity_frequency"]},
            "entity_given_surface.*surface_given_entity",
            {"entity", "surface", "entity_minus_surface"},
        ),
    ],
)
def test_undefined_statistics_are_nan_with_one_warning(change, message, defined):
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        rows = frequency_analysis(instances(10).assign(**change), accuracy="small")

    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert set(rows.loc[rows["estimate"].notna(), "statistic"]) == defined
    bounds = ["estimate_low", "estimate_high", "p_value"]
    assert rows.loc[rows["estimate"].isna(), bounds].isna().all(axis=None)


@pytest.mark.parametrize(("n", "defined"), [(2, 0), (3, 3), (4, 5)])
def test_statistics_are_nan_if_rows_are_too_few(n, defined):
    frame = instances(12)
    frame = frame[frame["is_canonical"] & (frame["surface_frequency"] > 0)].iloc[:n]
    frame["small"] = [0.0, 1.0, 0.5, 0.5][:n]

    first = "overall" if n == 2 else "redirect"
    with pytest.warns(UndefinedMetricWarning, match=f"such as small, {first} in the frame"):
        rows = frequency_analysis(frame, accuracy="small", cluster=None)

    subsets = rows.set_index("subset")
    assert int(subsets.loc["canonical", "estimate"].notna().sum()) == defined
    assert (subsets.loc["redirect", "n"] == 0).all()
    assert subsets.loc["redirect", "estimate"].isna().all()


def test_one_cluster_has_no_intervals():
    with pytest.warns(UndefinedMetricWarning, match="interval of entity"):
        rows = frequency_analysis(instances(13).assign(item=1), accuracy="small")

    assert rows["estimate_low"].isna().all()
    assert rows["p_value"].isna().all()
    assert rows["p_value_independent"].notna().all()
    assert rows["estimate"].notna().all()


test_frequency_analysis_rejects_bad_arguments = refusals(
    lambda change, options: frequency_analysis(
        (change if isinstance(change, list) else instances(14, n_facts=10).assign(**change)),
        **({"accuracy": "small"} | options),
    ),
    ({}, {"accuracy": "medium"}, ColumnNotFoundError, "column 'medium' not found; pass"),
    ({}, {"cluster": "subject"}, ColumnNotFoundError, "column 'subject' not found; pass"),
    ({}, {"accuracy": []}, "accuracy must name at least one column"),
    ({}, {"accuracy": ["small"] * 2}, "accuracy contains a column twice"),
    ({"n": 1}, {"by": "n"}, "by column 'n' has the name of a column of the result"),
    ({"small": 2}, {}, r"small\[0\] must be in \[0, 1\]; got 2"),
    ({"entity_frequency": -1}, {}, r"entity_frequency\[0\] must be in \[0, inf\]"),
    ({"is_canonical": "yes"}, {}, r"is_canonical\[0\] is 'yes', which is not"),
    ({"is_canonical": None}, {}, r"is_canonical\[0\] is missing"),
    ({"item": None}, {}, "column 'item' has no cluster id in row 0"),
    ({}, {"high_frequency_above": -1}, "high_frequency_above must be at least 0"),
    ({}, {"method": "kendall"}, "method must be 'pearson' or 'spearman'"),
    ({}, {"transform": "sqrt"}, "transform must be 'log' or 'log1p'"),
    ({}, {"controls": "entity"}, "'entity' is the name of a statistic"),
    ({}, {"others_frequency": "no"}, ColumnNotFoundError, "column 'no' not found; pass"),
    ({}, {"missing": "zero"}, "missing must be 'raise' or 'drop'"),
    ({"small": None}, {"missing": "raise"}, r"small\[0\] is missing"),
    ([{"small": 1}], {}, TypeError, "frame must be a pandas DataFrame, one row per surface ins"),
)


def test_frequency_of_others_is_analysed_on_rows_above_zero():
    frame = instances(20)
    frame["others"] = frame["entity_frequency"] - frame["surface_frequency"]
    frame.loc[:50, "others"] = 0
    kept = subset_of(frame, "redirect")
    kept = kept[kept["others"] > 0]
    x, (_, y, accuracy) = np.log(kept["others"].to_numpy()), vectors(kept, "small")

    rows = frequency_analysis(frame, accuracy="small", others_frequency="others")
    found = rows.set_index(["subset", "statistic"]).loc["redirect"]

    plain = frequency_analysis(frame, accuracy="small")
    same = rows[~rows["statistic"].str.contains("others")].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, plain)
    assert found.index[5:].tolist() == [
        *("others", "others_given_surface", "surface_given_others", "others_minus_surface")
    ]
    expected = correlation_row(x, accuracy, y)
    given = found.loc["others_given_surface"]
    assert given["estimate"] == pytest.approx(expected["coefficient"])
    assert given["p_value_independent"] == pytest.approx(expected["p_value"])
    assert found.loc["others", "estimate"] == pytest.approx(correlation(x, accuracy))
    assert found.loc["others", "n"] == len(kept) < found.loc["entity", "n"]
    assert found.loc["others", ["n", "n_zero"]].sum() == len(frame) // 2


def test_log1p_keeps_rows_of_zero_and_counts_them():
    frame = instances(21)
    zeros = int((frame["surface_frequency"] == 0).sum())

    rows = frequency_analysis(frame, accuracy="small", transform="log1p")
    found = rows.set_index(["subset", "statistic"]).loc["overall"]

    entity, surface = (np.log1p(frame[f"{name}_frequency"]) for name in ("entity", "surface"))
    expected = partial_correlation(entity, frame["small"], surface)
    assert zeros > 0
    assert found["n"].unique().tolist() == [len(frame)]
    assert found["n_zero"].unique().tolist() == [zeros]
    assert found.loc["entity_given_surface", "estimate"] == pytest.approx(expected)
    high = rows[rows["subset"] == "redirect_high_frequency"].iloc[0]
    assert high[["n", "n_below"]].sum() == len(frame) // 2
    assert high["n_zero"] == 0


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_controls_are_added_to_the_partial_correlations(method):
    frame = instances(22)
    frame["pairs"] = np.random.default_rng(0).integers(0, 40, len(frame))
    kept = subset_of(frame, "canonical")
    kept = kept[kept["pairs"] > 0]
    entity, surface, accuracy = vectors(kept, "small")
    pairs = np.log(kept["pairs"].to_numpy())

    rows = frequency_analysis(frame, accuracy="small", controls="pairs", method=method)
    found = rows.set_index(["subset", "statistic"]).loc["canonical"]

    for name, x, controls in (
        ("entity", entity, None),
        ("pairs", pairs, None),
        ("entity_given_surface", entity, np.c_[surface, pairs]),
        ("pairs_given_frequencies", pairs, np.c_[entity, surface]),
    ):
        expected = correlation_row(x, accuracy, controls, method=method)
        assert found.loc[name, "estimate"] == pytest.approx(expected["coefficient"])
        assert found.loc[name, "p_value_independent"] == pytest.approx(expected["p_value"])


def test_repeated_rows_are_counted_in_a_warning():
    frame = instances(0, n_facts=30)

    with pytest.warns(DataWarning, match="60 of 120 rows repeat another"):
        frequency_analysis(pd.concat([frame, frame]), accuracy="small")
