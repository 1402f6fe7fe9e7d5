"""Few-shot prompts for a language model: one by one, in batches, with a reused common prefix.

Run `python benchmarks/bench_generation.py`; prints a Markdown table. The model has a GPT-NeoX shape
and random weights, wide enough that answers differ. The prompts have 15 demonstrations, which are
the same for a relation. On a GPU: `--device cuda --dtype bfloat16`, with `--shape 1.4b` or
`--shape 6.9b`, and `--int8` for a row in 8 bits. The exit status is 1 if `TransformersRunner` in
float32 misses a budget: 5 times as fast as one by one (median) with at least 24 prompts per
relation, and the same text for every prompt.
"""

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.taxonomy import RELATIONS

SHAPES = {"tiny": (32, 2, 4), "70m": (512, 6, 8), "1.4b": (2048, 24, 16), "6.9b": (4096, 32, 32)}
VOCABULARY = 50_304
PARAMS = GenerationParams(max_new_tokens=15, stop=())
BATCH = 8
OURS = "TransformersRunner"
OVER_ONE_BY_ONE, PER_GROUP = 5, 24
SYLLABLES = (
    "ar",
    "be",
    "chi",
    "do",
    "en",
    "fa",
    "gor",
    "hul",
    "is",
    "ja",
    "kem",
    "lo",
    "qui",
    "zo",
)


def make_prompts(n_prompts, n_groups, rng):
    """Return prompts `Q: ... A:` after 15 solved ones, with one relation per group."""
    relations = list(RELATIONS.values())
    made = []
    for relation in relations[:n_groups]:
        others = [other for other in relations if other is not relation]
        shots = "\n\n".join(
            f"Q: {other.question(name(rng))} A: {name(rng)}" for other in others[:15]
        )
        for _ in range(n_prompts // n_groups):
            text = f"{shots}\n\nQ: {relation.question(name(rng))} A:"
            made.append(Prompt(id=f"q{len(made)}", text=text, group=relation.name))
    rng.shuffle(made)
    return made


def name(rng):
    """Return a name of three words."""
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))) for _ in range(3)]
    return " ".join(word.capitalize() for word in words)


def save_model(folder, shape, prompts):
    """Save a random model, and a tokenizer trained on the prompts with a full vocabulary."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    raw.train_from_iterator([prompt.text for prompt in prompts], trainer)
    trained = json.loads(raw.to_str())["model"]
    vocabulary = trained["vocab"]
    vocabulary |= {f"Ġw{number}": number for number in range(len(vocabulary), VOCABULARY)}
    raw.model = models.BPE(vocab=vocabulary, merges=[tuple(pair) for pair in trained["merges"]])
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw).save_pretrained(folder)
    hidden, layers, heads = SHAPES[shape]
    config = transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, std=2.5 / parameter.shape[-1] ** 0.5)
    model.save_pretrained(folder)


class Plain:
    """`generate` of transformers, in the order of the prompts."""

    def __init__(self, runner, *, batch_size=1, attend_padding=False, cut_at=None):
        self.model = runner._engine.model
        self.tokenizer = runner._encoder.tokenizer
        self.batch_size = batch_size
        self.attend_padding = attend_padding
        self.cut_at = cut_at or {}

    def answers(self, prompts):
        """Return the text of each prompt by id."""
        found = {}
        for start in range(0, len(prompts), self.batch_size):
            batch = prompts[start : start + self.batch_size]
            found |= zip([prompt.id for prompt in batch], self.ask(batch), strict=True)
        return found

    def ask(self, batch):
        """Return the texts of one batch."""
        rows = [self.encode(prompt) for prompt in batch]
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        if self.attend_padding:
            mask = torch.ones_like(mask)
        device = self.model.device
        out = self.model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            max_new_tokens=PARAMS.max_new_tokens,
            do_sample=False,
        )
        return self.tokenizer.batch_decode(out[:, width:], skip_special_tokens=True)

    def encode(self, prompt):
        """Return token ids; with `cut_at`, those of the group's common string and the rest."""
        cut = self.cut_at.get(prompt.group, 0)
        pieces = self.tokenizer([prompt.text[:cut], prompt.text[cut:]])["input_ids"]
        return pieces[0] + pieces[1]


class Ours:
    """`TransformersRunner`, from a plan to the last answer."""

    def __init__(self, runner):
        self.runner = runner

    def answers(self, prompts):
        """Return the text of each prompt by id."""
        return {
            answer.prompt_id: answer.text
            for batch in self.runner.plan(prompts, PARAMS)
            for answer in self.runner.generate(batch, PARAMS)
        }


