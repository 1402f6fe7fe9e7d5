"""Memorization of a benchmark by a model, and prediction of correctness from it.

It implements section 6 of the study of lexical popularity: extraction (TDE), and membership
inference (MIA) by the loss and by neighbours. Min-K % and Min-K++ are not in the paper.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.page import model_dots
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError
from surface_consistency.metrics import (
    membership_loss,
    min_k_plus_plus,
    min_k_probability,
    neighbourhood_score,
    predict_correctness,
    relative_difference,
    split_accuracy,
)
from surface_consistency.metrics.correlation.prediction import majority_macro_f1
from surface_consistency.metrics.frequency.regression import correctness_regression
from surface_consistency.metrics.popularity.memorization import extraction_log_likelihood
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.report.page import Dot, ForestPlot
from surface_consistency.report.texts import Texts
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.lexical.prompts import MEMORISATION
from surface_consistency.studies.lexical.quality import proportion_columns
from surface_consistency.tables.sentences import missing
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

_SCORES: Final = {
    "extracted": "TDE accuracy",
    "extraction": "TDE likelihood",
    "neighbours": "MIA neighbours",
    "loss": "MIA loss",
    "min_k": "Min-K % (not in the paper)",
    "min_k_plus_plus": "Min-K++ (not in the paper)",
}
_LABELS: Final = {"score": _SCORES}
_FOLDS: Final = 5
_TASKS: Final = ["model", "task"]
_SPLIT: Final = (
    *(f"{of}_accuracy{end}" for of in ("low", "high") for end in ("", "_low", "_high")),
    *("difference", "difference_low", "difference_high", "n_low", "n_high", "n_clusters"),
)
_TEXTS: Final = Texts("surface_consistency.studies.lexical")


def memorization_scores(folder: RunFolder, *, k: float = 0.2) -> pd.DataFrame:
    """Compute the memorization scores of a run.

    Args:
        folder: A run with the setting `memorization`.
        k: Proportion of the tokens that Min-K uses.

    Returns:
        One row per text (instance and option): item; option, its position; is_right, whether it is
        the correct option; n_tokens; is_sum, whether the runner returned a sum without tokens, so
        that only extraction is known; extracted, whether greedy decoding of the first half yields
        the second (each of its tokens is the most likely one after the preceding tokens);
        extraction, the log-likelihood of the second half given the first; loss, the mean per token;
        neighbours, the loss minus that of neighbours; min_k and min_k_plus_plus. Unknown values are
        NaN.

    Raises:
        DataError: If the run was made without `memorization`.
    """
    scores = _scores_by_prompt(folder)
    targets, pairs = folder.read_plan()
    first = targets[targets["target_id"].isin(set(pairs["first_target"]))]
    rows: list[dict[str, Any]] = []
    for fact, correct, texts in zip(first["item"], first["correct"], first["texts"], strict=True):
        for number in range(len(texts)):
            prefix = f"{MEMORISATION}/{fact}/{number}"
            whole = scores.get(f"{prefix}/text", ())
            if not whole:
                continue
            half = scores.get(f"{prefix}/half", ())
            rows.append(
                {
                    "item": fact,
                    "option": number,
                    "is_right": number == int(correct),
                    **_of_text(whole[0], half, scores.get(f"{prefix}/neighbours", ()), k),
                }
            )
    if not rows:
        raise DataError(
            f"{folder.path} has no scores of whole texts; run the study with `memorization`"
        )
    return pd.DataFrame(rows)


def _scores_by_prompt(folder: RunFolder) -> dict[str, Sequence[ScoredText]]:
    """Read the scores of the group by prompt id; prompts of equal content share them."""
    answers = folder.read_answers((MEMORISATION,))
    by_key = dict(zip(answers["prompt_key"], answers["scores"], strict=True))
    if not by_key:
        return {}
    return {
        prompt.id: by_key.get(prompt.key) or ()
        for prompt in read_jsonl(folder.prompts, Prompt)
        if prompt.id.startswith(f"{MEMORISATION}/")
    }


def _of_text(
    whole: ScoredText, half: Sequence[ScoredText], neighbours: Sequence[ScoredText], k: float
) -> dict[str, Any]:
    """Compute the scores of one text."""
    values = whole.log_probabilities
    row: dict[str, Any] = dict.fromkeys(_SCORES, math.nan)
    row |= {"n_tokens": math.nan if whole.is_sum else whole.n_scored, "is_sum": whole.is_sum}
    if half:
        row["extraction"] = float(
            extraction_log_likelihood([half[0].log_probabilities], prefix_lengths=[0])[0]
        )
        if half[0].is_greedy is not None:
            row["extracted"] = float(half[0].is_greedy)
    if not whole.n_scored:
        return row
    row["loss"] = float(membership_loss([values])[0])
    row["min_k"] = float(min_k_probability([values], k=k)[0])
    if whole.vocabulary_means is not None and whole.vocabulary_deviations is not None:
        row["min_k_plus_plus"] = float(
            min_k_plus_plus([values], [whole.vocabulary_means], [whole.vocabulary_deviations], k=k)[
                0
            ]
        )
    others = [item for item in neighbours if item.n_scored]
    if others:
        losses = membership_loss([item.log_probabilities for item in others])
        row["neighbours"] = float(neighbourhood_score([row["loss"]], [losses])[0])
    return row


class MemorizationSettings(Settings):
    """Memorization scores and prediction from them."""

    k: float = 0.2
    """Proportion of least likely tokens that Min-K % and Min-K++ use."""

    svm: bool = True
    """Predict with a support-vector machine of degree 3 in addition to logistic regression."""

    fold_seed: int = 0
    """Seed of the folds of the prediction."""


class MemorizationAnalysis(Analysis):
    """Measure the memorization of a benchmark's instances, and whether it predicts correctness."""

    name = "memorization"
    title = "Memorization"
    settings = MemorizationSettings
    studies = ("lexical",)
    caveat = (
        "Membership is inferred from probabilities: a likely text has a low loss whether it was "
        "seen or not. Neighbours are the same text with some words replaced, which controls for "
        "its difficulty in part. Correctness and scores are those of the same model."
    )

    def tables(self, report: Report, settings: MemorizationSettings) -> Mapping[str, Table]:
        """Compute scores, accuracy by score, and predictions; see `Analysis.tables`.

        Returns:
            "memorisation", means by task and option; "memorisation_split" (tables 4 and K of the
            paper); "memorisation_prediction" (tables E to J, figure 5), which needs the extra
            `analysis`; "memorisation_coefficients" (tables E to H).

        Raises:
            DataError: If a run was made without memorization.
            MissingDependencyError: If scikit-learn or statsmodels is not installed.
        """
        frame = pd.concat(
            [
                _with_labels(run, memorization_scores(run.folder, k=settings.k), report.cluster)
                for run in report.runs
            ]
        )
        predict = partial(_prediction, settings=settings)
        intervals = report.intervals
        means, split = partial(_means, intervals=intervals), partial(_split, intervals=intervals)
        regress = partial(_coefficients, confidence=intervals.confidence)
        frames = {
            MEMORISATION: tabulate(frame, [*_TASKS, "option"], means),
            "memorisation_split": tabulate(frame, _TASKS, partial(_by_score, split)),
            "memorisation_prediction": tabulate(frame, _TASKS, partial(_by_score, predict)),
            "memorisation_coefficients": tabulate(frame, _TASKS, partial(_by_score, regress)),
        }
        sums = missing(
            int(frame["is_sum"].sum()),
            len(frame),
            "texts",
            reason="have a sum of log-probabilities without tokens, from which loss, neighbours "
            "and Min-K cannot be computed,",
        )
        return {
            name: _TEXTS.table(name, one, labels=_LABELS, sums=sums) for name, one in frames.items()
        }

    def figures(self, report: Report, tables: Mapping[str, Table]) -> list[ForestPlot]:
        """Draw macro-F1 and that of the majority baseline: the paper's figure 5."""
        rows: list[tuple[str, int, list[Dot]]] = []
        for task, of_task in tables["memorisation_prediction"].frame.groupby("task", sort=False):
            level = [("always the majority", "baseline", of_task.drop_duplicates("model"))]
            level += [
                (_SCORES[str(name)], "macro_f1", part)
                for name, part in of_task.groupby("score", sort=False)
            ]
            rows.append((str(task).replace("_", " "), 0, []))
            rows += [
                (label, 1, model_dots(part, key, report.index, n="n")) for label, key, part in level
            ]
        return [
            ForestPlot(
                name="memorisation-prediction",
                title="Macro-F1 of correctness predicted from memorization scores",
                axis="macro-F1, %",
                rows=rows,
                clusters="instances",
            )
        ]


