"""The command `build redirectqa`, as a user types it, on the miniature wiki."""

from pathlib import Path

import pytest

from surface_consistency.cli import main

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
        (("--out", "x", "--wiki", "klingonwiki"), "klingonwiki"),
        (("--out", "x", "--triples", "0"), "triples must be at least 1"),
    ],
)
def test_mistakes_are_named(more, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert build(*more) == 2
    assert message in capsys.readouterr().err


def test_missing_dumps_are_named_with_their_place(tmp_path, capsys):
    status = main(
        ["build", "redirectqa", "--dumps", str(tmp_path), "--out", str(tmp_path / "out")]
    )

    assert status == 2
    assert "from https://dumps.wikimedia.org" in capsys.readouterr().err
