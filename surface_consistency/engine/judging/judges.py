"""Judges of many answers at once: a rule, a model, or people by their labels."""

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
"""Reason of a target whose prompt has no answer, of judges that read more than a rule does."""

_ATTEMPTS: Final = 2
_MANY_EMPTY: Final = 0.02


@runtime_checkable
class Judge(Protocol):
    """Judges answers; any class with these two members is a judge.

    One that knows the first answers alone, as labels of people do, has `judges_again = False`: the
    repeated sample, and with it the noise floor, is then left out.
    """

    name: str
    """What stands in every verdict, such as "popqa on first_line" or "llm:gpt-4"."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers.

        Args:
            targets: One row a target: the columns of `Plan.items`, and text, which is missing
                where the model could not be asked.

        Returns:
            One row a target, in the same order: correct (missing where it could not be judged,
            then with a reason), and whatever else of the study's verdict record the judge tells.
        """


@runtime_checkable
class Overrulable(Protocol):
    """A study's own judge that tells more once it knows another's verdict, such as an origin."""

    def overruled(self, by: Judge) -> Judge:
        """Let a model or people judge in its place.

        Args:
            by: Who judges.

        Returns:
            The judge, which tells `rule_correct` besides.
        """


class RuleJudge:
    """Compares answers with the accepted ones, by a matching rule.

    Args:
        rule: Name of the rule, or a rule.
        region: Judged part of an answer: its first line, the first that is not blank, or all of it.

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
        """Judge answers; see `Judge.judge`.

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
    """Say how many outputs hold text and have nothing in their judged part."""
    has_text = texts.fillna("").str.strip() != ""
    n_empty = int(
        sum(span == "" for span, any_text in zip(spans, has_text, strict=True) if any_text)
    )
    if n_empty > _MANY_EMPTY * len(spans):
        warnings.warn(
            f"{n_empty} of {len(spans)} outputs begin with a blank line: their {region} is empty "
            "and counts as wrong, whatever follows. Judge the first line that is not blank, or "
            "all: region first_text_line or whole (`region`)",
            SurfaceConsistencyWarning,
            stacklevel=4,
        )


def facts_of(targets: pd.DataFrame) -> list[Fact]:
    """Read what a judge is told.

    Args:
        targets: What to judge, with the column question.

    Returns:
        One fact a target; its reference is the first accepted answer, with the others behind it.
    """
    return [
        Fact(question, f"{reference} (or: {'; '.join(others)})" if others else reference)
        for question, (reference, *others) in zip(
            targets["question"], targets["references"], strict=True
        )
    ]


