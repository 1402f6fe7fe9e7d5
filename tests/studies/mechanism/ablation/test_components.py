"""Locations of heads and MLPs by architecture, and errors for other models."""

import numpy as np
import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.studies.mechanism.ablation import TokenizedAnswer, ablate, prepare_model
from surface_consistency.studies.mechanism.ablation.components import find_components
from tests.studies.mechanism.ablation.conftest import (
    ARCHITECTURES,
    EXPERTS,
    GQA,
    IDS,
    SMALL,
    one_by_one,
    part,
    tiny,
    torch,
    transformers,
    untouched,
)

START = 8


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_growing_batches_equal_one_forward_pass_per_component(name):
    model = tiny(name)
    base, ablated, whole = one_by_one(model, name, IDS, START)

    prepared = prepare_model(model)
    scores = ablate(prepared, TokenizedAnswer(ids=IDS, start=START), readout="logit")

    scale = max(1.0, np.abs(whole).max())
    assert scores.base == pytest.approx(base, abs=1e-5 * scale)
    assert scores.ablated == pytest.approx(ablated, abs=1e-5 * scale)
    assert (np.abs(base[:, None] - ablated).max(axis=0) > 1e-3).all(), "a component that is idle"
    assert scores.is_greedy.tolist() == (whole.argmax(-1) == IDS[START:]).tolist()
    way = prepared.fingerprint()["batches"]
    assert way.startswith("rows (growing batches: " if name == "bloom" else "growing"), way
    assert prepared.fingerprint()["uncovered"] is None
    assert prepared.fingerprint()["last_layer"] == "positions that are read"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_answer_positions_equal_whole_texts_ablated_only_there(name):
    model = tiny(name)
    _, ablated, whole = one_by_one(model, name, IDS, START, first=START - 1)

    prepared = prepare_model(model)
    answer = TokenizedAnswer(ids=IDS, start=START)
    scores = ablate(prepared, answer, positions="answer", readout="logit")

    scale = max(1.0, np.abs(whole).max())
    assert scores.ablated == pytest.approx(ablated, abs=1e-5 * scale)
    slides = name in ("mistral", "gemma2", "gemma3_text", "gpt_oss")
    way = prepared.fingerprint()["answer_positions"]
    assert way.startswith("whole text (key-value cache: the model caches" if slides else ""), way


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "olmo2", "granite"])
def test_ablated_group_equals_a_model_without_its_value_rows(name):
    # An independent test of the hook points, which does not use the output projection.
    model = tiny(name)
    prepared = prepare_model(model, unit="kv_group")
    assert len(prepared.map) == 2 * (2 + 1)
    scores = ablate(prepared, TokenizedAnswer(ids=IDS, start=START), readout="logit")
    for column, component in enumerate(prepared.map.components):
        if component.kind == "mlp":
            continue
        layer = part(model, ARCHITECTURES[name][2])[component.layer]
        values = layer.self_attn.v_proj.weight
        kept = values.detach().clone()
        size = len(values) // 2
        with torch.no_grad():
            values[component.index * size : (component.index + 1) * size] = 0
        expected = untouched(model, IDS, START)
        with torch.no_grad():
            values.copy_(kept)

        assert scores.ablated[:, column] == pytest.approx(expected, abs=2e-5)


def test_bias_of_the_projection_remains_if_all_heads_are_ablated():
    model = tiny("llama_bias")
    prepared = prepare_model(model)
    written = []
    projection = model.model.layers[1].self_attn.o_proj
    handle = projection.register_forward_hook(lambda module, args, out: written.append(out))
    try:
        ablate(prepared, TokenizedAnswer(ids=IDS, start=START))
    finally:
        handle.remove()

    rows = [row for out in written for row in out]
    assert sum(torch.equal(row, projection.bias.expand_as(row)) for row in rows) == 1


def test_components_have_names_and_columns():
    found = find_components(tiny("llama"))

    assert [c.name for c in found.components] == [
        *("0.0", "0.1", "0.2", "0.3", "0.mlp", "1.0", "1.1", "1.2", "1.3", "1.mlp")
    ]
    assert found.mlps.tolist() == [4, 9]
    assert found.heads.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    groups = find_components(tiny("llama"), unit="kv_group")
    assert [c.name for c in groups.components][:3] == ["0.kv0", "0.kv1", "0.mlp"]
    whole = find_components(tiny("llama"), unit="attention")
    assert [c.name for c in whole.components] == ["0.attn", "0.mlp", "1.attn", "1.mlp"]
    one = find_components(tiny("falcon"), unit="kv_group")
    assert [c.kind for c in one.components] == ["kv_group", "mlp"] * 2
    with pytest.raises(ValueError, match="unit must be 'head', 'kv_group' or 'attent"):
        find_components(tiny("llama"), unit="neuron")


def eight_bits():
    """Make a Llama with one module of integer weights."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL))
    down = model.model.layers[1].mlp.down_proj
    rounded = (down.weight.detach() * 100).round().to(torch.int8)
    down.weight = torch.nn.Parameter(rounded, requires_grad=False)
    return model


def made(name, head, **options):
    """Make a model of an architecture with this head."""
    config = getattr(transformers, f"{name}Config")(**options)
    return getattr(transformers, f"{name}{head}")(config)


MAMBA = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 61}
JAMBA = GQA | EXPERTS | {"mamba_d_state": 4, "attn_layer_period": 2, "attn_layer_offset": 1}
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda: made("Mamba", "ForCausalLM", **MAMBA),
            r"mamba: layer 0 \(MambaBlock\) has no attention \(tried",
        ),
        (
            lambda: made("Jamba", "ForCausalLM", **JAMBA),
            r"jamba: layer 0 \(JambaMambaDecoderLayer\) has no attention",
        ),
        (lambda: made("T5", "ForConditionalGeneration", **T5), "t5 is an encoder-decoder"),
        (lambda: made("Llama", "Model", **SMALL), r"llama \(LlamaModel\) has no language-model"),
        (eight_bits, r"layer 1 \(LlamaDecoderLayer\).*Linear 'down_proj'"),
    ],
    ids=["mamba", "jamba", "t5", "no head", "eight bits"],
)
def test_models_that_cannot_be_ablated_raise_an_error(make, match):
    with pytest.raises(RunnerError, match=match):
        find_components(make())


def test_branch_next_to_heads_and_mlp_is_reported():
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).eval()

    def branch(module, args, output):
        return output + 0.5 * args[0].roll(1, dims=-1)

    handle = model.model.layers[1].register_forward_hook(branch)
    try:
        uncovered = prepare_model(model).fingerprint()["uncovered"]
    finally:
        handle.remove()

    assert uncovered.startswith("layer 1 adds more than its heads and its MLP")
