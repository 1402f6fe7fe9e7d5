"""SLAQ's judges: a string matcher for names and dates, and an LLM judge for any answer."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.judging.judges import NO_ANSWER, LLMJudge, facts_of
from surface_consistency.engine.judging.prompts import (
    OWN_WORDS,
    judge_free,
    judge_long,
    judge_short,
    pin_prompts,
)
from surface_consistency.matching.answering_part import LongAnswer, TopicQuestions
from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.judge_reply import FactState, parse_states
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.metrics import judge_agreement
from surface_consistency.models.runner import Runner
from surface_consistency.runs.frames import TEXT
from surface_consistency.schemas import DataSource, Prompt
from surface_consistency.studies.slaq.labels import load_labelled_answers

_ARTICLE: Final = re.compile(r"^(?:the|an?)\s+(?=\S)", re.IGNORECASE)


class MatcherJudge:
    """Matches the reference by a matching rule in the part of an answer that answers the question.

    A short answer is one part. The part of a long or free answer is the item with the question's
    number, or the sentences on the topic of the question; see `LongAnswer`. A reference matches
    with and without its full stop and a leading article. In free form, a fact that is found is
    recalled. If a fact is not found, a string matcher does not detect whether the text omits it or
    states it incorrectly, so `is_recalled` is missing.

    Args:
        rule: Name of the matching rule, one of `matching.RULES`.
        entities_only: Whether facts whose answer is not a named entity are not scored, because
            descriptions are rarely repeated word for word. Facts without an entity flag are scored.
        part: Part of a long answer that is matched: "answering", or "whole", which matches
            the reference anywhere in the text.

    Raises:
        ValueError: If the rule or part is unknown.

    Notes:
        `matcher_agreement` measures its agreement with human labels.
    """

    name: str
    """`matcher:` and the rule; with `part="whole"` also " on whole"."""

    def __init__(
        self,
        rule: str = "boundary",
        *,
        entities_only: bool = True,
        part: Literal["answering", "whole"] = "answering",
    ) -> None:
        if part not in ("answering", "whole"):
            raise ValueError(f"`part` must be 'answering' or 'whole', got {part!r}")
        self._rule = resolve_rule(rule)
        self.name = f"matcher:{rule}" + (" on whole" if part == "whole" else "")
        self._entities_only = entities_only
        self._part = part

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Args:
            targets: Answers to score, with the columns question, topic and slot.

        Returns:
            prediction, the whole answer; correct, is_recalled, matched_answer, score and reason.
        """
        texts = targets["text"].astype(object)
        is_missing = texts.isna().to_numpy()
        is_skipped = ~is_missing & self._entities_only & _is_description(targets["is_entity"])
        is_excluded = is_missing | is_skipped
        parts = answering_parts(targets) if self._part == "answering" else [(t,) for t in texts]
        owners = np.repeat(np.arange(len(parts)), [max(1, len(spans)) for spans in parts])
        matched = match_columns(
            [
                None if excluded else text
                for spans, excluded in zip(parts, is_excluded, strict=True)
                for text in spans or ("",)
            ],
            [_reference_forms(targets["references"].iloc[place]) for place in owners],
            rule=self._rule,
        )
        best = _best_parts(owners, matched.score, np.array([m is True for m in matched.is_match]))
        correct = pd.array([matched.is_match[place] for place in best], dtype="boolean")
        is_free = (targets["form"] == "free").to_numpy()
        is_recalled = is_free & np.asarray(correct.fillna(False), dtype=bool)
        reasons = [NO_ANSWER, "the reference is no named entity"]
        reason = pd.Series(np.select([is_missing, is_skipped], reasons, default=""), dtype=TEXT)
        return pd.DataFrame(
            {
                "prediction": pd.Series(texts.to_numpy(), dtype=TEXT),
                "correct": correct,
                "is_recalled": pd.arrays.BooleanArray(is_recalled, ~is_recalled),
                "matched_answer": pd.Series(
                    [matched.reference[place] for place in best], dtype=TEXT
                ),
                "score": matched.score[best],
                "reason": reason.mask(reason == ""),
            }
        )


def answering_parts(targets: pd.DataFrame) -> list[tuple[str, ...]]:
    """Find the part of each answer that answers the question; see `LongAnswer`.

    Args:
        targets: Answers to score: prompt_id, form, question, topic, slot, and text, missing if
            there is no answer.

    Returns:
        The parts of the text of each target: the whole text of a short answer, an empty tuple if
        the answer is missing.
    """
    parts: list[tuple[str, ...]] = [()] * len(targets)
    columns = (targets[name].to_numpy(object) for name in ("form", "text", "question", "slot"))
    forms, texts, questions, slots = columns
    topics = targets["topic"].to_numpy(object)
    known: dict[tuple[str, ...], TopicQuestions] = {}
    places: Mapping[Any, Any] = targets.groupby("prompt_id", sort=False).indices
    for rows in places.values():
        text = texts[rows[0]]
        if not isinstance(text, str):
            continue
        if forms[rows[0]] == "short":
            for row in rows:
                parts[row] = (text,)
            continue
        listed = tuple(questions[rows])
        if listed not in known:
            known[listed] = TopicQuestions(listed, topic=str(topics[rows[0]]))
        answer = LongAnswer(text, known[listed])
        for index, row in enumerate(rows):
            slot = slots[row]
            parts[row] = answer.parts(index, slot=None if pd.isna(slot) else int(slot))
    return parts


