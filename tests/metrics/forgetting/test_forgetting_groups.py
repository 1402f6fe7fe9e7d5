import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    Intervals,
    cluster_bootstrap,
    paired_table,
)
from surface_consistency.metrics.forgetting.forgetting_groups import DELETION_RATES, forgetting_by
from surface_consistency.metrics.paired.mcnemar_tests import clustered_mcnemar, mcnemar
from surface_consistency.metrics.paired.paired_tables import cluster_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_t, parts_of

DELETION = ("leakage", "retrieval_mediated", "interference", "del_on_accuracy")
GIVEN_FULL = (
    "survival_given_full",
    "leakage_given_full",
    "retrieval_mediated_given_full",
    "interference_given_full",
    "artifact_rate_given_full",
)


def audit_frame(seed=0, n_facts=200, n_prompts=6):
    """Facts under six prompts each, in four variants, right in three states."""
    rng = np.random.default_rng(seed)
    n = n_facts * n_prompts
    fact = np.repeat(np.arange(n_facts), n_prompts)
    easy = rng.beta(1, 3, n_facts)[fact]
    full = rng.random(n) < 0.3 + 0.5 * easy
    del_off = rng.random(n) < 0.15 * easy
    del_on = rng.random(n) < 0.4 * easy + 0.3 * del_off
    return pd.DataFrame(
        {
            "fact_id": fact,
            "variant": np.array(["Alias", "Base", "Collision", "Noise"])[fact % 4],
            "first_correct": del_on,
            "second_correct": del_off,
            "full": full,
            "has_gold": rng.random(n) < 0.2,
        }
    )


def naive_rates(group):
    """L, R, I and A fact by fact, from their definitions; the same of facts right under FULL."""
    on, off, gold = (
        group[name].astype(bool) for name in ("first_correct", "second_correct", "has_gold")
    )
    events = {
        "leakage": off,
        "retrieval_mediated": on & ~off,
        "interference": off & ~on,
        "artifact_rate": on & ~gold,
    }
    rates = {name: one.mean() for name, one in events.items()}
    rates |= {"del_on_accuracy": on.mean(), "full_accuracy": group["full"].mean()}
    events["survival"] = on
    full = group["full"].astype(bool)
    return rates | {f"{name}_given_full": one[full].mean() for name, one in events.items()}


def test_forgetting_by_agrees_with_a_naive_loop_over_facts():
    frame = audit_frame()

    rows = forgetting_by(
        frame,
        by="variant",
        full="full",
        has_gold="has_gold",
        test="independent",
        intervals=Intervals(n_resamples=200),
    ).set_index("variant")

    assert rows.index.tolist() == ["Alias", "Base", "Collision", "Noise"]
    for variant, group in frame.groupby("variant"):
        table = paired_table(group["first_correct"], group["second_correct"])
        expected, row = naive_rates(group), rows.loc[variant]
        assert tuple(row[["both", "first_only", "second_only", "neither"]]) == table.counts
        assert (row["n"], row["n_clusters"]) == (300, 50)
        assert row["artifacts"] == (group["first_correct"] & ~group["has_gold"]).sum()
        assert row["full_correct"] == group["full"].sum()
        assert set(expected) == {*DELETION, "artifact_rate", "full_accuracy", *GIVEN_FULL}
        for name, rate in expected.items():
            assert row[name] == pytest.approx(rate)
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
        assert row["mcnemar_method"] in ("corrected", "exact")
        found = (row["mcnemar_statistic"], row["mcnemar_p_value"])
        assert found == pytest.approx(mcnemar(table))
        assert row["full_flag"] == ""


