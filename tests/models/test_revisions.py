"""Revisions in the hub's cache layout, made by hand: found, told apart, and refused in words."""

import hashlib
import json
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from surface_consistency.errors import RunnerError, SourceNotFoundError
from surface_consistency.models.loading import find_model
from surface_consistency.models.revisions import find_revisions, step_of

COMMITS = {"step0": "0" * 39 + "a", "step1000": "1" * 40, "main": "2" * 40}


def commit(home, commit_hash, files, *, refs=()):
    """Add a commit: its large files are links to blobs named by their SHA-256, as the hub does."""
    for name, content in files.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        is_large = name.endswith((".safetensors", ".bin"))
        blob = home / "blobs" / (hashlib.sha256 if is_large else hashlib.sha1)(data).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        link = home / "snapshots" / commit_hash / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    for ref in refs:
        path = home / "refs" / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit_hash)


def model(weights, **more):
    """The files of a model."""
    return {"config.json": {}, "tokenizer.json": {}, "model.safetensors": weights, **more}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of one repository: step1000 holds the weights of main."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--owner--name"
    for name, weights in (("step0", b"early"), ("step1000", b"final"), ("main", b"final")):
        commit(home, COMMITS[name], model(weights), refs=[name])
    return home


@pytest.mark.parametrize("by_folder", [False, True])
def test_equal_weights_are_told_before_anything_is_loaded(cache, by_folder):
    """The same from the folder of the repository and by its hub id, without a network."""
    name = cache if by_folder else "owner/name"

    found = find_revisions(name, ["step0", "step1000", "main"])

    assert [one.same_as for one in found] == [None, None, "step1000"]
    assert [one.source.revision for one in found] == [COMMITS[one.name] for one in found]
    assert {one.source.label for one in found} == {"owner/name"}
    assert found[0].weights == {"model.safetensors": hashlib.sha256(b"early").hexdigest()}


def test_hashes_of_the_cache_are_read_from_names(cache, monkeypatch):
    """No weights are read: a checkpoint of gigabytes is compared at once."""
    opened = []
    monkeypatch.setattr(
        "surface_consistency.models.snapshots.file_digest", lambda path: opened.append(path)
    )

    find_revisions(cache, list(COMMITS))

    assert not opened


def test_a_short_commit_is_enough(cache):
    """As git takes it."""
    (found,) = find_revisions(cache, ["1111111"])

    assert found.source.revision == COMMITS["step1000"]


def test_the_main_branch_is_the_default_of_a_cache_folder(cache):
    """So that the folder works as --model by itself."""
    assert find_model(cache, None).revision == COMMITS["main"]


def test_all_revisions_that_are_missing_are_told_at_once(cache):
    """With those that are there, and how to get the others."""
    with pytest.raises(SourceNotFoundError, match="revision 'step7'") as caught:
        find_revisions(cache, ["step0", "step7", "step8"])

    lines = str(caught.value).splitlines()
    assert [line.split("revision ")[1][:7] for line in lines] == ["'step7'", "'step8'"]
    assert "there are main, step0, step1000" in lines[0]
    assert "hf download owner/name --revision step7" in lines[0]


@pytest.mark.parametrize(
    "head",
    ['{"w": {"data_offsets": [0, "8"]}}', '{"w": 3}', "[]", "no JSON", "[" * 99_000],
)
def test_a_strange_head_of_weights_is_left_to_who_loads_them(cache, head):
    content = len(head).to_bytes(8, "little") + head.encode()
    commit(cache, "4" * 40, model(content), refs=["odd"])

    assert [one.name for one in find_revisions(cache, ["odd"])] == ["odd"]


