"""Final files are written atomically, also if writing fails or is interrupted."""

import csv
import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.runs.files import (
    as_file_name,
    guard_cell,
    output_folder,
    staged,
    subfolder,
    unguard_cell,
    write_bytes,
    write_csv,
    write_json,
    write_parquet,
    write_sheet,
    write_text,
)
from surface_consistency.runs.folder import read_tables
from surface_consistency.schemas import Entity, write_jsonl
from surface_consistency.schemas.jsonl import atomic_path

FRAME = pd.DataFrame({"name": ["PPK", "ППК"], "n": [1, 2], "rate": [0.5, float("nan")]})
WRITERS = {
    "bytes": lambda path: write_bytes(path, b"new"),
    "text": lambda path: write_text(path, "new"),
    "json": lambda path: write_json(path, {"new": 1}),
    "csv": lambda path: write_csv(path, FRAME),
    "parquet": lambda path: write_parquet(path, FRAME),
    "arrow": lambda path: write_parquet(path, pa.table({"n": [1]})),
    "jsonl": lambda path: write_jsonl(path, [Entity(id=None, name="a", aliases=())]),
}

every_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


@pytest.fixture
def path(tmp_path):
    """A file that already exists."""
    file = tmp_path / "out.csv"
    file.write_text("old")
    return file


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@every_writer
def test_writing_replaces_the_file_and_leaves_no_other_files(path, write):
    """The file has the rights that a plain `open` would give it."""
    write(path)

    assert path.read_bytes() != b"old"
    assert names(path.parent) == ["out.csv"]
    (path.parent / "plain").write_text("")
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


@every_writer
def test_interrupted_write_keeps_the_previous_file(path, write, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        write(path)

    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["out.csv"]


@every_writer
def test_full_disk_raises_an_error_and_keeps_the_previous_file(path, write):
    """A limit on the size of files simulates a full disk."""
    resource = pytest.importorskip("resource", reason="limits of a process need a POSIX system")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        with pytest.raises(DataError, match=r"out\.csv cannot .*File too large.*free disk space"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["out.csv"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free disk space or choose another folder"),
        (errno.EDQUOT, "free disk space"),
        (errno.EACCES, "allow writing there, or choose another folder"),
        (errno.EROFS, "allow writing there"),
    ],
)
def test_errors_of_the_disk_contain_file_reason_and_remedy(path, monkeypatch, number, remedy):
    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(DataError, match=rf"out\.csv cannot .*\({os.strerror(number)}\); {remedy}"):
        write_text(path, "new")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_write_permission_raises_an_error(path):
    path.parent.chmod(0o500)
    try:
        with pytest.raises(DataError, match=r"out\.csv cannot be written \(Permission denied\)"):
            write_text(path, "new")
    finally:
        path.parent.chmod(0o700)


def test_missing_folder_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match="no_such"):
        write_text(tmp_path / "no_such" / "a.txt", "a")


@pytest.mark.parametrize(
    "error",
    [
        SourceNotFoundError("no file b"),
        ValueError("what"),
        PermissionError(errno.EACCES, "Permission denied", "/another/file"),
    ],
)
def test_errors_of_the_writer_are_not_converted(path, error):
    """Only errors of the file itself are converted, not those of the written rows."""

    def write():
        with atomic_path(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(type(error), match=re.escape(str(error))) as raised:
        write()

    assert raised.value is error
    assert names(path.parent) == ["out.csv"]


def test_concurrent_writers_have_separate_paths_in_the_folder_of_the_file(path):
    with atomic_path(path) as first, atomic_path(path) as second:
        assert first.parent == path.parent
        first.write_text("first")
        second.write_text("second")
        assert path.read_text() == "old"

    assert path.read_text() == "first"
    assert names(path.parent) == ["out.csv"]


KILLED = """
import os, signal, sys
from surface_consistency.runs.files import atomic_path
with atomic_path(sys.argv[1]) as part:
    part.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no signals to kill with")
def test_partial_file_of_a_killed_process_is_removed_by_the_next_write(path):
    """Partial files of running processes, and files with other names, are kept."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    (left,) = set(names(path.parent)) - {"out.csv"}
    dead = left.split("-")[-2]
    alive = path.with_name(left.replace(f"-{dead}-", f"-{os.getppid()}-"))
    others = [path.with_name(name) for name in (".out.csv.part", ".out.csv.2.part", ".x.part")]
    for file in (alive, *others):
        file.write_text("half")

    write_text(path, "new")

    assert names(path.parent) == sorted(["out.csv", alive.name, *(file.name for file in others)])


def test_text_json_and_csv_are_written_as_utf_8(path, tmp_path):
    write_text(tmp_path / "a.txt", "é\nb")
    write_json(tmp_path / "a.json", {"name": "ППК", "n": [1, None]})
    write_json(tmp_path / "b.json", [1, 2], indent=None)
    write_csv(tmp_path / "a.csv", FRAME)

    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\nb"
    assert "ППК" in (tmp_path / "a.json").read_text("utf-8")
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"name": "ППК", "n": [1, None]}
    assert (tmp_path / "b.json").read_text() == "[1, 2]\n"
    assert (tmp_path / "a.csv").read_bytes() == "name,n,rate\nPPK,1,0.5\nППК,2,\n".encode()
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        write_json(path, {1})
    assert path.read_text() == "old"


