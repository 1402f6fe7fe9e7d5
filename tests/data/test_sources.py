import importlib
import io
import json
import os
from contextlib import contextmanager
from pathlib import Path

import datasets
import fsspec
import huggingface_hub
import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.sources import fetch_repository, is_hub_id, open_source
from surface_consistency.errors import DataError, SourceNotFoundError

CARD = """---
license: cc-by-sa-4.0
configs:
- config_name: default
  data_files:
  - split: test
    path: data/test-*.parquet
  - split: dev
    path: data/dev.parquet
---
# RedirectQA
"""


@pytest.fixture
def hub_folder(tmp_path, rows):
    """A folder in the hub's layout: card with configurations, two Parquet shards, a dev split."""
    folder = tmp_path / "RedirectQA"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    data = datasets.Dataset.from_list(rows)
    for shard in range(2):
        part = data.shard(2, shard, contiguous=True)
        part.to_parquet(folder / "data" / f"test-0000{shard}-of-00002.parquet")
    datasets.Dataset.from_list(rows[:2]).to_parquet(folder / "data" / "dev.parquet")
    return folder


def read(source, **options):
    return [dict(row) for _, row in open_source(source, **options).rows]


def test_folder_agrees_with_load_dataset(hub_folder, tmp_path, rows):
    """A folder in the hub's layout gives the same rows as `load_dataset`."""
    loaded = datasets.load_dataset(str(hub_folder), split="test", cache_dir=str(tmp_path / "cache"))

    assert read(hub_folder) == rows == loaded.to_list()
    assert read(str(hub_folder), split="dev") == rows[:2]


def test_every_type_of_source_gives_the_same_data(hub_folder, tmp_path, rows, write_lines):
    """Hub folder, file, `datasets` object (streamed or not) and rows give the same data."""
    data = datasets.Dataset.from_list(rows)
    saved = tmp_path / "saved"
    datasets.DatasetDict(test=data).save_to_disk(str(saved))
    data.save_to_disk(str(tmp_path / "one"))
    sources = [
        hub_folder,
        str(hub_folder) + os.sep,
        hub_folder / "data" / "..",
        write_lines(tmp_path / "rows.jsonl", rows),
        saved,
        tmp_path / "one",
        data,
        data.with_format("numpy"),
        data.with_format("pandas"),
        data.with_format("arrow"),
        data.to_iterable_dataset(),
        datasets.DatasetDict(test=data),
        {"test": rows},
        rows,
        iter(rows),
        data.to_pandas().to_dict("records"),
    ]

    loaded = [load_redirectqa(source) for source in sources]

    for found in loaded:
        assert found.questions == loaded[0].questions
        assert found.source.digest == loaded[0].source.digest
        assert found.source.revision is None


def test_paths_have_precedence_over_hub_ids_and_a_tilde_is_expanded(
    tmp_path, rows, write_lines, monkeypatch
):
    write_lines(tmp_path / "naist-nlp" / "RedirectQA" / "test.jsonl", rows)
    write_lines(tmp_path / "rows.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert read("naist-nlp/RedirectQA") == read("~/rows.jsonl") == rows


def test_columns_are_those_of_the_first_1000_rows():
    """A column that is missing in the first rows is found."""
    consumed = []

    def stream():
        for number in range(10_000):
            consumed.append(number)
            yield {"a": number} | ({"b": 1} if number == 900 else {})

    opened = open_source(stream())

    assert (len(consumed), opened.columns) == (1000, ("a", "b"))
    assert [row["a"] for _, row in opened.rows] == list(range(10_000))


def test_names_of_rows_in_memory_do_not_depend_on_the_process(rows):
    data = datasets.Dataset.from_list(rows)

    assert open_source(data).id == open_source(datasets.Dataset.from_list(rows)).id == "Dataset"


def test_single_unnamed_file_is_the_train_split(tmp_path, rows, write_lines):
    """A folder with one file without a split's name has the split "train", as in `datasets`."""
    write_lines(tmp_path / "redirectqa.jsonl", rows)

    assert read(tmp_path, split="train") == rows


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        *(
            (source, {}, SourceNotFoundError, r"file or folder '.*absent|a/b/c' not found \(in /")
            for source in (
                *("./absent", "/absent/rows", "~/absent", "absent.jsonl", "a/b/c"),
                Path("absent"),
            )
        ),
        ("my/rows", {}, SourceNotFoundError, r"'my/rows' is not in its cache.*no local file or"),
        (
            {"dev": []},
            {},
            SourceNotFoundError,
            r"split 'test' not found in the dictionary of splits; splits: dev; pass split='dev'",
        ),
        *(
            (source, {}, DataError, r"has no rows \(split 'test'\); choose another")
            for source in ([], {"test": []}, datasets.Dataset.from_list([]))
        ),
        *(
            (source, {"revision": "v1"}, ValueError, r"'v1' belongs to a hub repository, but the")
            for source in ([{"a": 1}], {"test": [{"a": 1}]})
        ),
        (5, {}, TypeError, r"source must be a hub id, a path, .*got int"),
        (["a.jsonl"], {}, TypeError, r"row 1 must be a dictionary, got str"),
        ({"test": "a.jsonl"}, {}, TypeError, r"source\['test'\] must contain rows, got str"),
        ({"id": 1, "name": "x"}, {}, SourceNotFoundError, r"splits: id, name"),
    ],
)
def test_open_source_rejects_invalid_sources_and_options(source, options, error, message):
    with pytest.raises(error, match=message):
        list(open_source(source, **options).rows)


