import math
import warnings

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
from tests.refusals import refusals

DELETION = ("leakage", "retrieval_mediated", "interference", "del_on_accuracy")


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


def test_forgetting_by_clusters_by_fact():
    """L is second accuracy, R the negative flip rate and I the positive one, facts taken whole."""
    frame = audit_frame(3)
    verdicts = frame["first_correct"], frame["second_correct"]
    counts = cluster_counts(*verdicts, clusters=frame["fact_id"])

    for method in ("obuchowski", "durkalski"):
        row = forgetting_by(frame, test=method).iloc[0]
        found = (row["mcnemar_statistic"], row["mcnemar_p_value"])
        assert found == pytest.approx(clustered_mcnemar(counts, method=method))
        assert row["mcnemar_method"] == method
    for name, rate in {
        "leakage": "second_accuracy",
        "retrieval_mediated": "negative_flip_rate",
        "interference": "positive_flip_rate",
        "del_on_accuracy": "first_accuracy",
    }.items():
        found = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert found == pytest.approx(cluster_bootstrap(counts, PAIRED_RATES[rate]), abs=0.004)
    by_row = forgetting_by(frame, cluster=None).iloc[0]
    for name in ("retrieval_mediated", "del_on_accuracy"):
        widths = [one[f"{name}_high"] - one[f"{name}_low"] for one in (row, by_row)]
        assert widths[0] > 1.1 * widths[1]
    assert (row["n_clusters"], by_row["n_clusters"]) == (200, 1200)


def test_forgetting_by_holds_the_columns_that_are_known():
    """Without FULL or traces there are no columns that would mean nothing."""
    frame = audit_frame(4, n_facts=40)

    plain = forgetting_by(frame)
    with_full = forgetting_by(frame, full="full")
    with_trace = forgetting_by(frame, has_gold="has_gold")

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
        rows = forgetting_by(frame, by="variant", full="full")

    assert rows["full_flag"].tolist() == ["", "full_equals_del_on", "", "both"]


def test_forgetting_by_keeps_a_group_without_verdicts():
    frame = audit_frame(8, n_facts=40).astype({"second_correct": object})
    frame.loc[frame["variant"] == "Base", "second_correct"] = None
    frame.loc[frame.index[0], "second_correct"] = None

    with (
        pytest.warns(UndefinedMetricWarning, match="undefined"),
        pytest.warns(UnscoredWarning, match="61 of 240 facts lack a verdict"),
    ):
        rows = forgetting_by(frame, by="variant", full="full").set_index("variant")

    base = rows.loc["Base"]
    assert (base["n"], base["n_missing"], base["full_flag"]) == (0, 60, "")
    assert (rows.loc["Alias", "n"], rows.loc["Alias", "n_missing"]) == (59, 1)
    assert base[["leakage", "mcnemar_statistic"]].isna().all()
    assert rows["mcnemar_p_value"].isna().tolist() == [False, True, False, False]
    with pytest.warns(UndefinedMetricWarning, match=r"all intervals \(one cluster\)"):
        row = forgetting_by(audit_frame(9, n_facts=1)).iloc[0]
    assert math.isnan(row["del_on_accuracy_low"])
    assert not math.isnan(row["del_on_accuracy"])


test_forgetting_by_rejects_bad_options = refusals(
    lambda options: forgetting_by(audit_frame(10, n_facts=4), **options),
    ({"full": "FULL"}, ColumnNotFoundError, "'FULL' is not in the frame"),
    ({"test": "t"}, "test must be .auto., .independent., .exact."),
    ({"del_on": "fact_id"}, "which is no verdict"),
    ({"has_gold": "variant"}, r"variant\[0\] is .* which is no verdict"),
)


@settings(deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), min_size=4, max_size=60
    )
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_intervals_leave_out_a_value_exactly_where_its_p_is_below_a_twentieth(pairs):
    frame = pd.DataFrame(pairs, columns=["fact_id", "first_correct", "second_correct"])

    row = forgetting_by(frame).iloc[0]

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
