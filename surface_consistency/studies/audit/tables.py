"""Compute the tables of an audit from outcomes frames: surviving facts and their origins."""

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.paired.tables import with_detectable
from surface_consistency.errors import DataWarning, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import CountRatio, forgetting_by, paired_by, with_adjusted_p_values
from surface_consistency.metrics.forgetting.audit_checks import (
    contamination_by,
    decomposition_residual,
)
from surface_consistency.metrics.uncertainty.bootstrap import GroupValue, group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.runs.loader import Run
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.studies.audit.attribution import KINDS
from surface_consistency.tables.tabulation import tabulate

AUDIT_GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_topology": ("topology",),
    "by_domain": ("domain",),
    "by_style": ("style",),
    "by_database": ("database", "domain", "topology"),
    "by_condition": ("database", "domain", "topology", "style"),
}
"""By name of each table of rates: the columns that group it in addition to the model."""

STATE_COLUMNS: Final[Mapping[MemoryState, str]] = {
    "FULL": "full",
    "DEL-ON": "first",
    "DEL-OFF": "second",
}
"""By state: the prefix of its columns in an outcomes frame."""

_ALL: Final = (1, 1, 1, 1)
_EFFECT: Final = {
    "retrieval_effect": CountRatio(numerator=(0, 1, -1, 0), denominator=_ALL),
    "flip_rate": CountRatio(numerator=(0, 1, 1, 0), denominator=_ALL),
    "both_rate": CountRatio(numerator=(1, 0, 0, 0), denominator=_ALL),
    "neither_rate": CountRatio(numerator=(0, 0, 0, 1), denominator=_ALL),
}
_PUBLISHED_TEST: Final = {
    "statistic": "mcnemar_statistic",
    "p_value": "mcnemar_p_value",
    "test": "mcnemar_method",
}
GUARDS: Final = ("contamination", "databases", "fit", "closure")
"""Names of the checks that the page reads."""

_RATE_NAMES: Final = {"FULL": "full", "DEL-ON": "del_on", "DEL-OFF": "del_off"}
_PAIRED: Final = "DEL-ON and DEL-OFF"
_MISSED: Final[Mapping[MemoryState, str]] = {
    "FULL": "FULL was not run: it is unknown whether the facts were correct before deletion",
    "DEL-ON": f"DEL-ON was not run: L, R, I and A need {_PAIRED}",
    "DEL-OFF": f"DEL-OFF was not run: L, R, I and A need {_PAIRED}",
}
_CONDITION: Final = ["model", "database", "domain", "topology", "style"]
_SURVIVORS: Final = {
    "model": "model",
    "item": "fact",
    "base_fact": "base_fact",
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
    frame: pd.DataFrame, intervals: Intervals = DEFAULT_INTERVALS, *, cluster: str = "base_fact"
) -> dict[str, pd.DataFrame]:
    """Compute the tables of one or several models.

    Args:
        frame: Concatenated outcomes of any models, columns of `AuditOutcome`.
        intervals: Method and level of the intervals.
        cluster: Column by which intervals and tests are clustered.

    Returns:
        By name. "overall", "by_topology", "by_domain", "by_style", "by_database" and
        "by_condition": columns of `metrics.forgetting_by` except accuracy_difference, with
        McNemar's test as published (`mcnemar_statistic`, `mcnemar_p_value`, `mcnemar_method`);
        `retrieval_effect`, which is R - I, with its interval and the p-value of the same clustered
        t, as of `paired_by` (`statistic`, `p_value`, `test`, and with Holm's correction over
        the rows of a model `p_value_holm`) and `detectable_difference`, the minimum detectable
        difference at 80 % power; `both_rate` and `neither_rate`, the proportions a / n and d / n,
        in addition to R and I; `identity_residual`, which is
        p(DEL-ON) - (L + R - c/n), `artifacts_equal_del_on`, and `closure_is_complete`,
        `n_incomplete` and `closure_note`. Each state has its number of answers (`n_full`,
        `n_del_on`, `n_del_off`) and its F1 (`full_f1`, ...); `n` counts the pairs of
        DEL-ON and DEL-OFF. Without pairs, accuracies are those of the states that were run, and
        `states_note` names the states that were not.
        "attribution" and "attribution_by_..." (topology, domain, style, database): for each
        origin of correct DEL-ON answers its count, and with intervals its proportion among them and
        its rate over all prompts. "states", "states_by_topology" and
        "states_by_style": exact match and token F1 in each state, with intervals. "survivors": one
        row per answer that is correct after deletion, with its origin.

    Raises:
        ColumnNotFoundError: If a column is missing.
        ValueError: If the frame is empty.

    References:
        arXiv 2607.00605, tables 5 and 6, figures 3 to 7, propositions 6.1 and C.1.
    """
    with warnings.catch_warnings():
        # The tables contain the missing and undefined values.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = {
            name: _rates(frame, ["model", *columns], cluster, intervals)
            for name, columns in AUDIT_GROUPINGS.items()
        }
    origins, scores = (
        partial(one, cluster=cluster, intervals=intervals) for one in (_origins, _scores)
    )
    for name, columns in AUDIT_GROUPINGS.items():
        if name == "by_condition":
            continue
        suffix = "" if name == "overall" else f"_{name}"
        by = ["model", *columns]
        tables[f"attribution{suffix}"] = tabulate(frame, by, origins)
        if name in ("overall", "by_topology", "by_style"):
            tables[f"states{suffix}"] = tabulate(frame, by, scores)
    tables["survivors"] = _survivors(frame)
    return tables