TWO_CONFIGURATIONS = """---
configs:
- config_name: v0
  data_files: a.jsonl
- config_name: v1
  data_files: a.jsonl
---
"""
LINE = '{"a": 1}\n'


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ({}, SourceNotFoundError, r"no data files \(\.parquet, \.jsonl, .*\) but nothing; name"),
        (
            {"README.md": "# nothing", "notes.txt": LINE},
            SourceNotFoundError,
            r"contains no data files .* but README\.md, notes\.txt; name",
        ),
        (
            {"manifest.json": LINE, "scoring.json": LINE},
            SourceNotFoundError,
            r"is a run folder and contains no data; name the data",
        ),
        (
            {"a.jsonl": LINE, "b.jsonl": LINE},
            SourceNotFoundError,
            r"split 'test' not found in .*: train \(a\.jsonl, b\.jsonl\); pass split",
        ),
        ({"test.jsonl": "\n"}, DataError, r"has no rows"),
        (
            {"a.jsonl": LINE, "README.md": TWO_CONFIGURATIONS},
            DataError,
            r"Please pick one .*\['v0', 'v1'\](.|\n)*datasets.load_data",
        ),
        (
            {"test.jsonl": LINE, "rows.py": ""},
            DataError,
            r"scripts are no longer supported.*pass one of its files",
        ),
        ({"test.txt": "a\n"}, DataError, r"cannot read .*test\.txt: the formats .*load_dataset"),
        *(
            (
                {"README.md": f"---\n{header}\n---\n", "d.jsonl": LINE},
                DataError,
                r"^folder .*rows cannot .* README.md .*pass one of it",
            )
            for header in (
                "foo: [1,\nbar: }",
                "\tx: 1",
                "*x",
                "configs:\n- config_name: [a, b]\n  data_files: d.jsonl",
                "configs:\n- config_name: {a: 1}\n  data_files: d.jsonl",
                "dataset_info:\n  features: x",
            )
        ),
    ],
)
def test_open_source_rejects_an_invalid_folder(tmp_path, files, error, message):
    """The message contains the content of the folder, and a remedy."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)

    with pytest.raises(error, match=message):
        open_source(folder)
    if "test.jsonl" in files and "rows.py" in files:
        assert read(folder / "test.jsonl") == [{"a": 1}]


def test_missing_splits_and_revisions_of_a_hub_folder_are_rejected(hub_folder):
    with pytest.raises(
        SourceNotFoundError,
        match=r"split 'train' not found in .*; splits: test \(.*\), dev \(.*\); pass split='te",
    ):
        open_source(hub_folder, split="train")
    with pytest.raises(ValueError, match=r"but the source is .*RedirectQA; omit it"):
        open_source(hub_folder, revision="v1.0.0")


def test_rows_at_a_url_are_read_like_a_local_file():
    fsspec.filesystem("memory").pipe("/rows/test.jsonl", b'{"a": 1}\n')

    opened = open_source("memory://rows/test.jsonl")

    assert (opened.id, [row for _, row in opened.rows]) == ("memory://rows/test.jsonl", [{"a": 1}])


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(monkeypatch):
    """Replace the hub's server by a table: request path to (status, headers, body)."""
    answers = {}

    def answer(path):
        """Return the response to a path; None if there is no connection."""
        for start, found in answers.items():
            if path.startswith(start):
                return found
        return None if "down" in answers else (404, {"X-Error-Code": "EntryNotFound"}, b"")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with (_over_httpx if hasattr(huggingface_hub, "set_client_factory") else _over_requests)(
        answer
    ):
        yield answers


@contextmanager
def _over_httpx(answer):
    """Reply in the client of huggingface_hub >= 1.0: httpx, or its successor httpx2."""
    from huggingface_hub.utils._http import default_client_factory

    http = importlib.import_module(
        huggingface_hub.errors.HfHubHTTPError.__mro__[1].__module__.partition(".")[0]
    )

    def respond(request):
        found = answer(request.url.path)
        if found is None:
            raise http.ConnectError("no route to host")
        return http.Response(found[0], headers=found[1], content=found[2])

    huggingface_hub.set_client_factory(
        lambda: http.Client(transport=http.MockTransport(respond), follow_redirects=True)
    )
    yield
    huggingface_hub.set_client_factory(default_client_factory)


