"""Scores of items in several forms, as other tools pass them, and the rates of `forms_by`."""

import warnings
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import pandas as pd

from surface_consistency.errors import DataError, UndefinedMetricWarning
from surface_consistency.metrics import forms_by
from surface_consistency.reading import shown


def form_rates(scores: Sequence[Sequence[object]]) -> "pd.Series[Any]":
    """Compute the rates of `forms_by` over the scores that a tool passes.

    Args:
        scores: Item, form, cluster and score of each answer. Items, forms and clusters are text or
            integers, not both. A score is 0, 1, True, False, or None if it is missing.

    Returns:
        The row of `forms_by`, and flip_rate (1 - consistency) with bounds.
        Items with fewer than two scored forms are excluded and counted in
        `n_single`; if `n_items` is 0, no item is left and every rate is NaN.

    Raises:
        DataError: If no scores are given, an item, form or cluster is missing or of another type
            than the others, or an item has two scores in one form.
        ValueError: If a score is not 0 or 1, or an item belongs to two clusters.

    Warns:
        UnscoredWarning: If scores are missing.

    Examples:
        >>> scores = [(1, "a", 1, True), (1, "b", 1, True), (2, "a", 2, True), (2, "b", 2, False)]
        >>> float(form_rates(scores)["consistency"])
        0.5
    """
    if not scores:
        raise DataError("no scores are given; pass at least one item with scores in two forms")
    items, forms, clusters, correct = zip(*scores, strict=True)
    for name, values in (("item", items), ("form", forms), ("cluster", clusters)):
        _check_labels(name, values)
    (item, form), n = Counter(zip(items, forms, strict=True)).most_common(1)[0]
    if n > 1:
        raise DataError(
            f"item {shown(item)} has {n} scores in form {shown(form)}; an item has one score per "
            "form: give each form of an item its own name, and each item its own id"
        )
    frame = pd.DataFrame({"item": items, "form": forms, "correct": correct, "cluster": clusters})
    with warnings.catch_warnings():
        # Rates and bounds are NaN at first if a tool computes them while answers come in.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        row: pd.Series[Any] = forms_by(frame, item="item", cluster="cluster").iloc[0]
    for end, of in (("", ""), ("_low", "_high"), ("_high", "_low")):
        row[f"flip_rate{end}"] = 1 - row[f"consistency{of}"]
    return row


def _check_labels(name: str, values: Sequence[object]) -> None:
    """Raise an error for labels that are neither text nor integers, or of both types."""
    examples: dict[str, object] = {}
    for value in values:
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        kind = "text" if isinstance(value, str) else "integer" if is_integer else "other"
        examples.setdefault(kind, value)
    if "other" in examples:
        raise DataError(
            f"{name} {shown(examples['other'])} is neither text nor an integer; convert it to one"
        )
    if len(examples) > 1:
        raise DataError(
            f"{name} is text in some scores ({shown(examples['text'])}) and an integer in others "
            f"({shown(examples['integer'])}); write it as text in all of them"
        )
