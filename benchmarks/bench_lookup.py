"""The lookup loop of limited-memory models in batches and with one prompt at a time.

Run `python benchmarks/bench_lookup.py`; prints a Markdown table. The model has a Llama shape and
random weights, and biases that cause lookups; the prompts query facts in one state of a store,
and then a third as many in three states. "generate" reads the complete text again after each
lookup, as in the published code. `--shape toy_model` trains the small limited-memory model of the
studies instead, which looks up the queried fact. On a GPU: `--device cuda --shape 382m`, the shape
of the published model. The exit status is 1 if a budget is missed in float32: batches of 32 are 4
times as fast as `LookupRunner` with one prompt at a time (median), and the texts are always the
same.
"""

import argparse
import json
import platform
import random
import statistics
import tempfile
import time
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.memory import AuditPrompt, Lookup, LookupQuery
from surface_consistency.studies.audit.lookup.runner import LookupRunner
from surface_consistency.studies.audit.lookup.settings import LookupSettings
from surface_consistency.studies.audit.matching.markup import parse_lookups
from surface_consistency.studies.audit.toy_model import train_memory_toy_model

# Hidden size, feed-forward size, layers, heads; 382m is the published LMLM-llama2-382M.
SHAPES = {"tiny": (32, 64, 2, 4), "70m": (512, 1408, 6, 8), "382m": (768, 11008, 12, 12)}
VOCABULARY = 32_004
PARAMS = GenerationParams(max_new_tokens=40, stop=())
BATCH = 32
OVER_ONE_BY_ONE = 4
STATES = ("FULL", "DEL-ON", "DEL-OFF")
ONE, OURS = "LookupRunner, one prompt at a time", f"LookupRunner, batches of {BATCH}"
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
RELATIONS = {
    "Capital": "What is the capital of {}?",
    "Currency": "Tell me about {}. The currency used in {} is",
    "Leader": "Answer with a short phrase.\nQuestion: Who leads {}?\nAnswer:",
}


def name(rng, n_words):
    """Return a name of some words."""
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))) for _ in range(n_words)]
    return " ".join(word.capitalize() for word in words)


def make_facts(n_facts, rng):
    """Return prompts of distinct facts."""
    made = {}
    while len(made) < n_facts:
        subject, relation = name(rng, 2), rng.choice(list(RELATIONS))
        made[subject] = AuditPrompt(
            prompt_id=len(made),
            item=len(made),
            subject=subject,
            relation=relation,
            gold_object=name(rng, rng.randint(1, 4)),
            prompt_text=RELATIONS[relation].replace("{}", subject),
        )
    return list(made.values())


class Store:
    """Returns the value of the fact, or a name if the query of the model is empty."""

    def __init__(self, facts):
        self.facts = {(fact.subject, fact.relation): fact.gold_object for fact in facts}

    def mode(self, prompt):
        return "allow" if prompt.condition == "DEL-OFF" else "answer"

    def look_up(self, requests):
        return [
            Lookup(
                query=query,
                value=self.facts.get(
                    (query.entity, query.relation), name(random.Random(query.entity), 3)
                )
                if prompt.condition == "FULL"
                else None,
            )
            for prompt, query in requests
        ]


