"""Test linked mentions of a simulated server of DBpedia Spotlight, and of rows of a linker."""

import json
import re
from random import Random

import duckdb
import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.counting import CorpusSettings, CountRun, SurfaceTable
from surface_consistency_build.counting.counter import Counts
from surface_consistency_build.counting.tables import MentionCounts, instance_table
from surface_consistency_build.counting.tasks import NameSettings
from surface_consistency_build.linking.dbpedia import dbpedia_uris
from surface_consistency_build.linking.link_counts import LinkSettings, LinkTask, count_link_rows

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.errors import DataError, RunError, RunnerError
from surface_consistency.studies.redirectqa.instances import entity_id, instance_rows

RESOURCE = "http://dbpedia.org/resource/"

NAMED = "Q308,Mercury,canonical Q308,Mercury_(planet),alias Q925,Mercury,redirect"
NAMED += " Q925,Liquid_silver,canonical Q1,Hermes,canonical"
NAMES = SurfaceTable.from_records([one.replace("_", " ").split(",") for one in NAMED.split()])
ENTITIES = {"Mercury (planet)": "Q308", "Mercury (element)": "Q925", "Hermes": "Q1"}


def resources(text, **names):
    """The answer of a linker's server: all occurrences of some names."""
    found = []
    for name, uri in names.items():
        for match in re.finditer(name, text):
            offset = str(len(text[: match.start()].encode("utf-16-le")) // 2)
            span = {"@URI": RESOURCE + uri, "@surfaceForm": name, "@offset": offset}
            found.append(span | {"@similarityScore": "1.0"})
    return {"Resources": found}


@pytest.mark.enable_socket
@pytest.mark.parametrize("whole", [False, True])
def test_spotlight_reads_windows_around_counted_names(tmp_path, replay, whole):
    def answer(path, body):
        return 200, resources(body["text"], Mercury="Mercury_(planet)", Hermes="Hermes")

    server = replay(answer)
    far = "word " * 100
    texts = [f"Mercury {far}Mercury {far}", f"😀 Zoë {far}", f"{far}Hermes Mercury"]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    names = SurfaceTable.from_records([("Q308", "Mercury", "canonical"), ("Q1", "Godly", "alias")])
    given = {"window": 40, "whole_documents": whole, "cache": tmp_path / "cache.sqlite"}
    entities = {"Mercury (planet)": "Q308", "Hermes": "Q1"}
    task = LinkTask(names, link=LinkSettings(url=server.url, **given), entities=entities)

    run = CountRun.plan(tmp_path / "out", task, CorpusSettings(corpus=(str(path),), shards=1))
    run.run(0)
    summary = run.merge().counted

    entities = pd.read_parquet(tmp_path / "out" / "entities.parquet").set_index("entity_id")
    assert entities["entity_linked"].to_dict() == {"Q308": 3, "Q1": 1}
    sent = [body["text"] for _, body in server.requests]
    assert len(sent) == 3
    assert (max(map(len, sent)) > 500) is whole
    assert summary["n_documents_not_linked"] == 0
    refusing = replay(lambda path, body: (413, b"too large"))
    task = LinkTask(NAMES, link=LinkSettings(url=refusing.url), entities=ENTITIES)
    run = CountRun.plan(tmp_path / "no", task, CorpusSettings(corpus=(str(path),), shards=1))
    run.run(0)
    assert run.merge().counted["n_documents_not_linked"] == 2


PLANET, ELEMENT = f"{RESOURCE}Mercury_(planet)", f"{RESOURCE}Mercury_(element)"
ROWS = [
    # document, uri, surface
    *[("d1", PLANET, "Mercury")] * 2,
    *(("d1", PLANET, "the planet"), ("d2", ELEMENT, "Mercury"), ("d3", None, "Hermes")),
    ("d2", f"{RESOURCE}Mercury_%28planet%29", "Mercury (planet)"),
    *(("d3", ELEMENT, "Liquid  silver"), ("d3", ELEMENT, "Liquid silver")),
    ("d3", f"{RESOURCE}Paris", "Paris"),
]


def rows_file(folder, suffix, rows=ROWS, columns=("document", "uri", "surface")):
    """Write rows of a linker in one of the formats."""
    path = folder / f"links{suffix}"
    frame = pd.DataFrame(rows, columns=columns)
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix.startswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".jsonl.gz", ".csv", ".tsv"])
def test_rows_of_a_linker_are_counted_as_in_the_paper(tmp_path, suffix):
    """Entities count with any name; names if the span is exactly the name."""
    found = count_link_rows(rows_file(tmp_path, suffix), NAMES, ENTITIES)

    assert found.entity_linked.tolist() == [4, 3, 0]
    assert found.entity_linked_documents.tolist() == [2, 2, 0]
    assert found.linked_mentions.tolist() == [2, 1, 1, 2, 0]
    assert found.linked_documents.tolist() == [1, 1, 1, 1, 0]


