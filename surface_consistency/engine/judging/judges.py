"""Scorers of many answers at once: a matching rule, an LLM judge, or human labels."""

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from pydantic import JsonValue

import surface_consistency
from surface_consistency.engine.generate import Progress, run_prompts
from surface_consistency.engine.judging.labels import (
    check_labelled_answers,
    check_labels,
    read_labels,
    write_labelling_sheet,
)
from surface_consistency.engine.judging.prompts import (
    JUDGE_PROMPT_VERSION,
    OWN_WORDS,
    Fact,
    judge_long,
    judge_short,
    pin_prompts,
    retry_prompt,
)
from surface_consistency.engine.settings import JudgeScoring, SideModel
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunError,
    SurfaceConsistencyWarning,
)
from surface_consistency.matching.judge_reply import (
    FactState,
    JudgeReplyError,
    parse_verdict,
    parse_verdicts,
)
from surface_consistency.matching.rule import AnswerSpan, Rule
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.matching.verdict_records import answer_span, match_spans
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import TEXT
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, Generation, GenerationParams, Prompt, Verdict
from surface_consistency.schemas.generations import NO_ANSWER_REASONS

NO_ANSWER: Final = "there is no answer to judge"
"""Reason of a target without an answer, given by LLM judges and human labels."""

_ATTEMPTS: Final = 2
_MANY_EMPTY: Final = 0.02


@runtime_checkable
class Judge(Protocol):
    """Scores answers; any class with these two members is a scorer.

    A scorer that can score only the first answers, such as human labels, has `judges_again =
    False`: the repeated sample, and so the noise floor, is then omitted.
    """

    name: str
    """Name in every scored row, such as "popqa on first_line" or "llm:gpt-4"."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers.

        Args:
            targets: One row per target: the columns of `Plan.items`, and text, which is missing
                if the prompt failed.

        Returns:
            One row per target, in the same order: correct (missing with a reason if it could not be
            scored), and further columns of the label record of the study.
        """


@runtime_checkable
class Overrulable(Protocol):
    """A scorer of a study that adds columns, such as an origin, to the scores of another scorer."""

    def overruled(self, by: Judge) -> Judge:
        """Replace the scorer by an LLM judge or human labels.

        Args:
            by: The scorer that replaces it.

        Returns:
            The scorer, which also returns `rule_correct`.
        """


