"""Log-probabilities of options: one forward per text, and `TransformersRunner.score`.

Run `python benchmarks/bench_scoring.py`; prints a Markdown table. The model has a GPT-NeoX shape
and random weights. There are three jobs: four one-word options after a common context (multiple
choice), and the four words of a linking question, without and with demonstrations, which are the
same for all questions. Times are CPU seconds of the process, medians of interleaved rounds; the
naive loop is timed on every tenth question. On a GPU: `--device cuda --dtype bfloat16 --shape
1.4b`. The exit status is 1 if a budget is missed (4 times as fast as one by one for options, 2
times for linking) or numbers differ. With `--pairs 1000`, minimal pairs like those of four groups
of BLiMP are also scored by lm-evaluation-harness, on the same model in the same process; the budget
is that this package is not slower. `--apart` compares scoring the linking words together with one
call per word. Both use batches, so that the only difference is the common question; the budget is 2
times without shots.
"""

import argparse
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
from bench_generation import SHAPES, make_prompts, name, save_model

from surface_consistency.models import TransformersRunner
from surface_consistency.schemas import ScoringRequest
from surface_consistency.studies.linking.prompts import linking_prompt, linking_question

BUDGETS = {"options": 4.0, "linking": 2.0, "linking, 8 shots": 2.0}
TOLERANCE = 1e-3
NAIVE_SHARE = 10


def options(n_questions, rng):
    """Return short options after contexts, four options per question."""
    contexts = [
        f"Q: What is the occupation of {name(rng)}, born near {name(rng)}? A:"
        for _ in range(n_questions)
    ]
    return [
        ScoringRequest(
            id=f"{number}/{choice}",
            context=context,
            continuation=f" {name(rng).split()[0]}",
            group=str(number),
        )
        for number, context in enumerate(contexts)
        for choice in range(4)
    ]


def linking(n_questions, n_shots, rng):
    """Return the words of yes and no after linking questions."""
    shown = [
        (linking_question(name(rng), name(rng), category=None), bool(shot % 2))
        for shot in range(n_shots)
    ]
    prompts = [
        linking_prompt(
            str(number), linking_question(name(rng), name(rng), category=None), demonstrations=shown
        )
        for number in range(n_questions)
    ]
    return [
        ScoringRequest(
            id=f"{prompt.id}/{word}",
            context=prompt.text,
            continuation=word,
            group="shots" if shown else None,
        )
        for prompt in prompts
        for word in prompt.options
    ]


def minimal_pairs(n_pairs, rng):
    """Return both sentences of the pairs of four groups, each as a complete text."""
    verbs = (("is", "are"), ("himself", "herself"), ("these", "this"), ("was seen", "was smiled"))
    return [
        ScoringRequest(id=f"{group}/{pair}/{option}", continuation=text)
        for group, words in enumerate(verbs)
        for pair in range(n_pairs)
        for start in [f" The {name(rng)} that {name(rng)}"]
        for end in [f"by some {name(rng)}."]
        for option, text in enumerate(f"{start} {word} {end}" for word in words)
    ]


