"""Linkers on a wiki whose links are known, and their counts over a corpus."""

import json

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.counting import CorpusSettings, CountRun, NameSettings, SurfaceTable
from surface_consistency_build.linking import (
    CoherenceLinker,
    InLinks,
    LinkSettings,
    LinkTask,
    MentionTable,
    PriorLinker,
    read_gold,
    score_linker,
)

from surface_consistency.cli.main import main
from surface_consistency.errors import (
    DataError,
    RecordError,
    RunError,
    SourceNotFoundError,
)

DOCUMENTS = [
    "Mercury in the Solar System. Mercury!",
    "Chemistry knows Mercury, an element.",
    "Zoë saw Liquid silver and Mercury (planet).",
    "nothing",
]


@pytest.fixture(scope="module")
def mentions(built):
    return MentionTable.read(built.folder)


def linked(linker, *texts):
    return [[(m.surface, m.entity_id) for m in found] for found in linker.link(texts)]


def test_the_prior_takes_the_commonest_entity_and_the_longest_name(mentions):
    found = linked(PriorLinker(mentions, min_link_probability=0.2), *DOCUMENTS)

    assert found[0] == [("Mercury", "Q308"), ("Solar System", "Q544"), ("Mercury", "Q308")]
    assert found[1] == [("Chemistry", "Q2329"), ("Mercury", "Q308")]
    assert found[2] == [("Liquid silver", "Q925"), ("Mercury (planet)", "Q308")]
    assert found[3] == []


def test_offsets_count_characters(mentions):
    (found,) = PriorLinker(mentions, min_link_probability=0.2).link([DOCUMENTS[2]])

    assert [DOCUMENTS[2][m.start : m.stop] for m in found] == [m.surface for m in found]


def test_names_that_are_seldom_links_are_passed_over_unless_asked_for(mentions):
    (found,) = linked(PriorLinker(mentions, min_link_probability=0.0), "an element")

    assert found == [("element", "Q925")]
    with pytest.raises(DataError, match=r"no name .* link probability of 1"):
        PriorLinker(mentions, min_link_probability=1.0)
    with pytest.raises(ValueError, match="min_link_probability must be from 0 to 1"):
        PriorLinker(mentions, min_link_probability=2.0)


def test_coherence_takes_the_entity_that_goes_with_the_others(mentions, built):
    linker = CoherenceLinker(mentions, built.folder, min_link_probability=0.2)

    found = linked(linker, *DOCUMENTS)

    assert ("Mercury", "Q925") in found[1]
    assert found[0][0] == ("Mercury", "Q308")
    # Alone in a text, a name has only its prior.
    assert linked(linker, "Mercury") == [[("Mercury", "Q308")]]


def test_only_wanted_entities_are_told_and_others_still_vote(mentions, built):
    linker = CoherenceLinker(
        mentions, built.folder, min_link_probability=0.2, entities=["Q925", "Q0"]
    )

    assert linked(linker, DOCUMENTS[1]) == [[("Mercury", "Q925")]]


def test_relatedness_is_that_of_milne_and_witten(mentions, built):
    links = InLinks(built.folder, mentions.entities)
    number = {entity: n for n, entity in enumerate(mentions.entities)}
    pages = {entity: set(links.pages(n).tolist()) for entity, n in number.items()}

    a, b = pages["Q308"], pages["Q544"]
    expected = 1 - (np.log(max(len(a), len(b))) - np.log(len(a & b))) / (
        np.log(links.n_pages) - np.log(min(len(a), len(b)))
    )

    assert len(a) == 13
    assert links.relatedness(number["Q308"], number["Q544"]) == pytest.approx(expected)
    assert links.relatedness(number["Q308"], number["Q308"]) == 1.0
    assert links.relatedness(number["Q308"], number["name:Orphan"]) == 0.0


def test_coherence_without_its_files_says_where_they_come_from(mentions, tmp_path):
    with pytest.raises(SourceNotFoundError, match="coherence needs the folder of `build mentions`"):
        CoherenceLinker(mentions, tmp_path)
    with pytest.raises(ValueError, match="give folder or in_links"):
        CoherenceLinker(mentions)
    with pytest.raises(ValueError, match="margin must be from 0 to 1"):
        CoherenceLinker(mentions, tmp_path, margin=2)


