"""A judge that asks a model: strict replies, one retry, everything it said in a run log."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import surface_consistency
from surface_consistency.errors import RunMismatchError
from surface_consistency.inference.generate import Progress, run_prompts
from surface_consistency.inference.runner import Runner
from surface_consistency.matching.judge_reply import (
    FactState,
    JudgeReplyError,
    parse_states,
    parse_verdict,
    parse_verdicts,
)
from surface_consistency.prompts.judge import (
    JUDGE_PROMPT_VERSION,
    judge_free,
    judge_long,
    judge_short,
    retry_prompt,
)
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import (
    DataSource,
    Generation,
    GenerationParams,
    Prompt,
    RunManifest,
)
from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.judge import JudgeTask, unjudged

__all__ = ["LLMJudge"]

_ATTEMPTS: Final = 2


class LLMJudge:
    """Asks a model whether answers are right.

    A short answer is one request, a long one with its five facts is one request too. A reply in
    another form than asked for is asked again once, then the facts are unjudged. An empty answer is
    wrong without asking; an answer that was never given is unjudged. Requests and replies are in a
    run log, so a stopped judge goes on where it was and asks nothing twice.

    Args:
        runner: Who judges: any runner that takes conversations.
        folder: Where its log goes: `judge-generations.jsonl`, `judge-manifest.json`.
        model: Label of the judging model.
        max_new_tokens: Longest reply; raise it for models that think first.
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
        progress: bool | Callable[[Progress], None] = True,
    ) -> None:
        self.name = f"llm:{model}"
        self._runner = runner
        self._log = Path(folder) / "judge-generations.jsonl"
        self._manifest_path = Path(folder) / "judge-manifest.json"
        self._model = model
        self._params = GenerationParams(max_new_tokens=max_new_tokens, stop=(), temperature=0.0)
        self._progress = progress

    def judge(self, tasks: Sequence[JudgeTask]) -> Iterator[Judgement]:
        """Judge answers; see `Judge.judge`.

        Args:
            tasks: What to judge.

        Yields:
            One judgement a fact, in order.

        Raises:
            RunMismatchError: If the folder holds the log of another judge, or of other wording.
            RunnerError: If the judging model cannot be asked.
        """
        asked = {task.prompt_id: _prompt(task) for task in tasks if (task.answer or "").strip()}
        first = self._ask(list(asked.values()))
        again = {
            name: retry_prompt(prompt, first[prompt.key].text or "", prompt_id=f"{prompt.id}/2")
            for name, prompt, task in (
                (task.prompt_id, asked[task.prompt_id], task)
                for task in tasks
                if task.prompt_id in asked
            )
            if first[prompt.key].text is not None and _read(task, first[prompt.key])[1] is not None
        }
        second = self._ask(list(again.values()))
        for task in tasks:
            if task.prompt_id not in asked:
                yield from self._without_asking(task)
            elif task.prompt_id in again:
                reply = second[again[task.prompt_id].key]
                yield from self._judgements(task, reply, attempts=_ATTEMPTS)
            else:
                yield from self._judgements(task, first[asked[task.prompt_id].key], attempts=1)

    def _ask(self, prompts: list[Prompt]) -> dict[str, Generation]:
        """Ask what the log does not answer; return all replies by the key of their prompt."""
        if not prompts:
            return {}
        manifest = RunManifest(
            study="judge",
            model=self._model,
            data=DataSource(
                id="judge prompts",
                revision=str(JUDGE_PROMPT_VERSION),
                digest=f"judge-prompts-v{JUDGE_PROMPT_VERSION}",
                n_questions=0,
            ),
            prompts=None,
            params=self._params,
            runner=self._runner.fingerprint(),
            package_version=surface_consistency.__version__,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._open_log(manifest) as log:
            run_prompts(self._runner, prompts, self._params, log, progress=self._progress)
        wanted = {prompt.key for prompt in prompts}
        return {
            answer.prompt_key: answer
            for answer in read_generations(self._log)
            if answer.prompt_key is not None and answer.prompt_key in wanted
        }

    def _open_log(self, manifest: RunManifest) -> RunLog:
        """Open the log, which belongs to one judge."""
        try:
            return RunLog.open(self._log, manifest, manifest_path=self._manifest_path)
        except RunMismatchError as error:
            raise RunMismatchError(
                f"{error}. A judge with other settings needs a folder of its own: give it another "
                "label (--judge-label)"
            ) from error

    def _without_asking(self, task: JudgeTask) -> Iterator[Judgement]:
        """Judge what needs no model: an answer that is missing, or empty."""
        if task.answer is None:
            yield from unjudged(task, "there is no answer to judge", judge=self.name)
            return
        for question in task.questions:
            yield Judgement(
                prompt_id=task.prompt_id,
                question_id=question.id,
                judge=self.name,
                is_correct=False,
                is_recalled=False if task.form == "free" else None,
                attempts=0,
            )

    def _judgements(
        self, task: JudgeTask, reply: Generation, *, attempts: int
    ) -> Iterator[Judgement]:
        """Turn a reply into judgements, or say why it is none."""
        states, problem = _read(task, reply)
        if states is None:
            yield from unjudged(
                task, problem or "", judge=self.name, raw=reply.text, attempts=attempts
            )
            return
        for question, state in zip(task.questions, states, strict=True):
            yield Judgement(
                prompt_id=task.prompt_id,
                question_id=question.id,
                judge=self.name,
                is_correct=state == "right",
                is_recalled=state != "absent" if task.form == "free" else None,
                raw=reply.text,
                attempts=attempts,
            )


def _prompt(task: JudgeTask) -> Prompt:
    """Build the request of a task."""
    answer, name = task.answer or "", f"judge/{task.prompt_id}"
    if task.form == "short":
        return judge_short(task.questions[0], answer, prompt_id=name)
    if task.form == "long":
        return judge_long(task.questions, answer, prompt_id=name)
    return judge_free(task.questions, answer, prompt_id=name)


def _read(task: JudgeTask, reply: Generation) -> tuple[tuple[FactState, ...] | None, str | None]:
    """Read the states of the facts from a reply, or say what is wrong with it."""
    if reply.text is None:
        return None, f"the judge could not be asked: {reply.error}"
    try:
        if task.form == "free":
            return parse_states(reply.text, len(task.questions)), None
        verdicts = (
            (parse_verdict(reply.text),)
            if task.form == "short"
            else parse_verdicts(reply.text, len(task.questions))
        )
    except JudgeReplyError as error:
        return None, f"the judge's reply cannot be read: {error}"
    return tuple("right" if verdict else "wrong" for verdict in verdicts), None
