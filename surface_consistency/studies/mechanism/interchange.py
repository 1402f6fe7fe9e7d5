"""Interchange: the value of a component under one condition, put into the run under the other.

A flip is a fact that is answered right under one condition and wrong under the other. Both runs
read the same words after their own prompts: those of the right answer. Values from the right run,
put into the wrong one, may *restore* the words; values from the wrong run, put into the right one,
may *break* them. What the values of another fact do, asked under the same condition, is the floor.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    cluster_bootstrap,
    paired_by,
)
from surface_consistency.report import tabulate
from surface_consistency.schemas import Items
from surface_consistency.studies.mechanism.sample import Answer, Sample, SampledPair
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.spans import Span
from surface_consistency.studies.mechanism.store import SampledRun, Store, StoredAnswer

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation import (
        AblationModel,
        LoadedModel,
        TokenizedAnswer,
    )

ALL_COMPONENTS: Final = "all"
"""Label of the rows in which every component has its value from the source."""

_DIRECTIONS: Final = ("restore", "break")
_GROUP: Final = ["model", "direction", "component"]
_RATES: Final = {
    "by_condition": PAIRED_RATES["second_accuracy"],
    "by_fact": PAIRED_RATES["first_accuracy"],
    "difference": PAIRED_RATES["accuracy_difference"],
}
_ROWS: Final = [
    *(*_GROUP, "n", "n_clusters"),
    *(f"{name}{end}" for name in (*_RATES, "way") for end in ("", "_low", "_high")),
    *("p_value", "adjusted_p_value"),
]


class Interchange(StoredAnswer):
    """What values from another prompt do in the run of one answer; the row of a Parquet file."""

    folder_name: ClassVar[str] = "interchanges"
    depends_on: ClassVar[tuple[str, ...]] = ("ablation", "positions", "readout", "unit", "target")

    tokens: Items[str]
    """Text of each token that is read."""

    base: Items[float]
    """Readout of each token in the untouched run."""

    is_greedy: Items[bool]
    """Whether each token is the one that the untouched model would write."""

    patched: Items[Items[float]]
    """Readout of each token with each component's value from the other prompt, in the order of
    `components.csv`, and with those of all components at last."""

    is_written: Items[bool]
    """Whether the model would then write all the tokens, in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InterchangedRun(SampledRun):
    """What interchange did in one run, whose sampled pairs are flips."""

    flips: pd.DataFrame
    """One row a flip: model, pair_id, right ("first" or "second", the condition under which it is
    right), words, and reason (why it cannot be looked into; "" where it can)."""

    effects: pd.DataFrame
    """One row a flip, direction and component: model, direction ("restore" or "break"), component,
    pair_id, cluster, by_condition and by_fact (whether the component's value under the other
    condition, and under the same for another fact, restores or breaks the words), way and whole
    (how far it moves the readout, and how far the other condition's is away)."""


class _Reading(NamedTuple):
    """Words after the prompt of an answer."""

    answer_id: str
    text: "TokenizedAnswer"
    tokens: tuple[str, ...]
    model: "AblationModel"

    @property
    def words(self) -> tuple[int, ...]:
        """The tokens of the words."""
        return tuple(self.text.ids[self.text.start :])


def flips_of(sample: Sample) -> Sample:
    """Keep the pairs that are right once.

    Args:
        sample: Pairs of a run.

    Returns:
        Those of which one answer alone is right.

    Raises:
        DataError: If there is none.
    """
    flips = tuple(pair for pair in sample.pairs if not pair.is_aligned)
    counts = sample.counts | {"drawn_aligned": 0}
    if not flips:
        raise DataError(
            f"{sample.counts['model']} has no pair that is right once, so nothing can be restored "
            "or broken; take another --ablation"
        )
    return replace(sample, pairs=flips, counts=counts)


