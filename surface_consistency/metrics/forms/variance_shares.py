"""Variance components of correctness labels: item, form, their interaction, and sampling.

A label is modelled as the sum of an effect of its item, one of its form, their interaction, and
variation between samples of the same prompt (generalizability theory with two crossed facets).
Second moments are means over four kinds of pairs of rows: of the same item and form, of the same
item only, of the same form only, and of different items and forms. The estimates are unbiased if
cells are missing at random, and without missing cells they equal those of the analysis of variance.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups
from surface_consistency.metrics._inputs import Floats, Integers, check_choice, numeric_vector
from surface_consistency.metrics.forms.form_groups import FormChoice, widened
from surface_consistency.metrics.uncertainty.cluster_bounds import jackknife
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    effective_number,
    enough_clusters,
    too_few_clusters,
)

SHARES: Final = ("item", "form", "item_by_form", "sampling")
"""Components of the variance of labels."""

_COUNTS: Final = ("n", "n_items", "n_forms", "n_samples", "n_clusters", "n_missing", "not_inferred")


def variance_shares_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    item: str = "item",
    form: str = "form",
    score: str = "correct",
    cluster: str | None = None,
    templates: str | None = None,
    forms: FormChoice = "fixed",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return the proportions of variance of item, form, their interaction and sampling, per group.

    Args:
        frame: One row per item, form and sample, with the columns named below; samples of one
            prompt are rows with the same item and form.
        by: Columns of the groups, such as the model.
        item: Column of the item.
        form: Column of the form.
        score: Column of correctness labels (1 or 0) or of scores on any scale; NaN if missing.
        cluster: Column of the clusters; None makes each item, or value of `templates`, a cluster.
        templates: Column such as the relation, if forms are templates of a relation. The same label
            of a form then means a different form in each of its values. Pass the item column if
            every item has its own wordings.
        forms: "fixed" or "sample", as in `forms_by`.
        intervals: Confidence level of the intervals.

    Returns:
        One row per group: the columns `by`; n (rows), n_items, n_forms, n_samples (maximum per
        cell), n_clusters, n_missing, not_inferred; total, half the expected squared difference of
        two rows of different items and forms; and `<part>_share`, `_low`, `_high` for item, form,
        item_by_form and sampling, which add up to 1. An unbiased estimate can be below 0; treat it
        as 0. Without repeated samples sampling_share is NaN and item_by_form_share includes it. If
        every item has its own forms, form_share is NaN and item_by_form_share includes it.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a score is not a number.
        ValueError: If the frame is empty, a score is infinite, a cluster is missing, or an option
            is out of range.

    Notes:
        Intervals are jackknife t intervals over clusters; with "sample" the spread between forms is
        added as in `forms_by`. The interval of form_share has chi-square limits for the variance
        between forms, which are wide for few forms. Bounds are clipped to [0, 1]. Do not compare
        these proportions between sets of items of unequal difficulty: if nearly all answers are
        correct, there is little variance to divide.

    References:
        R. L. Brennan, Generalizability Theory, Springer 2001, chapters 3 and 7; L. J. Cronbach et
        al., The Dependability of Behavioral Measurements, 1972.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 2, 2, 3, 3, 4, 4] * 2, "form": ["a", "b"] * 8,
        ...      "correct": [1, 1, 0, 0, 1, 1, 0, 0] * 2})
        >>> variance_shares_by(frame)[["item_share", "sampling_share"]].values.tolist()
        [[1.0, 0.0]]
    """
    check_choice(forms, ("fixed", "sample"), "forms")
    names = [f"{name}_share" for name in SHARES]
    columns = [*_COUNTS, "total", *_groups.bound_columns(names)]
    keys = _groups.grouping_columns(by, columns)
    whole = cluster or templates or item
    needed = dict.fromkeys(
        [*_groups.column_names(keys), item, form, score, whole, templates or item]
    )
    _groups.check_frame(
        frame, [*needed], options="by, item, form, score, cluster or templates", row="form"
    )
    values = numeric_vector(frame[score].array, score)
    names_of_codes = dict.fromkeys([item, form, templates or item])
    codes = {name: pd.factorize(frame[name], use_na_sentinel=False)[0] for name in names_of_codes}
    clusters = _groups.cluster_codes(frame, whole)
    rows = []
    for key, where in _groups.group_positions(frame, keys).items():
        scored = where[~np.isnan(values[where])]
        block = codes[templates][scored] if templates else np.zeros(len(scored), dtype=np.int64)
        facets = _facets(codes[item][scored], codes[form][scored], block)
        row = dict(zip(keys, key, strict=True)) | {"n_missing": len(where) - len(scored)}
        rows.append(row | _group(values[scored], facets, clusters[scored], forms, intervals))
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _facets(items: Integers, forms: Integers, block: Integers) -> dict[str, Integers]:
    """Number the combinations of properties that pairs of rows can have in common."""
    wordings = _joint(block, forms)
    return {
        "row": np.arange(items.size),
        "cell": _joint(items, wordings),
        "item": _joint(items),
        "form": wordings,
        "block": _joint(block),
        "all": np.zeros(items.size, dtype=np.int64),
    }


def _joint(*codes: Integers) -> Integers:
    """Number the combinations that occur."""
    joint = np.zeros(codes[0].size, dtype=np.int64)
    for part in codes:
        joint = np.unique(joint * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1]
    return joint


