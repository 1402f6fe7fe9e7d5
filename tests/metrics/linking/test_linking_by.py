import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics.linking.linking import LINKING_KINDS, LINKING_RATES, linking_table
from surface_consistency.metrics.linking.linking_by import linking_by


def examples(seed=0, n_pairs=300):
    """Three examples a pair; pairs of a fact share how well the model knows the entity."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(rng.integers(0, n_pairs // 2, n_pairs), 3)
    known = rng.random(n_pairs)[fact]
    kind = np.tile(LINKING_KINDS, n_pairs)
    chance = np.where(kind == "positive", 0.2 + 0.5 * known, 0.5 + 0.4 * known)
    types = [["Typical_Errors"], ["Spelling_variants"], ["Typical_Errors", "Spelling_variants"]]
    labels = pd.Series([types[k] for k in rng.integers(0, 3, n_pairs)])
    return pd.DataFrame(
        {
            "fact_id": fact,
            "kind": kind,
            "type": np.repeat(labels.to_numpy(), 3),
            "is_correct": rng.random(3 * n_pairs) < chance,
        }
    )


def test_groups_agree_with_their_tables():
    frame = examples()

    rows = linking_by(frame, by="type", n_resamples=200).set_index("type")

    for name in ("Typical_Errors", "Spelling_variants"):
        members = frame[[name in labels for labels in frame["type"]]]
        table = linking_table(members["is_correct"], members["kind"].tolist())
        cells = ["positive_right", "positive_wrong", "negative_right", "negative_wrong"]
        assert tuple(rows.loc[name, cells]) == table.counts
        assert rows.loc[name, "n_clusters"] == members["fact_id"].nunique()
        for rate in LINKING_RATES:
            assert rows.loc[name, rate] == pytest.approx(getattr(table, rate))
            assert rows.loc[name, f"{rate}_low"] < rows.loc[name, rate]
            assert rows.loc[name, rate] < rows.loc[name, f"{rate}_high"]


def test_intervals_agree_with_a_naive_cluster_loop():
    frame = examples(1, n_pairs=80)
    parts = dict(iter(frame.groupby("fact_id")))
    rng = np.random.default_rng(2)
    values = []
    for _ in range(600):
        drawn = pd.concat([parts[fact] for fact in rng.choice(list(parts), len(parts))])
        values.append(linking_table(drawn["is_correct"], drawn["kind"].tolist()).balanced_accuracy)

    (row,) = linking_by(frame).to_dict("records")

    bounds = row["balanced_accuracy_low"], row["balanced_accuracy_high"]
    assert bounds == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.2 * np.std(values))


def test_rows_may_be_their_own_clusters():
    frame = examples(3)

    (row,) = linking_by(frame, cluster=None, n_resamples=200).to_dict("records")

    assert row["n_clusters"] == row["n"] == 900


def test_examples_without_verdict_are_counted():
    frame = examples(4)
    frame["is_correct"] = frame["is_correct"].astype(object)
    frame.loc[[0, 5], "is_correct"] = None

    with pytest.warns(UnscoredWarning, match="2 of 900 linking examples lack a verdict"):
        (row,) = linking_by(frame, n_resamples=50).to_dict("records")

    assert (row["n"], row["n_missing"]) == (898, 2)
    with pytest.raises(ValueError, match=r"is_correct\[0\] has no verdict"):
        linking_by(frame, missing="raise")


def test_group_without_negatives_is_nan_with_a_warning():
    frame = examples(5)

    with pytest.warns(UndefinedMetricWarning, match="balanced_accuracy"):
        (row,) = linking_by(frame[frame["kind"] == "positive"], n_resamples=50).to_dict("records")

    assert math.isnan(row["balanced_accuracy"])
    assert row["raw_accuracy"] == row["positive_accuracy"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "relation"}, ColumnNotFoundError, "column 'relation' is not in the frame"),
        ({"by": ["type", "type"]}, ValueError, "by names a column twice"),
        ({"kind": "type"}, ValueError, r"type\[0\] must be one of positive"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"n_resamples": 0}, ValueError, "n_resamples must be at least 1"),
        ({"confidence": 95}, ValueError, "confidence must lie strictly"),
    ],
)
def test_linking_by_rejects_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        linking_by(examples(), **options)
