"""Tables, pictures and notes of the analysis of mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine import interval_value
from surface_consistency.report import (
    COLUMNS,
    Column,
    Dot,
    Dots,
    Heat,
    Table,
    Value,
    catalogue,
    describe,
    interval_column,
)
from surface_consistency.studies.mechanism.measure import Measured, MeasuredRun
from surface_consistency.studies.mechanism.sample import Answer
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.similarity import ALL_MODELS, FEATURES
from surface_consistency.studies.mechanism.spans import Span

__all__ = [
    "heat_maps",
    "make_notes",
    "pairs_table",
    "prediction_dots",
    "prediction_table",
    "sample_table",
    "sensitivity_table",
    "sets_table",
    "similarity_dots",
    "similarity_table",
]

_ONE_CLASS: Final = {"aligned": "right both times", "misaligned": "right once"}
_SHARES: Final = {
    "reached": "Reached",
    "reached_by_sum": "Reached by sum",
    "floor": "Left without any",
    "joint": "Gone without the set",
    "sum_of_parts": "Sum of its parts",
    "back_each_other_up": "More together",
    "backed_up": "Others stand in",
    "ties": "Ties",
    "greedy": "Model’s own",
}
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="feature", title="Similarity", labels=FEATURES),
    Column(key="n_aligned", title="Right both times", kind="count", on_phones=False),
    Column(key="n_misaligned", title="Right once", kind="count", on_phones=False),
    Column(key="aligned", title="Right both times", kind="number", group="Mean"),
    Column(key="misaligned", title="Right once", kind="number", group="Mean"),
    interval_column("difference", "Difference", "number"),
    Column(key="tokens", title="Tokens", labels={"span": "of the fact"}),
    Column(key="aggregation", title="Matched by"),
    Column(key="folds", title="Folds by"),
    Column(key="auc", title="AUC", kind="number", unit="0.5 is chance"),
    Column(key="accuracy", title="Accuracy", kind="rate", unit="%"),
    Column(key="baseline_accuracy", title="Larger class", kind="rate", unit="%"),
    Column(key="coefficient", title="Coefficient", kind="number"),
    Column(key="side", title="Answers"),
    Column(key="n_tokens", title="Tokens", kind="count"),
    Column(key="set_size", title="Components", kind="number"),
    *(Column(key=key, title=title, kind="rate", unit="%") for key, title in _SHARES.items()),
    Column(key="drawn_aligned", title="Right both times", kind="count", group="Drawn"),
    Column(key="drawn_misaligned", title="Right once", kind="count", group="Drawn"),
    Column(key="left_out", title="Cannot be read again"),
    Column(key="spans", title="Fact in the second answer"),
    Column(key="n_unfound", title="Not found", kind="count"),
    Column(key="pair_id", title="Pair"),
    Column(key="is_aligned", title="Right", labels={"True": "both times", "False": "once"}),
    Column(key="second_span", title="Span", on_phones=False),
    *(Column(key=key, title=title, kind="number") for key, title in FEATURES.items()),
)
_DIFFERENCE: Final = "feature n_aligned n_misaligned aligned misaligned difference p_value"


def make_notes(runs: Sequence[MeasuredRun], settings: MechanismSettings) -> Iterator[str]:
    """Say what a reader must know of the way in which this was computed."""
    words = {"logit": "the logit", "centred_logit": "the logit less the mean of all logits"}
    readout = words.get(settings.readout, "the logarithm of the probability")
    replacement = {"zero": "nothing", "mean": "its mean over the prompts"}.get(
        settings.ablation, "what it does in another answer"
    )
    where = "everywhere" if settings.positions == "all" else "where the answer is written alone"
    yield (
        f"Read: {readout}. In a component’s place, {where}: {replacement}. Sets: by "
        f"{settings.sets}, {settings.threshold:.0%} of what is read."
    )
    for one in runs:
        fingerprint = one.fingerprint
        slow = [
            str(fingerprint[key])
            for key in ("batches", "read_from", "answer_positions")
            if "(" in str(fingerprint[key])
            and (key != "answer_positions" or settings.positions != "all")
        ]
        slow += [str(fingerprint["uncovered"])] if fingerprint["uncovered"] else []
        if slow:
            yield f"{one.label} ({fingerprint['model_type']}): {'; '.join(slow)}."
        n_unfound = sum(not span.is_found for span in one.spans.values())
        if n_unfound:
            yield (
                f"{one.label}: the fact was not found in {n_unfound} of {len(one.spans)} answers; "
                "their pairs are counted and have no similarity."
            )


def similarity_table(frame: pd.DataFrame, settings: MechanismSettings) -> Table:
    """Make the paper's figure 4 as numbers."""
    return describe(
        frame.reset_index(drop=True),
        "Similarity of the two answers of a pair, by component",
        f"model {_DIFFERENCE}",
        _COLUMNS,
        note=f"Tokens matched by optimal transport; {settings.readout.replace('_', ' ')}. p "
        "shuffles classes within models and takes clusters whole, uncorrected for the number of "
        "features. Pairs right once hold two different answers: --target reference reads the same "
        "words in both.",
        few="n_clusters",
    )


