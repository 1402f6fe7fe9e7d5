"""The linking probe: whether a model affirms that two names denote one entity.

The probe is appendix B.5 of RedirectQA (arXiv 2604.21882). Every question is sent in both orders of
the two names; the answers to one example in both orders are a pair of this study.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Final, get_args

import numpy as np
import pandas as pd

from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.study import Study
from surface_consistency.errors import DataError
from surface_consistency.metrics.linking.linking import LINKING_KINDS
from surface_consistency.models.options import TIE, check_scores_of_options, is_even
from surface_consistency.models.runner import Runner
from surface_consistency.plugins import Plugins
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import TEXT
from surface_consistency.schemas import GenerationParams, Prompt, read_jsonl
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.studies.linking.data import NameEncoder, linking_examples, word_vectors
from surface_consistency.studies.linking.page import KIND_TITLES, LINKING_PAGE
from surface_consistency.studies.linking.prompts import (
    LINKING_WORDINGS,
    NO_WORDS,
    YES_WORDS,
    LinkingOrder,
    linking_prompt,
    linking_question,
)
from surface_consistency.studies.linking.records import LinkingOutcome, LinkingVerdict
from surface_consistency.studies.linking.settings import RECORDS, LinkingScoring, LinkingSettings
from surface_consistency.studies.redirectqa.settings import RedirectQASource
from surface_consistency.studies.redirectqa.study import RedirectQAStudy, reject_other_data

_ORDERS: Final = get_args(LinkingOrder)
_NOTHING: Final = "N/A"
_CALIBRATION: Final = "calibration"
_TARGETS: Final = [
    "target_id",
    "prompt_id",
    "references",
    "item",
    "subject_id",
    "question",
    "kind",
    "category",
    "order",
]
_WORDS: Final = (*YES_WORDS, *NO_WORDS)
_ENCODERS: Final = Plugins(
    "",
    "encoder of names",
    built_in={"names": "surface_consistency.studies.linking.data:ngram_vectors"},
    error=DataError,
)
_FIRST_WORD: Final = re.compile(r"\w+")


class LinkingJudge:
    """Reads yes or no from the log-odds of the words, or from the first generated word.

    Args:
        baselines: Log-odds of each wording and order with N/A for the names, by prompt id.
        is_calibrated: Whether the baselines are subtracted before the sign is read.
    """

    name: str
    """Source of yes and no."""

    def __init__(self, baselines: Mapping[str, float], *, is_calibrated: bool = False) -> None:
        if is_calibrated and not baselines:
            raise DataError(
                "`calibrated` needs log-odds of the wordings with N/A for both names, which this "
                "run does not contain; run with `calibrate`, `read=log-odds`"
            )
        self._baselines = baselines
        self._is_calibrated = is_calibrated
        self.name = "calibrated log-odds" if is_calibrated else "yes or no"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `engine.judging.judges.Judge.judge`.

        Returns:
            prediction, correct, reason, log_odds and calibrated_log_odds.

        Raises:
            DataError: If an answer has more or fewer scores than the question has options.
        """
        check_scores_of_options(
            targets["prompt_id"], repeat(_WORDS, len(targets)), targets["scores"]
        )
        rows = [
            self._judge(text, scores, kind, _baseline_id(category, order))
            for text, scores, kind, category, order in zip(
                *(targets[name] for name in ("text", "scores", "kind", "category", "order")),
                strict=True,
            )
        ]
        columns = ["prediction", "correct", "reason", "log_odds", "calibrated_log_odds"]
        frame = pd.DataFrame(rows, columns=columns, index=targets.index)
        floats = dict.fromkeys(("log_odds", "calibrated_log_odds"), "Float64")
        return frame.astype({"prediction": TEXT, "reason": TEXT, "correct": "boolean", **floats})

    def _judge(
        self, text: str | None, scores: Sequence[ScoredText] | None, kind: str, wording: str
    ) -> tuple[str | None, bool | None, str | None, float | None, float | None]:
        """Score one answer."""
        if scores is None:
            if not isinstance(text, str):
                return None, None, "no answer", None, None
            first_word = _FIRST_WORD.search(text)
            word = first_word[0].casefold() if first_word else ""
            if word not in ("yes", "no"):
                return text, None, "neither yes nor no", None, None
            return word, (word == "yes") == (kind == "positive"), None, None, None
        odds = log_odds(scores)
        if math.isnan(odds):
            return text, None, "no log-odds: neither yes nor no has a probability", None, None
        baseline = self._baselines.get(wording)
        calibrated = None if baseline is None else odds - baseline
        decisive = calibrated if self._is_calibrated else odds
        if decisive is None:
            return None, None, "no calibration of its wording", odds, None
        if is_even(decisive):
            return None, None, TIE, odds, calibrated
        says_yes = decisive > 0.0
        return "yes" if says_yes else "no", says_yes == (kind == "positive"), None, odds, calibrated


