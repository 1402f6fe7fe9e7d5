"""Resample ablation: each component has its value under another text."""

import numpy as np
import pytest

from surface_consistency.studies.mechanism.ablation import TokenizedAnswer, ablate, prepare_model
from surface_consistency.studies.mechanism.ablation.replacement import (
    mean_replacement,
    resample_replacement,
)
from tests.studies.mechanism.ablation.conftest import (
    ARCHITECTURES,
    ASK,
    GQA,
    IDS,
    LONG,
    OBJECTS,
    SHORT,
    SUBJECTS,
    planted,
    tiny,
    torch,
    transformers,
    untouched,
)

ANSWER = TokenizedAnswer(ids=IDS, start=8)
LONGER = TokenizedAnswer(ids=(7, 30, *IDS[:3], 45, 2, *IDS[5:]), start=10)
"""A prompt with two more tokens, with the same token before the same answer."""


def llama(seed, **options):
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**GQA | options)).eval()


def resampled(model, answer, source, *, of=None, **options):
    replacement = resample_replacement(of or model, source.ids, start=source.start)
    return ablate(model, answer, replacement=replacement, **options)


@pytest.mark.parametrize("unit", ["head", "kv_group", "attention"])
@pytest.mark.parametrize("positions", ["all", "answer", "last"])
def test_values_of_the_same_text_do_not_change_the_logits(unit, positions):
    prepared = prepare_model(tiny("llama"), unit=unit)

    scores = resampled(prepared, ANSWER, ANSWER, positions=positions)

    assert scores.ablated == pytest.approx(
        np.broadcast_to(scores.base[:, None], scores.ablated.shape), abs=1e-5
    )
    assert scores.floor == pytest.approx(scores.base, abs=1e-5)


@pytest.mark.parametrize("unit", ["head", "attention"])
@pytest.mark.parametrize(("answer", "source"), [(ANSWER, LONGER), (LONGER, ANSWER)])
def test_all_components_replaced_equal_the_other_condition(unit, answer, source):
    model = tiny("llama")
    prepared = prepare_model(model, unit=unit)

    scores = resampled(prepared, answer, source, readout="logit")

    assert scores.floor == pytest.approx(untouched(model, source.ids, source.start), abs=1e-5)
    assert np.abs(scores.floor - scores.base).max() > 1e-2


NUMBERED = {"gpt2", "gpt_neo", "opt"}
"""They have absolute positions, so prompts of unequal length also differ in the embeddings."""


@pytest.mark.parametrize("unit", ["head", "attention"])
@pytest.mark.parametrize("name", sorted(ARCHITECTURES.keys() - NUMBERED))
def test_both_cuts_are_exact_in_every_architecture(name, unit):
    prepared = prepare_model(tiny(name), unit=unit)

    scores = resampled(prepared, ANSWER, LONGER, readout="log_probability")

    expected = ablate(prepared, LONGER, readout="log_probability").base
    assert scores.floor == pytest.approx(expected, abs=1e-4)


def test_cut_after_the_projection_is_exact_between_two_models():
    """The two models differ only in their layers."""
    ours, theirs = llama(3), llama(4)
    shared = {name: one for name, one in ours.state_dict().items() if ".layers." not in name}
    theirs.load_state_dict(theirs.state_dict() | shared)

    behind, before = (
        resampled(
            prepare_model(ours, unit=unit),
            ANSWER,
            ANSWER,
            of=prepare_model(theirs, unit=unit),
            readout="logit",
        ).floor
        for unit in ("attention", "head")
    )

    expected = untouched(theirs, IDS, 8)
    assert behind == pytest.approx(expected, abs=1e-5)
    assert np.abs(before - expected).max() > 1e-2


@pytest.mark.parametrize("unit", ["head", "attention"])
def test_positions_last_changes_only_the_last_position(unit):
    model = tiny("gpt2")
    prepared = prepare_model(model, unit=unit)
    mlp = model.transformer.h[0].mlp

    scores = ablate(prepared, ANSWER, positions="last", readout="logit")

    def silence(module, args, output):
        values = output.clone()
        values[:, 7] = 0
        return values

    handle = mlp.register_forward_hook(silence)
    expected = untouched(model, IDS, 8)
    handle.remove()
    column = [component.name for component in scores.components].index("0.mlp")
    assert scores.ablated[:, column] == pytest.approx(expected, abs=1e-5)
    whole = ablate(prepared, ANSWER, positions="answer", readout="logit")
    assert scores.ablated[0] == pytest.approx(whole.ablated[0], abs=1e-5)
    assert np.abs(scores.ablated[1:] - whole.ablated[1:]).max() > 1e-3


def test_planted_head_determines_the_answer():
    # The head copies the subject to its object after SHORT, and reads nothing after LONG.
    prepared = prepare_model(planted([(1, 2, SHORT)]))
    names = [component.name for component in prepared.map.components]

    for subject, target in zip(SUBJECTS, OBJECTS, strict=True):
        ids = [(form, subject, ASK, target) for form in (SHORT, LONG)]
        short, long = (TokenizedAnswer(ids=one, start=3) for one in ids)
        restored = resampled(prepared, long, short)
        broken = resampled(prepared, short, long)
        other = TokenizedAnswer(ids=(SHORT, (subject + 1) % 4, ASK, target), start=3)
        floor = resampled(prepared, long, other)

        assert (restored.is_greedy[0], broken.is_greedy[0]) == (False, True)
        assert names[restored.change[0].argmin()] == names[broken.change[0].argmax()] == "1.2"
        assert restored.floor == pytest.approx(broken.base, abs=1e-4)
        assert broken.floor == pytest.approx(restored.base, abs=1e-4)
        assert floor.floor[0] < restored.floor[0] - 1.0


def test_values_of_another_shape_raise_an_error():
    prepared = prepare_model(tiny("llama"))
    deeper = prepare_model(llama(3, num_hidden_layers=3))

    with pytest.raises(ValueError, match=r"has 3 layers of widths .*, the model 2 of"):
        resampled(prepared, ANSWER, ANSWER, of=deeper)
    whole = prepare_model(tiny("llama"), unit="attention")
    with pytest.raises(ValueError, match="on the other side of the output projections"):
        resampled(prepared, ANSWER, ANSWER, of=whole)
    with pytest.raises(ValueError, match="on the other side of the output projections"):
        ablate(whole, ANSWER, replacement=mean_replacement(prepared, [IDS]))
