"""Number the facts and the clusters of a frame of forms."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import cluster_codes, plain_label
from surface_consistency.metrics._inputs import Integers, check_label_types
from surface_consistency.reading import shown


class FactCodes(NamedTuple):
    """Codes of the fact and the cluster of each row, shape `(n_rows,)`."""

    facts: Integers
    clusters: Integers


def fact_codes(frame: pd.DataFrame, facts: list[str], cluster: str | None) -> FactCodes:
    """Number facts and clusters; raise an error if one is missing or a fact is in two clusters."""
    for column in facts:
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna()))
            raise ValueError(f"column {shown(column)} has no fact in row {row}: fill it in")
        if frame[column].dtype == object:
            check_label_types(frame[column].unique(), f"column {shown(column)}")
    codes = frame.groupby(facts, sort=False, observed=True).ngroup()
    numbers: Integers = np.asarray(codes, dtype=np.int64)
    clusters = numbers if cluster is None else cluster_codes(frame, cluster)
    of_fact = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    of_fact[numbers] = clusters
    differs = of_fact[numbers] != clusters
    if differs.any():
        label = frame.iloc[int(np.argmax(differs))][facts].tolist()
        raise ValueError(
            f"fact {label} belongs to more than one cluster of column {shown(cluster)}; give "
            "each fact one cluster"
        )
    return FactCodes(numbers, clusters)


def check_unique_forms(
    frame: pd.DataFrame,
    where: npt.NDArray[np.intp],
    facts: Integers,
    columns: list[str],
    group: str,
) -> None:
    """Raise an error if a form (the last of the columns) occurs twice for a fact of a group."""
    forms = pd.factorize(frame[columns[-1]].iloc[where], use_na_sentinel=False)[0]
    joint = facts[where] * (int(forms.max(initial=0)) + 1) + forms
    _, first, counts = np.unique(joint, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = frame.iloc[int(where[first[np.argmax(counts > 1)]])]
        name = ", ".join(f"{column}={shown(plain_label(row[column]))}" for column in columns)
        raise ValueError(
            f"{name} occurs more than once {group}: drop the duplicates, or add a column that "
            "distinguishes them to by or item"
        )
