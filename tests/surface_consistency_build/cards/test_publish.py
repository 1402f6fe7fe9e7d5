"""Test that only the planned files are uploaded, and that a dry run does not use the network."""

import hashlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.utils import filter_repo_objects
from surface_consistency_build.cards.dataset_card import redirectqa_card
from surface_consistency_build.cards.dataset_folder import write_folder
from surface_consistency_build.cards.publish import check_push, publish_folder

from surface_consistency.errors import DataError, SourceNotFoundError

# The calls are those of `HfApi`, without a token.
CREATES, UPLOADS = (
    set(inspect.signature(method).parameters)
    for method in (huggingface_hub.HfApi.create_repo, huggingface_hub.HfApi.upload_folder)
)


class FakeHub:
    """A hub in memory, with `huggingface_hub`'s own matching of patterns."""

    def __init__(self, files=()):
        self.files = dict.fromkeys(files, b"old")
        self.repositories = {}
        self.calls = []

    def create_repo(self, repo_id, *, repo_type, private, exist_ok):
        assert exist_ok
        assert {"repo_type", "private", "exist_ok"} <= CREATES
        self.calls.append("create_repo")
        self.repositories.setdefault(repo_id, (repo_type, private))

    def upload_folder(self, *, repo_id, folder_path, repo_type, **options):
        self.calls.append("upload_folder")
        assert options.keys() <= UPLOADS - {"token"}
        assert repo_type == "dataset"
        folder = Path(folder_path)
        files = [path for path in folder.rglob("*") if path.is_file()]
        names = [path.relative_to(folder).as_posix() for path in files]
        patterns = options["delete_patterns"]
        for name in filter_repo_objects(list(self.files), allow_patterns=patterns):
            del self.files[name]
        for name in filter_repo_objects(names, allow_patterns=options["allow_patterns"]):
            self.files[name] = (folder / name).read_bytes()
        return SimpleNamespace(commit_url=f"https://hub.example/{repo_id}/commit/1")


@pytest.fixture
def folder(subset, tmp_path):
    """A written folder with additional files that are not uploaded."""
    write_folder(tmp_path / "out", [subset()], card=redirectqa_card(), rows_per_shard=5)
    (tmp_path / "out" / ".cache").mkdir()
    for name in (".cache/secret", ".env", "secret.env", "metadata/notes.txt", "v1.0.0/rows.csv"):
        (tmp_path / "out" / name).write_text("token", encoding="utf-8")
    return tmp_path / "out"


NAMES = ["README.md", "metadata/redirect_category_to_type.csv"]
NAMES += [f"v1.0.0/test-0000{number}-of-00002.parquet" for number in range(2)]


def test_publish_folder_dry_run_is_the_default_and_sends_no_request(folder):
    api = FakeHub()
    plan = publish_folder(folder, "owner/redirectqa", api=api)

    assert api.calls == []
    assert (plan.is_done, plan.url) == (False, None)
    assert [upload.path for upload in plan.uploads] == NAMES
    for upload in plan.uploads:
        content = (folder / upload.path).read_bytes()
        assert upload.n_bytes == len(content)
        assert upload.sha256 == hashlib.sha256(content).hexdigest()
    assert [upload.n_rows for upload in plan.uploads] == [None, None, 5, 5]
    assert plan.total_bytes == sum((folder / name).stat().st_size for name in NAMES)


def test_publish_folder_uploads_the_files_of_the_dry_run(folder):
    shown = publish_folder(folder, "owner/redirectqa")
    api = FakeHub()
    done = publish_folder(folder, "owner/redirectqa", dry_run=False, api=api)

    assert api.calls == ["create_repo", "upload_folder"]
    assert api.repositories == {"owner/redirectqa": ("dataset", True)}
    assert sorted(api.files) == NAMES
    assert done.uploads == shown.uploads
    for upload in shown.uploads:
        assert hashlib.sha256(api.files[upload.path]).hexdigest() == upload.sha256
    assert done.is_done
    assert done.url == "https://hub.example/owner/redirectqa/commit/1"


def test_publish_folder_removes_only_old_shards(folder):
    """Shards of an earlier version would match the card's pattern; other files are kept."""
    api = FakeHub(["v1.0.0/test-00002-of-00003.parquet", "LICENSE", "v2/test-0.parquet"])
    plan = publish_folder(folder, "owner/redirectqa", dry_run=False, api=api)

    assert plan.replaced == ("v1.0.0/*.parquet",)
    assert sorted(api.files) == sorted([*NAMES, "LICENSE", "v2/test-0.parquet"])


@pytest.mark.parametrize("repo_id", ["redirectqa", "a/b/c", "owner/re directqa", ""])
def test_check_push_rejects_invalid_repository_names(repo_id):
    with pytest.raises(ValueError, match="repo_id must be owner/name"):
        check_push(repo_id, dry_run=True)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("README.md", None, SourceNotFoundError, r"has no README\.md"),
        ("README.md", "---\nlicense: mit\n---\n", DataError, "names no data files under configs"),
        ("v1.0.0/test-*", None, DataError, r"names v1\.0\.0/test-\*.*, which does not match"),
        ("v1.0.0/extra.parquet", "x", DataError, r"not name v1\.0\.0/extra\.parquet; remove them"),
        ("*", None, SourceNotFoundError, "folder .*out.* not found"),
    ],
)
def test_publish_folder_rejects_a_card_of_other_files(folder, name, content, error, message):
    if content is not None:
        (folder / name).write_text(content, encoding="utf-8")
    elif name == "*":
        folder.rename(folder.with_name("other"))
    else:
        for path in list(folder.glob(name)):
            path.unlink()

    with pytest.raises(error, match=message):
        publish_folder(folder, "owner/redirectqa")