NAMES = SurfaceTable.from_records(
    [
        ("Q308", "Mercury", "canonical"),
        ("Q308", "Mercury (planet)", "alias"),
        ("Q925", "Mercury", "redirect"),
        ("Q925", "Liquid silver", "canonical"),
        ("Q1", "Hermes", "canonical"),
    ]
)
TITLES = {"Q308": "Mercury (planet)", "Q925": "Mercury (element)", "Q1": "Hermes"}
INSTANCES = pd.DataFrame(
    [
        ("f1", "f1|Mercury", "Q308", "Q544", "Mercury", True),
        ("f2", "f2|Liquid silver", "Q925", "Q544", "Liquid silver", True),
        ("f3", "f3|Hermes", "Q1", "Q544", "Hermes", True),
    ],
    columns=["fact_id", "surface_id", "subject_id", "object_id", "surface", "is_canonical"],
).assign(pageviews=pd.array([None] * 3, dtype="Int64"))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS))
    return path


def task_of(built, **settings):
    given = {"mentions": built.folder, "min_link_probability": 0.2, **settings}
    return LinkTask(NAMES, instances=INSTANCES, link=LinkSettings(**given), titles=TITLES)


@pytest.mark.parametrize("shards", [1, 3])
def test_linked_and_expected_mentions_stand_in_the_tables(tmp_path, built, corpus, shards):
    task = task_of(built, linker="coherence")
    run = CountRun.plan(
        tmp_path / "out", task, CorpusSettings(corpus=(str(corpus),), shards=shards)
    )
    run.run_all(n_workers=1)
    told = CountRun.open(tmp_path / "out").merge().counted

    rows = pd.read_parquet(tmp_path / "out" / "surfaces.parquet").set_index(
        ["entity_id", "surface"]
    )
    entities = pd.read_parquet(tmp_path / "out" / "entities.parquet").set_index("entity_id")
    assert rows["linked_mentions"].tolist() == [2, 1, 1, 1, 0]
    assert rows["linked_documents"].tolist() == [1, 1, 1, 1, 0]
    assert rows["n_longest"].tolist() == [3, 1, 3, 1, 0]
    share = 16.5 / 27
    assert rows["expected_mentions"].iloc[0] == pytest.approx(3 * share * 12.5 / 17)
    assert rows["expected_mentions"].iloc[2] == pytest.approx(3 * share * 4.5 / 17)
    assert np.isnan(rows["expected_mentions"].iloc[4])
    assert rows["p_entity"].iloc[:3].tolist() == [0.75, 1.0, 0.25]
    assert entities["entity_linked"].tolist() == [3, 2, 0]
    assert entities["entity_linked_documents"].tolist() == [2, 2, 0]
    assert (told["n_linked"], told["n_documents_not_linked"]) == (5, 0)
    instances = pd.read_parquet(tmp_path / "out" / "instances.parquet").set_index("measure")
    assert instances.loc["linked", "surface_frequency"].tolist() == [2, 1, 0]
    assert instances.loc["linked", "entity_frequency"].tolist() == [3, 2, 0]
    assert instances.loc["expected", "surface_sd"].notna().tolist() == [True, True, False]


def test_another_linker_or_table_is_refused_in_the_same_folder(tmp_path, built, titled, corpus):
    where = CorpusSettings(corpus=(str(corpus),), shards=1)
    CountRun.plan(tmp_path / "out", task_of(built), where)

    for changed, message in (
        (task_of(built, linker="coherence"), "linker was 'prior', now 'coherence'"),
        (task_of(titled), "mentions was"),
    ):
        with pytest.raises(RunError, match=message):
            CountRun.plan(tmp_path / "out", changed, where)


def test_a_shard_is_counted_from_another_folder(tmp_path, built, corpus, monkeypatch):
    monkeypatch.chdir(built.folder.parent)
    task = task_of(built, mentions=built.folder.relative_to(built.folder.parent))
    CountRun.plan(tmp_path / "out", task, CorpusSettings(corpus=(str(corpus),), shards=1))

    monkeypatch.chdir(tmp_path)

    assert CountRun.open("out").run(0, engine="python")


