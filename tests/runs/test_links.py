"""Symbolic links in a run folder are not followed if they lead out of the folder."""

import json
import os
import re

import pytest

from surface_consistency.cli.main import main
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import file_digest, within
from surface_consistency.runs.files import CLAIMED, claim_files
from surface_consistency.runs.folder import RunFolder
from tests.london import RUN, folder, scored  # noqa: F401 - fixtures

SECRET = "root:x:0:0:secret"
ERROR = "error: {} leads out of its folder by a symbolic link or '..', which is not followed; put"


@pytest.fixture
def outside(tmp_path):
    """A file that no run folder may show or change; its content is checked at the end."""
    file = tmp_path / "outside"
    file.write_text(SECRET)
    yield file
    assert file.read_text() == SECRET


def run(capsys, *words):
    """Run a command: its exit code and its errors; the output never contains the secret."""
    capsys.readouterr()
    code = main([*map(str, words)])
    printed = capsys.readouterr()
    assert "secret" not in printed.out + printed.err
    return code, printed.err


PLANNED = ("manifest.json", "plan.json", "targets.parquet", "pairs.parquet", "generations.jsonl")
SCORED = ("scoring.json", "outcomes.parquet", "verdicts.parquet", "checks/noise_floor.csv")
READ = [("report", name) for name in (*PLANNED, *SCORED)]
READ += [("score", f"generations{end}") for end in ("-repeat.jsonl", ".jsonl.lock")]
READ += [("score", name) for name in PLANNED]
READ += [("accuracy", name) for name in ("manifest.json", "verdicts.parquet", "targets.parquet")]
READ += [("run", name) for name in ("manifest.json", "generations.jsonl")]


@pytest.mark.parametrize(("command", "name"), READ)
def test_link_to_a_file_outside_the_folder_is_not_read(folder, outside, capsys, command, name):
    file = folder / name
    file.unlink(missing_ok=True)
    file.symlink_to(outside)
    words = [*RUN, "--out", folder] if command == "run" else [command, folder]

    code, errors = run(capsys, *words)

    assert code == 2
    assert errors.startswith(ERROR.format(file)) or errors.startswith(ERROR.format(file.resolve()))


def test_links_within_the_folder_and_links_to_it_are_followed(folder, capsys):
    (folder / "generations.jsonl").rename(folder / "elsewhere.jsonl")
    (folder / "generations.jsonl").symlink_to("elsewhere.jsonl")
    link = folder.parent / "link"
    link.symlink_to(folder)

    assert run(capsys, "score", link) == (0, "")
    assert run(capsys, "report", link) == (0, "")


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "loop", "up/outside"])
def test_names_in_files_that_lead_out_of_the_folder_are_rejected(tmp_path, outside, name):
    home = tmp_path / "home"
    home.mkdir()
    (home / "loop").symlink_to("loop/x")
    (home / "up").symlink_to("..")

    assert within(home, "a/../b") == home / "a/../b"
    with pytest.raises(DataError, match=re.escape("leads out of its folder")):
        within(home, name)


def test_scoring_does_not_delete_files_of_the_run_or_edited_files(folder, capsys):
    """`scoring.json` of a downloaded run may list any file as one of an earlier scoring."""
    (folder / "mine.txt").write_text("mine")
    (folder / "checks" / "sub").mkdir()
    path = folder / "scoring.json"
    scoring = json.loads(path.read_text())
    names = (
        "manifest.json",
        "generations.jsonl",
        "prompts.jsonl",
        "mine.txt",
        "checks/sub",
        "a\0b",
    )
    digests = {name: file_digest(folder / name) for name in names[:3]}
    scoring["files"] |= dict.fromkeys(names, "0" * 64) | digests
    path.write_text(json.dumps(scoring))

    code, errors = run(capsys, "score", folder, "--rule", "exact", "--setting", "resamples=5")

    assert (code, errors.count("Traceback")) == (0, 0)
    assert all((folder / name).exists() for name in names[:-1])


@pytest.mark.parametrize(
    ("content", "message"), [("[" * 200_000, "nested more than 64"), ('["a', "not JSON")]
)
def test_damaged_list_of_files_raises_an_error(tmp_path, content, message):
    (tmp_path / CLAIMED).write_text(content)

    with pytest.raises(RecordError, match=message):
        claim_files(tmp_path, ["new.txt"])


def test_list_of_files_behind_a_link_is_not_read(tmp_path, outside):
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / CLAIMED).symlink_to(outside)

    with pytest.raises(DataError, match="leads out of its folder"):
        claim_files(tmp_path / "X", ["new.txt"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_named_pipe_is_not_a_log(folder):
    before = RunFolder(folder).logs()
    os.mkfifo(folder / "generations-x.jsonl")

    assert RunFolder(folder).logs() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_named_pipe_in_place_of_a_file_is_rejected(tmp_path):
    os.mkfifo(tmp_path / "targets.parquet")

    with pytest.raises(DataError, match=r"targets\.parquet is not a regular file but a named pipe"):
        RunFolder(tmp_path).read_plan()


def test_name_with_a_null_byte_is_rejected(tmp_path):
    with pytest.raises(DataError, match="leads out of its folder"):
        within(tmp_path, "a\0b")
