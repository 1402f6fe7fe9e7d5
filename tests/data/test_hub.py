import importlib
import json

import huggingface_hub
import pytest
from huggingface_hub.utils._http import default_client_factory

from surface_consistency.data.hub import fetch_repository, is_hub_id
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.errors import SourceNotFoundError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(monkeypatch):
    """Put a function in place of the hub's server: request path to (status, headers, body)."""
    http = importlib.import_module(
        huggingface_hub.errors.HfHubHTTPError.__mro__[1].__module__.partition(".")[0]
    )
    answers = {}

    def respond(request):
        for path, (status, headers, body) in answers.items():
            if request.url.path.startswith(path):
                return http.Response(status, headers=headers, content=body)
        if "down" in answers:
            raise http.ConnectError("no route to host")
        return http.Response(404, headers={"X-Error-Code": "EntryNotFound"})

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    huggingface_hub.set_client_factory(
        lambda: http.Client(transport=http.MockTransport(respond), follow_redirects=True)
    )
    yield answers
    huggingface_hub.set_client_factory(default_client_factory)


def cached_repository(cache, rows, write_lines, *, commit=COMMIT):
    """Lay a repository down as the hub's client does: blobs, links to them, and refs."""
    folder = cache / "hub" / "datasets--naist-nlp--RedirectQA"
    snapshot = folder / "snapshots" / commit
    blob = write_lines(folder / "blobs" / "b10b", rows)
    snapshot.mkdir(parents=True)
    (snapshot / "test.jsonl").symlink_to(blob)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    (folder / "refs" / "v1.0.0").write_text(commit)
    return snapshot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("naist-nlp/RedirectQA", True),
        ("squad", True),
        ("a/b/c", False),
        ("/data/rows", False),
        ("../rows", False),
        ("~/rows", False),
        ("data/rows.parquet", False),
        ("data/test.CSV", False),
        ("a b/c", False),
        ("", False),
        (r"C:\rows", False),
    ],
)
def test_is_hub_id(text, expected):
    """A hub id is a name or owner/name, and never the path of a data file."""
    assert is_hub_id(text) is expected


def test_load_redirectqa_reads_the_hub_cache_offline(own_caches, rows, write_lines):
    """A repository in the hub's cache needs no network; its commit is the revision."""
    cached_repository(own_caches, rows, write_lines)

    data = load_redirectqa()

    assert data.source.id == "naist-nlp/RedirectQA"
    assert data.source.revision == COMMIT
    assert len(data.pairs) == 6
    assert load_redirectqa(revision="v1.0.0").source == data.source
    assert load_redirectqa(revision=COMMIT).source == data.source


def test_load_redirectqa_rejects_an_uncached_repository_offline():
    """Offline, the message tells how to go on: the connection, a folder, and that no path is so."""
    with pytest.raises(SourceNotFoundError, match="hub cannot be reached") as caught:
        load_redirectqa(revision="v0.1.0")

    message = str(caught.value)
    assert "hub cannot be reached and 'naist-nlp/RedirectQA' at revision 'v0.1.0' is not" in message
    assert "HF_HUB_OFFLINE" in message
    assert "hf download naist-nlp/RedirectQA --repo-type dataset --local-dir FOLDER" in message
    assert "There is no local file or folder 'naist-nlp/RedirectQA' either" in message


def test_load_redirectqa_rejects_a_partly_cached_repository(own_caches, rows, write_lines):
    """A cached README without data is no data set."""
    snapshot = cached_repository(own_caches, rows, write_lines)
    (snapshot / "test.jsonl").unlink()
    (snapshot / "README.md").write_text("# RedirectQA")

    with pytest.raises(SourceNotFoundError, match=r"naist-nlp/RedirectQA holds no data files"):
        load_redirectqa()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "GatedRepo", r"huggingface\.co/datasets/o/n is gated: accept .* `hf auth login`"),
        (401, "GatedRepo", r"is gated: accept its conditions .* or set HF_TOKEN"),
        (
            404,
            "RepoNotFound",
            r"no data repository 'o/n', or it is private: check .* no local file",
        ),
        (401, "", r"no data repository 'o/n', or it is private"),
        (404, "RevisionNotFound", r"no revision 'v9': its branches and tags stand at .*/n/tree"),
        (500, "", r"cannot be reached and 'o/n' at revision 'v9' is not in its cache"),
    ],
)
def test_fetch_repository_rejects_with_a_remedy(status, code, message, hub):
    """Gated, missing, private and broken repositories each get one message with what to do."""
    hub["/api/datasets/o/n"] = (status, {"X-Error-Code": code} if code else {}, b"")

    with pytest.raises(SourceNotFoundError, match=message):
        fetch_repository("o/n", revision="v9")


def test_fetch_repository_rejects_when_the_hub_is_down(hub):
    """No route to the hub is told like being offline."""
    hub["down"] = (0, {}, b"")

    with pytest.raises(SourceNotFoundError, match=r"the hub cannot be reached and 'o/n' is not in"):
        fetch_repository("o/n")


def test_fetch_repository_rejects_names_that_are_no_ids():
    """What the hub's client refuses as a name is told with the path it might have been."""
    with pytest.raises(
        SourceNotFoundError, match=r"'a--b' is no repository id .* no local file or"
    ):
        fetch_repository("a--b")


def test_fetch_repository_downloads_data_files_only(hub, rows):
    """README, metadata and data files come; weights and pictures stay; the commit is known."""
    content = json.dumps(rows[0]).encode()
    hub["/api/datasets/o/n/revision/main"] = (
        200,
        {},
        json.dumps({"id": "o/n", "sha": COMMIT}).encode(),
    )
    tree = [
        {"type": "file", "path": path, "size": len(content), "oid": f"{number:040x}"}
        for number, path in enumerate(["test.jsonl", "figure.png", "data/more.csv"])
    ]
    hub[f"/api/datasets/o/n/tree/{COMMIT}"] = (200, {}, json.dumps(tree).encode())
    for number, path in ((0, "test.jsonl"), (2, "data/more.csv")):
        headers = {
            "X-Repo-Commit": COMMIT,
            "ETag": f'"{number:040x}"',
            "Content-Length": str(len(content)),
        }
        hub[f"/datasets/o/n/resolve/{COMMIT}/{path}"] = (200, headers, content)

    snapshot = fetch_repository("o/n")

    files = {
        file.relative_to(snapshot.folder).as_posix()
        for file in snapshot.folder.rglob("*")
        if file.is_file()
    }
    assert snapshot.revision == COMMIT
    assert files == {"test.jsonl", "data/more.csv"}
    assert (snapshot.folder / "test.jsonl").read_bytes() == content