def _group(
    values: Floats,
    facets: Mapping[str, Integers],
    clusters: Integers,
    forms: FormChoice,
    intervals: Intervals,
) -> dict[str, object]:
    """Return the row of one group."""
    clusters = _joint(clusters)
    n_clusters = int(clusters.max(initial=-1)) + 1
    n_items, n_forms = (int(facets[name].max(initial=-1)) + 1 for name in ("item", "form"))
    row: dict[str, object] = {
        "n": values.size,
        "n_items": n_items,
        "n_forms": n_forms,
        "n_samples": int(np.bincount(facets["cell"]).max(initial=0)),
        "n_clusters": n_clusters,
    }
    shares, total = _shares(values, facets, clusters)
    sizes = np.bincount(clusters).astype(np.float64)
    n_effective = float(effective_number(sizes))
    is_known = bool(enough_clusters(n_effective))
    row["not_inferred"] = "" if is_known else too_few_clusters(n_effective)
    if is_known and np.isnan(shares[:, 0]).all():
        row["not_inferred"] = "all scores are equal" if total == 0.0 else "a single item or form"
    low, high = jackknife(shares[:, 0], shares[:, 1:], sizes=sizes).bounds(intervals.confidence)
    if forms == "sample" and values.size:
        by_form = _shares(values, facets, facets["form"])[0][:, 1:]
        ends = [
            widened(share, bottom, top, left_out, intervals.confidence)
            for share, bottom, top, left_out in zip(shares[:, 0], low, high, by_form, strict=True)
        ]
        if facets["block"].max(initial=0) == 0:
            share = shares[SHARES.index("form"), 0]
            within = np.nansum(shares[2:, 0]) / n_items
            limits = _variance_limits(share, within, n_forms - 1, intervals.confidence)
            below, above = (
                math.hypot(share - bound, share - limit)
                for bound, limit in zip((low[1], high[1]), limits, strict=True)
            )
            ends[1] = np.array([share - below, share + above])
        low, high = np.transpose(ends)
    low, high = np.clip([low, high], 0.0, 1.0)
    for number, name in enumerate(SHARES):
        bounds = (low[number], high[number]) if is_known else (np.nan, np.nan)
        row |= {f"{name}_share": shares[number, 0]}
        row |= dict(zip((f"{name}_share_low", f"{name}_share_high"), bounds, strict=True))
    return row | {"total": total}


def _variance_limits(share: float, noise: float, df: int, confidence: float) -> tuple[float, float]:
    """Return the chi-square limits of a variance between forms whose estimate includes noise."""
    from scipy.special import chdtri

    if df < 1:
        return math.nan, math.nan
    tail = (1.0 - confidence) / 2.0
    low, high = (df / float(chdtri(df, one)) for one in (tail, 1.0 - tail))
    return (share + noise) * low - noise, (share + noise) * high - noise


def _shares(
    values: Floats, facets: Mapping[str, Integers], left_out: Integers
) -> tuple[Floats, float]:
    """Return the proportions over all rows and without each cluster, `(4, 1 + n)`, and variance."""
    values = values - values.mean() if values.size else values
    squares = {name: squared_totals(values, groups, left_out) for name, groups in facets.items()}

    def mean(**signs: int) -> Floats:
        """Average products over pairs of rows, selected by their shared properties."""
        above, below = (
            sum(sign * squares[name][side] for name, sign in signs.items()) for side in (0, 1)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(below > 0.5, above / below, np.nan))

    square, same_cell = mean(row=1), mean(cell=1, row=-1)
    same_item, same_form = mean(item=1, cell=-1), mean(form=1, cell=-1)
    apart = mean(block=1, item=-1, form=-1, cell=1)
    chance = mean(all=1, block=-1)
    chance = np.where(np.isnan(chance), apart, chance)
    total = square - chance
    within = np.where(np.isnan(same_cell), square, same_cell)
    form = same_form - apart
    shares = np.stack(
        [
            same_item - chance,
            form,
            within - same_item - np.where(np.isnan(form), 0.0, form),
            square - same_cell,
        ]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = np.where(total > 0.0, shares / total, np.nan)
    return divided, float(total[0])


def squared_totals(values: Floats, groups: Integers, clusters: Integers) -> tuple[Floats, Floats]:
    """Sum squared totals, and squared sizes, of groups: over all rows, then without each cluster.

    Args:
        values: One number per row, shape `(n,)`.
        groups: Code of the group of each row, from 0.
        clusters: Code of the cluster of each row, from 0.

    Returns:
        Both sums, each of shape `(1 + n_clusters,)`.
    """
    n_groups, n_clusters = int(groups.max(initial=0)) + 1, int(clusters.max(initial=-1)) + 1
    joint, places = np.unique(clusters * n_groups + groups, return_inverse=True)
    cluster_of, group_of = joint // n_groups, joint % n_groups

    def without(weights: npt.NDArray[np.float64]) -> Floats:
        """Subtract the contribution of each cluster from the squared totals."""
        parts = np.bincount(places, weights=weights, minlength=joint.size)
        totals = np.bincount(group_of, weights=parts, minlength=n_groups)[group_of]
        moved = np.bincount(cluster_of, 2.0 * totals * parts - parts**2, minlength=n_clusters)
        squared = np.bincount(group_of, weights=parts, minlength=n_groups) ** 2
        return np.asarray(np.r_[squared.sum(), squared.sum() - moved])

    return without(values), without(np.ones_like(values))