class LLMJudge:
    """Asks a model whether answers are right.

    All targets of one answer are one request. A reply in another form than asked for is asked
    again once, then its targets are unjudged. An empty answer is wrong without asking; an answer
    that was never given is unjudged. Requests and replies are in a run log, so a stopped judge goes
    on where it was and asks nothing twice. The targets need the column question. A study with
    answers of another kind overrides `request` and `read`.

    Args:
        runner: Who judges: any runner that takes conversations.
        folder: Where its log goes: `judge-generations.jsonl`, `judge-manifest.json`.
        model: Label of the judging model.
        max_new_tokens: Longest reply.
        max_reasoning_tokens: Longest reasoning before it, of models that think first; None when
            both share `max_new_tokens`.
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
            reply: What the judging model wrote.

        Returns:
            One state a target: "right", "wrong" or "absent".

        Raises:
            JudgeReplyError: If the reply is not in the form that was asked for.
        """
        n = len(targets)
        verdicts = (parse_verdict(reply),) if n == 1 else parse_verdicts(reply, n)
        return ["right" if is_right else "wrong" for is_right in verdicts]

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Returns:
            prediction, correct, reason and raw.

        Raises:
            RunError: If the folder holds the log of another judge, or of other wording.
            RunnerError: If the judging model cannot be asked.
        """
        return self.judge_states(targets).drop(columns=["state", "attempts"])

    def judge_states(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers, and tell what else is known of each target.

        Args:
            targets: What to judge.

        Returns:
            As `judge`, and the columns state, "absent" of an empty answer, and attempts, how often
            the model was asked.

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
        """Read a reply, or say what is wrong with it."""
        if reply.finish_reason == "error":
            return f"the judge could not be asked: {reply.error}"
        if reply.text is None:
            return f"the judge gave no verdict: {reply.error}"
        try:
            return self.read(targets, reply.text)
        except JudgeReplyError as error:
            return f"the judge's reply cannot be read: {error}"

    @property
    def wording(self) -> DataSource:
        """Which words the requests are in: a log of other words is not gone on with."""
        return DataSource(
            id="judge prompts",
            revision=str(JUDGE_PROMPT_VERSION),
            digest=f"judge-prompts-v{JUDGE_PROMPT_VERSION}",
            n_questions=0,
        )

    def ask(self, requests: Iterable[Prompt]) -> dict[str, Generation]:
        """Ask what the log does not answer.

        Args:
            requests: To the judging model.

        Returns:
            All replies by the key of their prompt.

        Raises:
            RunError: If the folder holds the log of another judge, or of other wording.
            RunnerError: If the judging model cannot be asked.
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
                f"{error}. A judge with other settings needs a folder of its own: give it another "
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
    """Ask a model beside a run, such as a judge or a writer, what its log does not answer yet.

    Args:
        runner: Who is asked.
        prompts: What.
        params: How to decode.
        log: Its run log, which belongs to this model and decoding alone.
        manifest_path: Where the log's manifest is.
        model: Label of the model.
        data: What the prompts are, for the manifest.
        study: What the model is asked for, for the manifest.
        settings: What the prompts depend on besides, for the manifest.
        progress: As for `run_prompts`.

    Returns:
        All answers by the key of their prompt.

    Raises:
        RunError: If the log is of another model, decoding or wording.
        RunnerError: If the model cannot be asked.
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
    """Read what a log answers of some prompts.

    Args:
        log: The run log.
        prompts: What was asked.

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
    """Let a judge work and hold it to its task.

    Args:
        judge: The judge.
        targets: What to judge, with text.
        record: The study's verdict record.

    Returns:
        One row a target, columns of the record.

    Raises:
        DataError: If the judge returns other rows than it was given, a column that the record does
            not have, or neither verdict nor reason for a target.
    """
    verdicts = judge.judge(targets)
    if len(verdicts) != len(targets):
        raise DataError(
            f"judge {judge.name!r} was given {len(targets)} targets and returned {len(verdicts)} "
            "verdicts; it must judge each, in order"
        )
    verdicts = verdicts.reset_index(drop=True).assign(
        target_id=targets["target_id"].to_numpy(), judged_by=judge.name
    )
    foreign: Sequence[str] = [str(name) for name in verdicts if name not in record.model_fields]
    if foreign:
        raise DataError(
            f"judge {judge.name!r} returned the column {', '.join(foreign)}, which "
            f"{record.__name__} does not have"
        )
    for name, field in record.model_fields.items():
        if name not in verdicts:
            verdicts[name] = None if field.is_required() else field.get_default()
    if "finish_reason" in targets:
        # Replies that hold no answer say why better than a judge that was shown nothing.
        kinds = targets["finish_reason"].isin({*NO_ANSWER_REASONS} - {"error"})
        is_explained = kinds.to_numpy(bool) & verdicts["correct"].isna().to_numpy(bool)
        verdicts.loc[is_explained, "reason"] = targets["error"].to_numpy(object)[is_explained]
    unexplained = verdicts["correct"].isna() & verdicts["reason"].isna()
    if unexplained.any():
        raise DataError(
            f"judge {judge.name!r} gave neither verdict nor reason for "
            f"{verdicts.loc[unexplained, 'target_id'].iloc[0]!r}; say why it could not be judged"
        )
    return verdicts[list(record.model_fields)]


_FOLDER: Final = "judges"


