"""The columns of answers: made from generations, joined to targets, and counted."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from surface_consistency.schemas.generations import (
    ANSWER_FIELDS,
    ANSWERS,
    Generation,
    answer_values,
)


def answer_frame(generations: Iterable[Generation] = ()) -> pd.DataFrame:
    """Convert generations to a frame.

    Args:
        generations: The generations.

    Returns:
        One row per generation, with the columns `ANSWERS`.
    """
    rows = list(map(answer_values, generations))
    return pd.DataFrame(rows, columns=list(ANSWERS), dtype=object)


def join_answers(targets: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Join answers to targets; prompts of equal content share an answer.

    Args:
        targets: The targets, with prompt_id; in a run also with group and prompt_key, by which
            answers are then found.
        answers: Some of the columns `ANSWERS`, and the same keys, which are unique.

    Returns:
        The targets with the columns `ANSWER_FIELDS`, None if there is no answer.
    """
    rows = np.full(len(targets), -1)
    if "group" in targets:
        key = answers["prompt_key"].where(answers["prompt_key"].notna(), answers["prompt_id"])
        for group, places in targets.groupby("group", sort=False).indices.items():
            of_group = np.flatnonzero(answers["group"] == group)
            wanted = pd.Index(targets["prompt_key"].iloc[places], dtype=object)
            at = pd.Index(key.iloc[of_group], dtype=object).get_indexer(wanted)
            rows[places[at >= 0]] = of_group[at[at >= 0]]
    else:
        wanted = pd.Index(targets["prompt_id"], dtype=object)
        rows = pd.Index(answers["prompt_id"], dtype=object).get_indexer(wanted)
    known = rows >= 0
    answered = targets.copy(deep=False)
    for name in ANSWER_FIELDS:
        values = np.full(len(targets), None, dtype=object)
        if name in answers:
            column = answers[name].to_numpy(dtype=object, na_value=None)  # type: ignore[call-overload]
            values[known] = column[rows[known]]
        answered[name] = pd.Series(values, index=targets.index, dtype=object)
    return answered


def count_replies(answers: pd.DataFrame) -> dict[str, int]:
    """Count replies by finish reason, and reasoning by how it was separated from the answers.

    Args:
        answers: Frame with the columns finish_reason, missing for prompts that were not sent, and
            reasoning_source.

    Returns:
        The counts: kinds such as "stop" and "unclosed_reasoning", then "reasoning: <think>" and
        others.
    """
    kinds = answers["finish_reason"].value_counts().sort_index()
    sources = answers["reasoning_source"].value_counts().sort_index()
    counts = {str(kind): int(n) for kind, n in kinds.items()}
    return counts | {f"reasoning: {source}": int(n) for source, n in sources.items()}
