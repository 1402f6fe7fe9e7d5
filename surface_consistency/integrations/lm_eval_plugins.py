"""lm-evaluation-harness: matching rules as metrics, and rates over forms as aggregations.

A task file names them as `!function surface_consistency.integrations.lm_eval_plugins.NAME`.
Versions of the harness that read the entry-point groups `lm_eval.metrics`, `lm_eval.aggregations`
and `lm_eval.filters` also find them by name; 0.4.13 does not read these groups.

- Metrics: `match_` with the name of each rule of `matching.RULES`, such as `match_popqa`: 1.0 if
  the answer matches a reference, else 0.0. The aggregation is the mean.
- Aggregations: `consistency`, `flip_rate`, `all_correct` and `signed_alignment`, of documents for
  which `process_results` returns (item, form, correct).
- Filter: `answer_span`, which keeps the part of an answer that `region` names, by default its first
  line, as `matching.verdicts` does.

The metrics and the filter need the harness and are made on first use.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from surface_consistency.errors import DataError, DataWarning, UndefinedMetricWarning
from surface_consistency.integrations.extras import check_tool
from surface_consistency.integrations.form_scores import form_rates
from surface_consistency.matching import RULES, Rule
from surface_consistency.matching.rule import AnswerSpan
from surface_consistency.matching.verdict_records import answer_span as cut
from surface_consistency.models.reasoning import split_reasoning
from surface_consistency.reading import shown

_FEATURE: Final = "The integration with lm-evaluation-harness"
_METRICS: Final = {f"match_{name}": rule for name, rule in RULES.items()}

FormScore = tuple[str | int, str | int, bool | None]
"""Item, form and correctness of one document; None if the answer could not be scored."""


def consistency(items: Sequence[FormScore]) -> float:
    """Return the probability that two random forms of an item are both correct or both incorrect.

    Args:
        items: Item, form and correctness of each document, from `process_results`.

    Returns:
        The consistency of `metrics.forms_by`; with two forms that of `metrics.consistency`. NaN if
        no item has two scored forms.

    Raises:
        DataError: If a document has another value than (item, form, correct), or as `form_rates`.
        ValueError: As `form_rates`.

    Warns:
        DataWarning: If items have fewer than two scored forms; they are excluded.
        UndefinedMetricWarning: If this holds for all items.
        UnscoredWarning: As `form_rates`.

    Examples:
        >>> consistency([(1, "a", True), (1, "b", True), (2, "a", True), (2, "b", False)])
        0.5
    """
    return _rate(items, "consistency")


def flip_rate(items: Sequence[FormScore]) -> float:
    """Return the probability that exactly one of two random forms of an item is correct.

    Args:
        items: As for `consistency`.

    Returns:
        1 - consistency; with two forms `metrics.flip_rate`.

    Raises:
        DataError: As `consistency`.
        ValueError: As `consistency`.
    """
    return _rate(items, "flip_rate")


def all_correct(items: Sequence[FormScore]) -> float:
    """Return the proportion of items that are correct in all their forms.

    Args:
        items: As for `consistency`.

    Returns:
        The column `all_correct` of `metrics.forms_by`.

    Raises:
        DataError: As `consistency`.
        ValueError: As `consistency`.
    """
    return _rate(items, "all_correct")


def signed_alignment(items: Sequence[FormScore]) -> float:
    """Return the proportion of items correct in both forms minus that of items correct in neither.

    Args:
        items: As for `consistency`, in two forms.

    Returns:
        `metrics.signed_alignment` of the two forms, in [-1, 1].

    Raises:
        DataError: As `consistency`, and if there are not two forms.
        ValueError: As `consistency`.
    """
    forms = {form for _, form, _ in _checked(items)}
    if len(forms) != 2:
        raise DataError(
            f"signed_alignment needs two forms and got {len(forms)}, {sorted(map(str, forms))}; "
            "use consistency for another number of forms"
        )
    return _rate(items, "all_correct") - _rate(items, "all_incorrect")


@cache
def register() -> dict[str, Any]:
    """Make the metrics and the filter, and register the metrics with the harness.

    Returns:
        The metrics and the filter by name.

    Raises:
        MissingDependencyError: If lm-evaluation-harness is not installed.
        MissingDependencyError: If its version is too old or too new.
    """
    check_tool(_FEATURE, "lm-eval", "lm-eval")
    # The second import registers the aggregation "mean".
    import lm_eval.api.filter
    import lm_eval.api.metrics

    class AnswerSpanFilter(lm_eval.api.filter.Filter):  # type: ignore[misc]
        """Keep the part of each answer that `region` names, without reasoning."""

        def __init__(self, region: AnswerSpan = "first_line") -> None:
            cut("", region=region)
            self._region = region

        def apply(self, resps: Sequence[Any], docs: object) -> list[Any]:
            return [self._cut(responses) for responses in resps]

        def _cut(self, response: Any) -> Any:  # noqa: ANN401 - text, or a list of it
            """Cut a response, or each of the responses to a document."""
            if isinstance(response, str):
                return cut(split_reasoning(response).answer or "", region=self._region)
            return [self._cut(each) for each in response]

    made: dict[str, Any] = {"answer_span": AnswerSpanFilter}
    how = {"higher_is_better": True, "aggregation": "mean"}
    for name, rule in _METRICS.items():
        made[name] = lm_eval.api.registry.register_metric(metric=name, **how)(_metric(name, rule))
    return made


def __getattr__(name: str) -> object:
    """Create objects that need the harness on first access."""
    if name not in _METRICS and name != "answer_span":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return register()[name]


def _metric(name: str, rule: Rule[Any]) -> Callable[..., float]:
    """Make the metric of a rule, which the harness calls with one reference at a time."""

    def metric(references: Sequence[str], predictions: Sequence[str], **options: object) -> float:
        # The harness suppresses a TypeError, so this function does not raise one.
        if options:
            raise ValueError(f"the metric {name} has no option {shown(min(options))}; remove it")
        [reference], [prediction] = references, predictions
        for what, text in (("prediction", prediction), ("reference", reference)):
            if not isinstance(text, str):
                raise ValueError(
                    f"the metric {name} compares text, and a {what} is {shown(text)}; let "
                    "doc_to_target return text, and end filter_list with take_first"
                )
        return float(rule(prediction, [reference]).is_match)

    # The harness compares these with the entry point, and names the metric in its results by them.
    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"Score answers by the rule {rule.name}."
    return metric


def _checked(items: Sequence[Any]) -> Sequence[FormScore]:
    """Raise an error for a document whose value is not an item, a form and a score."""
    for value in items:
        if not isinstance(value, tuple | list) or len(value) != 3:
            raise DataError(
                f"a document has the value {shown(value)}; let process_results return "
                "(item, form, correct) for this metric"
            )
    return items


def _rate(items: Sequence[FormScore], name: str) -> float:
    """Compute a rate over forms, with a warning about the excluded items."""
    row = form_rates([(item, form, item, score) for item, form, score in _checked(items)])
    if row["n_single"]:
        warnings.warn(
            f"{row['n_single']} of {row['n_items'] + row['n_single']} items have fewer than two "
            "scored forms and are excluded" + ("" if row["n_items"] else ", so the rate is NaN"),
            DataWarning if row["n_items"] else UndefinedMetricWarning,
            stacklevel=3,
        )
    return float(row[name])
