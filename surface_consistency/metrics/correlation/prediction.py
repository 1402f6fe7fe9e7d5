"""Cross-validated prediction of correctness and alignment from scores; needs scikit-learn."""

import importlib
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import ModuleType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import MissingDependencyError
from surface_consistency.metrics import _inputs
from surface_consistency.metrics._groups import root_seed
from surface_consistency.metrics.correlation.roc import area_under_curve

Classifier: TypeAlias = Literal["logistic", "svm"]
"""Logistic regression, or a support-vector machine with a polynomial kernel of degree 3."""


def _group_folds(
    labels: _inputs.Integers, owners: _inputs.Integers, n_folds: int, rng: object
) -> _inputs.Integers:
    """Return the test fold of each row, stratified by label; a group is in one fold only."""
    fewest = min(int(labels.sum()), int((1 - labels).sum()), int(owners.max()) + 1)
    if not 2 <= _inputs.check_count(n_folds, "n_folds") <= fewest:
        raise ValueError(
            f"n_folds must be between 2 and {fewest}, the size of the smaller class or the number "
            f"of groups; got {n_folds}"
        )
    splitter = _sklearn("model_selection").StratifiedGroupKFold(
        n_splits=n_folds, shuffle=True, random_state=root_seed(rng, below=2**32)
    )
    folds = np.full(labels.size, -1, dtype=np.int64)
    for fold, (_, test) in enumerate(splitter.split(labels, labels, owners)):
        folds[test] = fold
    for fold in range(n_folds):
        trained = labels[folds != fold]
        if not 0 < trained.sum() < trained.size or trained.size == labels.size:
            raise ValueError(
                f"fold {fold} cannot be a test fold: it is empty, or its groups contain all rows "
                "of a class; use fewer folds or smaller groups"
            )
    return folds


def _maker(kind: Classifier) -> Callable[[], Any]:
    """Return a function that makes a pipeline of a standardiser and the classifier."""
    scaler, pipeline = _sklearn("preprocessing").StandardScaler, _sklearn("pipeline").make_pipeline
    if kind == "svm":
        return lambda: pipeline(scaler(), _sklearn("svm").SVC(kernel="poly", degree=3))
    return lambda: pipeline(scaler(), _sklearn("linear_model").LogisticRegression(max_iter=1000))


def _cross_validated(
    matrix: _inputs.Floats,
    labels: _inputs.Integers,
    folds: _inputs.Integers,
    score: Literal["accuracy", "f1_macro"],
    classifier: Classifier = "logistic",
) -> tuple[float, _inputs.Floats, float]:
    """Return the mean score, the area under the curve per fold, and the score of the majority."""
    scores, areas, majority = [], [], []
    metrics, make = _sklearn("metrics"), _maker(classifier)

    def scored(truth: _inputs.Integers, predicted: _inputs.Integers) -> float:
        """Score the predictions of a fold."""
        if score == "accuracy":
            return float(np.mean(truth == predicted))
        options: dict[str, Any] = {"labels": [0, 1], "average": "macro", "zero_division": 0.0}
        return float(metrics.f1_score(truth, predicted, **options))

    for fold in range(int(folds.max()) + 1):
        train, test = folds != fold, folds == fold
        model = make().fit(matrix[train], labels[train])
        scores.append(scored(labels[test], np.asarray(model.predict(matrix[test]))))
        areas.append(area_under_curve(model.decision_function(matrix[test]), labels[test] == 1))
        most = int(labels[train].mean() >= 0.5)
        majority.append(scored(labels[test], np.full(int(test.sum()), most)))
    return float(np.mean(scores)), np.asarray(areas), float(np.mean(majority))


def _defined_mean(areas: _inputs.Floats, *, stacklevel: int | None = None) -> float:
    """Return the mean of the areas that are not NaN; with a `stacklevel`, warn of the others."""
    defined = areas[~np.isnan(areas)]
    if stacklevel is not None and defined.size < areas.size:
        _inputs.warn_undefined(
            f"{areas.size - defined.size} of {areas.size} folds have only one class; their area "
            "under the curve is undefined (NaN)",
            stacklevel=stacklevel + 1,
        )
    return float(defined.mean()) if defined.size else math.nan