def by_harness(runner, batch_size):
    """Return a function that scores requests by lm-evaluation-harness with the same model."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    harness = HFLM(
        pretrained=runner._engine.model, tokenizer=runner._encoder.tokenizer, batch_size=batch_size
    )

    def score(requests):
        asked = [
            Instance(
                request_type="loglikelihood",
                doc={},
                arguments=(request.context, request.continuation),
                idx=0,
            )
            for request in requests
        ]
        measured = harness.loglikelihood(asked, disable_tqdm=True)
        return {request.id: value for request, (value, _) in zip(requests, measured, strict=True)}

    return score


def against_harness(runner, given, rng):
    """Time both on the same pairs and print a row; return whether the budget is met."""
    requests = minimal_pairs(given.pairs, rng)
    tokenizer = runner._encoder.tokenizer
    if tokenizer.bos_token is None:  # Both insert it before a complete text.
        tokenizer.bos_token = tokenizer.convert_ids_to_tokens(0)
    harness = by_harness(runner, 64)
    theirs, fast = [], []
    for _ in range(given.rounds):
        expected, seconds = seconds_of(lambda: harness(requests))
        theirs.append(seconds)
        found, seconds = seconds_of(lambda: ours(runner, requests))
        fast.append(seconds)
    difference = max(abs(found[key] - value) for key, value in expected.items())
    slow, quick = statistics.median(theirs), statistics.median(fast)
    print(
        f"\n| job | texts | lm-evaluation-harness, texts/s | `score`, texts/s | ratio "
        f"| largest difference |\n|---|---|---|---|---|---|\n"
        f"| minimal pairs | {len(requests):,} | {len(requests) / slow:.1f} "
        f"| {len(requests) / quick:.1f} | **{slow / quick:.2f}** | {difference:.1e} |"
    )
    return quick <= slow and difference <= (TOLERANCE if given.dtype == "float32" else 0.5)


def one_by_one(runner, requests):
    """Score each request by a separate forward."""
    model, tokenizer = runner._engine.model, runner._encoder.tokenizer
    scores = {}
    with torch.inference_mode():
        for request in requests:
            n_context = len(tokenizer(request.context)["input_ids"])
            ids = tokenizer(request.context + request.continuation)["input_ids"]
            row = torch.tensor([ids], device=model.device)
            measured = model(input_ids=row).logits[0].float().log_softmax(-1)
            places = torch.arange(n_context, len(ids), device=model.device)
            scores[request.id] = measured[places - 1, row[0, places]].sum().item()
    return scores


def ours(runner, requests):
    """Score all requests."""
    return {score.request_id: score.log_probability for score in runner.score(requests)}


def apart(runner, requests):
    """Score all requests, with one call per word of yes and no."""
    words = dict.fromkeys(request.continuation for request in requests)
    scores = {}
    for word in words:
        scores |= ours(runner, [item for item in requests if item.continuation == word])
    return scores


def compare_apart(runner, jobs, n_rounds):
    """Print the speed-up of scoring words together; return whether the budget is met."""
    print("| job | texts | apart, texts/s | together, texts/s | ratio | largest difference |")
    print("|---|---|---|---|---|---|")
    met = True
    for job in ("linking", "linking, 8 shots"):
        requests, speeds = jobs[job], {apart: [], ours: []}
        found = {}
        for _ in range(n_rounds):
            for way, measured in speeds.items():
                found[way], seconds = seconds_of(lambda way=way: way(runner, requests))  # noqa: B023
                measured.append(len(requests) / seconds)
        difference = max(abs(found[ours][key] - value) for key, value in found[apart].items())
        slow, quick = (statistics.median(measured) for measured in speeds.values())
        print(
            f"| {job} | {len(requests):,} | {slow:.1f} | {quick:.1f} | **{quick / slow:.1f}** "
            f"| {difference:.1e} |",
            flush=True,
        )
        # Demonstrations are computed once in both cases.
        met &= (job != "linking" or quick / slow >= BUDGETS[job]) and difference <= TOLERANCE
    return met


def seconds_of(work):
    """Return the time of work in CPU seconds, or in wall-clock seconds on a GPU."""
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    start = clock()
    found = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return found, clock() - start


def main():
    """Time both methods and compare their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_500)
    parser.add_argument("--pairs", type=int, default=0, help="pairs of each group of BLiMP")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--shape", choices=SHAPES, default="70m")
    given = parser.parse_args()
    rng = random.Random(0)
    jobs = {
        "options": options(given.questions, rng),
        "linking": linking(given.questions, 0, rng),
        "linking, 8 shots": linking(given.questions // 5, 8, rng),
    }
    with tempfile.TemporaryDirectory() as home:
        save_model(Path(home), given.shape, make_prompts(48, 4, random.Random(1)))
        runner = TransformersRunner(home, device=given.device, dtype=given.dtype, batch_size=64)
        print(f"{platform.machine()}, {torch.get_num_threads()} threads, {given.shape}\n")
        if given.apart:
            return 0 if compare_apart(runner, jobs, given.rounds) else 1
        print(
            "| job | texts | one by one, texts/s | `score`, texts/s | ratio | largest difference |"
        )
        print("|---|---|---|---|---|---|")
        met = True
        for job, requests in jobs.items():
            sample = requests[: len(requests) // NAIVE_SHARE]
            naive, fast = [], []
            for _ in range(given.rounds):
                expected, seconds = seconds_of(lambda sample=sample: one_by_one(runner, sample))
                naive.append(len(sample) / seconds)
                found, seconds = seconds_of(lambda requests=requests: ours(runner, requests))
                fast.append(len(requests) / seconds)
            difference = max(abs(found[key] - value) for key, value in expected.items())
            slow, quick = statistics.median(naive), statistics.median(fast)
            print(
                f"| {job} | {len(requests):,} | {slow:.1f} | {quick:.1f} "
                f"| **{quick / slow:.1f}** | {difference:.1e} |",
                flush=True,
            )
            is_exact = difference <= (TOLERANCE if given.dtype == "float32" else 0.5)
            met &= quick / slow >= BUDGETS[job] and is_exact
        if given.pairs:
            met &= against_harness(runner, given, rng)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
