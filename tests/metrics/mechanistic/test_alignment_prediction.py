import math
import sys

import numpy as np
import pytest

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics.mechanistic.alignment_prediction import predict_alignment

NAMES = ("containment", "iou", "pearson attention", "spearman attention")


@pytest.fixture(autouse=True)
def _needs_sklearn():
    pytest.importorskip("sklearn")


def slaq_like(seed, gain=0.06):
    """360 fact pairs of 72 topics, of which the last feature tells aligned ones best."""
    rng = np.random.default_rng(seed)
    topic = np.arange(360) // 5
    aligned = rng.random(360) < 0.5
    shift = np.outer(aligned, [0.2, 0.0, 0.5, 1.0]) * gain
    return 0.4 + shift + rng.normal(0, 0.05, (360, 4)), aligned, topic


def test_prediction_agrees_with_a_fit_by_hand():
    """One fold at a time, standardised on the training folds, with scikit-learn's own parts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold

    features, aligned, topic = slaq_like(1)
    folds = StratifiedGroupKFold(n_splits=5, shuffle=True, random_state=3)
    accuracy, auc = [], []
    for train, test in folds.split(features, aligned, topic):
        mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
        scaled = (features - mean) / spread
        model = LogisticRegression(max_iter=1000).fit(scaled[train], aligned[train])
        accuracy.append(accuracy_score(aligned[test], model.predict(scaled[test])))
        auc.append(roc_auc_score(aligned[test], model.decision_function(scaled[test])))

    result = predict_alignment(features, aligned, groups=topic, names=NAMES, seed=3)

    assert result.fold_accuracy == pytest.approx(accuracy)
    assert result.fold_auc == pytest.approx(auc)
    assert result.accuracy == pytest.approx(np.mean(accuracy))
    assert result.auc == pytest.approx(np.mean(auc))
    assert (result.n, result.n_aligned, result.n_groups) == (360, int(aligned.sum()), 72)


def test_the_planted_feature_leads():
    """Figure 5: the best feature alone does about as well as all, and has the largest weight."""
    features, aligned, topic = slaq_like(2)

    result = predict_alignment(features, aligned, groups=topic, names=NAMES)

    by_name = {feature.name: feature for feature in result.features}
    best = by_name["spearman attention"]
    assert tuple(by_name) == NAMES
    assert best.auc == max(feature.auc for feature in result.features)
    assert best.coefficient == max(feature.coefficient for feature in result.features)
    assert abs(by_name["iou"].auc - 0.5) < 0.1
    assert result.auc > 0.75
    assert result.accuracy > result.baseline_accuracy + 0.15


def test_features_without_effect_predict_nothing():
    features, aligned, topic = slaq_like(3, gain=0.0)

    result = predict_alignment(features, aligned, groups=topic)

    assert abs(result.auc - 0.5) < 0.12
    assert result.features[0].name == "feature 0"


def test_topics_are_never_split():
    """A feature that only names the topic predicts nothing of a topic that was not seen."""
    rng = np.random.default_rng(4)
    topic = np.repeat(np.arange(24), 15)
    aligned = rng.permutation(np.arange(24) % 2 == 0)[topic]
    features = rng.normal(size=(24, 20))[topic]

    grouped = predict_alignment(features, aligned, groups=topic)
    torn = predict_alignment(features, aligned, groups=np.arange(360))

    assert torn.auc > 0.95
    assert grouped.auc < 0.75


def test_baseline_is_the_majority():
    features, _, topic = slaq_like(5)
    aligned = np.arange(360) % 5 != 0

    result = predict_alignment(features, aligned, groups=topic)

    assert result.baseline_accuracy == pytest.approx(0.8, abs=0.01)


def test_a_constant_feature_predicts_the_majority():
    features, aligned, topic = slaq_like(6)
    features[:, 1] = 0.5

    result = predict_alignment(features, aligned, groups=topic)

    assert result.features[1].auc == 0.5
    assert result.features[1].coefficient == pytest.approx(0.0, abs=1e-9)


def test_prediction_is_the_same_for_the_same_seed():
    features, aligned, topic = slaq_like(7)

    first, second = (predict_alignment(features, aligned, groups=topic, seed=1) for _ in range(2))

    assert first == second
    assert predict_alignment(features, aligned, groups=topic, seed=2) != first


def test_a_fold_of_one_class_has_no_area():
    """Where topics hold one class each, some test folds may too."""
    rng = np.random.default_rng(8)
    topic = np.repeat(np.arange(6), 5)
    aligned = topic < 3

    with pytest.warns(UndefinedMetricWarning, match=r"\d of 5 folds hold one class only"):
        result = predict_alignment(rng.normal(size=(30, 2)), aligned, groups=topic, n_folds=5)

    assert any(math.isnan(auc) for auc in result.fold_auc)
    defined = [auc for auc in result.fold_auc if not math.isnan(auc)]
    assert result.auc == pytest.approx(np.mean(defined), nan_ok=True)


def test_prediction_names_the_extra_that_it_needs(monkeypatch):
    features, aligned, topic = slaq_like(9)
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)

    with pytest.raises(
        MissingDependencyError, match=r"scikit-learn.*pip install 'surface-consistency\[analysis\]'"
    ):
        predict_alignment(features, aligned, groups=topic)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        ({"features": np.ones(360)}, ValueError, r"features must have one row a pair.*\(360,\)"),
        ({"features": np.ones((9, 4))}, ValueError, r"got \(9, 4\) for 360 labels"),
        ({"features": np.full((360, 4), np.nan)}, ValueError, r"features\[0, 0\] is not finite"),
        ({"aligned": [2] * 360}, ValueError, r"aligned\[0\] is 2, which is no verdict"),
        ({"aligned": [None] * 360}, ValueError, r"aligned\[0\] is missing"),
        ({"aligned": [1] * 360}, ValueError, "aligned must hold both classes"),
        ({"groups": range(5)}, ValueError, "one label a pair: got 5 labels for 360"),
        ({"groups": [None] * 360}, ValueError, r"groups\[0\] is None: every pair needs a label"),
        ({"groups": [0] * 360}, ValueError, "n_folds must lie between 2 and 1, the size of"),
        ({"names": ["a"]}, ValueError, "names must name 4 features; got 1"),
        ({"n_folds": 1}, ValueError, "n_folds must lie between 2 and 72"),
        ({"n_folds": 2.0}, TypeError, "n_folds must be an integer"),
    ],
)
def test_prediction_rejects_bad_input(spoil, error, message):
    features, aligned, topic = slaq_like(10)
    arguments = {"features": features, "aligned": aligned, "groups": topic} | spoil

    with pytest.raises(error, match=message):
        predict_alignment(arguments.pop("features"), arguments.pop("aligned"), **arguments)


def test_prediction_rejects_a_class_in_one_topic():
    features, _, topic = slaq_like(11)

    with pytest.raises(ValueError, match="cannot be held out"):
        predict_alignment(features, topic == 3, groups=topic)