def baseline_checks(frame: pd.DataFrame, *, near_zero: float = 0.05) -> pd.DataFrame:
    """Find databases whose FULL state is not a valid baseline.

    Args:
        frame: Outcomes, columns of `AuditOutcome`.
        near_zero: Largest FULL accuracy that counts as near zero.

    Returns:
        One row per model and database, as of `metrics.contamination_by`; empty if FULL or DEL-ON
        was not run.

    Warns:
        DataWarning: If FULL is near zero, or equals DEL-ON, in every style of a database.
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
            f"{row['database']} ({row['model']}): {row['full_accuracy']:.1%} are correct with the "
            f"full database, {row['del_on_accuracy']:.1%} with the fact deleted; if the first is "
            "near zero or both are equal, the store may not have served this database, or the "
            "model may not use it, and forgetting cannot be measured",
            DataWarning,
            stacklevel=3,
        )
    return table


def lookup_table(targets: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Count lookups and abstentions by database and state.

    Args:
        targets: The targets that were scored.
        verdicts: Their scores in the same order, columns of `AuditVerdict`.

    Returns:
        n_answers, n_without_lookup, n_lookups, n_abstained, n_fallback, n_blank and n_malformed.
    """
    names = ["n_lookups", "n_abstained", "n_fallback", "n_blank", "n_malformed"]
    counts = verdicts[names].astype("Float64").fillna(0).astype(int)
    counted = targets[["database", "state"]].assign(
        n_answers=1, n_without_lookup=(counts["n_lookups"] == 0).astype(int), **counts
    )
    judged = counted[verdicts["correct"].notna()]
    return judged.groupby(["database", "state"], sort=False).sum().reset_index()


def closure_note(run: Run) -> str:
    """Report how many deletions of a run are incomplete.

    Args:
        run: The run.

    Returns:
        A clause; empty if all are complete.
    """
    facts = run.outcomes.drop_duplicates("item")
    n_incomplete = int(facts["n_surviving"].gt(0).sum())
    if not n_incomplete:
        return ""
    return (
        f"deletion incomplete: after {n_incomplete:,} of {len(facts):,} deletions, an entry still "
        "states the fact under a name that the aliases of all facts connect with its names"
    )


def _survivors(frame: pd.DataFrame) -> pd.DataFrame:
    """List the answers that are correct under DEL-ON, and whether DEL-OFF was also correct."""
    survived = frame[frame["first_correct"].eq(True).fillna(False).astype(bool)]
    return survived[list(_SURVIVORS)].rename(columns=_SURVIVORS).reset_index(drop=True)


def _rates(
    frame: pd.DataFrame, keys: list[str], cluster: str, intervals: Intervals = DEFAULT_INTERVALS
) -> pd.DataFrame:
    """Compute L, R, I, A and the tests by model and these columns."""
    known = {name: name for name in ("full_correct", "gold_retrieved") if frame[name].notna().any()}
    table = forgetting_by(
        frame,
        by=keys,
        cluster=cluster,
        full=known.get("full_correct"),
        gold_retrieved=known.get("gold_retrieved"),
        # As published; the clustered test is added below.
        test="independent",
        intervals=intervals,
    ).rename(columns=_PUBLISHED_TEST)
    # Its interval is of independent pairs, as the published test; R - I is the same, clustered.
    table = table.filter(regex="^(?!accuracy_difference)")
    is_counted = frame[[*known]].notna().all(axis=1)
    effect = with_detectable(
        paired_by(
            frame.assign(first_correct=frame["first_correct"].where(is_counted)),
            by=keys,
            cluster=cluster,
            rates=_EFFECT,
            intervals=intervals,
        ),
        "retrieval_effect",
        confidence=intervals.confidence,
    )
    names = ("retrieval_effect", "both_rate", "neither_rate")
    bounds = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    table = table.join(effect[[*bounds, *_PUBLISHED_TEST, "detectable_difference"]])
    groups = dict(iter(frame.groupby(keys, sort=False)))
    order = {key: place for place, key in enumerate(groups)}
    places = list(table[keys].itertuples(index=False, name=None))
    table = table.iloc[np.argsort([order[key] for key in places], kind="stable")]
    table = table.reset_index(drop=True)
    extra = pd.DataFrame(
        [
            _identity(row)
            | _state_columns(part, frame[frame["model"] == row["model"]])
            | _closure(part)
            for part, row in zip(groups.values(), table.to_dict("records"), strict=True)
        ]
    )
    table = pd.concat([table, extra], axis=1)
    table = with_adjusted_p_values(table, column="p_value", within="model")
    _fill_accuracies(table, frame, keys, cluster, intervals)
    return table


