"""Cross-validation in which groups stay together; needs scikit-learn."""

import importlib
import math
import warnings
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics._shared.ranks import average_ranks
from surface_consistency.metrics._shared.vectors import Floats

__all__ = ["Classifier", "area_under_curve", "defined_mean", "group_folds", "scaled_classifier"]

Classifier: TypeAlias = Literal["logistic", "svm"]
"""Logistic regression, or a support-vector machine with a polynomial kernel of degree 3."""

_Codes = npt.NDArray[np.int64]


def group_folds(labels: _Codes, owners: _Codes, n_folds: int, seed: int, *, feature: str) -> _Codes:
    """Return the test fold of each row, stratified by label; a group is in one fold only."""
    fewest = min(int(labels.sum()), int((1 - labels).sum()), int(owners.max()) + 1)
    if not 2 <= check_count(n_folds, "n_folds") <= fewest:
        raise ValueError(
            f"n_folds must lie between 2 and {fewest}, the size of the smaller class or the number "
            f"of groups; got {n_folds}"
        )
    splitter = _sklearn("model_selection", feature).StratifiedGroupKFold(
        n_splits=n_folds, shuffle=True, random_state=seed
    )
    folds = np.full(labels.size, -1, dtype=np.int64)
    for fold, (_, test) in enumerate(splitter.split(labels, labels, owners)):
        folds[test] = fold
    for fold in range(n_folds):
        kept = labels[folds != fold]
        if not 0 < kept.sum() < kept.size or kept.size == labels.size:
            raise ValueError(
                f"fold {fold} cannot be held out: its groups are all the rows of a class, or it is "
                "empty; take fewer folds or smaller groups"
            )
    return folds


def scaled_classifier(kind: Classifier, *, feature: str) -> Any:  # noqa: ANN401
    """Return the classifier behind a standardiser."""
    if kind == "svm":
        learner = _sklearn("svm", feature).SVC(kernel="poly", degree=3)
    else:
        learner = _sklearn("linear_model", feature).LogisticRegression(max_iter=1000)
    scaler = _sklearn("preprocessing", feature).StandardScaler()
    return _sklearn("pipeline", feature).make_pipeline(scaler, learner)


def area_under_curve(truth: _Codes, decision: npt.ArrayLike) -> float:
    """Return the probability that a 1 scores above a 0, ties counting half; NaN for one class."""
    n_right = int(truth.sum())
    n_wrong = truth.size - n_right
    if n_right == 0 or n_wrong == 0:
        return math.nan
    ranks = average_ranks(np.asarray(decision, dtype=np.float64))
    above = float(ranks[truth == 1].sum()) - n_right * (n_right + 1) / 2.0
    return above / (n_right * n_wrong)


def defined_mean(areas: Floats, *, stacklevel: int | None = None) -> float:
    """Return the mean of the areas that are not NaN, and, with a `stacklevel`, warn of the rest."""
    defined = areas[~np.isnan(areas)]
    if stacklevel is not None and defined.size < areas.size:
        warnings.warn(
            f"{areas.size - defined.size} of {areas.size} folds hold one class only; their area "
            "under the curve is undefined (NaN)",
            UndefinedMetricWarning,
            stacklevel=stacklevel + 1,
        )
    return float(defined.mean()) if defined.size else math.nan


def _sklearn(module: str, feature: str) -> Any:  # noqa: ANN401
    """Import a module of scikit-learn, or say how to get it for this feature."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(feature, "scikit-learn", "analysis") from error
