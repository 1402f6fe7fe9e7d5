"""Pictures of the analysis of mechanism: the paper's figures 4 and 5, and heat maps of pairs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.report.page import Dot, ForestPlot, Heatmap
from surface_consistency.studies.mechanism.sample import Answer
from surface_consistency.studies.mechanism.similarity import ALL_MODELS, FEATURES
from surface_consistency.studies.mechanism.spans import Span
from surface_consistency.studies.mechanism.store import Measured, MeasuredRun
from surface_consistency.tables import Table
from surface_consistency.tables.numbers import Value, interval_value

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.components import ComponentMap

_ONE_CLASS: Final = {"aligned": "right both times", "misaligned": "right once"}


def make_figures(tables: Mapping[str, Table], places: Mapping[str, int]) -> Iterator[ForestPlot]:
    """Draw the paper's figures 4 and 5.

    Args:
        tables: What `make_tables` gave.
        places: Place of each model's label among the runs.

    Yields:
        The pictures; none of a table without rows.
    """
    yield from _similarity_dots(tables["mechanism_similarity"].frame, places)
    yield from _prediction_dots(tables["mechanism_prediction"].frame)


def _similarity_dots(frame: pd.DataFrame, place: Mapping[str, int]) -> Iterator[ForestPlot]:
    """Draw the means of both classes, and their difference."""
    shown = frame[frame["model"] != ALL_MODELS] if len(place) > 1 else frame
    means: list[tuple[str, int, list[Dot]]] = []
    differences: list[tuple[str, int, list[Dot]]] = []
    for feature, title in FEATURES.items():
        rows = shown[shown["feature"] == feature].to_dict("records")
        short = "IoU" if feature == "iou" else title
        for kind, name in (("aligned", "both correct"), ("misaligned", "one correct")):
            means.append((f"{short}, {name}", 0, [_dot(row, kind, place) for row in rows]))
        differences.append((title, 0, [_dot(row, "difference", place) for row in rows]))
    if shown.empty:
        return
    yield ForestPlot(
        name="mechanism-similarity",
        title="How alike two answers to a fact are computed",
        axis="similarity, × 100",
        rows=means,
        clusters="clusters",
    )
    yield ForestPlot(
        name="mechanism-difference",
        title="Similarity of pairs right both times, less that of pairs right once",
        axis="difference of similarities, × 100",
        rows=differences,
        clusters="clusters",
    )


def _dot(row: Mapping[Any, Any], key: str, place: Mapping[str, int]) -> Dot:
    """Place a number of a model."""
    return Dot(
        model=place[row["model"]],
        value=interval_value(row, key, kind="decimal"),
        n=row["n_aligned"] + row["n_misaligned"],
        n_clusters=row["n_clusters"],
    )


def _prediction_dots(frame: pd.DataFrame) -> Iterator[ForestPlot]:
    """Draw how well features predict, folded by topic."""
    rows = frame[frame["folds"] == "topic"].to_dict("records")
    if not rows:
        return
    yield ForestPlot(
        name="mechanism-prediction",
        title="How well similarity tells whether both answers are right",
        axis="area under the ROC curve, × 100; 50 is chance",
        rows=[
            (
                FEATURES.get(row["feature"], row["feature"]),
                0,
                [
                    Dot(
                        model=0,
                        value=Value(value=row["auc"], kind="number"),
                        n=row["n"],
                        n_clusters=row["n_clusters"],
                    )
                ],
            )
            for row in rows
        ],
        clusters="clusters",
        note="All runs together; folds keep clusters together.",
    )


def heat_maps(one: MeasuredRun, n: int) -> Iterator[Heatmap]:
    """Draw the components of some pairs: of each class those of middling similarity."""
    rows = one.similarity
    rows = rows[(rows["aggregation"] == "transport") & (rows["tokens"] == "span")]
    rows = rows[rows["iou"].notna()].sort_values(["iou", "pair"])
    piles = [rows[rows["is_aligned"] == kind]["pair"].tolist() for kind in (True, False)]
    piles = [pile[len(pile) // 2 :] + pile[: len(pile) // 2] for pile in piles]
    chosen = [name for names in zip(*piles, strict=False) for name in names]
    chosen += [name for pile in piles for name in pile if name not in chosen]
    by_id = {pair.pair: pair for pair in one.sample.pairs}
    for number, name in enumerate(chosen[:n]):
        pair = by_id[name]
        kind = _ONE_CLASS["aligned" if pair.is_aligned else "misaligned"]
        yield Heatmap(
            name=f"mechanism-map-{number + 1}",
            title=f"{one.label}: {pair.first.question or pair.item} ({kind})",
            columns=_headings(one.components),
            panels=[
                (_quoted(answer, one.spans[answer.id]), _mean_grid(one, one.measured[answer.id]))
                for answer in (pair.first, pair.second)
            ],
            row_title="Layer",
            note="Share of the readout that goes with each head and MLP, mean of the tokens of the "
            "fact; red where it goes, blue where the token gains.",
        )


def _headings(components: "ComponentMap") -> list[str]:
    """Name the columns of a map: the parts of a layer's attention, and its MLP."""
    n_units = len(components.heads) // len(components.mlps)
    whole = components.is_behind_projection
    return [*(["attention"] if whole else map(str, range(n_units))), "MLP"]


def _quoted(answer: Answer, span: Span) -> str:
    """Quote the span of an answer."""
    text = " ".join(answer.text[span.start : span.stop].split())
    return f"“{text if len(text) <= 60 else text[:59] + '…'}”"


def _mean_grid(one: MeasuredRun, measured: Measured) -> list[tuple[str, list[float]]]:
    """Lay the mean importances out by layer."""
    rows = measured.importance[measured.in_span]
    rows = rows[np.isfinite(rows).all(axis=1)]
    mean = rows.mean(axis=0) if len(rows) else np.full(len(one.components), np.nan)
    return _grid(one.components, mean)


def _grid(components: "ComponentMap", values: npt.ArrayLike) -> list[tuple[str, list[float]]]:
    """Lay a value of each component out by layer."""
    grid = np.asarray(values, dtype=float).reshape(len(components.mlps), -1)
    return [(str(layer), values.tolist()) for layer, values in enumerate(grid)]