def test_folded_names_cannot_be_linked(tmp_path, built, corpus):
    task = LinkTask(
        NAMES, NameSettings(case="fold"), link=LinkSettings(mentions=built.folder), titles=TITLES
    )

    with pytest.raises(ValueError, match="`case` must be exact"):
        CountRun.plan(tmp_path / "out", task, CorpusSettings(corpus=(str(corpus),)))


def resources(text, **names):
    """What a linker's server says: every occurrence of some names."""
    found = []
    for name, uri in names.items():
        start = text.find(name)
        while start >= 0:
            offset = len(text[:start].encode("utf-16-le")) // 2
            found.append(
                {
                    "@URI": f"http://dbpedia.org/resource/{uri}",
                    "@surfaceForm": name,
                    "@offset": str(offset),
                    "@similarityScore": "1.0",
                }
            )
            start = text.find(name, start + 1)
    return {"Resources": found}


@pytest.mark.enable_socket
@pytest.mark.parametrize("whole", [False, True])
def test_spotlight_reads_windows_around_counted_names(tmp_path, replay, whole):
    def answer(path, told):
        return 200, resources(told["text"], Mercury="Mercury_(planet)", Hermes="Hermes")

    server = replay(answer)
    far = "word " * 100
    texts = [f"Mercury {far}Mercury {far}", f"😀 Zoë {far}", f"{far}Hermes Mercury"]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    names = SurfaceTable.from_records([("Q308", "Mercury", "canonical"), ("Q1", "Godly", "alias")])
    link = LinkSettings(
        linker="spotlight", url=server.url, window=40, whole_documents=whole,
        cache=tmp_path / "cache.sqlite",
    )  # fmt: skip
    task = LinkTask(names, link=link, titles={"Q308": "Mercury (planet)", "Q1": "Hermes"})

    run = CountRun.plan(tmp_path / "out", task, CorpusSettings(corpus=(str(path),), shards=1))
    run.run(0)
    told = run.merge().counted

    entities = pd.read_parquet(tmp_path / "out" / "entities.parquet").set_index("entity_id")
    assert entities["entity_linked"].to_dict() == {"Q308": 3, "Q1": 1}
    sent = [told["text"] for _, told in server.requests]
    assert len(sent) == 3
    assert (max(map(len, sent)) > 500) is whole
    assert told["n_documents_not_linked"] == 0


@pytest.mark.enable_socket
def test_a_document_that_the_server_refuses_is_counted_as_not_linked(tmp_path, replay):
    server = replay(lambda path, told: (413, b"too large"))
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "Mercury"}\n')
    link = LinkSettings(linker="spotlight", url=server.url)
    task = LinkTask(NAMES, link=link, titles=TITLES)

    run = CountRun.plan(tmp_path / "out", task, CorpusSettings(corpus=(str(path),), shards=1))
    run.run(0)

    assert run.merge().counted["n_documents_not_linked"] == 1


def gold_line(text, *labels, **more):
    return json.dumps({"text": text, "labels": list(labels), **more}) + "\n"


def label(start, stop, entity, **more):
    return {"span": [start, stop], "entity_id": entity, **more}


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ([label(0, 7, "Q308")], (1, 1, 0)),
        ([label(0, 7, "Q925"), label(12, 24, "Q544")], (1, 1, 1)),
        ([label(0, 7, "Q308"), label(12, 24, "Q544"), label(25, 31, "Q9")], (2, 0, 1)),
        ([label(0, 7, "Q308"), label(12, 24, "Unknown3")], (1, 1, 0)),
        ([label(0, 7, "Q308"), label(12, 24, "Q544", optional=True)], (1, 0, 0)),
        ([label(0, 7, "Q308"), label(25, 31, "Q9", optional=True)], (1, 1, 0)),
        # Of a label and those within it the inner count where one of them is found.
        (
            [
                label(0, 24, "Q7", id=1, children=[2, 3]),
                label(0, 7, "Q308", id=2, parent=1),
                label(12, 24, "Q544", id=3, parent=1),
            ],
            (2, 0, 0),
        ),
        # A span is also held against whole words.
        ([label(0, 7, "Q308"), label(12, 22, "Q544")], (2, 0, 0)),
        ([{"start_char": 0, "end_char": 7, "entity_reference": "http://a/Q308"}], (1, 1, 0)),
    ],
)
def test_a_linker_is_scored_as_elevant_does(tmp_path, mentions, labels, counts):
    path = tmp_path / "gold.jsonl"
    path.write_text(gold_line("Mercury, a  Solar System orbits.", *labels))
    linker = PriorLinker(mentions, min_link_probability=0.2)

    score = score_linker(linker, read_gold(path))

    found = (score.true_positives, score.false_positives, score.false_negatives)
    assert found == counts
    assert score.precision == counts[0] / (counts[0] + counts[1])
    assert score.recall == counts[0] / (counts[0] + counts[2])