@lru_cache(maxsize=8)
def matcher_agreement(
    rule: str = "boundary",
    *,
    part: Literal["answering", "whole"] = "answering",
    entities_only: bool = False,
    form: Literal["short", "long"] | None = None,
) -> dict[str, Any]:
    """Compare the string matcher of SLAQ with human labels of the bundled answers.

    Args:
        rule: As for `MatcherJudge`.
        part: As for `MatcherJudge`.
        entities_only: Whether facts whose answer is not a named entity are excluded.
        form: Short or long answers; both if None.

    Returns:
        The columns of `metrics.judge_agreement` on the 480 labelled facts of
        `load_labelled_answers`.

    Raises:
        ValueError: If the rule or part is unknown.

    Notes:
        The rules of `LongAnswer` were developed on these answers, so the agreement is optimistic;
        the answers are those of one small model, which is rarely correct.

    Examples:
        >>> names = ["false_positives", "true_positives"]
        >>> old, new = matcher_agreement(part="whole", form="long"), matcher_agreement(form="long")
        >>> [old[name] for name in names], [new[name] for name in names]
        ([11, 25], [4, 25])
    """
    labelled = load_labelled_answers()
    if form is not None:
        labelled = labelled[labelled["form"] == form].reset_index(drop=True)
    targets = labelled.assign(
        text=labelled["answer"], references=labelled["reference"].map(lambda reference: [reference])
    )
    judge = MatcherJudge(rule, entities_only=entities_only, part=part)
    scored = judge.judge(targets)["correct"]
    is_scored = scored.notna().to_numpy()
    labels = labelled["correct"].to_numpy(bool)
    return judge_agreement(labels[is_scored], scored[is_scored].to_numpy(bool))


class SlaqLLMJudge(LLMJudge):
    """LLM judge of the correctness of answers; one request per long answer with its five facts.

    For a free text it also judges which facts the text mentions. See `LLMJudge`.

    Args:
        runner: As for `LLMJudge`.
        folder: As for `LLMJudge`.
        model: As for `LLMJudge`.
        prompts: "own" (the prompts of this package), or "paper" (those of the paper's tables 2 and
            3). The prompts of free answers, which the paper does not have, and of the repetition of
            an unreadable reply are always those of this package.
        options: Further arguments of `LLMJudge`.

    Raises:
        ValueError: If `prompts` is another value.
    """

    name: str
    """`llm:` and the label of the model; if `prompts` is not "own" also the prompts and their
    digest."""

    def __init__(
        self,
        runner: Runner,
        folder: str | os.PathLike[str],
        *,
        model: str,
        prompts: str = OWN_WORDS,
        **options: Any,  # noqa: ANN401 - those of `LLMJudge`
    ) -> None:
        super().__init__(runner, folder, model=model, **options)
        self._prompts = pin_prompts(prompts, "judge")
        if self._prompts != OWN_WORDS:
            self.name += f", prompts {self._prompts}"

    @property
    def wording(self) -> DataSource:
        """Prompts of the requests; see `LLMJudge.wording`."""
        own = super().wording
        if self._prompts == OWN_WORDS:
            return own
        return own.model_copy(update={"revision": None, "digest": self._prompts})

    def request(self, targets: pd.DataFrame, answer: str, name: str) -> Prompt:
        """Write the request on one answer; see `LLMJudge.request`.

        Args:
            targets: The facts of the answer.
            answer: The answer.
            name: Identifier of the request.

        Returns:
            The prompt, a conversation.
        """
        facts = facts_of(targets)
        if _is_free(targets):
            return judge_free(facts, answer, prompt_id=name)
        if len(facts) == 1:
            return judge_short(facts[0], answer, prompt_id=name, prompts=self._prompts)
        return judge_long(facts, answer, prompt_id=name, prompts=self._prompts)

    def read(self, targets: pd.DataFrame, reply: str) -> Sequence[FactState]:
        """Read the reply on one answer; see `LLMJudge.read`.

        Args:
            targets: The facts of the answer.
            reply: The reply of the LLM judge.

        Returns:
            One state per fact.

        Raises:
            JudgeReplyError: If the reply is not in the requested format.
        """
        if _is_free(targets):
            return parse_states(reply, len(targets))
        return super().read(targets, reply)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers by the LLM judge; see `LLMJudge.judge`.

        Args:
            targets: Answers to judge.

        Returns:
            prediction, correct, is_recalled, reason, raw and attempts.

        Raises:
            RunError: If the folder contains the log of another judge, or of other prompts.
            RunnerError: If the LLM judge cannot be queried.
        """
        states = self.judge_states(targets)
        is_known = (targets["form"] == "free").to_numpy() & states["state"].notna().to_numpy()
        recalled = (states["state"] != "absent").to_numpy(bool)
        return states.drop(columns="state").assign(
            is_recalled=pd.arrays.BooleanArray(recalled, ~is_known)
        )


def _reference_forms(accepted: Sequence[str]) -> tuple[str, ...]:
    """Return a reference with and without its full stop and a leading article."""
    reference = accepted[0]
    plain = reference.rstrip(". ")
    forms = (reference, plain, *(_ARTICLE.sub("", text) for text in (reference, plain)))
    return tuple(text for text in dict.fromkeys(forms) if text.strip())


def _best_parts(
    owners: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], matched: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the position of the best-matching part of each answer, the first of equals."""
    order = np.lexsort((np.arange(len(owners)), -np.nan_to_num(scores), ~matched, owners))
    _, first = np.unique(owners[order], return_index=True)
    return order[first]


def _is_description(is_entity: pd.Series) -> np.ndarray:
    """Return which facts the source marks as not a named entity."""
    return is_entity.astype("boolean").eq(False).fillna(False).to_numpy(bool)


def _is_free(targets: pd.DataFrame) -> bool:
    """Return whether an answer is in free form, without the questions in its prompt."""
    return bool(targets["form"].iloc[0] == "free")