@pytest.mark.parametrize("kind", ["broken link", "missing shard", "no weights", "cut short"])
def test_a_half_download_is_refused_before_loading(cache, kind):
    """Whatever a stopped download leaves: a link without its end, an index without its shards."""
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    files = {"config.json": {}, "tokenizer.json": {}}
    if kind == "broken link":
        files["model.safetensors"] = b"half"
    elif kind == "missing shard":
        files |= {"model.safetensors.index.json": index, "model-1.safetensors": b"one"}
    elif kind == "cut short":
        head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        files["model.safetensors"] = len(head).to_bytes(8, "little") + head + b"half"
    commit(cache, "3" * 40, files, refs=["half"])
    if kind == "broken link":
        (cache / "snapshots" / ("3" * 40) / "model.safetensors").resolve().unlink()

    state = "cut short" if kind == "cut short" else "missing"
    with pytest.raises(SourceNotFoundError, match=rf"^owner/name is half .* {state} in"):
        find_revisions(cache, ["half"])


def test_checkpoints_of_a_folder_are_its_revisions(tmp_path):
    """As a training run leaves them; states of the optimizer are no weights."""
    for name, weights in (("checkpoint-5", b"x"), ("checkpoint-9", b"x"), ("checkpoint-20", b"y")):
        folder = tmp_path / "run" / name
        folder.mkdir(parents=True)
        for file, data in {**model(weights), "optimizer.bin": name.encode()}.items():
            (folder / file).write_bytes(data if isinstance(data, bytes) else b"{}")

    names = ["checkpoint-5", "checkpoint-9", "checkpoint-20"]
    found = find_revisions(tmp_path / "run", names)

    assert [one.same_as for one in found] == [None, "checkpoint-5", None]
    assert found[2].source.label == "run/checkpoint-20"
    with pytest.raises(SourceNotFoundError, match=r"no checkpoint 'x'; there are checkpoint-20, c"):
        find_revisions(tmp_path / "run", ["x"])


def test_a_model_folder_has_no_revisions(tmp_path):
    """It is one model."""
    (tmp_path / "config.json").write_text("{}")

    with pytest.raises(RunnerError, match="which has no revisions"):
        find_revisions(tmp_path, ["main"])


def test_hashes_of_the_hub_are_asked_for_not_fetched(cache, monkeypatch):
    """Online, the hub's own metadata answer; a model of several kinds counts by the first."""

    def info(self, repo, *, revision, files_metadata):
        assert files_metadata
        name = next(name for name, commit in COMMITS.items() if commit == revision)
        digest = "e" * 64 if name == "step0" else "f" * 64
        files = [
            SimpleNamespace(rfilename="config.json", lfs=None),
            SimpleNamespace(rfilename="model.safetensors", lfs=SimpleNamespace(sha256=digest)),
            SimpleNamespace(rfilename="pytorch_model.bin", lfs=SimpleNamespace(sha256=name)),
        ]
        return SimpleNamespace(siblings=files)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", info)
    monkeypatch.setattr(
        huggingface_hub,
        "hf_hub_download",
        lambda repo, file, revision: str(cache / "snapshots" / COMMITS[revision] / file),
    )

    found = find_revisions("owner/name", ["step0", "step1000", "main"])

    assert [one.same_as for one in found] == [None, None, "step1000"]
    assert found[0].weights == {"model.safetensors": "e" * 64}


def test_a_gated_model_is_told_at_once(monkeypatch):
    """Nothing else is tried: every revision would say the same."""

    def refuse(repo_id, filename, *, revision=None):
        raise errors.GatedRepoError.__new__(errors.GatedRepoError)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)

    with pytest.raises(RunnerError, match=r"^meta/x is gated: accept its terms"):
        find_revisions("meta/x", ["a", "b"])


@pytest.mark.parametrize(
    ("names", "message"), [([], "names no revision"), (["a", "b", "a"], "names 'a' twice")]
)
def test_what_names_nothing_or_twice_is_refused(cache, names, message):
    with pytest.raises(ValueError, match=message):
        find_revisions(cache, names)


@pytest.mark.parametrize(
    ("name", "step"),
    [("step143000", 143000), ("stage1-step5-tokens9B", 5), ("checkpoint-20", 20), ("v2", 2)],
)
def test_the_step_is_read_from_the_name(name, step):
    assert step_of(name) == step


def test_names_without_a_step_have_none():
    assert step_of("main") != step_of("main")
    assert step_of("a1b2c3d4") != step_of("a1b2c3d4")
