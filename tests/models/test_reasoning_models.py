"""Runs of a tiny model that writes reasoning before its answer."""

import itertools

import pytest

from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import GenerationParams, Message, Prompt

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

STEPS = (":", "<think>", "a", ".", "b", "</think>", "P", "."), ("x", "P")
"""The token after each token: reasoning after ":", an answer after "x"."""


@pytest.fixture(scope="module", params=[True, False], ids=["special", "plain"])
def thinking(request, tiny_models, tmp_path_factory):
    """Folder of a model whose next token depends only on the last one, with tag tokens."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_models("llama"))
    tags = ["<think>", "</think>"]
    tokenizer.add_tokens(
        [transformers.AddedToken(tag, special=request.param) for tag in tags],
        special_tokens=request.param,
    )
    tokenizer.chat_template = "{% for turn in messages %}{{ turn.content }}{% endfor %}<think>"
    size = 8 * -(-len(tokenizer) // 8)
    shape = {"vocab_size": size, "hidden_size": size, "intermediate_size": 8}
    shape |= {"num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 128}
    ends = {"tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 0}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape, **ends))
    layer = model.model.layers[0]
    following = torch.zeros(size, size)
    for steps in STEPS:
        ids = [tokenizer.encode(step)[0] for step in steps]
        for before, after in itertools.pairwise(ids):
            following[after, before] = 20.0
    with torch.no_grad():
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        model.lm_head.weight.copy_(following)
    path = tmp_path_factory.mktemp("thinking")
    tokenizer.save_pretrained(path)
    model.save_pretrained(path)
    return path


PROMPTS = [
    Prompt(id="thinks", text="Who:"),
    Prompt(id="opened", text="Who:<think>"),
    Prompt(id="answers", text="Who x"),
    Prompt(id="chat", messages=(Message(role="user", content="Who"),)),
]


def parts(path, **params):
    """Return reasoning, answer and finish reason of each prompt; "." is a stop string."""
    runner = TransformersRunner(path)
    found = runner.generate(PROMPTS, GenerationParams(stop=(".",), **params))
    return {
        answer.prompt_id: (answer.reasoning, answer.text, answer.finish_reason) for answer in found
    }


def test_reasoning_is_separated_and_stop_strings_end_only_the_answer(thinking):
    reasoning = ("a.b", "P", "stop")

    found = parts(thinking)

    expected = {"thinks": reasoning, "opened": reasoning, "chat": reasoning}
    assert found == expected | {"answers": (None, "P", "stop")}


def test_reasoning_that_exceeds_the_token_limit_is_unclosed(thinking):
    found = parts(thinking, max_new_tokens=3)

    assert found["thinks"] == ("a.", None, "unclosed_reasoning")
    assert found["opened"] == ("a.b", None, "unclosed_reasoning")
    assert found["answers"] == (None, "P", "stop")


def test_reasoning_and_answer_have_separate_token_limits(thinking):
    found = parts(thinking, max_new_tokens=1, max_reasoning_tokens=5)
    short = parts(thinking, max_new_tokens=9, max_reasoning_tokens=4)

    assert found["thinks"] == ("a.b", "P", "length")
    assert found["answers"] == (None, "P", "length")
    assert short["thinks"] == ("a.b", None, "unclosed_reasoning")
    assert short["opened"] == ("a.b", "P", "stop")


def test_the_sum_of_the_token_limits_must_fit_the_context(thinking):
    runner = TransformersRunner(thinking)
    fits = [
        runner.fits(PROMPTS[0], GenerationParams(max_new_tokens=20, max_reasoning_tokens=limit))
        for limit in (50, 110)
    ]

    assert fits == [True, False]


def test_reasoning_opened_false_overrides_the_detection(thinking):
    found = parts(thinking, reasoning_opened=False, max_new_tokens=9)

    assert found["opened"] == (None, "a", "stop")
    assert found["thinks"] == ("a.b", "P", "stop")
