"""Prediction of whether two answers align, from how alike the model's internals are."""

import importlib
import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics._shared.verdicts import MISSING, is_missing, verdict_codes

__all__ = ["AlignmentPredictionResult", "FeaturePrediction", "predict_alignment"]

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePrediction:
    """How well one feature predicts on its own, and its weight among all."""

    name: str
    """Name of the feature."""
    accuracy: float
    """Accuracy with this feature alone, mean over test folds, in [0, 1]."""
    auc: float
    """Area under the ROC curve with this feature alone, mean over test folds, in [0, 1]."""
    coefficient: float
    """Weight of the standardised feature in the model of all features, fitted on all rows:
    positive where more of it speaks for alignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentPredictionResult:
    """Result of `predict_alignment`; means are over test folds."""

    accuracy: float
    """Accuracy with all features, in [0, 1]; higher is more predictable."""
    auc: float
    """Area under the ROC curve with all features, in [0, 1]; 0.5 is chance."""
    baseline_accuracy: float
    """Accuracy of always predicting the more frequent class of the training folds, in [0, 1]."""
    features: tuple[FeaturePrediction, ...]
    """Each feature, in the order of the columns."""
    fold_accuracy: tuple[float, ...]
    """Accuracy of each test fold with all features."""
    fold_auc: tuple[float, ...]
    """Area under the curve of each test fold; NaN where it holds one class only."""
    n: int
    """Rows."""
    n_aligned: int
    """Rows that align."""
    n_groups: int
    """Groups that folds keep together."""


def predict_alignment(
    features: npt.ArrayLike,
    aligned: npt.ArrayLike,
    *,
    groups: Iterable[Hashable],
    names: Sequence[str] | None = None,
    n_folds: int = 5,
    seed: int = 0,
) -> AlignmentPredictionResult:
    """Predict alignment by logistic regression, on rows that the model has not seen.

    Args:
        features: Similarities of each short-long fact pair, shape `(n_pairs, n_features)`, such as
            containment, intersection over union, and the correlations of attention and of MLP
            importances.
        aligned: Whether both answers of the pair are right, rather than one: True or False, 1 or 0.
        groups: The topic of each pair. Pairs of one topic, and the same fact in several models, are
            never split between training and test.
        names: Names of the features; None for "feature 0" and so on.
        n_folds: Number of folds, stratified by alignment.
        seed: Seed of the folds.

    Returns:
        Accuracy and area under the curve with all features and with each alone, the coefficients,
        and the majority baseline.

    Raises:
        MissingDependencyError: When scikit-learn, of the extra `analysis`, is not installed.
        TypeError: When `n_folds` is no integer.
        ValueError: When lengths differ, a feature is not finite, a label is missing, all pairs
            belong to one class, or the folds are more than the groups or the pairs of a class.

    Notes:
        Features are standardised on the training folds. A test fold with one class has no area
        under the curve: NaN there, with an `UndefinedMetricWarning`, and left out of the mean. A
        constant feature predicts the majority. The paper folds pairs, not topics; where pairs of a
        topic resemble each other, that overstates how well a new topic is predicted.

    References:
        SLAQ, arXiv 2510.11218, section 5.3 and figure 5.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> aligned = np.arange(360) % 2 == 0
        >>> similarity = rng.normal(0.26, 0.05, (360, 2)) + 0.08 * np.outer(aligned, [1.0, 0.0])
        >>> result = predict_alignment(similarity, aligned, groups=np.arange(360) // 6)
        >>> result.auc > 0.8, [feature.auc > 0.7 for feature in result.features]
        (True, [True, False])
    """
    matrix, labels = _checked(features, aligned)
    owners = _group_numbers(groups, labels.size)
    titles = _titles(names, matrix.shape[1])
    folds = _folds(labels, owners, n_folds, seed)
    accuracy, auc = _validated(matrix, labels, folds)
    alone = [_validated(matrix[:, [column]], labels, folds) for column in range(len(titles))]
    weights = _model().fit(matrix, labels)[-1].coef_[0]
    baseline = [
        np.mean(labels[folds == fold] == (labels[folds != fold].mean() >= 0.5))
        for fold in range(n_folds)
    ]
    n_single = int(np.isnan(auc).sum())
    if n_single:
        warnings.warn(
            f"{n_single} of {n_folds} folds hold one class only; their area under the curve is "
            "undefined (NaN)",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return AlignmentPredictionResult(
        accuracy=float(accuracy.mean()),
        auc=_mean(auc),
        baseline_accuracy=float(np.mean(baseline)),
        features=tuple(
            FeaturePrediction(
                name=title,
                accuracy=float(of_feature[0].mean()),
                auc=_mean(of_feature[1]),
                coefficient=float(weight),
            )
            for title, of_feature, weight in zip(titles, alone, weights, strict=True)
        ),
        fold_accuracy=tuple(accuracy.tolist()),
        fold_auc=tuple(auc.tolist()),
        n=labels.size,
        n_aligned=int(labels.sum()),
        n_groups=int(owners.max()) + 1,
    )


def _checked(features: npt.ArrayLike, aligned: npt.ArrayLike) -> tuple[_Floats, _Integers]:
    """Return the matrix of features, and the labels as 0 and 1."""
    matrix, labels = np.asarray(features, dtype=np.float64), verdict_codes(aligned, "aligned")
    if matrix.ndim != 2 or matrix.shape[1] == 0 or len(matrix) != labels.size:
        raise ValueError(
            "features must have one row a pair, shape (n_pairs, n_features); got "
            f"{matrix.shape} for {labels.size} labels"
        )
    if not np.isfinite(matrix).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(f"features[{row}, {column}] is not finite: leave the pair out")
    if (labels == MISSING).any():
        raise ValueError(
            f"aligned[{int(np.argmax(labels == MISSING))}] is missing: leave the pair out"
        )
    if not 0 < labels.sum() < labels.size:
        raise ValueError("aligned must hold both classes: there is nothing to tell apart")
    return matrix, labels.astype(np.int64)


def _group_numbers(groups: Iterable[Hashable], n_pairs: int) -> _Integers:
    """Number the groups of the pairs."""
    numbers: dict[Hashable, int] = {}
    codes = []
    for index, label in enumerate(groups):
        if is_missing(label):
            raise ValueError(f"groups[{index}] is {label!r}: name the topic of the pair")
        codes.append(numbers.setdefault(label, len(numbers)))
    if len(codes) != n_pairs:
        raise ValueError(f"groups must name one topic a pair: got {len(codes)} for {n_pairs}")
    return np.asarray(codes, dtype=np.int64)


def _titles(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return a name for each feature."""
    titles = [f"feature {column}" for column in range(n_features)] if names is None else list(names)
    if len(titles) != n_features:
        raise ValueError(f"names must name {n_features} features; got {len(titles)}")
    return titles


def _folds(labels: _Integers, owners: _Integers, n_folds: int, seed: int) -> _Integers:
    """Return the test fold of each pair; a group is in one fold only."""
    fewest = min(int(labels.sum()), int((1 - labels).sum()), int(owners.max()) + 1)
    if not 2 <= check_count(n_folds, "n_folds") <= fewest:
        raise ValueError(
            f"n_folds must lie between 2 and {fewest}, the number of groups or the size of the "
            f"smaller class; got {n_folds}"
        )
    splitter = _sklearn("model_selection").StratifiedGroupKFold(
        n_splits=n_folds, shuffle=True, random_state=seed
    )
    folds = np.empty(labels.size, dtype=np.int64)
    for fold, (_, test) in enumerate(splitter.split(labels, labels, owners)):
        folds[test] = fold
    for fold in range(n_folds):
        kept = labels[folds != fold]
        if not 0 < kept.sum() < kept.size or kept.size == labels.size:
            raise ValueError(
                f"fold {fold} cannot be held out: its groups are all the pairs of a class, or it "
                "is empty; take fewer folds or smaller groups"
            )
    return folds


def _validated(matrix: _Floats, labels: _Integers, folds: _Integers) -> tuple[_Floats, _Floats]:
    """Return accuracy and area under the curve of each test fold."""
    accuracies, areas = [], []
    for fold in range(int(folds.max()) + 1):
        train, test = folds != fold, folds == fold
        model = _model().fit(matrix[train], labels[train])
        accuracies.append(float(np.mean(model.predict(matrix[test]) == labels[test])))
        both = np.unique(labels[test]).size == 2
        scores = model.decision_function(matrix[test])
        roc_auc = _sklearn("metrics").roc_auc_score
        areas.append(float(roc_auc(labels[test], scores)) if both else math.nan)
    return np.asarray(accuracies), np.asarray(areas)


def _mean(values: _Floats) -> float:
    """Return the mean of the values that are not NaN; NaN without any."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _model() -> Any:  # noqa: ANN401
    """Return logistic regression behind a standardiser."""
    return _sklearn("pipeline").make_pipeline(
        _sklearn("preprocessing").StandardScaler(),
        _sklearn("linear_model").LogisticRegression(max_iter=1000),
    )


def _sklearn(module: str) -> Any:  # noqa: ANN401
    """Import a module of scikit-learn, or say how to get it."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError("predicting alignment", "scikit-learn", "analysis") from error
