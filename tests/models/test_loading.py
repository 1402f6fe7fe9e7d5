"""Tests of loading, and of the one-line errors for models that cannot be found."""

import logging
import shutil

import huggingface_hub
import pytest
from huggingface_hub import errors
from hypothesis import HealthCheck, given, settings, strategies as st

from surface_consistency.errors import MissingDependencyError, RunnerError, SourceNotFoundError
from surface_consistency.models.loading import (
    _once,
    check_dependencies,
    find_model,
    load_model,
    quantization_options,
)
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import GenerationParams

GATED = (
    r"^meta/x is gated: accept its terms at https://huggingface\.co/meta/x, then log in "
    r"with `hf auth login` or set HF_TOKEN$"
)


@pytest.mark.parametrize(
    ("kind", "raised", "message"),
    [
        (errors.GatedRepoError, RunnerError, GATED),
        (
            errors.RepositoryNotFoundError,
            SourceNotFoundError,
            r"^model meta/x not found on the hub, or",
        ),
        (errors.RevisionNotFoundError, SourceNotFoundError, r"^meta/x has no revision 'v9'; see"),
        (errors.EntryNotFoundError, SourceNotFoundError, r"^meta/x at revision 'v9' contains no c"),
        (errors.LocalEntryNotFoundError, SourceNotFoundError, "not in the local cache and the hub"),
        (errors.HfHubHTTPError, RunnerError, r"^meta/x at revision 'v9': the hub rejected"),
    ],
)
def test_hub_failures_are_reported_in_one_line(monkeypatch, kind, raised, message):
    def refuse(repo_id, filename, *, revision=None):
        assert filename == "config.json"
        raise kind.__new__(kind)  # Without the response that its constructor asks for.

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)

    with pytest.raises(raised, match=message) as caught:
        find_model("meta/x", "v9")

    assert "\n" not in str(caught.value)


def test_a_hub_model_is_pinned_to_its_commit(monkeypatch, tmp_path):
    def download(repo_id, filename, *, revision=None):
        return str(tmp_path / "snapshots" / "0123abc" / filename)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)

    source = find_model("meta/x", None)

    assert (source.location, source.label, source.revision) == ("meta/x", "meta/x", "0123abc")
    assert source.digest is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        # The hub library, offline.
        ("nobody/nothing", "^nobody/nothing is not in the local cache and"),
        ("no such name!", "'no such name!' is neither a folder nor a GGUF file"),
        ("./none", "model folder none not found"),
        ("/none/at/all", "model folder /none/at/all not found"),
        ("~/none", "model folder .*/none not found"),
        ("a/b/c", "model folder a/b/c not found"),
    ],
)
def test_error_names_a_missing_model(name, message):
    with pytest.raises(SourceNotFoundError, match=message):
        find_model(name, None)


def test_error_names_an_incomplete_folder(tmp_path):
    with pytest.raises(RunnerError, match="is a model folder, which has no revisions"):
        find_model(tmp_path, "main")
    with pytest.raises(
        SourceNotFoundError, match=r"contains no config\.json, so it is not a model"
    ):
        find_model(tmp_path, None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SourceNotFoundError, match=r"a model but no tokenizer \(none of to"):
        find_model(tmp_path, None)


def test_the_digest_depends_on_names_and_content(tmp_path):
    first = tmp_path / "a"
    first.mkdir()
    (first / "config.json").write_text("{}")
    (first / "tokenizer.json").write_text("{}")
    (first / "model.safetensors").write_bytes(bytes(300_000))
    shutil.copytree(first, tmp_path / "b")
    digests = [find_model(tmp_path / name, None).digest for name in "ab"]
    assert digests[0] == digests[1]

    (tmp_path / "b" / "model.safetensors").write_bytes(bytes(150_000) + b"\1" * 150_000)
    (first / "model.safetensors").rename(first / "other.safetensors")
    digests += [find_model(tmp_path / name, None).digest for name in "ab"]

    assert len(set(digests)) == 3


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, 2_999_999))
def test_the_digest_depends_on_every_byte(tmp_path, place):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    weights = tmp_path / "model.safetensors"
    content = bytearray(3_000_000)
    weights.write_bytes(content)
    before = find_model(tmp_path, None).digest
    content[place] = 1
    weights.write_bytes(content)

    assert find_model(tmp_path, None).digest != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int4"}, "`dtype` must be one of auto, float32, .*, got 'int4'"),
        ({"quantization": "int3"}, "`quantization` must be None, 'int8' or 'int4', got 'int3'"),
        ({"device_map": "everywhere"}, "`device_map` must be one of auto, balanced"),
        ({"device": "cpu", "device_map": "auto"}, "distributes it over several; pass only one"),
        ({"device": "tpu:x"}, "`device` is a name such as 'cuda:0' or 'cpu'"),
    ],
)
def test_invalid_options_raise_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        check_dependencies(**{"dtype": "auto", "quantization": None, **options})


