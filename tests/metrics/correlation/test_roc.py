"""Areas under the ROC curve with clusters: scikit-learn, DeLong by hand, planted truth."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import clustered_auc

metrics = pytest.importorskip("sklearn.metrics")


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 4)), min_size=2, max_size=40
    ).filter(lambda rows: len({label for _, label, _ in rows}) == 2)
)
def test_the_area_is_that_of_scikit_learn_and_lies_in_its_interval(rows):
    scores, labels, clusters = (list(column) for column in zip(*rows, strict=True))
    found = clustered_auc(scores, labels, clusters)
    assert found.auc == pytest.approx(metrics.roc_auc_score(labels, scores))
    assert found.n_positive + found.n_negative == len(rows)
    low, high = found.auc_interval.low, found.auc_interval.high
    if not np.isnan(low):
        assert 0.0 <= low <= found.auc + 1e-12
        assert found.auc - 1e-12 <= high <= 1.0


def test_without_clusters_the_variance_is_that_of_delong():
    rng = np.random.default_rng(3)
    positive, negative = rng.normal(0.8, 1, 60), rng.normal(0, 1, 80)
    # DeLong et al. 1988, by loops.
    above = np.array([[(p > n) + 0.5 * (p == n) for n in negative] for p in positive])
    expected = above.mean(1).var(ddof=1) / 60 + above.mean(0).var(ddof=1) / 80
    labels = np.r_[np.ones(60), np.zeros(80)]
    found = clustered_auc(np.r_[positive, negative], labels)
    auc = above.mean()
    low, high = found.auc_interval.low, found.auc_interval.high
    logit = np.log([low / (1 - low), high / (1 - high)])
    spread = np.diff(logit)[0] / 2 / stats.t.ppf(0.975, 139) * auc * (1 - auc)
    assert found.auc == pytest.approx(auc)
    assert spread == pytest.approx(np.sqrt(expected), rel=1e-9)


def test_intervals_cover_where_clusters_share_their_level():
    rng, covered, tries = np.random.default_rng(0), 0, 400
    truth = None
    for trial in range(tries + 1):
        n = 30 if trial else 100_000
        level = rng.normal(0, 1, n)
        positive = level + rng.normal(0.7, 1, n)
        negative = level + rng.normal(0, 1, n)
        scores = np.r_[positive, negative]
        found = clustered_auc(
            scores, np.r_[np.ones(n), np.zeros(n)], np.r_[np.arange(n), np.arange(n)]
        )
        if truth is None:
            truth = found.auc
        else:
            covered += found.auc_interval.low <= truth <= found.auc_interval.high
    assert 0.92 <= covered / tries <= 0.985


def test_perfect_scores_do_not_get_an_interval_of_no_width():
    found = clustered_auc([1, 2, 3, 4], [0, 0, 1, 1], ["a", "b", "a", "b"])
    assert found.auc == 1.0
    assert found.auc_interval.low < 0.5
    found = clustered_auc([4, 3, 2, 1] * 10, [0, 0, 1, 1] * 10, np.repeat(np.arange(20), 2))
    assert found.auc == 0.0
    assert found.auc_interval.low == 0.0
    assert found.auc_interval.high > 0.05


def test_what_has_no_area_is_nan_and_what_is_no_label_is_refused():
    with pytest.warns(UndefinedMetricWarning, match="2 positives and 0 negatives"):
        assert np.isnan(clustered_auc([1, 2], [1, 1]).auc)
    with pytest.raises(ValueError, match=r"scores\[1\] is NaN"):
        clustered_auc([1, np.nan], [1, 0])
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        clustered_auc([1, 2], [1, 2])
    with pytest.raises(ValueError, match="one label a example"):
        clustered_auc([1, 2], [1, 0], ["a"])
