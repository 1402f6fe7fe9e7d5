import errno
import os

import numpy as np
import pytest
from surface_consistency_build.wikimedia.construction import _work_folder

from surface_consistency.errors import RunError


@pytest.mark.parametrize("place", [0, (1 << 20) + 5, -1])
def test_file_digest_detects_a_change_in_a_large_file(tmp_path, place, monkeypatch):
    """Of a large file, the start, the end and blocks in between are read."""
    monkeypatch.setattr(_work_folder, "_WHOLE", 1 << 20)
    content = bytearray(np.random.default_rng(0).bytes(8 << 20))
    path = tmp_path / "enwiki-20260101-page.sql.gz"
    path.write_bytes(content)
    before = _work_folder.file_digest(path)

    content[place] ^= 1
    path.write_bytes(content)

    assert _work_folder.file_digest(path) != before


@pytest.mark.skipif(os.name != "posix", reason="locks are taken by flock")
def test_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch, caplog):
    """The build continues without a lock."""

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)

    with _work_folder.locked_folder(tmp_path / "work") as folder:
        assert folder.is_dir()

    assert "has no locks" in caplog.text


def test_error_for_a_locked_folder_names_the_process(tmp_path):
    with (
        _work_folder.locked_folder(tmp_path),
        pytest.raises(RunError, match=r"another build \(this process\) uses"),
        _work_folder.locked_folder(tmp_path),
    ):
        pass
    with _work_folder.locked_folder(tmp_path):
        assert (tmp_path / ".lock").is_file()