@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_quantised_loading_needs_a_gpu(monkeypatch, quantization):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(RunnerError, match=f"quantization='{quantization}' needs a CUDA GPU"):
        check_dependencies("auto", quantization)
    with pytest.raises(RunnerError, match=r"'cuda:64' is not available \(CUDA GPUs found: \d"):
        check_dependencies("auto", None, "cuda:64")


@pytest.mark.parametrize(
    ("missing", "options", "message"),
    [
        ("torch", {}, r"TransformersRunner needs torch, .*'surface-consistency\[inference\]'"),
        ("transformers", {}, r"TransformersRunner needs transformers, which is not installed"),
        ("bitsandbytes", {"quantization": "int8"}, r"8-bit loading needs bitsandbytes, .*infer"),
        ("bitsandbytes", {"quantization": "int4"}, r"4-bit loading needs bitsandbytes, .*infer"),
        ("accelerate", {"device_map": "auto"}, r"device_map needs accelerate.*inference"),
    ],
)
def test_error_names_missing_libraries_with_their_extra(monkeypatch, missing, options, message):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(
        "surface_consistency.models.loading.find_spec",
        lambda name: None if name == missing else name,
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    with pytest.raises(MissingDependencyError, match=message):
        check_dependencies(**{"dtype": "auto", "quantization": None, **options})


def test_repeated_warnings_of_bitsandbytes_are_logged_once(caplog):
    logger = logging.getLogger("bitsandbytes.autograd._functions")
    logger.addFilter(_once)
    try:
        for dtype in ("bfloat16", "bfloat16", "float32", "bfloat16"):
            logger.warning("inputs will be cast from %s", dtype)
    finally:
        logger.removeFilter(_once)

    assert [one.args for one in caplog.records] == [("bfloat16",), ("float32",)]


@pytest.mark.parametrize(("dtype", "compute"), [("auto", "bfloat16"), ("float16", "float16")])
def test_options_of_four_bits_equal_those_of_qlora(dtype, compute):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")

    config = transformers.BitsAndBytesConfig.from_dict(quantization_options("int4", dtype))

    assert (config.load_in_4bit, config.load_in_8bit) == (True, False)
    assert (config.bnb_4bit_quant_type, config.bnb_4bit_use_double_quant) == ("nf4", True)
    assert str(config.bnb_4bit_compute_dtype) == f"torch.{compute}"
    assert quantization_options("int8", dtype) == {"load_in_8bit": True}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_all_weights_are_on_the_given_device(tiny_models, device):
    """`meta` is a second device of torch that is present without a GPU."""
    options = {"dtype": "float32", "quantization": None, "trust_remote_code": False}

    model, _ = load_model(find_model(tiny_models("llama"), None), device=device, **options)

    assert {weights.device.type for weights in model.parameters()} == {device}


def test_a_model_distributed_by_device_map_has_equal_answers(tiny_models, prompts):
    pytest.importorskip("accelerate")
    folder, params = tiny_models("llama"), GenerationParams(max_new_tokens=4)
    whole = TransformersRunner(folder, device="cpu", dtype="float32")
    spread = TransformersRunner(folder, dtype="float32", device_map={"": "cpu"}, batch_size=4)

    answers = [
        {one.prompt_id: one.text for one in runner.generate(prompts, params)}
        for runner in (whole, spread)
    ]

    assert answers[0] == answers[1]
    assert spread.fingerprint()["devices"] == ["cpu"]
    assert "devices" not in whole.fingerprint()
