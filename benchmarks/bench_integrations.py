"""CPU time that this package takes within lm-evaluation-harness.

Run `python benchmarks/bench_integrations.py`; prints a Markdown table. The model has the shape of
Pythia 70M and random weights. CPU seconds within this package while `simple_evaluate` runs the
first documents of redirectqa with 15 demonstrations are compared with those of the harness. The
exit status is 1 if the budget of 5 % is exceeded.
"""

import argparse
import platform
import tempfile
import time
import warnings
from pathlib import Path

import torch
import transformers
from bench_generation import save_model

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.integrations.harness import lm_eval_path
from surface_consistency.integrations.paired_task import PairedTask
from surface_consistency.schemas import Prompt

HARNESS_SHARE = 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=24)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, one thread\n")
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "model"
        texts = [q.question for q in load_redirectqa("sample").questions]
        save_model(folder, "70m", [Prompt(id=text, text=text) for text in texts])
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(len(tokenizer) - 1)
        tokenizer.save_pretrained(folder)
        missed = harness(folder, given.documents)
    return int(missed)


def harness(folder, documents):
    """Measure the time of a run of the harness that is spent in this package."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    model = HFLM(pretrained=str(folder), device="cpu", batch_size=8)
    manager = TaskManager(
        include_path=str(lm_eval_path()),
        include_defaults=False,
        metadata={"redirectqa": {"source": "sample"}},
    )
    own = dict.fromkeys(("load", "prompt", "judge", "numbers"), 0.0)
    for name in own:
        setattr(PairedTask, name, counting(name, own))
    total = timed(
        lambda: simple_evaluate(
            model=model, tasks=["redirectqa"], task_manager=manager, limit=documents
        )
    )
    spent = sum(own.values())
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in own.items())
    print("| documents | CPU s | in this package, CPU s | proportion | parts, CPU s |")
    print("|---|---|---|---|---|")
    print(f"| {documents} | {total:.1f} | {spent:.2f} | {spent / total:.1%} | {parts} |")
    return spent / total > HARNESS_SHARE


def counting(name, own):
    """Wrap a method of `PairedTask` to sum its time."""
    plain = getattr(PairedTask, name)

    def method(*given, **named):
        # A class method is bound to the class already.
        arguments = given[1:] if name == "load" and given and given[0] is PairedTask else given
        start = time.process_time()
        try:
            return plain(*arguments, **named)
        finally:
            own[name] += time.process_time() - start

    return staticmethod(method) if name == "load" else method


def timed(call):
    """Return the CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(main())
