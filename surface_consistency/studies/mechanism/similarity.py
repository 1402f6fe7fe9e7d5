"""Similarity of the computation of two answers, and its relation to their correctness."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency import metrics
from surface_consistency.errors import MissingDependencyError
from surface_consistency.studies.mechanism.sample import SampledPair
from surface_consistency.studies.mechanism.spans import Span
from surface_consistency.studies.mechanism.store import Measured
from surface_consistency.tables.tabulation import tabulate

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.components import ComponentMap

FEATURES: Final[Mapping[str, str]] = {
    "containment": "Containment",
    "iou": "Intersection over union",
    "pearson_attention": "Pearson, attention",
    "spearman_attention": "Spearman, attention",
    "pearson_mlp": "Pearson, MLPs",
    "spearman_mlp": "Spearman, MLPs",
}
"""The six similarities of the paper, in its order: of sets over all components, and of importances,
separately for attention and for MLPs."""

ALL_MODELS: Final = "all models"
"""Label of the rows of all runs combined."""

_Floats = npt.NDArray[np.float64]
_TokenMetric = Literal["pearson", "spearman", "containment", "iou"]
_OF_SETS: Final[tuple[_TokenMetric, ...]] = ("containment", "iou")
_OF_IMPORTANCES: Final[tuple[_TokenMetric, ...]] = ("pearson", "spearman")
_SHOWN: Final = {
    "n_group": "n_aligned",
    "n_other": "n_misaligned",
    "group_mean": "aligned",
    "other_mean": "misaligned",
    "relative_difference": "relative",
}
_DIFFERENCE: Final = [
    *("model", "aggregation", "tokens", "feature", "n_aligned", "n_misaligned", "n_clusters"),
    *("aligned", "misaligned", "difference", "difference_low", "difference_high"),
    *("relative", "p_value"),
]


def pair_similarity(
    first: Measured, second: Measured, *, heads: npt.NDArray[np.int64], mlps: npt.NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Compare two answers by all methods.

    Args:
        first: The answer under the first condition.
        second: The answer under the second condition, by the same model.
        heads: Columns of the heads.
        mlps: Columns of the MLPs.

    Returns:
        One row per method: `aggregation`, "transport" or "assignment"; `tokens`, "span" for the
        tokens of the spans or "whole answer" for all tokens, for which sets are unknown; and the
        six features. A feature is NaN if no token has varying importances, or there are no sets.
    """
    tokens: dict[str, tuple[Any, Any]] = {"span": (first.in_span, second.in_span)}
    if not (first.in_span.all() and second.in_span.all()):
        tokens["whole answer"] = (slice(None), slice(None))
    rows: dict[tuple[str, str], dict[str, Any]] = {
        (way, of): {"aggregation": way, "tokens": of, **dict.fromkeys(FEATURES, math.nan)}
        for of in tokens
        for way in ("transport", "assignment")
    }
    for of, (ours, theirs) in tokens.items():
        if of == "span":
            for feature in _OF_SETS:
                _fill(rows, of, feature, _matrix(first.masks, second.masks, feature))
        for kind, columns in (("attention", heads), ("mlp", mlps)):
            for metric in _OF_IMPORTANCES:
                matrix = _matrix(
                    first.importance[ours][:, columns],
                    second.importance[theirs][:, columns],
                    metric,
                )
                _fill(rows, of, f"{metric}_{kind}", matrix)
    return list(rows.values())


def similarity_frame(
    label: str,
    pairs: Iterable[SampledPair],
    spans: Mapping[str, Span],
    measured: Mapping[str, Measured],
    components: "ComponentMap",
) -> pd.DataFrame:
    """Compare the answers of all pairs of a run.

    Args:
        label: The run.
        pairs: Its pairs.
        spans: The span of the fact in each answer.
        measured: Each answer in which the fact was found.
        components: The columns of the importances.

    Returns:
        One row per pair and method, as in `pair_similarity`; a pair whose span was not found has
        one row without similarities.
    """
    heads, mlps = components.heads, components.mlps
    unfound = {"aggregation": "transport", "tokens": "span", **dict.fromkeys(FEATURES, math.nan)}

    def rows() -> Iterator[dict[str, Any]]:
        for pair in pairs:
            first, second = measured.get(pair.first.id), measured.get(pair.second.id)
            own = {
                "model": label,
                "pair": pair.pair,
                "item": pair.item,
                "cluster": pair.cluster,
                "is_aligned": pair.is_aligned,
                "stratum": pair.stratum,
                "first_span": spans[pair.first.id].source,
                "second_span": spans[pair.second.id].source,
            }
            ways = [unfound]
            if first is not None and second is not None:
                ways = pair_similarity(first, second, heads=heads, mlps=mlps)
            yield from (own | way for way in ways)

    return pd.DataFrame(rows())


