"""Sending the prompts of a run to a runner: each once, resumable, in batches that fit."""

import logging
import re
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NoReturn, TextIO

from tqdm import tqdm

from surface_consistency.errors import RunnerError, RunnerOutOfMemoryError, SurfaceConsistencyError
from surface_consistency.models.reasoning import separate_reasoning
from surface_consistency.models.runner import Runner
from surface_consistency.reading import shown
from surface_consistency.runs.log import RunLog
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

_logger = logging.getLogger(__name__)
_SHOWN = 5
_NUMBER = re.compile(r"\d+")
# Maximum time between writes: a killed process loses at most the answers of this interval.
_STORE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run after a batch."""

    n_done: int
    """Number of answered prompts, including those of earlier starts."""

    n_total: int
    """Number of prompts of the run."""

    n_asked: int
    """Number of prompts answered since this start."""

    seconds: float
    """Seconds since this start."""

    @property
    def rate(self) -> float:
        """Prompts per second since this start; NaN before the first answer."""
        return self.n_asked / self.seconds if self.n_asked and self.seconds > 0 else float("nan")

    @property
    def seconds_left(self) -> float:
        """Remaining seconds at this rate; NaN before the first answer."""
        return (self.n_total - self.n_done) / self.rate


@contextmanager
def progress_reporter(
    progress: bool | Callable[[Progress], None], *, stream: TextIO | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Convert the option `progress` to a function that is called after each batch.

    Args:
        progress: A function is used as it is; True writes a progress bar, but only to a terminal;
            False writes nothing.
        stream: Output stream; None for standard error.

    Yields:
        The function to call.
    """
    if callable(progress):
        yield progress
        return
    with ExitStack() as stack:
        lines: list[tqdm[NoReturn]] = []

        def report(state: Progress) -> None:
            if not lines:
                line = tqdm(
                    total=state.n_total,
                    # Answers of earlier starts do not count for the rate.
                    initial=state.n_done - state.n_asked,
                    unit=" prompts",
                    file=stream,
                    dynamic_ncols=True,
                    disable=None if progress else True,
                )
                lines.append(stack.enter_context(line))
            lines[0].update(state.n_done - lines[0].n)

        yield report


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Counts of one start of a run; prompts of equal content count once."""

    n_asked: int
    """Number of prompts answered in this start, including errors."""

    n_reused: int
    """Number of prompts whose answer was already in the log."""

    n_errors: int
    """Number of prompts of this start that failed with an error; resuming sends them again."""

    seconds: float
    """Wall-clock seconds."""


def run_prompts(
    runner: Runner,
    prompts: Sequence[Prompt],
    params: GenerationParams,
    log: RunLog,
    *,
    progress: bool | Callable[[Progress], None] = True,
    batch_size: int | None = None,
    shard: tuple[int, int] = (0, 1),
) -> RunSummary:
    """Send every prompt that has no answer in the log to a runner.

    Prompts of equal content (`Prompt.key`) are sent once. Each batch is logged before the next is
    sent, and answers that a runner yields within a batch are logged soon after, so a killed process
    loses at most one batch. If a batch is too large for the device, it is divided in halves, and
    later batches are not larger; a single prompt that is too large is logged as an error. Reasoning
    that the runner left in the text is separated from the answer here, for all runners.

    Args:
        runner: The runner, which also divides the prompts into batches.
        prompts: All prompts of the run; an id must not belong to two contents.
        params: Decoding parameters.
        log: The log to which answers are written, and which contains earlier answers.
        progress: True for a progress bar on a terminal, a function that is called after each batch,
            or False.
        batch_size: Maximum number of prompts that are sent at once; None for whole batches.
        shard: Number of a shard, from 0, and number of shards n. Batches are the same as without
            shards, and the shard has those whose number modulo n is its number. So the shards send
            each prompt once, in the batches of the undivided run.

    Returns:
        The counts of this start.

    Raises:
        ValueError: If one id belongs to two contents, `batch_size` is below 1, or there is no such
            shard.
        RunnerError: If a prompt does not fit, or the runner does not define `generate`; raised
            before any work.
        RunnerError: If the runner fails, omits prompts, answers prompts that were not sent, or
            answers none of its first prompts and gives the same error for each: 20 prompts, or the
            number in its attribute `max_refusals`.
        RunError: If the log cannot be written.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1, got {batch_size}")
    number, n_shards = shard
    if not 0 <= number < n_shards:
        raise ValueError(f"`shard` must be (number, n_shards), number < n_shards; got {shard}")
    start = time.monotonic()
    distinct = _distinct(prompts)
    waiting = {prompt.id for prompt in distinct if prompt.key not in log}
    batches: Iterable[Sequence[Prompt]] = ()
    if waiting:
        batches = islice(_batches(runner, distinct, params), number, None, n_shards)
    if n_shards > 1:
        batches = list(batches)
        distinct = [prompt for batch in batches for prompt in batch]
        waiting &= {prompt.id for prompt in distinct}
    with progress_reporter(progress) as report:
        is_answered = len(waiting) < len(distinct)
        sender = _Sender(
            runner=runner, params=params, log=log, limit=batch_size, is_answered=is_answered
        )

        def update() -> None:
            done, n_sent = len(distinct) - len(waiting) + sender.n_sent, sender.n_sent
            seconds = time.monotonic() - start
            report(Progress(n_done=done, n_total=len(distinct), n_asked=n_sent, seconds=seconds))

        update()
        for batch in batches:
            for _ in sender.send([prompt for prompt in batch if prompt.id in waiting]):
                update()
    return RunSummary(
        n_asked=sender.n_sent,
        n_reused=len(distinct) - len(waiting),
        n_errors=sender.n_errors,
        seconds=time.monotonic() - start,
    )


