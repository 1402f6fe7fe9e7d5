"""The command `audit`."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import surface_consistency
from surface_consistency.cli.main import main
from tests.cli.runners import write_runner
from tests.needs import NEEDS_TORCH

SAMPLE = Path(surface_consistency.__file__).parent / "studies" / "audit" / "sample"

READER = """
def generate(self, prompts, params):
    for prompt in prompts:
        lines = prompt.text.splitlines()
        answer = lines[1].split(" | ")[-1] if lines[0] == "Facts:" else "unknown"
        yield Generation(prompt_id=prompt.id, text=answer)
"""
READS = ["--runner", "READER"]
PUBLISHED = ["--runner", "x:Y", "--as-published"]
CLOZE = ["--topologies", "base", "--styles", "cloze", "--limit", "10", "--retriever", "fuzzy"]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A runner in a user-defined module, which answers the first fact before its prompt."""
    return write_runner(tmp_path, monkeypatch, "cli_reader", "Reader", READER)


@pytest.fixture
def databases(tmp_path):
    """Countries in two topologies and two styles."""
    folder = tmp_path / "databases" / "countries"
    for topology in ("base", "noise"):
        prompts = f"prompts/{topology}/prompts"
        (folder / prompts).parent.mkdir(parents=True)
        names = (f"{prompts}_cloze.jsonl", f"{prompts}_direct_questions.jsonl")
        for name in (f"{topology}.json", *names):
            shutil.copy(SAMPLE / "countries" / name, folder / name)
    return folder.parent


def audit(databases, out, *more):
    command = ["run", "audit", "--databases", str(databases), "--out", str(out)]
    return main([*command, "--setting", "resamples=200", *more])


def test_audit_writes_its_files_and_prints_its_table(databases, reader, tmp_path, capsys):
    out = tmp_path / "run"

    assert audit(databases, out, "--runner", reader, "--retriever", "fuzzy") == 0

    assert "Leakage (L, %)" in capsys.readouterr().out
    for name in ("outcomes.parquet", "per_state_metrics.csv", "cross_state_metrics.csv"):
        assert (out / name).is_file()
    tables = {"overall", "by_topology", "attribution_by_topology", "states_by_style"}
    checks = {"fit", "databases", "closure", "contamination", "lookups"}
    for folder, names in (("tables", tables), ("checks", checks)):
        assert all(len(pd.read_csv(out / folder / f"{name}.csv")) for name in names)
    assert "same_object" in (out / "tables" / "attribution_by_topology.csv").read_text()
    overall = pd.read_csv(out / "tables" / "overall.csv").iloc[0]
    assert overall["full_accuracy"] > 0.95
    assert overall["leakage"] == 0


def test_audit_reads_parquet_with_filters_and_prints_json(databases, reader, tmp_path, capsys):
    file = databases / "countries" / "base.json"
    triplets = json.loads(file.read_text(encoding="utf-8"))["triplets"]
    frame = pd.DataFrame(triplets, columns=["head", "relation", "tail"])
    frame.to_parquet(file.with_suffix(".parquet"))
    file.unlink()
    words = ["--runner", reader, *CLOZE, "--states", "FULL", "DEL-ON", "--label", "mine", "--json"]

    assert audit(databases, tmp_path / "run", *words) == 0

    output = capsys.readouterr()
    assert "indexing the triplets of" in output.err
    (row,) = json.loads(output.out)["tables"]["overall"]
    assert "DEL-OFF was not run: L, R, I and A need DEL-ON and DEL-OFF" in output.out
    assert (row["n_full"], row["n_del_on"], row["n_del_off"], row["model"]) == (10, 10, 0, "mine")
    assert row["full_accuracy"] == 1
    states = pd.read_parquet(tmp_path / "run" / "targets.parquet")["state"]
    assert set(states) == {"FULL", "DEL-ON"}


