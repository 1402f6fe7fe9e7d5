"""What every component does for every token of the sampled answers: one Parquet file an answer."""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.errors import (
    BackupComponentsWarning,
    RunMismatchError,
    UndefinedMetricWarning,
)
from surface_consistency.metrics import component_importance, minimal_components
from surface_consistency.reading import parse_json
from surface_consistency.runs import arrow_schema, write_csv, write_json, write_parquet
from surface_consistency.schemas import Items, NonEmpty, Record
from surface_consistency.studies.mechanism.sample import Answer, Sample
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.spans import Span, SpanSource

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation import (
        AblationScores,
        EncodedAnswer,
        LoadedModel,
        RecoveredSet,
        Replacement,
    )

__all__ = [
    "MEASURED_BY",
    "AnswerMechanism",
    "Measured",
    "MeasuredRun",
    "Store",
    "measure_answer",
    "replacement_maker",
]

MEASURED_BY: Final = (
    *("positions", "readout", "ablation", "sets", "threshold", "unit", "target", "whole_answer"),
)
"""Settings of the analysis on which what is measured of an answer depends."""

_MOST_TEXTS: Final = 64


class AnswerMechanism(Record):
    """What the components of a model do for one answer; the row of a Parquet file."""

    answer_id: NonEmpty
    """The answer, as the run names its target."""

    content: NonEmpty
    """Digest of what was read: prompt, answer and span."""

    span_source: SpanSource
    """How the span of the fact was found."""

    tokens: Items[str]
    """Text of each token of the answer, to the last that was read."""

    in_span: Items[bool]
    """Whether each token belongs to the span of the fact."""

    is_greedy: Items[bool]
    """Whether each token is the one that the model would write."""

    base: Items[float]
    """Readout of each token in the untouched model."""

    floor: Items[float]
    """Readout of each token with all components away."""

    ablated: Items[Items[float]]
    """Readout of each token without each component, in the order of `components.csv`."""

    sets: Items[Items[int]]
    """For each token of the span the columns of its minimal set; empty for others."""

    recovery: Items[float]
    """For each token of the span what its set recovers; NaN for others."""

    is_reached: Items[bool]
    """For each token of the span whether that reaches the threshold; False for others."""

    joint: Items[float]
    """For each token of the span what goes with its whole set; NaN for others, and where sets are
    by sum."""

    sum_of_parts: Items[float]
    """For each token of the span the sum of what goes with each of its set; NaN for others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """One answer, as arrays."""

    row: AnswerMechanism
    """The row."""

    importance: npt.NDArray[np.float64]
    """Importance of each component for each token, `(n_tokens, n_components)`; NaN where the
    untouched readout is 0."""

    @property
    def in_span(self) -> npt.NDArray[np.bool_]:
        """Whether each token belongs to the span."""
        return np.array(self.row.in_span, dtype=bool)

    @property
    def masks(self) -> npt.NDArray[np.bool_]:
        """Minimal sets of the span's tokens as rows, `(n_span_tokens, n_components)`."""
        places = np.flatnonzero(self.in_span)
        masks = np.zeros((len(places), self.importance.shape[1]), dtype=bool)
        for number, place in enumerate(places):
            masks[number, list(self.row.sets[place])] = True
        return masks

    def share_reached_by_sum(self, threshold: float) -> float:
        """Tell for which share of the span's tokens positive importances add up to the threshold.

        Args:
            threshold: The threshold.

        Returns:
            The share; NaN without such tokens.
        """
        rows = self.importance[self.in_span]
        rows = rows[np.isfinite(rows).all(axis=1)]
        return (
            float((np.clip(rows, 0, None).sum(axis=1) >= threshold).mean()) if len(rows) else np.nan
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredRun:
    """What was measured of one run."""

    label: str
    """The run."""

    sample: Sample
    """Its pairs."""

    spans: Mapping[str, Span]
    """The span of the fact in each answer."""

    measured: Mapping[str, Measured]
    """Each answer in which the fact was found."""

    similarity: pd.DataFrame
    """One row a pair and way of comparing."""

    heads: npt.NDArray[np.int64]
    """Columns of the heads among the importances."""

    mlps: npt.NDArray[np.int64]
    """Columns of the MLPs."""

    names: Sequence[str]
    """Names of all components."""

    fingerprint: Mapping[str, Any]
    """The model, and how it was ablated."""


class _TokenSet(NamedTuple):
    """The minimal set of a token where none was sought by runs, as a `RecoveredSet` tells it."""

    components: tuple[int, ...] = ()
    recovery: float = np.nan
    is_reached: bool = False
    joint: float = np.nan
    sum_of_parts: float = np.nan


class Store:
    """A folder of measured answers, to which a stopped analysis comes back.

    Args:
        folder: The folder; made if it is not there.
        settings: How answers are looked into.
        fingerprint: The model and how it was ablated.
        components: Name, kind and layer of each component.

    Raises:
        RunMismatchError: If the folder holds answers that were looked into otherwise.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        fingerprint: Mapping[str, Any],
        components: pd.DataFrame,
    ) -> None:
        self.folder = folder
        manifest = {"settings": dict(settings), "model": dict(fingerprint)}
        manifest = json.loads(json.dumps(manifest))
        path = folder / "manifest.json"
        (folder / "importances").mkdir(parents=True, exist_ok=True)
        if path.is_file():
            known = parse_json(path.read_bytes(), str(path))
            for part, now in manifest.items():
                before = known.get(part, {})
                changed = sorted(
                    name for name in {*before, *now} if before.get(name) != now.get(name)
                )
                if changed:
                    name = changed[0]
                    raise RunMismatchError(
                        f"{folder} holds answers that were looked into with other settings: {name} "
                        f"is {before.get(name)!r} there and {now.get(name)!r} now; give another "
                        "--store, or the same settings"
                    )
        write_json(path, manifest)
        write_csv(folder / "components.csv", components)

    def read(self, answer_id: str, content: str) -> AnswerMechanism | None:
        """Read an answer that was looked into before.

        Args:
            answer_id: The answer.
            content: Digest of what is to be read now.

        Returns:
            The row; None if there is none, or it is of another content.
        """
        path = self._path(answer_id)
        if not path.is_file():
            return None
        row = AnswerMechanism.model_validate(pq.read_table(path).to_pylist()[0])
        return row if (row.answer_id, row.content) == (answer_id, content) else None

    def write(self, row: AnswerMechanism) -> None:
        """Write an answer.

        Args:
            row: The row.
        """
        # From a frame, numbers that are not defined would become gaps.
        table = pa.Table.from_pylist([row.model_dump()], schema=arrow_schema(AnswerMechanism))
        write_parquet(self._path(row.answer_id), table)

    def _path(self, answer_id: str) -> Path:
        """Name the file of an answer."""
        name = hashlib.sha256(answer_id.encode()).hexdigest()[:16]
        return self.folder / "importances" / f"{name}.parquet"


def measure_answer(
    loaded: "LoadedModel",
    answer: Answer,
    span: Span,
    settings: MechanismSettings,
    *,
    store: Store,
    replacement: "Callable[[Answer], Replacement | None]",
) -> Measured:
    """Look into one answer, or read what was found before.

    Args:
        loaded: The model.
        answer: The answer.
        span: The span of the fact in it, which was found.
        settings: How.
        store: Where the result is kept.
        replacement: Makes what stands in for components, as from `replacement_maker`.

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        importance = component_importance(row.base, np.array(row.ablated), negative="absolute")
    return Measured(row=row, importance=importance)


def _text(answer: Answer, span: Span, settings: MechanismSettings) -> tuple[str, tuple[int, int]]:
    """Say what the model reads after the prompt, and where the span stands in it."""
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
    """Run the model."""
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
    rows = [sets.get(place, _TokenSet()) for place in range(len(encoded.tokens))]
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
) -> "Sequence[RecoveredSet | _TokenSet]":
    """Find the minimal sets of some tokens, by runs or by sums."""
    from surface_consistency.studies.mechanism.ablation import recover

    with warnings.catch_warnings():
        # Counted in a table of their own.
        warnings.simplefilter("ignore", BackupComponentsWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
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


def _set_by_sum(shares: npt.NDArray[np.float64], threshold: float) -> _TokenSet:
    """Find the fewest components of a token whose importances add up to the threshold."""
    if not np.isfinite(shares).all():
        return _TokenSet()
    smallest = minimal_components(shares, threshold=threshold)
    return _TokenSet(
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
    """Make the function that makes what stands in for components in an answer.

    Args:
        loaded: The model.
        answers: All sampled answers under one condition whose spans were found.
        spans: Their spans.
        settings: How.

    Returns:
        A function of one of these answers. It gives None under zero ablation; under "mean" the mean
        over the prompts of the condition, 64 of them at most; under "resample" the text of the next
        answer, of the first one for the last.
    """
    from surface_consistency.studies.mechanism.ablation import (
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
