"""A tiny model with a tokenizer for the bundled sample, made once per session."""

from pathlib import Path

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from tests.tiny_models import save_tiny_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a model with random weights and a context of 512 tokens."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models") / "tiny"
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "max_position_embeddings": 512}
    config = transformers.LlamaConfig(**shape)
    save_tiny_model(
        folder, config, [question.question for question in load_redirectqa("sample").questions]
    )
    return folder
