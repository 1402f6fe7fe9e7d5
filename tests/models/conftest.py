"""Tiny random models with trained tokenizers, made once per session, and few-shot prompts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from surface_consistency.schemas import Prompt
from tests.studies.audit.retrieval.conftest import published, table_encoder  # noqa: F401 - fixtures
from tests.tiny_models import save_tiny_model

COUNTRIES = (
    *("Sierra Leone", "Côte d'Ivoire", "Republic of the Congo", "Chad"),
    *("The Democratic People's Republic of Korea", "Peru"),
)
NAMES = ("Chris Metzen", "Cat Stevens", "Steven D. Georgiou", "Jan Ó Súilleabháin", "PPK", "ППК")
RELATIONS = {
    "birth": "In what city was {} born?",
    "occupation": "What is {}'s occupation?",
    "capital": "What is the capital of {}?",
    "sport": "What sport does {} play?",
}


@pytest.fixture
def prompts() -> list[Prompt]:
    return [Prompt(id=f"q{number}", text=f"Q: {number}? A:") for number in range(10)]


@pytest.fixture(scope="session")
def shot_prompts() -> list[Prompt]:
    """Few-shot prompts of four relations: 12 per relation with the same 6 demonstrations."""
    made = []
    for relation, template in RELATIONS.items():
        demonstrations = "".join(
            f"Q: {other.format(name)} A: {name[::-1]}\n\n"
            for other in RELATIONS.values()
            if other != template
            for name in NAMES[:2]
        )
        for name in (*NAMES, *COUNTRIES):
            text = f"{demonstrations}Q: {template.format(name)} A:"
            made.append(Prompt(id=f"{relation}/{name}", text=text, group=relation))
    return made


@pytest.fixture(scope="session")
def tiny_models(
    tmp_path_factory: pytest.TempPathFactory, shot_prompts: list[Prompt]
) -> Callable[[str], Path]:
    """Return a function that creates or finds the folder of a tiny random model."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models")
    small = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2}
    small |= {"num_attention_heads": 4, "max_position_embeddings": 512}
    window = small | {"num_key_value_heads": 2, "sliding_window": 64}
    configs = {
        "gpt_neox": lambda: transformers.GPTNeoXConfig(**small, rotary_pct=0.25),
        "llama": lambda: transformers.LlamaConfig(**small, num_key_value_heads=2),
        "gpt2": lambda: transformers.GPT2Config(n_embd=48, n_layer=2, n_head=4, n_positions=512),
        "olmo2": lambda: transformers.Olmo2Config(**small, num_key_value_heads=2),
        "qwen2": lambda: transformers.Qwen2Config(**small, num_key_value_heads=2),
        "bloom": lambda: transformers.BloomConfig(hidden_size=48, n_layer=2, n_head=4),
        "mistral": lambda: transformers.MistralConfig(**window),
        "mamba": lambda: transformers.MambaConfig(hidden_size=48, num_hidden_layers=2),
        "mpt": lambda: transformers.MptConfig(d_model=48, n_layers=2, n_heads=4, max_seq_len=512),
    }

    def find(family: str) -> Path:
        path = folder / family
        if not path.exists():
            save_tiny_model(path, configs[family](), [prompt.text or "" for prompt in shot_prompts])
        return path

    return find