def _identity(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Check that the rates of a group add up, and whether A differs from p(DEL-ON)."""
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


def _state_columns(rows: pd.DataFrame, whole: pd.DataFrame) -> dict[str, Any]:
    """Count the answers of a group by state, average their F1, and name the states not run.

    A state without an answer in the whole run was not run.
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
    """Report whether the deletions of a group are complete."""
    facts = rows.drop_duplicates("item")
    n_incomplete = int((facts["n_surviving"] > 0).sum())
    n_absent = int((facts["n_deleted"] == 0).sum())
    notes = []
    if n_incomplete:
        notes.append(f"closure incomplete after {n_incomplete} of {len(facts)} deletions")
    if n_absent:
        notes.append(f"{n_absent} deletions delete nothing")
    return {
        "closure_is_complete": n_incomplete == 0,
        "n_incomplete": n_incomplete,
        "closure_note": "; ".join(notes),
    }


def _fill_accuracies(
    table: pd.DataFrame, frame: pd.DataFrame, keys: list[str], cluster: str, intervals: Intervals
) -> None:
    """Fill the accuracies of groups without a pair of DEL-ON and DEL-OFF from single states."""
    empty = table.index[table["n"] == 0]
    if empty.empty:
        return
    scores = tabulate(frame, keys, partial(_scores, cluster=cluster, intervals=intervals))
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
                table.loc[place, f"{rate}_n"] = by_state.loc[key]["n"]
                table.loc[place, f"{rate}_n_clusters"] = by_state.loc[key]["n_clusters"]


def _origins(
    part: pd.DataFrame, *, cluster: str, intervals: Intervals
) -> Iterator[dict[str, object]]:
    """Count the origins of a group's correct answers after deletion."""
    judged = part[part["first_correct"].notna()]
    if judged.empty:
        return
    kinds = pd.DataFrame({kind: judged["attribution"] == kind for kind in KINDS})
    is_right = judged["first_correct"].astype(bool)
    n_right = int(is_right.sum())
    shares = _means(kinds[is_right], judged.loc[is_right, cluster], intervals)
    for kind, rate in _means(kinds, judged[cluster], intervals).items():
        count = int(kinds[kind].sum())
        share = shares[kind]
        yield {
            "attribution": kind,
            "count": count,
            "n_del_on_correct": n_right,
            "share": share.value,
            "share_low": share.low,
            "share_high": share.high,
            "n": len(judged),
            "n_clusters": judged[cluster].nunique(),
            "rate": rate.value,
            "rate_low": rate.low,
            "rate_high": rate.high,
            **_closure(part),
        }


def _scores(
    part: pd.DataFrame, *, cluster: str, intervals: Intervals
) -> Iterator[dict[str, object]]:
    """Average a group's exact match and token F1 by state."""
    for state, prefix in STATE_COLUMNS.items():
        judged = part[part[f"{prefix}_correct"].notna()]
        if judged.empty:
            continue
        row: dict[str, object] = {"state": state, "n": len(judged)}
        row["n_clusters"] = judged[cluster].nunique()
        names = {f"{prefix}_correct": "exact_match", f"{prefix}_f1": "f1"}
        scores = judged[[*names]].rename(columns=names)
        for name, mean in _means(scores, judged[cluster], intervals).items():
            bounds = {f"{name}_low": mean.low, f"{name}_high": mean.high}
            row |= {name: mean.value} | bounds
        yield row | _closure(part)


def _means(
    values: pd.DataFrame, clusters: pd.Series, intervals: Intervals
) -> dict[str, GroupValue]:
    """Average columns of values in [0, 1], with intervals clustered by these labels."""
    sums = values.astype(float).assign(n_rows=1.0).groupby(clusters.astype(str)).sum().to_numpy()
    units = np.eye(sums.shape[1], dtype=int).tolist()
    ratios = {
        str(name): CountRatio(numerator=tuple(unit), denominator=tuple(units[-1]))
        for name, unit in zip(values, units[:-1], strict=True)
    }
    return group_values(sums, ratios, intervals)
