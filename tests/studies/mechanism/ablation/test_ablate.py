"""Ablation: readouts, replacements, batches, dtypes, devices and errors."""

import sys
import warnings
from copy import deepcopy

import numpy as np
import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError, RunnerOutOfMemoryError
from surface_consistency.studies.mechanism.ablation import TokenizedAnswer, ablate, prepare_model
from surface_consistency.studies.mechanism.ablation.replacement import mean_replacement
from tests.studies.mechanism.ablation.conftest import (
    GQA,
    IDS,
    one_by_one,
    tiny,
    torch,
    transformers,
    untouched,
)

ANSWER = TokenizedAnswer(ids=IDS, start=8)


@pytest.fixture(scope="module")
def prepared():
    return prepare_model(tiny("llama"))


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_missing_library_error_names_its_extra(library, monkeypatch):
    model = tiny("llama")
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingDependencyError, match=rf"{library}.*\[inference\]"):
        prepare_model(model)


def fresh(**options):
    torch.manual_seed(3)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**GQA, **options)).eval()


def all_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double()


@pytest.mark.parametrize("name", ["llama", "gemma2", "cohere", "granite"])
def test_readouts_equal_the_logits_of_the_model(name):
    """Three of the models change their logits."""
    prepared = prepare_model(tiny(name))
    logits = all_logits(prepared.model, list(IDS[:-1]))[7:]
    gold = torch.tensor(IDS[8:])[:, None]
    expected = {
        "logit": logits.gather(-1, gold)[:, 0],
        "centred_logit": (logits - logits.mean(-1, keepdim=True)).gather(-1, gold)[:, 0],
        "log_probability": logits.log_softmax(-1).gather(-1, gold)[:, 0],
    }

    for readout, values in expected.items():
        scores = ablate(prepared, ANSWER, readout=readout)
        assert scores.base == pytest.approx(values.numpy(), abs=1e-5)
    if name != "llama":
        read_from = prepared.fingerprint()["read_from"]
        assert read_from.startswith("the model's logits (rows of the unembedding: ")
        assert "logits differ by" in read_from


def test_shift_of_all_logits_changes_only_the_logit_readout(prepared):
    model = fresh()
    shifted = fresh()
    with torch.no_grad():
        # The unembedding reads one more constant direction, which shifts every logit.
        shifted.lm_head.weight += 0.5 * torch.ones(32)
    before, after = prepare_model(model), prepare_model(shifted)

    changes = {
        readout: np.abs(
            ablate(after, ANSWER, readout=readout).change
            - ablate(before, ANSWER, readout=readout).change
        ).max()
        for readout in ("logit", "centred_logit", "log_probability")
    }

    assert changes["logit"] > 0.1
    assert changes["centred_logit"] < 1e-5
    assert changes["log_probability"] < 1e-5


@pytest.mark.parametrize("max_rows", [1, 2, 5])
def test_size_of_batches_does_not_change_values(prepared, max_rows):
    whole = ablate(prepared, ANSWER)

    cut = ablate(prepared, ANSWER, max_rows=max_rows)

    assert cut.ablated == pytest.approx(whole.ablated, abs=1e-6)
    assert cut.base == pytest.approx(whole.base, abs=1e-6)
    assert cut.floor == pytest.approx(whole.floor, abs=1e-6)
    assert cut.is_greedy.tolist() == whole.is_greedy.tolist()


@pytest.mark.parametrize("n_fit", [4, 0])
def test_batches_are_halved_until_they_fit(prepared, n_fit):
    whole = ablate(prepared, ANSWER)
    sizes = []

    def full(module, args):
        sizes.append(len(args[0]))
        if len(args[0]) > n_fit:
            raise torch.OutOfMemoryError("CUDA out of memory")

    handle = prepared.model.model.norm.register_forward_pre_hook(full)
    try:
        if n_fit == 0:
            with pytest.raises(RunnerOutOfMemoryError, match="a text of 12 tokens does not fit"):
                ablate(prepared, ANSWER)
            return
        halved = ablate(prepared, ANSWER)
    finally:
        handle.remove()

    assert sizes[0] > 4
    assert max(sizes[-3:]) <= 4
    assert halved.ablated == pytest.approx(whole.ablated, abs=1e-6)


def test_tokens_after_the_answer_have_no_effect(prepared):
    longer = TokenizedAnswer(ids=(*IDS, 5, 6, 7), start=8, stop=12)

    expected = ablate(prepared, ANSWER).ablated
    assert ablate(prepared, longer).ablated == pytest.approx(expected, abs=1e-6)


def test_mean_ablation_replaces_components_by_the_mean_of_texts():
    model = tiny("gpt2")
    prepared = prepare_model(model)
    texts = [IDS, IDS[2:9]]
    replacement = mean_replacement(prepared, texts)

    scores = ablate(prepared, ANSWER, replacement=replacement, readout="logit")

    inputs = []
    projection = model.transformer.h[1].attn.c_proj
    handle = projection.register_forward_pre_hook(lambda m, args: inputs.append(args[0][0]))
    for ids in texts:
        all_logits(model, list(ids))
    handle.remove()
    mean = torch.cat(inputs).mean(dim=0)[16:24]

    def patch(module, args):
        values = args[0].clone()
        values[..., 16:24] = mean
        return (values,)

    handle = projection.register_forward_pre_hook(patch)
    expected = untouched(model, IDS, 8)
    handle.remove()
    column = [c.name for c in scores.components].index("1.2")
    assert scores.ablated[:, column] == pytest.approx(expected, abs=1e-5)


