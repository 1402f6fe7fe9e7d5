"""Compute the tables of crossed models: rates by form, preserved facts, scores and survivors."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency import metrics
from surface_consistency.matching import match_columns
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.results.unlearning import FORGET, NEIGHBOUR, NEW, PLAIN
from surface_consistency.studies.unlearning.crossing import Crossing, column_of
from surface_consistency.tables.sentences import direction

TESTED: Final = "tested"
"""Status of the forms under which the original is significantly above the reference."""

ANY: Final = "any form"
"""The row of facts that are correct under at least one form."""

RATES: Final = ("known", "survival", "survival_given_known", "floor", "leak", "damage", "hidden")
"""Rates of a form."""

_MEASURES: Final = {(NEW, PLAIN): "efficacy", (NEW, "reworded"): "generality"}
_OF_SETS: Final = {NEW: "portability", NEIGHBOUR: "locality"}
_CLUSTERED: Final[Mapping[str, Any]] = {"cluster": "cluster", "pair": "question_id"}
_SIDES: Final = ["first_correct", "second_correct", "original_correct"]
_FLAG: Final = metrics.CountRatio(numerator=(1, 1, 0, 0), denominator=(1, 1, 1, 1))
_KNOWN: Final = {
    "known": _FLAG,
    "survival_given_known": metrics.CountRatio(numerator=(1, 0, 0, 0), denominator=(1, 1, 0, 0)),
}


def forms_frame(crossing: Crossing, margin: float, intervals: Intervals) -> pd.DataFrame:
    """Compute the rates of each model under each form, and under any form.

    Args:
        crossing: The models.
        margin: Equivalence margin.
        intervals: Method and level of the intervals and tests.

    Returns:
        One row per form and unlearned, edited or further reference model: columns of
        `unlearning_by`, those of `RATES` with their bounds, the same comparison of the original
        with the reference (known_excess and the like), and status. The status is "tested" if the
        original is significantly above the reference, and not equivalent to it within the margin,
        or if the original is missing; None without a reference; else "not inferred", "equivalent"
        (no facts to forget), "not above" (not significantly) or "below" (the reference may have
        learned the facts).
    """
    options: dict[str, Any] = {**_CLUSTERED, "margin": margin, "intervals": intervals}
    reference, original = crossing.first("reference"), crossing.first("original")
    rows = []
    for model in [*crossing.targets, *crossing.of("reference")[1:]]:
        for form, frame in _frames(crossing, model).items():
            # Without a reference only the rates of the model itself are defined.
            second = "second_correct" if reference is not None else "first_correct"
            table = metrics.unlearning_by(frame, second=second, **options)
            if reference is None:
                table = table.filter(regex="^(survival|n|n_clusters|few_clusters)")
            row: dict[Any, Any] = {"model": model, "form": form, **table.iloc[0].to_dict()}
            row["status"] = TESTED if reference is not None else None
            row |= {} if original is None else _original_rates(frame, reference, options)
            scored = frame.dropna(subset="hidden") if "hidden" in frame else frame[:0]
            if form != PLAIN and len(scored):
                row |= _rates(scored, {"hidden": _FLAG}, intervals, "hidden", "hidden")
            rows.append(row)
    names = [one for name in (*RATES, "excess", "known_excess") for one in _bounded(name)]
    tests = ["p_above", "p_equivalent", "least_margin", "clusters_needed"]
    table = pd.DataFrame(rows)
    return table.reindex(columns=list(dict.fromkeys([*table.columns, *names, *tests])))


def _frames(crossing: Crossing, model: str) -> dict[str, pd.DataFrame]:
    """Join the correctness labels of a model, the reference and the original, by form."""
    reference, original = crossing.first("reference"), crossing.first("original")
    questions = crossing.questions
    frame = questions[["set", "form", "question_id", "item", "cluster"]].assign(
        first_correct=crossing.verdicts(model),
        second_correct=crossing.verdicts(reference),
        original_correct=crossing.verdicts(original),
    )
    frame = frame[frame["set"] == FORGET]
    # A form without any answer keeps a row without numbers, so that it is reported.
    scored = frame["first_correct"].notna()
    frame = frame[scored | ~scored.groupby(frame["form"]).transform("any")]
    plain = frame[frame["form"] == PLAIN].drop_duplicates("item").set_index("item")
    plain_correct = frame["item"].map(plain["first_correct"])
    leaks = frame["first_correct"].eq(True) & frame["second_correct"].eq(False)
    hidden = leaks & plain_correct.eq(False)
    is_scored = plain_correct.notna() & frame[_SIDES[:2]].notna().all(axis=1)
    frame = frame.assign(hidden=hidden.where(is_scored, None))
    frames = {str(form): part for form, part in frame.groupby("form", sort=False)}
    if frame["item"].duplicated().any():
        frames[ANY] = _any_form(frame)
    return frames


def _any_form(frame: pd.DataFrame) -> pd.DataFrame:
    """Label each fact with labels under all forms: correct if it is correct under any form."""
    sides = [name for name in _SIDES if frame[name].notna().any()]
    scored = frame.dropna(subset=sides)
    facts = scored.astype(dict.fromkeys(sides, bool)).groupby("item", sort=False)
    joined = (
        facts[sides].any().assign(cluster=facts["cluster"].first()).reset_index(names="question_id")
    )
    return joined.reindex(columns=[*_SIDES, "cluster", "question_id"])


def _original_rates(
    frame: pd.DataFrame, reference: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Compute the accuracy of the original, and compare it with the reference."""
    intervals = options["intervals"]
    cells = _rates(frame, _KNOWN, intervals, "original_correct", "first_correct")
    if reference is None:
        return cells
    result = metrics.unlearning_by(frame, first="original_correct", **options).iloc[0].to_dict()
    names = ("not_inferred", "p_equivalent", *_bounded("excess"))
    sign = direction(result, "excess", confidence=intervals.confidence)
    status = {None: "not inferred", 1: TESTED, 0: "not above", -1: "below"}[sign]
    if sign is not None and result["p_equivalent"] < (1.0 - intervals.confidence) / 2.0:
        status = "equivalent"
    cells |= {f"known_excess_{name}": result[name] for name in ("n", "n_clusters")}
    return cells | {f"known_{name}": result[name] for name in names} | {"status": status}