def test_parquet_keeps_a_frame_without_its_index(tmp_path):
    write_parquet(tmp_path / "a.parquet", FRAME.set_axis([7, 8]))

    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), FRAME)


def test_import_of_files_and_log_does_not_load_pandas():
    """Text and JSON are written without pandas and pyarrow."""
    code = (
        "import sys, surface_consistency.runs.files, surface_consistency.runs.log\n"
        "print({'pandas', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "'=1", "''-x", "--", "=", "- none"]
HARMLESS = ["-0.5", "+1e-3", "-3", "'tis", "", "a=b", "'", "-inf", "ÄÖ"]


@given(st.text())
@example("'=1")
@example("-inf")
def test_guarded_cell_is_read_back_unchanged(text):
    assert unguard_cell(guard_cell(text)) == text


@pytest.mark.parametrize("has_links", [True, False])
def test_sheet_written_by_another_process_in_the_meantime_is_not_replaced(
    tmp_path, monkeypatch, has_links
):
    path, link = tmp_path / "sheet.csv", os.link

    def late(source, target):
        path.write_text("labels", "utf-8")
        if not has_links:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(DataError, match="is not replaced"):
        write_sheet(path, FRAME)
    assert [(file.name, file.read_text("utf-8")) for file in tmp_path.iterdir()] == [
        ("sheet.csv", "labels")
    ]


def test_cells_that_a_spreadsheet_would_execute_are_escaped(tmp_path):
    frame = pd.DataFrame({"label": FORMULAS + HARMLESS, "=sum": -0.5, "n": [-1, *range(19)]})
    frame["maybe"] = pd.array([None, *range(-1, 18)], dtype="Int64")

    write_csv(tmp_path / "a.csv", frame)

    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["label", "'=sum", "n", "maybe"]
    for cell, given_text in zip((row[0] for row in rows), frame["label"], strict=True):
        assert cell == (f"'{given_text}" if given_text in FORMULAS else given_text)
    assert [row[1:3] for row in rows[:2]] == [["-0.5", "-1"], ["-0.5", "0"]]
    assert [row[3] for row in rows[:3]] == ["", "-1", "0"]
    again = read_tables(tmp_path)["a"]
    assert again["label"].fillna("").tolist() == frame["label"].tolist()
    assert list(again) == list(frame)


def test_staged_files_are_moved_together_in_order(tmp_path, monkeypatch):
    moved = []
    replace = Path.replace

    def note(part, target):
        moved.append(target.relative_to(tmp_path).as_posix())
        return replace(part, target)

    with staged(tmp_path, last="b", first="z/c") as beside:
        for name in ("a", "b", "z/c"):
            (beside / name).parent.mkdir(exist_ok=True)
            (beside / name).write_text(name)
        assert [path for path in tmp_path.iterdir() if path != beside] == []
        monkeypatch.setattr(Path, "replace", note)

    assert moved == ["z/c", "a", "b"]
    assert {path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == set(moved)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "z"]


def test_staged_files_of_a_killed_process_are_removed_by_the_next_run(tmp_path):
    """Files and folders of any name are removed; those of running processes are kept."""
    with staged(tmp_path, last="of-this-process") as alive:
        dead = re.sub(r"-\d+-\d+\.part$", f"-{2**22 + 1}-0.part", alive.name)
        (tmp_path / dead).mkdir()
        (tmp_path / dead / "x").write_text("x")
        (tmp_path / dead.replace("of-this-process", "a\nb.csv")).write_text("half")
        (tmp_path / ".mine.part").write_text("mine")

        output_folder(tmp_path)

        assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.part", alive.name]


def test_empty_output_folder_is_rejected(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValueError, match=r"^`out` is empty; give .* '\.' for the current one$"):
        output_folder("")
    assert output_folder(".") == Path()


def test_staged_files_are_not_written_through_a_link(tmp_path):
    """For example, a downloaded run folder whose `tables` links to a folder of the user."""
    elsewhere, run = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    (elsewhere / "a.csv").write_text("mine")
    run.mkdir()
    (run / "tables").symlink_to(elsewhere)

    raises = pytest.raises(DataError, match=r"run/tables is a symbolic link.*elsewhere.*remove th")
    with raises, staged(run, last="last.txt") as part:
        (part / "tables").mkdir()
        (part / "tables" / "a.csv").write_text("theirs")
        (part / "last.txt").write_text("")

    assert (elsewhere / "a.csv").read_text() == "mine"
    assert not (run / "last.txt").exists()


def test_subfolder_is_created_or_reused_but_not_through_a_link_or_file(tmp_path):
    assert subfolder(tmp_path, "a/b").is_dir()
    assert subfolder(tmp_path, "a/b") == tmp_path / "a" / "b"
    (tmp_path / "file").write_text("")
    with pytest.raises((DataError, FileExistsError), match="file"):
        subfolder(tmp_path, "file/b")
    (tmp_path / "a" / "c").symlink_to(tmp_path)
    with pytest.raises(DataError, match="a/c is a symbolic link"):
        subfolder(tmp_path, "a/c/d")


@pytest.mark.parametrize(
    ("label", "name"),
    [("..", "--"), (".", "-"), ("", "-"), ("org/model@main", "org-model@main"), ("a.b", "a.b")],
)
def test_label_as_a_file_name_stays_within_the_folder(label, name):
    assert as_file_name(label) == name
