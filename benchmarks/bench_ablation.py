"""Ablation: one forward per component, growing batches, and other libraries on the same model.

Run `OMP_NUM_THREADS=1 python benchmarks/bench_ablation.py`; prints Markdown tables. The model has
the shape of Pythia-70m (54 components) and random weights; the answer is the last 12 tokens. Times
are CPU seconds of the process on one thread, medians of interleaved rounds; slow methods are
timed on some components and extrapolated. `nnsight` and `transformer_lens` are included if they are
installed. On a GPU: `--device cuda`; `bench_ablation_paper.py` has the sizes of the paper. The exit
status is 1 if a budget is missed: 4 times as fast as one by one at 48 tokens, 3.5 at 128, 10 at
answer positions of 128, 4 for minimal sets, maximum differences of 1e-5, and 60 % of the rate of
sgemm on a CPU, which even such a small model can use fully.
"""

import argparse
import importlib
import platform
import statistics
import tempfile
import time
from importlib.util import find_spec

import numpy as np
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from surface_consistency.studies.mechanism.ablation import (
    TokenizedAnswer,
    ablate,
    prepare_model,
    recover,
)

N_ANSWER = 12
BUDGETS = {48: 4.0, 128: 3.5}
ANSWER_BUDGET, SETS_BUDGET, SGEMM_BUDGET, TOLERANCE = 10.0, 4.0, 0.6, 1e-5


def make_model(device):
    """Make a GPT-NeoX of 70 million parameters in which all components have an effect."""
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=50_304,
        hidden_size=512,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=2048,
    )
    model = transformers.GPTNeoXForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "layers" in name:
                torch.nn.init.normal_(weight, std=0.06)
    return model.to(device)


