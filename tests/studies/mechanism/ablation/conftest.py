"""Tiny random models of every architecture, and a model with hand-written weights."""

from functools import cache

import numpy as np
import pytest
from packaging.version import Version

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SMALL |= {"num_attention_heads": 4, "max_position_embeddings": 64}
GQA = SMALL | {"num_key_value_heads": 2}
EXPERTS = GQA | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}

LLAMA = "model.layers self_attn.o_proj mlp"
MIXTRAL = LLAMA
if Version(transformers.__version__) < Version("5"):
    MIXTRAL = "model.layers self_attn.o_proj block_sparse_moe"
NEOX = "gpt_neox.layers attention.dense mlp"
BLOOM = {"vocab_size": 61, "hidden_size": 32, "n_layer": 2, "n_head": 4}
GPT2 = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4}
MPT = {"vocab_size": 61, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}
NEO = {"vocab_size": 61, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 4}
NEO |= {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64}
FALCON = {key: SMALL[key] for key in SMALL if key.startswith(("vocab", "hidden", "num"))}
OPT = SMALL | {"ffn_dim": 48, "word_embed_proj_dim": 32}


def spec(config, places=LLAMA, base=GQA, **options):
    """Return the configuration, its options, and the paths of layers, projection and MLP."""
    return config, base | options, *places.split()


ARCHITECTURES = {
    "gpt_neox": spec("GPTNeoXConfig", NEOX, SMALL),
    "gpt_neox_sequential": spec("GPTNeoXConfig", NEOX, SMALL, use_parallel_residual=False),
    "llama": spec("LlamaConfig"),
    "llama_bias": spec("LlamaConfig", attention_bias=True, mlp_bias=True),
    "qwen2": spec("Qwen2Config"),
    "qwen3": spec("Qwen3Config", head_dim=12),
    "qwen3_moe": spec("Qwen3MoeConfig", LLAMA, EXPERTS),
    "qwen2_moe": spec("Qwen2MoeConfig", LLAMA, EXPERTS, shared_expert_intermediate_size=16),
    "mixtral": spec("MixtralConfig", MIXTRAL, num_local_experts=4, sliding_window=None),
    "mistral": spec("MistralConfig", sliding_window=4),
    "gemma2": spec("Gemma2Config", head_dim=8, sliding_window=4),
    "gemma3_text": spec("Gemma3TextConfig", head_dim=8, sliding_window=4),
    "olmo2": spec("Olmo2Config"),
    "phi": spec("PhiConfig", "model.layers self_attn.dense mlp", SMALL),
    "phi3": spec("Phi3Config", pad_token_id=0),
    "gpt2": spec("GPT2Config", "transformer.h attn.c_proj mlp", GPT2),
    "gpt_neo": spec("GPTNeoConfig", "transformer.h attn.attention.out_proj mlp", NEO),
    "falcon": spec("FalconConfig", "transformer.h self_attention.dense mlp", FALCON),
    "cohere": spec("CohereConfig", logit_scale=0.25),
    "granite": spec("GraniteConfig", logits_scaling=3.0, residual_multiplier=0.3),
    "gpt_oss": spec("GptOssConfig", head_dim=8, num_local_experts=4, sliding_window=4),
    "opt": spec("OPTConfig", "model.decoder.layers self_attn.out_proj fc2", OPT),
    "bloom": spec("BloomConfig", "transformer.h self_attention.dense mlp.dense_4h_to_h", BLOOM),
    "mpt": spec("MptConfig", "transformer.blocks attn.out_proj ffn.down_proj", MPT),
}


@cache
def tiny(name: str):
    """Return a tiny random model; its weights are large, so that every component has an effect."""
    kind, options, *_ = ARCHITECTURES[name]
    config = getattr(transformers, kind)(**options)
    config.bos_token_id = config.eos_token_id = 1
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3 if weight.dim() > 1 else 0.1)
    for name_of, weight in model.named_parameters():
        if "norm" in name_of or "ln_" in name_of:
            torch.nn.init.normal_(weight, mean=1.0 if name_of.endswith("weight") else 0.0, std=0.1)
    return model


