"""Statistical sentences, in one wording for pages, terminals, Markdown and results.

A sentence is a list of texts and `Value`s; `surface_consistency.tables.numbers.sentence_text` joins
it to text, and pages mark its numbers. A row is a mapping with `<name>`, `<name>_low`,
`<name>_high`, `n` and `n_clusters`, such as a row of a table.

Each sentence begins with a `Claim`, the record of the result, which has no text. A sentence reports
a direction only if the interval excludes the null value and the p-value is below 1 minus the
confidence level. It reports a difference that is not significant with the minimum detectable
difference, and equivalence only after two one-sided tests. Without an interval it reports that
nothing is inferred.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pandas as pd

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.tables.numbers import (
    Claim,
    Part,
    Value,
    format_number,
    is_missing,
    value_text,
)

Sentence: TypeAlias = list[Part]
"""Texts and numbers of a sentence; empty if there is nothing to report."""

Row: TypeAlias = Mapping[Any, Any]
"""A row of a table by column."""

Kind: TypeAlias = Literal["rate", "difference", "number", "decimal"]
"""How an estimate is formatted; see `surface_consistency.tables.numbers.format_number`."""

ClaimKind: TypeAlias = Literal["difference", "rate", "equivalence", "count", "test", "none"]
"""Kind of the result of a sentence; see `surface_consistency.tables.numbers.Claim`."""

Numbers = TypeVar("Numbers", float, pd.Series)


def direction(
    row: Row,
    name: str,
    p_value: float | None = None,
    *,
    null: float = 0.0,
    confidence: float = 0.95,
) -> int | None:
    """Return the direction of a difference that a sentence may claim.

    Args:
        row: The row: `<name>_low` and `<name>_high`.
        name: Name of the difference.
        p_value: P-value of its test, such as one corrected for multiple comparisons; None or NaN
            if there is only the interval.
        null: The value under the null hypothesis: 0 for differences, 0.5 for an area under a curve.
        confidence: Confidence level of the interval, in (0, 1).

    Returns:
        1 or -1 if the interval excludes `null` and the p-value, if there is one, is below 1 -
        confidence; 0 if the difference is not statistically significant; None if nothing can be
        inferred, since there is no interval.

    Examples:
        >>> row = {"change": -0.1, "change_low": -0.2, "change_high": -0.01}
        >>> direction(row, "change"), direction(row, "change", 0.07)
        (-1, 0)
    """
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if is_missing(low) or is_missing(high):
        return None
    is_significant = p_value is None or is_missing(p_value) or p_value < 1.0 - confidence
    return (float(low) > null) - (float(high) < null) if is_significant else 0  # type: ignore[arg-type]


def detectable_difference(low: Numbers, high: Numbers, confidence: float = 0.95) -> Numbers:
    """Compute the minimum detectable difference at 80 % power from an interval.

    Args:
        low: Lower bound of the interval of a difference, or a column of bounds.
        high: Upper bound.
        confidence: Confidence level of the interval.

    Returns:
        The true difference from the null value for which the test is significant with a probability
        of 80 %: (z + 0.842) / z times half the width of the interval, where z is its normal
        quantile; to six decimals; NaN without an interval.

    Examples:
        >>> round(detectable_difference(-0.1, 0.1), 4)
        0.1429
    """
    z, power = (round(NormalDist().inv_cdf(q), 6) for q in ((1.0 + confidence) / 2.0, 0.8))
    return (z + power) / z * (high - low) / 2.0


_NOT_LABELS: Final = frozenset({"not_inferred", "conclusion", "test"})


def claim(
    row: Row,
    name: str,
    quantity: str,
    *,
    kind: ClaimKind = "rate",
    p_value: float | None = None,
    null: float | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    **scope: str,
) -> Claim:
    """Return the record of a sentence, from the row that it reports.

    Args:
        row: The row.
        name: Name of the estimate.
        quantity: The estimated quantity.
        kind: The kind of result.
        p_value: P-value of the test; None if the interval is the test.
        null: Value that the estimate is compared with; None if it is not compared.
        margin: The equivalence margin.
        confidence: Level of the interval.
        scope: Names of conditions, in addition to the labels of the row.

    Returns:
        The record.
    """
    sign = None
    if null is not None:
        sign = direction(row, name, p_value, null=null, confidence=confidence)
    labels = {
        str(key): value
        for key, value in row.items()
        if isinstance(value, str) and value and key not in _NOT_LABELS
    }

    def number(key: str) -> float | None:
        """Return a number of the row."""
        return None if is_missing(row.get(key)) else float(row[key])

    n, n_clusters = (number(key) for key in _sized(row, name))
    return Claim(
        kind=kind,
        quantity=quantity,
        column=name,
        estimate=number(name),
        low=number(f"{name}_low"),
        high=number(f"{name}_high"),
        p=None if is_missing(p_value) else float(p_value),  # type: ignore[arg-type]
        direction=sign,
        null=null,
        margin=margin,
        confidence=confidence,
        scope=labels | scope,
        n=None if n is None else int(n),
        n_clusters=None if n_clusters is None else int(n_clusters),
    )


def count(estimate: int, n: int | None, quantity: str, **scope: str) -> Claim:
    """Return the record of a count.

    Args:
        estimate: The number.
        n: The number from which they are counted; None if it is not reported.
        quantity: The counted things.
        scope: Labels of the things, such as their model.

    Returns:
        The record.
    """
    return Claim(kind="count", quantity=quantity, estimate=estimate, n=n, scope=scope)


def stated(text: str) -> Sentence:
    """Convert a text that reports a count, such as a warning, to a sentence.

    Args:
        text: The text, whose first number is the count.

    Returns:
        A record of that number and the text; the text alone if it has no number.
    """
    found = re.search(r"(?<![\w.])\d[\d,]{0,30}(?![\w.]\d)", text)
    return [count(int(found[0].replace(",", "")), None, text), text] if found else [text]


def cluster_notes(
    n_clusters: int, n_effective: float, *, of: str = "", named: str = "", remedy: str = ""
) -> list[Sentence]:
    """Report that intervals are wide, since the clusters are few or unequal.

    Args:
        n_clusters: Number of clusters.
        n_effective: Effective number of clusters (Kish), (sum of sizes)^2 / sum of squared sizes.
        of: Their model or group, such as " of gpt2".
        named: Name of the clusters.
        remedy: Advice that follows if the clusters are few.

    Returns:
        A sentence for fewer than 20 clusters, and one for an effective number below half of them.

    Examples:
        >>> cluster_notes(30, 12.34)[0][1].partition(",")[0]
        'The clusters are unequal (effective number 12.3 of 30)'
    """
    notes: list[Sentence] = []
    worth = f"{n_effective:.3g}"
    if n_clusters < FEW_CLUSTERS:
        number = "" if worth == str(n_clusters) else f"effective number {worth}"
        what = "; ".join(filter(None, (named, number)))
        text = (
            f"The result{of} is based on only {n_clusters} clusters{f' ({what})' if what else ''}"
        )
        text = f"{text}, so that intervals are wide{remedy}."
        notes.append([count(n_clusters, None, f"clusters{of}"), text])
    if n_effective < n_clusters / 2:
        text = (
            f"The clusters{of} are unequal (effective number {worth} of {n_clusters:,}), so that "
            f"the interval is wider than that of {n_clusters:,} equal clusters."
        )
        what = f"effective number of clusters{of}"
        record = Claim(kind="count", quantity=what, estimate=n_effective, n=n_clusters)
        notes.append([record, text])
    return notes


def difference(
    row: Row,
    name: str,
    quantity: str,
    first: str,
    second: str,
    how: str = "for {}",
    *,
    p: str | None,
    correction: str = "",
    kind: Kind = "difference",
    unit: str = "pairs",
    clusters: str = "clusters",
    confidence: float = 0.95,
    reach: float = 1.0,
) -> Sentence:
    r"""Report a difference between two conditions or models, second minus first.

    Args:
        row: The row, with the estimate, its interval and its p-value.
        name: Name of the difference.
        quantity: The compared quantity, such as "accuracy of gpt2".
        first: Name of the first condition or model.
        second: Name of the second.
        how: Phrase around a name after the verb, such as "with the {}"; with “{}”, names are
            quoted.
        p: Column of the p-value; None if the interval is the test.
        correction: Method by which that p-value is corrected, such as "Holm"; none by default.
        kind: How the difference is formatted.
        unit: Unit of `n`, in the plural.
        clusters: Name of the clusters, in the plural.
        confidence: Confidence level of the interval.
        reach: Largest possible difference; a larger minimum detectable difference means that no
            difference can be detected.

    Returns:
        The sentence. Without an interval, it reports that the difference cannot be inferred.

    Examples:
        >>> row = {"d": -0.204, "d_low": -0.273, "d_high": -0.136, "p": 0.0002, "n": 90}
        >>> difference(row, "d", "accuracy", "title", "redirect", p="p")[-1].replace("\xa0", " ")
        ' lower for redirect than for title (95 % CI 13.6 to 27.3, p < 0.001; 90 pairs).'
    """
    p_value = None if p is None else row.get(p)
    sign = direction(row, name, p_value, confidence=confidence)
    names = [f"“{one}”" if "“{}”" in how else one for one in (first, second)]
    if sign is None:
        what = f"a difference in {quantity} between {' and '.join(names)}"
        return not_inferred(row, what, name, unit=unit, clusters=clusters)
    tests = _tests(row, p_value, correction, confidence)
    counts = size(row, unit, clusters, name)
    record = claim(
        row,
        name,
        quantity,
        kind="difference",
        p_value=p_value,
        null=0.0,
        confidence=confidence,
        first=first,
        second=second,
    )
    if sign:
        ends = (how.format(second), how.format(first))
        return [
            record,
            f"The {quantity} is ",
            Value(value=abs(float(row[name])), kind=kind, tone="strong", signed=False),
            f" {'higher' if sign > 0 else 'lower'} {ends[0]} than {ends[1]} "
            f"({_interval(row, name, kind, confidence, sign)}{tests}{counts}).",
        ]
    return [
        record,
        f"The {quantity} does not differ significantly between {' and '.join(names)} (difference ",
        Value(value=float(row[name]), kind=kind),
        f", {_interval(row, name, kind, confidence)}{tests}{counts}; "
        f"{detectable(row, name, kind=kind, confidence=confidence, reach=reach)}).",
    ]


def rate(
    row: Row,
    name: str,
    quantity: str,
    *,
    kind: Kind = "rate",
    null: float | None = None,
    p: str | None = None,
    unit: str = "pairs",
    clusters: str = "clusters",
    confidence: float = 0.95,
) -> Sentence:
    """Report an estimate with its interval.

    Args:
        row: The row, with the estimate and its interval.
        name: Name of the estimate.
        quantity: The estimated quantity, such as "flip rate of gpt2".
        kind: How the estimate is formatted.
        null: Value of no effect, such as 0.5 for an area under a curve; the sentence then reports
            whether the estimate differs significantly from it. None reports the estimate alone.
        p: Column of the p-value of that test, such as one corrected for multiple comparisons; None
            if the interval is the test.
        unit: Unit of `n`, in the plural.
        clusters: Name of the clusters, in the plural.
        confidence: Confidence level of the interval.

    Returns:
        The sentence. Without an interval, it reports that the estimate cannot be inferred.

    Examples:
        >>> row = {"rate": 0.475, "rate_low": 0.373, "rate_high": 0.578, "n": 122, "n_clusters": 60}
        >>> rate(row, "rate", "flip rate", clusters="facts")[-1]
        ' (95 % CI 37.3 to 57.8; 122 pairs, 60 facts).'
    """
    p_value = None if p is None else row.get(p)
    sign = direction(row, name, p_value, null=null or 0.0, confidence=confidence)
    if sign is None:
        return not_inferred(row, f"the {quantity}", name, unit=unit, clusters=clusters)
    beside = ""
    if null is not None:
        words = "significantly" if sign else "not significantly"
        corrected = "Holm" if p is not None and p.endswith("_holm") else ""
        tests = _tests(row, p_value, corrected, confidence)
        compared = format_number(null, kind, signed=False) if null else "0"
        beside = f"{tests}; {words} different from {compared}"
        if not sign:
            beside += f"; {detectable(row, name, kind=kind, confidence=confidence)}"
    return [
        claim(row, name, quantity, p_value=p_value, null=null, confidence=confidence),
        f"The {quantity} is ",
        Value(value=float(row[name]), kind=kind, tone="strong"),
        f" ({_interval(row, name, kind, confidence)}{size(row, unit, clusters, name)}{beside}).",
    ]


def estimate(
    row: Row, name: str, quantity: str, *, kind: Kind = "rate", confidence: float = 0.95
) -> Sentence:
    """Write an estimate with its interval, as a part of a sentence.

    Args:
        row: The row, with the estimate and its interval.
        name: Name of the estimate.
        quantity: The estimated quantity, for the record.
        kind: How the estimate is formatted.
        confidence: Confidence level of the interval.

    Returns:
        The parts, such as "47.5 % (95 % CI 37.3 to 57.8)".
    """
    value = Value(value=float(row[name]), kind=kind, tone="strong")
    record = claim(row, name, quantity, confidence=confidence)
    return [record, value, f" ({_interval(row, name, kind, confidence)})"]


def equivalence(
    row: Row,
    name: str,
    quantity: str,
    first: str,
    second: str,
    *,
    p: str,
    margin: float,
    p_difference: str | None = None,
    correction: str = "",
    kind: Kind = "difference",
    unit: str = "pairs",
    clusters: str = "clusters",
    confidence: float = 0.95,
) -> Sentence:
    """Report that two conditions or models are equivalent within a margin.

    Args:
        row: The row, with the difference, its interval and the p-value.
        name: Name of the difference.
        quantity: The compared quantity, such as "accuracy".
        first: Name of the first condition or model.
        second: Name of the second.
        p: Column of the larger p-value of the two one-sided tests.
        margin: The equivalence margin, in the unit of the difference.
        p_difference: Column of the p-value of no difference; None if the interval is the test.
        correction: Method by which the p-value is corrected; none by default.
        kind: How the difference is formatted.
        unit: Unit of `n`, in the plural.
        clusters: Name of the clusters, in the plural.
        confidence: Confidence level of the interval.

    Returns:
        The sentence, which also reports if the difference is significant; empty unless both
        one-sided tests are significant, each at (1 - confidence) / 2.
    """
    if is_missing(row.get(p)) or not row[p] < (1.0 - confidence) / 2.0:
        return []
    p_value = row.get(p_difference)
    options: dict[str, Any] = {"kind": "difference", "p_value": p_value, "null": 0.0}
    different = claim(row, name, quantity, confidence=confidence, **options)
    also = [different, " The difference is statistically significant, although within the margin."]
    within = value_text(Value(value=margin, kind=kind, signed=False))
    tests = _tests(row, row[p], correction, confidence)
    record = claim(
        row,
        name,
        quantity,
        kind="equivalence",
        p_value=row[p],
        margin=margin,
        confidence=confidence,
        first=first,
        second=second,
    )
    return [
        record,
        f"The {quantity} is equivalent for {first} and {second} within ±{within} (difference ",
        Value(value=float(row[name]), kind=kind),
        f", {_interval(row, name, kind, confidence)}{tests} of two one-sided tests"
        f"{size(row, unit, clusters, name)}).",
        *(also if different.direction else ()),
    ]


def ranking(best: Sequence[str], n: int, quantity: str, confidence: float = 0.95) -> Sentence:
    """Report which models may be the best, from simultaneous rank intervals.

    Args:
        best: The models whose rank interval includes 1.
        n: Number of models.
        quantity: The quantity by which they are ranked.
        confidence: Simultaneous confidence level.

    Returns:
        The sentence.

    Examples:
        >>> ranking(["b"], 3, "accuracy")[1:]
        ['b is the best of 3 models in accuracy (simultaneous 95 % confidence).']
    """
    level = f"(simultaneous {100 * confidence:g} % confidence)"
    record = count(len(best), n, f"models that may be the best in {quantity}", best=listing(best))
    if len(best) == n:
        return [record, f"No two of the {n} models differ significantly in {quantity} {level}."]
    if len(best) == 1:
        return [record, f"{best[0]} is the best of {n} models in {quantity} {level}."]
    return [
        record,
        f"{len(best)} of {n} models may be the best in {quantity} {level}: {listing(best)}.",
    ]


def not_inferred(
    row: Row, what: str, name: str = "", *, unit: str = "pairs", clusters: str = "clusters"
) -> Sentence:
    """Report why there is neither an interval nor a test, such as too few clusters.

    Args:
        row: The row: `n`, `n_clusters` and, if it is known, `not_inferred`, the reason. A reason
            that applies only to some rates has their names and a colon before it. If the reason is
            not the number of clusters, the sentence does not report that numbers are too few.
        what: The quantity that cannot be inferred, with its article.
        name: Name of the estimate, which selects the reason and the denominator.
        unit: Unit of `n`, in the plural.
        clusters: Name of the clusters, in the plural.

    Returns:
        The sentence.

    Examples:
        >>> not_inferred({"n": 15, "n_clusters": 3}, "the flip rate of m")[1:]
        ['The flip rate of m cannot be inferred: 15 pairs in 3 clusters are too few.']
    """
    given = row.get("not_inferred")
    known = [one.rpartition(": ") for one in given.split("; ")] if isinstance(given, str) else []
    # The reason of a row is about all its observations, not about those of a conditional rate.
    all_of = "" if is_missing(row.get(f"{name}_n")) else f"all {unit}: "
    named = [(of.split(", "), one) for of, _, one in known if one]
    reasons = [one if name in of else all_of + one for of, one in named if name in of or of == [""]]
    reason = reasons[0] if reasons else ""
    counts = size(row, unit, clusters, name).removeprefix("; ").replace(", ", " in ") or "the data"
    verb = "is" if counts.startswith("1 ") else "are"
    why = f"{counts} {verb} too few{f' ({reason})' if reason else ''}"
    if reason and "number of clusters" not in reason:
        why = f"{reason} ({counts})"
    record = claim(row, "", what, kind="none")
    return [record, f"{what[0].upper()}{what[1:]} cannot be inferred: {why}."]


def missing(
    n_missing: float, n: float, unit: str = "pairs", of: str = "", reason: str = "have no score"
) -> Sentence:
    """Report the number of excluded rows, which are not counted as incorrect.

    Args:
        n_missing: Number of excluded rows.
        n: Number of all rows.
        unit: Name of the rows, in the plural.
        of: Their model or group, such as " of gpt2".
        reason: Why they are excluded.

    Returns:
        The sentence; empty if no row is excluded.
    """
    if not n_missing:
        return []
    record = count(int(n_missing), int(n), f"{unit}{of} that {reason}")
    return [record, f"{int(n_missing):,} of {int(n):,} {unit}{of} {reason} and are excluded."]


def repeats(
    rows: Iterable[Row],
    name: str = "flip_rate",
    of: str = "",
    label: str | None = None,
    *,
    confidence: float = 0.95,
) -> Sentence:
    """Report the test-retest flip rate of identical prompts.

    Args:
        rows: One row per stratum.
        name: Name of the rate.
        of: The repeated prompts, such as " of gpt2".
        label: Column that names the stratum; None if there is one stratum.
        confidence: Confidence level of the intervals.

    Returns:
        The sentence, with a number per stratum that has an interval; empty if no stratum has one.
    """
    sentence: Sentence = []
    for row in rows:
        if direction(row, name, confidence=confidence) is not None:
            stratum = "" if label is None else f", {row[label]}"
            sentence += [
                claim(row, name, f"test-retest flip rate{of}", confidence=confidence),
                "; " if sentence else f"The test-retest flip rate of identical prompts{of} is ",
                Value(value=float(row[name])),
                f" ({_interval(row, name, 'rate', confidence)}{stratum})",
            ]
    return [*sentence, "."] if sentence else []


def many(
    rows: Sequence[Row],
    name: str,
    quantity: str,
    sentence: Callable[[Any], Sentence],
    *,
    p: str | None,
    most: int = 3,
    kind: Kind = "difference",
    confidence: float = 0.95,
    reach: float = 1.0,
) -> list[Sentence]:
    """Report a family of comparisons: the significant ones, and how many are not.

    Args:
        rows: The rows of the family.
        name: Name of the difference.
        quantity: The compared quantity, such as "accuracy by form".
        sentence: Makes the sentence of a row.
        p: Column of the corrected p-value; None if the interval is the test.
        most: Maximum number of significant rows with a separate sentence.
        kind: How the differences are formatted.
        confidence: Confidence level of the intervals.
        reach: Largest possible difference.

    Returns:
        One sentence per significant row, up to `most`. Then the number of further significant rows;
        the number of rows that are not significant, with the largest of their minimum detectable
        differences; and the number that cannot be inferred. If there is only one row, its sentence.
    """
    if len(rows) == 1:
        return [sentence(rows[0])]
    signs = [
        direction(row, name, None if p is None else row.get(p), confidence=confidence)
        for row in rows
    ]
    tested = [sign for sign in signs if sign is not None]
    if rows and not tested:
        what = f"the {len(rows)} comparisons in {quantity}"
        text = f"{what[0].upper()}{what[1:]} cannot be inferred: the clusters are too few."
        return [[Claim(kind="none", quantity=what, n=len(rows)), text]]
    found = [sentence(row) for row, sign in zip(rows, signs, strict=True) if sign]
    family = f"of the {len(tested)} comparisons in {quantity}"
    sentences = found[:most]
    if n_more := len(found) - len(sentences):
        words = f"{n_more} more {family} {_be(n_more)} statistically significant."
        sentences.append([count(n_more, len(tested), f"significant {family}"), words])
    if n_not := tested.count(0):
        nulls = [row for row, sign in zip(rows, signs, strict=True) if sign == 0]
        widest = max(nulls, key=lambda row: row[f"{name}_high"] - row[f"{name}_low"])
        least = detectable(widest, name, kind=kind, confidence=confidence, reach=reach)
        least = f"largest {least}" if n_not > 1 and least.startswith("minimum") else least
        words = f"{n_not} {family} {_be(n_not)} not statistically significant ({least})."
        sentences.append([count(n_not, len(tested), f"not significant {family}"), words])
    if n_none := signs.count(None):
        words = f"{n_none} of the comparisons in {quantity} cannot be inferred."
        sentences.append(
            [count(n_none, len(rows), f"comparisons in {quantity} not inferred"), words]
        )
    return sentences


def detectable(
    row: Row, name: str, *, kind: Kind = "difference", confidence: float = 0.95, reach: float = 1.0
) -> str:
    """Report the minimum detectable difference of an estimate, as a part of a sentence.

    Args:
        row: The row, with the interval.
        name: Name of the difference.
        kind: How the difference is formatted.
        confidence: Confidence level of the interval.
        reach: Largest possible difference.

    Returns:
        The parts, such as "minimum detectable difference 8.2 points at 80 % power".
    """
    least = detectable_difference(float(row[f"{name}_low"]), float(row[f"{name}_high"]), confidence)
    if not least < reach:
        return "too few to detect any difference"
    unit: Kind = "difference" if kind == "rate" else kind
    shown = value_text(Value(value=least, kind=unit, signed=False))
    return f"minimum detectable difference {shown} at 80 % power"


def detectable_note(
    frame: pd.DataFrame, name: str = "accuracy_difference", *, confidence: float = 0.95
) -> str:
    """Report the minimum detectable differences of the rows of a table.

    Args:
        frame: The table, with the bounds of a difference.
        name: The difference.
        confidence: Confidence level of the bounds.

    Returns:
        Sentences for the note below it; empty for a table without rows.
    """
    bounds = [frame[f"{name}_{end}"].astype(float) for end in ("low", "high")]
    least = [
        detectable_difference(low, high, confidence) for low, high in zip(*bounds, strict=True)
    ]
    known = [f"{100 * one:.1f}" for one in sorted(one for one in least if one < 1.0)]
    n_without = sum(
        not (one < 1.0 or direction(row, name))
        for one, row in zip(least, frame.to_dict("records"), strict=True)
    )
    notes = []
    if known:
        span = " to ".join(dict.fromkeys((known[0], known[-1])))
        notes.append(
            f"Minimum detectable difference at 80 % power, before correction: {span} points."
        )
    if n_without:
        rows = "row" if len(frame) == 1 else "rows"
        has = "has" if n_without == 1 else "have"
        notes.append(f"{n_without} of {len(frame)} {rows} {has} too few pairs to detect any.")
    return " ".join(notes)


def _sized(row: Row, name: str) -> tuple[str, str]:
    """Name the columns of the numbers of observations and clusters of an estimate."""
    own = "" if is_missing(row.get(f"{name}_n")) else f"{name}_"
    return f"{own}n", f"{own}n_clusters"


def size(row: Row, unit: str = "pairs", clusters: str = "clusters", name: str = "") -> str:
    """Write the numbers of observations and clusters, as the end of a parenthesis.

    Args:
        row: The row: `n` and `n_clusters`, if they are known; or `<name>_n` and
            `<name>_n_clusters`, the denominator of a conditional rate.
        unit: Unit of `n`, in the plural.
        clusters: Name of the clusters, in the plural.
        name: Name of the estimate.

    Returns:
        The text, such as "; 122 pairs, 60 facts"; only the first number if every cluster has one
        observation.
    """
    counts = zip(map(row.get, _sized(row, name)), (unit, clusters), strict=True)
    known = [(int(n or 0), words) for n, words in counts if not is_missing(n)]
    if len(known) == 2 and known[0][0] == known[1][0]:
        known = known[:1]
    shown = [f"{n:,} {words if n != 1 else words.removesuffix('s')}" for n, words in known]
    return f"; {', '.join(shown)}" if shown else ""


def listing(names: Iterable[object], most: int = 6) -> str:
    """Write names as a list.

    Args:
        names: The names, at least one.
        most: Maximum number of names; the number of others follows.

    Returns:
        The text.

    Examples:
        >>> listing("abc"), listing("abcdefgh", most=3)
        ('a, b and c', 'a, b and 6 others')
    """
    shown = [str(name) for name in names]
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} others"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def paragraph(sentences: Iterable[Sentence]) -> Sentence:
    """Join sentences with spaces.

    Args:
        sentences: The sentences; empty ones are skipped.

    Returns:
        Their parts.
    """
    parts: Sentence = []
    for sentence in sentences:
        parts += [" ", *sentence] if parts and sentence else sentence
    return parts


def _be(n: int) -> str:
    """Return "is" or "are"."""
    return "is" if n == 1 else "are"


def _interval(row: Row, name: str, kind: Kind, confidence: float, sign: int = 1) -> str:
    """Write the interval of an estimate, or with `sign` -1 of its absolute value."""
    ends = sorted(sign * float(row[f"{name}_{end}"]) for end in ("low", "high"))
    low, high = (format_number(end, kind, signed=False) for end in ends)
    return f"{100 * confidence:g} % CI {low} to {high}"


def _tests(row: Row, p_value: float | None, correction: str, confidence: float) -> str:
    """Write the p-value; also the uncorrected one if only the correction changes the decision."""
    if p_value is None or is_missing(p_value):
        return ""
    plain = row.get("p_value")
    shown = [f"{correction}-corrected {_p(p_value)}" if correction else _p(p_value)]
    if correction and plain is not None and plain < 1.0 - confidence <= p_value:
        shown.insert(0, _p(plain))
    return f", {', '.join(shown)}"


def _p(p_value: float) -> str:
    """Write a p-value."""
    return value_text(Value(value=float(p_value), kind="p_value"))