def _with_labels(run: Run, scores: pd.DataFrame, cluster: str) -> pd.DataFrame:
    """Join the scores of a run with the clusters and the labels in the original words."""
    outcomes = run.outcomes.drop_duplicates("item")
    facts = outcomes[["item", "task", "first_correct"]].assign(cluster=outcomes[cluster])
    option = np.where(scores["is_right"], "right", "wrong")
    return scores.assign(model=run.label, option=option).merge(facts, on="item")


def _means(part: pd.DataFrame, intervals: Intervals) -> dict[str, object]:
    """Average the scores of correct or of incorrect options."""
    return {
        "n": len(part),
        **proportion_columns("extracted", part["extracted"], part["cluster"], intervals),
        **{name: part[name].mean() for name in _SCORES if name != "extracted"},
    }


def _by_score(
    statistic: Callable[[pd.DataFrame], Iterable[Mapping[Any, object]]], part: pd.DataFrame
) -> Iterator[dict[str, object]]:
    """Compute a statistic of each score of the correct option and the mean of the others."""
    right = part[part["option"] == "right"].set_index("item")
    wrong = part[part["option"] == "wrong"].groupby("item")
    for name in _SCORES:
        columns = {"right": name, "correct": "first_correct", "cluster": "cluster"}
        features = pd.DataFrame({column: right[of] for column, of in columns.items()})
        if len(wrong):
            features["wrong"] = wrong[name].mean()
        features = features.dropna().reset_index().astype({"correct": bool})
        if len(features):
            for row in statistic(features):
                yield {"score": name, **row}


