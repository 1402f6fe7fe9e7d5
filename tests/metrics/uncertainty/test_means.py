import numpy as np
import pandas as pd
import pytest
from scipy import stats

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics import Intervals, mean_by
from tests.refusals import refusals

FRAME = pd.DataFrame({"group": ["a", "b"] * 40, "cluster": np.arange(80) // 4, "score": 1.0})


def test_a_group_has_its_own_mean_and_counts():
    scores = np.arange(80) % 3 == 0
    frame = FRAME.assign(score=np.where(np.arange(80) < 8, np.nan, scores))

    with pytest.warns(UnscoredWarning, match="8 of 80 rows lack a score"):
        rows = mean_by(frame, by="group", cluster="cluster")

    expected = frame.groupby("group")["score"].mean()
    assert rows["mean"].tolist() == pytest.approx(expected.tolist())
    assert rows[["n", "n_missing", "n_clusters"]].to_numpy().tolist() == [[36, 4, 18]] * 2


def test_the_interval_excludes_0_exactly_if_p_is_below_1_minus_the_level():
    rng = np.random.default_rng(4)
    for shift in (0.0, 0.1, 0.2, 0.4):
        frame = FRAME.assign(score=rng.uniform(-1, 1, 80) * 0.6 + shift)
        for level in (0.5, 0.9, 0.95, 0.99):
            options = {"scale": (-1, 1), "intervals": Intervals(confidence=level)}
            row = mean_by(frame, cluster="cluster", **options).iloc[0]
            excludes = row["mean_low"] > 0 or row["mean_high"] < 0
            assert excludes == (row["p_value"] < 1 - level)


def test_a_group_without_a_score_keeps_its_row():
    frame = FRAME.assign(score=np.where(FRAME["group"] == "a", np.nan, 1.0))

    with pytest.warns(UnscoredWarning, match="40 of 80"):
        first, second = mean_by(frame, by="group").to_dict("records")

    assert np.isnan(first["mean"])
    assert (first["n"], first["not_inferred"]) == (0, "no row has a score")
    assert (second["mean"], second["mean_high"]) == (1.0, 1.0)


test_mean_by_rejects = refusals(
    lambda options: mean_by(FRAME.assign(score=[2.0, *FRAME["score"][1:]]), **options),
    ({"scale": (0, 1)}, "between 1 and 2, outside the scale 0 to 1"),
    ({"intervals": Intervals(method="percentile")}, "intervals of means need method='auto'"),
    ({"by": "mean"}, "by column 'mean' has the name of a column of the result"),
)


def test_graded_scores_that_vary_in_all_clusters_have_nearly_the_t_of_cluster_means():
    """With 20 clusters of similar events the term for few events is 0, but not with few events."""
    rng, cluster = np.random.default_rng(2), np.arange(400) // 20

    def ratio(scores):
        frame = pd.DataFrame({"score": scores, "cluster": cluster})
        row = mean_by(frame, cluster="cluster").iloc[0]
        means = frame.groupby("cluster")["score"].mean()
        half = stats.t.ppf(0.975, 19) * means.std() / np.sqrt(20)
        return (row["mean_high"] - row["mean_low"]) / (2 * half)

    assert ratio(rng.beta(2, 6, 400)) == pytest.approx(1.0, abs=0.05)
    rare = np.where(rng.random(400) < 0.97, 1.0, rng.random(400))
    assert ratio(rare) > 1.3


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.0, 100.0), (1.0, 5.0), (-2.0, -1.0), (-1.0, 0.0)])
def test_limits_scale_with_the_scores(scale):
    rng = np.random.default_rng(5)
    scores = np.where(rng.random(120) < 0.9, 1.0, rng.random(120))
    width = scale[1] - scale[0]
    frame = pd.DataFrame({"score": scores, "cluster": np.arange(120) // 4})
    one = mean_by(frame, cluster="cluster", scale=(0.0, 1.0))
    moved = frame.assign(score=scale[0] + width * scores)
    other = mean_by(moved, cluster="cluster", scale=scale)
    for name in ("mean", "mean_low", "mean_high"):
        assert other[name].iloc[0] == pytest.approx(scale[0] + width * one[name].iloc[0])
