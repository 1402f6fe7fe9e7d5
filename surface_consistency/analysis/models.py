"""Compare models on the same items, from frames, files or folders, and return a `Result`."""

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from surface_consistency.analysis.compare import ITEM_OF_PAIR, ComparedResults, compare_results
from surface_consistency.analysis.result import Result, texts
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.reading import shown
from surface_consistency.results.columns import ResultColumns
from surface_consistency.schemas.settings import made_from, reject_unknown
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import claim_records
from surface_consistency.tables.table import Column, interval_column

if TYPE_CHECKING:
    from surface_consistency.engine.compare.results_report import ComparisonReport

_RECORDS: Final = (ResultColumns, ComparisonSettings, TableSettings)
_OWN: Final = {"item": ITEM_OF_PAIR, "pair": "item"}
"""Columns of outcomes in the rows that are compared, whose items are the pairs."""


def compare(
    *sources: object,
    names: Sequence[str] = (),
    item: str | Sequence[str] = (),
    form: str | None = None,
    score: str | None = None,
    repeat: str | None = None,
    cluster: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    baseline: str | None = None,
    margin: float | None = None,
    rule: str | None = None,
    confidence: float = 0.95,
    missing: Literal["drop", "raise", "wrong"] = "drop",
    **options: Any,  # noqa: ANN401 - checked by the records of the command
) -> Result:
    """Return the differences in mean score between models, on the items for which all have a score.

    Args:
        sources: One source per model: a DataFrame, a `datasets.Dataset`, or a file or folder of
            results of any tool; or a dictionary of these by model; or one frame with a column of
            models.
        names: Labels of the models, one per source; file names or the column `model` by default.
        item: Columns that together identify an item; by default a standard name such as "item".
        form: Column of the form of an item, such as its wording; a standard name by default.
        score: Column of scores, 0/1 or graded; by default a standard name such as "correct".
        repeat: Column that numbers repeated answers, which are averaged; detected by default.
        cluster: Columns that identify dependent items, such as the article; detected by default.
        by: Columns of groups. The result has one row per group and pair of models, after the row
            of all items, whose group is "all".
        baseline: Model with which all others are compared; all pairs by default.
        margin: Equivalence margin, in the unit of the scores: 0.02 for 2 points of accuracy.
        rule: Matching rule that scores the answers instead of the scores of the sources.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the item for all models, "raise"
            raises an error, "wrong" counts the answer as incorrect.
        options: All other options of the command, with underscores: the columns `model`, `task`,
            `metric`, `prediction`, `references`, `question` and `error`; `metrics` and `filter`,
            which select metrics and a filter of lm-evaluation-harness; `region`, the part of an
            answer that the rule scores; `fold_accents`, `reference_separator` and
            `reasoning_opened`; `lower_is_better`, the metrics for which lower scores are better (by
            default losses, errors and costs); `scale`, `separator` and `test`.

    Returns:
        The result; `to_frame()` has model, reference, difference (model minus reference) with
        bounds, both means, p_value or, for several pairs, p_value_holm, n (common items) and
        n_clusters. For a single model it has the mean instead.

    Raises:
        ColumnNotFoundError: If a column is not found.
        DataError: If a frame is empty, frames have no names, or the models have no common item.
        TypeError: If a source is of another type.
        ValueError: If an option is unknown or out of range.

    Notes:
        Interval and uncorrected p-value use the same t statistic over clusters, so that p < 1 -
        confidence exactly if the interval excludes 0.

    References:
        Miller, "Adding error bars to evals", arXiv 2411.00640 (paired differences).

    Examples:
        >>> import pandas as pd
        >>> one = pd.DataFrame({"item": range(60), "correct": [1, 1, 0] * 20})
        >>> result = compare(one, one.assign(correct=[1, 0, 0] * 20), names=["a", "b"])
        >>> result.to_frame()[["model", "reference", "difference"]].round(2).values.tolist()
        [['b', 'a', -0.33]]
    """
    by, cluster, clusters = _of_outcomes(sources, _tuple(by), _tuple(cluster))
    named = {
        "item": _tuple(item), "form": form, "score": score, "repeat": repeat,
        "cluster": cluster, "names": _tuple(names),
    }  # fmt: skip
    own = {
        "baseline": baseline, "margin": margin, "rule": rule, "missing": missing, "by": by,
        "confidence": confidence,
    }  # fmt: skip
    known = {name for record in _RECORDS for name in record.model_fields} - {"fail_if"}
    reject_unknown(options, known, "compare")
    lists = {"metrics", "lower_is_better"}
    options = {name: _tuple(one) if name in lists else one for name, one in options.items()}
    # Run folders reject options that they do not support, even at their default.
    given = {role: one for role, one in named.items() if one} | own | options
    notes: list[str] = []
    source = _source(sources, by, repeat, notes)
    compared = compare_results(source, *made_from(_RECORDS, given, "compare"))
    result = result_of(replace(compared, cluster_note=clusters or compared.cluster_note))
    return replace(result, note=" ".join([result.note, *dict.fromkeys(notes)]))