def test_forgetting_by_agrees_with_the_golden_totals(data_files):
    """The published cells as one row a fact give the published totals."""
    cells = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    rows = []
    for cell in cells.itertuples():
        for count, del_on, del_off in (
            (cell.a, True, True),
            (cell.b, True, False),
            (cell.c, False, True),
            (cell.d, False, False),
        ):
            rows += [(cell.variant, del_on, del_off)] * count
    frame = pd.DataFrame(rows, columns=["variant", "first_correct", "second_correct"])

    result = forgetting_by(frame, by="variant", cluster=None, test="independent").set_index(
        "variant"
    )

    assert result["n"].to_dict() == {
        "Alias": 3840,
        "Base": 1920,
        "Collision": 2748,
        "Noise": 3120,
        "Released": 600,
    }
    assert result.loc["Noise", "mcnemar_statistic"] == pytest.approx(407.1164, abs=5e-5)
    assert result.loc["Released", "mcnemar_p_value"] == 0.125
    stack = 100 * (result["leakage"] + result["retrieval_mediated"])
    assert stack.loc["Collision"] == pytest.approx(7.169, abs=5e-4)
    identity = result["leakage"] + result["retrieval_mediated"] - result["interference"]
    assert (result["del_on_accuracy"] - identity).abs().max() < 1e-12


def test_forgetting_by_agrees_with_paired_rates():
    """L is second accuracy, R the negative flip rate and I the positive one."""
    frame = audit_frame(1)
    counts = cluster_counts(
        frame["first_correct"], frame["second_correct"], clusters=frame["fact_id"]
    )

    (row,) = forgetting_by(frame, intervals=Intervals(n_resamples=20_000)).to_dict("records")

    for name, rate in {
        "leakage": "second_accuracy",
        "retrieval_mediated": "negative_flip_rate",
        "interference": "positive_flip_rate",
        "del_on_accuracy": "first_accuracy",
    }.items():
        reference = cluster_bootstrap(
            counts, PAIRED_RATES[rate], intervals=Intervals(n_resamples=20_000, rng=7)
        )
        found = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert found == pytest.approx(reference, abs=0.004)


def test_forgetting_by_clusters_by_fact():
    """Six prompts on one fact are not six facts: the interval is wider than that of rows."""
    frame = audit_frame(2)

    facts, rows = (forgetting_by(frame, cluster=cluster) for cluster in ("fact_id", None))

    width = {
        name: (
            (facts[f"{name}_high"] - facts[f"{name}_low"])[0],
            (rows[f"{name}_high"] - rows[f"{name}_low"])[0],
        )
        for name in ("retrieval_mediated", "del_on_accuracy")
    }
    assert all(clustered > 1.1 * naive for clustered, naive in width.values())
    assert (facts["n_clusters"][0], rows["n_clusters"][0]) == (200, 1200)


def test_forgetting_by_tests_clusters_when_asked():
    frame = audit_frame(3)
    counts = cluster_counts(
        frame["first_correct"], frame["second_correct"], clusters=frame["fact_id"]
    )

    for method in ("obuchowski", "durkalski"):
        (row,) = forgetting_by(frame, test=method, intervals=Intervals(n_resamples=10)).to_dict(
            "records"
        )
        reference = clustered_mcnemar(counts, method=method)
        found = (row["mcnemar_statistic"], row["mcnemar_p_value"])
        assert found == pytest.approx(reference)
        assert row["mcnemar_method"] == method


def test_forgetting_by_holds_the_columns_that_are_known():
    """Without FULL or traces there are no columns that would mean nothing."""
    frame = audit_frame(4, n_facts=40)

    plain = forgetting_by(frame, intervals=Intervals(n_resamples=10))
    with_full = forgetting_by(frame, full="full", intervals=Intervals(n_resamples=10))
    with_trace = forgetting_by(frame, has_gold="has_gold", intervals=Intervals(n_resamples=10))

    assert not {"full_correct", "full_flag", "artifacts", "artifact_rate"} & set(plain.columns)
    assert {"full_correct", "full_flag", "survival_given_full"} <= set(with_full.columns)
    assert "artifact_rate_given_full" not in with_full.columns
    assert {"artifacts", "artifact_rate"} <= set(with_trace.columns)
    assert "full_accuracy" not in with_trace.columns


def test_forgetting_by_flags_contaminated_groups():
    frame = audit_frame(5, n_facts=40)
    frame.loc[frame["variant"] == "Base", "full"] = frame["first_correct"]
    frame.loc[frame["variant"] == "Noise", ["full", "first_correct"]] = False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        rows = forgetting_by(frame, by="variant", full="full", intervals=Intervals(n_resamples=10))

    assert rows["full_flag"].tolist() == ["", "full_equals_del_on", "", "both"]


