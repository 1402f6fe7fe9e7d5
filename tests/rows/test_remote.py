"""Results at URLs, with the in-memory file system of fsspec."""

from pathlib import Path

import fsspec
import pytest
from fsspec.registry import _registry, known_implementations

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.results.frame import read_results
from surface_consistency.rows.remote import url_of

MEMORY = fsspec.filesystem("memory")


@pytest.fixture
def bucket():
    for name, correct in (("a", "1"), ("b", "0")):
        MEMORY.pipe(f"/bucket/{name}.csv", f"item,correct\nq1,{correct}\nq2,1\n".encode())
    yield "memory://bucket"
    MEMORY.rm("/bucket", recursive=True)


def test_files_and_folders_at_urls_are_read_like_local_ones(bucket):
    files = [f"{bucket}/a.csv", Path(f"{bucket}/b.csv")]
    for source in (files, bucket):
        results = read_results(source)

        assert results.frame["model"].tolist() == ["a", "a", "b", "b"]
        assert results.frame["score"].tolist() == [1.0, 1.0, 0.0, 1.0]
        assert list(results.tool) == ["memory://bucket/a.csv", "memory://bucket/b.csv"]


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ("hf://datasets/owner/name/a.csv", "hf://datasets/owner/name/a.csv"),
        (Path("s3://bucket/a.csv"), "s3://bucket/a.csv"),
        *((path, None) for path in ("a.csv", "folder/a.csv", "C:/a.csv", "/a:b/c.csv")),
    ],
)
def test_url_of_distinguishes_urls_from_paths(source, url):
    assert url_of(source) == url


class Denying(fsspec.AbstractFileSystem):
    """A file system that denies access, like the hub for a gated repository."""

    protocol = "hf"

    def isdir(self, path):
        raise PermissionError("403: gated")


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("memory://none/a.csv", SourceNotFoundError, r"memory://none/a\.csv does not exist .*curl"),
        ("foo://a/b.csv", DataError, "cannot open foo://a/b.csv: Protocol not known: foo; downl"),
        ("none://a/b.csv", DataError, "install that package with pip, or download it"),
        ("hf://datasets/a/b/c.csv", SourceNotFoundError, "cannot be read .*403: gated.*hf auth lo"),
        ("owner/name", SourceNotFoundError, "on the hub is named hf://datasets/OWNER/NAME/FILE"),
    ],
)
def test_urls_that_cannot_be_opened_raise_an_error_with_a_remedy(url, error, message, monkeypatch):
    known = {"class": "none_installed.System", "err": "Please install none_installed"}
    monkeypatch.setitem(known_implementations, "none", known)
    monkeypatch.setitem(_registry, "hf", Denying)

    with pytest.raises(error, match=message):
        read_results(url)
