"""The command `build redirectqa`, as a user types it, on the miniature wiki."""

from dataclasses import replace
from pathlib import Path

import pytest

from surface_consistency.cli import main
from surface_consistency.commands import build_redirectqa
from surface_consistency.wikimedia.construction import BuildProgress

MINI = Path(__file__).parent / "wikimedia" / "mini"

pytest.importorskip("duckdb")


def build(*more):
    return main(["build", "redirectqa", "--dumps", str(MINI), "--no-checksums", *map(str, more)])


def test_a_folder_is_built_that_load_dataset_reads(tmp_path, capsys):
    datasets = pytest.importorskip("datasets")

    assert build("--out", tmp_path / "out") == 0

    said = capsys.readouterr()
    assert "default: 286 rows" in said.out
    assert "step " in said.err
    rows = datasets.load_dataset(
        str(tmp_path / "out"), split="test", cache_dir=str(tmp_path / "cache")
    )
    assert len(rows) == 286


def test_the_plan_lists_what_is_there_and_what_is_missing(tmp_path, capsys):
    assert build("--plan") == 0
    assert "all needed files are there" in capsys.readouterr().out

    assert main(["build", "redirectqa", "--dumps", str(tmp_path), "--plan"]) == 0
    said = capsys.readouterr().out
    assert "enwiki-YYYYMMDD-page.sql.gz" in said
    assert "https://dumps.wikimedia.org" in said
    assert "needed files are missing" in said


def test_a_dry_run_uploads_nothing(tmp_path, capsys):
    assert build("--out", tmp_path / "out", "--push-to-hub", "owner/name", "--quiet") == 0

    said = capsys.readouterr()
    assert "nothing was uploaded" in said.out
    assert "README.md" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "--out is needed"),
        (("--out", "x", "--no-dry-run"), "belongs to --push-to-hub"),
        (("--out", "x", "--push-to-hub", "name"), "repo_id must be owner/name"),
        (("--out", "x", "--wiki", "klingonwiki"), "klingonwiki"),
        (("--out", "x", "--triples", "0"), "triples must be at least 1"),
    ],
)
def test_mistakes_are_named(more, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert build(*more) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.parquet"))


def test_progress_in_a_log_tells_bytes_and_time_left(capsys, monkeypatch):
    """A line a stage, and one more a minute."""
    clock = iter([0.0, 10.0, 70.0, 80.0, 90.0])
    monkeypatch.setattr(build_redirectqa.time, "monotonic", lambda: 1_000.0 + next(clock))
    lines = build_redirectqa._Lines()
    whole = BuildProgress(
        stage="read page",
        path=Path("page.sql.gz"),
        read_bytes=0,
        total_bytes=4_000_000_000,
        steps_done=0,
        steps_total=11,
        seconds=0.0,
        new_bytes=0,
    )

    lines(whole)
    lines(replace(whole, read_bytes=10, new_bytes=10, seconds=10.0))
    lines(replace(whole, read_bytes=10**9, new_bytes=10**9, seconds=3_600.0))
    lines(replace(whole, stage="read redirect", read_bytes=39 * 10**8, new_bytes=10**8, seconds=30))
    lines(replace(whole, stage="01_views", path=None))

    assert capsys.readouterr().err.splitlines() == [
        "read page: 0 B of 4.0 GB",
        "read page: 1.0 GB of 4.0 GB, about 3 h 0 min of reading left",
        "read redirect: 3.9 GB of 4.0 GB, about 30 s of reading left",
        "step 1/11: 01_views",
    ]


def test_checksums_are_part_of_the_progress(tmp_path, capsys):
    arguments = ["build", "redirectqa", "--dumps", str(MINI), "--out", str(tmp_path / "out")]

    assert main(arguments) == 0

    assert "checksum enwiki-20260101-page.sql.gz: " in capsys.readouterr().err


def test_missing_dumps_are_named_with_their_place(tmp_path, capsys):
    status = main(["build", "redirectqa", "--dumps", str(tmp_path), "--out", str(tmp_path / "out")])

    assert status == 2
    assert "from https://dumps.wikimedia.org" in capsys.readouterr().err