def _scores_of(features: pd.DataFrame) -> pd.DataFrame:
    """Select the columns of scores."""
    return features[[name for name in ("right", "wrong") if name in features]]


def _split(features: pd.DataFrame, intervals: Intervals) -> Iterator[Mapping[str, object]]:
    """Compare accuracy at low and high scores, relative to the correct option as in the paper."""
    scores = features["right"].to_numpy(float)
    if "wrong" in features:
        scores = relative_difference(scores, features["wrong"].to_numpy(float))
    if np.isnan(scores).all():
        yield dict.fromkeys(_SPLIT, math.nan) | {"n_low": 0, "n_high": 0, "n_clusters": 0}
    else:
        row = split_accuracy(
            scores,
            features["correct"],
            clusters=features["cluster"],
            missing="drop",
            intervals=intervals,
        )
        yield {name: row[name] for name in _SPLIT}


def _prediction(
    features: pd.DataFrame, settings: MemorizationSettings
) -> Iterator[dict[str, object]]:
    """Predict correctness from scores, on held-out folds of clusters."""
    correct = features["correct"].to_numpy(bool)
    clusters = features["cluster"]
    n_smallest = min(clusters[of].nunique() for of in (correct, ~correct))
    baseline = majority_macro_f1(float(correct.mean()))
    row: dict[str, object] = {
        "n": len(correct),
        "n_clusters": clusters.nunique(),
        "accuracy": float(correct.mean()),
        "baseline": baseline,
    }
    row |= dict.fromkeys(("macro_f1", "auc", "svm_macro_f1", "svm_auc"), math.nan)
    predict = partial(
        predict_correctness,
        _scores_of(features).to_numpy(float),
        correct,
        groups=clusters,
        n_folds=min(_FOLDS, n_smallest),
        seed=settings.fold_seed,
    )
    # Folds cannot be made if one cluster contains too many of the instances of a class.
    with suppress(ValueError):
        result = predict()
        row |= {"baseline": result["baseline_macro_f1"]}
        row |= {"macro_f1": result["macro_f1"], "auc": result["auc"]}
        if settings.svm:
            result = predict(classifier="svm")
            row |= {"svm_macro_f1": result["macro_f1"], "svm_auc": result["auc"]}
    yield row


def _coefficients(features: pd.DataFrame, confidence: float) -> list[dict[Hashable, object]]:
    """Regress correctness on the unscaled scores."""
    scores = _scores_of(features)
    rows = correctness_regression(
        scores.to_numpy(float),
        features["correct"],
        names=list(scores.columns),
        clusters=features["cluster"],
        confidence=confidence,
    )
    return rows[rows["term"] != "intercept"].to_dict("records")
