"""Work for two processes that talk over gloo, as those of a training on several devices do."""

import multiprocessing
import os
import pickle
import random
import time
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

OPTIONS = {"limit": 4, "shots": 1, "max_new_tokens": 6}
N_PROCESSES = 2
_LONGEST = 200


def run_on_two(work: Callable[..., Any], folder: Path, **given: object) -> list[Any]:
    """Run a function on the processes of a group; return what each returned."""
    context = multiprocessing.get_context("forkserver")
    # The processes are forked from one that has loaded the libraries, and no thread yet.
    context.set_forkserver_preload(["torch.distributed.fsdp", "transformers.trainer"])
    task = partial(work, **given)
    processes = [
        context.Process(target=_run, args=(rank, folder, task)) for rank in range(N_PROCESSES)
    ]
    for process in processes:
        process.start()
    ends = time.monotonic() + _LONGEST
    for process in processes:
        process.join(timeout=max(0, ends - time.monotonic()))
    waiting = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for process in processes:
        process.kill()
        process.join()
        process.close()
    if waiting:
        raise TimeoutError(f"processes {waiting} did not end within {_LONGEST} s")
    found = []
    for rank in range(N_PROCESSES):
        failed, value = pickle.loads((folder / str(rank)).read_bytes())
        if failed:
            raise RuntimeError(f"process {rank} failed:\n{failed}")
        found.append(value)
    return found


def _run(rank: int, folder: Path, work: Callable[..., Any]) -> None:
    """Be one process of the group."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(N_PROCESSES)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "TOKENIZERS_PARALLELISM": "0"}
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder / 'meeting'}",
            rank=rank,
            world_size=N_PROCESSES,
            timeout=timedelta(seconds=_LONGEST / 2),
        )
        told = ("", work(rank))
    except BaseException:
        told = (traceback.format_exc(), None)
    (folder / str(rank)).write_bytes(pickle.dumps(told))


def train_and_evaluate(rank: int, *, out: Path, **given: Any) -> dict[str, Any]:
    """Do all of the below in one group, since a process takes longer to start than to work."""
    model = given["tiny_model"]
    return {
        "train": train(rank, out=out / "train", **given),
        "share_out": share_out(rank, tiny_model=model, out=out / "share_out"),
        "fail": fail(rank, tiny_model=model, out=out / "fail"),
    }


def train(rank: int, *, tiny_model: Path, out: Path, texts: list[str]) -> dict[str, Any]:
    """Train the tiny model for two steps with the callback; tell what this process saw."""
    import torch
    import transformers

    from surface_consistency.integrations import trainer as trainer_module
    from surface_consistency.integrations.trainer import ConsistencyCallback

    written: list[str] = []
    write = trainer_module.write_frame
    trainer_module.write_frame = lambda path, *rest: (written.append(path.name), write(path, *rest))
    callback = ConsistencyCallback("sample", out=out, options=OPTIONS)
    evaluate = callback.evaluator.evaluate
    is_left = []

    def watched(*given: object, **named: object) -> dict[str, float]:
        before = _generators()
        found = evaluate(*given, **named)
        is_left.append(_generators() == before)
        return found

    callback.evaluator.evaluate = watched

    def draw(*_: object) -> None:
        torch.rand(1 + rank)

    tokenizer, model = _load(tiny_model)
    # Each process draws other numbers, as samplers and dropout do.
    model.register_forward_pre_hook(draw)
    rows = [{"input_ids": ids, "labels": ids} for ids in (tokenizer(t).input_ids for t in texts)]
    rows = [{name: (ids * 24)[:24] for name, ids in row.items()} for row in rows]
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            output_dir=str(out / "checkpoints"),
            max_steps=2,
            per_device_train_batch_size=1,
            eval_strategy="steps",
            eval_steps=1,
            save_strategy="best",
            save_only_model=True,
            metric_for_best_model="eval_consistency",
            greater_is_better=True,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
            ddp_find_unused_parameters=False,
        ),
        train_dataset=rows,
        eval_dataset=rows[:2],
        processing_class=tokenizer,
        data_collator=transformers.default_data_collator,
        callbacks=[callback],
    )
    trainer.train()
    trainer_module.write_frame = write
    state = trainer.state
    return {
        "log": [row for row in state.log_history if "eval_consistency" in row],
        "best": (state.best_metric, state.best_global_step, state.best_model_checkpoint),
        "written": written,
        "is_left": is_left,
        "weights": [p.detach().numpy().tobytes() for p in model.parameters()],
        "wrapped": type(trainer.model_wrapped).__name__,
    }


def share_out(rank: int, *, tiny_model: Path, out: Path) -> dict[str, Any]:
    """Evaluate the tiny model whole, and its weights shared out in both ways of torch."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    from surface_consistency.integrations import trainer as trainer_module

    answers = trainer_module._answers
    n_asked = []

    def counted(runner: Any, asked: Any, score: Any) -> Any:
        n_asked.append(len(asked))
        return answers(runner, asked, score)

    trainer_module._answers = counted
    mesh = init_device_mesh("cpu", (N_PROCESSES,))
    found = {}
    for name in ("whole", "fully_shard", "FullyShardedDataParallel"):
        tokenizer, model = _load(tiny_model)
        if name == "fully_shard":
            for layer in model.model.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
        elif name != "whole":
            layers = ModuleWrapPolicy({type(model.model.layers[0])})
            cpu = torch.device("cpu")
            model = FullyShardedDataParallel(model, auto_wrap_policy=layers, device_id=cpu)
        evaluator = trainer_module.StepEvaluator("sample", out=out / name, options=OPTIONS)
        evaluator.start(model, tokenizer, step=0)
        found[name] = evaluator.evaluate(model, tokenizer, step=0)
    trainer_module._answers = answers
    return {**found, "n_asked": n_asked[0]}