def test_a_document_on_which_the_linker_fails_is_counted_and_its_labels_are_missed(tmp_path):
    class Failing:
        def link(self, texts):
            return [None for _ in texts]

    path = tmp_path / "gold.jsonl"
    path.write_text(gold_line("Mercury, a  Solar System orbits.", label(0, 7, "Q308")))

    score = score_linker(Failing(), read_gold(path))

    assert (score.n_documents, score.n_failed) == (1, 1)
    assert (score.true_positives, score.false_positives, score.false_negatives) == (0, 0, 1)


def test_only_the_labelled_part_counts_and_nothing_is_undefined(tmp_path, mentions):
    path = tmp_path / "gold.jsonl"
    path.write_text(gold_line("x Mercury", evaluation_span=[0, 2]))

    score = score_linker(PriorLinker(mentions, min_link_probability=0.2), read_gold(path))

    assert score.false_positives == 0
    assert np.isnan([score.precision, score.recall, score.f1]).all()


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("", DataError, "holds no articles"),
        ('{"text": "a"}\n', RecordError, r"gold\.jsonl:1: an article needs `text`"),
        (gold_line("a", label(0, 5, "Q1")), RecordError, "is 0 to 5, beyond its text of 1"),
        (gold_line("a", label(1, 1, "Q1")), RecordError, "is 1 to 1"),
        (gold_line("a", {"span": [0, 1]}), RecordError, "a label needs `entity_id`"),
        (gold_line("a", {"span": "x", "entity_id": "Q1"}), RecordError, "must be two numbers"),
        (gold_line("a", "x"), RecordError, "a label must be an object"),
    ],
)
def test_gold_that_is_none_is_refused(tmp_path, line, error, message):
    path = tmp_path / "gold.jsonl"
    path.write_text(line)

    with pytest.raises(error, match=message):
        list(read_gold(path))


def test_the_whole_path_from_dump_to_counts_on_the_command_line(tmp_path, wiki, corpus, capsys):
    build = ["build", "mentions", str(wiki / "pages.xml"), "--out", str(tmp_path / "mentions")]
    props = ["--page-props", str(wiki / "page_props.sql.gz"), "--workers", "1"]
    assert main([*build, *props, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_redirects"] == 2
    names = tmp_path / "names.csv"
    names.write_text(
        "entity_id,surface,role\nQ308,Mercury (planet),canonical\nQ308,Mercury,alias\n"
    )
    link = ["--mentions", str(tmp_path / "mentions"), "--min-link-probability", "0.2"]
    out = ["--out", str(tmp_path / "out"), "--workers", "1", "--shards", "1"]
    words = ["count", "linked", "--names", str(names), "--corpus", str(corpus), *link, *out]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_linked"] == 4
    gold = tmp_path / "gold.jsonl"
    gold.write_text(gold_line("Mercury", label(0, 7, "Q308")))
    assert main(["count", "score-linker", "--gold", str(gold), *link, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["f1"] == 1.0
    assert main(["count", "score-linker", "--gold", str(gold), *link]) == 0
    assert "precision" in capsys.readouterr().out
    assert main([*words[:6], *out]) == 2
    assert "--linker prior needs --mentions" in capsys.readouterr().err
    assert main([*words[:6], *out, "--linker", "spotlight"]) == 2
    assert "--linker spotlight needs --url" in capsys.readouterr().err
