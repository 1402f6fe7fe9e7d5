"""Metrics of many forms of a fact, for every group of a tidy frame."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.forms._facts import check_unique_forms, fact_codes
from surface_consistency.metrics.forms.forms import RepeatSums, fact_sums, form_rates
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    t_quantile,
)

FormChoice: TypeAlias = Literal["fixed", "sample"]
"""Whether intervals generalise to the given forms only, or to forms like these."""

_LEAST_FORMS = 4
_TOO_FEW = f"at least {_LEAST_FORMS} forms are needed for an interval of forms like these"
_ENDS: dict[str, tuple[float, float]] = {
    "within_item_share": (0.0, 2.0),
    "intraclass_correlation": (-1, 1),
}
"""Smallest and largest value of the metrics that are not between 0 and 1."""
_COUNTS = (
    *("n_items", "n_forms", "n_single", "n_missing"),
    *("n_clusters", "few_clusters", "not_inferred", "n_undefined"),
)


def forms_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    item: str | Sequence[str] = "item",
    form: str = "form",
    score: str = "correct",
    cluster: str | None = None,
    forms: FormChoice = "fixed",
    of: int | None = None,
    repeat: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return consistency, accuracy and related metrics of the forms of a fact, for each group.

    Let k of the m forms of a fact be correct. The consistency is the mean over facts of the
    probability that two distinct forms agree, (k (k - 1) + (m - k)(m - k - 1)) / (m (m - 1)).
    all_correct and all_incorrect are the proportions of facts that are correct, or incorrect, in
    all forms, and all_agree is their sum; accuracy is the mean over facts of the proportion of
    correct forms.
    within_item_share is E[Var(correct | fact)] / Var(correct) = (1 - consistency) / (2 p (1 - p)),
    in [0, 2], where p is the accuracy. intraclass_correlation, in [-1, 1], is ICC(1,1) of a one-way
    analysis of variance, in which facts with more forms have more weight.

    Args:
        frame: One row per fact and form, with the columns named below.
        by: Columns of the groups, such as the model; list cells as in `paired_by`.
        item: Column of the fact, or columns that identify it together.
        form: Column of the form: a surface, a permutation, a prompt style.
        score: Column of correctness labels: True or False, 1 or 0, None or NaN.
        cluster: Column of the clusters, such as the subject; None makes each fact a cluster.
        forms: Population to which intervals generalise. "fixed": other facts in the given forms.
            "sample": other facts in other forms of the same kind, if all facts have the same forms,
            such as languages or prompts. If forms are templates of a relation, which differ between
            relations, use the relation as `cluster` instead, which covers both.
        of: A number of forms, at least 1; adds all_correct_of, the probability that this number of
            forms, drawn at random from those of a fact, are all correct. It is comparable between
            sets of unequal size.
        repeat: Column of the number of a repeated answer to the same form, such as the run. The
            label of a form is then the mean of its repeats, and every metric is its expected value
            for one repeat per form, drawn independently. Not possible with `forms="sample"` or
            `of`.
        intervals: Options of the intervals; each group derives its own seed.
        missing: "drop" excludes forms without a label, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; n_items, n_forms (distinct
        scored forms of these facts), n_single (excluded facts with fewer than two scored forms),
        n_missing, n_clusters, few_clusters (fewer than 20), not_inferred (why intervals are NaN;
        else empty), n_undefined (maximum over metrics of the number of resamples in which it is
        undefined); and `<metric>`, `<metric>_low`, `<metric>_high` for accuracy, all_correct,
        all_incorrect, all_agree, consistency, within_item_share, intraclass_correlation, and with
        `of` all_correct_of, which excludes facts with fewer forms.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a form occurs twice for a fact within a group, a fact
            belongs to two clusters, an id is missing, a label is not binary or (under "raise")
            missing, or an option is out of range.

    Notes:
        P_C of Srikanth et al. also counts each form as agreeing with itself, so it is higher for
        few forms. With m forms of every fact it is 1 - (1 - consistency) (m - 1) / m. With two
        forms per fact, consistency is that of the paired table. all_correct and all_agree decrease
        as forms are added, so compare them only between sets with equal numbers of forms. The order
        of the rows does not matter. within_item_share and intraclass_correlation are undefined if
        all labels are equal, and intraclass_correlation also for a single fact. Undefined metrics
        and the bounds of a group with a single cluster are NaN; one `UndefinedMetricWarning` lists
        them all. A group in which no fact has two scored forms keeps its row. The numbers of a
        group depend only on its rows, the seed and its labels. With "sample", the half-width of an
        interval is the root of the sum of three squared half-widths: that of the interval with
        "fixed"; that of a t interval over forms (jackknife, on the logit scale, degrees of freedom
        one less than the number of forms); and that from chi-square limits of the variance between
        forms. The last is needed because metrics of agreement are functions of this variance, and
        an estimate of 0 is not evidence of 0. With fewer than four forms there is no interval. The
        interval of within_item_share ends at 1 unless the estimate is larger, because forms from
        one population do not agree less than by chance.

    References:
        Srikanth, Carpuat and Rudinger, TACL 2024, arXiv 2404.11717 (P_C, PVAP); P. E. Shrout and
        J. L. Fleiss, Psychological Bulletin 86, 1979, ICC(1,1); R. L. Brennan, Generalizability
        Theory, Springer 2001 (items and forms both random); G. Y. Zou and A. Donner, Statistics in
        Medicine 27, 2008 (squared half-widths are added).

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 1, 2, 2, 2], "form": ["a", "b", "c"] * 2,
        ...      "correct": [1, 1, 0, 0, 0, 0]})
        >>> forms_by(frame)[["n_items", "n_forms", "consistency"]].round(3).values.tolist()
        [[2.0, 3.0, 0.667]]
    """
    _inputs.check_choice(forms, ("fixed", "sample"), "forms")
    if of is not None and _inputs.check_count(of, "of") < 1:
        raise ValueError(f"of must be at least 1, the number of forms that are drawn; got {of}")
    if repeat is not None and (of is not None or forms == "sample"):
        raise ValueError("repeat excludes of and forms='sample'; average the repeats, or omit it")
    rates = form_rates(of)
    columns = [*_COUNTS, *_groups.bound_columns(rates)]
    keys, facts = _groups.grouping_columns(by, columns), _groups.column_names(item)
    needed = [*keys, *facts, form, score, *filter(None, (cluster, repeat))]
    _groups.check_frame(frame, needed, options="by, item, form, score or cluster", row="form")
    codes = _inputs.verdict_codes(frame[score].array, score)
    _inputs.check_complete(codes == _inputs.MISSING, score, missing, rows="forms", is_verdict=True)
    numbers, clusters = fact_codes(frame, facts, cluster)
    form_codes, _ = pd.factorize(frame[form], use_na_sentinel=False)
    _inputs.warn_unscored(
        int(np.count_nonzero(codes == _inputs.MISSING)), codes.size, what="forms", stacklevel=2
    )
    groups = _groups.group_positions(frame, keys)
    prompts, names = numbers, [*facts, form]
    if repeat is not None:
        prompts = numbers * (int(form_codes.max()) + 1) + form_codes
        names.append(repeat)
    for key, where in groups.items():
        check_unique_forms(frame, where, prompts, names, _groups.group_name(keys, key))
    table = _groups.group_frame(
        groups,
        keys,
        rates,
        lambda where: _group(
            codes[where],
            numbers[where],
            clusters[where],
            form_codes[where],
            of,
            None if repeat is None else prompts[where],
        ),
        columns=columns,
        intervals=intervals,
    )
    share, high = table["within_item_share"], table["within_item_share_high"]
    table["within_item_share_high"] = high.clip(upper=1.0).where(share <= 1.0, high)
    if forms == "sample":
        for row, where in enumerate(groups.values()):
            left_out = _excluded_items(codes[where], numbers[where], form_codes[where], of)
            _widen(table, row, rates, left_out, intervals.confidence)
    return table


