"""The numbers of an audit, from outcomes frames: what survives, by which way, and from where."""

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import (
    ContaminationWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    CountRatio,
    Intervals,
    cluster_counts,
    clustered_mcnemar,
    contamination_by,
    decomposition_residual,
    forgetting_by,
    with_adjusted_p_values,
)
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.report.tabulation import tabulate
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.studies.audit.attribution import KINDS

__all__ = [
    "AUDIT_GROUPINGS",
    "STATE_COLUMNS",
    "audit_tables",
    "baseline_checks",
    "lookup_table",
]

AUDIT_GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_topology": ("topology",),
    "by_domain": ("domain",),
    "by_style": ("style",),
    "by_database": ("database", "domain", "topology"),
    "by_condition": ("database", "domain", "topology", "style"),
}
"""Name of each table of rates to the columns that group it besides the model."""

STATE_COLUMNS: Final[Mapping[MemoryState, str]] = {
    "FULL": "full",
    "DEL-ON": "first",
    "DEL-OFF": "second",
}
"""Each state and the first word of its columns in an outcomes frame."""

_RATE_NAMES: Final = {"FULL": "full", "DEL-ON": "del_on", "DEL-OFF": "del_off"}
_PAIRED: Final = "DEL-ON and DEL-OFF"
_MISSED: Final[Mapping[MemoryState, str]] = {
    "FULL": "FULL was not asked: nothing tells whether the facts were right before deletion",
    "DEL-ON": f"DEL-ON was not asked: L, R, I and A need {_PAIRED}",
    "DEL-OFF": f"DEL-OFF was not asked: L, R, I and A need {_PAIRED}",
}
_GIVEN_FULL: Final = "_given_full"
_CONDITION: Final = ["model", "database", "domain", "topology", "style"]
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


