import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics import predict_correctness
from surface_consistency.metrics.correlation.prediction import (
    _defined_mean,
    _group_folds,
    majority_macro_f1,
    predict_alignment,
)
from surface_consistency.metrics.correlation.roc import area_under_curve


@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_area_agrees_with_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    decision, truth = (np.asarray(values, dtype=int) for values in zip(*rows, strict=True))

    area = area_under_curve(decision, np.asarray(truth) == 1)

    if 0 < truth.sum() < truth.size:
        assert area == pytest.approx(metrics.roc_auc_score(truth, decision))
    else:
        assert math.isnan(area)


def test_folds_keep_groups_together():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(2)
    labels, owners = (rng.random(300) < 0.6).astype(int), rng.integers(0, 60, 300)

    folds = _group_folds(labels, owners, 5, 0)

    assert sorted(set(folds.tolist())) == [0, 1, 2, 3, 4]
    for owner in range(60):
        assert len(set(folds[owners == owner].tolist())) == 1


def test_mean_of_areas_leaves_undefined_ones_out_aloud():
    areas = np.array([0.5, math.nan, 0.75])

    with pytest.warns(UndefinedMetricWarning, match="1 of 3 folds hold one class only"):
        assert _defined_mean(areas, stacklevel=1) == 0.625
    assert _defined_mean(areas) == 0.625
    assert math.isnan(_defined_mean(areas[1:2]))


# Lexical Popularity, tables E to J: macro-F1 of the majority baseline, beside the accuracy of OLMo
# 7B in tables 1 and D. All four models are given the same baseline, which is that of OLMo 7B.
BASELINES = [
    (70.75, 41.44),
    (79.22, 44.20),
    (69.14, 40.88),
    (85.0, 45.95),
    (99.20, 49.80),
    (82.08, 45.08),
    (94.65, 48.63),
    (89.65, 47.27),
]


@pytest.mark.parametrize(("accuracy", "macro_f1"), BASELINES)
def test_majority_baseline_agrees_with_the_published_tables(accuracy, macro_f1):
    assert 100 * majority_macro_f1(accuracy / 100) == pytest.approx(macro_f1, abs=0.011)


# The same tables' accuracy of Pythia 6.9B on LAMBADA (table 1): its own baseline is another number
# than the one printed for it.
def test_published_baseline_is_not_that_of_its_model():
    assert 100 * majority_macro_f1(0.6713) == pytest.approx(40.17, abs=0.01)
    assert abs(100 * majority_macro_f1(0.6713) - 41.44) > 1


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, math.nan])
def test_majority_macro_f1_rejects_what_is_no_share(accuracy):
    with pytest.raises(ValueError, match="accuracy must lie in"):
        majority_macro_f1(accuracy)