def log_odds(scores: Sequence[ScoredText]) -> float:
    """Compute the log-odds of the words of affirmation against those of denial.

    Args:
        scores: Log-probabilities of the options of `linking_prompt`, in its order.

    Returns:
        Log of the odds, in nats: above 0 an affirmation is more probable; NaN if all words have
        probability 0.

    Examples:
        >>> words = [ScoredText(request_id=str(n), log_probabilities=(math.log(p),))
        ...          for n, p in enumerate((0.4, 0.2, 0.1, 0.1))]
        >>> round(math.exp(log_odds(words)), 6)
        3.0
    """
    values = [score.log_probability for score in scores]
    yes, no = values[: len(YES_WORDS)], values[len(YES_WORDS) :]
    odds = [float(np.logaddexp.reduce(of_words)) for of_words in (yes, no)]
    return math.nan if max(odds) == -math.inf else odds[0] - odds[1]


class LinkingStudy(Study):
    """Test whether a model links two names of one entity."""

    name = "linking"
    design = Design(
        title="Linking probe",
        citation=bibtex("surface_consistency.studies.redirectqa"),
        question="whether a model affirms that two names are of one entity, in both orders",
        conditions=("redirect first", "title first"),
        cells=(
            "correct both times",
            "correct with the redirect first only",
            "title first only",
            "neither",
        ),
        clusters={"subject_id": "subjects", "item": "facts"},
        paper_prompts="the paper prints one wording, that of initialisms (appendix B.5), which is "
        "used; those of the other categories were written for this package",
        groupings={"by_kind": ("kind",)},
        labels={"kind": KIND_TITLES},
    )
    records = replace(RECORDS, verdict=LinkingVerdict, outcome=LinkingOutcome)
    report = LINKING_PAGE

    def load(self, source: RedirectQASource) -> RedirectQA:
        """Load the questions of RedirectQA, which contain the names; see `Study.load`.

        Raises:
            DataError: If they cannot be read.
        """
        return RedirectQAStudy().load(source)

    def plan(
        self, data: RedirectQA, settings: LinkingSettings, *, runner: Runner | None = None
    ) -> Plan:
        """Plan a prompt per example and order of its names, and one per wording with N/A.

        Returns:
            A group of prompts for the examples and one for calibration; one target per example and
            order; one pair per example.

        Raises:
            DataError: If there is no pair of names, or the run is as published and the data are
                another version than the paper's.
        """
        if settings.as_published:
            reject_other_data(data, settings)
        examples = linking_examples(
            data,
            encode=_encoder(settings.neighbours),
            limit=settings.limit,
            seed=settings.seed,
            surface_negative=settings.surface_negative,
        )
        shown, examples = _split_demonstrations(examples, settings)
        if settings.wording == "same-entity":
            examples = examples[examples["is_main"]].assign(category=None)
        ordered = examples.merge(pd.DataFrame({"order": _ORDERS}), how="cross")
        names = ordered["id"] + "/" + ordered["order"]
        answers = [["yes" if kind == "positive" else "no"] for kind in ordered["kind"]]
        targets = ordered.assign(
            target_id=names,
            prompt_id=names,
            references=pd.Series(answers, index=ordered.index),
            question=_questions(ordered),
        )[_TARGETS]

        def group_of(rows: pd.DataFrame, *, is_shared: bool = False) -> PromptGroup:
            columns = (rows[name] for name in ("prompt_id", "question", "order"))
            prompts = [
                linking_prompt(
                    name,
                    question,
                    demonstrations=shown[order],
                    chat=settings.chat,
                    with_options=settings.read == "log-odds",
                ).model_copy(update={"group": order if shown[order] else None})
                for name, question, order in zip(*columns, strict=True)
            ]
            params = GenerationParams(max_new_tokens=settings.max_new_tokens)
            return PromptGroup(prompts=prompts, params=params, is_shared=is_shared)

        groups = {"": group_of(targets)}
        if settings.read == "log-odds" and settings.calibrate:
            empty = ordered.assign(redirect=_NOTHING, canonical=_NOTHING)
            empty["question"] = _questions(empty)
            empty["prompt_id"] = f"{_CALIBRATION}/" + empty["order"] + "/" + empty["question"]
            groups[_CALIBRATION] = group_of(empty.drop_duplicates("prompt_id"), is_shared=True)
        return Plan(
            data=data.source,
            groups=groups,
            items=targets,
            pairs=_pairs(examples),
            checks={"examples": _counts(examples)},
        )

    def judge(self, scoring: LinkingScoring, folder: RunFolder | None) -> LinkingJudge:
        """Make the judge of a run, with the log-odds of its wordings with N/A for the names.

        Raises:
            DataError: If calibrated log-odds are requested and the run has none, or an answer has
                more or fewer scores than the question has options, or there is no run.
        """
        if folder is None:
            raise DataError("linking needs the scores of the options of a run; pass its folder")
        answers = folder.read_answers([_CALIBRATION])
        check_scores_of_options(
            answers["prompt_id"], repeat(_WORDS, len(answers)), answers["scores"]
        )
        by_key = {
            key: odds
            for key, scores in zip(answers["prompt_key"], answers["scores"], strict=True)
            if scores is not None and math.isfinite(odds := log_odds(scores))
        }
        # Wordings that are equal without names are one prompt with one answer.
        prompts = read_jsonl(folder.prompts, Prompt) if by_key else ()
        baselines = {prompt.id: by_key[prompt.key] for prompt in prompts if prompt.key in by_key}
        return LinkingJudge(baselines, is_calibrated=scoring.calibrated)


