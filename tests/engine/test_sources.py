import importlib
import io
import json
import os
from contextlib import contextmanager
from pathlib import Path

import datasets
import huggingface_hub
import pytest

from surface_consistency.data.sources import fetch_repository, is_hub_id, open_source
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.studies.redirectqa.data import load_redirectqa
from tests.made_data import own_caches, rows, write_lines  # noqa: F401 - fixtures

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
    """A folder in the hub's layout gives the rows that `load_dataset` gives."""
    loaded = datasets.load_dataset(str(hub_folder), split="test", cache_dir=str(tmp_path / "cache"))

    assert read(hub_folder) == rows == loaded.to_list()
    assert read(str(hub_folder), split="dev") == rows[:2]


def test_every_kind_of_source_gives_the_same_data(hub_folder, tmp_path, rows, write_lines):
    """Hub folder, file, `datasets` object, streamed or not, and plain rows are the same data."""
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


def test_source_takes_a_path_before_a_hub_id(tmp_path, rows, write_lines, monkeypatch):
    """A folder that is there is meant, even when its name could be a hub id."""
    write_lines(tmp_path / "naist-nlp" / "RedirectQA" / "test.jsonl", rows)
    monkeypatch.chdir(tmp_path)

    assert read("naist-nlp/RedirectQA") == rows


def test_source_expands_the_home_folder(tmp_path, rows, write_lines, monkeypatch):
    """A tilde is the home folder, as in a shell."""
    write_lines(tmp_path / "rows.jsonl", rows)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert read("~/rows.jsonl") == rows


def test_columns_are_gathered_over_rows(rows):
    """A column that early rows lack is still seen."""
    late = [{"a": 1}, {"a": 2, "b": 3}]

    opened = open_source(late)

    assert opened.columns == ("a", "b")
    assert [dict(row) for _, row in opened.rows] == late


def test_open_source_reads_no_further_than_it_must(tmp_path):
    """Opening looks at the first thousand rows only."""
    taken = []

    def stream():
        for number in range(10_000):
            taken.append(number)
            yield {"a": number}

    opened = open_source(stream())

    assert len(taken) == 1000
    assert sum(1 for _ in opened.rows) == 10_000


def test_datasets_names_do_not_depend_on_the_process(rows):
    """Rows from memory get a name that a resumed run gets again."""
    data = datasets.Dataset.from_list(rows)

    assert open_source(data).id == open_source(datasets.Dataset.from_list(rows)).id == "Dataset"


@pytest.mark.parametrize(
    "source", ["./absent", "/absent/rows", "~/absent", "absent.jsonl", "a/b/c", Path("absent")]
)
def test_open_source_rejects_an_absent_path(source):
    """What can only be a path is told as one, with the folder that it was looked for in."""
    with pytest.raises(SourceNotFoundError, match=r"no file or folder '.*absent|a/b/c' \(in /"):
        open_source(source)


def test_open_source_rejects_what_may_be_path_or_id():
    """A name that could be either is told to be neither."""
    with pytest.raises(
        SourceNotFoundError, match=r"'my/rows' is not in its cache.*no local file or"
    ):
        open_source("my/rows")


def test_open_source_rejects_a_folder_without_data(tmp_path):
    """An empty folder, and one with a README alone, hold no data."""
    with pytest.raises(SourceNotFoundError, match=r"holds no data files \(\.parquet, \.jsonl"):
        open_source(tmp_path)
    (tmp_path / "README.md").write_text("# nothing")
    with pytest.raises(SourceNotFoundError, match="holds no data files"):
        open_source(tmp_path)


def test_open_source_rejects_a_missing_split(hub_folder):
    """The splits that are there are named, for folders and for dictionaries."""
    with pytest.raises(
        SourceNotFoundError,
        match=r"no split 'train' in .*; its splits: test \(.*\), dev \(.*\); pass split='te",
    ):
        open_source(hub_folder, split="train")
    with pytest.raises(SourceNotFoundError, match=r"in the dictionary of splits; its splits: dev;"):
        open_source({"dev": []})


def test_single_unnamed_file_is_the_train_split(tmp_path, rows, write_lines):
    """A folder with one file of no split's name holds "train", as `load_dataset` has it."""
    write_lines(tmp_path / "redirectqa.jsonl", rows)

    with pytest.raises(
        SourceNotFoundError, match=r"its splits: train \(redirectqa\.jsonl\); pass split='train'"
    ):
        open_source(tmp_path)
    assert read(tmp_path, split="train") == rows


@pytest.mark.parametrize("empty", [[], {"test": []}, datasets.Dataset.from_list([])])
def test_open_source_rejects_an_empty_split(empty):
    """A split without rows is refused."""
    with pytest.raises(DataError, match=r"has no rows \(split 'test'\); choose another"):
        open_source(empty)


def test_open_source_rejects_an_empty_file(tmp_path):
    """A file without rows is refused."""
    path = tmp_path / "test.jsonl"
    path.write_text("\n")

    for source in (path, tmp_path):
        with pytest.raises(DataError, match=r"has no rows"):
            open_source(source)


