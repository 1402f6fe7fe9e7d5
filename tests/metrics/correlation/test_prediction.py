import math
import sys

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics import predict_correctness
from surface_consistency.metrics.correlation.prediction import majority_macro_f1, predict_alignment
from tests.refusals import refusals

metrics = pytest.importorskip("sklearn.metrics")


# Lexical Popularity, tables E to J: macro-F1 of the majority baseline, next to the accuracy of OLMo
# 7B in tables 1 and D. All four models are given the same baseline, which is that of OLMo 7B.
# The last is the accuracy of Pythia 6.9B on LAMBADA (table 1): the paper prints 41.44 for it too.
BASELINES = [
    *((70.75, 41.44), (79.22, 44.20), (69.14, 40.88), (85.0, 45.95), (99.20, 49.80)),
    *((82.08, 45.08), (94.65, 48.63), (89.65, 47.27), (67.13, 40.17)),
]


@pytest.mark.parametrize(("accuracy", "macro_f1"), BASELINES)
def test_majority_baseline_agrees_with_the_published_tables(accuracy, macro_f1):
    assert 100 * majority_macro_f1(accuracy / 100) == pytest.approx(macro_f1, abs=0.011)


def scores_and_verdicts(n=600, strength=1.0, seed=0):
    """Two scores, the first of which is correlated with correctness."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 2))
    return scores, strength * scores[:, 0] + rng.normal(size=n) < 0.8


def slaq_like(seed, gain=0.06):
    """360 fact pairs of 72 topics; the last feature predicts alignment best."""
    rng = np.random.default_rng(seed)
    topic = np.arange(360) // 5
    aligned = rng.random(360) < 0.5
    shift = np.outer(aligned, [0.2, 0.0, 0.5, 1.0]) * gain
    return 0.4 + shift + rng.normal(0, 0.05, (360, 4)), aligned, topic


def by_hand(features, labels, groups, seed):
    """Macro-F1, accuracy and area of each fold, computed with scikit-learn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold

    scores = []
    folds = StratifiedGroupKFold(n_splits=5, shuffle=True, random_state=seed)
    for train, test in folds.split(features, labels, groups):
        assert not set(groups[train]) & set(groups[test])
        mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
        scaled = (features - mean) / spread
        model = LogisticRegression(max_iter=1000).fit(scaled[train], labels[train])
        truth, predicted = labels[test], model.predict(scaled[test])
        area = metrics.roc_auc_score(truth, model.decision_function(scaled[test]))
        f1 = metrics.f1_score(truth, predicted, average="macro")
        scores.append((f1, metrics.accuracy_score(truth, predicted), area))
    return np.mean(scores, axis=0)


def test_predictions_agree_with_scikit_learn_by_hand():
    scores, correct = scores_and_verdicts()
    groups = np.arange(600) // 3
    f1, _, auc = by_hand(scores, correct, groups, 3)
    result = predict_correctness(scores, correct, groups=groups.tolist(), seed=3)

    assert (result["macro_f1"], result["auc"]) == pytest.approx((f1, auc))
    assert [result[name] for name in ("n", "n_correct", "n_groups")] == [600, correct.sum(), 200]

    features, aligned, topic = slaq_like(1)
    _, accuracy, auc = by_hand(features, aligned, topic, 3)
    rows = predict_alignment(features, aligned, groups=topic, names=NAMES, seed=3)
    frame = pd.DataFrame(features, columns=NAMES)
    pd.testing.assert_frame_equal(predict_alignment(frame, aligned, groups=topic, seed=3), rows)

    assert rows["feature"].tolist() == ["all features", *NAMES]
    assert rows.loc[0, ["accuracy", "auc"]].tolist() == pytest.approx([accuracy, auc])
    _, accuracy, auc = by_hand(features[:, [2]], aligned, topic, 3)
    assert rows.loc[3, ["accuracy", "auc"]].tolist() == pytest.approx([accuracy, auc])
    counts = rows[["n", "n_aligned", "n_groups"]]
    assert counts.drop_duplicates().values.tolist() == [[360, int(aligned.sum()), 72]]


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_informative_scores_predict_and_others_do_not(classifier):
    """Without information macro-F1 equals the baseline, and the area one half."""
    rng = np.random.default_rng(1)

    result = predict_correctness(
        rng.normal(size=(800, 2)), rng.random(800) < 0.8, classifier=classifier
    )

    assert result["auc"] == pytest.approx(0.5, abs=0.08)
    assert abs(result["macro_f1"] - result["baseline_macro_f1"]) < 0.03
    expected = majority_macro_f1(result["n_correct"] / 800)
    assert result["baseline_macro_f1"] == pytest.approx(expected, abs=1e-3)
    scores, correct = scores_and_verdicts(strength=3.0)
    result = predict_correctness(scores, correct, classifier=classifier)
    assert result["auc"] > 0.9
    assert result["macro_f1"] - result["baseline_macro_f1"] > 0.2
    scaled = predict_correctness(1000 * scores - 7, correct, classifier=classifier)
    assert scaled["auc"] == pytest.approx(result["auc"], abs=1e-9)


