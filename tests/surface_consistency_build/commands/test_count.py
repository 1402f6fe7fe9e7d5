"""Test the command `count`."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    with path.open("w") as file:
        for question in load_redirectqa("sample").questions:
            text = f"{question.surface.text} - {question.triple.object.name}"
            file.write(json.dumps({"text": text}) + "\n")
    return path


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("entity_id,surface,role\nQ714,Stevie Wonder,canonical\nQ714,Wonder,alias\n")
    (tmp_path / "empty.csv").write_text("entity_id,surface\nQ1, \n")
    (tmp_path / "pairs.csv").write_text("subject_id,object\nQ1,Q2\n")
    return path


def count(what, corpus, out, *more):
    return main(["count", what, "--corpus", str(corpus), "--out", str(out), *map(str, more)])


def test_names_of_the_questions_are_counted(tmp_path, corpus, capsys):
    assert count("names", corpus, tmp_path / "out", "--data", "sample", "--json") == 0

    printed = json.loads(capsys.readouterr().out)
    n = len(load_redirectqa("sample").questions)
    assert (printed["documents"], printed["faults"]) == (n, {})
    rows = pd.read_parquet(tmp_path / "out" / "instances.parquet")
    names = pd.read_parquet(tmp_path / "out" / "surfaces.parquet")
    names = names.drop_duplicates(["entity_id", "surface"]).set_index("entity_id")
    assert set(rows["measure"]) == {"longest", "bounded"}
    for row in rows.itertuples():
        counts = names.loc[[row.subject_id]].set_index("surface")[f"n_{row.measure}"]
        n_surface = counts[row.surface_id.partition("|")[2]]
        assert (row.surface_frequency, row.entity_frequency) == (n_surface, counts.sum())
        assert row.others_frequency == counts.sum() - n_surface
    assert rows["pair_documents"].isna().all()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["command"].startswith("surface-consistency count names --corpus")


def test_pairs_of_the_facts_are_counted(tmp_path, corpus, capsys):
    assert count("pairs", corpus, tmp_path / "out", "--data", "sample") == 0

    assert f"tables: {tmp_path / 'out'}" in capsys.readouterr().out
    rows = pd.read_parquet(tmp_path / "out" / "pairs.parquet")
    assert (rows["n_documents_both"] > 0).all()
    assert pd.read_parquet(tmp_path / "out" / "instances.parquet")["pair_documents"].notna().all()


def test_shards_are_counted_separately_and_merged(tmp_path, corpus, names, capsys):
    more = ("--names", names, "--shards", 2)
    assert count("names", corpus, tmp_path / "out", *more, "--shard", 0) == 0
    assert "shard 0 counted; 1 of 2 are left" in capsys.readouterr().out
    assert main(["count", "merge", str(tmp_path / "out")]) == 2
    assert "1 of 2 shards are not done yet (1)" in capsys.readouterr().err
    assert count("names", corpus, tmp_path / "out", *more, "--shard", 1) == 0
    assert "all parts are done: surface-consistency count merge" in capsys.readouterr().out
    assert count("names", corpus, tmp_path / "out", *more, "--shard", 1) == 0
    assert "shard 1 was counted before" in capsys.readouterr().out
    assert main(["count", "merge", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_names"] == 2


def test_ngrams_of_instances_are_counted(tmp_path, corpus):
    data = tmp_path / "instances.jsonl"
    data.write_text('{"key": "a", "question": "Stevie Wonder -"}\n')
    more = ("--data", data, "--n", 2, "--instance-id", "key", "--instance-text", "question")

    assert count("ngrams", corpus, tmp_path / "out", *more) == 0

    frame = pd.read_parquet(tmp_path / "out" / "ngrams.parquet")
    assert frame["n_ngrams"].tolist() == [2]
    assert (frame["counts"][0] > 0).all()


def test_faults_of_the_corpus_are_reported(tmp_path, names, capsys):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"text": "Wonder"}\n{"text": null}\n{"text": \n')

    assert count("names", corpus, tmp_path / "out", "--names", names) == 0

    printed = capsys.readouterr().err
    assert "warning: 1 documents: null text (excluded), first at" in printed
    assert "warning: 1 documents: broken line (excluded), first at" in printed


NAMED = ("--names", "names.csv")
NO_ID = "a pair needs subject_id and object_id; it has subject_id, object"
ABOVE_1 = "--sample: input should be less than or equal to 1, got 2.0"
NO_BODY = "with the field 'body'; the first has text. Name the field of the text (--text-field)"


@pytest.mark.parametrize(
    ("what", "more", "message"),
    [
        ("names", (), "give either --data or --names"),
        ("names", ("--names", "none.csv"), "file none.csv not found"),
        ("names", ("--names", "empty.csv"), "empty.csv: row 1: the surface of 'Q1' is empty"),
        ("pairs", (*NAMED, "--pairs", "pairs.csv"), NO_ID),
        ("pairs", NAMED, "--names needs --pairs"),
        ("names", (*NAMED, "--shards", 1, "--shard", 4), "--shard must be one of 0"),
        ("names", (*NAMED, "--sample", 2), ABOVE_1),
        ("names", (*NAMED, "--boundary", "segmented"), "needs a segmenter"),
        ("names", (*NAMED, "--text-field", "body"), NO_BODY),
        ("ngrams", ("--data", "names.csv"), "an instance needs 'id' and the text 'text'"),
    ],
)
@pytest.mark.usefixtures("names")
def test_errors_name_the_flag(tmp_path, corpus, capsys, monkeypatch, what, more, message):
    monkeypatch.chdir(tmp_path)

    assert count(what, corpus, tmp_path / "out", *more) == 2

    assert message in capsys.readouterr().err


def test_a_plan_without_counts_can_be_deleted(tmp_path, corpus, names, capsys):
    """After an invalid option, the error of the corrected command contains the remedy."""
    more = ("--names", names, "--shards", 2)
    assert count("names", corpus, tmp_path / "out", *more, "--text-field", "body") == 2
    capsys.readouterr()

    assert count("names", corpus, tmp_path / "out", *more) == 2
    assert "or delete the folder: no shard is done in it yet" in capsys.readouterr().err


def test_import_of_counting_does_not_load_slow_libraries():
    code = (
        "import sys, surface_consistency_build.counting as f; f.SurfaceCounter; f.read_documents; "
        "print([m for m in ('numba', 'pandas', 'datatrove') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("command", "rows", "flag"),
    [
        ("pairs", [{"subject_id": "a", "object_id": "\ud800"}], "--pairs"),
        ("ngrams", [{"id": "\ud800", "text": "Ada"}], "--data"),
        ("ngrams", [{"id": "1", "text": "Ada \udc00"}], "--data"),
        ("linked", [{"entity_id": "a", "title": "\ud800"}], "--titles"),
    ],
)
def test_errors_for_a_lone_surrogate_contain_the_line(tmp_path, capsys, command, rows, flag):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "names.csv").write_text("entity_id,surface\na,Ada\nb,Bob\n")
    (tmp_path / "corpus.jsonl").write_text('{"text": "Ada"}\n')
    given = {flag: "rows.jsonl", "--out": "out", "--corpus": "corpus.jsonl"}
    given |= {} if command == "ngrams" else {"--names": "names.csv"}
    words = [word for name, file in given.items() for word in (name, str(tmp_path / file))]

    assert main(["count", command, *words]) == 2

    assert re.search(r"rows\.jsonl:1: .* contains a lone surrogate;", capsys.readouterr().err)
