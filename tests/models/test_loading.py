"""Models that cannot be found: one line each, before any work."""

import logging
import shutil

import huggingface_hub
import pytest
from huggingface_hub import errors
from hypothesis import HealthCheck, given, settings, strategies as st

from surface_consistency.errors import (
    MissingDependencyError,
    RunnerError,
    SourceNotFoundError,
)
from surface_consistency.models.loading import (
    _once,
    check_dependencies,
    find_model,
    quantization_options,
)
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import GenerationParams


def raising(monkeypatch, error):
    """Make the hub answer with an error."""

    def refuse(repo_id, filename, *, revision=None):
        assert filename == "config.json"
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)


def made(kind):
    """An error of the hub library, without the response that its constructor asks for."""
    return kind.__new__(kind)


@pytest.mark.parametrize(
    ("kind", "raised", "message"),
    [
        (
            errors.GatedRepoError,
            RunnerError,
            r"^meta/x is gated: accept its terms at https://huggingface\.co/meta/x, then log in "
            r"with `hf auth login` or set HF_TOKEN$",
        ),
        (errors.RepositoryNotFoundError, SourceNotFoundError, r"^no model meta/x on the hub, or"),
        (errors.RevisionNotFoundError, SourceNotFoundError, r"^meta/x has no revision 'v9'; see"),
        (errors.EntryNotFoundError, SourceNotFoundError, r"^meta/x at revision 'v9' holds no conf"),
        (
            errors.LocalEntryNotFoundError,
            SourceNotFoundError,
            r"not in the local cache and the hub",
        ),
        (errors.HfHubHTTPError, RunnerError, r"^meta/x at revision 'v9': the hub refused"),
    ],
)
def test_hub_failures_come_as_one_line(monkeypatch, kind, raised, message):
    raising(monkeypatch, made(kind))

    with pytest.raises(raised, match=message) as caught:
        find_model("meta/x", "v9")

    assert "\n" not in str(caught.value)


def test_a_model_that_is_not_in_the_cache_is_named_offline():
    """No fake here: the hub library itself, offline."""
    with pytest.raises(SourceNotFoundError, match=r"^nobody/nothing is not in the local cache and"):
        find_model("nobody/nothing", None)


def test_a_name_that_is_no_hub_id_is_named():
    with pytest.raises(
        SourceNotFoundError, match="'no such name!' is neither a folder nor a GGUF file"
    ):
        find_model("no such name!", None)


def test_a_hub_model_is_pinned_to_its_commit(monkeypatch, tmp_path):
    def download(repo_id, filename, *, revision=None):
        return str(tmp_path / "snapshots" / "0123abc" / filename)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)

    source = find_model("meta/x", None)

    assert (source.location, source.label, source.revision) == ("meta/x", "meta/x", "0123abc")
    assert source.digest is None


@pytest.mark.parametrize("path", ["./none", "/none/at/all", "~/none", "a/b/c"])
def test_a_missing_folder_is_not_looked_for_on_the_hub(path):
    with pytest.raises(SourceNotFoundError, match=r"no model folder .*none|no model folder a/b/c"):
        find_model(path, None)


def test_a_folder_without_its_parts_is_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"holds no config\.json, so it is not a model"):
        find_model(tmp_path, None)

    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        SourceNotFoundError, match=r"holds a model but no tokenizer \(looked for to"
    ):
        find_model(tmp_path, None)


def test_a_folder_has_no_revision(tmp_path):
    with pytest.raises(RunnerError, match="is a folder, which has no revisions"):
        find_model(tmp_path, "main")


def test_the_digest_follows_names_and_content(tmp_path):
    """A copy has the same digest; other weights of the same size, or another name, do not."""
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
def test_the_digest_follows_every_byte(tmp_path, place):
    """One edited byte anywhere in the weights is another model."""
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
        ({"quantization": "int3"}, r"`quantization` is None, 'int8' or 'int4', got 'int3'"),
        ({"device_map": "everywhere"}, r"`device_map` is one of auto, balanced, balanced_low_0"),
        ({"device": "cpu", "device_map": "auto"}, r"spreads it over several; take one of them"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    given = {"dtype": "auto", "quantization": None} | options

    with pytest.raises(ValueError, match=message):
        check_dependencies(**given)


@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_quantised_loading_says_what_it_lacks(monkeypatch, quantization):
    """A GPU first, then the library with the extra that brings it."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RunnerError, match=f"quantization='{quantization}' needs a CUDA GPU"):
        check_dependencies("auto", quantization)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        "surface_consistency.models.loading.find_spec",
        lambda name: None if name == "bitsandbytes" else name,
    )

    bits = quantization[-1]
    with pytest.raises(MissingDependencyError, match=rf"{bits}-bit loading needs bitsandbytes"):
        check_dependencies("auto", quantization)


def test_what_bitsandbytes_says_with_every_product_is_said_once(caplog):
    """In 8 bits it logs the same line at each layer of each forward."""
    logger = logging.getLogger("bitsandbytes.autograd._functions")
    logger.addFilter(_once)
    try:
        for dtype in ("bfloat16", "bfloat16", "float32", "bfloat16"):
            logger.warning("inputs will be cast from %s", dtype)
    finally:
        logger.removeFilter(_once)

    assert [one.args for one in caplog.records] == [("bfloat16",), ("float32",)]


def test_device_map_names_the_library_that_it_needs(monkeypatch):
    """It is accelerate's."""
    monkeypatch.setattr(
        "surface_consistency.models.loading.find_spec",
        lambda name: None if name == "accelerate" else name,
    )

    with pytest.raises(MissingDependencyError, match=r"device_map needs accelerate.*inference"):
        check_dependencies("auto", None, None, "auto")


@pytest.mark.parametrize(
    ("quantization", "dtype", "compute"),
    [("int4", "auto", "bfloat16"), ("int4", "float16", "float16")],
)
def test_four_bits_are_those_of_qlora(quantization, dtype, compute):
    """The configuration that transformers makes of it, which needs no GPU."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    options = quantization_options(quantization, dtype)

    config = transformers.BitsAndBytesConfig.from_dict(options)

    assert config.load_in_4bit
    assert not config.load_in_8bit
    assert config.bnb_4bit_quant_type == "nf4"
    assert config.bnb_4bit_use_double_quant
    assert str(config.bnb_4bit_compute_dtype) == f"torch.{compute}"
    assert quantization_options("int8", dtype) == {"load_in_8bit": True}


def test_a_model_spread_by_device_map_answers_alike(tiny_models, prompts):
    """Without a GPU all of it goes to the processor, and the fingerprint says where it went."""
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