def test_forgetting_by_is_free_of_row_order():
    frame = audit_frame(6, n_facts=40)

    there = forgetting_by(frame, by="variant", full="full", intervals=Intervals(n_resamples=100))
    back = forgetting_by(
        frame.sample(frac=1.0, random_state=2),
        by="variant",
        full="full",
        intervals=Intervals(n_resamples=100),
    )

    pd.testing.assert_frame_equal(there, back)


def test_forgetting_by_leaves_rows_without_a_value_out():
    frame = audit_frame(7, n_facts=40).astype({"full": object})
    frame.loc[[0, 30], "full"] = None

    with pytest.warns(UnscoredWarning, match="2 of 240 facts lack a verdict"):
        rows = forgetting_by(frame, full="full", intervals=Intervals(n_resamples=10))

    assert (rows["n"][0], rows["n_missing"][0]) == (238, 2)


def test_forgetting_by_keeps_a_group_without_verdicts():
    frame = audit_frame(8, n_facts=40).astype({"second_correct": object})
    frame.loc[frame["variant"] == "Base", "second_correct"] = None

    with (
        pytest.warns(UndefinedMetricWarning, match="undefined"),
        pytest.warns(UnscoredWarning, match="lack a verdict"),
    ):
        rows = forgetting_by(
            frame, by="variant", full="full", intervals=Intervals(n_resamples=10)
        ).set_index("variant")

    assert (rows.loc["Base", "n"], rows.loc["Base", "full_flag"]) == (0, "")
    assert math.isnan(rows.loc["Base", "leakage"])
    assert rows.loc["Base", "n_missing"] == 60
    assert rows["mcnemar_p_value"].isna().tolist() == [False, True, False, False]
    assert math.isnan(rows.loc["Base", "mcnemar_statistic"])


def test_forgetting_by_of_one_cluster_has_no_intervals():
    frame = audit_frame(9, n_facts=1)

    with pytest.warns(UndefinedMetricWarning, match=r"all intervals \(one cluster\)"):
        rows = forgetting_by(frame)

    assert math.isnan(rows["del_on_accuracy_low"][0])
    assert not math.isnan(rows["del_on_accuracy"][0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"full": "FULL"}, ColumnNotFoundError, "'FULL' is not in the frame"),
        ({"by": "leakage"}, ValueError, "has the name of a column of the result"),
        ({"test": "t"}, ValueError, "test must be .auto., .independent., .exact."),
        ({"missing": "skip"}, ValueError, "missing must be"),
        ({"del_on": "fact_id"}, ValueError, "which is no verdict"),
        ({"has_gold": "variant"}, ValueError, r"variant\[0\] is .* which is no verdict"),
    ],
)
def test_forgetting_by_rejects_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        forgetting_by(audit_frame(10, n_facts=4), **options)


def test_forgetting_by_rejects_what_is_no_frame():
    with pytest.raises(TypeError, match="frame must be a pandas DataFrame, one row a fact"):
        forgetting_by({"first_correct": [1]})
    with pytest.raises(ValueError, match="frame has no rows: there are no facts to count"):
        forgetting_by(audit_frame(11).iloc[:0])


@settings(deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), min_size=4, max_size=60
    ),
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_intervals_leave_out_a_value_exactly_where_its_p_is_below_a_twentieth(pairs):
    frame = pd.DataFrame(pairs, columns=["fact_id", "first_correct", "second_correct"])

    row = forgetting_by(frame).iloc[0]

    low, high = row["accuracy_difference_low"], row["accuracy_difference_high"]
    assert (row["mcnemar_p_value"] < 0.05) == (low > 0 or high < 0)
    assert math.isnan(row["mcnemar_p_value"]) == math.isnan(low)
    cells = cluster_counts(
        frame["first_correct"], frame["second_correct"], clusters=frame["fact_id"]
    )
    sums = np.column_stack([cells, np.zeros((len(cells), 6))])
    for name in DELETION:
        inferred = cluster_t(parts_of(DELETION_RATES[name]), sums)
        for null in np.linspace(0.02, 0.98, 33):
            p_value = float(inferred.p_value(null))
            if abs(p_value - 0.05) > 1e-9:
                is_out = null < row[f"{name}_low"] or null > row[f"{name}_high"]
                assert (p_value < 0.05) == is_out