def test_dropout_is_disabled_and_training_mode_restored():
    model = fresh(attention_dropout=0.5)
    expected = ablate(prepare_model(model), ANSWER).ablated
    model.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Version 6 has another name for it.
        model.gradient_checkpointing_enable()

    before = n_hooks(model)

    scores = ablate(prepare_model(model), ANSWER)

    assert model.training
    assert scores.ablated == pytest.approx(expected, abs=1e-6)
    assert n_hooks(model) == before


def n_hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_hooks_of_a_steered_model_are_kept():
    model = fresh()
    plain = ablate(prepare_model(model), ANSWER, readout="logit")
    handle = model.model.layers[0].register_forward_hook(
        lambda module, args, output: output + torch.linspace(-2, 2, 32)
    )
    expected = untouched(model, IDS, 8)

    scores = ablate(prepare_model(model), ANSWER, readout="logit")

    assert len(model.model.layers[0]._forward_hooks) == 1
    handle.remove()
    assert scores.base == pytest.approx(expected, abs=1e-5)
    assert np.abs(scores.base - plain.base).max() > 1e-3
    assert scores.fingerprint["batches"] == "growing"


def test_hook_that_needs_single_rows_disables_batches():
    model = tiny("llama")

    def narrow(module, args, output):
        return output.view(1, output.shape[1], 32)

    handle = model.model.layers[1].register_forward_hook(narrow)
    try:
        scores = ablate(prepare_model(model), ANSWER, readout="logit")
    finally:
        handle.remove()

    assert scores.fingerprint["batches"].startswith("single (growing batches: the model refuses")
    assert scores.ablated == pytest.approx(one_by_one(model, "llama", IDS, 8)[1], abs=1e-5)


def test_low_precision_equals_one_by_one_ablation_in_that_dtype():
    model = fresh().to(torch.bfloat16)

    grown = ablate(prepare_model(model), ANSWER)
    alone = ablate(prepare_model(model), ANSWER, max_rows=1)

    assert grown.fingerprint["dtype"] == "bfloat16"
    assert grown.ablated == pytest.approx(alone.ablated, abs=2e-2)


def test_offloaded_weights_are_read_on_their_device():
    accelerate = pytest.importorskip("accelerate")
    model = tiny("qwen2")
    expected = ablate(prepare_model(model), ANSWER)
    away = accelerate.cpu_offload(deepcopy(model), execution_device=torch.device("cpu"))

    scores = ablate(prepare_model(away), ANSWER)

    assert scores.ablated == pytest.approx(expected.ablated, abs=1e-5)


def test_wrapper_of_torch_compile_is_removed():
    model = tiny("llama")

    class Wrapper:
        _orig_mod = model

    wrapped = ablate(prepare_model(Wrapper()), ANSWER)
    assert wrapped.base == pytest.approx(ablate(prepare_model(model), ANSWER).base)


def test_layers_compiled_in_place_raise_an_error():
    model = fresh()
    model.model.layers[0]._compiled_call_impl = model.model.layers[0].forward

    with pytest.raises(RunnerError, match=r"model\.layers\.0 was compiled in place"):
        prepare_model(model)


@pytest.mark.parametrize(
    ("answer", "options", "error", "match"),
    [
        ({"ids": IDS, "start": 12}, {}, ValueError, "must contain a token of the text"),
        ({"ids": (), "start": 0}, {}, ValueError, "must contain a token of the text"),
        ({"ids": IDS, "start": 0}, {}, ValueError, "which has no prediction"),
        ({"ids": (IDS, IDS), "start": 1}, {}, TypeError, "one text without padding"),
        ({"ids": (3, 99), "start": 1}, {}, ValueError, "token 99 is not one of the model's 61"),
        ({"ids": tuple(range(1, 61)) + IDS, "start": 9}, {}, RunnerError, "72 tokens up to"),
        ({"ids": (0, 0, *IDS), "start": 10}, {}, ValueError, "with the padding token 0"),
        (None, {"positions": "end"}, ValueError, "positions must be 'all', 'answer' or 'last'"),
        (None, {"readout": "loss"}, ValueError, "readout must be 'logit'"),
        (None, {"max_rows": 0}, ValueError, "max_rows must be at least 1"),
    ],
)
def test_invalid_texts_and_options_raise_an_error(answer, options, error, match):
    model = prepare_model(fresh(pad_token_id=0))

    with pytest.raises(error, match=match):
        ablate(model, TokenizedAnswer(**answer) if answer else ANSWER, **options)


def test_weights_that_are_nan_raise_an_error():
    model = fresh()
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = float("nan")

    with pytest.raises(RunnerError, match="llama returns values that are not finite"):
        ablate(prepare_model(model), ANSWER)


def test_nnsight_returns_the_same_values():
    nnsight = pytest.importorskip("nnsight")
    model = tiny("llama")
    scores = ablate(prepare_model(model), ANSWER, readout="logit")
    traced = nnsight.NNsight(model)
    ids = torch.tensor([IDS[:-1]])
    for column, (layer, head) in {1: (0, 1), 7: (1, 2)}.items():
        with torch.no_grad(), traced.trace(ids):
            values = traced.model.layers[layer].self_attn.o_proj.input
            values[:, :, head * 8 : (head + 1) * 8] = 0
            out = traced.lm_head.output.save()
        expected = out[0, 7:].gather(-1, torch.tensor(IDS[8:])[:, None])[:, 0]
        assert scores.ablated[:, column] == pytest.approx(expected.numpy(), abs=1e-5)