def _excluded_items(
    codes: _inputs.Codes, facts: _inputs.Integers, forms: npt.NDArray[np.intp], of: int | None
) -> tuple[_inputs.Floats, _inputs.Floats]:
    """Return summed columns of a group without each form, and without each single label."""
    scored = codes != _inputs.MISSING
    numbers = np.unique(facts[scored], return_inverse=True)[1]
    forms, right = np.unique(forms[scored], return_inverse=True)[1], codes[scored] == 1
    n_forms, n_right = np.bincount(numbers), np.bincount(numbers, weights=right).astype(np.int64)
    rows = _summands(n_forms, n_right, of)
    change = _summands(n_forms[numbers] - 1, n_right[numbers] - right, of) - rows[numbers]
    by_form = [np.bincount(forms, weights=column) for column in change.T]
    return rows.sum(axis=0) + np.stack(by_form, axis=1), rows.sum(axis=0) + change


def _summands(
    n_forms: _inputs.Integers, n_right: _inputs.Integers, of: int | None
) -> _inputs.Floats:
    """Return the summands of facts, zeros for facts with fewer than two forms."""
    usable = n_forms > 1
    rows = fact_sums(np.where(usable, n_forms, 2), np.where(usable, n_right, 0), of)
    return rows * usable[:, None]