def test_rows_agree_with_a_plain_count(tmp_path):
    rng = Random(0)
    titles, surfaces = list(ENTITIES), [*NAMES.keys, "x"]
    rows = [
        (rng.randrange(9), rng.choice(titles).replace(" ", "_"), rng.choice(surfaces))
        for _ in range(400)
    ]

    found = count_link_rows(rows_file(tmp_path, ".parquet", rows), NAMES, ENTITIES)

    named = [(d, ENTITIES[title.replace("_", " ")], surface) for d, title, surface in rows]
    for number, entity in enumerate(NAMES.entities):
        ours = [row for row in named if row[1] == entity]
        assert found.entity_linked[number] == len(ours)
        assert found.entity_linked_documents[number] == len({row[0] for row in ours})
    table = NAMES.to_arrow().to_pylist()
    for number, row in enumerate(table):
        ours = [r for r in named if r[1:] == (row["entity_id"], row["surface"])]
        assert found.linked_mentions[number] == len(ours)
        assert found.linked_documents[number] == len({r[0] for r in ours})


def test_rows_of_several_files_and_of_entity_ids_without_documents(tmp_path):
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        rows_file(tmp_path / str(number), ".parquet")
    several = count_link_rows(f"{tmp_path}/*/links.parquet", NAMES, ENTITIES)
    assert several.entity_linked.tolist() == [8, 6, 0]
    rows = [("Q308", "Mercury"), ("Q1", "Hermes"), ("Q7", "Mercury")]
    path = rows_file(tmp_path, ".csv", rows, ("entity_id", "surface"))

    found = count_link_rows(path, NAMES, {})

    assert found.entity_linked.tolist() == [1, 0, 1]
    assert found.linked_mentions.tolist() == [1, 0, 0, 0, 1]
    assert found.entity_linked_documents is None
    assert found.linked_documents is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("links.csv", "uri,text\na,b\n", "column surface not found; .* Columns: text, uri"),
        ("links.csv", "surface\na\n", "column uri not found"),
        ("links.xlsx", "", "can be read from .parquet, .csv"),
        ("links.parquet", "x", "cannot be read as rows of a linker"),
    ],
)
def test_invalid_rows_of_a_linker_are_rejected(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)

    with pytest.raises(DataError, match=message):
        count_link_rows(tmp_path / name, NAMES, ENTITIES)
    with pytest.raises(DataError, match="cannot be read as rows of a linker"):
        count_link_rows(tmp_path / "none.parquet", NAMES, ENTITIES)


def bindings(*pairs):
    """Write a SPARQL result."""
    rows = []
    for uri, item in pairs:
        values = {"uri": RESOURCE + uri, "item": f"http://www.wikidata.org/entity/{item}"}
        rows.append({name: {"type": "uri", "value": value} for name, value in values.items()})
    return {"head": {"vars": ["uri", "item"]}, "results": {"bindings": rows}}


@pytest.mark.enable_socket
def test_dbpedia_uris_are_resolved_to_items(replay, tmp_path):
    known = {"Q90": ["Paris", "Paris,_France"], "Q64": ["Berlin"]}

    def answer(path, body):
        assert body["format"] == "application/sparql-results+json"
        requested = [item for item in known if f"entity/{item}>" in body["query"]]
        return 200, bindings(*((uri, item) for item in requested for uri in known[item]))

    server = replay(answer)
    items = ["Q90", "Q64", *(f"Q{k}" for k in range(1000, 1030)), "Q90"]
    cache = tmp_path / "cache.sqlite"

    for _ in range(2):
        found = dbpedia_uris(items, endpoint=server.url, cache=cache)

    expected = {"Paris": "Q90", "Paris,_France": "Q90", "Berlin": "Q64"}
    assert found == {RESOURCE + name: item for name, item in expected.items()}
    # 32 items in two queries, and the second time from the cache.
    assert len(server.requests) == 2
    assert "owl:sameAs ?item" in server.requests[0][1]["query"]


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ((400, b"syntax"), DataError, "cannot resolve DBpedia URIs: .*syntax"),
        ((200, bindings(*((f"E{k}", "Q1") for k in range(10_000)))), DataError, "10,000 rows"),
        ((200, {"results": {}}), RunnerError, "a damaged answer: not a SPARQL result"),
        ((200, {"results": {"bindings": [{"uri": 1}]}}), RunnerError, "not a SPARQL result"),
    ],
)
def test_invalid_results_of_sparql_queries_are_rejected(replay, answer, error, message):
    server = replay(lambda path, body: answer)

    with pytest.raises(error, match=message):
        dbpedia_uris(["Q1"], endpoint=server.url, first_wait=0.001, max_retries=1)
    with pytest.raises(ValueError, match="items must be Wikidata ids such as Q90, got 'Paris'"):
        dbpedia_uris(["Paris"], endpoint=server.url)


