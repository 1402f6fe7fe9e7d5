"""Ablation at the sizes of SLAQ's section 5: hours for its 360 pairs.

Run `python benchmarks/bench_ablation_paper.py --device cuda --dtype bfloat16`; prints a Markdown
table. The models have the shapes of the six models of the paper (for Qwen-2.5, which has no 1B, the
1.5B) and random weights, which have the same cost as trained ones. A pair is a short answer of 12
tokens in a text of 64, and a span of 30 tokens that ends a text of 256. Importances are timed
completely. Minimal sets are timed on 256 growing sets in random order, and scaled to the rows of a
set of 30 % of the components at every token, since random weights have no particular set. One
forward per component, with all logits, is timed on 24 components and scaled to all.
"""

import argparse
import statistics
import time

import numpy as np
import torch
import transformers
from transformers import LlamaConfig, Qwen2Config, Qwen3Config

from surface_consistency.studies.mechanism.ablation import TokenizedAnswer, ablate, prepare_model

PAIRS_A_MODEL = 60
TEXTS = {"short": (64, 12), "long": (256, 30)}
SHARE, N_ROWS, N_SINGLE = 0.3, 256, 24


def shape(kind, vocabulary, hidden, inner, layers, heads, groups, size=None):
    """Return the configuration of a model."""
    return kind(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=size or hidden // heads,
        tie_word_embeddings=True,
    )


SHAPES = {
    "Llama-3.2-1B": shape(LlamaConfig, 128_256, 2048, 8192, 16, 32, 8),
    "Llama-3.2-3B": shape(LlamaConfig, 128_256, 3072, 8192, 28, 24, 8),
    "Qwen2.5-1.5B": shape(Qwen2Config, 151_936, 1536, 8960, 28, 12, 2),
    "Qwen2.5-3B": shape(Qwen2Config, 151_936, 2048, 11_008, 36, 16, 2),
    "Qwen3-1.7B": shape(Qwen3Config, 151_936, 2048, 6144, 28, 16, 8, 128),
    "Qwen3-4B": shape(Qwen3Config, 151_936, 2560, 9728, 36, 32, 8, 128),
}


def make_model(config, device, dtype):
    """Make a model with random weights on the device."""
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    return model.eval()


def seconds_of(work, device):
    """Return the result of the work and its wall-clock seconds."""
    start = time.perf_counter()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return found, time.perf_counter() - start


def one_forward(prepared, ids, component):
    """Ablate one component with a hook of a full forward with all logits, as in tutorials."""
    points = prepared.map.hook_points[component.layer]
    if component.kind == "mlp":
        hook = points.mlp.register_forward_hook(lambda module, args, out: out * 0)
    else:
        size = points.projection.in_features // points.n_heads

        def cut(module, args):
            values = args[0].clone()
            values[..., size * component.index : size * (component.index + 1)] = 0
            return (values,)

        hook = points.projection.register_forward_pre_hook(cut)
    try:
        with torch.inference_mode():
            return prepared.model(ids[:, :-1], use_cache=False).logits.float()
    finally:
        hook.remove()


def growing_sets(n_components, n_tokens, rng):
    """Return the losses and tokens of rows with sets that grow by one up to the proportion."""
    largest = max(1, round(SHARE * n_components))
    n_sizes = min(largest, max(1, N_ROWS // n_tokens))
    ablated = np.ones((n_tokens * n_sizes, n_components), dtype=bool)
    for token in range(n_tokens):
        order = rng.permutation(n_components)
        for place in range(n_sizes):
            kept = order[: largest - n_sizes + place + 1]
            ablated[token * n_sizes + place, kept] = False
    return ablated, np.repeat(np.arange(n_tokens), n_sizes)


def measure(prepared, length, n_answer, given):
    """Return seconds of importances, of sets and of one forward per component, for one text."""
    rng = np.random.default_rng(0)
    ids = torch.as_tensor(rng.integers(1000, 100_000, size=(1, length)), device=given.device)
    answer = TokenizedAnswer(ids=ids[0].tolist(), start=length - n_answer)
    components = prepared.map.components
    singles = [components[n] for n in np.linspace(0, len(components) - 1, N_SINGLE, dtype=int)]
    ablated, tokens = growing_sets(len(components), n_answer, rng)
    times = {"importances": [], "sets": [], "single": []}
    for number in range(given.rounds + 1):
        scores, whole = seconds_of(lambda: ablate(prepared, answer), given.device)
        readout = scores.readout
        _, rows = seconds_of(
            lambda readout=readout: prepared.evaluate(readout, ablated, tokens=tokens), given.device
        )
        _, alone = seconds_of(
            lambda: [one_forward(prepared, ids, component) for component in singles], given.device
        )
        if number:  # The first round is a warm-up.
            times["importances"].append(whole)
            times["sets"].append(rows / len(ablated) * n_answer * round(SHARE * len(components)))
            times["single"].append(alone / N_SINGLE * len(components))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    """Time the six shapes and add up their hours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=list(SHAPES))
    given = parser.parse_args()
    print(f"{given.device}, {given.dtype}, torch {torch.__version__}\n")
    print(
        "| shape | components | text | importances, s | one forward per component, s | times "
        "| sets of 30 %, s | 60 pairs, hours |"
    )
    print("|---|---|---|---|---|---|---|---|")
    total = 0.0
    for name in given.models:
        model = make_model(SHAPES[name], given.device, getattr(torch, given.dtype))
        prepared = prepare_model(model)
        for text, (length, n_answer) in TEXTS.items():
            of = measure(prepared, length, n_answer, given)
            hours = PAIRS_A_MODEL * (of["importances"] + of["sets"]) / 3600
            total += hours
            print(
                f"| {name} | {len(prepared.map)} | {text} | {of['importances']:.2f} "
                f"| {of['single']:.2f} | **{of['single'] / of['importances']:.1f}** "
                f"| {of['sets']:.1f} | {hours:.2f} |",
                flush=True,
            )
        del model, prepared
        if given.device == "cuda":
            torch.cuda.empty_cache()
    print(f"\n{PAIRS_A_MODEL * len(given.models)} pairs: {total:.1f} hours.")


if __name__ == "__main__":
    main()
