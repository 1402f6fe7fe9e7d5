"""Locks that allow one writer at a time."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from surface_consistency.errors import RunError
from surface_consistency.runs.locks import FileLock

HOLD = """
import sys
from surface_consistency.runs.locks import FileLock
with FileLock(sys.argv[1], RuntimeError):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_contains_the_id_of_its_process_and_is_removed_on_release(tmp_path):
    path = tmp_path / "a.lock"

    with FileLock(path, RunError) as lock:
        assert path.read_text() == str(os.getpid())
        with pytest.raises(RunError, match=r"^this process$"):
            FileLock(path, RunError)
        assert path.read_text() == str(os.getpid())

    lock.release()
    assert not path.exists()
    FileLock(path, RunError).release()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_lock_of_another_process_is_released_when_it_ends(tmp_path, end):
    path = tmp_path / "a.lock"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, path], **pipes) as child:
        assert child.stdout.readline() == "held\n"
        for _ in range(2):
            with pytest.raises(RunError, match=rf"^process {child.pid}$"):
                FileLock(path, RunError)
        if end == "kill":
            child.kill()
        child.communicate()

    FileLock(path, RunError).release()


def test_a_lock_can_be_released_in_another_thread(tmp_path):
    from threading import Thread

    path = tmp_path / "a.lock"
    lock = FileLock(path, RunError)
    thread = Thread(target=lock.release)
    thread.start()
    thread.join()

    assert not path.exists()
    with FileLock(path, RunError):
        assert path.read_text() == str(os.getpid())


def test_file_system_without_locks_gives_a_warning_only(tmp_path, monkeypatch, caplog):
    def fail(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)

    with FileLock(tmp_path / "a.lock", RunError) as lock:
        lock.release()

    assert "the file system has no locks" in caplog.text
    assert "make sure that no other process writes there" in caplog.text


def test_other_errors_of_the_lock_file_are_raised(tmp_path):
    with pytest.raises(OSError, match=r"(?i)directory"):
        FileLock(tmp_path, RunError)


def test_lock_released_during_an_acquisition_is_acquired(tmp_path, monkeypatch):
    """Between opening the file and locking it, its owner removes it."""
    path = tmp_path / "a.lock"
    lock_file = fcntl.flock
    removed = []

    def flock(descriptor, operation):
        if not removed:
            removed.append(path.read_bytes())
            path.unlink()
        lock_file(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)

    with FileLock(path, RunError):
        assert path.read_text() == str(os.getpid())
        with pytest.raises(RunError, match=r"^this process$"):
            FileLock(path, RunError)


ACQUIRE = """
import sys
from pathlib import Path
from surface_consistency.runs.locks import FileLock
n_acquired, counter = 0, Path(sys.argv[1]).with_name("counter")
while n_acquired < 40:
    try:
        with FileLock(sys.argv[1], lambda owner: BlockingIOError(owner)):
            counter.write_text(str(int(counter.read_text()) + 1))
            n_acquired += 1
    except BlockingIOError:
        pass
"""


def test_lock_is_never_acquired_by_two_processes(tmp_path):
    """Each process increments a counter in a file; concurrent increments would lose counts."""
    (tmp_path / "counter").write_text("0")
    command = [sys.executable, "-c", ACQUIRE, tmp_path / "a.lock"]
    children = [subprocess.Popen(command) for _ in range(4)]

    assert [child.wait() for child in children] == [0] * 4
    assert (tmp_path / "counter").read_text() == "160"
