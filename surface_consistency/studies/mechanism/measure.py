"""Measure the importance of every component for every token of the sampled answers."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics import component_importance, minimal_components
from surface_consistency.studies.mechanism.ablation.scores import RecoveredSet
from surface_consistency.studies.mechanism.sample import Answer
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.spans import Span
from surface_consistency.studies.mechanism.store import AnswerMechanism, Measured, Store

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.readout import Replacement
    from surface_consistency.studies.mechanism.ablation.scores import AblationScores
    from surface_consistency.studies.mechanism.ablation.texts import EncodedAnswer, LoadedModel

_MOST_TEXTS: Final = 64


def measure_answer(
    loaded: "LoadedModel",
    answer: Answer,
    span: Span,
    settings: MechanismSettings,
    *,
    store: Store,
    replacement: "Callable[[Answer], Replacement | None]",
) -> Measured:
    """Measure one answer, or read its result from the store.

    Args:
        loaded: The model.
        answer: The answer.
        span: The span of the fact in it; it must be found.
        settings: The settings.
        store: Store of the results.
        replacement: Function that makes replacement values, as from `replacement_maker`.

    Returns:
        The answer with its importances.

    Raises:
        RunnerError: If the model cannot read it.
    """
    text, place = _text(answer, span, settings)
    content = hashlib.sha256(
        json.dumps([answer.prompt.key, text, *place, span.source]).encode()
    ).hexdigest()[:32]
    row = store.read(answer.id, content)
    if row is None:
        encoded = loaded.encoder.encode(answer.prompt, text, span=place)
        row = _measure(loaded, answer, encoded, span, content, settings, replacement(answer))
        store.write(row)
    importance = component_importance(row.base, np.array(row.ablated), negative="absolute")
    return Measured(row=row, importance=importance)


def _text(answer: Answer, span: Span, settings: MechanismSettings) -> tuple[str, tuple[int, int]]:
    """Return the text that the model reads after the prompt, and the place of the span in it."""
    if settings.target == "reference":
        before = answer.text[: span.start]
        return before + answer.accepted[0], (span.start, span.start + len(answer.accepted[0]))
    text = answer.text if settings.whole_answer else answer.text[: span.stop]
    return text, (span.start, span.stop)


def _measure(
    loaded: "LoadedModel",
    answer: Answer,
    encoded: "EncodedAnswer",
    span: Span,
    content: str,
    settings: MechanismSettings,
    replacement: "Replacement | None",
) -> AnswerMechanism:
    """Run the model and make the row of an answer."""
    from surface_consistency.studies.mechanism.ablation import ablate

    scores = ablate(
        loaded.model,
        encoded.answer,
        positions=settings.positions,
        readout=settings.readout,
        replacement=replacement,
        max_rows=settings.max_rows,
    )
    places = [place for place, inside in enumerate(encoded.in_span) if inside]
    sets = dict(zip(places, _sets(loaded, scores, places, settings), strict=True))
    rows = [sets.get(place, RecoveredSet()) for place in range(len(encoded.tokens))]
    return AnswerMechanism(
        answer_id=answer.id,
        content=content,
        span_source=span.source,
        tokens=encoded.tokens,
        in_span=encoded.in_span,
        is_greedy=tuple(scores.is_greedy.tolist()),
        base=tuple(scores.base.tolist()),
        floor=tuple(scores.floor.tolist()),
        ablated=tuple(tuple(values) for values in scores.ablated.tolist()),
        sets=tuple(row.components for row in rows),
        recovery=tuple(row.recovery for row in rows),
        is_reached=tuple(row.is_reached for row in rows),
        joint=tuple(row.joint for row in rows),
        sum_of_parts=tuple(row.sum_of_parts for row in rows),
    )


def _sets(
    loaded: "LoadedModel",
    scores: "AblationScores",
    places: Sequence[int],
    settings: MechanismSettings,
) -> Sequence[RecoveredSet]:
    """Find the minimal sets of some tokens, by runs or by sums."""
    from surface_consistency.studies.mechanism.ablation import recover

    if settings.sets == "run":
        return recover(
            loaded.model,
            scores,
            tokens=places,
            threshold=settings.threshold,
            max_rows=settings.max_rows,
        )
    shares = component_importance(scores.base, scores.ablated, negative="absolute")
    return [_set_by_sum(shares[place], settings.threshold) for place in places]


def _set_by_sum(shares: npt.NDArray[np.float64], threshold: float) -> RecoveredSet:
    """Find the smallest set of components whose importances for a token sum to the threshold."""
    if not np.isfinite(shares).all():
        return RecoveredSet()
    smallest = minimal_components(shares, threshold=threshold)
    return RecoveredSet(
        components=smallest.components,
        recovery=smallest.recovery,
        is_reached=smallest.is_reached,
        sum_of_parts=float(shares[list(smallest.components)].sum()),
    )


def replacement_maker(
    loaded: "LoadedModel",
    answers: Sequence[Answer],
    spans: Mapping[str, Span],
    settings: MechanismSettings,
) -> "Callable[[Answer], Replacement | None]":
    """Make the function that returns the replacement values for an answer.

    Args:
        loaded: The model.
        answers: All sampled answers under one condition whose spans were found.
        spans: Their spans.
        settings: The settings.

    Returns:
        A function of one of these answers. It returns None for zero ablation; for "mean" the mean
        over at most 64 prompts of the condition; for "resample" the values under the text of the
        next answer, or of the first answer for the last one.
    """
    from surface_consistency.studies.mechanism.ablation.replacement import (
        mean_replacement,
        resample_replacement,
    )

    places = {answer.id: place for place, answer in enumerate(answers)}

    @cache
    def mean() -> "Replacement":
        texts = [loaded.encoder.prompt_ids(answer.prompt) for answer in answers[:_MOST_TEXTS]]
        return mean_replacement(loaded.model, texts)

    def of_answer(answer: Answer) -> "Replacement | None":
        if settings.ablation == "zero":
            return None
        if settings.ablation == "mean":
            return mean()
        other = answers[(places[answer.id] + 1) % len(answers)]
        text, where = _text(other, spans[other.id], settings)
        read = loaded.encoder.encode(other.prompt, text, span=where).answer
        return resample_replacement(loaded.model, read.ids, start=read.start)

    return of_answer