@dataclass(kw_only=True, eq=False)
class _Sender:
    """Sends batches in parts that fit the device, and logs each part."""

    runner: Runner
    params: GenerationParams
    log: RunLog
    limit: int | None
    is_answered: bool
    repeated_errors: list[str] = field(default_factory=list)
    n_sent: int = 0
    n_errors: int = 0

    def send(self, batch: Sequence[Prompt]) -> Iterator[None]:
        """Send a batch, yielding after each logged part."""
        rest = list(batch)
        while rest:
            size = min(len(rest), self.limit or len(rest))
            part, rest = rest[:size], rest[size:]
            rest = [*self._send_part(part), *rest]
            yield

    def _send_part(self, part: Sequence[Prompt]) -> list[Prompt]:
        """Send one part and log the answers; return the prompts that did not fit."""
        waiting = {prompt.id: prompt for prompt in part}
        answers: list[Generation] = []
        try:
            stored = time.monotonic()
            generations = self.runner.generate(part, self.params)
            with ExitStack() as stack:
                # No further requests are sent to a server after an error.
                stack.callback(getattr(generations, "close", lambda: None))
                for generation in generations:
                    answers.append(self._accept(generation, waiting))
                    self._check_refusals(answers[-1])
                    if time.monotonic() - stored > _STORE_SECONDS:
                        self._store(answers)
                        stored = time.monotonic()
        except RunnerOutOfMemoryError as error:
            if len(part) == 1:
                answers.extend(_too_large(prompt, error) for prompt in waiting.values())
                return []
            self.limit = len(part) // 2
            _logger.warning(
                "runner %r ran out of memory at %d prompts; continuing with batches of %d",
                self.runner.name,
                len(part),
                self.limit,
            )
            return list(waiting.values())
        except SurfaceConsistencyError:
            raise
        except Exception as error:
            # Runners may be user code, so every error is reported in the same form.
            raise RunnerError(
                f"runner {shown(self.runner.name)} failed on "
                f"{_described([*waiting.values()] or part)}: {type(error).__name__}: "
                f"{str(error)[:200]}; the answers so far are stored, and the same command resumes"
            ) from error
        finally:
            self._store(answers)
        if waiting:
            raise RunnerError(
                f"runner {shown(self.runner.name)} did not return a generation for "
                f"{_named(list(waiting))}; yield one per prompt, at least with an error, and the "
                "same command resumes"
            )
        return []

    def _accept(self, generation: object, waiting: dict[str, Prompt]) -> Generation:
        """Match an answer to the prompt that waits for it."""
        if not isinstance(generation, Generation):
            raise RunnerError(
                f"runner {shown(self.runner.name)} yielded a {type(generation).__name__} for "
                f"{_described([*waiting.values()])}; yield objects of the class "
                "surface_consistency.schemas.Generation, and the same command resumes"
            )
        prompt = waiting.pop(generation.prompt_id, None)
        if prompt is None:
            raise RunnerError(
                f"runner {shown(self.runner.name)} answered prompt {shown(generation.prompt_id)}, "
                "which is not in this batch or already has an answer; yield one `Generation` per "
                "prompt, with `prompt_id=prompt.id`, and the same command resumes"
            )
        answer = separate_reasoning(generation, self.params)
        return answer.model_copy(update={"prompt_key": prompt.key})

    def _check_refusals(self, answer: Generation) -> None:
        """Stop a run without any answer if every prompt fails with the same error."""
        if answer.error is None or answer.finish_reason != "error":
            self.is_answered = True
        if self.is_answered or answer.error is None:
            return
        words = _NUMBER.sub("#", answer.error)
        self.repeated_errors = [*(one for one in self.repeated_errors if one == words), words]
        limit = self.runner.max_refusals
        if len(self.repeated_errors) >= limit:
            raise RunnerError(
                f"runner {shown(self.runner.name)} did not answer its first {limit:,} prompts "
                f"and returned the same error for each: {answer.error[:300]}. Correct the cause "
                "and start again, which sends the same prompts; if only these prompts cause the "
                "error, create the runner with a larger max_refusals"
            )

    def _store(self, answers: list[Generation]) -> None:
        """Log and count answers, and clear the list."""
        if answers:
            self.log.append(answers)
        self.n_sent += len(answers)
        self.n_errors += sum(answer.finish_reason == "error" for answer in answers)
        answers.clear()


