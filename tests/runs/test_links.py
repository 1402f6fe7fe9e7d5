"""Symbolic links within a run folder: one that leads out of the folder is not followed."""

import re

import pytest

from surface_consistency.cli.main import main
from surface_consistency.errors import DataError
from surface_consistency.reading import within
from tests.london import RUN, folder, scored  # noqa: F401 - fixtures

SECRET = "root:x:0:0:secret"
REFUSED = "error: {} leads out of its folder by a symbolic link or '..', which is not followed; put"


@pytest.fixture
def outside(tmp_path):
    """A file that no run folder may show or change; it is looked at in the end."""
    file = tmp_path / "outside"
    file.write_text(SECRET)
    yield file
    assert file.read_text() == SECRET


def run(capsys, *words):
    """Run a command: its exit code and its errors; what it prints never has the secret."""
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
def test_a_file_that_is_a_link_to_elsewhere_is_not_read(folder, outside, capsys, command, name):
    file = folder / name
    file.unlink(missing_ok=True)
    file.symlink_to(outside)
    words = [*RUN, "--out", folder] if command == "run" else [command, folder]

    code, said = run(capsys, *words)

    assert code == 2
    assert said.startswith(REFUSED.format(file)) or said.startswith(REFUSED.format(file.resolve()))


def test_links_that_stay_within_the_folder_and_a_link_to_it_are_followed(folder, capsys):
    (folder / "generations.jsonl").rename(folder / "elsewhere.jsonl")
    (folder / "generations.jsonl").symlink_to("elsewhere.jsonl")
    link = folder.parent / "link"
    link.symlink_to(folder)

    assert run(capsys, "score", link) == (0, "")
    assert run(capsys, "report", link) == (0, "")


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "loop", "up/outside"])
def test_a_name_in_a_file_does_not_lead_out_of_a_folder(tmp_path, outside, name):
    home = tmp_path / "home"
    home.mkdir()
    (home / "loop").symlink_to("loop/x")
    (home / "up").symlink_to("..")

    assert within(home, "a/../b") == home / "a/../b"
    with pytest.raises(DataError, match=re.escape("leads out of its folder")):
        within(home, name)
