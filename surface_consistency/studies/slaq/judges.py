"""SLAQ's judges: strings for names and dates, a model for whatever is said."""

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
    """Looks for the reference in the part of an answer that answers, by a matching rule.

    A short answer is one part. Of a long or free one it is the item of the question's number, or
    the sentences that speak of what the question asks for; see `LongAnswer`. A reference counts
    with and without its full stop and a leading article. In free form a fact that is found counts
    as recalled; of one that is not found a string matcher cannot tell whether the text is silent on
    it or wrong, so `is_recalled` is missing.

    Args:
        rule: Name of the matching rule, one of `matching.RULES`.
        entities_only: Leave facts whose answer is not a named entity unjudged: descriptions seldom
            come back word by word. Facts without an entity flag are judged.
        part: What is read of a long answer: "answering", or "whole", which takes what stands
            anywhere in the text for what is said of the question.

    Raises:
        ValueError: If there is no such rule or part.

    Notes:
        `matcher_agreement` measures it on answers that are labelled by reading.
    """

    name: str
    """`matcher:` and the rule, and the part unless it is the answering one."""

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
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge, with the columns question, topic and slot.

        Returns:
            prediction, the whole answer; correct, is_recalled, matched_answer, score and reason.
        """
        texts = targets["text"].astype(object)
        is_missing = texts.isna().to_numpy()
        is_skipped = ~is_missing & self._entities_only & _is_description(targets["is_entity"])
        is_left_out = is_missing | is_skipped
        parts = answering_parts(targets) if self._part == "answering" else [(t,) for t in texts]
        owners = np.repeat(np.arange(len(parts)), [max(1, len(spans)) for spans in parts])
        judged = match_columns(
            [
                None if left_out else text
                for spans, left_out in zip(parts, is_left_out, strict=True)
                for text in spans or ("",)
            ],
            [_reference_forms(targets["references"].iloc[place]) for place in owners],
            rule=self._rule,
        )
        best = _best_parts(owners, judged.score, np.array([m is True for m in judged.is_match]))
        correct = pd.array([judged.is_match[place] for place in best], dtype="boolean")
        is_free = (targets["form"] == "free").to_numpy()
        is_told = is_free & np.asarray(correct.fillna(False), dtype=bool)
        reasons = [NO_ANSWER, "the reference is no named entity"]
        reason = pd.Series(np.select([is_missing, is_skipped], reasons, default=""), dtype=TEXT)
        return pd.DataFrame(
            {
                "prediction": pd.Series(texts.to_numpy(), dtype=TEXT),
                "correct": correct,
                "is_recalled": pd.arrays.BooleanArray(is_told, ~is_told),
                "matched_answer": pd.Series(
                    [judged.reference[place] for place in best], dtype=TEXT
                ),
                "score": judged.score[best],
                "reason": reason.mask(reason == ""),
            }
        )


def answering_parts(targets: pd.DataFrame) -> list[tuple[str, ...]]:
    """Find the part of each answer that answers; see `LongAnswer`.

    Args:
        targets: What is judged: prompt_id, form, question, topic, slot, and text, missing where
            there is none.

    Returns:
        For each target the parts of its text; the whole of a short answer, none of a missing one.
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
    """Hold the string matcher of SLAQ against answers that are labelled by reading.

    Args:
        rule: As for `MatcherJudge`.
        part: As for `MatcherJudge`.
        entities_only: Leave out facts whose answer is not a named entity.
        form: Short or long answers; both when None.

    Returns:
        The columns of `metrics.judge_agreement` on the 480 labelled facts of
        `load_labelled_answers`.

    Raises:
        ValueError: If there is no such rule or part.

    Notes:
        The rules by which `LongAnswer` chooses were written with these answers in view, so the
        agreement is that of the best case; and they are one small model's, which is seldom right.

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
    right = judge.judge(targets)["correct"]
    is_judged = right.notna().to_numpy()
    labels = labelled["correct"].to_numpy(bool)
    return judge_agreement(labels[is_judged], right[is_judged].to_numpy(bool))


class SlaqLLMJudge(LLMJudge):
    """Asks a model whether answers are right: a long answer with its five facts in one request.

    Of a free text it also asks which facts the text speaks of at all. See `LLMJudge`.

    Args:
        runner: As for `LLMJudge`.
        folder: As for `LLMJudge`.
        model: As for `LLMJudge`.
        prompts: "own", or "paper" for the words of the paper's tables 2 and 3. Free answers, which
            the paper does not ask for, and the request to repeat an unreadable reply are always in
            this package's words.
        options: Further arguments of `LLMJudge`.

    Raises:
        ValueError: If `prompts` is neither.
    """

    name: str
    """`llm:` and the label of the model; then the prompts with their digest if they are not own."""

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
        """Which words the requests are in; see `LLMJudge.wording`."""
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
            reply: What the judging model wrote.

        Returns:
            One state a fact.

        Raises:
            JudgeReplyError: If the reply is not in the form that was asked for.
        """
        if _is_free(targets):
            return parse_states(reply, len(targets))
        return super().read(targets, reply)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `LLMJudge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, correct, is_recalled, reason, raw and attempts.

        Raises:
            RunError: If the folder holds the log of another judge, or of other wording.
            RunnerError: If the judging model cannot be asked.
        """
        judged = self.judge_states(targets)
        is_told = (targets["form"] == "free").to_numpy() & judged["state"].notna().to_numpy()
        recalled = (judged["state"] != "absent").to_numpy(bool)
        return judged.drop(columns="state").assign(
            is_recalled=pd.arrays.BooleanArray(recalled, ~is_told)
        )


def _reference_forms(accepted: Sequence[str]) -> tuple[str, ...]:
    """Accept a reference with and without its full stop and a leading article."""
    reference = accepted[0]
    plain = reference.rstrip(". ")
    forms = (reference, plain, *(_ARTICLE.sub("", text) for text in (reference, plain)))
    return tuple(text for text in dict.fromkeys(forms) if text.strip())


def _best_parts(
    owners: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], matched: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Choose for each answer the part that matches best, the first among equals."""
    order = np.lexsort((np.arange(len(owners)), -np.nan_to_num(scores), ~matched, owners))
    _, first = np.unique(owners[order], return_index=True)
    return order[first]


def _is_description(is_entity: pd.Series) -> np.ndarray:
    """Tell facts that the source says are no named entity."""
    return is_entity.astype("boolean").eq(False).fillna(False).to_numpy(bool)


def _is_free(targets: pd.DataFrame) -> bool:
    """Tell whether an answer was written without knowing the questions."""
    return bool(targets["form"].iloc[0] == "free")