def _question(redirect: str, canonical: str, category: str | None, order: str) -> str:
    """Make the question for two names in the wording of a category."""
    return linking_question(redirect, canonical, category=category, order=order)  # type: ignore[arg-type]


def _baseline_id(category: object, order: str) -> str:
    """Return the id of the prompt of a wording with N/A for the names."""
    known = category if isinstance(category, str) else None
    return f"{_CALIBRATION}/{order}/{_question(_NOTHING, _NOTHING, known, order)}"


def _split_demonstrations(
    examples: pd.DataFrame, settings: LinkingSettings
) -> tuple[Mapping[str, Sequence[tuple[str, bool]]], pd.DataFrame]:
    """Choose demonstrations, and exclude all examples of their entities."""
    chosen: list[int] = []
    entities: set[str] = set()
    main = examples[examples["is_main"]]
    for place, kind, entity in zip(main.index, main["kind"], main["subject_id"], strict=True):
        wanted = "positive" if len(chosen) % 2 == 0 else "semantic_negative"
        if len(chosen) < settings.shots and entity not in entities and kind == wanted:
            chosen.append(place)
            entities.add(entity)
    if len(chosen) < settings.shots:
        raise DataError(
            f"`shots` {settings.shots} needs as many entities, but the data have {len(chosen)}; "
            "use fewer shots"
        )
    shown = examples.loc[chosen]
    if settings.wording != "category":
        shown = shown.assign(category=None)
    is_true = (shown["kind"] == "positive").tolist()
    demonstrations = {
        order: list(zip(_questions(shown.assign(order=order)), is_true, strict=True))
        for order in _ORDERS
    }
    return demonstrations, examples[~examples["subject_id"].isin(entities)]


def _questions(examples: pd.DataFrame) -> list[str]:
    """Make the question of each example in the order of its row."""
    columns = (examples[name] for name in ("redirect", "canonical", "category", "order"))
    return [_question(*cells) for cells in zip(*columns, strict=True)]


def _pairs(examples: pd.DataFrame) -> pd.DataFrame:
    """List the pairs: each example in both orders."""
    first, second = _ORDERS
    shared = ["item", "source_id", "subject_id", "kind", "is_main", "is_disputable"]
    return examples[shared].assign(
        pair=examples["id"],
        first_condition=first,
        second_condition=second,
        first_target=examples["id"] + f"/{first}",
        second_target=examples["id"] + f"/{second}",
        first_surface=examples["canonical"],
        second_surface=examples["redirect"],
        categories=examples["category"].map(lambda category: [category] if category else []),
        types=examples["types"].map(list),
    )


def _counts(examples: pd.DataFrame) -> pd.DataFrame:
    """Count the pairs, the negatives that could not be made, and pairs with the general wording."""
    true, surface, semantic = (
        set(examples.loc[examples["kind"] == kind, "source_id"]) for kind in LINKING_KINDS
    )
    is_general = ~examples["category"].isin(list(LINKING_WORDINGS))
    row = {
        "pairs": len(true),
        "without_surface_negative": len(true - surface),
        "without_semantic_negative": len(true - semantic),
        "asked_as_same_entity": examples.loc[is_general, "source_id"].nunique(),
        "disputable": examples.loc[examples["is_disputable"], "source_id"].nunique(),
    }
    return pd.DataFrame([row])


def _encoder(neighbours: str) -> NameEncoder:
    """Return the encoder of names that finds similar entities."""
    if neighbours == "embedder":
        from surface_consistency.models.encoders import SentenceEncoder

        return SentenceEncoder().encode
    if Path(neighbours).is_file():
        return word_vectors(neighbours)
    try:
        encode: NameEncoder = _ENCODERS.load(neighbours)
    except DataError as error:
        raise DataError(
            f"`neighbours` must be names, embedder, a text file of word vectors or, on the command "
            f"line, module:attribute; got {neighbours!r} ({error})"
        ) from error
    return encode
