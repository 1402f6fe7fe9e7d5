"""Functions that compute estimates from a frame, with cluster-robust intervals, as a `Result`."""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, ParamSpec

import numpy as np
import pandas as pd

from surface_consistency.analysis._columns import (
    Rows,
    averaged,
    find,
    find_optional,
    prepare,
    scored_by,
    to_frame,
)
from surface_consistency.analysis.doubts import constant_scores, missing_answers
from surface_consistency.analysis.result import Result, texts
from surface_consistency.errors import (
    ColumnNotFoundError,
    PluginError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics._groups import column_names, group_positions, has_list_cells
from surface_consistency.metrics._inputs import check_choice
from surface_consistency.metrics.correlation.correlations import correlation_by
from surface_consistency.metrics.forgetting.forgetting_groups import forgetting_by
from surface_consistency.metrics.forms.form_groups import forms_by
from surface_consistency.metrics.forms.repeats import repeats_by
from surface_consistency.metrics.paired.mcnemar_tests import PairedTest
from surface_consistency.metrics.paired.multiplicity import with_adjusted_p_values
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.positions.alignment import alignment_by
from surface_consistency.metrics.uncertainty.intervals import Intervals, effective_number
from surface_consistency.metrics.uncertainty.means import mean_by
from surface_consistency.reading import first_names
from surface_consistency.schemas.settings import reject_unknown
from surface_consistency.tables import sentences as say
from surface_consistency.tables.numbers import claim_records
from surface_consistency.tables.table import interval_column

Missing = Literal["drop", "raise", "wrong"]
"""Handling of missing scores: exclude the row, raise an error, or count it as incorrect."""

_P = ParamSpec("_P")
_MOST: Final = 3
"""Maximum number of rows with separate sentences."""
_PLACE: Final = "row of the table"

OUTCOMES: Final = ("first_correct", "second_correct")
"""Columns of scores of an outcomes frame."""
PAIRS: Final = (
    "Rows of outcomes are pairs: a form that is in several pairs of an item counts in each of "
    "them. For one row per answer pass run folders to accuracy and compare."
)
"""Note on outcomes whose items have several pairs, so that their forms count several times."""
_ENDS: Final = ("", "_low", "_high")
_UNITS: Final = {"rate": "%", "difference": "points", "number": "", "decimal": ""}


class _Estimate(NamedTuple):
    """An estimate: its column, its heading and its description in sentences."""

    name: str
    title: str
    quantity: str = ""
    """Quantity in its sentence, with {} for the row; without a sentence if empty."""
    kind: Literal["rate", "difference", "number", "decimal"] = "rate"
    ends: tuple[str, str] | None = None
    """The two conditions of a difference, the second minus the first."""
    cells: tuple[str, ...] = ()
    """Columns of counts whose sum is the denominator; all rows by default."""


def _measure(arrays: str) -> Callable[[Callable[_P, Result]], Callable[_P, Result]]:
    """Check the arguments of a call, and suppress warnings that sentences repeat.

    Args:
        arrays: Code for arrays in place of a table, for the message.
    """

    def of_function(function: Callable[_P, Result]) -> Callable[_P, Result]:
        known = list(inspect.signature(function).parameters)

        @wraps(function)
        def measure(*args: _P.args, **named: _P.kwargs) -> Result:
            for name in ("prediction", "references", "rule"):
                if name in named.keys() - known:
                    roles = (("prediction",) * 2, ("references",) * 2, ("rule", "popqa"))
                    code = scored_by(*(str(named.get(*role)) for role in roles))
                    raise TypeError(
                        f"{function.__name__} reads scores and has no argument {name!r}; read the "
                        f"file as a frame df and score it by {code}, or use compare, which has the "
                        "arguments `prediction`, `references` and `rule`"
                    )
            reject_unknown(named, known, function.__name__)
            if len(args) + ("df" in named) != 1:
                raise TypeError(
                    f"{function.__name__} needs one table df and the names of its columns by "
                    f"keyword; got {len(args)} positional arguments. For arrays use {arrays}"
                )
            with warnings.catch_warnings():
                # Excluded rows and undefined numbers.
                warnings.simplefilter("ignore", UnscoredWarning)
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                return function(*args, **named)

        return measure

    return of_function


@_measure('surface_consistency.accuracy(pandas.DataFrame({"correct": scores}))')
def accuracy(
    df: object,
    *,
    score: str = "correct",
    item: str | None = "item",
    form: str | None = "form",
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    model: str = "model",
    repeat: str | None = None,
    confidence: float = 0.95,
    missing: Missing = "drop",
) -> Result:
    """Return the mean score of each model, with a cluster-robust confidence interval.

    Args:
        df: One row per answer: a DataFrame, a `datasets.Dataset`, polars or Arrow table, a list of
            dictionaries, a dictionary of columns, or a file of results of any tool.
        score: Column of scores: 0 or 1, or graded.
        item: Column of items; by default a standard name such as "id" or "fact", if there is one.
        form: Column of the form of an item, such as its wording; a standard name by default.
        cluster: Column of dependent rows, such as the article; None uses the finest column of a
            shared context, such as the article, or else the item.
        by: Columns of groups. The result has one row per group.
        model: Column of models. The result has one row per model.
        repeat: Column that numbers repeated answers to the same prompt, such as the run. Repeats
            are averaged first, and the test-retest flip rate and pass^k are reported.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the row, "raise" raises an error,
            "wrong" counts the answer as incorrect.

    Returns:
        The result; `to_frame()` has accuracy (the mean of graded scores), accuracy_low,
        accuracy_high, n and n_clusters, and with `repeat` the test-retest flip rate and pass_k.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If an item and form have several rows per model and `repeat` is None, or an id is
            missing or of mixed type.
        TypeError: If `df` cannot be read as a frame.
        ValueError: If the frame is empty, a score is missing under "raise", `repeat` is given
            without a column of items, or an option is out of range.

    Notes:
        The interval is the t interval over clusters of `compare_models`. It is undefined for fewer
        than four clusters. pass^k is the probability that k repeats drawn without replacement are
        all correct; k is the smallest number of repeats of a prompt.

    References:
        Miller, "Adding error bars to evals", arXiv 2411.00640; Yao et al., "tau-bench", arXiv
        2406.12045 (pass^k).

    Examples:
        >>> import pandas as pd
        >>> answers = pd.DataFrame({"article": [i // 2 for i in range(40)],
        ...                         "correct": [1, 0, 1, 1] * 10})
        >>> print(accuracy(answers, cluster="article"))
        The accuracy is 75.0 % (95 % CI 62.0 to 87.5; 40 answers, 20 clusters).
        Standard errors are clustered by article.
        [accuracy: 1 row x 5 columns in .to_frame(), 8 with all=True]
    """
    frame = to_frame(
        df, by=by, score=score, item=item, form=form, cluster=cluster, model=model, repeat=repeat
    )
    score = find(frame, "score", score, default="correct")
    item = find_optional(frame, "item", item, "item")
    form = None if item is None else find_optional(frame, "form", form, "form")
    rows = prepare(frame, [score], [item, form], by, cluster, item, model, repeat, missing)
    intervals = Intervals(confidence=confidence)
    noise = _noise(rows, score, repeat, intervals) if rows.is_binary else None
    data = rows.frame if repeat is None else averaged(rows.frame, rows.unit, [score])
    table = mean_by(
        data, by=rows.keys, score=score, cluster=rows.cluster, intervals=intervals,
    )  # fmt: skip
    names = {f"mean{end}": f"accuracy{end}" for end in _ENDS}
    name = "accuracy" if rows.is_binary else "mean score"
    unit = "items" if form is None and item is not None else "answers"
    kind = _kind(rows)
    shown = [_Estimate("accuracy", name.capitalize(), f"{name}{{}}", kind)]
    table = table.drop(columns="p_value")
    return _result("accuracy", rows, table, shown, name.capitalize(), confidence, names=names,
                   unit=unit, noise=noise)  # fmt: skip


@_measure("surface_consistency.metrics.consistency(first, second)")
def consistency(
    df: object,
    *,
    item: str = "item",
    form: str = "form",
    score: str = "correct",
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    model: str = "model",
    repeat: str | None = None,
    confidence: float = 0.95,
    missing: Missing = "drop",
) -> Result:
    """Return the probability that two forms of an item are both correct or both incorrect.

    Args:
        df: One row per item and form, as for `accuracy`; or an outcomes frame (`pair`, unless each
            item has one pair, `item`, `first_correct`, `second_correct`). If its pairs compare one
            form of an item with named other forms, each form of the item counts once; otherwise
            each pair has two forms.
        item: Column of items.
        form: Column of forms: a wording, a name, a language, a prompt.
        score: Column of scores, 0 or 1.
        cluster: Column of dependent items, such as the article; None uses the finest column of a
            shared context, such as the article, or else the item.
        by: Columns of groups. The result has one row per group.
        model: Column of models. The result has one row per model.
        repeat: Column that numbers repeated answers to the same prompt. Two forms are then compared
            by two independently drawn answers, and the test-retest flip rate is reported.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the row, "raise" raises an error,
            "wrong" counts the answer as incorrect.

    Returns:
        The result; `to_frame()` has consistency, all_correct and accuracy with bounds, n (items)
        and n_clusters.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: As for `accuracy`.
        TypeError: If `df` cannot be read as a frame.
        ValueError: If a score is graded or (under "raise") missing, the frame is empty, or an
            option is out of range.

    Notes:
        Consistency is the unbiased probability that two forms of an item, drawn without
        replacement, agree; with two forms it is `metrics.consistency(first, second)`. all_correct
        decreases with the number of forms; compare it only between equal numbers of forms.

    References:
        RedirectQA, arXiv 2604.21882, section 3.2; SLAQ, arXiv 2510.11218, eq. 3.

    Examples:
        >>> import pandas as pd
        >>> answers = pd.DataFrame({"item": [i // 3 for i in range(90)],
        ...                         "form": ["a", "b", "c"] * 30,
        ...                         "correct": [1, 1, 0, 0, 0, 0] * 15})
        >>> consistency(answers).sentences[0]
        'The consistency of two forms of an item is 66.7 % (95 % CI 53.6 to 79.6; 30 items).'
    """
    frame = to_frame(
        df, OUTCOMES, by=by, score=score, item=item, form=form, cluster=cluster, model=model,
        repeat=repeat,
    )  # fmt: skip
    unit, note = "items", ""
    groups = with_facet(frame, by)
    if (item, form, score) == ("item", "form", "correct"):
        named = find_optional(frame, "model", model, "model")
        outcomes, (frame, unit) = frame, outcome_rows(frame, groups, repeat, named)
        if frame is not outcomes:
            item, cluster = "pair", clusters_of(frame) if cluster in (None, *groups) else cluster
        note = pairs_note(outcomes, unit, groups, named)
    forms, of = (("two forms of an item", "all"), ("the two forms of a pair", "both"))[
        unit == "pairs"
    ]
    item, form = (find(frame, *one, default=one[0]) for one in (("item", item), ("form", form)))
    if form in groups:
        raise ValueError(
            f"by {form!r} is the column of forms, and one form contains no pairs; use accuracy "
            f"by {form!r}, or for outcomes group by another column, such as 'second_condition'"
        )
    score = find(frame, "score", score, default="correct")
    rows = prepare(
        frame, [score], [item, form], groups, cluster, item, model, repeat, missing,
        binary_reason="consistency is the probability that two forms are both correct or both "
        "incorrect",
    )  # fmt: skip
    intervals = Intervals(confidence=confidence)
    table = forms_by(
        rows.frame, by=rows.keys, item=item, form=form, score=score, cluster=rows.cluster,
        repeat=repeat, intervals=intervals,
    )  # fmt: skip
    shown = [
        _Estimate("consistency", "Consistency", f"consistency{{}} of {forms}"),
        _Estimate("all_correct", f"Correct in {of} forms", f"proportion of {unit}{{}} correct in "
                  f"{of} forms"),
        _Estimate("accuracy", "Accuracy"),
    ]  # fmt: skip
    return _result(
        "consistency", rows, _complement(table, "flip_rate", "consistency", 1.0), shown,
        f"Consistency of the forms of {'a pair' if unit == 'pairs' else 'an item'}", confidence,
        names={"n_items": "n"}, unit=unit, note=note,
        noise=_noise(rows, score, repeat, intervals), between=forms,
    )  # fmt: skip


@_measure("surface_consistency.metrics.paired_table(first, second)")
def paired(
    df: object,
    *,
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    item: str | None = "item",
    pair: str | None = "pair",
    model: str = "model",
    repeat: str | None = None,
    test: PairedTest = "auto",
    confidence: float = 0.95,
    missing: Missing = "drop",
) -> Result:
    """Return the paired difference in accuracy of two conditions, such as two names or two prompts.

    Args:
        df: One row per pair, as for `accuracy`. For an outcomes frame the defaults are sufficient.
        first: Column of scores under the first condition: 0 or 1, or graded.
        second: Column of scores under the second condition.
        cluster: Column of dependent pairs, such as the fact; None uses the finest column of a
            shared context, such as the article, or else the item.
        by: Columns of groups. The result has one row per group; a cell may be a list of labels.
            Outcomes of RedirectQA with several question templates have one row per template.
        item: Column of items; the default is used only if the frame has it.
        pair: Column of pair ids, unique per model; the default is used only if the table has it.
        model: Column of models. The result has one row per model.
        repeat: Column that numbers repeated answers to the same pair. Flip rate and consistency are
            then those of two answers drawn independently, one per condition.
        test: Test of equal accuracy; "auto" is the t-test over clusters that matches the interval.
            For 0/1 scores the tests of `metrics.paired_by` are also available by name.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the row, "raise" raises an error,
            "wrong" counts the answer as incorrect.

    Returns:
        The result; `to_frame()` has accuracy_difference (second minus first), consistency given the
        first correct and incorrect, flip_rate, consistency, both accuracies, p_value or, for
        several rows, p_value_holm, n (pairs) and n_clusters. For graded scores it has only the
        difference and both means.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: As for `accuracy`.
        TypeError: If `df` cannot be read as a frame.
        ValueError: If the frame is empty, a score is missing under "raise", or an option is out of
            range.

    Notes:
        With several rows, p-values have Holm's correction: over the groups of each model if there
        are groups, otherwise over all rows.

    References:
        RedirectQA, arXiv 2604.21882, section 3.2; McNemar, Psychometrika 12, 1947.

    Examples:
        >>> import pandas as pd
        >>> pairs = pd.DataFrame({"fact": [i // 2 for i in range(120)],
        ...                       "title_correct": [1, 1, 1, 0] * 30,
        ...                       "redirect_correct": [1, 0, 0, 0] * 30})
        >>> result = paired(pairs, first="title_correct", second="redirect_correct", cluster="fact")
        >>> result.to_frame()[["accuracy_difference", "flip_rate", "n"]].values.tolist()
        [[-0.5, 0.5, 120.0]]
    """
    frame = to_frame(df, (first, second), by=by)
    if first not in frame and {"form", "correct"} <= {*frame}:
        raise ColumnNotFoundError(
            f"column {first!r} not found: df has one row per answer, and paired requires one row "
            "per pair; pass df.pivot(index='item', columns='form', values='correct').reset_index() "
            "with first= and second= two of its forms, or use consistency(df)"
        )
    first, second = (find(frame, *one) for one in (("first", first), ("second", second)))
    item = find_optional(frame, "item", item, "item")
    pair = find_optional(frame, "pair", pair, "pair") or (None if repeat is None else item)
    if cluster is None and {"study", "pair"} <= {*frame}:
        cluster = _cluster_of(frame)
    if cluster is None and test in ("obuchowski", "durkalski"):
        raise ValueError(f"test={test!r} requires clusters of pairs; pass cluster= their column")
    rows = prepare(
        frame, [first, second], [pair], with_facet(frame, by), cluster, item or pair, model,
        repeat, missing,
    )  # fmt: skip
    one, two = _conditions(frame, first, second)
    intervals = Intervals(confidence=confidence)
    if rows.is_binary:
        noise = _noise(rows, (first, second), repeat, intervals)
        table = paired_by(
            rows.frame, by=rows.keys, first=first, second=second, cluster=rows.cluster, test=test,
            pair=None if repeat is None else pair, repeat=repeat, intervals=intervals,
            )  # fmt: skip
    else:
        if test != "auto":
            raise ValueError(f"test={test!r} requires 0/1 scores; for others pass test='auto'")
        noise, table = None, _graded_pairs(rows, first, second, repeat, intervals)
    kind = _kind(rows)
    name = "accuracy" if rows.is_binary else "mean score"
    change: Literal["difference", "number"] = "difference" if kind == "rate" else "number"
    shown = [_Estimate("accuracy_difference", f"{two} − {one}", f"{name}{{}}", change, (one, two))]
    if rows.is_binary:
        given = "consistency_given_first_"
        what = f"consistency{{}} of {one} and {two} on pairs"
        flips = "" if repeat else f"flip rate{{}} between {one} and {two}"
        shown += [
            _Estimate("flip_rate", "Flips", flips),
            _Estimate(f"{given}correct", f"Consistent, {one} correct",
                      f"{what} correct under {one}", cells=("both", "first_only")),
            _Estimate(f"{given}incorrect", f"Consistent, {one} incorrect",
                      f"{what} incorrect under {one}", cells=("second_only", "neither")),
            _Estimate("consistency", "Consistency"),
        ]  # fmt: skip
    shown += [
        _Estimate(f"{side}_accuracy", f"{name.capitalize()}, {of}", kind=kind)
        for side, of in (("first", one), ("second", two))
    ]
    return _result(
        "paired", rows, table, shown, f"Paired comparison of {one} and {two}", confidence,
        noise=noise, between=f"{one} and {two}",
    )  # fmt: skip


_OWN_ROWS: Final = {
    "gold_retrieved": ("artifact_rate", "A"),
    "full": ("full_accuracy", "the rates of the complete database"),
}
"""Rate that needs a column which may be missing, and its name in the note."""


@_measure(
    "surface_consistency.metrics.leakage(del_off), retrieval_mediated(del_on, del_off) and "
    "interference(del_on, del_off)"
)
def forgetting(
    df: object,
    *,
    full: str | None = "full",
    del_on: str = "del_on",
    del_off: str = "del_off",
    gold_retrieved: str | None = None,
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    item: str | None = "item",
    model: str = "model",
    test: PairedTest = "auto",
    confidence: float = 0.95,
    missing: Missing = "drop",
) -> Result:
    """Return the rates of correct answers after a fact is deleted from a retrieval database.

    Args:
        df: One row per deleted fact and prompt, as for `accuracy`.
        full: Column of scores (0 or 1) with the complete database; None if it was not evaluated.
        del_on: Column of scores with the fact deleted and retrieval on.
        del_off: Column of scores with the fact deleted and retrieval off.
        gold_retrieved: Column that is 1 if a retained candidate of the retrieval trace is
            equivalent to the deleted fact in subject, relation and object; None uses the column
            `gold_retrieved` if the frame has it with values.
        cluster: Column of dependent rows, such as the fact; None uses the finest column of a
            shared context, such as the article, or else the item.
        by: Columns of groups, such as the topology. The result has one row per group.
        item: Column of facts; the default is used only if the frame has it.
        model: Column of models. The result has one row per model.
        test: Test of retrieval on versus retrieval off, as for `paired`.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the row, "raise" raises an error,
            "wrong" counts the answer as incorrect. Under "drop", a row without `full` or
            `gold_retrieved` is excluded only from the rates that need it. Under "wrong", a missing
            `gold_retrieved` is not an answer, and is excluded as under "drop".

    Returns:
        The result; `to_frame()` has leakage (L), retrieval_mediated (R), interference (I),
        artifact_rate (A; NaN without `gold_retrieved`), retrieval_effect (R - I) and full_accuracy
        (with `full`), each with bounds; p_value, or for several rows p_value_holm, of R - I; n
        (prompts) and n_clusters.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If an id is missing or of mixed type.
        TypeError: If `df` cannot be read as a frame.
        ValueError: If a score is graded or (under "raise") missing, the frame is empty, or an
            option is out of range.

    Notes:
        DEL-ON and DEL-OFF are the states of `del_on` and `del_off`. L is the proportion of rows
        correct under DEL-OFF; R, correct under DEL-ON only; I, correct under DEL-OFF only; A,
        correct under DEL-ON without an equivalent candidate. L + R - I is the accuracy under
        DEL-ON. The denominator of L, R and I is the number of rows with both scores; that of A,
        the number of these rows that also have `gold_retrieved`.

    References:
        arXiv 2607.00605, tables 5 and 6 and appendix D.1.

    Examples:
        >>> import pandas as pd
        >>> facts = pd.DataFrame({"fact": range(60), "full": 1, "del_on": [1, 1, 0] * 20,
        ...                       "del_off": [1, 0, 0] * 20})
        >>> row = forgetting(facts, cluster="fact").to_frame().round(2).iloc[0]
        >>> [float(row[name]) for name in ("leakage", "retrieval_mediated", "interference")]
        [0.33, 0.33, 0.0]
    """
    pair = (del_on, del_off)
    more = [name for name in (full, gold_retrieved or "gold_retrieved") if name]
    frame = to_frame(df, (*pair, *more), *((*pair, one) for one in more), pair, by=by)
    if gold_retrieved is None and frame.get("gold_retrieved", pd.Series()).notna().any():
        gold_retrieved = "gold_retrieved"
    given = {"full": full, "del_on": del_on, "del_off": del_off, "gold_retrieved": gold_retrieved}
    scores = {role: find(frame, role, name) for role, name in given.items() if name is not None}
    item = find_optional(frame, "item", item, "item")
    # A missing trace is not an incorrect answer, even if a missing score is.
    excused = "gold_retrieved" if missing == "wrong" else ""
    answered = [name for role, name in scores.items() if role != excused]
    rows = prepare(
        frame, answered, [], by, cluster, item, model, None, missing,
        binary_reason="forgetting counts correct and incorrect answers",
    )  # fmt: skip
    gaps: list[str] = [role for role in ("gold_retrieved", "full") if role in scores
                       and rows.frame[scores[role]].isna().any()]  # fmt: skip
    # A missing trace or a missing score under FULL excludes a row only from the rates that need it.
    complete = [role for role in scores if role not in gaps]
    calls = [complete, *([role] for role in gaps), gaps]
    tables = [
        forgetting_by(
            rows.frame, by=rows.keys, cluster=rows.cluster, test=test, missing="drop",
            intervals=Intervals(confidence=confidence),
            **{role: scores[role] for role in ("del_on", "del_off", *complete, *extra)},
        )
        for extra in calls[: 1 + len(gaps) + (len(gaps) > 1)]
    ]  # fmt: skip
    empty = [
        name for name in (scores["del_on"], scores["del_off"]) if rows.frame[name].isna().any()
    ]
    table = tables[0]
    for part in tables[1:]:
        table = table.assign(**part[[*part.columns.difference(table.columns, sort=False)]])
    notes = []
    for role, part in zip(gaps, tables[1:], strict=False):
        name, letter = _OWN_ROWS[role]
        sizes = {f"{name}_n": part["n"], f"{name}_n_clusters": part["n_clusters"]}
        table = table.assign(**sizes)
        lost = int((table["n"] - part["n"]).sum())
        notes.append(
            f"{lost:,} of {int(table['n'].sum()):,} prompts have no value in column "
            f"{scores[role]} and are excluded from {letter} only."
        )
    table = _complement(table, "retrieval_effect", "accuracy_difference", 0.0)
    remedy = " ".join(notes)
    if gold_retrieved is None:
        table = table.assign(**{f"artifact_rate{end}": math.nan for end in _ENDS})
        remedy += " " * bool(notes) + (
            "The artifact rate A is undefined without gold_retrieved, which is 1 if a retained "
            "candidate is equivalent to the deleted fact."
        )
    shown = [
        _Estimate("leakage", "L", "leakage rate L{} (correct with retrieval off)"),
        _Estimate("retrieval_mediated", "R", "retrieval-mediated rate R{}"),
        _Estimate("interference", "I", "interference rate I{}"),
        _Estimate("artifact_rate", "A", "artifact rate A{}"),
        _Estimate(
            "retrieval_effect",
            "R − I",
            "accuracy{} after deletion",
            "difference",
            ("retrieval off", "retrieval on"),
        ),
        _Estimate("full_accuracy", "Full", "accuracy{} with the complete database"),
    ]
    shown = [one for one in shown if one.name in table]
    rows = rows._replace(scores=[scores["del_on"], scores["del_off"]])
    return _result("forgetting", rows, table, shown, "Correct answers after deletion", confidence,
                   unit="prompts", p_title="p (R − I)", note="p is of R − I.",
                   remedy=remedy, lack=f"have no score in {' or '.join(empty)}")  # fmt: skip


@_measure("surface_consistency.metrics.alignment(short, long)")
def alignment(
    df: object,
    *,
    short: str = "short",
    long: str = "long",
    topic: str = "topic",
    permutation: str | None = None,
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    model: str = "model",
    confidence: float = 0.95,
    missing: Missing = "drop",
) -> Result:
    """Return the agreement of the correctness of short and long answers, averaged over topics.

    Args:
        df: One row per sub-question and order of the long query, as for `accuracy`; an outcomes
            frame with a column `topic` or `topic_id` can be passed with the defaults.
        short: Column of scores (0 or 1) of the short answers.
        long: Column of scores of the same sub-questions in the long answers.
        topic: Column of topics.
        permutation: Column of the order of the long query. Orders of a topic have equal weight;
            None gives rows equal weight, which makes a difference only if scores are missing.
        cluster: Column of dependent topics; None for the topic.
        by: Columns of groups. The result has one row per group.
        model: Column of models. The result has one row per model.
        confidence: Confidence level, in (0, 1).
        missing: Handling of missing scores: "drop" excludes the row, "raise" raises an error,
            "wrong" counts the answer as incorrect.

    Returns:
        The result; `to_frame()` has alignment (Align), short_accuracy (F_S), long_accuracy (F_L),
        signed_alignment and accuracy_difference (F_L - F_S), each with bounds; p_value, or for
        several rows p_value_holm, of that difference; n (rows) and n_clusters.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If a topic is missing or its ids are of mixed type.
        TypeError: If `df` cannot be read as a frame.
        ValueError: If a score is graded or (under "raise") missing, the frame is empty, or an
            option is out of range.

    Notes:
        signed Align = F_S + F_L - 1, in [-1, 1]; it is 1 if all short and all long answers are
        correct.

    References:
        SLAQ, arXiv 2510.11218, eqs. 2 to 4 and figure 2.

    Examples:
        >>> import pandas as pd
        >>> pairs = pd.DataFrame({"topic": [i // 5 for i in range(100)],
        ...                       "short": [1, 1, 0, 0, 1] * 20,
        ...                       "long": [1, 0, 0, 0, 1] * 20})
        >>> alignment(pairs).to_frame()[["alignment", "signed_alignment"]].round(2).values.tolist()
        [[0.8, 0.0]]
    """
    frame = to_frame(df, (short, long), OUTCOMES, by=by)
    is_outcomes = {*OUTCOMES} <= {*frame} and not {"short", "long"} & {*frame}
    if is_outcomes and (short, long) == ("short", "long"):
        short, long = OUTCOMES
    if topic == "topic" and "topic" not in frame and "topic_id" in frame:
        topic = "topic_id"
    short, long, topic = (
        find(frame, *one) for one in (("short", short), ("long", long), ("topic", topic))
    )
    order = None if permutation is None else find(frame, "permutation", permutation)
    pair = find_optional(frame, "pair", "pair", "pair")
    rows = prepare(
        frame, [short, long], [pair], by, cluster or topic, topic, model, None, missing,
        binary_reason="alignment is the proportion of equal correctness labels",
    )  # fmt: skip
    table = alignment_by(
        rows.frame, by=rows.keys, short=short, long=long, topic=topic, permutation=order,
        cluster=rows.cluster, intervals=Intervals(confidence=confidence),
    )  # fmt: skip
    shown = [
        _Estimate("alignment", "Align", "alignment{} of short and long answers"),
        _Estimate("short_accuracy", "F_S"),
        _Estimate("long_accuracy", "F_L"),
        _Estimate("signed_alignment", "Signed Align", "signed alignment{}", "number"),
        _Estimate(
            "accuracy_difference",
            "F_L − F_S",
            "accuracy{}",
            "difference",
            ("short answers", "long answers"),
        ),
    ]
    rows = rows._replace(clusters="topics" if rows.cluster == topic else "clusters")
    return _result("alignment", rows, table, shown, "Alignment of short and long answers",
                   confidence, names={"accuracy_difference_p_value": "p_value"},
                   p_title="p (F_L − F_S)", note="p is of F_L − F_S.")  # fmt: skip


@_measure("surface_consistency.metrics.partial_correlation(x, y, controls)")
def partial_correlation(
    df: object,
    *,
    x: str,
    y: str,
    controls: str | Sequence[str] = (),
    method: Literal["pearson", "spearman"] = "pearson",
    cluster: str | None = None,
    by: str | Sequence[str] = (),
    model: str = "model",
    confidence: float = 0.95,
    missing: Literal["drop", "raise"] = "drop",
) -> Result:
    """Return the correlation of two columns, or their partial correlation given control columns.

    Args:
        df: One row per unit, such as a surface instance with its accuracy averaged over question
            templates, as for `accuracy`.
        x: Column of numbers, such as log surface frequency.
        y: Column of numbers, such as accuracy.
        controls: Columns of control variables; if empty, the plain correlation is computed.
        method: "pearson", or "spearman" to rank every column first.
        cluster: Column of dependent rows, such as the fact; None for independent rows, as in the
            tables of the paper, which the note of the result states.
        by: Columns of groups. The result has one row per group.
        model: Column of models. The result has one row per model.
        confidence: Confidence level, in (0, 1).
        missing: "drop" excludes rows with a missing number; "raise" raises an error.

    Returns:
        The result; `to_frame()` has coefficient (r, in [-1, 1]) with bounds, p_value or, for
        several rows, p_value_holm, n (rows) and n_clusters.

    Raises:
        ColumnNotFoundError: If a column is not in the frame.
        DataError: If a cluster id is missing or the ids are of mixed type.
        TypeError: If `df` cannot be read as a frame, or a cell is not a number.
        ValueError: If the frame is empty, a number is missing under "raise", or an option is out of
            range.

    References:
        RedirectQA, arXiv 2604.21882, section 4.3 and table 2.

    Examples:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"x": [5, 3, 8, 6, 2, 1, 7, 4], "y": [1, 1, 1, 1, 0, 0, 1, 0]})
        >>> partial_correlation(rows, x="x", y="y").to_frame()[["coefficient", "n"]].round(2)
           coefficient  n
        0         0.73  8
    """
    frame = to_frame(df, (x, y), by=by)
    x, y = find(frame, "x", x), find(frame, "y", y)
    constant = [find(frame, "controls", name) for name in column_names(controls)]
    check_choice(missing, ("drop", "raise"), "missing")
    rows = prepare(frame, [], [], by, cluster, None, model, None, missing)
    table = correlation_by(
        rows.frame, x=x, y=y, controls=constant, by=rows.keys, cluster=rows.cluster, method=method,
        intervals=Intervals(confidence=confidence), missing=missing,
    )  # fmt: skip
    name = "partial correlation" if constant else "correlation"
    what = f"of {x} and {y}" + (f" given {say.listing(constant)}" if constant else "")
    shown = [_Estimate("coefficient", "r", f"{name}{{}} {what}", "decimal")]
    return _result("partial_correlation", rows, table, shown, f"{name.capitalize()} {what}",
                   confidence, unit="rows", null=0.0,
                   lack=f"lack a value of {' or '.join([x, y, *constant])}")  # fmt: skip


def outcome_rows(
    frame: pd.DataFrame,
    by: Sequence[str] = (),
    repeat: str | None = None,
    model: str | None = "model",
) -> tuple[pd.DataFrame, str]:
    """Return an outcomes frame with one row per item and form, or per pair and condition.

    Args:
        frame: Any frame.
        by: Columns of groups.
        repeat: Column of repeats.
        model: Column of models.

    Returns:
        The rows, and their unit. It is "items" if each item has one first form that is paired with
        named other forms, and all its pairs are in one group: `pair` is then the item. Otherwise it
        is "pairs", and the condition is the form. Other frames are returned unchanged, with
        "items".
    """
    frame = with_item(outcomes := frame)
    names = {*frame}
    if not {*OUTCOMES} <= names or {"form", "correct"} & names or not {"pair", "item"} & names:
        return outcomes, "items"
    if "pair" not in names:
        keys = [name for name in (model, "item", repeat, *by) if name in names]
        if frame[keys].astype(str).duplicated().any():
            return outcomes, "items"
        frame = frame.assign(pair=frame["item"])
    known = dict.fromkeys((model, "item", "sample", repeat or "sample"))
    unit = [name for name in known if name and name in frame]
    if not _is_star(frame, unit, by):
        sides = zip(OUTCOMES, _conditions(frame, *OUTCOMES), strict=True)
        parts = [frame.assign(form=name, correct=frame[column]) for column, name in sides]
        return pd.concat(parts, ignore_index=True).drop(columns=[*OUTCOMES]), "pairs"
    pairs = frame.assign(pair=frame["item"])
    if repeat != "sample" and frame.get("sample", pd.Series(1)).nunique() > 1:
        pairs["pair"] = pairs["item"].astype(str) + " | sample " + pairs["sample"].astype(str)
    parts = [pairs.drop_duplicates(unit), pairs]
    for place, side in enumerate(("first", "second")):
        part = parts[place].dropna(subset=[f"{side}_surface"] if f"{side}_surface" in pairs else [])
        parts[place] = part.assign(form=part[f"{side}_condition"], correct=part[f"{side}_correct"])
    return pd.concat(parts, ignore_index=True).drop(columns=[*OUTCOMES]), "items"


def _is_star(pairs: pd.DataFrame, unit: list[str], by: Sequence[str]) -> bool:
    """Return whether items have several pairs, of one first form with different other forms."""
    groups = [name for name in by if name in pairs and name not in unit]
    if not {"item", "first_condition", "second_condition"} <= {*pairs} or any(
        has_list_cells(pairs[name]) for name in groups
    ):
        return False
    if pairs[["item", "first_condition", "second_condition"]].isna().any(axis=None):
        return False
    equal = ["first_condition", "first_correct", *groups]
    is_one = pairs.groupby(unit)[equal].nunique(dropna=False) <= 1
    is_repeated = pairs.duplicated([*unit, "second_condition"]).any()
    return bool(pairs.duplicated(unit).any() and is_one.all(axis=None) and not is_repeated)


def with_item(frame: pd.DataFrame) -> pd.DataFrame:
    """Add a column `item` with the items, if their column has another standard name."""
    name = find_optional(frame, "item", "item", "item")
    return frame if name in (None, "item") else frame.assign(item=frame[name])


def pairs_note(
    frame: pd.DataFrame, unit: str, by: Sequence[str], model: str | None = "model"
) -> str:
    """Return the note on outcomes counted by pairs if an item has several in a group."""
    known = {model, "item", "sample", *by} & {*frame}
    names = [name for name in known if not has_list_cells(frame[name])]
    is_repeated = unit == "pairs" and "item" in names and frame.duplicated(names).any()
    return PAIRS if is_repeated else ""


def clusters_of(rows: pd.DataFrame) -> str:
    """Return the clustering column of rows of outcomes: that of their study, the item or pair."""
    return _cluster_of(rows) or "pair"


def _cluster_of(frame: pd.DataFrame) -> str | None:
    """Return the clustering column of an outcomes frame: that of its study, or the item."""
    names = ("cluster", "item") if "study" in frame else ("item",)
    return next((name for name in names if name in frame and frame[name].notna().all()), None)


def with_facet(frame: pd.DataFrame, by: str | Sequence[str]) -> list[str]:
    """Add the facet of the study of outcomes to the groups; its values are never pooled."""
    names = column_names(by)
    if not {"study", "pair"} <= {*frame} or frame["study"].nunique() != 1:
        return names
    from surface_consistency.engine.study import find_study

    try:
        facet = find_study(str(frame["study"].iloc[0])).design.facet
    except PluginError:
        return names
    has_several = facet is not None and facet in frame and frame[facet].nunique() > 1
    return [facet, *names] if facet and has_several and facet not in names else names


def _conditions(frame: pd.DataFrame, first: str, second: str) -> tuple[str, str]:
    """Return the names of the two conditions, from the outcomes frame or else their columns."""
    called = []
    for column, side in ((first, "first"), (second, "second")):
        named = {*frame.get(f"{side}_condition", ())}
        is_named = column == f"{side}_correct" and len(named) == 1
        called.append(str(named.pop()) if is_named else column.removesuffix("_correct"))
    return called[0], called[1]


def _graded_pairs(
    rows: Rows, first: str, second: str, repeat: str | None, intervals: Intervals
) -> pd.DataFrame:
    """Compute the difference of two graded scores and both means."""
    frame = rows.frame if repeat is None else averaged(rows.frame, rows.unit, [first, second])
    scores = frame[[first, second]].apply(pd.to_numeric).astype(float)
    scores = scores.where(scores.notna().all(axis=1))
    scale = (-1.0, 1.0) if rows.is_share else (-math.inf, math.inf)
    values = {
        "accuracy_difference": (scores[second] - scores[first], scale),
        "first_accuracy": (scores[first], None),
        "second_accuracy": (scores[second], None),
    }
    table = pd.DataFrame()
    for name, (column, ends) in values.items():
        part = mean_by(
            frame.assign(**{name: column}), by=rows.keys, score=name, cluster=rows.cluster,
            scale=ends, intervals=intervals,
        ).rename(columns={f"mean{end}": f"{name}{end}" for end in _ENDS})  # fmt: skip
        table = pd.concat([table, part[part.columns.difference(table.columns, sort=False)]], axis=1)
    return table.assign(test="t")


def _noise(
    rows: Rows, scores: str | tuple[str, str], repeat: str | None, intervals: Intervals
) -> pd.DataFrame | None:
    """Compute test-retest flip rate and pass^k of each group; None without scored repeats."""
    if repeat is None:
        return None
    sides = [
        rows.frame.assign(_side=name, _score=rows.frame[name]) for name in column_names(scores)
    ]
    answers = pd.concat(sides, ignore_index=True)
    if answers["_score"].isna().all():
        return None
    prompt = [name for name in (*rows.unit, "_side") if name not in rows.keys]
    table = repeats_by(
        answers, by=rows.keys, prompt=prompt, repeat=repeat, score="_score", cluster=rows.cluster,
        intervals=intervals,
    )  # fmt: skip
    table = table.drop(columns=[*rows.keys, "n_clusters"])
    return table.rename(columns={"not_inferred": "repeats_not_inferred"})


def _complement(table: pd.DataFrame, name: str, of: str, total: float) -> pd.DataFrame:
    """Add a total minus an estimate, with its bounds."""
    ends = zip(_ENDS, ("", "_high", "_low"), strict=True)
    return table.assign(**{f"{name}{end}": total - table[f"{of}{other}"] for end, other in ends})


def _kind(rows: Rows) -> Literal["rate", "number"]:
    """Choose how means are formatted: in percent if all scores are from 0 to 1."""
    return "rate" if rows.is_share else "number"


def _of(row: Mapping[Any, Any], keys: Sequence[str]) -> str:
    """Return the label of a row in a sentence, such as " of gpt2 (type: alias)"."""
    model = f" of {row['model']}" if "model" in keys else ""
    groups = [f"{key}: {row[key]}" for key in keys if key != "model"]
    return f"{model} ({', '.join(groups)})" if groups else model


def _noise_sentences(
    row: Mapping[Any, Any], of: str, between: str, words: Mapping[str, Any]
) -> Iterator[say.Sentence]:
    """Report the flip rate with the test-retest flip rate, and pass^k."""
    name, counts = "test_retest_flip_rate", {"n": row["n_prompts"]}
    if say.direction(row, name) is None:
        reason = counts | {"not_inferred": row["repeats_not_inferred"]}
        yield say.not_inferred(reason, f"the test-retest flip rate{of}", unit="prompts")
        return
    repeats = say.estimate(row, name, f"test-retest flip rate{of}", confidence=words["confidence"])
    if between and say.direction(row, "flip_rate") is not None:
        flips = say.estimate(row, "flip_rate", f"flip rate{of}", confidence=words["confidence"])
        explain = ", of which repeats of identical prompts explain "
        lead = f"The flip rate{of} between {between} is "
        yield [flips[0], lead, *flips[1:], explain, *repeats, "."]
    else:
        yield say.repeats([row], name, of, confidence=words["confidence"])
    k = row["k"]
    what = f"proportion of prompts{of} correct in {k} of {k} repeats (pass^{k})"
    yield say.rate({**row, **counts}, "pass_k", what, **{**words, "unit": "prompts"})


def _result(
    kind: str,
    rows: Rows,
    table: pd.DataFrame,
    shown: Sequence[_Estimate],
    caption: str,
    confidence: float,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    unit: str = "pairs",
    null: float | None = None,
    p_title: str = "p",
    note: str = "",
    remedy: str = "",
    noise: pd.DataFrame | None = None,
    between: str = "",
    lack: str = "have no score",
) -> Result:
    """Make the result of a table, with corrected p-values, sentences and noise of repeats."""
    clashes = sorted({*rows.keys} & {*names.values()})
    if clashes:
        raise ValueError(f"by column {clashes[0]!r} is a column of the result; rename it")
    table, p, shown = table.rename(columns=dict(names)), None, list(shown)
    if noise is not None:
        table = pd.concat([table, noise], axis=1)
        shown[2:2] = [
            _Estimate("test_retest_flip_rate", "Test-retest flips"),
            _Estimate("pass_k", f"pass^{noise['k'].iloc[0]}"),
        ]
    if "p_value" in table:
        p = "p_value"
        if len(table) > 1:
            table, p = with_adjusted_p_values(table, within=rows.family), "p_value_holm"
            p_title = p_title.replace("p", "p, Holm", 1)
    words: dict[str, Any] = {"unit": unit, "clusters": rows.clusters, "confidence": confidence}
    sentences: list[say.Sentence] = []
    groups = [rows.frame.iloc[where] for where in group_positions(rows.frame, rows.keys).values()]
    for one in shown:
        if one.ends is not None:
            sentences += _differences(table, rows.keys, one, one.ends, p, words)
    answers = rows.frame if "model" in rows.frame else rows.frame.assign(model="all models")
    missing = [] if kind == "paired" else [*missing_answers(answers)]
    n_differences = len(sentences)
    reported = zip(table.head(_MOST).to_dict("records"), groups, strict=False)
    for number, (row, group) in enumerate(reported):
        of, start = _of(row, rows.keys), len(sentences)
        for one in shown:
            is_reported = one is shown[0] or not math.isnan(row[one.name])
            if one.quantity and one.ends is None and is_reported:
                what = one.quantity.replace("{}", of, 1)
                part = {**row, "n": sum(row[cell] for cell in one.cells), "n_clusters": None}
                of_row = part if one.cells else row
                tested = None if null is None else p
                sentences.append(
                    say.rate(of_row, one.name, what, kind=one.kind, null=null, p=tested, **words)
                )
        own = [one for one in missing if one[0] == str(row.get("model", one[0]))]
        missing = [one for one in missing if one not in own]
        # Warnings on the first model follow the finding.
        place = start + 1 if number else 1
        sentences[place:place] = (say.stated(text) for _, text in own)
        if noise is not None:
            sentences += _noise_sentences(row, of, between, words)
        sentences += _excluded(row, unit, of, len(group), lack)
    if len(table) > _MOST:
        text = f"Sentences report estimates of the first {_MOST} of {len(table):,} rows; "
        more = say.count(len(table), None, "rows of the table")
        sentences.insert(max(1, n_differences), [more, f"{text}to_frame() has all."])
    name = str(answers["model"].iat[0]) if answers["model"].nunique() == 1 else "all models"
    doubts = [*_constant(table, rows, unit, name, shown), *(text for _, text in missing)]
    sentences[1:1] = map(say.stated, doubts)
    notes = [*_cluster_notes(table, rows, kind, shown[0].name, groups)]
    lower = [f"Lower scores of {first_names(rows.lower)} are better."] if rows.lower else []
    clusters = "Rows are assumed to be independent."
    if rows.cluster is not None:
        of_study = rows.cluster == "cluster" and "study" in rows.frame
        by = f"{rows.cluster}{', as defined by the study' * of_study}"
        clusters = f"Standard errors are clustered by {by}."
    printed = [rows.note] if "Clusters: " in rows.note else [clusters, rows.note]
    facts = [*rows.several, *texts(notes)]
    return Result(
        kind=kind,
        frame=table,
        keys=rows.keys,
        estimates=[
            interval_column(one.name, one.title, one.kind, _UNITS[one.kind]) for one in shown
        ],
        caption=caption,
        sentences=texts(sentences),
        claims=[record for parts in (*sentences, *notes) for record in claim_records(parts)],
        p=p,
        p_title=p_title,
        confidence=confidence,
        note=" ".join(filter(None, (note, remedy, *lower, *printed, *facts))),
        table_note=" ".join(filter(None, (note, *lower, clusters, *facts))),
        unit=unit,
    )


def _constant(
    table: pd.DataFrame, rows: Rows, unit: str, model: str, shown: Sequence[_Estimate]
) -> Iterator[str]:
    """Report models, or conditions of models, of which all scores are 0 or all are 1."""
    if rows.lower or not rows.is_share:
        return
    models, of_model = [], table["model"] if "model" in rows.keys else pd.Series(model, table.index)
    for one in shown:
        if one.name not in ("accuracy", "first_accuracy", "second_accuracy"):
            continue
        condition = one.title.partition(", ")[2]
        known = table[table[one.name].notna()]
        for name, part in known.groupby(of_model, sort=False, observed=True):
            called = f"{name} ({condition})" if condition else str(name)
            models.append((called, np.average(part[one.name], weights=part["n"]), part["n"].sum()))
    if models:
        yield from constant_scores(models, unit)


def _differences(
    table: pd.DataFrame,
    keys: Sequence[str],
    one: _Estimate,
    ends: tuple[str, str],
    p: str | None,
    words: Mapping[str, Any],
) -> list[say.Sentence]:
    """Report the differences of the rows as one family."""
    correction = "Holm" if p == "p_value_holm" else ""

    def sentence(row: Mapping[Any, Any]) -> say.Sentence:
        """Report the difference of a row."""
        what = one.quantity.replace("{}", _of(row, keys), 1)
        return say.difference(row, one.name, what, *ends, p=p, correction=correction,
                              kind=one.kind, **words)  # fmt: skip

    family = f"{one.quantity.replace('{}', '', 1)} between {ends[0]} and {ends[1]}"
    return say.many(table.to_dict("records"), one.name, family, sentence, p=p, kind=one.kind,
                    confidence=words["confidence"])  # fmt: skip


def _excluded(
    row: Mapping[Any, Any], unit: str, of: str, n_rows: int, lack: str
) -> Iterator[say.Sentence]:
    """Report the excluded rows of a row of the table, and items with a single scored form."""
    if "n_single" not in row:
        yield say.missing(row["n_missing"], row["n"] + row["n_missing"], unit, of, lack)
        return
    yield say.missing(row["n_missing"], n_rows, "answers", of)
    n_single, reason = row["n_single"], "have fewer than two scored forms"
    yield say.missing(n_single, row["n"] + n_single, unit, of, reason)


def _cluster_notes(
    table: pd.DataFrame, rows: Rows, kind: str, name: str, groups: Sequence[pd.DataFrame]
) -> Iterator[say.Sentence]:
    """Report few or unequal clusters, for the row with the lowest effective number."""
    if rows.cluster is None or not rows.scores or kind == "alignment":
        return
    places = [
        place
        for place, row in enumerate(table.to_dict("records"))
        if say.direction(row, name) is not None
    ]
    if not places:
        return
    columns = [*dict.fromkeys([*rows.scores, *rows.unit, rows.cluster])]
    part = pd.concat([groups[place][columns] for place in places], keys=places, names=[_PLACE])
    part = part.dropna(subset=rows.scores).reset_index(level=0)
    if not {*rows.unit} <= {*rows.keys}:
        part = part.drop_duplicates([_PLACE, *rows.unit])
    if kind == "consistency":
        items = [_PLACE, *rows.unit[:-1]]
        part = part[part.duplicated(items, keep=False)].drop_duplicates(items)
    sizes = part.groupby([_PLACE, rows.cluster], sort=False, observed=True).size()
    worths = [
        float(effective_number(np.array(sizes.get(place, []), dtype=np.float64)))
        for place in places
    ]
    place = places[int(np.argmin(worths))]
    row = table.iloc[place].to_dict()
    yield from say.cluster_notes(int(row["n_clusters"]), min(worths), of=_of(row, rows.keys))