def scores_and_verdicts(n=600, strength=1.0, seed=0):
    """Two scores, the first of which goes with being right."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 2))
    return scores, strength * scores[:, 0] + rng.normal(size=n) < 0.8


def test_predictability_agrees_with_a_pipeline_of_scikit_learn():
    """Same folds, same learner, the library's own metrics."""
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score, roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scores, correct = scores_and_verdicts()
    groups = np.arange(600) // 3
    result = predict_correctness(scores, correct, groups=groups.tolist(), rng=3)

    f1, auc = [], []
    folds = StratifiedGroupKFold(n_splits=5, shuffle=True, random_state=3)
    for train, test in folds.split(scores, correct, groups):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(scores[train], correct[train])
        f1.append(f1_score(correct[test], model.predict(scores[test]), average="macro"))
        auc.append(roc_auc_score(correct[test], model.predict_proba(scores[test])[:, 1]))

    assert result["macro_f1"] == pytest.approx(np.mean(f1))
    assert result["auc"] == pytest.approx(np.mean(auc))
    assert [result[name] for name in ("n", "n_correct", "n_groups")] == [600, correct.sum(), 200]


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_scores_without_information_predict_nothing(classifier):
    """Macro-F1 stays at the baseline, and the area at one half."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)

    result = predict_correctness(
        rng.normal(size=(800, 2)), rng.random(800) < 0.8, classifier=classifier
    )

    assert result["auc"] == pytest.approx(0.5, abs=0.08)
    assert abs(result["macro_f1"] - result["baseline_macro_f1"]) < 0.03
    assert result["baseline_macro_f1"] == pytest.approx(
        majority_macro_f1(result["n_correct"] / 800), abs=1e-3
    )


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_scores_with_information_are_found(classifier):
    pytest.importorskip("sklearn")
    scores, correct = scores_and_verdicts(strength=3.0)

    result = predict_correctness(scores, correct, classifier=classifier)

    assert result["auc"] > 0.9
    assert result["macro_f1"] - result["baseline_macro_f1"] > 0.2


def test_area_is_free_of_the_scale_of_the_scores():
    pytest.importorskip("sklearn")
    scores, correct = scores_and_verdicts()

    result = predict_correctness(scores, correct)
    scaled = predict_correctness(1000 * scores - 7, correct)

    assert scaled["auc"] == pytest.approx(result["auc"], abs=1e-9)


def test_groups_keep_copies_out_of_the_test():
    """Verdicts that follow only from which fact it is look predictable when facts are torn."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)
    fact = np.repeat(np.arange(40), 20)
    scores = np.eye(40)[fact] + rng.normal(scale=0.01, size=(800, 40))
    correct = (rng.random(40) < 0.5)[fact]

    torn = predict_correctness(scores, correct)
    kept = predict_correctness(scores, correct, groups=fact.tolist())

    assert torn["auc"] > 0.95
    assert kept["auc"] < 0.75


def test_fold_of_one_class_has_no_area():
    """Two groups hold all wrong answers, so a third fold has only right ones."""
    pytest.importorskip("sklearn")
    groups = np.repeat(np.arange(6), 10)
    correct = groups >= 2
    scores = np.random.default_rng(5).normal(size=60)

    with pytest.warns(UndefinedMetricWarning, match="folds hold one class only"):
        result = predict_correctness(scores, correct, groups=groups.tolist(), n_folds=3)

    # Of the folds that have both classes.
    assert 0 <= result["auc"] <= 1


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    scores, correct = scores_and_verdicts(n=40)

    with pytest.raises(
        MissingDependencyError, match=r"scikit-learn.*surface-consistency\[analysis\]"
    ):
        predict_correctness(scores, correct)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0, 2.0]]}, "one row a verdict"),
        ({"scores": np.ones((4, 0))}, "one row a verdict"),
        ({"scores": [1.0, math.nan, 2.0, 3.0]}, r"scores\[1, 0\] is not finite"),
        ({"correct": [1, None, 0, 1]}, r"correct\[1\] has no verdict"),
        ({"correct": [1, 1, 1, 1]}, "both right and wrong"),
        ({"correct": [1, 3, 0, 1]}, r"correct\[1\] is 3"),
        ({"classifier": "forest"}, "'logistic' or 'svm'; got 'forest'"),
        ({"n_folds": 3}, "n_folds must lie between 2 and 2"),
        ({"n_folds": 1}, "n_folds must lie between 2 and 2"),
        ({"groups": ["a", "b"]}, "got 2 labels for 4 instances"),
        ({"groups": ["a", None, "b", "b"]}, r"groups\[1\] is None: every instance needs a label"),
        ({"groups": ["a", "a", "b", "b"]}, "its groups are all the rows of a class"),
    ],
)
def test_predict_correctness_rejects_bad_input(change, message):
    pytest.importorskip("sklearn")
    arguments = {"scores": [1.0, 2.0, 3.0, 4.0], "correct": [1, 1, 0, 0], "n_folds": 2} | change

    with pytest.raises(ValueError, match=message):
        predict_correctness(arguments.pop("scores"), arguments.pop("correct"), **arguments)


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

    row = predict_alignment(features, aligned, groups=topic, names=NAMES, rng=3).iloc[0]

    assert row["feature"] == "all features"
    assert row["accuracy"] == pytest.approx(np.mean(accuracy))
    assert row["auc"] == pytest.approx(np.mean(auc))
    assert row[["n", "n_aligned", "n_groups"]].tolist() == [360, int(aligned.sum()), 72]


