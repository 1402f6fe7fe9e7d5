"""Areas under the ROC curve with clusters: scikit-learn, DeLong by hand, planted truth."""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import clustered_auc
from tests.refusals import refusals

metrics = pytest.importorskip("sklearn.metrics")


rows = st.lists(
    st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 9)), min_size=2, max_size=60
).filter(
    lambda rows: (
        len({label for _, label, _ in rows}) == 2 == len({s > rows[0][0] for s, _, _ in rows})
    )
)


@given(rows, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_area_equals_scikit_learn_and_its_interval_agrees_with_its_test(rows, confidence):
    scores, labels, clusters = (list(column) for column in zip(*rows, strict=True))
    found = clustered_auc(scores, labels, clusters, confidence=confidence)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, scores))
    assert found["n_positive"] + found["n_negative"] == len(rows)
    right, wrong = (np.array(scores)[np.array(labels) == side] for side in (True, False))
    assert found["tied_share"] == pytest.approx(np.mean(right[:, None] == wrong))
    low, high = found["auc_low"], found["auc_high"]
    if not np.isnan(low):
        assert 0.0 <= low <= found["auc"] + 1e-12
        assert found["auc"] - 1e-12 <= high <= 1.0
    assert np.isnan(found["p_value"]) == np.isnan(low) == bool(found["reason"])
    if not found["reason"] and abs(found["p_value"] - (1 - confidence)) > 1e-9:
        assert (found["p_value"] < 1 - confidence) == (low > 0.5 or high < 0.5)


def test_variance_without_clusters_equals_that_of_delong():
    rng = np.random.default_rng(3)
    positive, negative = rng.normal(0.8, 1, 60), rng.normal(0, 1, 80)
    # DeLong et al. 1988, by loops.
    above = np.array([[(p > n) + 0.5 * (p == n) for n in negative] for p in positive])
    expected = above.mean(1).var(ddof=1) / 60 + above.mean(0).var(ddof=1) / 80
    labels = np.r_[np.ones(60), np.zeros(80)]
    found = clustered_auc(np.r_[positive, negative], labels)
    auc = above.mean()
    low, high = found["auc_low"], found["auc_high"]
    logit = np.log([low / (1 - low), high / (1 - high)])
    spread = np.diff(logit)[0] / 2 / stats.t.ppf(0.975, 59) * auc * (1 - auc)
    assert found["auc"] == pytest.approx(auc)
    assert spread == pytest.approx(np.sqrt(expected), rel=1e-9)


def test_degrees_of_freedom_count_clusters_with_positives():
    """Of 200 clusters 8 have a positive: 195 degrees of freedom would cover only 0.9."""
    rng, covered, rejected, tries = np.random.default_rng(1), 0, 0, 300
    owners = np.repeat(np.arange(200), 3)
    for _ in range(tries):
        labels = (owners < 8) & (rng.random(600) < 0.6)
        labels[[0, 3, 6, 9, 12]] = True
        scores = rng.normal(0, 1, 200)[owners] + rng.normal(0, 1, 600)
        found = clustered_auc(scores, labels, owners)
        covered += found["auc_low"] <= 0.5 <= found["auc_high"]
        rejected += found["p_value"] < 0.05
    assert covered + rejected == tries
    assert 0.93 <= covered / tries <= 0.985


@pytest.mark.parametrize(
    ("owners_of_positives", "reason"),
    [
        ([0] * 10 + [1] * 10 + [2] * 10, "positives: effective number of clusters 3, minimum 4"),
        ([0] * 30 + list(range(1, 31)), "positives: effective number of clusters 3.87, minimum 4"),
    ],
)
def test_missing_inference_has_a_reason(owners_of_positives, reason):
    n = len(owners_of_positives)
    owners = np.r_[owners_of_positives, np.arange(100, 160)]
    labels = np.r_[np.ones(n), np.zeros(60)]
    found = clustered_auc(np.random.default_rng(0).normal(size=n + 60), labels, owners)
    assert re.search(reason, found["reason"])
    assert 0 < found["auc"] < 1
    assert np.isnan([found["p_value"], found["auc_low"], found["auc_high"]]).all()
    found = clustered_auc([1, 2, 2, 1] * 6, [0, 1, 0, 1] * 6, np.repeat(np.arange(6), 4))
    assert (found["auc"], found["reason"]) == (0.5, "the clusters do not vary")
    found = clustered_auc([1, 2, 3, 1.5, 2.5, 0, 2, 4], [0, 1] * 4, np.repeat(np.arange(4), 2))
    assert found["reason"] == ""
    assert 0 < found["p_value"] < 1


def test_perfect_scores_have_an_interval_with_a_width():
    found = clustered_auc([1, 2] * 4, [0, 1] * 4, np.repeat(np.arange(4), 2))
    assert found["auc"] == found["auc_high"] == 1.0
    # Wilson's for four trials, t with 3 degrees: 1 - 3.182^2 / (4 + 3.182^2).
    assert found["auc_low"] == pytest.approx(1 - 10.1276 / 14.1276, abs=1e-4)
    assert found["p_value"] == pytest.approx(2 * stats.t.sf(2, 3))
    found = clustered_auc([4, 3, 2, 1] * 10, [0, 0, 1, 1] * 10, np.repeat(np.arange(20), 2))
    assert found["auc"] == 0.0
    assert found["auc_low"] == 0.0
    assert found["auc_high"] > 0.05


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([0.5] * 20, [0, 1] * 10, "all scores are tied"),
        ([1, 2], [1, 1], "there are 2 positives and 0 negatives"),
    ],
)
def test_undefined_area_is_nan(scores, labels, reason):
    with pytest.warns(UndefinedMetricWarning, match=f"undefined.*{reason}"):
        found = clustered_auc(scores, labels)
    assert np.isnan(found["auc"])
    assert found["reason"] == reason
    assert np.isnan(found["tied_share"]) == (0 not in labels)


test_bad_arguments_are_rejected = refusals(
    lambda arguments: clustered_auc(*arguments),
    (([1, np.nan], [1, 0]), r"scores\[1\] is NaN"),
    (([1, 2], [1, 2]), "labels must be 0 or 1"),
    (([1, 2], [1]), "equal lengths, one entry per example"),
    (([1, 2], [1, 0], ["a"]), "one label per example"),
)
