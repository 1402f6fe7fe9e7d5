import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics import majority_macro_f1, predict_correctness
from surface_consistency.metrics.popularity import predictability

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
    result = predict_correctness(scores, correct, groups=groups.tolist(), seed=3)

    f1, auc = [], []
    folds = StratifiedGroupKFold(n_splits=5, shuffle=True, random_state=3)
    for train, test in folds.split(scores, correct, groups):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(scores[train], correct[train])
        f1.append(f1_score(correct[test], model.predict(scores[test]), average="macro"))
        auc.append(roc_auc_score(correct[test], model.predict_proba(scores[test])[:, 1]))

    assert result.fold_macro_f1 == pytest.approx(f1, abs=1e-12)
    assert result.fold_auc == pytest.approx(auc, abs=1e-12)
    assert result.macro_f1 == pytest.approx(np.mean(f1))
    assert (result.n, result.n_correct, result.n_groups) == (600, int(correct.sum()), 200)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_f1_agrees_with_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    decision, truth = (np.asarray(values, dtype=int) for values in zip(*rows, strict=True))
    predicted = (decision > 2).astype(int)

    expected = metrics.f1_score(truth, predicted, labels=[0, 1], average="macro", zero_division=0)

    assert predictability._macro_f1(truth, predicted) == pytest.approx(expected)


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_scores_without_information_predict_nothing(classifier):
    """Macro-F1 stays at the baseline, and the area at one half."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)

    result = predict_correctness(
        rng.normal(size=(800, 2)), rng.random(800) < 0.8, classifier=classifier
    )

    assert result.auc == pytest.approx(0.5, abs=0.08)
    assert abs(result.gain) < 0.03
    assert result.baseline_macro_f1 == pytest.approx(
        majority_macro_f1(result.n_correct / 800), abs=1e-3
    )


@pytest.mark.parametrize("classifier", ["logistic", "svm"])
def test_scores_with_information_are_found(classifier):
    pytest.importorskip("sklearn")
    scores, correct = scores_and_verdicts(strength=3.0)

    result = predict_correctness(scores, correct, classifier=classifier)

    assert result.auc > 0.9
    assert result.gain > 0.2


def test_area_is_free_of_the_scale_of_the_scores():
    pytest.importorskip("sklearn")
    scores, correct = scores_and_verdicts()

    result = predict_correctness(scores, correct)
    scaled = predict_correctness(1000 * scores - 7, correct)

    assert scaled.fold_auc == pytest.approx(result.fold_auc, abs=1e-9)


def test_groups_keep_copies_out_of_the_test():
    """Verdicts that follow only from which fact it is look predictable when facts are torn."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)
    fact = np.repeat(np.arange(40), 20)
    scores = np.eye(40)[fact] + rng.normal(scale=0.01, size=(800, 40))
    correct = (rng.random(40) < 0.5)[fact]

    torn = predict_correctness(scores, correct)
    kept = predict_correctness(scores, correct, groups=fact.tolist())

    assert torn.auc > 0.95
    assert kept.auc < 0.75


def test_fold_of_one_class_has_no_area():
    """Two groups hold all wrong answers, so a third fold has only right ones."""
    pytest.importorskip("sklearn")
    groups = np.repeat(np.arange(6), 10)
    correct = groups >= 2
    scores = np.random.default_rng(5).normal(size=60)

    with pytest.warns(UndefinedMetricWarning, match="folds hold one class only"):
        result = predict_correctness(scores, correct, groups=groups.tolist(), n_folds=3)

    assert any(math.isnan(value) for value in result.fold_auc)


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
        ({"scores": [1.0, math.nan, 2.0, 3.0]}, r"scores\[1\] is not finite"),
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
