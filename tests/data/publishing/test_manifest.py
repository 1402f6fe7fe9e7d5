import hashlib

import pytest

from surface_consistency.data.publishing import describe_files
from surface_consistency.errors import SourceNotFoundError


@pytest.fixture
def files(tmp_path):
    """Two small dumps."""
    for name, content in (
        ("enwiki-20260101-page.sql.gz", b"abc"),
        ("pageviews-202412-user.bz2", b"defg"),
    ):
        (tmp_path / name).write_bytes(content)
    return sorted(tmp_path.iterdir())


def test_describe_files_agrees_with_hashlib(files):
    page, views = describe_files(files)

    assert page.model_dump() == {
        "name": "enwiki-20260101-page.sql.gz",
        "date": "20260101",
        "n_bytes": 3,
        "sha1": hashlib.sha1(b"abc", usedforsecurity=False).hexdigest(),
    }
    assert (views.date, views.n_bytes) == ("202412", 4)


def test_describe_files_leaves_checksums_and_dates_out(files, tmp_path):
    latest = tmp_path / "latest-all.json.bz2"
    latest.write_bytes(b"x")
    (described,) = describe_files([latest], checksums=False)

    assert (described.date, described.sha1, described.n_bytes) == (None, None, 1)


def test_describe_files_rejects_a_missing_file(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"no file .*absent"):
        describe_files([tmp_path / "absent"])
