"""Aggregates that logs publish, computed anew from their questions, beside what bounds them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.metrics import clustered_auc
from surface_consistency.metrics.forgetting.unlearning_scores import (
    forget_quality,
    model_utility,
    privleak,
    truth_ratio,
    truth_ratio_score,
)
from surface_consistency.studies.unlearning.logs import ModelLog

_UTILITY: Final = (
    *("retain_Q_A_Prob", "retain_Q_A_ROUGE", "retain_Truth_Ratio"),
    *("ra_Q_A_Prob_normalised", "ra_Q_A_ROUGE", "ra_Truth_Ratio"),
    *("wf_Q_A_Prob_normalised", "wf_Q_A_ROUGE", "wf_Truth_Ratio"),
)
_RATIO: Final = "forget_truth_ratio"
_ARITHMETIC: Final = "forget_truth_ratio (arithmetic)"
_MEMBERSHIP: Final = "mia_min_k"


def published_table(logs: Sequence[ModelLog], reference: str | None) -> pd.DataFrame:
    """Compute the aggregates of logs from their questions.

    Args:
        logs: The models.
        reference: Label of the model that never saw the facts; None where there is none.

    Returns:
        One row a model and metric: model, metric, published (as the log has it; NaN where it has
        none), recomputed, n (questions), and for forget_quality lowest (the p below which no model
        can come) and least_distance (the least distance of two distributions whose p is below .05)
        with the distance itself. `forget_quality` and `privleak` are against the reference, those
        of the log against the one that its authors took.
    """
    other = next((log for log in logs if log.label == reference), None)
    rows = [row for log in logs for row in _rows(log, other)]
    columns = ["model", "metric", "published", "recomputed", "n"]
    table = pd.DataFrame(rows, columns=[*columns, "distance", "least_distance", "lowest"])
    return table.astype(dict.fromkeys(table.columns[2:], float) | {"n": "Int64"})


def _rows(log: ModelLog, reference: ModelLog | None) -> Iterator[dict[str, Any]]:
    """Compute the aggregates of one log."""
    recomputed: dict[str, float] = {}
    others = {} if reference is None or reference is log else reference.metrics
    for name, metric in log.metrics.items():
        value, n = _aggregate(name, metric)
        if n:
            recomputed[name] = value
            yield _row(log, name, value, n)
    if "forget_Q_A_PERT_Prob" in log.metrics and "forget_Q_A_PARA_Prob" in log.metrics:
        ratios = _arithmetic_ratios(log.metrics)
        yield _row(log, _ARITHMETIC, truth_ratio_score(ratios, is_forgotten=True), len(ratios))
    if all(name in recomputed for name in _UTILITY):
        utility = model_utility([recomputed[name] for name in _UTILITY])
        yield _row(log, "model_utility", utility, len(_UTILITY))
    if _MEMBERSHIP in recomputed:
        area, n = _aggregate(_MEMBERSHIP, others.get(_MEMBERSHIP, {}))
        floor = area if n else 0.5
        yield _row(log, "privleak", privleak(recomputed[_MEMBERSHIP], floor), None)
    if _RATIO in recomputed and _RATIO in others:
        tested = forget_quality(*(_numbers(one[_RATIO]) for one in (log.metrics, others)))
        yield _row(log, "forget_quality", tested["p_value"], int(tested["n_unlearned"])) | {
            name: tested[name] for name in ("distance", "least_distance", "lowest")
        }


def _row(log: ModelLog, name: str, value: float, n: int | None) -> dict[str, Any]:
    """Put an aggregate beside the published one."""
    published = (log.metrics.get(name) or {}).get("agg_value")
    return {
        "model": log.label,
        "metric": name,
        "published": math.nan if published is None else float(published),
        "recomputed": value,
        "n": n,
    }


def _by_index(metric: Mapping[str, Any]) -> dict[int, Any]:
    """Sort the values of a metric by question, whose keys stand in no order."""
    values = metric.get("value_by_index") or {}
    return {index: values[str(index)] for index in sorted(map(int, values))}


def _aggregate(name: str, metric: Mapping[str, Any]) -> tuple[float, int]:
    """Compute an aggregate from the questions, and count them; no questions, no aggregate."""
    if name.startswith("mia_"):
        sides = [_numbers(metric.get(side, {})) for side in ("forget", "holdout")]
        labels = np.repeat([0, 1], [len(side) for side in sides])
        is_known = all(map(len, sides))
        return (
            float(clustered_auc([*chain(*sides)], labels)["auc"]) if is_known else math.nan
        ), len(labels)
    field = "prob" if "_Prob" in name else "score"
    if name.endswith("_ROUGE"):
        field = "rougeL_recall" if "Q_A" in name else "rougeL_f1"
    numbers = _numbers(metric, field)
    if name.lower().endswith("truth_ratio"):
        return truth_ratio_score(numbers, is_forgotten=name == _RATIO), len(numbers)
    return (float(np.mean(numbers)) if numbers else math.nan), len(numbers)


def _numbers(metric: Mapping[str, Any], field: str = "score") -> list[float]:
    """Read a field of each question, the mean of several; questions without it are left out."""
    cells = (one.get(field) for one in _by_index(metric).values())
    numbers = (math.nan if cell is None else float(np.mean(cell)) for cell in cells)
    return [number for number in numbers if not math.isnan(number)]


def _arithmetic_ratios(metrics: Mapping[str, Any]) -> np.ndarray:
    """Compute the truth ratios of facts to forget from losses, as the paper prints them."""
    right, wrong = (_by_index(metrics[f"forget_Q_A_{kind}_Prob"]) for kind in ("PARA", "PERT"))
    losses = [
        [one[index]["avg_loss"] for index in right if index in wrong] for one in (right, wrong)
    ]
    return truth_ratio(*losses, mean="arithmetic")
