"""What each state of a group tells by itself, whether or not the others were asked."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from surface_consistency.schemas.memory import MemoryState
from surface_consistency.studies.audit._shares import states_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fill_accuracies", "state_columns", "survivors_table"]

_PREFIXES: Final[Mapping[MemoryState, str]] = {
    "FULL": "full",
    "DEL-ON": "first",
    "DEL-OFF": "second",
}
_NAMES: Final[Mapping[MemoryState, str]] = {
    "FULL": "full",
    "DEL-ON": "del_on",
    "DEL-OFF": "del_off",
}
_MISSED: Final[Mapping[MemoryState, str]] = {
    "FULL": "FULL was not asked: nothing tells whether the facts were right before deletion",
    "DEL-ON": "DEL-ON was not asked: L, R, I and A need DEL-ON and DEL-OFF",
    "DEL-OFF": "DEL-OFF was not asked: L, R, I and A need DEL-ON and DEL-OFF",
}
_BOUNDS: Final = ("", "_low", "_high")
_SURVIVORS: Final = {
    "model": "model",
    "fact_id": "fact",
    "style": "style",
    "subject": "subject",
    "relation": "relation",
    "gold_object": "gold",
    "first_prediction": "answer",
    "attribution": "attribution",
    "attributed_to": "attributed_to",
    "second_correct": "right_under_del_off",
}


def state_columns(rows: "pd.DataFrame", whole: "pd.DataFrame") -> dict[str, Any]:
    """Count the answers of a group by state, average their F1, and name the states not asked.

    A state that has no answer in the whole run was not asked.
    """
    found: dict[str, Any] = {}
    for state, prefix in _PREFIXES.items():
        judged = rows.loc[rows[f"{prefix}_correct"].notna(), f"{prefix}_f1"].astype(float)
        found[f"n_{_NAMES[state]}"] = len(judged)
        found[f"{_NAMES[state]}_f1"] = float(judged.mean()) if len(judged) else np.nan
    missed = [
        _MISSED[state]
        for state, prefix in _PREFIXES.items()
        if whole[f"{prefix}_correct"].isna().all()
    ]
    return found | {"states_note": "; ".join(missed)}


def fill_accuracies(
    table: "pd.DataFrame",
    frame: "pd.DataFrame",
    columns: tuple[str, ...],
    n_resamples: int,
    seed: int,
) -> None:
    """Take the accuracies of groups without a pair of DEL-ON and DEL-OFF from single states."""
    if (table["n"] > 0).all():
        return
    keys = ["model", *columns]
    scores = states_table(frame, columns, n_resamples, seed)
    if scores.empty:
        return
    found = scores.set_index([*keys, "state"])
    groups = list(table[keys].itertuples(index=False, name=None))
    for state in ("FULL", "DEL-ON"):
        rate = f"{_NAMES[state]}_accuracy"
        if rate not in table:
            continue
        for place, group in zip(table.index, groups, strict=True):
            if table.loc[place, "n"] == 0 and (*group, state) in found.index:
                row = found.loc[(*group, state)]
                for end in _BOUNDS:
                    table.loc[place, f"{rate}{end}"] = row[f"exact_match{end}"]


def survivors_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """List the answers that are right under DEL-ON, and whether DEL-OFF was right as well."""
    survived = frame[frame["first_correct"].fillna(False).astype(bool)]
    return survived[list(_SURVIVORS)].rename(columns=_SURVIVORS).reset_index(drop=True)