def result_of(compared: ComparedResults) -> Result:
    """Convert a comparison to the result that `compare` returns.

    Args:
        compared: The comparison of all metrics.

    Returns:
        The result.
    """
    from surface_consistency.engine.compare.results_report import ComparisonReport

    reports = {metric: ComparisonReport(compared, metric) for metric in compared.metrics}
    has_pairs = len(compared.models) > 1
    by = compared.table.by
    frame = pd.concat(
        [_rows(report, by).assign(metric=metric) for metric, report in reports.items()],
        ignore_index=True,
    )
    keys = [
        *(["model", "reference"] if has_pairs else ["model"]),
        *(["metric"] * (len(reports) > 1)),
        *by,
    ]
    # Metrics on several scales have no common unit.
    is_share = all(report.rate == "rate" for report in reports.values())
    rate: Literal["rate", "number"] = "rate" if is_share else "number"
    estimates = [interval_column("mean", "Mean", rate, "%" * is_share)]
    if has_pairs:
        kind: Literal["difference", "number"] = "difference" if is_share else "number"
        estimates = [
            interval_column("difference", "Difference", kind, "points" * is_share),
            Column(key="model_mean", title="Mean, model", unit="%" * is_share, kind=rate),
            Column(key="reference_mean", title="Mean, reference", unit="%" * is_share, kind=rate),
        ]
    has_family = bool(by) or any(len(report.differences) > 1 for report in reports.values())
    p = ("p_value_holm" if has_family else "p_value") if has_pairs else None
    sentences = [sentence for report in reports.values() for sentence in report.sentences()]
    if not any("are excluded." in sentence for sentence in texts(sentences)):
        # The finding reports excluded items only if they are many.
        sentences += [say.stated(f"{sentence}.") for sentence in compared.missing]
    sentences += map(say.stated, map("Note: {}.".format, compared.notes))
    notes, facts = (
        next(iter(reports.values())).cluster_notes(has_remedy=one) for one in (True, False)
    )
    notes.insert(0, say.stated(f"Clusters: {compared.cluster_note}."))
    name = compared.cluster_note.partition(", ")[0]
    clusters = f"Standard errors are clustered by {'item' if name == 'items' else name}."
    return Result(
        kind="compare",
        frame=frame,
        keys=keys,
        estimates=estimates,
        caption="Models on the same items",
        sentences=texts(sentences),
        claims=[one for parts in (*sentences, *notes) for one in claim_records(parts)],
        p=p,
        p_title="p, Holm" if p == "p_value_holm" else "p",
        confidence=compared.table.confidence,
        note=" ".join(texts(notes)),
        table_note=" ".join([clusters, *texts(facts)]),
        unit=compared.unit,
        page=partial(_write, compared),
    )