def sensitivity_table(frame: pd.DataFrame) -> Table:
    """Show the same by other rules."""
    return describe(
        frame.reset_index(drop=True),
        "The same by other rules: tokens matched one to one, and whole answers",
        f"model tokens aggregation {_DIFFERENCE}",
        _COLUMNS,
        note="A result that the rule of spans makes is there for spans and not for whole answers.",
        few="n_clusters",
    )


def prediction_table(rows: Sequence[Mapping[str, object]]) -> Table:
    """Make the paper's figure 5 as numbers."""
    columns = ["folds", "feature", "auc", "accuracy", "coefficient", "baseline_accuracy"]
    return describe(
        pd.DataFrame(rows, columns=[*columns, "n", "n_aligned", "n_clusters"]),
        "Prediction of alignment from similarities, by logistic regression",
        "folds feature auc accuracy baseline_accuracy coefficient n",
        _COLUMNS,
        titles={"feature": "Feature"},
        note="Folds keep topics together, or, as in the paper, deal out pairs; then a topic stands "
        "on both sides. An area of 0.5 is chance.",
        model=None,
        few="n_clusters",
    )


def sets_table(runs: Sequence[MeasuredRun], settings: MechanismSettings) -> Table:
    """Tell how large sets are, and how far they can be trusted."""
    rows = [
        _sets_row(one, side, condition, settings)
        for one in runs
        for side, condition in (("first", "first answer"), ("second", "second answer"))
    ]
    return describe(
        pd.DataFrame(rows),
        "Minimal sets of the tokens of the fact, medians and shares of tokens",
        ("model side n_tokens set_size", *_SHARES),
        _COLUMNS,
        note="Reached by sum: positive importances add up to the threshold. More together: the "
        "set’s absence takes 0.25 more of the readout than those of its parts; then importances "
        "one by one are too low. Ties: changes that are exactly 0. Model’s own: tokens that the "
        "model would write; others were written with another number format, template or prompt.",
    )


def _sets_row(
    one: MeasuredRun, side: str, condition: str, settings: MechanismSettings
) -> dict[str, Any]:
    """Sum up the sets of one condition."""
    answers = {getattr(pair, side).id for pair in one.sample.pairs}
    measured = [one.measured[name] for name in sorted(answers & one.measured.keys())]
    tokens = pd.DataFrame(
        [
            {
                "size": len(item.row.sets[place]),
                "is_reached": item.row.is_reached[place],
                "floor": _share(item.row.floor[place], item.row.base[place]),
                "joint": item.row.joint[place],
                "sum": item.row.sum_of_parts[place],
                "is_greedy": item.row.is_greedy[place],
                "ties": float((item.importance[place] == 0).mean()),
            }
            for item in measured
            for place in np.flatnonzero(item.in_span)
        ],
        columns=["size", "is_reached", "floor", "joint", "sum", "is_greedy", "ties"],
    )
    by_sum = [item.share_reached_by_sum(settings.threshold) for item in measured]
    sizes = [int(item.in_span.sum()) for item in measured]
    known = [(share, n) for share, n in zip(by_sum, sizes, strict=True) if not np.isnan(share)]
    n_known = sum(n for _, n in known)
    suffices = tokens["is_reached"].astype(bool) & tokens["joint"].notna()
    return {
        "model": one.label,
        "side": condition,
        "n_answers": len(measured),
        "n_tokens": len(tokens),
        "n_components": len(one.names),
        "set_size": tokens["size"].median(),
        "reached": tokens["is_reached"].mean(),
        "reached_by_sum": sum(share * n for share, n in known) / n_known if n_known else np.nan,
        "floor": tokens["floor"].median(),
        "joint": tokens["joint"].median(),
        "sum_of_parts": tokens["sum"].median(),
        "back_each_other_up": (tokens["joint"] > tokens["sum"] + 0.25).mean(),
        "backed_up": (suffices & (tokens["joint"] < 0.5 * (1 - tokens["floor"]))).mean(),
        "ties": tokens["ties"].mean(),
        "greedy": tokens["is_greedy"].mean(),
    }


def _share(value: float, base: float) -> float:
    """Tell which share of a readout is left."""
    return 1.0 - (base - value) / abs(base) if base else np.nan