def fail(rank: int, *, tiny_model: Path, out: Path) -> dict[str, str]:
    """Let one of the processes fail in several places; tell how each call ended here."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel

    from surface_consistency.errors import RunnerOutOfMemoryError
    from surface_consistency.integrations import trainer as trainer_module

    tokenizer, model = _load(tiny_model)
    ended = {}

    def call(name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            ended[name] = f"{type(error).__name__}: {error}"
        else:
            ended[name] = "went on"

    evaluator = trainer_module.StepEvaluator("sample", out=out, options=OPTIONS)
    answers, write = trainer_module._answers, trainer_module.write_frame
    for step, (name, error) in enumerate(
        (("known", RunnerOutOfMemoryError("too large")), ("unknown", ValueError("a bug")))
    ):

        def broken(*_: object, error: Exception = error) -> None:
            raise error

        trainer_module._answers = broken if rank == 1 else answers
        call(name, lambda step=step: evaluator.evaluate(model, tokenizer, step=step))
        trainer_module._answers = answers
    if rank == 0:
        trainer_module.write_frame = lambda *_: (_ for _ in ()).throw(OSError("the disk is full"))
    call("write", lambda: evaluator.evaluate(model, tokenizer, step=2))
    trainer_module.write_frame = write
    call("afterwards", lambda: evaluator.evaluate(model, tokenizer, step=3))
    call("start", lambda: evaluator.start(model, tokenizer, step=0))
    # Its weights are gathered in all processes or in none.
    shared_out = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    call("start shared out", lambda: evaluator.start(shared_out, tokenizer, step=0))
    return ended


def _load(folder: Path) -> tuple[Any, Any]:
    """Load a tokenizer and a model."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return transformers.AutoTokenizer.from_pretrained(folder), model


def _generators() -> tuple[object, ...]:
    """Read the state of the generators of random numbers."""
    import numpy as np
    import torch

    numpy_state = str(np.random.get_state())  # noqa: NPY002
    return torch.get_rng_state().numpy().tobytes(), numpy_state, random.getstate()
