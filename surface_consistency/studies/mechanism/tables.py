"""Tables and notes of the analysis of mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.metrics import adjust_p_values
from surface_consistency.report.texts import Texts
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.similarity import (
    FEATURES,
    difference_rows,
    prediction_rows,
)
from surface_consistency.studies.mechanism.store import MeasuredRun
from surface_consistency.tables import Table, difference
from surface_consistency.tables.numbers import Part
from surface_consistency.tables.sentences import Sentence, many, paragraph

_TEXTS: Final = Texts("surface_consistency.studies.mechanism")
_LABELS: Final = {"feature": FEATURES}
_READOUTS: Final = {
    "logit": "the logit",
    "centred_logit": "the logit minus the mean of all logits",
    "log_probability": "the logarithm of the probability",
}
_POSITIONS: Final = {
    "all": "at all positions",
    "answer": "at the positions of the answer only",
    "last": "at the token before the answer only",
}
_REPLACEMENTS: Final = {
    "zero": "nothing",
    "mean": "its mean over the prompts",
    "resample": "its value in another answer",
}


def make_notes(runs: Sequence[MeasuredRun], settings: MechanismSettings) -> list[list[Part]]:
    """Describe how the numbers were computed.

    Args:
        runs: Measurements of the runs.
        settings: Settings of the analysis.

    Returns:
        Paragraphs.
    """
    notes = [
        _TEXTS.sentence(
            "settings",
            readout=_READOUTS[settings.readout],
            positions=_POSITIONS[settings.positions],
            ablation=_REPLACEMENTS[settings.ablation],
            sets=settings.sets,
            threshold=f"{settings.threshold:.0%}",
        )
    ]
    for run in runs:
        label = run.label
        if slow := "; ".join(_slow(run.fingerprint, everywhere=settings.positions == "all")):
            kind = run.fingerprint["model_type"]
            notes.append(_TEXTS.sentence("slow", label=label, model_type=kind, slow=slow))
        for kind, n in (("heads", len(run.components.heads)), ("MLPs", len(run.components.mlps))):
            if n < 3:
                notes.append(_TEXTS.sentence("two" if n == 2 else "one", label=label, kind=kind))
        n_unfound = sum(not span.is_found for span in run.spans.values())
        if n_unfound:
            n_all = len(run.spans)
            notes.append(_TEXTS.sentence("unfound", label=label, n=n_unfound, n_all=n_all))
    return notes


def _slow(fingerprint: Mapping[str, object], *, everywhere: bool) -> Iterator[str]:
    """Yield the reasons for which the fast methods were not used for a model."""
    for key in ("batches", "read_from", "answer_positions"):
        if "(" in str(fingerprint[key]) and (key != "answer_positions" or not everywhere):
            yield str(fingerprint[key])
    if fingerprint["uncovered"]:
        yield str(fingerprint["uncovered"])


def make_finding(frame: pd.DataFrame, confidence: float = 0.95) -> list[Part]:
    """Report in which similarities pairs correct both times differ from pairs correct once.

    Args:
        frame: Rows of "mechanism_similarity".
        confidence: Confidence level of the intervals and of the decisions.

    Returns:
        Texts and numbers, by the interval and the p-value, Holm-corrected over the similarities of
        a model; empty if there is no comparison.
    """
    sentences: list[Sentence] = []
    for model, rows in frame.dropna(subset=["p_value"]).groupby("model", sort=False):
        rows = rows.assign(
            p_value_holm=adjust_p_values(rows["p_value"]),
            n=rows["n_aligned"] + rows["n_misaligned"],
        )
        sentences += many(
            rows.sort_values("p_value", kind="stable").to_dict("records"),
            "difference",
            f"similarity of two answers of {model}",
            lambda row: difference(
                row,
                "difference",
                f"similarity of two answers of {row['model']} ({FEATURES[row['feature']]})",
                "pairs correct once",
                "pairs correct both times",
                p="p_value_holm",
                correction="Holm",
                kind="decimal",
                confidence=confidence,
            ),
            p="p_value_holm",
            most=len(FEATURES),
            kind="decimal",
            confidence=confidence,
        )
    return paragraph(sentences)


def make_tables(
    runs: Sequence[MeasuredRun], settings: MechanismSettings, confidence: float = 0.95
) -> tuple[dict[str, Table], str]:
    """Make all tables of the analysis.

    Args:
        runs: Measurements of the runs.
        settings: Settings of the analysis.
        confidence: Confidence level of the intervals.

    Returns:
        The tables by name, and the reason why alignment is not predicted; "" if it is predicted.
    """
    similarity = pd.concat([one.similarity for one in runs], ignore_index=True)
    differences = difference_rows(similarity, confidence)
    main, other = _is_main(differences), ~_is_main(differences)
    pairs = similarity[_is_main(similarity)]
    predicted, reason = prediction_rows(pairs, n_folds=settings.folds, rng=settings.seed)
    frames = {
        "mechanism_similarity": differences[main],
        "mechanism_sensitivity": differences[other],
        "mechanism_prediction": _predictions(predicted),
        "mechanism_sets": _sets(runs, settings),
        "mechanism_sample": _samples(runs),
        "mechanism_pairs": pairs,
    }
    readout = settings.readout.replace("_", " ")
    return {
        name: _TEXTS.table(
            name,
            frame.reset_index(drop=True),
            labels=_LABELS,
            model=None if name == "mechanism_prediction" else "model",
            readout=readout,
        )
        for name, frame in frames.items()
    }, reason


def _is_main(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Select the rows of the paper's method: spans, by optimal transport."""
    return (frame["aggregation"] == "transport") & (frame["tokens"] == "span")


def _predictions(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """List the predictions of the paper's figure 5."""
    columns = ["folds", "feature", "auc", "accuracy", "coefficient", "baseline_accuracy"]
    return pd.DataFrame(rows, columns=[*columns, "n", "n_aligned", "n_clusters"])


def _sets(runs: Sequence[MeasuredRun], settings: MechanismSettings) -> pd.DataFrame:
    """List the sizes and the reliability of the minimal sets."""
    return pd.DataFrame(
        [
            _sets_row(one, side, condition, settings)
            for one in runs
            for side, condition in (("first", "first answer"), ("second", "second answer"))
        ]
    )


def _sets_row(
    one: MeasuredRun, side: str, condition: str, settings: MechanismSettings
) -> dict[str, Any]:
    """Summarise the sets of one condition."""
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
    """Return the median of the defined values; NaN if there are none, for which pandas 2 warns."""
    known = values.dropna()
    return float(known.median()) if len(known) else np.nan


def _share(value: float, base: float) -> float:
    """Compute the proportion of a readout that remains."""
    return 1.0 - (base - value) / abs(base) if base else np.nan


def _samples(runs: Sequence[MeasuredRun]) -> pd.DataFrame:
    """Count the pairs of the runs, the sampled pairs, and the sources of spans."""
    rows = []
    for one in runs:
        second_spans = [one.spans[pair.second.id] for pair in one.sample.pairs]
        counts = pd.Series([span.source for span in second_spans]).value_counts()
        sources = ", ".join(f"{source} {n}" for source, n in counts.items())
        n_unfound = sum(not span.is_found for span in second_spans)
        rows.append({**one.sample.counts, "spans": sources, "n_unfound": n_unfound})
    return pd.DataFrame(rows)
