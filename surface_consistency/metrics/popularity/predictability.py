"""Predictability of correctness: do memorization scores tell right answers from wrong ones?"""

import math
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics._shared.verdicts import MISSING, verdict_codes

__all__ = ["PredictabilityResult", "majority_macro_f1", "predict_correctness"]

_Floats = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictabilityResult:
    """Result of `predict_correctness`; each number is a mean over test folds."""

    macro_f1: float
    """Mean of the F1 of right and of wrong answers, in [0, 1]; higher is more predictable."""
    auc: float
    """Area under the ROC curve, in [0, 1]; 0.5 is chance. NaN where no fold holds both classes."""
    baseline_macro_f1: float
    """Macro-F1 of always predicting the more frequent class of the training folds, in [0, 1]."""
    fold_macro_f1: tuple[float, ...]
    """Macro-F1 of each test fold."""
    fold_auc: tuple[float, ...]
    """Area under the curve of each test fold; NaN where it holds one class only."""
    n: int
    """Instances."""
    n_correct: int
    """Instances that are right."""
    n_groups: int
    """Groups that folds keep together; `n` when none are given."""

    @property
    def gain(self) -> float:
        """Macro-F1 less that of the baseline, in [-1, 1]; near 0: the scores predict nothing."""
        return self.macro_f1 - self.baseline_macro_f1


def majority_macro_f1(accuracy: float) -> float:
    """Return the macro-F1 of always predicting the more frequent class.

    Args:
        accuracy: Share of instances of one class, in [0, 1].

    Returns:
        p / (1 + p), p being the share of the more frequent class; in [1/3, 1/2].

    Raises:
        ValueError: When `accuracy` is not in [0, 1].

    Notes:
        The F1 of the class that is never predicted counts as 0.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables E to J, rows "baseline".

    Examples:
        >>> round(100 * majority_macro_f1(0.7075), 2)
        41.43
    """
    if not 0.0 <= accuracy <= 1.0:
        raise ValueError(f"accuracy must lie in [0, 1]; got {accuracy!r}")
    share = max(accuracy, 1.0 - accuracy)
    return share / (1.0 + share)