class Interchanger:
    """Puts values under one condition into the run under the other.

    Args:
        models: The model of first answers, and that of second ones: mostly the same.
        spans: The span of the fact in each answer.
        settings: Where values are put in, what is read, and whose words.
        store: Where results are kept.
    """

    def __init__(
        self,
        models: "tuple[LoadedModel, LoadedModel]",
        spans: Mapping[str, Span],
        settings: MechanismSettings,
        store: Store[Interchange],
    ) -> None:
        self._models, self._spans, self._settings = models, spans, settings
        self._store = store
        self._names = [component.name for component in models[0].model.map.components]

    def run(self, label: str, sample: Sample) -> InterchangedRun:
        """Look into all flips of a run.

        Args:
            label: The run.
            sample: Its flips.

        Returns:
            What was restored and broken.

        Raises:
            RunnerError: If the model cannot read a text.

        Notes:
            A flip is left out, with a reason, where its fact is not found in an answer; where its
            words are other tokens after the other prompt; where the model does not write them again
            under the condition that was right, or writes them under both; and where no other fact
            of the sample has another answer and was right under the same condition alone.
        """
        flips, effects = [], []
        for place, pair in enumerate(sample.pairs):
            # Others in a circle, so that each serves about as often.
            others = (*sample.pairs[place + 1 :], *sample.pairs[:place])
            reason, of_pair = self._of_pair(pair, others)
            right = "first" if pair.is_first_right else "second"
            own = {"model": label, "pair_id": pair.pair_id}
            flips.append({**own, "right": right, "words": self._words(pair), "reason": reason})
            effects += [frame.assign(**own, cluster=pair.cluster) for frame in of_pair]
        return InterchangedRun(
            label=label,
            sample=sample,
            spans=self._spans,
            flips=pd.DataFrame(flips),
            effects=pd.concat(effects, ignore_index=True) if effects else pd.DataFrame(),
            components=self._models[0].model.map,
            fingerprint=self._models[0].model.fingerprint(),
        )

    def _of_pair(
        self, pair: SampledPair, others: Sequence[SampledPair]
    ) -> tuple[str, list[pd.DataFrame]]:
        """Look into one flip: why it cannot be, or its rows in both directions."""
        if not self._is_found(pair):
            return "the fact is not found in an answer", []
        right, wrong = self._readings(pair, self._words(pair))
        if right.words != wrong.words:
            return "its words are other tokens after the other prompt", []
        own = [self._put(wrong, right), self._put(right, wrong)]
        if not all(own[1].is_greedy):
            return "its words are not written again where they were right", []
        if all(own[0].is_greedy):
            return "its words are written under both conditions", []
        sources = self._other_fact(pair, others, right.words)
        if sources is None:
            return "no other fact of the sample can be held against it", []
        floor = [self._put(wrong, sources[0]), self._put(right, sources[1])]
        return "", [
            self._effects(direction, own[place], own[1 - place], floor[place])
            for place, direction in enumerate(_DIRECTIONS)
        ]

    def _is_found(self, pair: SampledPair) -> bool:
        """Tell whether the fact is found in both answers."""
        return all(self._spans[answer.id].is_found for answer in (pair.first, pair.second))

    def _words(self, pair: SampledPair) -> str:
        """Give the words that are read under both conditions."""
        answer = pair.by_verdict[0]
        if self._settings.target == "reference":
            return answer.accepted[0]
        span = self._spans[answer.id]
        return answer.text[span.start : span.stop]

    def _readings(self, pair: SampledPair, words: str) -> list[_Reading]:
        """Put words in the place of the fact in both answers, the right one first."""
        models = self._models if pair.is_first_right else self._models[::-1]
        return [
            self._reading(answer, words, loaded)
            for answer, loaded in zip(pair.by_verdict, models, strict=True)
        ]

    def _reading(self, answer: Answer, words: str, loaded: "LoadedModel") -> _Reading:
        """Put words in the place of the fact in an answer."""
        start = self._spans[answer.id].start
        encoded = loaded.encoder.encode(
            answer.prompt, answer.text[:start] + words, span=(start, start + len(words))
        )
        before = encoded.in_span.index(True)
        text = replace(encoded.answer, start=encoded.answer.start + before)
        return _Reading(answer.id, text, encoded.tokens[before:], loaded.model)

    def _other_fact(
        self, pair: SampledPair, others: Sequence[SampledPair], words: tuple[int, ...]
    ) -> list[_Reading] | None:
        """Read the words after the prompts of another fact with another answer."""
        for other in others:
            is_alike = other.is_first_right == pair.is_first_right and self._is_found(other)
            if is_alike and not _accepted(pair) & _accepted(other):
                readings = self._readings(other, self._words(pair))
                if all(reading.words == words for reading in readings):
                    return readings
        return None

    def _put(self, answer: _Reading, source: _Reading) -> Interchange:
        """Put the values of a source into the run of an answer, or read what was found before."""
        from surface_consistency.studies.mechanism.ablation import ablate, resample_replacement

        key = f"{answer.answer_id} from {source.answer_id}"
        texts = [[*reading.text.ids, reading.text.start] for reading in (answer, source)]
        content = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
        row = self._store.read(key, content)
        if row is not None:
            return row
        options = self._settings
        scores = ablate(
            answer.model,
            answer.text,
            positions=options.positions,
            readout=options.readout,
            replacement=resample_replacement(
                source.model, source.text.ids, start=source.text.start
            ),
            greedy=True,
            max_rows=options.max_rows,
        )
        greedy = np.column_stack([scores.ablated_greedy, scores.floor_greedy])
        row = Interchange(
            answer_id=key,
            content=content,
            tokens=answer.tokens,
            base=tuple(scores.base.tolist()),
            is_greedy=tuple(scores.is_greedy.tolist()),
            patched=tuple(
                tuple(row) for row in np.column_stack([scores.ablated, scores.floor]).tolist()
            ),
            is_written=tuple(all(column) for column in greedy.T.tolist()),
        )
        self._store.write(row)
        return row

    def _effects(
        self, direction: str, own: Interchange, other: Interchange, floor: Interchange
    ) -> pd.DataFrame:
        """Lay out what the values of the other condition, and of another fact, do in a run."""
        is_restored = direction == "restore"
        return pd.DataFrame(
            {
                "direction": direction,
                "component": [*self._names, ALL_COMPONENTS],
                "by_condition": np.array(own.is_written) == is_restored,
                "by_fact": np.array(floor.is_written) == is_restored,
                "way": np.sum(own.patched, axis=0) - sum(own.base),
                "whole": sum(other.base) - sum(own.base),
            }
        )