def _rates(
    frame: pd.DataFrame, rates: Mapping[str, Any], intervals: Intervals, first: str, second: str
) -> dict[str, Any]:
    """Compute rates of two columns of correctness labels, with their bounds."""
    options: dict[str, Any] = {**_CLUSTERED, "rates": rates, "intervals": intervals}
    row = metrics.paired_by(frame, first=first, second=second, **options).iloc[0]
    return {name: row[name] for rate in rates for name in _bounded(rate)}


def _bounded(name: str) -> tuple[str, str, str]:
    """Return the names of the columns of a number and its interval."""
    return name, f"{name}_low", f"{name}_high"


def kept_frame(crossing: Crossing, margin: float, intervals: Intervals) -> pd.DataFrame:
    """Compare each model with the original, else the reference, on all sets except forget.

    Args:
        crossing: The models.
        margin: Equivalence margin.
        intervals: Method and level of the intervals and tests.

    Returns:
        One row per model, set and form: columns of `unlearning_by`. In these, survival is the
        accuracy of the model, floor is that of the model in the column `against`, and change (in
        place of excess) is their difference. The column measure is the usual name of the accuracy
        on edits: efficacy, generality, portability or locality. Empty if no other set is scored.
    """
    options: dict[str, Any] = {**_CLUSTERED, "margin": margin, "intervals": intervals}
    other = crossing.first("original") or crossing.first("reference")
    rows = []
    for model in crossing.targets:
        frame = crossing.questions[["set", "form", "question_id", "cluster"]].assign(
            first_correct=crossing.verdicts(model), second_correct=crossing.verdicts(other)
        )
        frame = frame[frame["set"] != FORGET].dropna()
        if len(frame):
            part = metrics.unlearning_by(frame, by=["set", "form"], **options)
            keys = zip(part["set"], part["form"], strict=True)
            named = np.array([_MEASURES.get(key, _OF_SETS.get(key[0])) for key in keys], object)
            rows.append(part.assign(model=model, against=other, measure=named))
    renamed = {f"excess{end}": f"change{end}" for end in ("", "_low", "_high")}
    empty = pd.DataFrame(columns=["model", "set", "change_high"])
    return pd.concat(rows, ignore_index=True).rename(columns=renamed) if rows else empty


def verdicts(
    crossing: Crossing, forms: pd.DataFrame, confidence: float
) -> dict[str, dict[str, Any]]:
    """Compute the verdict on each model from its measured forms; see `unlearning_verdict`.

    Args:
        crossing: The models.
        forms: Result of `forms_frame`.
        confidence: Confidence level.

    Returns:
        By unlearned or edited model, with the excluded forms, under which the original is not
        significantly above the reference. A significant excess of facts correct under any form
        rules out "forgotten", as that of a single form does. Without a reference nothing is
        concluded.
    """
    results = {}
    for model in crossing.targets:
        rows = forms[(forms["model"] == model) & forms["status"].notna()]
        measured = rows[rows["form"] != ANY]
        excluded = tuple(measured.loc[measured["status"] != TESTED, "form"])
        result = metrics.unlearning_verdict(measured, excluded=excluded, confidence=confidence)
        if result["verdict"] == "forgotten" and (rows["excess_low"] > 0.0).any():
            result |= {"verdict": "equivalent", "above": (ANY,)}
        results[model] = result | {"excluded": excluded}
    return results


