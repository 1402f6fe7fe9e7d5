"""SLAQ's judges: strings for names and dates, a model for whatever is said, people."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from surface_consistency.inference.registry import load_runner
from surface_consistency.matching.bulk import match_columns
from surface_consistency.matching.judge_reply import FactState, parse_states
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.prompts.judge import judge_free
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import Prompt
from surface_consistency.settings_options import values_of_items
from surface_consistency.studies.judging import NO_ANSWER, Judge, LLMJudge, facts_of
from surface_consistency.studies.slaq.labels import read_labels

if TYPE_CHECKING:
    from surface_consistency.studies.slaq.study import SlaqScoring

__all__ = ["HumanJudge", "MatcherJudge", "SlaqLLMJudge", "make_judge"]

_FOLDER: Final = "judges"


class MatcherJudge:
    """Looks for the reference answer in the answer, by a matching rule.

    In a long answer every fact is looked for in the whole text, so a name that answers one question
    also satisfies another with the same reference. In free form a fact that is found counts as
    recalled; of one that is not found a string matcher cannot tell whether the text is silent on it
    or wrong, so `is_recalled` is missing.

    Args:
        rule: Name of the matching rule, one of `matching.RULES`.
        entities_only: Leave facts whose answer is not a named entity unjudged: descriptions seldom
            come back word by word. Facts without an entity flag are judged.

    Raises:
        ValueError: If there is no such rule.
    """

    name: str
    """`matcher:` and the rule."""

    def __init__(self, rule: str = "boundary", *, entities_only: bool = True) -> None:
        self._rule = resolve_rule(rule)
        self.name = f"matcher:{rule}"
        self._entities_only = entities_only

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, is_correct, is_recalled, matched_answer, score and reason.
        """
        texts = targets["text"].astype(object)
        is_missing = texts.isna().to_numpy()
        is_skipped = ~is_missing & self._entities_only & _is_description(targets["is_entity"])
        found = match_columns(
            texts.where(~(is_missing | is_skipped), None).tolist(),
            [_without_stop(accepted) for accepted in targets["answers"]],
            rule=self._rule,
        )
        is_correct = pd.array(found.is_match, dtype="boolean")
        is_free = (targets["form"] == "free").to_numpy()
        is_told = is_free & np.asarray(is_correct.fillna(False), dtype=bool)
        reasons = [NO_ANSWER, "the reference is no named entity"]
        reason = pd.Series(np.select([is_missing, is_skipped], reasons, default=""), dtype="str")
        return pd.DataFrame(
            {
                "prediction": pd.Series(texts.to_numpy(), dtype="str"),
                "is_correct": is_correct,
                "is_recalled": pd.arrays.BooleanArray(is_told, ~is_told),
                "matched_answer": pd.Series(found.answer, dtype="str"),
                "score": found.score,
                "reason": reason.mask(reason == ""),
            }
        )


class SlaqLLMJudge(LLMJudge):
    """Asks a model whether answers are right: a long answer with its five facts in one request.

    Of a free text it also asks which facts the text speaks of at all. See `LLMJudge`.
    """

    def request(self, targets: pd.DataFrame, answer: str, name: str) -> Prompt:
        """Write the request on one answer; see `LLMJudge.request`.

        Args:
            targets: The facts of the answer.
            answer: The answer.
            name: Identifier of the request.

        Returns:
            The prompt, a conversation.
        """
        if _is_free(targets):
            return judge_free(facts_of(targets), answer, prompt_id=name)
        return super().request(targets, answer, name)

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
            prediction, is_correct, is_recalled, reason, raw and attempts.

        Raises:
            RunMismatchError: If the folder holds the log of another judge, or of other wording.
            RunnerError: If the judging model cannot be asked.
        """
        found = self.judge_states(targets)
        is_told = (targets["form"] == "free").to_numpy() & found["state"].notna().to_numpy()
        recalled = (found["state"] != "absent").to_numpy(bool)
        return found.drop(columns="state").assign(
            is_recalled=pd.arrays.BooleanArray(recalled, ~is_told)
        )


class HumanJudge:
    """Takes labels from a CSV file with the columns prompt_id, question_id and is_correct.

    A label is 1 or 0, true or false, yes or no, right or wrong, in any case; an empty cell is a
    fact that was not labelled. A further column is_recalled, of the same form, is for free answers.
    Facts that the file does not hold are unjudged.

    Args:
        path: The file, UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of these, or a fact is labelled twice; names the line.
    """

    name = "human"
    """Short name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).name
        self._labels = read_labels(path).set_index(["prompt_id", "question_id"])

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

        Returns:
            prediction, is_correct, is_recalled and reason.
        """
        keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["fact_id"]])
        given = self._labels.reindex(keys).reset_index(drop=True)
        is_labelled = given["is_correct"].notna()
        reason = pd.Series([f"no label in {self._file}"] * len(targets), dtype="str")
        return pd.DataFrame(
            {
                "prediction": pd.Series(targets["text"].to_numpy(), dtype="str"),
                "is_correct": given["is_correct"],
                "is_recalled": given["is_recalled"].where(is_labelled),
                "reason": reason.mask(is_labelled),
            }
        )


def make_judge(scoring: "SlaqScoring", folder: RunFolder) -> Judge:
    """Make the judge that was asked for.

    Args:
        scoring: How answers are judged.
        folder: The run; a model that judges keeps its log there, in a folder of its own.

    Returns:
        The judge.

    Raises:
        ValueError: If there is no such rule.
        RunnerError: If the judging model cannot be loaded.
        SourceNotFoundError: If there is no file of labels.
        DataError: If the labels cannot be read.
    """
    if scoring.judge == "matcher":
        return MatcherJudge(scoring.judge_rule, entities_only=not scoring.all_facts)
    if scoring.judge == "human":
        return HumanJudge(scoring.labels or folder.labels)
    runner = load_runner(
        scoring.judge_runner,
        model=scoring.judge_model,
        options=values_of_items(scoring.judge_option),
    )
    label = scoring.judge_label or scoring.judge_model or runner.name
    return SlaqLLMJudge(
        runner,
        folder.path / _FOLDER / _file_name(label),
        model=label,
        max_new_tokens=scoring.judge_max_new_tokens,
        max_thought_tokens=scoring.judge_max_thought_tokens,
    )


def _without_stop(accepted: Sequence[str]) -> tuple[str, ...]:
    """Accept a reference with and without its full stop."""
    reference = accepted[0]
    return tuple(text for text in dict.fromkeys((reference, reference.rstrip(". "))) if text)


def _is_description(is_entity: pd.Series) -> np.ndarray:
    """Tell facts that the source says are no named entity."""
    return is_entity.astype("boolean").eq(False).fillna(False).to_numpy(bool)


def _is_free(targets: pd.DataFrame) -> bool:
    """Tell whether an answer was written without knowing the questions."""
    return bool(targets["form"].iloc[0] == "free")


def _file_name(label: str) -> str:
    """Name a folder after a judge: its letters and digits, and a digest that tells alike apart."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