def part(module, path: str):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def gold_logits(model, tokens, start):
    """Return the logits of the gold tokens, and all logits."""
    with torch.no_grad():
        out = model(tokens[:, :-1], use_cache=False).logits[0, start - 1 :]
    return out.gather(-1, tokens[0, start:, None])[:, 0].double().numpy(), out.double().numpy()


def one_by_one(model, name: str, ids, start: int, *, first: int = 0):
    """Ablate with one forward pass per component, and read the logits of the model.

    Returns the unmodified logits of the gold tokens, and those without each component, layer by
    layer, the four heads and then the MLP.
    """
    *_, layers, projection, mlp = ARCHITECTURES[name]
    tokens = torch.tensor([list(ids)])
    base, whole = gold_logits(model, tokens, start)
    columns = []
    for layer in part(model, layers):
        module = part(layer, projection)
        for head in range(4):

            def cut(module, args, head=head):
                values = args[0].clone()
                width = values.shape[-1] // 4
                values[:, first:, head * width : (head + 1) * width] = 0
                return (values,)

            handle = module.register_forward_pre_hook(cut)
            columns.append(gold_logits(model, tokens, start)[0])
            handle.remove()

        def silence(module, args, output):
            first_part = output[0] if isinstance(output, tuple) else output
            values = first_part.reshape(1, -1, first_part.shape[-1]).clone()
            values[:, first:] = 0
            values = values.reshape(first_part.shape)
            return (values, *output[1:]) if isinstance(output, tuple) else values

        handle = part(layer, mlp).register_forward_hook(silence)
        columns.append(gold_logits(model, tokens, start)[0])
        handle.remove()
    return base, np.stack(columns, axis=1), whole


def untouched(model, ids, start: int):
    return gold_logits(model, torch.tensor([list(ids)]), start)[0]


IDS = (3, 17, 5, 44, 29, 8, 51, 12, 33, 20, 9, 40)
"""A text of twelve tokens; the answer is the last four."""

SUBJECTS, OBJECTS = range(4), range(4, 8)
SHORT, LONG, ASK = 8, 9, 10


def planted(heads, *, n_heads=4, n_layers=2, twin_scale=1.0, width=64):
    """Return a GPT-2 in which only the given heads copy the subject to its object.

    Attention is uniform: a head reads the sum of the text's tokens. The residual stream has one
    direction per token. Heads are (layer, head) pairs, or (layer, head, context) for a head that
    works only for texts with the token SHORT or LONG.
    """
    objects, vocabulary = [*zip(SUBJECTS, OBJECTS, strict=True)], ASK + 1
    size = width // n_heads
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=width, n_layer=n_layers, n_head=n_heads, n_positions=16
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        for block in model.transformer.h:
            block.ln_1.weight.fill_(1.0)
        model.transformer.ln_f.weight.fill_(1.0)
        table = torch.zeros(vocabulary, width)
        for token in range(vocabulary):
            # Two dimensions of opposite sign per token, so that layer norm changes only the scale.
            table[token, 2 * token], table[token, 2 * token + 1] = 1.0, -1.0
        model.transformer.wte.weight.copy_(table)
        for spec in heads:
            layer, head, *context = spec
            block = model.transformer.h[layer]
            columns = 2 * width + head * size  # first value column, after queries and keys
            for place, (subject, target) in enumerate(objects):
                block.attn.c_attn.weight[2 * subject, columns + place] = 1.0
                row = head * size + place
                block.attn.c_proj.weight[row, 2 * target] = 8.0 * twin_scale
                block.attn.c_proj.weight[row, 2 * target + 1] = -8.0 * twin_scale
            if context:
                # If the text contains the token of the other context, the head attends only to
                # that token and reads no subject.
                other = LONG if context[0] == SHORT else SHORT
                block.attn.c_attn.weight[0 : 2 * vocabulary : 2, head * size + size - 1] = 40.0
                block.attn.c_attn.weight[2 * other, width + head * size + size - 1] = 40.0
    return model