def audit_tables(
    frame: pd.DataFrame, *, n_resamples: int = 10_000, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """Compute the tables of one or several models.

    Args:
        frame: Outcomes of any models, one below the other, columns of `AuditOutcome`.
        n_resamples: Resamples of facts for intervals.
        seed: Seed of the resampling.

    Returns:
        By name. "overall", "by_topology", "by_domain", "by_style", "by_database" and
        "by_condition": columns of `metrics.forgetting_by`, with facts as clusters, Wilson's
        interval over facts where a rate is 0 or 1 throughout, the test in its clustered form
        (`clustered_mcnemar_statistic`, `clustered_mcnemar_p_value`, and with Holm's correction over
        the rows of a model `clustered_mcnemar_p_value_holm`), `identity_residual`, which is
        p(DEL-ON) - (L + R - c/n), `artifacts_equal_del_on`, and `closure_is_complete`,
        `n_incomplete` and `closure_note`. Each state has its number of answers (`n_full`,
        `n_del_on`, `n_del_off`) and its F1 (`full_f1`, ...); `n` counts the pairs of
        DEL-ON and DEL-OFF. Where there is no pair, accuracies are those of the states
        that were asked, and `states_note` names those that were not.
        "attribution" and "attribution_by_..." (topology, domain, style, database): for each
        origin of right DEL-ON answers its count, how many of these
        DEL-OFF has right too (`n_also_right_without_retrieval`), its share of them and its rate
        over all facts with an interval. "states", "states_by_topology" and
        "states_by_style": exact match and token F1 in each state, with intervals. "survivors": a
        row an answer that is right after deletion, with its origin.

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
        if name == "by_condition":
            continue
        suffix = "" if name == "overall" else f"_{name}"
        by = ["model", *columns]
        origins = partial(_origins, n_resamples=n_resamples, seed=seed)
        tables[f"attribution{suffix}"] = tabulate(frame, by, origins)
        if name in ("overall", "by_topology", "by_style"):
            scores = partial(_scores, n_resamples=n_resamples, seed=seed)
            tables[f"states{suffix}"] = tabulate(frame, by, scores)
    tables["survivors"] = _survivors(frame)
    return tables


def baseline_checks(frame: pd.DataFrame, *, near_zero: float = 0.05) -> pd.DataFrame:
    """Look for databases whose FULL state is no baseline.

    Args:
        frame: Outcomes, columns of `AuditOutcome`.
        near_zero: Largest FULL accuracy that counts as near zero.

    Returns:
        One row a model and database, as of `metrics.contamination_by`; empty when FULL or DEL-ON
        was not asked.

    Warns:
        ContaminationWarning: If FULL is near zero, or equals DEL-ON, in every style of a database.
    """
    judged = frame[frame["full_correct"].notna() & frame["first_correct"].notna()]
    counted = judged[_CONDITION].assign(
        n=1,
        full_correct=judged["full_correct"].astype(int),
        del_on_correct=judged["first_correct"].astype(int),
    )
    counts = counted.groupby(_CONDITION, sort=False).sum().reset_index()
    if counts.empty:
        return counts
    table = contamination_by(
        counts, by=["model", "database", "domain", "topology"], near_zero=near_zero
    )
    for row in table[table["is_contaminated"]].to_dict(orient="records"):
        warnings.warn(
            f"{row['database']} ({row['model']}): {row['full_accuracy']:.1%} are right with the "
            f"database whole, {row['del_on_accuracy']:.1%} with the fact deleted; where that is "
            "near zero or the same, the store did not serve this database or the model does not "
            "use it, and nothing can be said of forgetting",
            ContaminationWarning,
            stacklevel=3,
        )
    return table


def lookup_table(targets: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Count lookups and abstentions by database and state.

    Args:
        targets: What was judged.
        verdicts: Row by row those of `targets`, columns of `AuditVerdict`.

    Returns:
        n_answers, n_without_lookup, n_lookups, n_abstained, n_fallback, n_blank and n_malformed.
    """
    names = ["n_lookups", "n_abstained", "n_fallback", "n_blank", "n_malformed"]
    counts = verdicts[names].astype("Float64").fillna(0).astype(int)
    counted = targets[["database", "state"]].assign(
        n_answers=1, n_without_lookup=(counts["n_lookups"] == 0).astype(int), **counts
    )
    judged = counted[verdicts["is_correct"].notna()]
    return judged.groupby(["database", "state"], sort=False).sum().reset_index()


def _survivors(frame: pd.DataFrame) -> pd.DataFrame:
    """List the answers that are right under DEL-ON, and whether DEL-OFF was right as well."""
    survived = frame[frame["first_correct"].fillna(False).astype(bool)]
    return survived[list(_SURVIVORS)].rename(columns=_SURVIVORS).reset_index(drop=True)


def _groups(frame: pd.DataFrame, keys: list[str]) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Part a frame by the values of some columns, in the order in which it has them."""
    return dict(iter(frame.groupby(keys, sort=False)))


def _rates(
    frame: pd.DataFrame, columns: tuple[str, ...], n_resamples: int, seed: int
) -> pd.DataFrame:
    """Compute L, R, I, A and the tests by model and these columns."""
    keys = ["model", *columns]
    table = forgetting_by(
        frame,
        by=keys,
        full="full_correct" if frame["full_correct"].notna().any() else None,
        has_gold="has_gold" if frame["has_gold"].notna().any() else None,
        # As published; the clustered form stands beside it.
        test="independent",
        intervals=Intervals(n_resamples=n_resamples, rng=seed),
    )
    groups = _groups(frame, keys)
    order = {key: place for place, key in enumerate(groups)}
    places = list(table[keys].itertuples(index=False, name=None))
    table = table.iloc[np.argsort([order[key] for key in places], kind="stable")]
    table = table.reset_index(drop=True)
    extra = pd.DataFrame(
        [
            _clustered(part)
            | _identity(row)
            | _known(part)
            | _state_columns(part, frame[frame["model"] == row["model"]])
            | _closure(part)
            for part, row in zip(groups.values(), table.to_dict("records"), strict=True)
        ]
    )
    table = pd.concat([table, extra], axis=1)
    table = with_adjusted_p_values(table, column="clustered_mcnemar_p_value", within="model")
    _fill_accuracies(table, frame, keys, n_resamples, seed)
    return table


def _clustered(rows: pd.DataFrame) -> dict[str, Any]:
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


def _identity(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Check that the rates of a group add up, and whether A says anything that DEL-ON does not."""
    residual = np.nan
    if row["n"]:
        residual = decomposition_residual(
            del_on=row["del_on_accuracy"],
            leakage=row["leakage"],
            retrieval_mediated=row["retrieval_mediated"],
            interference=row["interference"],
        )
    columns: dict[str, Any] = {"identity_residual": residual}
    if "artifacts" in row:
        columns["artifacts_equal_del_on"] = row["artifacts"] == row["both"] + row["first_only"]
    return columns


def _known(rows: pd.DataFrame) -> dict[str, Any]:
    """Count the facts that the rates given FULL are over."""
    if rows["full_correct"].isna().all():
        return {}
    right = rows["full_correct"].fillna(False).astype(bool)
    paired = rows["first_correct"].notna() & rows["second_correct"].notna()
    return {f"n_clusters{_GIVEN_FULL}": rows.loc[right & paired, "fact_id"].nunique()}


def _state_columns(rows: pd.DataFrame, whole: pd.DataFrame) -> dict[str, Any]:
    """Count the answers of a group by state, average their F1, and name the states not asked.

    A state that has no answer in the whole run was not asked.
    """
    columns: dict[str, Any] = {}
    for state, prefix in STATE_COLUMNS.items():
        judged = rows.loc[rows[f"{prefix}_correct"].notna(), f"{prefix}_f1"].astype(float)
        columns[f"n_{_RATE_NAMES[state]}"] = len(judged)
        columns[f"{_RATE_NAMES[state]}_f1"] = float(judged.mean()) if len(judged) else np.nan
    missed = [
        _MISSED[state]
        for state, prefix in STATE_COLUMNS.items()
        if whole[f"{prefix}_correct"].isna().all()
    ]
    return columns | {"states_note": "; ".join(missed)}


def _closure(rows: pd.DataFrame) -> dict[str, Any]:
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


def _fill_accuracies(
    table: pd.DataFrame, frame: pd.DataFrame, keys: list[str], n_resamples: int, seed: int
) -> None:
    """Take the accuracies of groups without a pair of DEL-ON and DEL-OFF from single states."""
    empty = table.index[table["n"] == 0]
    if empty.empty:
        return
    scores = tabulate(frame, keys, partial(_scores, n_resamples=n_resamples, seed=seed))
    if scores.empty:
        return
    by_state = scores.set_index([*keys, "state"])
    for state in ("FULL", "DEL-ON"):
        rate = f"{_RATE_NAMES[state]}_accuracy"
        for place in empty if rate in table else ():
            key = (*table.loc[place, keys], state)
            if key in by_state.index:
                for end in ("", "_low", "_high"):
                    table.loc[place, f"{rate}{end}"] = by_state.loc[key][f"exact_match{end}"]


def _origins(part: pd.DataFrame, n_resamples: int, seed: int) -> Iterator[dict[str, object]]:
    """Count where a group's right answers after deletion came from."""
    judged = part[part["first_correct"].notna()]
    if judged.empty:
        return
    kinds = np.stack([judged["attribution"] == kind for kind in KINDS], axis=1)
    n_facts, lows, highs = _bounds(kinds, judged["fact_id"], n_resamples, seed)
    n_right = int(judged["first_correct"].astype(bool).sum())
    off = judged["second_correct"]
    also = off.fillna(False).to_numpy(dtype=bool)
    for place, kind in enumerate(KINDS):
        count = int(kinds[:, place].sum())
        n_also = int((kinds[:, place] & also).sum())
        yield {
            "attribution": kind,
            "count": count,
            "n_also_right_without_retrieval": n_also if off.notna().any() else np.nan,
            "n_del_on_correct": n_right,
            "share": count / n_right if n_right else np.nan,
            "n": len(judged),
            "n_facts": n_facts,
            "rate": count / len(judged),
            "rate_low": lows[place],
            "rate_high": highs[place],
            **_closure(part),
        }


def _scores(part: pd.DataFrame, n_resamples: int, seed: int) -> Iterator[dict[str, object]]:
    """Average a group's exact match and token F1 by state."""
    for state, prefix in STATE_COLUMNS.items():
        judged = part[part[f"{prefix}_correct"].notna()]
        if judged.empty:
            continue
        values = judged[[f"{prefix}_correct", f"{prefix}_f1"]].astype(float).to_numpy()
        n_facts, lows, highs = _bounds(values, judged["fact_id"], n_resamples, seed)
        row: dict[str, object] = {"state": state, "n": len(judged), "n_facts": n_facts}
        for place, name in enumerate(("exact_match", "f1")):
            row[name] = float(values[:, place].mean())
            row |= {f"{name}_low": lows[place], f"{name}_high": highs[place]}
        yield row | _closure(part)


def _bounds(
    values: npt.NDArray[Any], facts: pd.Series, n_resamples: int, seed: int
) -> tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Count the facts and bound the mean of each column, which lies in [0, 1]."""
    _, codes = np.unique(facts.astype(str), return_inverse=True)
    columns = [*values.T.astype(float), np.ones(len(values))]
    sums = np.stack([np.bincount(codes, weights=column) for column in columns], axis=1).astype(
        float
    )
    n_values = sums.shape[1] - 1
    if len(sums) < 2:
        undefined = np.full(n_values, np.nan)
        return len(sums), undefined, undefined
    units = np.eye(n_values + 1, dtype=int).tolist()
    means = group_values(
        sums,
        {
            str(place): CountRatio(numerator=tuple(unit), denominator=tuple(units[-1]))
            for place, unit in enumerate(units[:-1])
        },
        Intervals(n_resamples=n_resamples, rng=seed),
    ).values()
    bounds = np.array([(mean.interval.low, mean.interval.high) for mean in means])
    return len(sums), bounds[:, 0], bounds[:, 1]