def test_open_source_rejects_several_configurations(tmp_path, rows, write_lines):
    """A folder with two configurations and no default asks for a choice."""
    write_lines(tmp_path / "a.jsonl", rows)
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: v0\n  data_files: a.jsonl\n"
        "- config_name: v1\n  data_files: a.jsonl\n---\n"
    )

    with pytest.raises(
        DataError, match=r"Please pick one .*\['v0', 'v1'\](.|\n)*datasets.load_data"
    ):
        open_source(tmp_path)


def test_open_source_rejects_a_folder_with_a_script_of_its_name(tmp_path, rows, write_lines):
    """`datasets` refuses X/X.py even beside data; the message says what to pass instead."""
    folder = tmp_path / "redirectqa"
    write_lines(folder / "test.jsonl", rows)
    (folder / "redirectqa.py").write_text("")

    with pytest.raises(DataError, match=r"scripts are no longer supported.*pass one of its files"):
        open_source(folder)
    assert read(folder / "test.jsonl") == rows


def test_open_source_rejects_foreign_formats(tmp_path):
    """A format that `datasets` knows and this reader does not is told with the way around."""
    (tmp_path / "test.txt").write_text("a\n")

    with pytest.raises(
        DataError, match=r"cannot read .*test\.txt: the formats .*load_dataset and pa"
    ):
        open_source(tmp_path)


@pytest.mark.parametrize("source", [[{"a": 1}], {"test": [{"a": 1}]}])
def test_open_source_rejects_a_revision_of_rows(source):
    """A revision that would be ignored is refused."""
    with pytest.raises(ValueError, match=r"revision='v1' belongs to a hub repository, but the sou"):
        open_source(source, revision="v1")


def test_open_source_rejects_a_revision_of_a_folder(hub_folder):
    """A local folder has no revisions."""
    with pytest.raises(ValueError, match=r"but the source is .*RedirectQA; leave it out"):
        open_source(hub_folder, revision="v1.0.0")


def test_open_source_rejects_other_things(rows):
    """Numbers, frames, lists of names and a single row are no source."""
    frame = datasets.Dataset.from_list(rows).to_pandas()

    with pytest.raises(TypeError, match=r"source must be a hub id, a path, .*got int"):
        open_source(5)
    with pytest.raises(TypeError, match=r"got DataFrame; a pandas frame goes in as frame\.to_dict"):
        open_source(frame)
    with pytest.raises(TypeError, match=r"row 1 must be a dictionary, got str"):
        open_source(["a.jsonl"])
    with pytest.raises(TypeError, match=r"source\['test'\] must hold rows, got str"):
        open_source({"test": "a.jsonl"})
    with pytest.raises(SourceNotFoundError, match=r"its splits: triplet_id, subject_id"):
        open_source(rows[0])


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(monkeypatch):
    """Put a table in place of the hub's server: request path to (status, headers, body)."""
    answers = {}

    def answer(path):
        """Look a path up; None where there is no connection."""
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
    """Answer in the client of huggingface_hub from 1.0 on: httpx, or its successor httpx2."""
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
    """Answer in the sessions of huggingface_hub before 1.0."""
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
            """Nothing is open."""

    def session():
        made = requests.Session()
        made.mount("https://", Adapter())
        return made

    huggingface_hub.configure_http_backend(backend_factory=session)
    yield
    huggingface_hub.configure_http_backend()


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
        file.relative_to(snapshot.folder).as_posix()
        for file in snapshot.folder.rglob("*")
        if file.is_file()
    }
    assert snapshot.revision == COMMIT
    assert files == {"test.jsonl", "data/more.csv"}
    assert (snapshot.folder / "test.jsonl").read_bytes() == content


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], r"holds no data files \(\.parquet, .*\) but nothing; name the folder or file that"),
        (["README.md", "notes.txt"], r"holds no data files .* but README\.md, notes\.txt; name"),
        (["manifest.json", "scoring.json"], r"is that of a run and holds no data; name the data"),
        (
            ["a.jsonl", "b.jsonl"],
            r"no split 'test' in .*: train \(a\.jsonl, b\.jsonl\); pass split",
        ),
    ],
)
def test_a_folder_without_the_data_is_told_by_what_it_holds(tmp_path, files, message):
    """What is missing is data, not a split."""
    for name in files:
        (tmp_path / name).write_text('{"a": 1}\n')

    with pytest.raises(SourceNotFoundError, match=message):
        open_source(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        "foo: [1,\nbar: }",
        "\tx: 1",
        "*x",
        "configs:\n- config_name: [a, b]\n  data_files: d.jsonl",
        "configs:\n- config_name: {a: 1}\n  data_files: d.jsonl",
        "dataset_info:\n  features: x",
    ],
)
def test_a_card_that_the_library_falls_over_is_named(tmp_path, header):
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n")
    (tmp_path / "d.jsonl").write_text('{"a": 1}\n')

    with pytest.raises(
        DataError, match=rf"^folder {tmp_path} cannot .* README.md .*pass one of it"
    ):
        open_source(tmp_path)