def common_strings(prompts):
    """Return the length of the common prefix of the prompts of each group."""
    groups = {prompt.group: [] for prompt in prompts}
    for prompt in prompts:
        groups[prompt.group].append(prompt.text)
    return {group: len(os.path.commonprefix(texts)) for group, texts in groups.items()}  # noqa: RUF071


def contenders(folder, prompts, arguments):
    """Return the strategies by name, the one-by-one loop first."""
    options = {"device": arguments.device, "dtype": arguments.dtype}
    runner = TransformersRunner(folder, **options)
    without = TransformersRunner(folder, **options, reuse_prefix=False)
    found = {
        "one by one, `generate`": Plain(runner),
        f"batches of {BATCH}, `generate`": Plain(runner, batch_size=BATCH),
        "TransformersRunner, `reuse_prefix=False`": Ours(without),
        OURS: Ours(runner),
    }
    if arguments.int8:
        eight = TransformersRunner(folder, **options, quantization="int8")
        found |= {"one by one, int8": Plain(eight), "TransformersRunner, int8": Ours(eight)}
    controls = {
        "padding attended": Plain(runner, batch_size=BATCH, attend_padding=True),
        "prefix cut as a string": Plain(runner, cut_at=common_strings(prompts)),
    }
    return found, controls


def timed(strategy, prompts):
    """Return the answers and the seconds they took."""
    start = time.perf_counter()
    answers = strategy.answers(prompts)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return answers, time.perf_counter() - start


def agreement(answers, reference):
    """Return the proportion of prompts with the same text."""
    return sum(answers[key] == text for key, text in reference.items()) / len(reference)


def parse_arguments():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=96)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shape", choices=SHAPES, default="70m")
    parser.add_argument("--int8", action="store_true", help="add rows in 8 bits (CUDA)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    transformers.utils.logging.disable_progress_bar()
    prompts = make_prompts(arguments.prompts, arguments.groups, random.Random(0))
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), arguments.shape, prompts)
        found, controls = contenders(folder, prompts, arguments)
        n_tokens = found[OURS].runner.count_tokens(prompts[0])
        for strategy in found.values():
            strategy.answers(prompts[:4])
        seconds = {label: [] for label in found}
        answers = {}
        for _ in range(arguments.rounds):
            for label, strategy in found.items():
                answers[label], spent = timed(strategy, prompts)
                seconds[label].append(spent)
        checks = {label: strategy.answers(prompts) for label, strategy in controls.items()}
    report(arguments, n_tokens, seconds, answers, checks)
    if over := missed(arguments, seconds, answers):
        raise SystemExit(f"missed: {'; '.join(over)}")


def report(arguments, n_tokens, seconds, answers, checks):
    """Print the table and its conditions."""
    first = next(iter(seconds))
    reference = answers[first]
    n_new = len(reference) * PARAMS.max_new_tokens
    print(
        f"GPT-NeoX {arguments.shape}, random weights, {arguments.dtype}, {arguments.device}; "
        f"{len(reference)} prompts of {arguments.groups} relations, {n_tokens} tokens (15 shots), "
        f"{PARAMS.max_new_tokens} new; medians of {arguments.rounds} interleaved rounds; "
        f"torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{torch.get_num_threads()} threads, {platform.machine()}.\n"
    )
    print("| strategy | prompts/s | new tokens/s | vs one by one (range) | same text |")
    print("|---|---|---|---|---|")
    for label, spent in seconds.items():
        ratios = [one / mine for one, mine in zip(seconds[first], spent, strict=True)]
        median = statistics.median(spent)
        print(
            f"| {label} | {len(reference) / median:.1f} | {n_new / median:.0f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{agreement(answers[label], reference):.0%} |"
        )
    for label, control in checks.items():
        print(f"| negative control: {label} | - | - | - | {agreement(control, reference):.0%} |")
    print(f"\nDistinct answers: {len(set(reference.values()))} of {len(reference)}.")


def missed(arguments, seconds, answers):
    """Return one sentence per missed budget; lower precisions have no budget."""
    if arguments.dtype != "float32":
        return []
    first = next(iter(seconds))
    ratio = statistics.median(
        one / mine for one, mine in zip(seconds[first], seconds[OURS], strict=True)
    )
    same = agreement(answers[OURS], answers[first])
    found = []
    if arguments.prompts // arguments.groups >= PER_GROUP and ratio < OVER_ONE_BY_ONE:
        found.append(
            f"{OURS} is {ratio:.2f} times faster than one by one; the budget is {OVER_ONE_BY_ONE}"
        )
    if same < 1:
        found.append(f"{same:.1%} of the texts are those of one by one; the budget is 100%")
    return found


if __name__ == "__main__":
    main()
