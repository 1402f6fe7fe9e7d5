"""Asking a runner all prompts of a run: once each, resumable, in batches that fit."""

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
# A runner that yields as it goes, such as a server's, loses no more than this by a kill.
_STORE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run after a batch."""

    n_done: int
    """Prompts answered, those of earlier starts included."""

    n_total: int
    """Prompts of the run."""

    n_asked: int
    """Prompts answered since this start."""

    seconds: float
    """Seconds since this start."""

    @property
    def rate(self) -> float:
        """Prompts a second since this start; NaN before the first."""
        return self.n_asked / self.seconds if self.n_asked and self.seconds > 0 else float("nan")

    @property
    def seconds_left(self) -> float:
        """Seconds that the rest will take at this rate; NaN before the first answer."""
        return (self.n_total - self.n_done) / self.rate


@contextmanager
def progress_reporter(
    progress: bool | Callable[[Progress], None], *, stream: TextIO | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Turn the option `progress` into something to call after each batch.

    Args:
        progress: A function is used as it is; True writes one line that renews itself, but only
            to a terminal; False writes nothing.
        stream: Where to write; None for standard error.

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
                    # What earlier starts answered does not count for the rate.
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
    """What one start of a run did; prompts of equal content count once."""

    n_asked: int
    """Prompts answered now, errors included."""

    n_reused: int
    """Prompts whose answer was in the log before."""

    n_errors: int
    """Prompts among those asked now that came back with an error; resume asks them again."""

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
    """Ask a runner every prompt that the log does not answer yet.

    Prompts of equal content (`Prompt.key`) are asked once. Each batch is in the log before the
    next is asked, and what a runner yields within a batch soon after, so a kill loses one batch at
    most. When a batch is too large for the device, it is asked in halves, and later batches are no
    larger; a single prompt that is too large is logged as an error. Reasoning that the runner left
    in the text are separated from the answer here, whatever the runner.

    Args:
        runner: The runner, which also divides the prompts into batches.
        prompts: All prompts of the run; one id never stands for two contents.
        params: How to decode.
        log: Where answers go and where earlier ones are found.
        progress: True for a line on a terminal, a function to be called after each batch, or
            False.
        batch_size: Maximum number of prompts that are sent at once; None for whole batches.
        shard: Number of a shard, from 0, and how many there are. Batches are cut as for all
            prompts, and those whose number leaves the shard's over are asked: the shards of a run
            ask each prompt once, in the batches of the run that is not cut up.

    Returns:
        The counts of this start.

    Raises:
        ValueError: If one id stands for two contents, `batch_size` is below 1, or there is no such
            shard.
        RunnerError: If a prompt does not fit, or the runner does not define `generate`; raised
            before any work.
        RunnerError: If the runner fails, leaves prompts out, answers others than it was asked, or
            answers none of its first prompts and gives the same error for each: 20 prompts, or as
            many as its attribute `max_refusals` says.
        RunError: If the log cannot be written.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"`batch_size` is at least 1, got {batch_size}")
    number, n_shards = shard
    if not 0 <= number < n_shards:
        raise ValueError(f"`shard` is a number from 0 below how many there are, got {shard}")
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
        asker = _Asker(
            runner=runner, params=params, log=log, limit=batch_size, is_answered=is_answered
        )

        def tell() -> None:
            done = len(distinct) - len(waiting) + asker.n_asked
            seconds = time.monotonic() - start
            report(
                Progress(n_done=done, n_total=len(distinct), n_asked=asker.n_asked, seconds=seconds)
            )

        tell()
        for batch in batches:
            for _ in asker.ask([prompt for prompt in batch if prompt.id in waiting]):
                tell()
    return RunSummary(
        n_asked=asker.n_asked,
        n_reused=len(distinct) - len(waiting),
        n_errors=asker.n_errors,
        seconds=time.monotonic() - start,
    )