def _widen(
    table: pd.DataFrame,
    row: int,
    rates: Mapping[str, Callable[[_inputs.Floats], _inputs.Floats]],
    left_out: tuple[_inputs.Floats, _inputs.Floats],
    confidence: float,
) -> None:
    """Add the spread between forms to the intervals of a row of the table."""
    n_forms = len(left_out[0])
    if n_forms < _LEAST_FORMS:
        bounds = [f"{name}_{end}" for name in rates for end in ("low", "high")]
        table.loc[row, bounds] = math.nan
        if not table.at[row, "not_inferred"]:
            table.loc[row, "not_inferred"] = _TOO_FEW
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        by_form, by_verdict = (
            {name: np.asarray(rate(sums), dtype=np.float64) for name, rate in rates.items()}
            for sums in left_out
        )
    numbers = np.asarray(table.loc[row, [*rates, "n_items"]], dtype=np.float64).tolist()
    values = dict(zip(rates, numbers[:-1], strict=True))
    accuracy, quantile = values["accuracy"], float(t_quantile(n_forms - 1, confidence))
    forms = _Forms(
        n_forms,
        int(numbers[-1]),
        accuracy,
        1.0 - values["consistency"],
        n_forms * _jackknife_variance(by_form["accuracy"]),
    )
    changes = forms.changes(confidence)
    half = quantile * math.sqrt(forms.between / n_forms)
    spread = _logit_arms(accuracy, half, 0.0, 1.0)
    of_bounds = sorted(map(_variance, (accuracy - spread[0], accuracy + spread[1])))
    total = _variance(accuracy)
    by_accuracy = [one / total - 1.0 if total > 0.0 else 0.0 for one in of_bounds]
    unknown = []
    # Value of each metric if the forms of a fact never disagree.
    without = {
        "accuracy": accuracy,
        "all_correct": accuracy,
        "all_correct_of": accuracy,
        "all_incorrect": 1.0 - accuracy,
        "within_item_share": 0.0,
    }
    for name, value in values.items():
        least, most = _ENDS.get(name, (0.0, 1.0))
        variance = _jackknife_variance(by_form[name]) - _jackknife_variance(by_verdict[name])
        arms = _logit_arms(value, quantile * math.sqrt(max(variance, 0.0)), least, most)
        disagreement = without.get(name, 1.0) - value
        if name == "accuracy":
            arms = spread
        elif name in ("consistency", "all_agree"):
            # These metrics also decrease as the accuracy of similar forms approaches one half.
            of_accuracy = [disagreement * change for change in by_accuracy]
            arms = max(arms[0], of_accuracy[1]), max(arms[1], -of_accuracy[0])
        moved = sorted(-disagreement * change for change in changes)
        ends = [f"{name}_low", f"{name}_high"]
        low, high = map(float, np.asarray(table.loc[row, ends], np.float64))
        below = math.hypot(value - low, arms[0], min(moved[0], 0.0))
        above = math.hypot(high - value, arms[1], max(moved[1], 0.0))
        most = max(min(most, 1.0), value)
        table.loc[row, ends] = np.clip([value - below, value + above], least, most)
        if math.isnan(below + above) and not math.isnan(value + low + high):
            unknown.append(name)
    if unknown and not table.at[row, "not_inferred"]:
        table.loc[row, "not_inferred"] = f"{', '.join(unknown)}: undefined without one of the forms"


def _variance(share: float) -> float:
    """Return the variance of a single label."""
    return share * (1.0 - share)


def _logit_arms(value: float, half: float, least: float, most: float) -> tuple[float, float]:
    """Return the half-widths of an interval that is symmetric on the logit scale of a range."""
    share = (value - least) / (most - least)
    if not 0.0 < share < 1.0:
        return half, half
    step = half / ((most - least) * _variance(share))
    # The exponential of numbers above 709 is not a finite float.
    odds = (math.exp(min(x, 700.0)) for x in (step, -step))
    low, high = (share / (share + (1.0 - share) * one) for one in odds)
    return (share - low) * (most - least), (high - share) * (most - least)