def test_groups_are_not_split_between_training_and_test():
    """Labels that depend only on the fact appear predictable if facts are split."""
    rng = np.random.default_rng(3)
    fact = np.repeat(np.arange(40), 20)
    scores = np.eye(40)[fact] + rng.normal(scale=0.01, size=(800, 40))
    correct = (rng.random(40) < 0.5)[fact]

    torn = predict_correctness(scores, correct)
    kept = predict_correctness(scores, correct, groups=fact.tolist())

    assert torn["auc"] > 0.95
    assert kept["auc"] < 0.75
    torn = predict_alignment(scores, correct, groups=np.arange(800))
    kept = predict_alignment(scores, correct, groups=fact)
    assert torn["auc"][0] > 0.95
    assert kept["auc"][0] < 0.75


NAMES = ("containment", "iou", "pearson attention", "spearman attention")


def test_the_planted_feature_predicts_best():
    """Figure 5: the best feature alone does about as well as all, and has the largest weight."""
    features, aligned, topic = slaq_like(2)

    rows = predict_alignment(features, aligned, groups=topic, names=NAMES)

    whole, by_name = rows.iloc[0], rows.iloc[1:].set_index("feature")
    assert by_name[["auc", "coefficient"]].idxmax().tolist() == ["spearman attention"] * 2
    assert abs(by_name.loc["iou", "auc"] - 0.5) < 0.1
    assert whole["auc"] > 0.75
    assert whole["accuracy"] > whole["baseline_accuracy"] + 0.15
    assert np.isnan(whole["coefficient"])


def test_features_without_effect_predict_the_majority():
    features, aligned, topic = slaq_like(3, gain=0.0)
    features[:, 1] = 0.5

    result = predict_alignment(features, aligned, groups=topic)

    assert abs(result["auc"][0] - 0.5) < 0.12
    assert result["feature"][1] == "feature 0"
    assert result["auc"][2] == 0.5
    assert result["coefficient"][2] == pytest.approx(0.0, abs=1e-9)
    result = predict_alignment(features, np.arange(360) % 5 != 0, groups=topic)
    assert result["baseline_accuracy"].tolist() == pytest.approx([0.8] * 5, abs=0.01)


def test_prediction_is_the_same_for_the_same_seed_or_generator():
    features, aligned, topic = slaq_like(7)

    def predicted(seed):
        return predict_alignment(features, aligned, groups=topic, seed=seed)

    assert predicted(1).equals(predicted(1))
    assert not predicted(2).equals(predicted(1))
    first, second = (predicted(np.random.default_rng(3)) for _ in range(2))
    assert first.equals(second)


