"""The consistency of a model in training: a callback for the Trainer of transformers."""

import json
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import numpy as np
import pandas as pd

from surface_consistency.engine.study import Study
from surface_consistency.errors import (
    DataError,
    SurfaceConsistencyError,
    SurfaceConsistencyWarning,
)
from surface_consistency.integrations.extras import check_tool
from surface_consistency.integrations.paired_task import PairedTask, to_verdicts
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.runner import Runner
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.reading import parse_json, read_document
from surface_consistency.runs.files import output_folder, write_text
from surface_consistency.runs.frames import write_frame
from surface_consistency.schemas import Generation, GenerationParams, Prompt
from surface_consistency.schemas.scoring import OptionScore

if TYPE_CHECKING:
    from transformers import (
        PreTrainedModel,
        PreTrainedTokenizerBase,
        Trainer,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )

_T = TypeVar("_T")
_ASKED: Final = "asked.json"
_LIMIT: Final = 100
_LOGGED: Final = ("consistency_low", "consistency_high", "n_pairs")
_ENDS: Final = ("_low", "_high")


class StepEvaluator:
    """Asks a model in training what a study asks, and keeps what it answered at every step.

    The folder holds `steps/<step>.parquet`, the outcomes at each step, `curve.csv`, a row a step,
    and `asked.json`, what is asked and how it is judged. The model, its settings and all generators
    of random numbers are left as they are found.

    Args:
        data: Where the questions come from, as the study's option `--source` takes it, or what the
            study's `load` returned.
        out: Folder of the results.
        study: The study, or its name.
        options: Fields of the study's settings and scoring records by name. Asked are 100 facts,
            and demonstrations are dropped where a prompt does not fit, unless these say otherwise.
        batch_size: Prompts a batch at most.

    Raises:
        DataError: If `out` is a file.
        MissingDependencyError: If torch or transformers is not installed.
        MissingDependencyError: If the version of one is too old or too new.
    """

    def __init__(
        self,
        data: object = None,
        *,
        out: str | os.PathLike[str],
        study: str | Study = "redirectqa",
        options: Mapping[str, object] = MappingProxyType({}),
        batch_size: int = 32,
    ) -> None:
        for tool in ("torch", "transformers"):
            check_tool("ConsistencyCallback", tool, "inference")
        self._given = (study, dict(options), data)
        self._batch_size = batch_size
        self.folder = output_folder(out)
        """Folder of the results."""
        self._asking: tuple[PairedTask, TransformersRunner] | None = None
        self._last: tuple[int, dict[str, bool | None], dict[str, float]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that `evaluate` returns, once it is laid out what is asked."""
        return () if self._asking is None else (*self._asking[0].names, "flips_since_last")

    def start(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", *, step: int
    ) -> None:
        """Lay out what is asked, for a training that begins or goes on from a checkpoint.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer.
            step: The step of the checkpoint, 0 for a new training. Later steps of an earlier course
                are deleted, since they are made again.

        Raises:
            ValueError: If an option is unknown or wrong.
            DataError: If a new training begins in the folder of another, the steps before were
                asked otherwise, or the data cannot be read.
        """
        self._last = None
        # One after the other: laying out gathers weights that are shared out, in all processes.
        _together(lambda: self._take_folder(step))
        with _left_as_found(model):
            _together(lambda: bool(self._laid_out(model, tokenizer)))
        _together(lambda: self._pin() if _rank() == 0 else None)

    def _pin(self) -> None:
        """Write down what is asked; refuse to go on in the course of other questions."""
        if self._asking is None:
            return
        path, fingerprint = self.folder / _ASKED, self._asking[0].fingerprint()
        if self._steps() and path.is_file():
            earlier = parse_json(read_document(path), str(path))
            before = earlier if isinstance(earlier, dict) else {}
            if changed := [
                name for name, value in fingerprint.items() if before.get(name) != value
            ]:
                raise DataError(
                    f"the steps in {self.folder} were asked otherwise: {', '.join(changed)} of "
                    f"{_ASKED} differ, and a course of both would tell nothing; go on with the "
                    "options, data and version of before, or choose another `out`"
                )
        write_text(path, json.dumps(fingerprint, indent=2, ensure_ascii=False) + "\n")

    def _take_folder(self, step: int) -> None:
        """Delete the later steps of an earlier course, in the first process."""
        later = [path for path in self._steps() if int(path.stem) > step] if _rank() == 0 else []
        if later and step == 0:
            raise DataError(
                f"{self.folder} holds the steps of another training, up to "
                f"{int(later[-1].stem):,}; choose another `out`, or delete the folder"
            )
        for path in later:
            path.unlink()
        if later:
            self._write_curve([row for row in self._rows() if row["step"] <= step])

    def evaluate(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        *,
        step: int | None,
    ) -> dict[str, float]:
        """Ask the model, judge, and write down.

        Every process of a training on several calls it: those that share a model's weights out ask
        the same prompts together, those that hold all of them ask a part each. The first one judges
        and writes; all return what it found, or fail where one of them does.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer.
            step: The step that the model is at, which is evaluated once; None of a model outside
                its training, of which nothing is kept.

        Returns:
            What `PairedTask.numbers` returns; flips_since_last, the share of verdicts that changed
            since the evaluation before, where there was one; and seconds, what it took.

        Raises:
            SurfaceConsistencyError: If the model cannot be asked.
            RuntimeError: If another process failed for a reason that this package does not know.
        """
        if self._last is not None and self._last[0] == step:
            return self._last[2]
        start = time.perf_counter()
        with _left_as_found(model):
            parts = _together(lambda: self._ask(model, tokenizer))
        answers = [answer for part in parts for answer in part]
        verdicts, numbers = _together(
            lambda: self._write(step, answers, start) if _rank() == 0 else ({}, {})
        )[0]
        if step is not None:
            self._last = (step, verdicts, numbers)
        return numbers

    def _write(
        self, step: int | None, answers: Sequence[Generation], start: float
    ) -> tuple[dict[str, bool | None], dict[str, float]]:
        """Judge the answers and write down what they tell, in the first process."""
        if self._asking is None:
            raise ValueError("answers are judged once what is asked has been laid out")
        task = self._asking[0]
        judged = task.judge_generations(answers)
        verdicts = to_verdicts(judged)
        numbers = task.numbers(verdicts)
        if step is None:
            return verdicts, numbers
        before = self._before(step, task)
        if before is not None:
            changed = [verdicts[name] != old for name, old in before.items() if name in verdicts]
            numbers = {
                **numbers,
                "flips_since_last": float(np.mean(changed)) if changed else np.nan,
            }
        outcomes = task.outcomes(judged, model=f"step {step}")
        self._path(step).parent.mkdir(exist_ok=True)
        write_frame(self._path(step), outcomes, task.study.outcome)
        numbers = {**numbers, "seconds": time.perf_counter() - start}
        rows = [row for row in self._rows() if row["step"] < step]
        self._write_curve([*rows, {"step": step, **numbers}])
        return verdicts, numbers

    def _laid_out(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase"
    ) -> tuple[PairedTask, TransformersRunner]:
        """Lay out what is asked, once there is a tokenizer."""
        if self._asking is None:
            study, options, data = self._given
            generating = cast("PreTrainedModel", model.module) if _is_first_fsdp(model) else model
            runner = TransformersRunner.of_model(
                generating, tokenizer, label="the model in training", batch_size=self._batch_size
            )
            defaults = {"limit": _LIMIT, "truncate": True}
            task = PairedTask.load(
                study,
                options,
                data=data,
                defaults=defaults,
                tool="the Trainer",
                runner=runner,
                folder=self.folder,
            )
            self._asking = (task, runner)
        return self._asking

    def _ask(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase"
    ) -> list[Generation]:
        """Ask this process' part of the prompts; of weights that are shared out, all of them."""
        task, runner = self._laid_out(model, tokenizer)
        requests = [
            (task.prompt(document.id), task.params(document.id)) for document in task.documents
        ]
        is_sharded = _is_sharded(model)
        score: OptionScore = getattr(task.settings, "option_score", "sum")
        try:
            mine = requests if is_sharded else requests[_rank() :: _world()]
            answers = list(_answers(runner, mine, score))
        finally:
            # What was computed for shared prefixes is that of these weights.
            runner.clear_cache()
        return [] if is_sharded and _rank() > 0 else answers

    def _before(self, step: int, task: PairedTask) -> dict[str, bool | None] | None:
        """Find the verdicts of the evaluation before, in memory or on disk."""
        if self._last is not None:
            return self._last[1]
        earlier = [path for path in self._steps() if int(path.stem) < step]
        if not earlier:
            return None
        rows = pd.read_parquet(earlier[-1], columns=["pair_id", "first_correct", "second_correct"])
        pairs = task.pairs.set_index("pair_id")
        verdicts: dict[str, bool | None] = {}
        for side in ("first", "second"):
            names = pairs[f"{side}_target"].reindex(rows["pair_id"])
            values = rows[f"{side}_correct"].astype(object).where(rows[f"{side}_correct"].notna())
            verdicts |= {
                name: None if pd.isna(value) else bool(value)
                for name, value in zip(names, values, strict=True)
                if isinstance(name, str)
            }
        return verdicts

    def _path(self, step: int) -> Path:
        """Name the outcomes at a step."""
        return self.folder / "steps" / f"{step:09d}.parquet"

    def _steps(self) -> list[Path]:
        """List the outcomes that are there, in the order of the steps."""
        return sorted((self.folder / "steps").glob("[0-9]*.parquet"))

    def _rows(self) -> list[dict[str, Any]]:
        """Read the rows of the curve that is there."""
        path = self.folder / "curve.csv"
        rows = pd.read_csv(path).to_dict("records") if path.is_file() else []
        return [{str(name): value for name, value in row.items()} for row in rows]

    def _write_curve(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the curve."""
        write_text(self.folder / "curve.csv", pd.DataFrame(list(rows)).to_csv(index=False))


def read_curve(out: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what a training with a `ConsistencyCallback` wrote.

    Args:
        out: Its folder.

    Returns:
        One row a step: step, the names of `PairedTask.numbers`, flips_since_last, seconds.

    Raises:
        DataError: If nothing was evaluated there.
    """
    path = Path(out) / "curve.csv"
    if not path.is_file():
        raise DataError(f"{out} holds no curve.csv; name the `out` of a ConsistencyCallback")
    return pd.read_csv(path)


def _trainer_callback() -> type:
    """Find the base of callbacks; without transformers the constructor says what is missing."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        return object
    return TrainerCallback


class ConsistencyCallback(_trainer_callback()):  # type: ignore[misc]
    """Asks the model in training how consistent it is; give it to a Trainer as a callback.

    At every evaluation of the Trainer, or at steps of its own, the numbers go into the
    Trainer's log under `eval_consistency`, `eval_accuracy_canonical` and so on, and into the
    metrics of the evaluation, so that `metric_for_best_model="eval_consistency"` works. The
    verdicts of every step are kept; see `StepEvaluator`.

    Args:
        data: As for `StepEvaluator`.
        out: As for `StepEvaluator`.
        study: As for `StepEvaluator`.
        options: As for `StepEvaluator`.
        batch_size: As for `StepEvaluator`.
        every: Steps between evaluations; None evaluates when the Trainer does.
        at_start: Whether a new training is evaluated before its first step.
        prefix: What stands before the names in the log.
        on_error: Whether a model that cannot be asked ends the training or gives a warning.
        trainer: The Trainer, to send the numbers to its reporters too, such as TensorBoard; may
            be set later as the attribute `trainer`. Without it they stand in its log alone.

    Raises:
        ValueError: If `every` is less than 1, `on_error` is unknown, or an option is wrong.
        DataError: As for `StepEvaluator`.
        MissingDependencyError: As for `StepEvaluator`.
        MissingDependencyError: As for `StepEvaluator`.
    """

    def __init__(
        self,
        data: object = None,
        *,
        out: str | os.PathLike[str],
        study: str | Study = "redirectqa",
        options: Mapping[str, object] = MappingProxyType({}),
        batch_size: int = 32,
        every: int | None = None,
        at_start: bool = True,
        prefix: str = "eval_",
        on_error: Literal["warn", "raise"] = "warn",
        trainer: "Trainer | None" = None,
    ) -> None:
        if every is not None and every < 1:
            raise ValueError(f"`every` counts steps and is at least 1, got {every}")
        if on_error not in ("warn", "raise"):
            raise ValueError(f"`on_error` is 'warn' or 'raise', got {on_error!r}")
        self.evaluator = StepEvaluator(
            data, out=out, study=study, options=options, batch_size=batch_size
        )
        self.trainer = trainer
        self._every, self._at_start = every, at_start
        self._prefix, self._on_error = prefix, on_error
        self._logged_at: int | None = None
        self._is_training = False

    def on_train_begin(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        **given: Any,  # noqa: ANN401 - as the Trainer calls it
    ) -> None:
        """Take the folder, and evaluate a new model."""
        if given.get("processing_class") is None:
            raise ValueError(
                "ConsistencyCallback needs a tokenizer; give the Trainer processing_class="
            )
        self.evaluator.start(given["model"], given["processing_class"], step=state.global_step)
        self._is_training, self._logged_at = True, None
        if self._at_start and state.global_step == 0:
            self._log(state, self._evaluate(state, given))

    def on_train_end(self, args: object, state: object, control: object, **given: object) -> None:
        """Note that the model may be another from now on, such as the best one."""
        self._is_training = False

    def on_step_end(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        **given: Any,  # noqa: ANN401 - as the Trainer calls it
    ) -> None:
        """Evaluate at the callback's own steps."""
        if self._every is not None and state.global_step % self._every == 0:
            self._log(state, self._evaluate(state, given))

    def on_evaluate(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        **given: Any,  # noqa: ANN401 - as the Trainer calls it
    ) -> None:
        """Evaluate when the Trainer does, and add to what it found."""
        wanted = str(args.metric_for_best_model or "").removeprefix("eval_")
        is_due = self._every is None or state.global_step % self._every == 0
        if not is_due and wanted not in self.evaluator.names:
            return
        numbers = self._evaluate(state, given)
        if numbers and given.get("metrics") is not None:
            given["metrics"].update(numbers)
        self._log(state, numbers)

    def _evaluate(self, state: "TrainerState", given: Mapping[str, Any]) -> dict[str, float]:
        """Evaluate once a step, and name the numbers as they are logged."""
        try:
            numbers = self.evaluator.evaluate(
                given["model"],
                given["processing_class"],
                step=state.global_step if self._is_training else None,
            )
        except SurfaceConsistencyError as error:
            if self._on_error == "raise":
                raise
            warnings.warn(
                f"step {state.global_step}: no consistency, {error}",
                SurfaceConsistencyWarning,
                stacklevel=2,
            )
            return {}
        return {
            f"{self._prefix}{'consistency_seconds' if name == 'seconds' else name}": value
            for name, value in numbers.items()
            if name in _LOGGED or not (name.startswith("n_") or name.endswith(("p_value", *_ENDS)))
        }

    def _log(self, state: "TrainerState", numbers: dict[str, float]) -> None:
        """Put the numbers into the Trainer's log, once a step."""
        if not numbers or (self._is_training and self._logged_at == state.global_step):
            return
        self._logged_at = state.global_step
        if self.trainer is not None:
            self.trainer.log(dict(numbers))
        else:
            at = {"epoch": state.epoch or 0.0, "step": state.global_step}
            state.log_history.append({**numbers, **at})


def _answers(
    runner: TransformersRunner,
    requests: Sequence[tuple[Prompt, GenerationParams]],
    score: OptionScore,
) -> Iterator[Generation]:
    """Ask the prompts that are decoded alike together."""
    by_params: dict[GenerationParams, list[Prompt]] = {}
    for prompt, params in requests:
        by_params.setdefault(params, []).append(prompt)
    for params, prompts in by_params.items():
        asking: Runner = runner
        if prompts[0].options is not None:
            asking = MultipleChoiceRunner(runner, option_score=score)
        yield from asking.generate(prompts, params)


@contextmanager
def _left_as_found(model: "PreTrainedModel") -> Iterator[None]:
    """Evaluate a model in training, and put back what that changes."""
    import torch

    modes = [(module, module.training) for module in model.modules()]
    generation_config = model.generation_config
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global state
    cpu = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast(model.device.type, enabled=False))
        stack.enter_context(_outermost_gathered(model))
        try:
            model.eval()  # type: ignore[no-untyped-call]
            yield
        finally:
            for module, was_training in modes:
                module.training = was_training
            model.generation_config = generation_config
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            torch.set_rng_state(cpu)
            if devices:
                torch.cuda.set_rng_state_all(devices)


def _is_first_fsdp(model: object) -> bool:
    """Tell whether the first FSDP of torch wraps a model, and does not pass `generate` on."""
    return type(model).__name__ == "FullyShardedDataParallel"


def _outermost_gathered(model: "PreTrainedModel") -> AbstractContextManager[Any]:
    """Gather the weights outside the modules wrapped within, which gather theirs when called."""
    if not _is_first_fsdp(model):
        return nullcontext()
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel.summon_full_params(model, recurse=False, writeback=False)


def _is_sharded(model: "PreTrainedModel") -> bool:
    """Tell whether no process holds all weights, so that all must ask the same at the same time."""
    from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled
    from transformers.integrations.fsdp import is_fsdp_managed_module

    parameter = next(model.parameters(), None)
    return bool(
        is_deepspeed_zero3_enabled()  # type: ignore[no-untyped-call]
        or is_fsdp_managed_module(model)
        or type(parameter).__name__ == "DTensor"
    )


def _world() -> int:
    """Count the processes of the training."""
    import torch.distributed as dist

    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _rank() -> int:
    """Tell which process of the training this is."""
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _together(work: Callable[[], _T]) -> list[_T]:
    """Do something in every process; return what all found, or fail in all where one fails."""
    import torch.distributed as dist

    if _world() == 1:
        return [work()]
    mine: _T | None = None
    failed: Exception | None = None
    try:
        mine = work()
    except Exception as error:
        # Whatever it is, the others wait for this process and are told.
        failed = error
    is_known = failed is None or isinstance(failed, SurfaceConsistencyError)
    failure = "" if failed is None else f"process {_rank()}: {type(failed).__name__}: {failed}"
    gathered: list[Any] = [None] * _world()
    dist.all_gather_object(gathered, (failure, is_known, mine))
    unknown = [text for text, other_is_known, _ in gathered if not other_is_known]
    if failed is not None and (not is_known or not unknown):
        raise failed
    if unknown:
        raise RuntimeError(unknown[0])
    known = [text for text, _, _ in gathered if text]
    if known:
        raise SurfaceConsistencyError(known[0])
    return [value for _, _, value in gathered]