def _distinct(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Keep the first prompt of each content; raise an error for two contents with one id."""
    by_key: dict[str, Prompt] = {}
    keys: dict[str, str] = {}
    for prompt in prompts:
        if keys.setdefault(prompt.id, prompt.key) != prompt.key:
            raise ValueError(f"prompt id {shown(prompt.id)} belongs to two prompts; rename one")
        by_key.setdefault(prompt.key, prompt)
    return list(by_key.values())


def _batches(
    runner: Runner, prompts: Sequence[Prompt], params: GenerationParams
) -> Iterator[Sequence[Prompt]]:
    """Divide the run into batches, and check that each prompt is planned once."""
    unplanned = {prompt.id for prompt in prompts}
    for batch in runner.plan(prompts, params):
        ids = {prompt.id for prompt in batch}
        if len(ids) != len(batch) or not ids <= unplanned:
            raise RunnerError(
                f"runner {shown(runner.name)} planned prompts twice, or planned prompts that are "
                f"not in the run: {_named(sorted(ids - unplanned) or sorted(ids))}"
            )
        unplanned -= ids
        yield batch
    if unplanned:
        raise RunnerError(
            f"runner {shown(runner.name)} omitted {_named(sorted(unplanned))} in `plan`"
        )


def _described(prompts: Sequence[Prompt]) -> str:
    """Show id and first words of a prompt, and count the others."""
    first = prompts[0]
    text = first.text if first.messages is None else first.messages[-1].content
    words = textwrap.shorten(text or "", 60, placeholder=" ...")
    more = f" and {len(prompts) - 1} more" if len(prompts) > 1 else ""
    return f"prompt {shown(first.id)} ({words!r}){more}"


def _too_large(prompt: Prompt, error: RunnerOutOfMemoryError) -> Generation:
    """Make the record of a prompt that does not fit in a batch of 1."""
    return Generation(
        prompt_id=prompt.id,
        text=None,
        finish_reason="error",
        error=f"out of memory at batch size 1: {error}",
    ).model_copy(update={"prompt_key": prompt.key})


def _named(ids: Sequence[str]) -> str:
    """List the ids of a few prompts and count the rest."""
    named = ", ".join(repr(name) for name in ids[:_SHOWN])
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"prompt{'s' if len(ids) > 1 else ''} {named}{more}"
