"""Test the command `build` on the miniature wiki."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import datasets
import huggingface_hub
import pytest
from surface_consistency_build.commands import build as build_command
from surface_consistency_build.wikimedia.construction.progress import BuildProgress

from surface_consistency.cli.main import main
from surface_consistency.data.sources import SAMPLES
from surface_consistency.studies.audit.conditions import find_conditions

MINI = Path(__file__).parents[1] / "wikimedia" / "mini"

pytest.importorskip("duckdb")


def build(*more, dumps=MINI):
    return main(["build", "redirectqa", "--source", str(dumps), *map(str, more)])


def test_a_folder_is_built_and_other_settings_are_rejected(tmp_path, capsys):
    """The rows that `load_dataset` reads are tested with the builder."""
    out = tmp_path / "out"
    assert build("--out", out) == 0

    output = capsys.readouterr()
    assert "v1.0.0/test-00000-of-00001.parquet: 286 rows" in output.out
    assert "step " in output.err
    assert "checksum enwiki-20260101-page.sql.gz: " in output.err
    card = (out / "README.md").read_text("utf-8")
    assert "| months | 202511, 202512 |" in card
    assert "| `allow_truncated` | no |" in card
    record = json.loads((out / "metadata/v1.0.0/build.json").read_text("utf-8"))
    assert record["options"]["configuration"]["project"] == "en.wikipedia"

    assert build("--out", out, "--triples", "20") == 2
    output = capsys.readouterr().err
    assert "triples: 500000 there, 20 now" in output
    assert "--overwrite" in output
    assert "read page" not in output
    assert build("--out", out) == 0
    assert "reused, an earlier start read it" in capsys.readouterr().err
    assert build("--out", out, "--triples", "20", "--overwrite", "--quiet") == 0
    assert (out / "README.md").read_text("utf-8") != card


def test_plan_lists_existing_and_missing_files(tmp_path, capsys):
    assert build("--plan") == 0
    assert "all needed files exist" in capsys.readouterr().out

    assert build("--plan", dumps=tmp_path) == 0
    output = capsys.readouterr().out
    assert "enwiki-YYYYMMDD-page.sql.gz" in output
    assert "https://dumps.wikimedia.org" in output
    assert "needed files are missing" in output
    assert build("--out", tmp_path / "o", dumps=tmp_path) == 2
    output = capsys.readouterr().err
    assert "lacks 17 dump files" in output
    assert "and 13 more, which --plan lists" in output
    assert len(output) < 700


def test_dry_run_lists_the_files_that_a_push_uploads(tmp_path, capsys, monkeypatch):
    hub = Mock()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_token")
    words = ("--out", tmp_path / "out", "--push-to", "owner/name", "--quiet", "--no-checksums")

    assert build(*words, "--dry-run") == 0

    output = capsys.readouterr()
    assert "a push would upload 5 files, " in output.out
    assert "README.md" in output.out
    assert output.err == ""
    assert hub.mock_calls == []
    assert build(*words) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("uploaded 5 files, ")
    assert len(hub.upload_folder.call_args.kwargs["allow_patterns"]) == 5


def test_data_sets_of_rows_are_built_with_the_same_options(tmp_path, capsys):
    """For each data set that does not need dumps."""
    for name, source in (("redirectqa", SAMPLES / "redirectqa"), ("slaq", SAMPLES / "slaq")):
        out = str(tmp_path / name)
        assert main(["build", name, "--source", str(source), "--out", out]) == 0
        assert f"folder: {out}" in capsys.readouterr().out
    words = ["build", "slaq", "--source", str(SAMPLES / "slaq"), "--out", "x"]
    assert main([*words, "--config", "populer"]) == 2
    assert "did you mean 'popular'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "--out is required"),
        ("--out x --push-to name", "repo_id must be owner/name"),
        ("--out x --push-to owner/name", "without a token of the hub"),
        ("--out x --triples 3 --config v2", "has no configuration 'v2'"),
        ("--out x --wiki klingonwiki", "klingonwiki"),
        ("--out x --triples 0", "--triples: input should be greater than or equal to 1"),
        ("--out file", "cannot be a folder"),
        ("--out=", "--out is empty"),
        ("--out mine", "contains files of other origin (README.md)"),
        ("--out x --work file", "work"),
        ("--out x --memory-limit lots", "--memory-limit must be"),
    ],
)
def test_invalid_options_raise_before_files_are_read(more, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    for path in (tmp_path / "file", tmp_path / "mine" / "README.md"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine", encoding="utf-8")

    assert build(*more.split()) == 2

    output = capsys.readouterr().err
    assert message in output
    assert "read page" not in output
    assert (tmp_path / "mine" / "README.md").read_text("utf-8") == "mine"
    assert not list(tmp_path.rglob("*.parquet"))


def test_progress_in_a_log_contains_bytes_and_remaining_time(capsys, monkeypatch):
    """One line per stage, and one per minute."""
    clock = iter([0.0, 10.0, 70.0, 80.0, 90.0])
    monkeypatch.setattr(build_command.time, "monotonic", lambda: 1_000.0 + next(clock))
    lines = build_command._Lines()
    none = dict.fromkeys(("read_bytes", "steps_done", "seconds", "new_bytes"), 0)
    start = BuildProgress(
        stage="read page", path=Path("page.sql.gz"), total_bytes=4 * 10**9, steps_total=11, **none
    )

    lines(start)
    lines(replace(start, read_bytes=10, new_bytes=10, seconds=10.0))
    lines(replace(start, read_bytes=10**9, new_bytes=10**9, seconds=3_600.0))
    lines(replace(start, stage="read redirect", read_bytes=39 * 10**8, new_bytes=10**8, seconds=30))
    lines(replace(start, stage="01_views", path=None))

    assert capsys.readouterr().err.splitlines() == [
        "read page: 0 B of 4.0 GB",
        "read page: 1.0 GB of 4.0 GB, about 3 h 0 min left for reading",
        "read redirect: 3.9 GB of 4.0 GB, about 30 s left for reading",
        "step 1/11: 01_views",
    ]


def test_a_note_reports_that_a_missing_table_determines_the_route(tmp_path, capsys):
    for path in MINI.glob("*.*z*"):
        if "categorylinks" not in path.name:
            (tmp_path / path.name).symlink_to(path)

    assert build("--plan", dumps=tmp_path) == 0

    output = capsys.readouterr().out
    assert "note: route xml, because pages-articles exists and the category tables do not" in output
    assert "note: page views of 2 files are summed" in output


@pytest.mark.filterwarnings("always::surface_consistency.errors.DataWarning")
def test_a_truncated_dump_is_planned_and_listed_in_the_card(tmp_path, capsys):
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for path in MINI.glob("*.*z*"):
        (dumps / path.name).write_bytes(path.read_bytes())
    cut = next(dumps.glob("*categorylinks*"))
    cut.write_bytes(cut.read_bytes()[:-60])
    more = ("--out", tmp_path / "out", "--quiet")

    assert build(*more, dumps=dumps) == 2
    assert "or keep the data before it with --allow-truncated." in capsys.readouterr().err
    for _ in range(2):
        assert build(*more, "--allow-truncated", dumps=dumps) == 0
        assert f"{cut.name}: " in capsys.readouterr().err

    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert f"`{cut.name}` is cut off or damaged near byte" in card


@pytest.mark.filterwarnings("always:.*identical to base:surface_consistency.errors.DataWarning")
def test_build_audit_accepts_a_custom_table(tmp_path, capsys):
    table = tmp_path / "moons"
    table.mkdir()
    (table / "facts.tsv").write_text("subject\trelation\tobject\nIo\tPlanet\tJupiter\n")
    words = ["build", "audit", "--domains", str(table)]

    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    output = capsys.readouterr().err
    assert "topology alias is identical to base" in output
    assert "error:" in output
    out = tmp_path / "base"
    assert main([*words, "--topologies", "base", "--out", str(out)]) == 0
    assert {one.label.database for one in find_conditions(out)} == {"moons/base"}
    assert len(datasets.load_dataset(str(out), "triplets", split="test")) == 1
    assert "moons/base.json: 1 triplets, 1 facts in 6 prompt styles" in capsys.readouterr().out
    assert main(["build", "topics", "--articles", str(out / "none"), "--out", "x"]) == 2
    assert "no articles at" in capsys.readouterr().err


def test_full_disk_is_reported_for_folders_and_files(tmp_path, monkeypatch, capsys):
    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))

    monkeypatch.setattr(os, "mkdir", full)

    assert main(["build", "audit", "--out", str(tmp_path / "built")]) == 2

    output = capsys.readouterr().err
    assert output.startswith(f"error: {tmp_path / 'built'}")
    assert "cannot be written (No space left on device); free disk space" in output


def test_completion_contains_the_options_of_build_and_count(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.delenv("ZSH_VERSION", raising=False)
    monkeypatch.setenv("BASH_VERSION", "5.2")

    assert main(["--install-completion"]) == 0

    output = capsys.readouterr().out
    script = Path(output.removeprefix("wrote ").partition(";")[0]).read_text(encoding="utf-8")
    assert "redirectqa" in script
    assert "--push-to" in script
