"""Minimal sets by run, and models with known components."""

import numpy as np
import pytest

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import component_importance, minimal_components
from surface_consistency.studies.mechanism.ablation import (
    TokenizedAnswer,
    ablate,
    prepare_model,
    recover,
)
from tests.studies.mechanism.ablation.conftest import (
    ASK,
    IDS,
    LONG,
    OBJECTS,
    SHORT,
    planted,
    tiny,
    torch,
)

ANSWER = TokenizedAnswer(ids=IDS, start=8)
FACT = TokenizedAnswer(ids=(SHORT, 2, ASK, OBJECTS[2]), start=3)


def names(scores, found):
    return [scores.components[column].name for column in found.components]


@pytest.mark.parametrize("readout", ["logit", "centred_logit", "log_probability"])
def test_planted_head_is_the_minimal_set(readout):
    model = prepare_model(planted([(1, 2)]))

    scores = ablate(model, FACT, readout=readout)
    [found] = recover(model, scores)

    place = [c.name for c in scores.components].index("1.2")
    change = scores.change[0]
    others = np.delete(change, place)
    assert (others == 0).all()
    assert scores.is_greedy.tolist() == [True]
    assert names(scores, found) == ["1.2"]
    assert found.recovery == pytest.approx(1.0, abs=1e-5)
    if readout == "logit":
        importance = component_importance(scores.base, scores.ablated)[0, place]
        assert importance == pytest.approx(1.0, abs=0.01)
        assert found.joint == pytest.approx(importance, abs=1e-6)


def test_redundant_heads_have_no_single_importance():
    model = prepare_model(planted([(0, 1), (1, 3)], twin_scale=0.25))

    scores = ablate(model, FACT, readout="logit")
    [by_run] = recover(model, scores)
    with pytest.warns(UndefinedMetricWarning, match="not minimal"):
        by_sum = minimal_components(component_importance(scores.base, scores.ablated)[0])

    importances = component_importance(scores.base, scores.ablated)[0]
    assert (importances > 0.001).sum() == 2
    assert importances.max() < 0.05
    assert names(scores, by_run) in (["0.1"], ["1.3"])
    assert by_run.is_reached
    assert by_run.joint < 0.05
    assert not by_sum.is_reached
    both = [[c.name for c in scores.components].index(name) for name in ("0.1", "1.3")]
    assert {scores.components[c].name for c in by_sum.components} == {"0.1", "1.3"}
    ablated = np.zeros((1, len(model.map)), dtype=bool)
    ablated[0, both] = True
    left = model.evaluate(scores.readout, ablated).values[0]
    assert scores.recovery(left) == pytest.approx([0.0], abs=0.01)


def test_redundant_heads_in_one_set_have_a_joint_effect():
    model = prepare_model(planted([(0, 1), (1, 3)], twin_scale=0.25))
    scores = ablate(model, FACT, readout="logit")

    [found] = recover(model, scores, threshold=0.999)

    assert sorted(names(scores, found)) == ["0.1", "1.3"]
    assert found.joint == pytest.approx(1.0, abs=0.01)
    assert found.sum_of_parts == pytest.approx(0.03, abs=0.02)


def test_effects_of_an_additive_model_are_additive():
    weights = planted([(0, 0), (0, 3), (1, 1)])
    for block in weights.transformer.h:
        block.ln_1 = torch.nn.Identity()
    weights.transformer.ln_f = torch.nn.Identity()
    with torch.no_grad():
        weights.transformer.h[1].attn.c_proj.weight *= 4.0
    model = prepare_model(weights)

    scores = ablate(model, FACT, readout="logit")
    importance = component_importance(scores.base, scores.ablated)[0]
    [by_run] = recover(model, scores)
    by_sum = minimal_components(importance)

    assert importance.sum() == pytest.approx(1.0, abs=1e-5)
    assert by_run.components == by_sum.components
    assert len(by_run.components) == 3
    assert by_run.recovery == pytest.approx(by_sum.recovery, abs=1e-5)
    assert by_run.joint == pytest.approx(by_run.sum_of_parts, abs=1e-5)


@pytest.mark.parametrize("positions", ["all", "answer"])
@pytest.mark.parametrize("threshold", [0.5, 0.9])
def test_set_is_the_first_size_that_reaches_the_threshold(positions, threshold):
    # Every size is run separately, without rounds: recovery does not increase with size.
    model = prepare_model(tiny("qwen2"))
    scores = ablate(model, ANSWER, positions=positions)

    found = recover(model, scores, threshold=threshold)

    sizes = []
    for token, one in enumerate(found):
        order = np.argsort(-scores.change[token], kind="stable")
        for size in range(1, 11):
            ablated = np.ones((1, 10), dtype=bool)
            ablated[0, order[:size]] = False
            left = scores.recovery(model.evaluate(scores.readout, ablated).values.T)[token, 0]
            if left >= threshold:
                break
        sizes.append(size)
        assert one.components == tuple(order[:size])
        assert one.recovery == pytest.approx(left, abs=1e-4)
        assert one.is_reached == (left >= threshold)
    assert len(set(sizes)) > 1


def test_sets_of_some_tokens_equal_those_of_all_tokens():
    model = prepare_model(tiny("gpt2"))
    scores = ablate(model, ANSWER)
    whole = recover(model, scores)

    [third] = recover(model, scores, tokens=[2])

    assert third.components == whole[2].components
    assert third.joint == pytest.approx(whole[2].joint, abs=1e-5)


def test_base_of_zero_has_an_undefined_recovery():
    model = prepare_model(planted([(1, 2)]))
    text = TokenizedAnswer(ids=(SHORT, 2, ASK, LONG), start=3)
    scores = ablate(model, text, readout="logit")

    [found] = recover(model, scores)

    assert scores.base.tolist() == [0.0]
    assert np.isnan(found.recovery)
    assert not found.is_reached


def test_negative_base_loses_when_it_decreases():
    model = prepare_model(tiny("llama"))
    scores = ablate(model, ANSWER, readout="log_probability")

    assert (scores.base < 0).all()
    assert scores.recovery(scores.base) == pytest.approx(1.0)
    assert (scores.recovery(scores.base[:, None] - 1.0) < 1.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, r"threshold must be in \(0, 1\]"),
        ({"tokens": [4]}, "tokens must be numbers of the 4 tokens"),
    ],
)
def test_invalid_options_raise_an_error(options, message):
    model = prepare_model(tiny("llama"))

    with pytest.raises(ValueError, match=message):
        recover(model, ablate(model, ANSWER), **options)