def test_the_planted_feature_leads():
    """Figure 5: the best feature alone does about as well as all, and has the largest weight."""
    features, aligned, topic = slaq_like(2)

    rows = predict_alignment(features, aligned, groups=topic, names=NAMES)

    whole, by_name = rows.iloc[0], rows.iloc[1:].set_index("feature")
    assert tuple(by_name.index) == NAMES
    assert by_name[["auc", "coefficient"]].idxmax().tolist() == ["spearman attention"] * 2
    assert abs(by_name.loc["iou", "auc"] - 0.5) < 0.1
    assert whole["auc"] > 0.75
    assert whole["accuracy"] > whole["baseline_accuracy"] + 0.15
    assert np.isnan(whole["coefficient"])


def test_features_without_effect_predict_nothing():
    features, aligned, topic = slaq_like(3, gain=0.0)

    result = predict_alignment(features, aligned, groups=topic)

    assert abs(result["auc"][0] - 0.5) < 0.12
    assert result["feature"][1] == "feature 0"


def test_topics_are_never_split():
    """A feature that only names the topic predicts nothing of a topic that was not seen."""
    rng = np.random.default_rng(4)
    topic = np.repeat(np.arange(24), 15)
    aligned = rng.permutation(np.arange(24) % 2 == 0)[topic]
    features = rng.normal(size=(24, 20))[topic]

    grouped = predict_alignment(features, aligned, groups=topic)
    torn = predict_alignment(features, aligned, groups=np.arange(360))

    assert torn["auc"][0] > 0.95
    assert grouped["auc"][0] < 0.75


def test_baseline_is_the_majority():
    features, _, topic = slaq_like(5)
    aligned = np.arange(360) % 5 != 0

    result = predict_alignment(features, aligned, groups=topic)

    assert result["baseline_accuracy"].tolist() == pytest.approx([0.8] * 5, abs=0.01)


def test_a_constant_feature_predicts_the_majority():
    features, aligned, topic = slaq_like(6)
    features[:, 1] = 0.5

    result = predict_alignment(features, aligned, groups=topic)

    assert result["auc"][2] == 0.5
    assert result["coefficient"][2] == pytest.approx(0.0, abs=1e-9)


def test_prediction_is_the_same_for_the_same_seed():
    features, aligned, topic = slaq_like(7)

    first, second = (predict_alignment(features, aligned, groups=topic, rng=1) for _ in range(2))

    assert first.equals(second)
    assert not predict_alignment(features, aligned, groups=topic, rng=2).equals(first)


def test_prediction_takes_a_generator():
    features, aligned, topic = slaq_like(7)

    first, second = (
        predict_alignment(features, aligned, groups=topic, rng=np.random.default_rng(3))
        for _ in range(2)
    )

    assert first.equals(second)


def test_a_fold_of_one_class_has_no_area():
    """Where topics hold one class each, some test folds may too."""
    rng = np.random.default_rng(8)
    topic = np.repeat(np.arange(6), 5)
    aligned = topic < 3

    with pytest.warns(UndefinedMetricWarning, match=r"\d of 5 folds hold one class only"):
        result = predict_alignment(rng.normal(size=(30, 2)), aligned, groups=topic, n_folds=5)

    assert len(result) == 3


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
        ({"features": np.ones((9, 4))}, ValueError, r"got \(9, 4\) for 360"),
        ({"features": np.full((360, 4), np.nan)}, ValueError, r"features\[0, 0\] is not finite"),
        ({"aligned": [2] * 360}, ValueError, r"aligned\[0\] is 2, which is no verdict"),
        ({"aligned": [None] * 360}, ValueError, r"aligned\[0\] has no verdict"),
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