def test_other_settings_or_entities_are_rejected_in_the_same_folder(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "Mercury"}\n')
    where = CorpusSettings(corpus=(str(path),), shards=1)
    link = LinkSettings(url="http://one")
    CountRun.plan(tmp_path / "out", LinkTask(NAMES, link=link, entities=ENTITIES), where)

    moved = link.model_copy(update={"url": "http://two"})
    CountRun.plan(tmp_path / "out", LinkTask(NAMES, link=moved, entities=ENTITIES), where)
    other = link.model_copy(update={"support": 5})
    for task, error, message, folder in (
        (LinkTask(NAMES, entities=ENTITIES), ValueError, "`url` is required", "other"),
        (LinkTask(NAMES, NameSettings(case="fold"), link=link), ValueError, "`case` must", "other"),
        (LinkTask(NAMES, link=link, entities={}), RunError, "Hermes was 'Q1', now absent", "out"),
        (LinkTask(NAMES, link=other, entities=ENTITIES), RunError, "was 20, now 5", "out"),
    ):
        with pytest.raises(error, match=message):
            CountRun.plan(tmp_path / folder, task, where)


@pytest.mark.enable_socket
def test_commands_count_mentions_of_a_server_or_of_rows(tmp_path, replay, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def answer(path, body):
        if "query" in body:
            return 200, bindings(("Mercury_(planet)", "Q308"))
        return 200, resources(body["text"], Mercury="Mercury_(planet)")

    server = replay(answer)
    names = tmp_path / "names.csv"
    names.write_text("entity_id,surface,role\nQ308,Planet Mercury,canonical\nQ308,Mercury,alias\n")
    (tmp_path / "corpus.jsonl").write_text('{"text": "Mercury, Mercury"}\n')
    words = ["count", "linked", "--names", str(names), "--sparql", f"{server.url}/sparql", "--json"]
    spotlight = ["--corpus", "corpus.jsonl", "--url", server.url, "--workers", "1", "--shards", "1"]

    assert main([*words, *spotlight, "--out", "out"]) == 0

    assert json.loads(capsys.readouterr().out)["n_linked"] == 2
    rows_file(tmp_path, ".jsonl")
    assert main([*words, "--from", "links.jsonl", "--out", "rows"]) == 0
    summary = json.loads(capsys.readouterr().out)
    # "Mercury_%28planet%29" is the same URI.
    assert (summary["n_entities"], summary["n_entities_seen"], summary["n_linked"]) == (1, 1, 4)
    found = duckdb.sql("FROM 'rows/surfaces.parquet'").df()
    assert found["linked_mentions"].tolist() == [0, 2]
    for more, message in (
        (["--corpus", "corpus.jsonl"], "--url is required"),
        ([], "give either --corpus or --from"),
        (["--corpus", "corpus.jsonl", "--from", "links.jsonl"], "not both"),
    ):
        assert main([*words, *more, "--out", "other"]) == 2
        assert message in capsys.readouterr().err


def test_instances_of_questions_have_the_measure_linked(tmp_path):
    question = load_redirectqa("sample").questions[0]
    subject = question.triple.subject
    rows = [("d", entity_id(subject), question.surface.text)] * 3
    path = rows_file(tmp_path, ".parquet", rows, ("document", "entity_id", "surface"))

    words = ["count", "linked", "--data", "sample", "--from", str(path), "--out"]
    assert main([*words, str(tmp_path / "out")]) == 0

    frame = pd.read_parquet(tmp_path / "out" / "instances.parquet")
    assert set(frame["measure"]) == {"linked"}
    ours = frame[frame["subject_id"] == entity_id(subject)]
    assert (ours["entity_frequency"] == 3).all()
    assert ours["surface_frequency"].max() == 3
    assert (frame.loc[~frame.index.isin(ours.index), "entity_frequency"] == 0).all()


@pytest.mark.parametrize("given", [("linked_mentions",), ("entity_linked",), ()])
def test_only_mentions_of_both_names_and_entities_give_the_measure_linked(given):
    question, one = load_redirectqa("sample").questions[0], np.array([3])
    subject = entity_id(question.triple.subject)
    names = SurfaceTable.from_records([(subject, question.surface.text, "canonical")])
    of_names = dict.fromkeys(("n_bounded", "n_longest", "n_documents", "entity_documents"), one)
    counts = Counts(**of_names, documents=1, n_bytes=1, n_repaired=0)
    mentions = MentionCounts(**dict.fromkeys(given, one))

    made = instance_table(instance_rows([question]), names, counts, mentions=mentions)

    assert made["measure"].tolist() == ["longest", "bounded"]