def _sklearn(module: str) -> ModuleType:
    """Import a module of scikit-learn; raise an error that names the extra if it is missing."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ModuleNotFoundError as error:
        feature = "prediction by cross-validation"
        raise MissingDependencyError(feature, "scikit-learn", "analysis") from error


def majority_macro_f1(accuracy: float) -> float:
    """Return the macro-F1 of always predicting the more frequent class.

    Args:
        accuracy: Proportion of instances of one class, in [0, 1].

    Returns:
        p / (1 + p), where p is the proportion of the more frequent class; in [1/3, 1/2].

    Raises:
        ValueError: If `accuracy` is not in [0, 1].

    Notes:
        The F1 of the class that is never predicted counts as 0.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables E to J, rows "baseline".

    Examples:
        >>> round(100 * majority_macro_f1(0.7075), 2)
        41.43
    """
    if not 0.0 <= accuracy <= 1.0:
        raise ValueError(f"accuracy must be in [0, 1]; got {accuracy!r}")
    share = max(accuracy, 1.0 - accuracy)
    return share / (1.0 + share)


def predict_correctness(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    groups: Iterable[Hashable] | None = None,
    classifier: Classifier = "logistic",
    n_folds: int = 5,
    seed: np.random.Generator | int | None = 0,
) -> dict[str, float]:
    """Return the macro-F1 and AUC with which scores predict correctness, by cross-validation.

    Args:
        scores: Scores of each instance, shape `(n_instances, n_scores)` or `(n_instances,)`, such
            as the loss of the correct and of the wrong option. They are standardised on the
            training folds.
        correct: Correctness labels of the same instances, without missing values.
        groups: Group of each instance, such as the fact. A group is never split between training
            and test. None makes each instance a separate group.
        classifier: "logistic" regression, or "svm" with a polynomial kernel of degree 3.
        n_folds: Number of folds, stratified by correctness.
        seed: Seed of the folds, at least 0; a generator; or None for fresh entropy.

    Returns:
        macro_f1 (mean of the F1 of correct and of incorrect answers) and auc (area under the ROC
        curve; NaN if no test fold has both classes), means over test folds, in [0, 1];
        baseline_macro_f1, that of always predicting the more frequent class of the training folds;
        n, n_correct and n_groups.

    Raises:
        MissingDependencyError: If scikit-learn, from the extra `analysis`, is not installed.
        TypeError: If `n_folds` is not an integer.
        ValueError: If lengths differ, a score is not finite, a label is missing or not binary, a
            group is missing, all labels of the data or of a training set are equal, or `n_folds`
            exceeds the size of a class or the number of groups.

    Notes:
        In a test fold with only one class the area under the curve is NaN, with an
        `UndefinedMetricWarning`, and is excluded from the mean. The order of the instances affects
        the folds. The paper does not report how its scores were validated.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 6 and tables E to J.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss = rng.normal(size=400)
        >>> row = predict_correctness(loss, loss + rng.normal(size=400) < 0.5)
        >>> row["auc"] > 0.8, row["macro_f1"] - row["baseline_macro_f1"] > 0.2
        (True, True)
    """
    features, labels = _inputs.scores_and_verdicts(scores, correct)
    if not 0 < labels.sum() < labels.size:
        raise ValueError("correct must have both correct and incorrect answers")
    _inputs.check_choice(classifier, ("logistic", "svm"), "classifier")
    owners = _inputs.label_codes(groups, labels.size, "groups", row="instance")
    folds = _group_folds(labels, owners, n_folds, seed)
    macro_f1, auc, baseline = _cross_validated(features, labels, folds, "f1_macro", classifier)
    return {
        "macro_f1": macro_f1,
        "auc": _defined_mean(auc, stacklevel=2),
        "baseline_macro_f1": baseline,
        "n": labels.size,
        "n_correct": int(labels.sum()),
        "n_groups": int(owners.max()) + 1,
    }


def predict_alignment(
    features: npt.ArrayLike,
    aligned: npt.ArrayLike,
    *,
    groups: Iterable[Hashable],
    names: Sequence[str] | None = None,
    n_folds: int = 5,
    seed: np.random.Generator | int | None = 0,
) -> pd.DataFrame:
    """Return the accuracy and AUC with which features predict alignment, by cross-validation.

    Args:
        features: Similarities of each short-long fact pair, shape `(n_pairs, n_features)`, such as
            containment, intersection over union, and the correlations of attention and of MLP
            importances.
        aligned: True or 1 if both answers of the pair are correct, False or 0 if only one is.
        groups: The topic of each pair. Pairs of one topic, and the same fact in several models, are
            never split between training and test.
        names: Names of the features; None for the columns of a frame, else "feature 0" and so on.
        n_folds: Number of folds, stratified by alignment.
        seed: Seed of the folds, at least 0; a generator; or None for fresh entropy.

    Returns:
        Results of logistic regressions, one row for "all features" and one per feature alone:
        feature; accuracy and auc (area under the ROC curve), means over test folds, in [0, 1];
        coefficient, the weight of the standardised feature in the model of all features, fitted on
        all rows (NaN in the first row). Every row also has baseline_accuracy, that of always
        predicting the more frequent class of the training folds, n, n_aligned and n_groups.

    Raises:
        MissingDependencyError: If scikit-learn, from the extra `analysis`, is not installed.
        TypeError: If `n_folds` is not an integer.
        ValueError: If lengths differ, a feature is not finite, a label is missing, all labels of
            the data or of a training set are equal, or `n_folds` exceeds the size of a class or the
            number of groups.

    Notes:
        Features are standardised on the training folds. In a test fold with only one class the area
        under the curve is NaN, with an `UndefinedMetricWarning`, and is excluded from the mean.
        With a constant feature the more frequent class is predicted. The paper uses folds of pairs,
        not topics; if pairs of a topic are similar, this overestimates the accuracy for a new
        topic.

    References:
        SLAQ, arXiv 2510.11218, section 5.3 and figure 5.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> aligned = np.arange(360) % 2 == 0
        >>> similarity = rng.normal(0.26, 0.05, (360, 2)) + 0.08 * np.outer(aligned, [1.0, 0.0])
        >>> rows = predict_alignment(similarity, aligned, groups=np.arange(360) // 6)
        >>> (rows["auc"] > 0.7).tolist()
        [True, True, False]
    """
    if np.ndim(features) != 2:
        raise ValueError(
            "features must have one row per pair, shape (n_pairs, n_features); got "
            f"{np.shape(features)}"
        )
    matrix, labels = _inputs.scores_and_verdicts(
        features, aligned, names=("features", "aligned"), row="pair"
    )
    if not 0 < labels.sum() < labels.size:
        raise ValueError("aligned must have both classes")
    owners = _inputs.label_codes(groups, labels.size, "groups", row="pair")
    n_features = matrix.shape[1]
    own = map(str, getattr(features, "columns", ()))
    titles = [*(names or own)] or [f"feature {k}" for k in range(n_features)]
    if len(titles) != n_features:
        raise ValueError(f"names must have {n_features} entries; got {len(titles)}")
    folds = _group_folds(labels, owners, n_folds, seed)
    weights = _maker("logistic")().fit(matrix, labels)[-1].coef_[0]
    rows: list[dict[str, object]] = []
    for columns, title, weight in (
        (range(n_features), "all features", math.nan),
        *(([k], titles[k], float(weights[k])) for k in range(n_features)),
    ):
        accuracy, auc, baseline = _cross_validated(matrix[:, columns], labels, folds, "accuracy")
        area = _defined_mean(auc, stacklevel=None if rows else 2)
        row = {"feature": title, "accuracy": accuracy, "auc": area, "coefficient": weight}
        rows.append(row)
    return pd.DataFrame(rows).assign(
        baseline_accuracy=baseline,
        n=labels.size,
        n_aligned=int(labels.sum()),
        n_groups=int(owners.max()) + 1,
    )