def _accepted(pair: SampledPair) -> set[str]:
    """List the accepted answers of a fact, in any case."""
    return {text.casefold() for answer in (pair.first, pair.second) for text in answer.accepted}


def interchange_rows(runs: Sequence[InterchangedRun]) -> pd.DataFrame:
    """Compute what each component restores and breaks, beside what another fact's value does.

    Args:
        runs: What interchange did.

    Returns:
        One row a model, direction and component, in the order of the model, all components
        together at last: n, n_clusters; by_condition and by_fact, the shares of flips, in [0, 1],
        that are restored (broken) by the value under the other condition, and under it for another
        fact, and their difference, in [-1, 1], each with an interval that takes clusters whole;
        p_value, of the same t as the interval of the difference, and adjusted_p_value, by Holm's
        method over the single components of a model and direction; and way, what the readout moves
        over what it would have to, both summed before they are divided: 1 where all of the way is
        gone, any number otherwise. NaN, with an `UndefinedMetricWarning`, where clusters are too
        few, or both conditions read alike. No rows without a flip.
    """
    effects = pd.concat([run.effects for run in runs], ignore_index=True)
    if effects.empty:
        return pd.DataFrame(columns=_ROWS)
    rates = paired_by(
        effects,
        by=_GROUP,
        first="by_fact",
        second="by_condition",
        cluster="cluster",
        pair_id="pair_id",
        rates=_RATES,
    )
    rows = tabulate(effects, _GROUP, _way).merge(rates, on=_GROUP)
    rows = rows.rename(columns={"mcnemar_p_value": "p_value"})
    tests = rows.assign(is_all=rows["component"] == ALL_COMPONENTS).groupby(
        ["model", "direction", "is_all"]
    )
    return rows.assign(adjusted_p_value=tests["p_value"].transform(adjust_p_values))[_ROWS]


def _way(part: pd.DataFrame) -> dict[str, object]:
    """Compute how far readouts go towards those of the other condition, summed over flips."""
    sums = part.groupby("cluster")[["way", "whole"]].sum().to_numpy()
    return dict(
        zip(("way", "way_low", "way_high"), cluster_bootstrap(sums, _quotient), strict=True)
    )


def _quotient(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide the first of two sums by the second; NaN where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1]))