def test_fold_of_one_class_has_no_area():
    """If groups have one class each, some test folds may also have one."""
    scores = np.random.default_rng(5).normal(size=(60, 2))
    groups = np.repeat(np.arange(6), 10)

    with pytest.warns(UndefinedMetricWarning, match="folds have only one class") as caught:
        result = predict_correctness(scores, groups >= 2, groups=groups.tolist(), n_folds=3)
    # Of the folds that have both classes.
    assert 0 <= result["auc"] <= 1
    assert caught[0].filename == __file__
    with pytest.warns(UndefinedMetricWarning, match=r"\d of 5 folds have only one class") as caught:
        rows = predict_alignment(scores, groups < 3, groups=groups, n_folds=5)
    assert len(rows) == 3
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_error_of_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.model_selection", None)
    scores, correct = scores_and_verdicts(n=40)
    message = r"scikit-learn.*pip install 'surface-consistency\[analysis\]'"

    with pytest.raises(MissingDependencyError, match=message):
        predict_correctness(scores, correct)
    with pytest.raises(MissingDependencyError, match=message):
        predict_alignment(scores, correct, groups=range(40))


def correctness(scores=(1.0, 2.0, 3.0, 4.0), correct=(1, 1, 0, 0), **options):
    return predict_correctness(scores, correct, **({"n_folds": 2} | options))


def alignment(**spoil):
    features, aligned, topic = slaq_like(10)
    arguments = {"features": features, "aligned": aligned, "groups": topic} | spoil
    return predict_alignment(arguments.pop("features"), arguments.pop("aligned"), **arguments)


test_prediction_rejects_bad_input = refusals(
    lambda call, spoil: call(**spoil),
    (correctness, {"scores": [[1.0, 2.0]]}, "one row per label"),
    (correctness, {"scores": np.ones((4, 0))}, "one row per label"),
    (correctness, {"scores": [1, math.nan, 2, 3]}, r"scores\[1, 0\] is not fin"),
    (correctness, {"correct": [1, None, 0, 1]}, r"correct\[1\] has no label"),
    (correctness, {"correct": [1, 1, 1, 1]}, "both correct and incorrect"),
    (correctness, {"correct": [1, 3, 0, 1]}, r"correct\[1\] is 3"),
    (correctness, {"classifier": "forest"}, "'logistic' or 'svm'; got 'forest'"),
    (correctness, {"n_folds": 3}, "n_folds must be between 2 and 2"),
    (correctness, {"n_folds": 1}, "n_folds must be between 2 and 2"),
    (correctness, {"groups": ["a", "b"]}, "got 2 labels for 4 instances"),
    (correctness, {"groups": ["a", None, "b", "b"]}, r"every instance needs a l"),
    (correctness, {"groups": [*"aabb"]}, "its groups contain all rows of a class"),
    (alignment, {"features": np.ones(360)}, r"one row per pair.*\(360,\)"),
    (alignment, {"features": np.ones((9, 4))}, r"got \(9, 4\) for 360"),
    (alignment, {"features": np.full((360, 4), np.nan)}, r"features\[0, 0\] is no"),
    (alignment, {"aligned": [2] * 360}, r"aligned\[0\] is 2, which is not a correctness label"),
    (alignment, {"aligned": [None] * 360}, r"aligned\[0\] has no label"),
    (alignment, {"aligned": [1] * 360}, "aligned must have both classes"),
    (alignment, {"aligned": np.arange(360) // 5 == 3}, "cannot be a test fold"),
    (alignment, {"groups": range(5)}, "one label per pair; got 5 labels for 360"),
    (alignment, {"groups": [None] * 360}, r"groups\[0\] is None: every pair"),
    (alignment, {"groups": [0] * 360}, "n_folds must be between 2 and 1"),
    (alignment, {"names": ["a"]}, "names must have 4 entries; got 1"),
    (alignment, {"n_folds": 1}, "n_folds must be between 2 and 72"),
    (alignment, {"n_folds": 2.0}, TypeError, "n_folds must be an integer"),
    (majority_macro_f1, {"accuracy": -0.1}, "accuracy must be in"),
    (majority_macro_f1, {"accuracy": 1.1}, "accuracy must be in"),
    (majority_macro_f1, {"accuracy": math.nan}, "accuracy must be in"),
)