def predict_correctness(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    groups: Iterable[Hashable] | None = None,
    classifier: Literal["logistic", "svm"] = "logistic",
    n_folds: int = 5,
    seed: int = 0,
) -> PredictabilityResult:
    """Predict from scores whether a model is right, on instances that the predictor has not seen.

    Args:
        scores: Scores of each instance, shape `(n_instances, n_scores)` or `(n_instances,)`, such
            as the loss of the correct and of the wrong option. They are standardised on the
            training folds.
        correct: Verdicts of the same instances, none missing.
        groups: What must not be torn between training and test, such as the fact; None lets every
            instance go where it will.
        classifier: "logistic" regression, or "svm" with a polynomial kernel of degree 3.
        n_folds: Number of folds, stratified by verdict.
        seed: Seed of the folds.

    Returns:
        Macro-F1 and area under the curve, each as mean over folds and by fold, with the majority
        baseline on the same folds.

    Raises:
        MissingDependencyError: When scikit-learn, of the extra `analysis`, is not installed.
        TypeError: When `n_folds` is no integer.
        ValueError: When lengths differ, a score is not finite, a verdict is missing or not binary,
            all verdicts are equal, even without one fold, or a class or the groups are fewer than
            the folds.

    Notes:
        A test fold with one class has no area under the curve; it is NaN there, with an
        `UndefinedMetricWarning`, and left out of the mean. The order of the instances matters
        through the folds. The paper does not say how its scores were validated.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 6 and tables E to J.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss = rng.normal(size=400)
        >>> result = predict_correctness(loss, loss + rng.normal(size=400) < 0.5)
        >>> result.auc > 0.8, result.gain > 0.2
        (True, True)
    """
    features, labels = _checked(scores, correct)
    if classifier not in ("logistic", "svm"):
        raise ValueError(f"classifier must be 'logistic' or 'svm'; got {classifier!r}")
    owners = _owners(groups, labels.size)
    folds = _folds(labels, owners, n_folds, seed)
    macro_f1, auc, baseline = [], [], []
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        model = _model(classifier)
        model.fit(features[train], labels[train])
        macro_f1.append(_macro_f1(labels[test], np.asarray(model.predict(features[test]))))
        auc.append(_auc(labels[test], np.asarray(model.decision_function(features[test]))))
        majority = int(labels[train].mean() >= 0.5)
        baseline.append(_macro_f1(labels[test], np.full(int(test.sum()), majority)))
    defined = [value for value in auc if not math.isnan(value)]
    if len(defined) < n_folds:
        warnings.warn(
            f"{n_folds - len(defined)} of {n_folds} folds hold one class only; their area under "
            "the curve is undefined (NaN)",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return PredictabilityResult(
        macro_f1=float(np.mean(macro_f1)),
        auc=float(np.mean(defined)) if defined else math.nan,
        baseline_macro_f1=float(np.mean(baseline)),
        fold_macro_f1=tuple(macro_f1),
        fold_auc=tuple(auc),
        n=labels.size,
        n_correct=int(labels.sum()),
        n_groups=int(owners.max()) + 1,
    )


def _checked(scores: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[_Floats, _Codes]:
    """Return a matrix of scores and the verdicts as 0 and 1."""
    features = np.asarray(scores, dtype=np.float64)
    features = features[:, None] if features.ndim == 1 else features
    codes = verdict_codes(correct, "correct")
    if features.ndim != 2 or features.shape[1] == 0 or len(features) != codes.size:
        raise ValueError(
            "scores must have one row a verdict, shape (n_instances, n_scores); got "
            f"{features.shape} for {codes.size} verdicts"
        )
    if not np.isfinite(features).all():
        row = int(np.argmin(np.isfinite(features).all(axis=1)))
        raise ValueError(f"scores[{row}] is not finite: leave the instance out first")
    if (codes == MISSING).any():
        raise ValueError(
            f"correct[{int(np.argmax(codes == MISSING))}] has no verdict: leave the instance out"
        )
    if codes.size == 0 or (codes == codes[0]).all():
        raise ValueError("correct must hold both right and wrong answers")
    return features, codes.astype(np.int64)


def _owners(groups: Iterable[Hashable] | None, n: int) -> _Codes:
    """Number the groups of the instances."""
    if groups is None:
        return np.arange(n)
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(label, len(numbers)) for label in groups]
    if len(codes) != n:
        raise ValueError(f"groups must name one group an instance: got {len(codes)} for {n}")
    return np.asarray(codes, dtype=np.int64)


def _folds(labels: _Codes, owners: _Codes, n_folds: int, seed: int) -> _Codes:
    """Return the test fold of each instance; a group is in one fold only."""
    fewest = min(int(labels.sum()), int((1 - labels).sum()), int(owners.max()) + 1)
    if not 2 <= check_count(n_folds, "n_folds") <= fewest:
        raise ValueError(
            f"n_folds must lie between 2 and {fewest}, the size of the smaller class or the number "
            f"of groups; got {n_folds}"
        )
    splitter = _sklearn("model_selection").StratifiedGroupKFold(
        n_splits=n_folds, shuffle=True, random_state=seed
    )
    folds = np.full(labels.size, -1, dtype=np.int64)
    for fold, (_, test) in enumerate(splitter.split(labels, labels, owners)):
        folds[test] = fold
    for fold in range(n_folds):
        if np.unique(labels[folds != fold]).size < 2:
            raise ValueError(
                f"without test fold {fold} all verdicts are equal, for the groups hold the classes "
                "together: take fewer folds or smaller groups"
            )
    return folds


def _model(classifier: str) -> Any:  # noqa: ANN401
    """Return the classifier behind a standardiser."""
    if classifier == "svm":
        learner = _sklearn("svm").SVC(kernel="poly", degree=3)
    else:
        learner = _sklearn("linear_model").LogisticRegression(max_iter=1000)
    scaler = _sklearn("preprocessing").StandardScaler()
    return _sklearn("pipeline").make_pipeline(scaler, learner)


def _macro_f1(truth: _Codes, predicted: npt.NDArray[Any]) -> float:
    """Return the mean F1 of the two classes; 0 for one that is never predicted nor there."""
    scores = []
    for label in (0, 1):
        hits = np.count_nonzero((truth == label) & (predicted == label))
        total = np.count_nonzero(truth == label) + np.count_nonzero(predicted == label)
        scores.append(2.0 * hits / total if total else 0.0)
    return float(np.mean(scores))


def _auc(truth: _Codes, decision: npt.NDArray[Any]) -> float:
    """Return the probability that a right answer scores above a wrong one, ties counting half."""
    from scipy.stats import rankdata

    n_right = int(truth.sum())
    n_wrong = truth.size - n_right
    if n_right == 0 or n_wrong == 0:
        return math.nan
    above = float(rankdata(decision)[truth == 1].sum()) - n_right * (n_right + 1) / 2.0
    return above / (n_right * n_wrong)


def _sklearn(name: str) -> Any:  # noqa: ANN401
    """Import a module of scikit-learn, or say how to get it."""
    import importlib

    try:
        return importlib.import_module(f"sklearn.{name}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "predicting correctness from scores", "scikit-learn", "analysis"
        ) from error