class HumanJudge:
    """Takes labels from a CSV file with the columns prompt_id, question_id and correct.

    Where a column answer tells what was labelled, labels of another answer are refused.
    A label is 1 or 0, true or false, yes or no, right or wrong, in any case; an empty cell is a
    fact that was not labelled. A further column is_recalled, of the same form, is for free answers.
    Facts that the file does not hold are unjudged, and so are answers that were never given.

    Args:
        path: The file, UTF-8.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column is missing.
        DataError: If a label is none of these, or a fact is labelled twice; names the line.
    """

    name = "human"
    """Short name."""

    judges_again = False
    """Labels are of the first answers; the repeated sample has none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).name
        self._labels = read_labels(path)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Args:
            targets: What to judge.

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
    """A model or people who judge in place of a study's own rule.

    They are shown what the rule read of each answer, its `prediction`. What the rule tells besides
    right and wrong stays, and its own verdict stands beside theirs as `rule_correct`.

    Args:
        rule: The study's own judge.
        by: Who judges in its place.
        record: The study's verdict record.
    """

    name: str
    """That of who judges."""

    def __init__(self, rule: Judge, by: Judge, record: type[Verdict]) -> None:
        self._rule, self._by, self._record = rule, by, record
        self.name = by.name
        self.judges_again: bool = getattr(by, "judges_again", True)
        """Whether it can judge the repeated sample."""

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `Judge.judge`.

        Returns:
            What they tell, as far as the record has it; what the record has beyond `Verdict` and
            they do not tell, by the rule; and rule_correct. An answer without a text to show, on
            which the rule decides all the same, is judged by the rule.

        Raises:
            ColumnNotFoundError: If the targets have no question, without which nobody can judge.
        """
        if "question" not in targets:
            raise ColumnNotFoundError(
                "a model or people judge by the column question, which the targets of this study "
                f"do not have ({', '.join(map(str, targets.columns))}); judge by `judge=rule`, or "
                "put the question into `Plan.items`"
            )
        ruled = self._rule.judge(targets).reset_index(drop=True)
        shown = shown_answers(targets.reset_index(drop=True), ruled["prediction"])
        theirs = self._by.judge(shown).reset_index(drop=True)
        theirs = theirs[[name for name in theirs if name in self._record.model_fields]]
        # Where the rule needs no text, as of one option that is not the likeliest, its word stands.
        is_textless = ruled["prediction"].isna() & ruled["correct"].notna()
        theirs["correct"] = theirs["correct"].mask(is_textless, ruled["correct"])
        theirs["reason"] = theirs["reason"].mask(is_textless)
        beyond = [name for name in ruled if name not in Verdict.model_fields and name not in theirs]
        return pd.concat([theirs, ruled[beyond]], axis=1).assign(rule_correct=ruled["correct"])


def shown_answers(targets: pd.DataFrame, predictions: pd.Series) -> pd.DataFrame:
    """Put what a rule reads of each answer in the place of the whole answer.

    Args:
        targets: What is judged.
        predictions: Judged parts, row by row; missing where there is no answer.

    Returns:
        The targets, their text being what people and models are shown; None without an answer.
    """
    parts = predictions.astype(object)
    return targets.assign(text=parts.where(parts.notna(), None).to_numpy(object))


def make_chosen_judge(scoring: JudgeScoring, folder: RunFolder) -> LLMJudge | HumanJudge | None:
    """Make the model or the people that judge in place of the study's own judge.

    Args:
        scoring: How answers are judged.
        folder: The run; a model that judges keeps its log there, in a folder of its own.

    Returns:
        The judge; None where a rule judges.

    Raises:
        ValueError: If the prompts are of another version.
        RunnerError: If the judging model cannot be loaded.
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
    words: dict[str, Any] = {}
    home = label
    if (pinned := pin_prompts(prompts, "judge")) != OWN_WORDS:
        words, home = {"prompts": pinned}, f"{label} {pinned}"
    return kind(
        runner,
        folder.path / _FOLDER / _file_name(home),
        model=label,
        **words,
        max_new_tokens=scoring.judge_max_new_tokens,
        max_reasoning_tokens=scoring.judge_max_reasoning_tokens,
    )


def check_labelling(scoring: JudgeScoring, folder: RunFolder) -> None:
    """Refuse labels of another run, and a sheet that would be written over labels.

    Args:
        scoring: How answers are judged.
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
    """Keep the labels with the run, and write the sheet that was asked for.

    Args:
        scoring: How answers are judged.
        folder: The run.
        targets: What was judged, with text.
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
    """Name a folder after a judge: its letters and digits, and a digest that tells alike apart."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