@dataclass(kw_only=True, eq=False)
class _Asker:
    """Asks batches in parts that fit the device, and logs each part."""

    runner: Runner
    params: GenerationParams
    log: RunLog
    limit: int | None
    is_answered: bool
    refused: list[str] = field(default_factory=list)
    n_asked: int = 0
    n_errors: int = 0

    def ask(self, batch: Sequence[Prompt]) -> Iterator[None]:
        """Ask a batch to its end, yielding after each logged part."""
        rest = list(batch)
        while rest:
            size = min(len(rest), self.limit or len(rest))
            part, rest = rest[:size], rest[size:]
            rest = [*self._ask_part(part), *rest]
            yield

    def _ask_part(self, part: Sequence[Prompt]) -> list[Prompt]:
        """Ask one part and log what came; return the prompts that did not fit."""
        waiting = {prompt.id: prompt for prompt in part}
        answers: list[Generation] = []
        try:
            stored = time.monotonic()
            generations = self.runner.generate(part, self.params)
            with ExitStack() as stack:
                # A server is asked no further while an error is on its way to the user.
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
                "runner %r ran out of memory at %d prompts; going on with batches of %d",
                self.runner.name,
                len(part),
                self.limit,
            )
            return list(waiting.values())
        except SurfaceConsistencyError:
            raise
        except Exception as error:
            # A runner is anyone's code: every error is reported in the same form.
            raise RunnerError(
                f"runner {shown(self.runner.name)} failed on "
                f"{_described([*waiting.values()] or part)}: {type(error).__name__}: "
                f"{str(error)[:200]}; the answers so far are stored, and the same command resumes"
            ) from error
        finally:
            self._store(answers)
        if waiting:
            raise RunnerError(
                f"runner {shown(self.runner.name)} gave no generation for {_named(list(waiting))}; "
                "yield one for every prompt, if only with an error, and the same command resumes"
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
                "which is not in this batch or has an answer already; yield one `Generation` per "
                "prompt, with `prompt_id=prompt.id`, and the same command resumes"
            )
        answer = separate_reasoning(generation, self.params)
        return answer.model_copy(update={"prompt_key": prompt.key})

    def _check_refusals(self, answer: Generation) -> None:
        """End a run of which nothing was answered and every prompt fails in the same words."""
        if answer.error is None or answer.finish_reason != "error":
            self.is_answered = True
        if self.is_answered or answer.error is None:
            return
        words = _NUMBER.sub("#", answer.error)
        self.refused = [*(one for one in self.refused if one == words), words]
        limit = self.runner.max_refusals
        if len(self.refused) >= limit:
            raise RunnerError(
                f"runner {shown(self.runner.name)} answered none of its first prompts and gave the "
                f"same error for {limit:,} in a row: {answer.error[:300]}. Correct the cause and "
                "start again, which sends the same prompts; if only these prompts "
                "are at fault, give the runner a larger max_refusals"
            )

    def _store(self, answers: list[Generation]) -> None:
        """Log answers, count them, and forget them."""
        if answers:
            self.log.append(answers)
        self.n_asked += len(answers)
        self.n_errors += sum(answer.finish_reason == "error" for answer in answers)
        answers.clear()


def _distinct(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Keep the first prompt of each content, and refuse two contents under one id."""
    by_key: dict[str, Prompt] = {}
    keys: dict[str, str] = {}
    for prompt in prompts:
        if keys.setdefault(prompt.id, prompt.key) != prompt.key:
            raise ValueError(f"prompt id {shown(prompt.id)} stands for two different prompts")
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
                f"runner {shown(runner.name)} planned prompts twice or that are not in the run: "
                f"{_named(sorted(ids - unplanned) or sorted(ids))}"
            )
        unplanned -= ids
        yield batch
    if unplanned:
        raise RunnerError(
            f"runner {shown(runner.name)} left {_named(sorted(unplanned))} out of its plan"
        )


def _described(prompts: Sequence[Prompt]) -> str:
    """Show id and first words of a prompt, and count the others."""
    first = prompts[0]
    text = first.text if first.messages is None else first.messages[-1].content
    words = textwrap.shorten(text or "", 60, placeholder=" ...")
    more = f" and {len(prompts) - 1} more" if len(prompts) > 1 else ""
    return f"prompt {shown(first.id)} ({words!r}){more}"


def _too_large(prompt: Prompt, error: RunnerOutOfMemoryError) -> Generation:
    """Make the record of a prompt that does not fit even alone."""
    return Generation(
        prompt_id=prompt.id,
        text=None,
        finish_reason="error",
        error=f"out of memory at batch size 1: {error}",
    ).model_copy(update={"prompt_key": prompt.key})


def _named(ids: Sequence[str]) -> str:
    """Name a few prompts and count the rest."""
    named = ", ".join(repr(name) for name in ids[:_SHOWN])
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"prompt{'s' if len(ids) > 1 else ''} {named}{more}"