def seconds_of(work, device):
    """Return the time of work in CPU seconds, or in wall-clock seconds on a GPU."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    start = clock()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return found, clock() - start


def one_forward(model, ids, component=None):
    """Ablate one component with hooks of a full forward with all logits, as in tutorials."""
    handle = None
    if component is not None:
        layer = model.gpt_neox.layers[component.layer]
        if component.kind == "mlp":
            handle = layer.mlp.register_forward_hook(lambda module, args, out: out * 0)
        else:
            part = slice(64 * component.index, 64 * (component.index + 1))

            def cut(module, args):
                values = args[0].clone()
                values[..., part] = 0
                return (values,)

            handle = layer.attention.dense.register_forward_pre_hook(cut)
    try:
        with torch.inference_mode():
            logits = model(ids[:, :-1], use_cache=False).logits[0, -N_ANSWER:]
    finally:
        if handle is not None:
            handle.remove()
    return logits.gather(-1, ids[0, -N_ANSWER:, None])[:, 0].double().cpu().numpy()


def by_nnsight(model, ids, component):
    """Ablate one component with a trace of nnsight."""
    traced = importlib.import_module("nnsight").NNsight(model)
    layer = traced.gpt_neox.layers[component.layer]
    with torch.inference_mode(), traced.trace(ids[:, :-1]):
        if component.kind == "mlp":
            layer.mlp.output[:] = 0
        else:
            part = slice(64 * component.index, 64 * (component.index + 1))
            layer.attention.dense.input[:, :, part] = 0
        out = traced.embed_out.output.save() if hasattr(model, "embed_out") else None
        if out is None:
            out = traced.output.logits.save()
    gold = ids[0, -N_ANSWER:, None]
    return out[0, -N_ANSWER:].gather(-1, gold)[:, 0].double().cpu().numpy()


def make_bridge(model):
    """Wrap the model with TransformerLens; return None if that requires the hub."""
    if find_spec("transformer_lens") is None:
        return None
    bridge = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    try:
        with tempfile.TemporaryDirectory() as home:
            model.save_pretrained(home)
            return bridge.boot_transformers(home, hf_model=model, device=str(model.device))
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"TransformerLens: not timed ({type(error).__name__}: {str(error)[:80]})\n")
        return None


def by_bridge(bridge, ids, component):
    """Ablate one component with a hook of TransformerLens."""

    def cut(values, hook):
        if component.kind == "mlp":
            return values * 0
        values = values.clone()
        if values.dim() == 4:
            values[:, :, component.index] = 0
        else:
            values[..., 64 * component.index : 64 * (component.index + 1)] = 0
        return values

    where = "hook_mlp_out" if component.kind == "mlp" else "attn.hook_z"
    name = f"blocks.{component.layer}.{where}"
    with torch.inference_mode():
        logits = bridge.run_with_hooks(ids[:, :-1], fwd_hooks=[(name, cut)], return_type="logits")
    gold = ids[0, -N_ANSWER:, None]
    return logits[0, -N_ANSWER:].gather(-1, gold)[:, 0].double().cpu().numpy()


def sgemm_rate(device):
    """Measure the floating-point operations per second of a product of matrices."""
    one, other = torch.randn(512, 2048, device=device), torch.randn(2048, 2048, device=device)
    best = 0.0
    for _ in range(5):
        _, seconds = seconds_of(lambda: [one @ other for _ in range(10)], device)
        best = max(best, 10 * 2 * 512 * 2048 * 2048 / seconds)
    return best


def recover_rows(model, scores):
    """Find sets, and count the forwards that are needed with one row at a time."""
    return sum(len(one.components) + 1 for one in recover(model, scores))


def all_ways(model, prepared, bridge, ids, answer, sampled):
    """Return the methods by name; those with one component at a time use the sampled ones."""
    ways = {
        "one forward per component": lambda: [one_forward(model, ids, c) for c in sampled],
        "growing batch": lambda: ablate(prepared, answer, readout="logit"),
        "growing batch, answer positions": lambda: ablate(
            prepared, answer, readout="logit", positions="answer"
        ),
    }
    if find_spec("nnsight") is not None:
        ways["nnsight"] = lambda: [by_nnsight(model, ids, c) for c in sampled]
    if bridge is not None:
        ways["TransformerLens"] = lambda: [by_bridge(bridge, ids, c) for c in sampled]
    return ways


def main():
    """Time all methods and compare their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, nargs="+", default=[48, 128])
    given = parser.parse_args()
    device = given.device
    model = make_model(device)
    prepared = prepare_model(model)
    rate = sgemm_rate(device)
    components = prepared.map.components
    sampled = components[:: given.every]
    scale = len(components) / len(sampled)
    bridge = make_bridge(model)
    threads = torch.get_num_threads()
    print(f"{platform.machine()}, {threads} threads; sgemm {rate / 1e9:.0f} GFLOP/s\n")
    print("| tokens | method | seconds | times one by one | proportion of sgemm | difference |")
    print("|---|---|---|---|---|---|")
    met = True
    for n_tokens in given.tokens:
        ids = torch.randint(0, 50_304, (1, n_tokens), generator=torch.Generator().manual_seed(1))
        ids = ids.to(device)
        answer = TokenizedAnswer(ids=ids[0].tolist(), start=n_tokens - N_ANSWER)
        ways = all_ways(model, prepared, bridge, ids, answer, sampled)
        found, times = {}, {name: [] for name in ways}
        for _ in range(given.rounds):
            for name, work in ways.items():
                found[name], seconds = seconds_of(work, device)
                times[name].append(seconds * (scale if isinstance(found[name], list) else 1.0))
        slow = statistics.median(times["one forward per component"])
        scores = found["growing batch"]
        for name, of_way in times.items():
            seconds = statistics.median(of_way)
            result = found[name]
            reference = np.stack(found["one forward per component"], axis=1)
            gap, share = "-", "-"
            if isinstance(result, list):
                difference = np.abs(np.stack(result, axis=1) - reference).max()
                gap = f"{difference:.0e}"
            elif name == "growing batch":
                difference = np.abs(result.ablated[:, :: given.every] - reference).max()
                gap = f"{difference:.0e}"
                met &= difference <= TOLERANCE * max(1.0, np.abs(reference).max())
                with FlopCounterMode(display=False) as counter:
                    ways[name]()
                used = counter.get_total_flops() / seconds / rate
                share = f"{used:.0%}"
                met &= slow / seconds >= BUDGETS.get(n_tokens, 0.0)
                met &= device == "cuda" or used >= SGEMM_BUDGET
            elif n_tokens >= 128:
                met &= slow / seconds >= ANSWER_BUDGET
            print(
                f"| {n_tokens} | {name} | {seconds:.2f} | **{slow / seconds:.1f}** | {share} "
                f"| {gap} |",
                flush=True,
            )
        rows, seconds = seconds_of(lambda scores=scores: recover_rows(prepared, scores), device)
        one_row = statistics.median(times["one forward per component"]) / len(components)
        print(
            f"| {n_tokens} | minimal sets, {rows} runs | {seconds:.2f} "
            f"| **{rows * one_row / seconds:.1f}** | - | - |",
            flush=True,
        )
        met &= rows * one_row / seconds >= SETS_BUDGET
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
