"""Shares of answers by group, with intervals over facts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import resample_counts, wilson_interval
from surface_consistency.schemas.audit import Attribution

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ATTRIBUTIONS", "attribution_table", "closure_columns", "groups_of", "states_table"]

ATTRIBUTIONS: Final[tuple[Attribution, ...]] = get_args(Attribution)
"""Where a right answer after deletion may come from, in order."""

_STATES: Final = {"FULL": "full", "DEL-ON": "first", "DEL-OFF": "second"}


def groups_of(frame: "pd.DataFrame", keys: list[str]) -> "dict[tuple[Any, ...], pd.DataFrame]":
    """Part a frame by the values of some columns, in the order in which it has them."""
    parts: dict[tuple[Any, ...], pd.DataFrame] = {}
    for key, part in frame.groupby(keys, sort=False):
        parts[tuple(np.atleast_1d(np.asarray(key, dtype=object)))] = part
    return parts


def closure_columns(rows: "pd.DataFrame") -> dict[str, Any]:
    """Say whether the deletions of a group are complete."""
    facts = rows.drop_duplicates("fact_id")
    n_incomplete = int((facts["n_surviving"] > 0).sum())
    n_absent = int((facts["n_deleted"] == 0).sum())
    notes = []
    if n_incomplete:
        notes.append(f"closure incomplete: {n_incomplete} of {len(facts)} facts are still stated")
    if n_absent:
        notes.append(f"{n_absent} deletions delete nothing")
    return {
        "closure_is_complete": n_incomplete == 0,
        "n_incomplete": n_incomplete,
        "closure_note": "; ".join(notes),
    }


def attribution_table(
    frame: "pd.DataFrame", columns: tuple[str, ...], n_resamples: int, seed: int
) -> "pd.DataFrame":
    """Count where right answers after deletion came from, by model and these columns."""
    import pandas as pd

    keys = ["model", *columns]
    rows: list[dict[str, Any]] = []
    for key, part in groups_of(frame, keys).items():
        judged = part[part["first_correct"].notna()]
        if judged.empty:
            continue
        kinds = np.stack([judged["attribution"] == kind for kind in ATTRIBUTIONS], axis=1)
        values = np.column_stack([kinds, np.ones(len(judged))]).astype(float)
        sums = _by_fact(values, judged["fact_id"])
        lows, highs = _bounds(sums, n_resamples, seed)
        n_right = int(judged["first_correct"].astype(bool).sum())
        off = judged["second_correct"]
        also = off.fillna(False).to_numpy(dtype=bool)
        for place, kind in enumerate(ATTRIBUTIONS):
            count = int(kinds[:, place].sum())
            rows.append(
                dict(zip(keys, key, strict=True))
                | {
                    "attribution": kind,
                    "count": count,
                    "n_also_right_without_retrieval": int((kinds[:, place] & also).sum())
                    if off.notna().any()
                    else np.nan,
                    "n_del_on_correct": n_right,
                    "share": count / n_right if n_right else np.nan,
                    "n": len(judged),
                    "n_facts": len(sums),
                    "rate": count / len(judged),
                    "rate_low": lows[place],
                    "rate_high": highs[place],
                }
                | closure_columns(part)
            )
    return pd.DataFrame(rows)


def states_table(
    frame: "pd.DataFrame", columns: tuple[str, ...], n_resamples: int, seed: int
) -> "pd.DataFrame":
    """Average exact match and token F1 by state, model and these columns."""
    import pandas as pd

    keys = ["model", *columns]
    rows: list[dict[str, Any]] = []
    for key, part in groups_of(frame, keys).items():
        for state, prefix in _STATES.items():
            judged = part[part[f"{prefix}_correct"].notna()]
            if judged.empty:
                continue
            values = np.column_stack(
                [
                    judged[f"{prefix}_correct"].astype(float),
                    judged[f"{prefix}_f1"].astype(float),
                    np.ones(len(judged)),
                ]
            )
            sums = _by_fact(values, judged["fact_id"])
            lows, highs = _bounds(sums, n_resamples, seed)
            row = dict(zip(keys, key, strict=True))
            row |= {"state": state, "n": len(judged), "n_facts": len(sums)}
            for place, name in enumerate(("exact_match", "f1")):
                row |= {
                    name: float(values[:, place].mean()),
                    f"{name}_low": lows[place],
                    f"{name}_high": highs[place],
                }
            rows.append(row | closure_columns(part))
    return pd.DataFrame(rows)


def _by_fact(values: npt.NDArray[np.float64], facts: "pd.Series[Any]") -> npt.NDArray[np.float64]:
    """Sum rows fact by fact."""
    _, codes = np.unique(facts.astype(str), return_inverse=True)
    return np.stack([np.bincount(codes, weights=column) for column in values.T], axis=1)


def _bounds(
    sums: npt.NDArray[np.float64], n_resamples: int, seed: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Bound the ratio of each column to the last; by Wilson where it does not vary."""
    n_facts = len(sums)
    totals = sums.sum(axis=0)
    if n_facts < 2:
        undefined = np.full(sums.shape[1] - 1, np.nan)
        return undefined, undefined
    drawn = resample_counts(sums, n_resamples=n_resamples, rng=seed)
    ratios = drawn[:, :-1] / drawn[:, -1:]
    lows, highs = np.quantile(ratios, (0.025, 0.975), axis=0)
    for place in _without_variation(totals):
        bounds = wilson_interval(n_facts if totals[place] else 0, n_facts)
        lows[place], highs[place] = bounds.low, bounds.high
    return lows, highs


def _without_variation(totals: npt.NDArray[np.float64]) -> Iterator[int]:
    """Find the columns that are 0 or the last one throughout."""
    for place, total in enumerate(totals[:-1]):
        if total in (0.0, totals[-1]):
            yield place
