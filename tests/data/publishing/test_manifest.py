import hashlib

import numpy as np
import pytest

from surface_consistency.data.publishing import describe_files, files_digest, manifest
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


def test_files_digest_is_that_of_names_content_and_versions(files, tmp_path):
    seen = [files_digest(files, "1.0.0")]
    assert files_digest(reversed(files), "1.0.0") == seen[0]

    seen.append(files_digest(files, "1.0.1"))
    seen.append(files_digest(files[:1], "1.0.0"))
    files[0].write_bytes(b"abd")
    seen.append(files_digest(files, "1.0.0"))
    moved = files[0].rename(tmp_path / "enwiki-20260201-page.sql.gz")
    seen.append(files_digest([moved, files[1]], "1.0.0"))

    assert len(set(seen)) == 5


@pytest.mark.parametrize("place", [0, (1 << 20) + 5, -1])
def test_files_digest_sees_a_change_in_a_large_file(tmp_path, place, monkeypatch):
    """Head, blocks between and tail count where a file is too large to be read whole."""
    monkeypatch.setattr(manifest, "_WHOLE", 1 << 20)
    content = bytearray(np.random.default_rng(0).bytes(8 << 20))
    path = tmp_path / "enwiki-20260101-page.sql.gz"
    path.write_bytes(content)
    before = files_digest([path])

    content[place] ^= 1
    path.write_bytes(content)

    assert files_digest([path]) != before