class _Forms(NamedTuple):
    """The variance between forms from a two-way analysis of labels, facts by forms."""

    n_forms: int
    n_facts: int
    accuracy: float
    disagreement: float
    """Probability that two forms of a fact disagree."""
    observed: float
    """Variance of the accuracies of forms, including the contribution of single labels."""

    @property
    def noise(self) -> float:
        """Return the contribution of single labels to the variance of the accuracies of forms."""
        return max(self.disagreement / 2.0 - self.observed, 0.0) / max(self.n_facts - 1, 1)

    @property
    def between(self) -> float:
        """Return the variance between forms, 0 if its estimate is below 0."""
        return max(self.observed - self.noise, 0.0)

    def changes(self, confidence: float) -> tuple[float, float]:
        """Return the relative changes of disagreement at the limits of the variance between forms.

        The limits are chi-square limits of a variance. The ratios of the other components of the
        variance of labels are fixed, so that the total does not change.
        """
        from scipy.special import chdtri

        total = _variance(self.accuracy)
        if total <= 0.0 or self.disagreement <= 0.0:
            return 0.0, 0.0
        rest = max(total - self.between, 1e-12)
        within = min(max(self.disagreement / 2.0 - self.between, 0.0) / rest, 1.0)

        def disagreement(between: float) -> float:
            """Return the probability that two forms disagree for a variance between them."""
            part = max(between, 0.0) / (max(between, 0.0) + rest)
            return 2.0 * total * (part + (1.0 - part) * within)

        estimate, df = disagreement(self.between), self.n_forms - 1
        # Also if accuracies vary less than expected from single labels alone, this is not evidence
        # of 0.
        observed = max(self.observed, self.noise)
        low, high = (
            disagreement(observed * df / float(chdtri(df, tail)) - self.noise) / estimate - 1.0
            for tail in ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0)
        )
        return low, high


def widened(
    value: float, low: float, high: float, by_form: _inputs.Floats, confidence: float
) -> _inputs.Floats:
    """Add the spread between forms to the limits of a statistic.

    Args:
        value: The statistic.
        low: Its lower limit, for these forms.
        high: Its upper limit.
        by_form: The statistic without each form, shape `(n_forms,)`.
        confidence: Nominal coverage.

    Returns:
        Both limits. Each half-width is combined with that of a t interval over forms, with degrees
        of freedom one less than forms, as the root of the sum of squares. NaN if omitting a form
        makes the statistic undefined, and for fewer than two forms.
    """
    if by_form.size < 2:
        return np.array([math.nan, math.nan])
    variance = _jackknife_variance(by_form)
    half = float(t_quantile(by_form.size - 1, confidence)) * math.sqrt(variance)
    return np.array([value - math.hypot(value - low, half), value + math.hypot(high - value, half)])


def _jackknife_variance(left_out: _inputs.Floats) -> float:
    """Return the variance of a statistic from its values with each unit omitted."""
    around = left_out - left_out.mean()
    return float((left_out.size - 1) / left_out.size * (around @ around))


def _group(
    codes: _inputs.Codes,
    facts: _inputs.Integers,
    clusters: _inputs.Integers,
    forms: npt.NDArray[np.intp],
    of: int | None,
    prompts: _inputs.Integers | None = None,
) -> tuple[dict[str, object], _inputs.Floats]:
    """Return the counts of one group and the sums of its clusters; `prompts` if with repeats."""
    scored = codes != _inputs.MISSING
    distinct, first, numbers = np.unique(facts, return_index=True, return_inverse=True)
    n_forms = np.bincount(numbers[scored], minlength=distinct.size)
    n_right: _inputs.Floats = np.zeros(distinct.size)
    n_right += np.bincount(numbers[scored], codes[scored] == 1, minlength=distinct.size)
    repeats = None
    if prompts is not None:
        n_forms, n_right, repeats = _repeated(
            codes[scored], numbers[scored], prompts[scored], distinct.size
        )
    usable = n_forms > 1
    if repeats is not None:
        repeats = RepeatSums(*(part[usable] for part in repeats))
    rows = fact_sums(n_forms[usable], n_right[usable], of, repeats)
    sums = cluster_sums(rows, clusters[first][usable])
    counts: dict[str, object] = {
        "n_items": int(usable.sum()),
        "n_forms": len(np.unique(forms[scored & usable[numbers]])),
        "n_single": int((~usable).sum()),
        "n_missing": int((~scored).sum()),
        "n_clusters": len(sums),
    }
    if not usable.any():
        counts["not_inferred"] = "no fact has two forms with a correctness label"
    return counts, sums


def _repeated(
    codes: _inputs.Codes, facts: _inputs.Integers, prompts: _inputs.Integers, n_facts: int
) -> tuple[_inputs.Integers, _inputs.Floats, RepeatSums]:
    """Return the number of forms of each fact, the sum of their means, and sums for repeats."""
    _, first, numbers = np.unique(prompts, return_index=True, return_inverse=True)
    means, of_form = np.bincount(numbers, codes == 1) / np.bincount(numbers), facts[first]
    products = [np.ones(n_facts), np.ones(n_facts)]
    for product, factors in zip(products, (means, 1.0 - means), strict=True):
        np.multiply.at(product, of_form, factors)
    n_forms = np.bincount(of_form, minlength=n_facts)
    sums, squares = (np.bincount(of_form, part, minlength=n_facts) for part in (means, means**2))
    repeats = RepeatSums(squares.astype(np.float64), *products)
    return n_forms, sums.astype(np.float64), repeats