def save_random_model(folder, shape, facts):
    """Save a random model, and a tokenizer with lookup tokens and a full vocabulary."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    raw.train_from_iterator([fact.prompt_text + fact.gold_object for fact in facts], trainer)
    trained = json.loads(raw.to_str())["model"]
    vocabulary = trained["vocab"]
    vocabulary |= {f"Ġw{number}": number for number in range(len(vocabulary), VOCABULARY - 4)}
    raw.model = models.BPE(vocab=vocabulary, merges=[tuple(pair) for pair in trained["merges"]])
    raw.add_special_tokens([AddedToken(token, special=True) for token in LookupSettings().tokens])
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw).save_pretrained(folder)
    hidden, inner, layers, heads = SHAPES[shape]
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=inner,
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


class Runner:
    """`LookupRunner`, from a plan to the last answer."""

    def __init__(self, folder, store, settings, arguments, batch_size):
        self.runner = LookupRunner(
            folder,
            store=store,
            settings=settings,
            batch_size=batch_size,
            device=arguments.device,
            dtype=arguments.dtype,
        )

    def answers(self, prompts):
        """Return text and number of lookups of each prompt by id."""
        return {
            answer.prompt_id: (answer.text, len(answer.lookups))
            for batch in self.runner.plan(prompts, PARAMS)
            for answer in self.runner.generate(batch, PARAMS)
        }


class Generate:
    """`generate` of transformers up to each lookup, and then again from the beginning."""

    def __init__(self, runner, store):
        self.model, self.tokenizer = runner._engine.model, runner._encoder.tokenizer
        self.ends, self.settings, self.store = runner._ends, runner.settings, store

    def answers(self, prompts):
        """Return text and number of lookups of each prompt by id."""
        return {prompt.id: self.ask(prompt) for prompt in prompts}

    def ask(self, prompt):
        """Return text and number of lookups of one prompt."""
        device, settings = self.model.device, self.settings
        entity, *others = self.tokenizer.convert_tokens_to_ids(list(settings.tokens))
        is_on = self.store.mode(prompt) == "answer"
        ids = self.tokenizer(prompt.text)["input_ids"]
        n_prompt, n_left, n_lookups = len(ids), PARAMS.max_new_tokens, 0
        while n_left:
            may = n_lookups < settings.max_lookups
            bias = {entity: settings.entity_bias} | dict.fromkeys(others, settings.other_bias)
            config = transformers.GenerationConfig(
                max_new_tokens=n_left,
                do_sample=False,
                repetition_penalty=settings.repetition_penalty,
                eos_token_id=sorted({*self.ends, *([others[1]] if is_on else [])}) or None,
                pad_token_id=0,
            )
            out = self.model.generate(
                input_ids=torch.tensor([ids], device=device),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long, device=device),
                generation_config=config,
                logits_processor=[Bias(bias if may else dict.fromkeys(bias, float("-inf")))]
                if is_on
                else [],
            )[0].tolist()
            n_left -= len(out) - len(ids)
            ids = out
            if ids[-1] != others[1] or not is_on:
                break
            found = parse_lookups(self.tokenizer.decode(ids[n_prompt:]))[-1]
            value = None
            if found.entity and found.relation:
                query = LookupQuery(entity=found.entity, relation=found.relation)
                value = self.store.look_up([(prompt, query)])[0].value
            shown = settings.null_text if value is None else value
            ids += self.tokenizer(f" {shown}", add_special_tokens=False)["input_ids"]
            ids.append(others[2])
            n_lookups += 1
        written = [token for token in ids[n_prompt:] if token not in self.ends]
        return self.tokenizer.decode(written, clean_up_tokenization_spaces=False), n_lookups


class Bias(transformers.LogitsProcessor):
    """Adds to the scores of some tokens."""

    def __init__(self, bias):
        self.bias = bias

    def __call__(self, input_ids, scores):
        for token, value in self.bias.items():
            scores[:, token] += value
        return scores


def workloads(facts):
    """Return the prompts of each workload by label."""
    third = facts[: -(-len(facts) // len(STATES))]
    return {
        f"{len(facts)} facts, one state": ask_all(facts, STATES[:1]),
        f"{len(third)} facts, three states": ask_all(third, STATES),
    }


def ask_all(facts, states):
    """Return the prompts of facts in states."""
    return [
        Prompt(id=f"{fact.item}/{state}", text=fact.prompt_text, condition=state)
        for fact in facts
        for state in states
    ]


def parse_arguments():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shape", choices=(*SHAPES, "toy_model"), default="70m")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    transformers.utils.logging.disable_progress_bar()
    facts = make_facts(arguments.facts, random.Random(0))
    store = Store(facts)
    settings = LookupSettings()
    over = []
    with tempfile.TemporaryDirectory() as folder:
        if arguments.shape == "toy_model":
            train_memory_toy_model(facts, Path(folder), steps=400)
        else:
            save_random_model(Path(folder), arguments.shape, facts)
            settings = LookupSettings(entity_bias=5.0, other_bias=5.0, max_lookups=2)
        runners = {
            ONE: Runner(folder, store, settings, arguments, 1),
            OURS: Runner(folder, store, settings, arguments, BATCH),
        }
        plain = Generate(runners[ONE].runner, store)
        found = {"one by one, `generate`": plain, **runners}
        heading(arguments)
        for label, prompts in workloads(facts).items():
            over += measure(label, prompts, found, arguments)
    if over:
        raise SystemExit(f"missed: {'; '.join(over)}")


def heading(arguments):
    """Print the conditions of the table."""
    print(
        f"Llama {arguments.shape}, {arguments.dtype}, {arguments.device}; "
        f"{PARAMS.max_new_tokens} new tokens at most, without values; medians of "
        f"{arguments.rounds} interleaved rounds; torch {torch.__version__}, transformers "
        f"{transformers.__version__}, {torch.get_num_threads()} threads, {platform.machine()}.\n"
    )
    print("| prompts | strategy | prompts/s | vs one at a time (range) | lookups | same text |")
    print("|---|---|---|---|---|---|")


def measure(label, prompts, found, arguments):
    """Print the rows of one workload; return one sentence per missed budget."""
    for strategy in found.values():
        strategy.answers(prompts[:4])
    seconds = {strategy: [] for strategy in found}
    answers = {}
    for _ in range(arguments.rounds):
        for strategy, asker in found.items():
            start = time.perf_counter()
            answers[strategy] = asker.answers(prompts)
            seconds[strategy].append(time.perf_counter() - start)
    reference = answers[ONE]
    over = []
    for strategy, spent in seconds.items():
        ratios = [one / mine for one, mine in zip(seconds[ONE], spent, strict=True)]
        texts = answers[strategy]
        same = sum(texts[key] == text for key, text in reference.items()) / len(reference)
        n_lookups = sum(count for _, count in texts.values())
        print(
            f"| {label} | {strategy} | {len(prompts) / statistics.median(spent):.1f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{n_lookups} | {same:.0%} |"
        )
        if arguments.dtype == "float32" and same < 1:
            over.append(f"{label}, {strategy}: {same:.1%} of the texts are the same, not 100%")
        if (
            strategy == OURS
            and arguments.dtype == "float32"
            and statistics.median(ratios) < OVER_ONE_BY_ONE
        ):
            over.append(
                f"{label}: batches are {statistics.median(ratios):.2f} times faster than one "
                f"prompt at a time; the budget is {OVER_ONE_BY_ONE}"
            )
    return over


if __name__ == "__main__":
    main()