def _matrix(
    ours: npt.NDArray[Any], theirs: npt.NDArray[Any], metric: _TokenMetric
) -> _Floats | None:
    """Compare the tokens for which the metric is defined; None if there are no such tokens."""
    comparable = []
    for rows in (ours, theirs):
        if metric in _OF_SETS:
            comparable.append(rows[rows.any(axis=1)])
            continue
        varying = rows[np.isfinite(rows).all(axis=1)]
        comparable.append(
            varying[np.ptp(varying, axis=1) > 0] if varying.shape[1] > 1 else varying[:0]
        )
    if not all(map(len, comparable)):
        return None
    return metrics.token_similarity(comparable[0], comparable[1], metric=metric)


def _fill(
    rows: dict[tuple[str, str], dict[str, Any]], tokens: str, feature: str, matrix: _Floats | None
) -> None:
    """Write the similarity of two answers into the rows of both methods of matching tokens."""
    if matrix is not None and np.isfinite(matrix).all():
        rows["transport", tokens][feature] = metrics.transport_similarity(matrix)
        rows["assignment", tokens][feature] = metrics.assignment_similarity(matrix)


def difference_rows(similarity: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Compare pairs that are correct both times with pairs that are correct once.

    Args:
        similarity: One row per pair and method: model, cluster, is_aligned, aggregation, tokens and
            the features; runs in order.
        confidence: Confidence level of the intervals.

    Returns:
        One row per model, method and feature. For several models also rows of all models combined,
        compared within models; the pairs of a topic are one cluster across the models.
    """

    def differences(part: pd.DataFrame) -> Iterator[dict[Any, object]]:
        for feature in FEATURES:
            known = part[part[feature].notna()]
            if not known.empty:
                rows = metrics.group_difference_by(
                    known, value=feature, group="is_aligned", strata="model", cluster="cluster",
                    confidence=confidence,
                )  # fmt: skip
                yield from rows.rename(columns=_SHOWN).assign(feature=feature).to_dict("records")

    labelled = similarity.assign(label=similarity["model"])
    if similarity["model"].nunique() > 1:
        labelled = pd.concat([labelled.assign(label=ALL_MODELS), labelled])
    rows = tabulate(labelled, ["label", "tokens", "aggregation"], differences)
    return rows.rename(columns={"label": "model"}).reindex(columns=_DIFFERENCE)


def prediction_rows(
    similarity: pd.DataFrame, *, n_folds: int, rng: int
) -> tuple[list[dict[str, object]], str]:
    """Predict from the features whether both answers are correct.

    Args:
        similarity: One row per pair: cluster, pair, is_aligned and the features; pairs without a
            feature are excluded.
        n_folds: Number of folds of the validation.
        rng: Seed of the folds.

    Returns:
        Rows by kind of folds, "topic" (pairs of a cluster are in one fold) and "pair" (as in the
        paper), and by feature, all features together first; and a sentence with the reason if there
        are no rows.
    """
    known = similarity.dropna(subset=list(FEATURES))
    aligned = known["is_aligned"].to_numpy(dtype=bool)
    fewest = min(int(aligned.sum()), int((~aligned).sum()))
    if fewest < n_folds:
        return [], f"Alignment is not predicted: a class has {fewest} pairs, for {n_folds} folds."
    rows = []
    reasons = []
    for folds, groups in (("topic", known["cluster"]), ("pair", range(len(known)))):
        try:
            rows += _predicted(known, aligned, folds, groups, n_folds, rng)
        except MissingDependencyError as error:
            return [], f"Alignment is not predicted: {error}"
        except ValueError as error:
            reasons.append(f"Folds by {folds} cannot be made: {error}.")
    return rows, " ".join(reasons)


def _predicted(
    known: pd.DataFrame,
    aligned: npt.NDArray[np.bool_],
    folds: str,
    groups: Iterable[Any],
    n_folds: int,
    rng: int,
) -> list[dict[Any, Any]]:
    """Predict alignment with one kind of folds."""
    rows = metrics.predict_alignment(
        known[list(FEATURES)].to_numpy(),
        aligned,
        groups=groups,
        names=list(FEATURES),
        n_folds=n_folds,
        seed=rng,
    )
    rows = rows.rename(columns={"n_groups": "n_clusters"}).assign(folds=folds)
    return rows.to_dict("records")
