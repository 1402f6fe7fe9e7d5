"""Tables and notes of the analysis of mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.metrics import adjust_p_values
from surface_consistency.report import Wording
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.similarity import (
    FEATURES,
    difference_rows,
    prediction_rows,
)
from surface_consistency.studies.mechanism.store import MeasuredRun
from surface_consistency.tables import (
    COLUMNS,
    Column,
    Part,
    Table,
    catalogue,
    describe,
    interval_column,
)

_WORDING: Final = Wording("surface_consistency.studies.mechanism")
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


def make_notes(
    runs: Sequence[MeasuredRun], settings: MechanismSettings
) -> Sequence[Sequence[Part]]:
    """Say what a reader must know of the way in which this was computed.

    Args:
        runs: What was measured.
        settings: How.

    Returns:
        Paragraphs.
    """
    everywhere = settings.positions == "all"
    return _WORDING.paragraphs(
        "notes",
        settings=settings,
        runs=[(one, list(_slow(one.fingerprint, everywhere=everywhere))) for one in runs],
    )


def _slow(fingerprint: Mapping[str, object], *, everywhere: bool) -> Iterator[str]:
    """Tell in which ways a model could not be read fast."""
    for key in ("batches", "read_from", "answer_positions"):
        if "(" in str(fingerprint[key]) and (key != "answer_positions" or not everywhere):
            yield str(fingerprint[key])
    if fingerprint["uncovered"]:
        yield str(fingerprint["uncovered"])


def make_finding(frame: pd.DataFrame) -> list[Part]:
    """Say in which similarities pairs right both times differ from pairs right once.

    Args:
        frame: Rows of "mechanism_similarity".

    Returns:
        Words and numbers: what p, corrected by Holm's method for the similarities of a model, and
        the interval show; nothing where nothing was compared.
    """
    models = []
    for model, rows in frame.dropna(subset=["p_value"]).groupby("model", sort=False):
        adjusted = adjust_p_values(rows["p_value"])
        leaves = (rows["difference_low"] > 0) | (rows["difference_high"] < 0)
        rows = rows.assign(adjusted=adjusted, is_shown=(adjusted < 0.05) & leaves)
        models.append((model, rows.sort_values("p_value", kind="stable").to_dict("records")))
    return _WORDING.sentence("differences", models=models, titles=FEATURES)


def make_tables(
    runs: Sequence[MeasuredRun], settings: MechanismSettings
) -> tuple[dict[str, Table], str]:
    """Make all tables of the analysis.

    Args:
        runs: What was measured.
        settings: How.

    Returns:
        The tables by name, and why alignment is not predicted; "" where it is.
    """
    similarity = pd.concat([one.similarity for one in runs], ignore_index=True)
    differences = difference_rows(similarity)
    main, other = _is_main(differences), ~_is_main(differences)
    pairs = similarity[_is_main(similarity)]
    predicted, reason = prediction_rows(pairs, n_folds=settings.folds, rng=settings.seed)
    return {
        "mechanism_similarity": _similarity_table(differences[main], settings),
        "mechanism_sensitivity": _sensitivity_table(differences[other]),
        "mechanism_prediction": _prediction_table(predicted),
        "mechanism_sets": _sets_table(runs, settings),
        "mechanism_sample": _sample_table(runs),
        "mechanism_pairs": _pairs_table(pairs),
    }, reason


def _is_main(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Tell the rows of the paper's way of comparing: spans, by optimal transport."""
    return (frame["aggregation"] == "transport") & (frame["tokens"] == "span")


def _similarity_table(frame: pd.DataFrame, settings: MechanismSettings) -> Table:
    """Make the paper's figure 4 as numbers."""
    return describe(
        frame.reset_index(drop=True),
        "Similarity of the two answers of a pair, by component",
        f"model {_DIFFERENCE}",
        _COLUMNS,
        note=f"Tokens matched by optimal transport; {settings.readout.replace('_', ' ')}. p "
        "is of the same t as the interval, over whole clusters, uncorrected for the number of "
        "features. Pairs right once hold two different answers: --target reference reads the same "
        "words in both.",
        cluster_column="n_clusters",
    )


def _sensitivity_table(frame: pd.DataFrame) -> Table:
    """Show the same by other rules."""
    return describe(
        frame.reset_index(drop=True),
        "The same by other rules: tokens matched one to one, and whole answers",
        f"model tokens aggregation {_DIFFERENCE}",
        _COLUMNS,
        note="A result that the rule of spans makes is there for spans and not for whole answers.",
        cluster_column="n_clusters",
    )


def _prediction_table(rows: Sequence[Mapping[str, object]]) -> Table:
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
        cluster_column="n_clusters",
    )


def _sets_table(runs: Sequence[MeasuredRun], settings: MechanismSettings) -> Table:
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
        "n_components": len(one.components),
        "set_size": _median(tokens["size"]),
        "reached": tokens["is_reached"].mean(),
        "reached_by_sum": sum(share * n for share, n in known) / n_known if n_known else np.nan,
        "floor": _median(tokens["floor"]),
        "joint": _median(tokens["joint"]),
        "sum_of_parts": _median(tokens["sum"]),
        "back_each_other_up": (tokens["joint"] > tokens["sum"] + 0.25).mean(),
        "backed_up": (suffices & (tokens["joint"] < 0.5 * (1 - tokens["floor"]))).mean(),
        "ties": tokens["ties"].mean(),
        "greedy": tokens["is_greedy"].mean(),
    }


def _median(values: "pd.Series[float]") -> float:
    """Return the median of what is known; that of nothing is NaN (pandas 2 warns of it)."""
    known = values.dropna()
    return float(known.median()) if len(known) else np.nan


def _share(value: float, base: float) -> float:
    """Tell which share of a readout is left."""
    return 1.0 - (base - value) / abs(base) if base else np.nan


def _sample_table(runs: Sequence[MeasuredRun]) -> Table:
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


def _pairs_table(similarity: pd.DataFrame) -> Table:
    """List the pairs."""
    return describe(
        similarity.reset_index(drop=True),
        "Similarity of each pair",
        ("model pair_id is_aligned second_span", *FEATURES),
        _COLUMNS,
    )
