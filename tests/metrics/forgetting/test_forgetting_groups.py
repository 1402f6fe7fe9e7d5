import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import PAIRED_RATES, cluster_bootstrap
from surface_consistency.metrics.forgetting.forgetting_groups import DELETION_RATES, forgetting_by
from surface_consistency.metrics.paired.mcnemar_tests import clustered_mcnemar
from surface_consistency.metrics.paired.paired_tables import cluster_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_t, parts_of
from tests.metrics.harness import pairs
from tests.refusals import refusals

DELETION = ("leakage", "retrieval_mediated", "interference", "del_on_accuracy")


def test_forgetting_by_clusters_by_fact():
    """L is second accuracy, R the negative flip rate, I the positive one, clustered by fact."""
    frame = pairs(3)
    verdicts = frame["first_correct"], frame["second_correct"]
    counts = cluster_counts(*verdicts, clusters=frame["item"])

    for method in ("obuchowski", "durkalski"):
        row = forgetting_by(frame, test=method).iloc[0]
        found = (row["statistic"], row["p_value"])
        assert found == pytest.approx(clustered_mcnemar(counts, method=method))
        assert row["test"] == method
    for name, rate in {
        "leakage": "second_accuracy",
        "retrieval_mediated": "negative_flip_rate",
        "interference": "positive_flip_rate",
        "del_on_accuracy": "first_accuracy",
    }.items():
        found = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert found == pytest.approx(cluster_bootstrap(counts, PAIRED_RATES[rate]), abs=0.004)
    assert row["n_clusters"] == frame["item"].nunique()
    assert forgetting_by(frame, cluster=None)["n_clusters"].tolist() == [len(frame)]
    # Equal labels are not counted as repeated rows.
    states = np.random.default_rng(0).random((80, 4)) < 0.5
    names = ["first_correct", "second_correct", "full", "gold_retrieved"]
    states = pd.DataFrame(states, columns=names, dtype="boolean")
    forgetting_by(
        states.assign(item=np.arange(80) // 2), full="full", gold_retrieved="gold_retrieved"
    )


def test_forgetting_by_returns_only_the_available_columns():
    """Without FULL or traces the columns that need them are omitted."""
    plain, full, trace = (
        {*forgetting_by(pairs(4), **options)}
        for options in ({}, {"full": "full"}, {"gold_retrieved": "gold_retrieved"})
    )

    of_full = {f"{name}_given_full" for name in ("survival", *DELETION[:3])}
    of_full |= {f"{name}{end}" for name in of_full for end in ("_n", "_n_clusters")}
    of_full |= {"full_correct", "full_flag", "full_accuracy"}
    assert {name.removesuffix("_low").removesuffix("_high") for name in full - plain} == of_full
    assert trace - plain == {"artifacts", *(f"artifact_rate{end}" for end in ("", "_low", "_high"))}


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_forgetting_by_flags_contaminated_groups():
    frame = pairs(5)
    frame["group"] = np.arange(len(frame)) % 3
    frame.loc[frame["group"] == 1, "full"] = frame["first_correct"]
    frame.loc[frame["group"] == 2, ["full", "first_correct"]] = False

    rows = forgetting_by(frame, by="group", full="full")

    assert rows["full_flag"].tolist() == ["", "full_equals_del_on", "both"]


def test_forgetting_by_keeps_a_group_without_labels():
    frame = pairs(8).astype({"second_correct": object}).sort_values("group", ignore_index=True)
    sizes = frame["group"].value_counts()
    frame.loc[frame["group"] == "b", "second_correct"] = None
    frame.loc[0, "second_correct"] = None

    with (
        pytest.warns(UndefinedMetricWarning, match="undefined"),
        pytest.warns(UnscoredWarning, match=f"{sizes['b'] + 1} of {len(frame)} facts lack a label"),
    ):
        rows = forgetting_by(frame, by="group", full="full").set_index("group")

    assert rows[["n", "n_missing"]].values.tolist() == [[sizes["a"] - 1, 1], [0, sizes["b"]]]
    assert rows.loc["b", "full_flag"] == ""
    assert rows.loc["b", ["leakage", "statistic"]].isna().all()
    assert rows["p_value"].isna().tolist() == [False, True]
    with pytest.warns(UndefinedMetricWarning, match=r"all intervals \(one cluster\)"):
        row = forgetting_by(pairs(9).assign(item=1)).iloc[0]
    assert row[["del_on_accuracy_low", "del_on_accuracy"]].isna().tolist() == [True, False]


test_forgetting_by_rejects_bad_options = refusals(
    lambda options: forgetting_by(pairs(10), **options),
    ({"full": "FULL"}, ColumnNotFoundError, "'FULL' not found; pass"),
    ({"test": "t"}, "test must be .auto., .independent., .exact."),
    ({"del_on": "item"}, "which is not a correctness label"),
    ({"gold_retrieved": "group"}, r"group\[0\] is .* which is not a correctness label"),
)


@settings(deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), min_size=4, max_size=60
    )
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_intervals_exclude_a_value_exactly_if_its_p_is_below_0_05(pairs):
    frame = pd.DataFrame(pairs, columns=["item", "first_correct", "second_correct"])

    row = forgetting_by(frame).iloc[0]

    cells = cluster_counts(frame["first_correct"], frame["second_correct"], clusters=frame["item"])
    sums = np.column_stack([cells, np.zeros((len(cells), 6))])
    for name in DELETION:
        inferred = cluster_t(parts_of(DELETION_RATES[name]), sums)
        for null in np.linspace(0.02, 0.98, 33):
            p_value = float(inferred.p_value(null))
            if abs(p_value - 0.05) > 1e-9:
                is_out = null < row[f"{name}_low"] or null > row[f"{name}_high"]
                assert (p_value < 0.05) == is_out