class RuleJudge:
    """Compares answers with the accepted ones, by a matching rule.

    Args:
        rule: Name of the rule, or a rule.
        region: Scored part of an answer: its first line, its first line that is not blank, or all
            of it.

    Raises:
        ValueError: If there is no such rule or region.
    """

    name: str
    """The rule and the region."""

    def __init__(
        self, rule: str | Rule[Any] = "popqa", *, region: AnswerSpan = "first_line"
    ) -> None:
        answer_span("", region=region)
        self._rule = resolve_rule(rule)
        self._region = region
        self.name = f"{self._rule.name} on {region}"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Returns:
            prediction, correct, matched_answer, score and reason.
        """
        texts = targets["text"].astype(object).where(targets["text"].notna(), None)
        predictions, matched = match_spans(
            texts.tolist(), targets["references"].tolist(), rule=self._rule, region=self._region
        )
        _warn_empty(targets["text"], predictions, self._region)
        return pd.DataFrame(
            {
                "prediction": pd.Series(predictions, dtype=TEXT),
                "correct": pd.array(matched.is_match, dtype="boolean"),
                "matched_answer": pd.Series(matched.reference, dtype=TEXT),
                "score": matched.score,
                "reason": pd.Series(matched.reason, dtype=TEXT),
            }
        )


def _warn_empty(texts: pd.Series, spans: Sequence[str | None], region: AnswerSpan) -> None:
    """Warn if many outputs contain text, but their scored part is empty."""
    has_text = texts.fillna("").str.strip() != ""
    n_empty = int(
        sum(span == "" for span, any_text in zip(spans, has_text, strict=True) if any_text)
    )
    if n_empty > _MANY_EMPTY * len(spans):
        warnings.warn(
            f"{n_empty} of {len(spans)} outputs begin with a blank line: their {region} is empty "
            "and counts as incorrect, whatever follows. Score the first line that is not blank, or "
            "the whole output: region first_text_line or whole (`region`)",
            SurfaceConsistencyWarning,
            stacklevel=4,
        )


def facts_of(targets: pd.DataFrame) -> list[Fact]:
    """Return the questions and references that an LLM judge receives.

    Args:
        targets: The targets, with the column question.

    Returns:
        One fact per target; its reference is the first accepted answer, followed by the others.
    """
    return [
        Fact(question, f"{reference} (or: {'; '.join(others)})" if others else reference)
        for question, (reference, *others) in zip(
            targets["question"], targets["references"], strict=True
        )
    ]


class LLMJudge:
    """Prompts a model to judge whether answers are correct.

    All targets of one answer are one request. If a reply has an invalid form, the request is
    repeated once; after that its targets have no score. An empty answer is incorrect without a
    request; a missing answer has no score. Requests and replies are stored in a run log, so
    interrupted scoring resumes and no request is sent twice. The targets need the column question.
    A study with answers of another kind overrides `request` and `read`.

    Args:
        runner: The model backend: any runner that accepts conversations.
        folder: Folder of its log: `judge-generations.jsonl`, `judge-manifest.json`.
        model: Label of the LLM judge.
        max_new_tokens: Maximum number of tokens of a reply.
        max_reasoning_tokens: Maximum number of reasoning tokens before it, for reasoning models;
            None if both share `max_new_tokens`.
        progress: As for `run_prompts`.

    References:
        SLAQ, arXiv 2510.11218, section 3.1 and appendix A.2.
    """

    name: str
    """`llm:` and the label of the model."""

    def __init__(
        self,
        runner: Runner,
        folder: str | os.PathLike[str],
        *,
        model: str,
        max_new_tokens: int = 64,
        max_reasoning_tokens: int | None = None,
        progress: bool | Callable[[Progress], None] = True,
    ) -> None:
        self.name = f"llm:{model}"
        self._runner = runner
        self._log = Path(folder) / "judge-generations.jsonl"
        self._manifest_path = Path(folder) / "judge-manifest.json"
        self._model = model
        self._params = GenerationParams(
            max_new_tokens=max_new_tokens,
            max_reasoning_tokens=max_reasoning_tokens,
            stop=(),
            temperature=0.0,
        )
        self._progress = progress

    def request(self, targets: pd.DataFrame, answer: str, name: str) -> Prompt:
        """Write the request on one answer.

        Args:
            targets: The targets of the answer.
            answer: The answer.
            name: Identifier of the request.

        Returns:
            The prompt, a conversation.
        """
        facts = facts_of(targets)
        if len(facts) == 1:
            return judge_short(facts[0], answer, prompt_id=name)
        return judge_long(facts, answer, prompt_id=name)

    def read(self, targets: pd.DataFrame, reply: str) -> Sequence[FactState]:
        """Read the reply on one answer.

        Args:
            targets: The targets of the answer.
            reply: The reply of the LLM judge.

        Returns:
            One state per target: "right", "wrong" or "absent".

        Raises:
            JudgeReplyError: If the reply does not have the required form.
        """
        n = len(targets)
        verdicts = (parse_verdict(reply),) if n == 1 else parse_verdicts(reply, n)
        return ["right" if is_right else "wrong" for is_right in verdicts]

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Returns:
            prediction, correct, reason and raw.

        Raises:
            RunError: If the folder contains the log of another judge or of other prompts.
            RunnerError: If the LLM judge does not answer.
        """
        return self.judge_states(targets).drop(columns=["state", "attempts"])

    def judge_states(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers, and return the state and the number of requests of each target.

        Args:
            targets: The targets to judge.

        Returns:
            The columns of `judge`, and state, which is "absent" for an empty answer, and attempts,
            the number of requests.

        Raises:
            RunError: As `judge` does.
            RunnerError: As `judge` does.
        """
        places: dict[str, Any] = targets.groupby("prompt_id", sort=False).indices  # type: ignore[assignment]
        texts = targets["text"].astype(object).where(targets["text"].notna(), None).to_numpy()
        parts = {name: targets.iloc[rows] for name, rows in places.items()}
        requests = {
            name: self.request(part, texts[places[name][0]], f"judge/{name}")
            for name, part in parts.items()
            if (texts[places[name][0]] or "").strip()
        }
        first = self.ask(requests.values())
        replies = {name: (first[prompt.key], 1) for name, prompt in requests.items()}
        retried = {
            name: retry_prompt(prompt, first[prompt.key].text or "", prompt_id=f"{prompt.id}/2")
            for name, prompt in requests.items()
            if first[prompt.key].text is not None
            and isinstance(self._states(parts[name], first[prompt.key]), str)
        }
        second = self.ask(retried.values())
        replies |= {name: (second[prompt.key], _ATTEMPTS) for name, prompt in retried.items()}
        state, reason, raw = (np.full(len(targets), None, dtype=object) for _ in range(3))
        attempts = np.zeros(len(targets), dtype=np.int64)
        for name, rows in places.items():
            if name not in replies:
                is_missing = texts[rows[0]] is None
                (reason if is_missing else state)[rows] = NO_ANSWER if is_missing else "absent"
                continue
            reply, attempts[rows] = replies[name]
            raw[rows] = reply.text
            states = self._states(parts[name], reply)
            if isinstance(states, str):
                reason[rows] = states
            else:
                state[rows] = np.array(states, dtype=object)
        is_judged = np.array([item is not None for item in state], dtype=bool)
        is_right = np.array([item == "right" for item in state], dtype=bool)
        return pd.DataFrame(
            {
                "prediction": pd.Series(texts, dtype=TEXT),
                "correct": pd.arrays.BooleanArray(is_right, ~is_judged),
                "reason": pd.Series(reason, dtype=TEXT),
                "raw": pd.Series(raw, dtype=TEXT),
                "state": pd.Series(state, dtype=TEXT),
                "attempts": attempts,
            }
        )

    def _states(self, targets: pd.DataFrame, reply: Generation) -> Sequence[FactState] | str:
        """Read a reply, or return the reason why it cannot be read."""
        if reply.finish_reason == "error":
            return f"the request to the judge failed: {reply.error}"
        if reply.text is None:
            return f"the judge returned no score: {reply.error}"
        try:
            return self.read(targets, reply.text)
        except JudgeReplyError as error:
            return f"the judge's reply cannot be read: {error}"

    @property
    def wording(self) -> DataSource:
        """Version of the prompts; a log of another version is not resumed."""
        return DataSource(
            id="judge prompts",
            revision=str(JUDGE_PROMPT_VERSION),
            digest=f"judge-prompts-v{JUDGE_PROMPT_VERSION}",
            n_questions=0,
        )

    def ask(self, requests: Iterable[Prompt]) -> dict[str, Generation]:
        """Send the requests whose replies are not in the log.

        Args:
            requests: Requests to the LLM judge.

        Returns:
            All replies by the key of their prompt.

        Raises:
            RunError: If the folder contains the log of another judge or of other prompts.
            RunnerError: If the LLM judge does not answer.
        """
        try:
            return generate_cached(
                self._runner,
                list(requests),
                self._params,
                self._log,
                manifest_path=self._manifest_path,
                model=self._model,
                data=self.wording,
                progress=self._progress,
            )
        except RunError as error:
            raise RunError(
                f"{error}. A judge with other settings needs its own folder: give it another "
                "label (`judge_label`)"
            ) from error


def generate_cached(
    runner: Runner,
    prompts: Sequence[Prompt],
    params: GenerationParams,
    log: Path,
    *,
    manifest_path: Path,
    model: str,
    data: DataSource,
    study: str = "judge",
    settings: Mapping[str, JsonValue] | None = None,
    progress: bool | Callable[[Progress], None] = True,
) -> dict[str, Generation]:
    """Send prompts to an auxiliary model, such as a judge or a writer, unless its log has answers.

    Args:
        runner: The model backend.
        prompts: The prompts.
        params: Decoding parameters.
        log: Its run log, which belongs to only this model and decoding.
        manifest_path: Path of the manifest of the log.
        model: Label of the model.
        data: Description of the prompts, for the manifest.
        study: Task of the model, for the manifest.
        settings: Further settings on which the prompts depend, for the manifest.
        progress: As for `run_prompts`.

    Returns:
        All answers by the key of their prompt.

    Raises:
        RunError: If the log is of another model, decoding or prompt version.
        RunnerError: If the model does not answer.
    """
    if not prompts:
        return {}
    manifest = RunManifest(
        study=study,
        model=model,
        data=data,
        decoding={"answers": params.model_dump(mode="json")},
        runner=dict(runner.fingerprint()),
        settings=dict(settings or {}),
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    log.parent.mkdir(parents=True, exist_ok=True)
    with RunLog.open(log, manifest, manifest_path=manifest_path) as opened:
        run_prompts(runner, prompts, params, opened, progress=progress)
    return logged_answers(log, prompts)


def logged_answers(log: Path, prompts: Iterable[Prompt]) -> dict[str, Generation]:
    """Read the answers to some prompts from a log.

    Args:
        log: The run log.
        prompts: The prompts.

    Returns:
        The answers by the key of their prompt.

    Raises:
        RunError: If the log is damaged.
    """
    wanted = {prompt.key for prompt in prompts}
    return {
        answer.prompt_key: answer
        for answer in read_generations(log)
        if answer.prompt_key is not None and answer.prompt_key in wanted
    }


def judge_targets(judge: Judge, targets: pd.DataFrame, record: type[Verdict]) -> pd.DataFrame:
    """Score targets and check the result of the scorer.

    Args:
        judge: The scorer.
        targets: The targets to score, with text.
        record: The label record of the study.

    Returns:
        One row per target, with the columns of the record.

    Raises:
        DataError: If the scorer returns another number of rows, a column that the record does not
            have, or neither a score nor a reason for a target.
    """
    verdicts = judge.judge(targets)
    if len(verdicts) != len(targets):
        raise DataError(
            f"scorer {judge.name!r} received {len(targets)} targets and returned {len(verdicts)} "
            "rows; return one row per target, in order"
        )
    verdicts = verdicts.reset_index(drop=True).assign(
        target_id=targets["target_id"].to_numpy(), judged_by=judge.name
    )
    foreign: Sequence[str] = [str(name) for name in verdicts if name not in record.model_fields]
    if foreign:
        raise DataError(
            f"scorer {judge.name!r} returned the column {', '.join(foreign)}, which "
            f"{record.__name__} does not have"
        )
    for name, field in record.model_fields.items():
        if name not in verdicts:
            verdicts[name] = None if field.is_required() else field.get_default()
    if "finish_reason" in targets:
        # The error of a reply without an answer is a better reason than that of the scorer.
        kinds = targets["finish_reason"].isin({*NO_ANSWER_REASONS} - {"error"})
        is_explained = kinds.to_numpy(bool) & verdicts["correct"].isna().to_numpy(bool)
        verdicts.loc[is_explained, "reason"] = targets["error"].to_numpy(object)[is_explained]
    unexplained = verdicts["correct"].isna() & verdicts["reason"].isna()
    if unexplained.any():
        raise DataError(
            f"scorer {judge.name!r} returned neither `correct` nor `reason` for "
            f"{verdicts.loc[unexplained, 'target_id'].iloc[0]!r}; give the reason if it has no "
            "score"
        )
    return verdicts[list(record.model_fields)]


_FOLDER: Final = "judges"


class HumanJudge:
    """Reads labels from a CSV file with the columns prompt_id, question_id and correct.

    If the file has a column answer with the labelled answers, labels of other answers are an error.
    A label is 1 or 0, true or false, yes or no, right or wrong, in any case; an empty cell is a
    fact without a label. A further column is_recalled, of the same form, is for free answers.
    Facts that are not in the file, and missing answers, have no score.

    Args:
        path: The file, UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label has another value, or a fact is labelled twice; names the line.
    """

    name = "human"
    """Short name."""

    judges_again = False
    """False, because only the first answers are labelled and not the repeated sample."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).name
        self._labels = read_labels(path)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Args:
            targets: The targets to score.

        Returns:
            prediction, correct, is_recalled and reason.

        Raises:
            DataError: If the labels are of other answers.
        """
        check_labelled_answers(self._labels, targets)
        keys = pd.MultiIndex.from_arrays([targets["prompt_id"], targets["item"]])
        known = self._labels.set_index(["prompt_id", "question_id"])
        given = known.reindex(keys).reset_index(drop=True)
        is_answered = pd.Series(targets["text"].notna().to_numpy())
        is_labelled = is_answered & given["correct"].notna()
        reason = pd.Series(NO_ANSWER, index=given.index, dtype=TEXT)
        reason = reason.mask(is_answered, f"no label in {self._file}")
        return pd.DataFrame(
            {
                "prediction": pd.Series(targets["text"].to_numpy(), dtype=TEXT),
                "correct": given["correct"].where(is_labelled),
                "is_recalled": given["is_recalled"].where(is_labelled),
                "reason": reason.mask(is_labelled),
            }
        )


class OverrulingJudge:
    """An LLM judge or human labels in place of the rule of a study.

    They receive the part of each answer that the rule reads, its `prediction`. Further columns of
    the rule are kept, and its correctness label is stored as `rule_correct`.

    Args:
        rule: The default scorer of the study.
        by: The scorer that replaces it.
        record: The label record of the study.
    """

    name: str
    """Name of the scorer that replaces the rule."""

    def __init__(self, rule: Judge, by: Judge, record: type[Verdict]) -> None:
        self._rule, self._by, self._record = rule, by, record
        self.name = by.name
        self.judges_again: bool = getattr(by, "judges_again", True)
        """Whether it can score the repeated sample."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Returns:
            The columns of the replacing scorer that the record has; further columns of the record
            beyond those of `Verdict`, from the rule; and rule_correct. An answer that has no text,
            but that the rule can score, is scored by the rule.

        Raises:
            ColumnNotFoundError: If the targets have no question.
        """
        if "question" not in targets:
            raise ColumnNotFoundError(
                "LLM judges and human labels need the column question, which the targets of this "
                f"study do not have ({', '.join(map(str, targets.columns))}); score by "
                "`judge=rule`, or add the question to `Plan.items`"
            )
        ruled = self._rule.judge(targets).reset_index(drop=True)
        shown = shown_answers(targets.reset_index(drop=True), ruled["prediction"])
        theirs = self._by.judge(shown).reset_index(drop=True)
        theirs = theirs[[name for name in theirs if name in self._record.model_fields]]
        # If the rule needs no text, as for an option that is not the most probable, its label is
        # kept.
        is_textless = ruled["prediction"].isna() & ruled["correct"].notna()
        theirs["correct"] = theirs["correct"].mask(is_textless, ruled["correct"])
        theirs["reason"] = theirs["reason"].mask(is_textless)
        beyond = [name for name in ruled if name not in Verdict.model_fields and name not in theirs]
        return pd.concat([theirs, ruled[beyond]], axis=1).assign(rule_correct=ruled["correct"])


def shown_answers(targets: pd.DataFrame, predictions: pd.Series) -> pd.DataFrame:
    """Replace each answer by the part that the rule reads.

    Args:
        targets: The targets.
        predictions: Scored parts, row by row; missing if there is no answer.

    Returns:
        The targets with the text for annotators and LLM judges; None without an answer.
    """
    parts = predictions.astype(object)
    return targets.assign(text=parts.where(parts.notna(), None).to_numpy(object))


def make_chosen_judge(scoring: JudgeScoring, folder: RunFolder) -> LLMJudge | HumanJudge | None:
    """Make the LLM judge or the human labels that replace the default scorer of the study.

    Args:
        scoring: How answers are scored.
        folder: The run; an LLM judge writes its log to a subfolder of it.

    Returns:
        The scorer; None for `judge=rule`.

    Raises:
        ValueError: If the prompts are of another version.
        RunnerError: If the LLM judge cannot be loaded.
        SourceNotFoundError: If there is no file of labels.
        DataError: If the labels cannot be read.
    """
    if scoring.judge == "human":
        return HumanJudge(scoring.labels or folder.labels)
    if scoring.judge != "llm":
        return None
    side = SideModel.of(scoring, "judge")
    runner = side.load()
    label = side.name(runner)
    kind, prompts = scoring.model_judge()
    texts: dict[str, Any] = {}
    home = label
    if (pinned := pin_prompts(prompts, "judge")) != OWN_WORDS:
        texts, home = {"prompts": pinned}, f"{label} {pinned}"
    return kind(
        runner,
        folder.path / _FOLDER / _file_name(home),
        model=label,
        **texts,
        max_new_tokens=scoring.judge_max_new_tokens,
        max_reasoning_tokens=scoring.judge_max_reasoning_tokens,
    )


def check_labelling(scoring: JudgeScoring, folder: RunFolder) -> None:
    """Raise an error for labels of another run, and for a sheet that would overwrite labels.

    Args:
        scoring: How answers are scored.
        folder: The run.

    Raises:
        SourceNotFoundError: If there is no file of labels.
        DataError: If the labels are not of this run, or the labelling sheet exists and was edited.
    """
    labels = scoring.labels or (folder.labels if folder.labels.is_file() else None)
    if labels is not None and folder.targets.is_file():
        check_labels(read_labels(labels), folder.read_plan()[0])
    sheet = scoring.labelling_sheet
    if sheet is not None and os.path.lexists(sheet) and not _is_untouched(sheet):
        raise DataError(
            f"{sheet} exists and may contain labels or other work, so it is not replaced; choose "
            "another name"
        )


def _is_untouched(sheet: Path) -> bool:
    """Return whether a file is a labelling sheet without a label."""
    try:
        return not read_labels(sheet)["correct"].notna().any()
    except (DataError, OSError):
        return False


def export_labels(
    scoring: JudgeScoring,
    folder: RunFolder,
    targets: pd.DataFrame,
    *,
    kind: str,
    fill: Sequence[str] = (),
) -> None:
    """Copy the labels into the run folder, and write the labelling sheet if it is requested.

    Args:
        scoring: How answers are scored.
        folder: The run.
        targets: The scored targets, with text.
        kind: As for `write_labelling_sheet`.
        fill: As for `write_labelling_sheet`.
    """
    if scoring.labels is not None and scoring.labels.resolve() != folder.labels.resolve():
        shutil.copyfile(scoring.labels, folder.labels)
    if scoring.labelling_sheet is not None:
        write_labelling_sheet(
            scoring.labelling_sheet,
            targets,
            n=scoring.labelling_sample,
            seed=scoring.labelling_seed,
            kind=kind,
            fill=fill,
        )


def _file_name(label: str) -> str:
    """Make the folder name of a judge: letters and digits of its label, and a digest."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