def verdicts_frame(results: Mapping[str, dict[str, Any]], price: pd.DataFrame) -> pd.DataFrame:
    """Convert verdicts to a table, with the sets in which a loss is significant.

    Args:
        results: Result of `verdicts`.
        price: Result of `kept_frame`.

    Returns:
        One row per model: fields of the verdict, forms joined by "; " or None, and lost: sets with
        a significant loss, and sets without a loss for which a form is not inferred.
    """
    rows = []
    for model, result in results.items():
        kept = price[(price["model"] == model) & (price["set"] != NEW)]
        lost = dict.fromkeys(kept.loc[kept["change_high"] < 0.0, "set"])
        unknown = dict.fromkeys(kept.loc[kept["change_high"].isna(), "set"])
        names = {name: of for name, of in result.items() if isinstance(of, tuple)}
        names["lost"] = (*lost, *(f"{one} (not inferred)" for one in unknown if one not in lost))
        cells = {name: "; ".join(values) or None for name, values in names.items()}
        rows.append(result | {"model": model} | cells)
    return pd.DataFrame(rows)


@of_shares(Part(1.0, (1.0, 0.0), (0.0, 1.0), -np.inf, np.inf))
def _mean(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide sums of differences by their counts."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def scores_frame(crossing: Crossing, intervals: Intervals) -> pd.DataFrame:
    """Compare the scores of logs with those of the reference, question by question.

    Args:
        crossing: The models.
        intervals: Method and level of the intervals.

    Returns:
        One row per model, set and measure: value, reference_value and score_difference (the mean of
        the differences, with an interval clustered by person). Empty without logs or reference.
    """
    reference = crossing.first("reference")
    by_label = {log.label: log.scores for log in crossing.logs}
    if reference is None or not by_label:
        return pd.DataFrame()
    keys = ["set", "question_id"]
    persons = crossing.questions.drop_duplicates(keys).set_index(keys)["cluster"]
    rows = []
    for model in crossing.targets:
        both = by_label[model].merge(
            by_label[reference], on=["set", "measure", "question_id"], suffixes=("", "_reference")
        )
        cluster = pd.MultiIndex.from_frame(both[keys]).map(persons.to_dict())
        both = both.assign(change=both["value"] - both["value_reference"], n=1, cluster=cluster)
        both = both.dropna(subset="cluster")
        for (of_set, measure), part in both.groupby(["set", "measure"], sort=False):
            sums = part.groupby("cluster")[["change", "n"]].sum().to_numpy(dtype=float)
            bounds = metrics.cluster_bootstrap(sums, _mean, intervals=intervals)
            change = dict(zip(_bounded("score_difference"), bounds, strict=True))
            row = {"model": model, "set": of_set, "measure": measure, "n": len(part)}
            means = {"value": "value", "value_reference": "reference_value"}
            row |= {title: float(part[name].mean()) for name, title in means.items()}
            rows.append(row | change | {"n_clusters": len(sums)})
    return pd.DataFrame(rows)


_SURVIVOR: Final = [
    *("model", "form", "fact", "person", "question", "reason", "accepted"),
    *("answer", "original", "reference"),
]


def survivors_frame(crossing: Crossing, rule: str) -> pd.DataFrame:
    """List the answers that survived, each with the first reason that applies.

    Args:
        crossing: The models.
        rule: Matching rule that decides whether the question contains the answer.

    Returns:
        One row per unlearned model, form and correct fact: fact, person, question, accepted, the
        answers of the model, the original and the reference, and reason: "guessable" (the reference
        is also correct), "in the question", "plain question", "plain question too", or the form
        with "alone".
    """
    reference, original = crossing.first("reference"), crossing.first("original")
    questions = crossing.questions[crossing.questions["set"] == FORGET]
    frames = []
    for model in crossing.targets:
        rows = questions[_is_correct(crossing, model)[questions.index]]
        texts, is_plain = rows["question"].fillna("").astype(str), rows["form"] == PLAIN
        contains = match_columns(texts.tolist(), rows["references"].tolist(), rule=rule).is_match
        reason = (rows["form"] + " alone").mask(
            rows["item"].isin(rows.loc[is_plain, "item"]), "plain question too"
        )
        reason = reason.mask(is_plain, "plain question")
        reason = reason.mask(np.array(contains, dtype=bool), "in the question")
        frame = rows[["form", "item", "cluster"]].assign(
            model=model,
            question=texts,
            reason=reason.mask(_is_correct(crossing, reference)[rows.index], "guessable"),
            accepted=rows["references"].str.join("; "),
        )
        for name, one in (("answer", model), ("original", original), ("reference", reference)):
            frame[name] = None if one is None else rows[column_of("prediction", one)]
        frames.append(frame.rename(columns={"item": "fact", "cluster": "person"})[_SURVIVOR])
    return pd.concat(frames, ignore_index=True)


def _is_correct(crossing: Crossing, model: str | None) -> pd.Series:
    """Return which questions a model answers correctly; False if not scored."""
    return crossing.verdicts(model).eq(True)
