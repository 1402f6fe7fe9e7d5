"""Rows of single verdicts, one a fact and condition, matched into pairs."""

import warnings
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import IncompletePairWarning
from surface_consistency.metrics.paired._source_cells import (
    as_booleans,
    as_text,
    identifiers,
    need_column,
    verdict_column,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["pair_rows"]


def pair_rows(
    frame: "pd.DataFrame", first: str, second: str, condition: str, correct: str, facts: list[str]
) -> tuple["pd.DataFrame", "pd.Series[Any]"]:
    """Pair the rows of each fact; return the pairs and the name of their facts."""
    for role, column in (("condition", condition), ("correct", correct)):
        need_column(frame, column, role)
    for column in facts:
        need_column(frame, column, "fact")
    verdicts = verdict_column(frame, correct)
    names = _fact_names(frame, facts)
    conditions = _texts(frame[condition])
    parts = [conditions == value for value in (first, second)]
    for role, value, part in zip(("first", "second"), (first, second), parts, strict=True):
        if not part.any():
            raise ValueError(
                f"{role}={value!r} is no value of column {condition!r}, which holds "
                f"{sorted(set(conditions))[:20]}"
            )
    of_fact = dict(zip(names[parts[0]], verdicts[parts[0]], strict=True))
    repeated = names[parts[0]][names[parts[0]].duplicated()]
    if len(repeated):
        raise ValueError(
            f"fact {repeated.iloc[0]!r} has several rows under {first!r} ({len(repeated)} rows too "
            "many): name more columns through fact, such as the template or the model"
        )
    paired = parts[1] & names.isin(list(of_fact))
    _warn_incomplete(set(of_fact), set(names[parts[1]]))
    pairs = frame[paired].drop(columns=[condition, correct])
    pairs = pairs.assign(
        first_correct=as_booleans([of_fact[name] for name in names[paired]], pairs.index),
        second_correct=verdicts[paired],
    )
    return pairs.reset_index(drop=True), names[paired].reset_index(drop=True)


def _texts(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column as text, whatever its type, an empty cell as empty text."""
    import pandas as pd

    texts = [as_text(value) for value in column.array]
    series: pd.Series[Any] = pd.Series(texts, index=column.index, dtype=object)
    return series


def _fact_names(frame: "pd.DataFrame", facts: list[str]) -> "pd.Series[Any]":
    """Name the fact of each row, no two facts alike."""
    import pandas as pd

    columns = [identifiers(frame, column) for column in facts]
    if len(columns) > 1:
        columns = [[_escaped(text) for text in texts] for texts in columns]
    names: pd.Series[Any] = pd.Series(map("/".join, zip(*columns, strict=True)), index=frame.index)
    return names


def _escaped(text: str) -> str:
    """Keep the separator of several columns out of a name."""
    return text.replace("%", "%25").replace("/", "%2F")


def _warn_incomplete(first: set[str], second: set[str]) -> None:
    """Say how many facts lack a condition."""
    if not first & second:
        raise ValueError(
            "no fact stands under both conditions: check that column fact names the same facts, "
            f"such as {sorted(first)[0]!r} and {sorted(second)[0]!r}"
        )
    alone = len(first ^ second)
    if alone:
        warnings.warn(
            f"{alone} of {len(first | second)} facts stand under one of the two conditions only "
            "and were left out",
            IncompletePairWarning,
            stacklevel=4,
        )
