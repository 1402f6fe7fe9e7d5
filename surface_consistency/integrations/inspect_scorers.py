"""inspect_ai: the matching rules as a scorer, and rates over forms as a metric of any scorer.

- `match(rule="popqa", region="whole")` scores an answer C if the rule accepts it for one of the
  targets, else I. `region` is the part of the answer that is matched; reasoning is excluded.
- `consistency(item="item", form="form", cluster=None)` groups the scores of any scorer by
  `metadata[item]` and `metadata[form]` of their samples.

Both are made on first use, so that this module can be imported without the tool.
"""

import math
import warnings
from functools import cache
from typing import Any, Final

from surface_consistency.errors import DataError, UndefinedMetricWarning
from surface_consistency.integrations.extras import check_tool
from surface_consistency.integrations.form_scores import form_rates
from surface_consistency.matching import resolve_rule
from surface_consistency.matching.rule import AnswerSpan
from surface_consistency.matching.verdict_records import answer_span
from surface_consistency.models.reasoning import split_reasoning
from surface_consistency.reading import shown

_FEATURE: Final = "The integration with inspect_ai"
_CORRECT: Final[dict[str | float, int]] = {"C": 1, "I": 0, "N": 0, 1: 1, 0: 0}
_RATES: Final = [
    f"{name}{end}"
    for end in ("", "_low", "_high")
    for name in ("consistency", "flip_rate", "all_correct")
]
_COUNTS: Final = ("n_items", "n_single", "n_clusters")
_GRADED: Final = -1
"""Code of a score that is neither correct nor incorrect."""


@cache
def register() -> dict[str, Any]:
    """Register the scorer and the metric with inspect_ai.

    Returns:
        The scorer `match` and the metric `consistency`, by name.

    Raises:
        MissingDependencyError: If inspect_ai is not installed.
        MissingDependencyError: If its version is too old or too new.
    """
    check_tool(_FEATURE, "inspect-ai", "inspect")
    from inspect_ai import scorer as tool
    from inspect_ai.solver import TaskState

    @tool.scorer(metrics=[tool.accuracy(), tool.stderr()])
    def match(rule: str = "popqa", region: AnswerSpan = "whole") -> tool.Scorer:
        """Score answers by a matching rule."""
        chosen = resolve_rule(rule)
        answer_span("", region=region)

        async def score(state: TaskState, target: tool.Target) -> tool.Score:
            reply = split_reasoning(state.output.completion).answer or ""
            answer = answer_span(reply, region=region)
            is_match = chosen(answer, list(target)).is_match
            return tool.Score(value=tool.CORRECT if is_match else tool.INCORRECT, answer=answer)

        return score

    @tool.metric
    def consistency(
        item: str = "item", form: str = "form", cluster: str | None = None
    ) -> tool.Metric:
        """Compute consistency, flip rate and all_correct over the forms of each item."""
        keys = (item, form, cluster or item)

        def compute(scores: list[tool.SampleScore]) -> dict[str, float]:
            correct = [_correct(score) for score in scores]
            labels = [[_label(score, key) for key in keys] for score in scores]
            graded = [score for score, one in zip(scores, correct, strict=True) if one == _GRADED]
            row = form_rates(
                [
                    [*label, None if one is None else one == 1]
                    for label, one in zip(labels, correct, strict=True)
                ]
            )
            if graded:
                _warn_graded(graded[0])
                row[_RATES] = math.nan
            return {name: float(row[name]) for name in (*_RATES, *_COUNTS)}

        return compute

    return {"match": match, "consistency": consistency}


def __getattr__(name: str) -> object:
    """Make the scorer and the metric when they are first named."""
    if name not in ("match", "consistency"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return register()[name]


def _label(score: Any, key: str) -> object:  # noqa: ANN401 - a SampleScore
    """Return the metadata of a sample under a key."""
    metadata = score.sample_metadata or {}
    if key not in metadata:
        raise DataError(
            f"sample {shown(score.sample_id)} has no metadata {key!r}; add it, or name another by "
            f"consistency(item=..., form=..., cluster=...). Keys: {', '.join(metadata) or 'none'}"
        )
    return metadata[key]


def _correct(score: Any) -> int | None:  # noqa: ANN401 - a SampleScore
    """Return the score of a sample over its epochs: 0, 1, `_GRADED`, or None if it is missing."""
    value = score.score.value
    if not isinstance(value, str | int | float):
        raise DataError(
            f"sample {shown(score.sample_id)} has the score {shown(value)}, which is not one "
            "value; give the metric to one of its keys: metrics={KEY: [consistency()]}"
        )
    if value != value:
        return None
    return _CORRECT.get(value, _GRADED)


def _warn_graded(score: Any) -> None:  # noqa: ANN401 - a SampleScore
    """Warn that the rates are NaN because of the score of a sample."""
    warnings.warn(
        f"sample {shown(score.sample_id)} has the score {shown(score.score.value)}; consistency "
        "is NaN, because it is defined only for the scores 1 and 0 (C and I). With several "
        "epochs use Epochs(N, 'mode') or epochs_reducer='mode' in inspect_ai.score; give a "
        "graded score a threshold in its scorer",
        UndefinedMetricWarning,
        stacklevel=3,
    )