def test_several_thresholds_write_a_table_of_the_sweep(databases, reader, tmp_path, capsys):
    out = tmp_path / "sweep"
    chosen = ["--topologies", "noise", "--styles", "cloze", "--limit", "20"]
    thresholds = ["--retriever", "fuzzy", "--threshold", "0.5", "none"]

    assert audit(databases, out, "--runner", reader, *chosen, *thresholds) == 0

    table = pd.read_csv(out / "tables" / "sweep.csv")
    assert len(table) == 2 * 2
    assert (out / "fuzzy-0.5" / "outcomes.parquet").is_file()
    assert (out / "fuzzy-none" / "manifest.json").is_file()
    assert "sweep" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--runner lookup needs --model"),
        (["--threshold", "abc"], "input should be a valid number"),
        (["--model", "toy_model", "--runner", "READER"], "--model toy_model trains its own model"),
        (
            ["--model", "m", "--leaked", "3"],
            "--leaked is an option of the toy model; it requires --m",
        ),
        ([*READS, "--retriever", "nothing"], "retriever must be one of"),
        ([*READS, "--styles", "haiku"], "no style haiku"),
        ([*READS, "--setting", "radius=0.1"], "does not have an encoder"),
        ([*READS, "--setting", "resamples=0"], "--setting resamples: input should be greater than"),
        ([*READS, "--setting", "max_missing=2"], "--setting max_missing: input should be less"),
        pytest.param(["--model", "no/such/folder"], "no/such/folder", marks=NEEDS_TORCH),
        pytest.param(
            ["--model", "toy_model", "--leaked", "5000"], "--leaked must be 0 to", marks=NEEDS_TORCH
        ),
        ([*PUBLISHED, "--threshold", "0.4"], "sets --threshold 0.6, but 0.4 was given; omit"),
        ([*PUBLISHED, "--setting", "k=9"], "--as-published sets --setting k=5, but 9 was given"),
        ([*PUBLISHED, "--setting", "cleaner=audit"], "cleaner=published, but audit was given"),
        ([*PUBLISHED, "--judge-model", "m"], "--as-published sets --judge rule, but llm was given"),
    ],
)
def test_user_error_prints_one_line_and_exits_with_code_2(
    databases, reader, tmp_path, capsys, arguments, message
):
    given = [reader if argument == "READER" else argument for argument in arguments]
    if not {"--retriever", "--as-published"} & {*given}:
        given += ["--retriever", "fuzzy"]

    assert audit(databases, tmp_path / "run", *given) == 2

    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert "--as-published" not in given or not (tmp_path / "run").exists()
    assert not (tmp_path / "run" / "toy_model").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:.*the store may not have served this database:surface_consistency.errors.DataWarning"
)
def test_toy_model_separates_leakage_retrieval_and_forgetting(tmp_path):
    """Leaked facts survive without the store, others only by another entry."""
    pytest.importorskip("torch")
    out = tmp_path / "run"

    chosen = ["--styles", "direct_questions", "--retriever", "fuzzy", "--setting", "steps=500"]

    assert audit("sample", out, "--model", "toy_model", "--leaked", "4", *chosen) == 0

    frame = pd.read_parquet(out / "outcomes.parquet")
    database = json.loads((SAMPLE / "countries" / "noise.json").read_text("utf-8"))
    entries = pd.Series([triplet[2] for triplet in database["triplets"]]).value_counts()
    full, on, off = (frame[f"{s}_correct"].astype(bool) for s in ("full", "first", "second"))
    is_leaked = frame["item"].isin([f"countries/noise/{fact}" for fact in range(4)])
    has_other_entry = frame["gold_object"].map(entries) > 1
    assert len(frame) == 180
    assert is_leaked.sum() == 4
    assert full.mean() > 0.9
    # Leakage: only facts in the weights survive without the store.
    assert off[is_leaked].mean() > 0.9
    assert off[~is_leaked].mean() < 0.01
    # Retrieval: facts only in the store survive by another entry with the same object.
    by_retrieval = on & ~off & ~is_leaked
    assert on[~is_leaked & ~has_other_entry].mean() < 0.02
    assert by_retrieval[has_other_entry].mean() > 0.05
    assert (frame.loc[by_retrieval, "attribution"] == "same_object").mean() > 0.9
    # Forgetting: the other facts do not survive without their entry.
    assert (full & ~on & ~off)[~is_leaked].mean() > 0.2
