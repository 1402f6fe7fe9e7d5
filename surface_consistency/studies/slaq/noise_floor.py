"""How often verdicts flip when the same prompt is asked again."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from surface_consistency.metrics import wilson_interval
from surface_consistency.schemas.slaq import Judgement, SlaqForm, SlaqPrompt

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_floor"]

_COLUMNS: Final = (
    "form",
    "n_repeated",
    "n_verdict_flips",
    "flip_rate",
    "flip_rate_low",
    "flip_rate_high",
)


def noise_floor(
    judgements: Iterable[Judgement], again: Iterable[Judgement], details: Iterable[SlaqPrompt]
) -> "pd.DataFrame":
    """Compare the verdicts on two answers to the same prompts, by form.

    Args:
        judgements: Verdicts on the first answers.
        again: Verdicts on the second answers.
        details: What each prompt asked for.

    Returns:
        One row a form that has verdicts on both: n_repeated, n_verdict_flips, flip_rate in [0, 1]
        with its Wilson interval.
    """
    import pandas as pd

    forms = {detail.prompt_id: detail.form for detail in details}
    first = {(j.prompt_id, j.question_id): j.is_correct for j in judgements}
    flips: dict[SlaqForm, list[bool]] = {}
    for judgement in again:
        before = first.get((judgement.prompt_id, judgement.question_id))
        if before is not None and judgement.is_correct is not None:
            flipped = flips.setdefault(forms[judgement.prompt_id], [])
            flipped.append(before != judgement.is_correct)
    rows = []
    for form, flipped in flips.items():
        interval = wilson_interval(sum(flipped), len(flipped))
        rate = sum(flipped) / len(flipped)
        rows.append((form, len(flipped), sum(flipped), rate, interval.low, interval.high))
    return pd.DataFrame(rows, columns=list(_COLUMNS))