def _write(compared: ComparedResults, folder: str | os.PathLike[str]) -> Path:
    """Write the report page; its modules are imported only here."""
    from surface_consistency.engine.compare.results_page import write_comparison

    return write_comparison(compared, folder)


def _rows(report: "ComparisonReport", by: Sequence[str]) -> pd.DataFrame:
    """Return the rows of all items, then those of each group."""
    whole, groups = report.differences, report.groups
    means = report.result.means.set_index(["by", "group", "model"])["mean"]
    if report.is_of_one:
        whole, groups = report.result.models, report.result.means
    else:
        sides = {
            f"{side}_mean": means.reindex(pd.MultiIndex.from_frame(groups[["by", "group", side]]))
            for side in ("model", "reference")
        }
        groups = groups.assign(**{name: side.to_numpy() for name, side in sides.items()})
    taken = sorted({*by} & {*whole.columns})
    if taken:
        raise ValueError(f"`by` column {shown(taken[0])} is a column of the result; rename it")
    parts = [whole.assign(**dict.fromkeys(by, "all"))]
    for name in by:
        part = groups[groups["by"] == name]
        labels = dict.fromkeys(by, "all") | {name: part["group"]}
        parts.append(part.drop(columns=["by", "group"]).assign(**labels))
    return pd.concat(parts, ignore_index=True)


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several names as a tuple; also a bool, which the record then rejects."""
    return (names,) if isinstance(names, str | bool) else tuple(names)


def _source(sources: Sequence[Any], by: Sequence[str], repeat: str | None, notes: list[str]) -> Any:  # noqa: ANN401 - what `compare_results` reads
    """Return the sources for `compare_results`; outcomes frames get one row per answer."""
    if not sources:
        raise TypeError(
            "compare requires results; pass frames, files or a dictionary of them by model"
        )

    def answers(source: object) -> object:
        """Return an outcomes frame with one row per answer; other sources unchanged."""
        if not _is_outcomes(source):
            return source
        from surface_consistency.analysis._columns import to_frame
        from surface_consistency.analysis.measures import outcome_rows, pairs_note

        rows, unit = outcome_rows(frame := to_frame(source), by, repeat)
        notes.extend(filter(None, [pairs_note(frame, unit, by)]))
        return rows.assign(**{_OWN["item"]: rows.get("item", rows["pair"]), "item": rows["pair"]})

    given = sources[0] if len(sources) == 1 else list(sources)
    if isinstance(given, Mapping):
        return {name: answers(source) for name, source in given.items()}
    return [answers(one) for one in given] if isinstance(given, list) else answers(given)


def _is_outcomes(source: object) -> bool:
    """Return whether a source is an outcomes frame."""
    needed = {"pair", "first_correct", "second_correct"}
    return isinstance(source, pd.DataFrame) and needed <= {*source} and not source.empty


def _of_outcomes(
    sources: Sequence[Any], by: tuple[str, ...], cluster: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Add the facet of the study to the groups of outcomes; also return clusters and their note."""
    (first, *more) = sources or ((),)
    listed = first if isinstance(first, list) and not more else sources
    given = list(first.values()) if isinstance(first, Mapping) else list(listed)
    outcomes = [one for one in given if _is_outcomes(one)]
    if not outcomes:
        return by, cluster, ""
    from surface_consistency.analysis._columns import find, of_study
    from surface_consistency.analysis.measures import clusters_of, with_facet, with_item

    for one in outcomes:
        by = tuple(with_facet(one, by))
    in_rows = tuple(_OWN.get(name, name) for name in by)
    if len(outcomes) < len(given):
        return in_rows, cluster, ""
    outcomes = [with_item(of_study(one)) for one in outcomes]
    for one, name in itertools.product(outcomes, cluster):
        find(one, "cluster", name)
    # The finest of "cluster", "item" and "pair".
    own = cluster or (max(map(clusters_of, outcomes)),)
    reason = ", as named" if cluster else ", as defined by the study" * (own == ("cluster",))
    return in_rows, tuple(_OWN.get(name, name) for name in own), " and ".join(own) + reason