def sample_table(runs: Sequence[MeasuredRun]) -> Table:
    """Tell what there was, what was drawn, and how spans were found."""
    rows = []
    for one in runs:
        second_spans = [one.spans[pair.second.id] for pair in one.sample.pairs]
        counts = pd.Series([span.source for span in second_spans]).value_counts()
        sources = ", ".join(f"{source} {n}" for source, n in counts.items())
        n_unfound = sum(not span.is_found for span in second_spans)
        rows.append({**one.sample.counts, "spans": sources, "n_unfound": n_unfound})
    return describe(
        pd.DataFrame(rows),
        "Pairs that were looked into",
        (
            "model",
            Column(key="n_aligned", title="Right both times", kind="count", group="In the run"),
            Column(key="n_misaligned", title="Right once", kind="count", group="In the run"),
            "drawn_aligned drawn_misaligned left_out spans n_unfound",
        ),
        _COLUMNS,
        note="A fact is drawn once. Pairs wrong both times say nothing of how a fact is recalled.",
    )


def pairs_table(similarity: pd.DataFrame) -> Table:
    """List the pairs."""
    return describe(
        similarity.reset_index(drop=True),
        "Similarity of each pair",
        ("model pair_id is_aligned second_span", *FEATURES),
        _COLUMNS,
    )


def similarity_dots(frame: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Dots]:
    """Draw the means of both classes, and their difference."""
    shown = frame[frame["model"] != ALL_MODELS] if len(place) > 1 else frame
    means: list[tuple[str, int, list[Dot]]] = []
    differences: list[tuple[str, int, list[Dot]]] = []
    for feature, title in FEATURES.items():
        rows = shown[shown["feature"] == feature].to_dict("records")
        short = "IoU" if feature == "iou" else title
        for kind, name in (("aligned", "both right"), ("misaligned", "one right")):
            means.append((f"{short}, {name}", 0, [_dot(row, kind, place) for row in rows]))
        differences.append((title, 0, [_dot(row, "difference", place) for row in rows]))
    if shown.empty:
        return
    yield Dots(
        name="mechanism-similarity",
        title="How alike two answers to a fact are computed",
        axis="similarity, × 100",
        rows=means,
        clusters="clusters",
    )
    yield Dots(
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
        value=interval_value(row, key, kind="number"),
        n=row["n_aligned"] + row["n_misaligned"],
        n_clusters=row["n_clusters"],
    )


def prediction_dots(frame: pd.DataFrame) -> Iterator[Dots]:
    """Draw how well features predict, folded by topic."""
    rows = frame[frame["folds"] == "topic"].to_dict("records")
    if not rows:
        return
    yield Dots(
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


def heat_maps(one: MeasuredRun, n: int) -> Iterator[Heat]:
    """Draw the components of some pairs: of each class those of middling similarity."""
    rows = one.similarity
    rows = rows[(rows["aggregation"] == "transport") & (rows["tokens"] == "span")]
    rows = rows[rows["iou"].notna()].sort_values(["iou", "pair_id"])
    piles = [rows[rows["is_aligned"] == kind]["pair_id"].tolist() for kind in (True, False)]
    piles = [pile[len(pile) // 2 :] + pile[: len(pile) // 2] for pile in piles]
    chosen = [name for names in zip(*piles, strict=False) for name in names]
    chosen += [name for pile in piles for name in pile if name not in chosen]
    by_id = {pair.pair_id: pair for pair in one.sample.pairs}
    for number, name in enumerate(chosen[:n]):
        pair = by_id[name]
        kind = _ONE_CLASS["aligned" if pair.is_aligned else "misaligned"]
        yield Heat(
            name=f"mechanism-map-{number + 1}",
            title=f"{one.label}: {pair.first.question or pair.fact_id} ({kind})",
            columns=[*map(str, range(_n_units(one))), "MLP"],
            panels=[
                (_quoted(answer, one.spans[answer.id]), _grid(one, one.measured[answer.id]))
                for answer in (pair.first, pair.second)
            ],
            row_title="Layer",
            note="Share of the readout that goes with each head and MLP, mean of the tokens of the "
            "fact; red where it goes, blue where the token gains.",
        )


def _n_units(one: MeasuredRun) -> int:
    """Count the heads of a layer."""
    return len(one.heads) // len(one.mlps)


def _quoted(answer: Answer, span: Span) -> str:
    """Quote the span of an answer."""
    text = " ".join(answer.text[span.start : span.stop].split())
    return f"“{text if len(text) <= 60 else text[:59] + '…'}”"


def _grid(one: MeasuredRun, measured: Measured) -> list[tuple[str, list[float]]]:
    """Lay the mean importances out by layer."""
    rows = measured.importance[measured.in_span]
    rows = rows[np.isfinite(rows).all(axis=1)]
    mean = rows.mean(axis=0) if len(rows) else np.full(len(one.names), np.nan)
    grid = mean.reshape(len(one.mlps), -1)
    return [(str(layer), values.tolist()) for layer, values in enumerate(grid)]
