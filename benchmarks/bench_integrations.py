"""What the callback of the Trainer and the tasks of lm-evaluation-harness cost.

Run `python benchmarks/bench_integrations.py`; prints Markdown tables. The model has the shape of
Pythia 70M and random weights. Callback: CPU seconds of an evaluation of 100 facts of the bundled
sample, by writing and by multiple choice, against those of a training step, in turn; a step reads
`--tokens` tokens, where Pythia's own read two million. The first round lays out what is asked, too.
Harness: CPU seconds within this package while
`simple_evaluate` asks the first documents of redirectqa with 15 demonstrations, against its own.
The exit status is 1 where a budget is missed: 2 % of 1,000 steps, 5 % of the harness' time.
"""

import argparse
import platform
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import torch
import transformers
from bench_generation import save_model

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.integrations.harness import lm_eval_path
from surface_consistency.integrations.paired_task import PairedTask
from surface_consistency.integrations.trainer import StepEvaluator
from surface_consistency.schemas import Prompt

CALLBACK_SHARE = 0.02
HARNESS_SHARE = 0.05
STEPS = 1_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--documents", type=int, default=24)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, one thread\n")
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "model"
        texts = [q.question for q in load_sample().questions]
        save_model(folder, "70m", [Prompt(id=text, text=text) for text in texts])
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(len(tokenizer) - 1)
        tokenizer.save_pretrained(folder)
        missed = callback(folder, Path(work), given.tokens, given.rounds)
        missed |= harness(folder, given.documents)
    return int(missed)


def callback(folder, work, tokens, rounds):
    """Time evaluations and steps in turn."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, model.config.vocab_size, (tokens // 256, 256))

    def step():
        model.train()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    kinds = {"writing": {}, "multiple choice": {"read": "multiple-choice", "options": 3}}
    evaluators = {
        kind: StepEvaluator("sample", out=work / kind, options={"limit": 100, **options})
        for kind, options in kinds.items()
    }
    times = {"step": [], **{kind: [] for kind in kinds}}
    step()
    for number in range(rounds):
        for kind, evaluator in evaluators.items():
            times["step"].append(timed(step))
            times[kind].append(
                timed(lambda e=evaluator, n=number: e.evaluate(model, tokenizer, step=n))
            )
    one = statistics.median(times["step"])
    n = len(PairedTask.load("redirectqa", {"source": "sample", "limit": 100}).documents)
    print(f"| answers are read by | CPU s, {n} prompts | step, CPU s | share of {STEPS:,} steps |")
    print("|---|---|---|---|")
    missed = False
    for kind in kinds:
        spent = statistics.median(times[kind])
        share = spent / (STEPS * one)
        missed |= share > CALLBACK_SHARE
        print(f"| {kind} | {spent:.1f} | {one:.2f} | {share:.2%} |")
    print()
    return missed


def harness(folder, documents):
    """Time what of a harness' run is spent in this package."""
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
    print("| documents | CPU s | of them in this package | share | parts, CPU s |")
    print("|---|---|---|---|---|")
    print(f"| {documents} | {total:.1f} | {spent:.2f} | {spent / total:.1%} | {parts} |")
    return spent / total > HARNESS_SHARE


def counting(name, own):
    """Wrap a method of `PairedTask` so that its time is added up."""
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
