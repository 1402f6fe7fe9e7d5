"""The numbers of an audit, from outcomes frames: what survives, by which way, and from where."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    cluster_counts,
    clustered_mcnemar,
    decomposition_residual,
    forgetting_by,
    wilson_interval,
)
from surface_consistency.studies.audit._shares import (
    ATTRIBUTIONS,
    attribution_table,
    closure_columns,
    groups_of,
    states_table,
)
from surface_consistency.studies.audit._states import fill_accuracies, state_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ATTRIBUTIONS", "AUDIT_GROUPINGS", "audit_tables"]

AUDIT_GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_variant": ("variant",),
    "by_domain": ("domain",),
    "by_style": ("style",),
    "by_database": ("database", "domain", "variant"),
    "by_cell": ("database", "domain", "variant", "style"),
}
"""Name of each table of rates to the columns that group it besides the model."""

_PROPORTIONS: Final = (
    "leakage",
    "retrieval_mediated",
    "interference",
    "del_on_accuracy",
    "artifact_rate",
    "full_accuracy",
)
_GIVEN_FULL: Final = "_given_full"


def audit_tables(
    frame: "pd.DataFrame", *, n_resamples: int = 10_000, seed: int = 0
) -> "dict[str, pd.DataFrame]":
    """Compute the tables of one or several models.

    Args:
        frame: Outcomes of any models, one below the other, columns of `AuditOutcome`.
        n_resamples: Resamples of facts for intervals.
        seed: Seed of the resampling.

    Returns:
        By name. "overall", "by_variant", "by_domain", "by_style", "by_database" and "by_cell":
        columns of `metrics.forgetting_by`, with facts as clusters, Wilson's interval over facts
        where a rate is 0 or 1 throughout, the test in its clustered form
        (`clustered_mcnemar_statistic`, `clustered_mcnemar_p_value`), `identity_residual`, which is
        p(DEL-ON) - (L + R - c/n), `artifacts_equal_del_on`, and `closure_is_complete`,
        `n_incomplete` and `closure_note`. Each state has its number of answers (`n_full`,
        `n_del_on`, `n_del_off`) and its F1 (`full_f1`, ...); `n` counts the pairs of
        DEL-ON and DEL-OFF. Where there is no pair, accuracies are those of the states
        that were asked, and `states_note` names those that were not.
        "attribution" and "attribution_by_..." (variant, domain, style, database): for each
        origin of right DEL-ON answers its count, how many of these
        DEL-OFF has right too (`n_also_right_without_retrieval`), its share of them and its rate
        over all facts with an interval. "states", "states_by_variant" and
        "states_by_style": exact match and token F1 in each state, with intervals.

    Raises:
        ColumnNotFoundError: If a column is missing.
        ValueError: If the frame is empty.

    References:
        arXiv 2607.00605, tables 5 and 6, figures 3 to 7, propositions 6.1 and C.1.
    """
    with warnings.catch_warnings():
        # What is missing or undefined stands in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = {
            name: _rates(frame, columns, n_resamples, seed)
            for name, columns in AUDIT_GROUPINGS.items()
        }
    for name, columns in AUDIT_GROUPINGS.items():
        if name == "by_cell":
            continue
        suffix = "" if name == "overall" else f"_{name}"
        tables[f"attribution{suffix}"] = attribution_table(frame, columns, n_resamples, seed)
        if name in ("overall", "by_variant", "by_style"):
            tables[f"states{suffix}"] = states_table(frame, columns, n_resamples, seed)
    return tables


def _rates(
    frame: "pd.DataFrame", columns: tuple[str, ...], n_resamples: int, seed: int
) -> "pd.DataFrame":
    """Compute L, R, I, A and the tests by model and these columns."""
    keys = ["model", *columns]
    table = forgetting_by(
        frame,
        by=keys,
        full="full_correct" if frame["full_correct"].notna().any() else None,
        has_gold="has_gold" if frame["has_gold"].notna().any() else None,
        n_resamples=n_resamples,
        rng=seed,
    )
    groups = groups_of(frame, keys)
    extra = [
        _clustered(groups[key])
        | _identity(dict(row))
        | _known(groups[key])
        | state_columns(groups[key], frame[frame["model"] == row["model"]])
        | closure_columns(groups[key])
        for key, row in zip(
            table[keys].itertuples(index=False, name=None),
            table.to_dict(orient="records"),
            strict=True,
        )
    ]
    for name in extra[0]:
        table[name] = [row[name] for row in extra]
    _widen(table)
    fill_accuracies(table, frame, columns, n_resamples, seed)
    return _in_order(table, frame, keys)


def _clustered(rows: "pd.DataFrame") -> dict[str, Any]:
    """Test DEL-ON against DEL-OFF with facts as clusters."""
    counts = cluster_counts(
        rows["first_correct"].array,
        rows["second_correct"].array,
        clusters=rows["fact_id"],
        missing="drop",
    )
    result = clustered_mcnemar(counts) if len(counts) else None
    return {
        "clustered_mcnemar_statistic": np.nan if result is None else result.statistic,
        "clustered_mcnemar_p_value": np.nan if result is None else result.p_value,
    }


def _identity(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Check that the rates of a group add up, and whether A says anything that DEL-ON does not."""
    residual = np.nan
    if row["n"]:
        residual = decomposition_residual(
            del_on=row["del_on_accuracy"],
            leakage=row["leakage"],
            retrieval_mediated=row["retrieval_mediated"],
            interference=row["interference"],
        )
    found: dict[str, Any] = {"identity_residual": residual}
    if "artifacts" in row:
        found["artifacts_equal_del_on"] = row["artifacts"] == row["both"] + row["first_only"]
    return found


def _known(rows: "pd.DataFrame") -> dict[str, Any]:
    """Count the facts that the rates given FULL are over."""
    if rows["full_correct"].isna().all():
        return {}
    right = rows["full_correct"].fillna(False).astype(bool)
    paired = rows["first_correct"].notna() & rows["second_correct"].notna()
    return {f"n_clusters{_GIVEN_FULL}": rows.loc[right & paired, "fact_id"].nunique()}


def _widen(table: "pd.DataFrame") -> None:
    """Give rates that do not vary Wilson's interval over facts; their resamples have no width."""
    names = [str(name) for name in table.columns]
    given = [name for name in names if name.endswith(_GIVEN_FULL) and f"{name}_low" in names]
    for rate in (*_PROPORTIONS, *given):
        if rate not in table:
            continue
        sizes = f"n_clusters{_GIVEN_FULL}" if rate in given else "n_clusters"
        for row in table.index[table[rate].isin([0.0, 1.0]) & (table[sizes] > 0)]:
            n_facts = int(table.loc[row, sizes])
            bounds = wilson_interval(int(table.loc[row, rate]) * n_facts, n_facts)
            table.loc[row, [f"{rate}_low", f"{rate}_high"]] = [bounds.low, bounds.high]


def _in_order(table: "pd.DataFrame", frame: "pd.DataFrame", keys: Sequence[str]) -> "pd.DataFrame":
    """Put groups in the order in which the frame has them."""
    places = {
        key: place
        for place, key in enumerate(
            frame[list(keys)].drop_duplicates().itertuples(index=False, name=None)
        )
    }
    order = [places[key] for key in table[list(keys)].itertuples(index=False, name=None)]
    return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