@contextmanager
def _over_requests(answer):
    """Reply in the sessions of huggingface_hub < 1.0."""
    import requests

    class Adapter(requests.adapters.BaseAdapter):
        def send(self, request, **_):
            found = answer(request.path_url)
            if found is None:
                raise requests.ConnectionError("no route to host")
            response = requests.Response()
            response.status_code, response.url, response.request = found[0], request.url, request
            response.headers.update(found[1])
            response.raw = io.BytesIO(found[2] or b"")
            return response

        def close(self):
            """Do nothing, because no connection is open."""

    def session():
        made = requests.Session()
        made.mount("https://", Adapter())
        return made

    huggingface_hub.configure_http_backend(backend_factory=session)
    yield
    huggingface_hub.configure_http_backend()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("naist-nlp/RedirectQA", "squad")),
        *((text, False) for text in ("a/b/c", "/data/rows", "../rows", "~/rows", "a b/c", "")),
        *((text, False) for text in ("data/rows.parquet", "data/test.CSV", r"C:\rows")),
    ],
)
def test_is_hub_id_distinguishes_ids_from_paths(text, expected):
    """A hub id is a name or owner/name, and never the path of a data file."""
    assert is_hub_id(text) is expected


def test_load_redirectqa_reads_the_hub_cache_offline(own_caches, rows, write_lines):
    """A repository in the hub's cache needs no network; its commit is the revision."""
    # The layout of the hub's client: blobs, links to them, and refs.
    folder = own_caches / "hub" / "datasets--naist-nlp--RedirectQA"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "test.jsonl").symlink_to(write_lines(folder / "blobs" / "b10b", rows))
    (folder / "refs").mkdir()
    for name in ("main", "v1.0.0"):
        (folder / "refs" / name).write_text(COMMIT)

    data = load_redirectqa()

    assert (data.source.id, data.source.revision) == ("naist-nlp/RedirectQA", COMMIT)
    assert len(data.rows) == len(rows)
    assert load_redirectqa(revision="v1.0.0").source == data.source
    assert load_redirectqa(revision=COMMIT).source == data.source
    # A cached README without data is not a data set.
    (snapshot / "test.jsonl").unlink()
    (snapshot / "README.md").write_text("# RedirectQA")
    with pytest.raises(SourceNotFoundError, match=r"naist-nlp/RedirectQA contains no data files"):
        load_redirectqa()


def test_an_uncached_repository_raises_an_error_offline():
    """The message has the connection, a folder as remedy, and that no such path exists."""
    with pytest.raises(
        SourceNotFoundError,
        match=r"hub cannot be reached and 'naist-nlp/RedirectQA' at revision 'v0\.1\.0' is not.*"
        r"HF_HUB_OFFLINE.*hf download naist-nlp/RedirectQA --repo-type dataset --local-dir FOLDER"
        r".*There is no local file or folder 'naist-nlp/RedirectQA' either",
    ):
        load_redirectqa(revision="v0.1.0")


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "GatedRepo", r"huggingface\.co/datasets/o/n is gated: accept .* `hf auth login`"),
        (401, "GatedRepo", r"is gated: accept its conditions .* or set HF_TOKEN"),
        (404, "RepoNotFound", r"no data repository 'o/n', or it is private: .* no local file"),
        (401, "", r"no data repository 'o/n', or it is private"),
        (404, "RevisionNotFound", r"no revision 'v9': its branches and tags are .*/n/tree"),
        (500, "", r"cannot be reached and 'o/n' at revision 'v9' is not in its cache"),
        (0, "down", r"the hub cannot be reached and 'o/n' at revision 'v9' is not in"),
    ],
)
def test_fetch_repository_raises_errors_with_remedies(status, code, message, hub):
    """Gated, missing, private, broken and unreachable repositories each get one message."""
    path = "down" if code == "down" else "/api/datasets/o/n"
    hub[path] = (status, {"X-Error-Code": code} if code else {}, b"")

    with pytest.raises(SourceNotFoundError, match=message):
        fetch_repository("o/n", revision="v9")


def test_fetch_repository_rejects_names_that_are_not_ids():
    with pytest.raises(
        SourceNotFoundError, match=r"'a--b' is not a repository id .* no local file"
    ):
        fetch_repository("a--b")


def test_fetch_repository_downloads_data_files_only(hub, rows):
    """README, metadata and data files are downloaded, not weights and pictures."""
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
    # huggingface-hub 2 lists the tree of the commit, 1 that of the branch.
    for revision in (COMMIT, "main"):
        hub[f"/api/datasets/o/n/tree/{revision}"] = (200, {}, json.dumps(tree).encode())
    for number, path in ((0, "test.jsonl"), (2, "data/more.csv")):
        headers = {
            "X-Repo-Commit": COMMIT,
            "ETag": f'"{number:040x}"',
            "Content-Length": str(len(content)),
        }
        hub[f"/datasets/o/n/resolve/{COMMIT}/{path}"] = (200, headers, content)

    snapshot = fetch_repository("o/n")

    files = {
        file.relative_to(snapshot.path).as_posix()
        for file in snapshot.path.rglob("*")
        if file.is_file()
    }
    assert snapshot.revision == COMMIT
    assert files == {"test.jsonl", "data/more.csv"}
    assert (snapshot.path / "test.jsonl").read_bytes() == content
