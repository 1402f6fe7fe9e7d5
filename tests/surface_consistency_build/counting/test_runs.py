import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from surface_consistency_build.counting import (
    CorpusSettings,
    CountRun,
    NameTask,
    SurfaceTable,
    counter,
    read_documents,
    runs,
    tasks,
)
from surface_consistency_build.counting.finder import NameFinder
from surface_consistency_build.counting.ngrams import count_ngrams
from surface_consistency_build.counting.tasks import (
    NameSettings,
    NgramSettings,
    NgramTask,
    PairSettings,
)

from surface_consistency.errors import (
    DataError,
    PluginError,
    RunError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)
from surface_consistency.plugins import importable
from surface_consistency.runs.job import file_stamp
from surface_consistency.schemas.jsonl import partial_path
from tests.surface_consistency_build.counting.reference import reference_counts

NAMES = [
    ("Q60", "New York", "canonical"),
    ("Q60", "Big Apple", "redirect"),
    ("Q42462", "York", "canonical"),
    ("Q1", "New York Times", "blocker"),
]
TEXTS = ["New York, York", "Big Apple", "the New York Times of York", "", "york", "Zoë in New York"]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(5):
        rows = [{"text": f"{text} {number}"} for text in TEXTS * (number + 1)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number}.jsonl").write_text(lines)
    return folder


def name_task(**settings):
    return NameTask(SurfaceTable.from_records(NAMES), NameSettings(**settings))


def plan(tmp_path, corpus, task=None, **settings):
    chosen = CorpusSettings(**({"corpus": (str(corpus),), "shards": 3} | settings))
    return CountRun.plan(tmp_path / "counts", task or name_task(), chosen)


def counted(folder):
    frame = pd.read_parquet(folder / "surfaces.parquet")
    return frame[["n_bounded", "n_longest", "n_documents"]].to_numpy().tolist()


def expected(corpus):
    documents = [text for batch in read_documents(corpus) for text in batch]
    counts = reference_counts(SurfaceTable.from_records(NAMES), documents)
    return np.transpose([counts[name] for name in ("bounded", "longest", "documents")]).tolist()


def merged(run):
    run.run_all(n_workers=1)
    return run.merge()


def names_of(run):
    return pd.read_parquet(run.folder / "surfaces.parquet").set_index("surface")


@pytest.mark.parametrize("shards", [1, 3, 9])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_counts_do_not_depend_on_the_shards(tmp_path, corpus, shards, n_workers):
    run = plan(tmp_path, corpus, shards=shards)

    assert run.run_all(n_workers=n_workers) == shards
    result = run.merge()

    assert counted(tmp_path / "counts") == expected(corpus)
    assert result.report.documents == 90
    assert result.counted["n_names"] == 4
    saved = json.loads((tmp_path / "counts" / "manifest.json").read_text())
    assert saved["result"]["read"]["documents"] == 90
    assert saved["plan"]["task"]["table"] == SurfaceTable.from_records(NAMES).digest


def test_large_uncompressed_files_are_split_into_parts(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = "".join(json.dumps({"text": f"New York {i} York"}) + "\n" for i in range(90_000))
    (corpus / "a.jsonl").write_text(lines)
    table = pa.table({"text": [f"Big Apple {i}" for i in range(200_000)]})
    pq.write_table(table, corpus / "b.parquet", row_group_size=20_000, compression="none")

    run = plan(tmp_path, corpus, shards=4)
    merged(run)

    sizes = [len(shard) for shard in run.manifest["plan"]["shards"]]
    assert min(sizes) > 0
    assert sum(sizes) > 4
    counts = [[90_000] * 3, [200_000] * 3, [180_000, 90_000, 90_000], [0] * 3]
    assert counted(run.folder) == counts


def test_a_shard_that_is_started_twice_counts_once(tmp_path, corpus):
    """The merge requires all shards, and a lost shard is counted again."""
    run = plan(tmp_path, corpus)
    assert [run.run(0), run.run(0), run.run(2)] == [True, False, True]
    with pytest.raises(DataError, match=r"1 of 3 shards are not done yet \(1\)"):
        run.merge()
    assert not (tmp_path / "counts" / "surfaces.parquet").exists()

    again = plan(tmp_path, corpus)
    assert again.missing() == [1]
    assert again.run_all(n_workers=1) == 1
    again.merge()
    CountRun.open(tmp_path / "counts").merge()
    assert counted(tmp_path / "counts") == expected(corpus)
    (tmp_path / "counts" / "shards" / "00001.npz").unlink()
    assert run.run_all(n_workers=1) == 1
    run.merge()
    assert counted(tmp_path / "counts") == expected(corpus)


def test_errors_for_damaged_and_foreign_shards_contain_the_file(tmp_path, corpus):
    run = plan(tmp_path, corpus)
    run.run_all(n_workers=1)
    shards = run.folder / "shards"
    other = plan(tmp_path / "other", corpus, name_task(case="fold"))
    other.run(1)

    for foreign in (other.folder / "shards" / "00001.npz", shards / "00000.npz"):
        shutil.copy(foreign, shards / "00001.npz")
        with pytest.raises(RunError, match=r"00001\.npz belongs to another plan or shard"):
            run.merge()
    (shards / "00001.npz").write_bytes(b"PK no more")
    with pytest.raises(DataError, match=r"00001\.npz is invalid.*delete it and do shard 1 again"):
        run.merge()


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        (name_task(boundary="script"), {}, "boundary was 'word', now 'script'"),
        (name_task(case="fold"), {}, "case was 'exact', now 'fold'"),
        (None, {"sample": 0.5}, "sample was 1.0, now 0.5"),
        (None, {"sample_seed": 3}, "seed was 0, now 3"),
        (None, {"shards": 4}, "number of shards was 3, now 4"),
        (None, {"text_field": "body"}, "text was 'text', now 'body'"),
        (NameTask(SurfaceTable.from_records(NAMES[:2])), {}, "table was [0-9a-f]{12}, now"),
    ],
)
def test_errors_for_another_plan_list_the_differences(tmp_path, corpus, task, settings, message):
    plan(tmp_path, corpus)

    with pytest.raises(RunError, match=f"contains a count with another plan: {message}"):
        plan(tmp_path, corpus, task, **settings)


def test_error_for_another_corpus_contains_the_file(tmp_path, corpus):
    run = plan(tmp_path, corpus)
    (corpus / "5.jsonl").write_text('{"text": "York"}\n')
    with pytest.raises(RunError, match=r"file .*5\.jsonl was absent, now 17 bytes"):
        plan(tmp_path, corpus)
    (corpus / "5.jsonl").unlink()
    with (corpus / "2.jsonl").open("a") as file:
        file.write('{"text": "York"}\n')
    with pytest.raises(RunError, match=r"file .*2\.jsonl was"):
        plan(tmp_path, corpus)
    with pytest.raises(RunError, match=r"2\.jsonl changed since the run was planned"):
        run.run_all(n_workers=1)
    (corpus / "2.jsonl").unlink()
    with pytest.raises(SourceNotFoundError, match=r"2\.jsonl was deleted after the plan"):
        run.run_all(n_workers=1)


def test_file_that_changes_during_reading_raises_an_error(tmp_path, corpus, monkeypatch):
    run = plan(tmp_path, corpus, shards=1)
    counter = run.task.counter()
    feed = type(counter).feed

    def changing(self, texts):
        os.utime(corpus / "4.jsonl", ns=(5, 5))
        feed(self, texts)

    monkeypatch.setattr(type(counter), "feed", changing)

    with pytest.raises(RunError, match=r"4\.jsonl changed since the run was planned"):
        run.run(0)
    assert run.missing() == [0]


@pytest.mark.parametrize("name", ["names.arrow", "exact-*.arrow"])
def test_errors_for_damaged_inputs_contain_the_file(tmp_path, corpus, name):
    plan(tmp_path, corpus)
    (file,) = (tmp_path / "counts" / "inputs").glob(name)
    file.write_bytes(file.read_bytes()[:-9])

    with pytest.raises(DataError, match=rf"{file.name} cannot be read .*; use another"):
        CountRun.open(tmp_path / "counts").run(0)
    SurfaceTable.from_records(NAMES[1:]).save(tmp_path / "counts" / "inputs")
    with pytest.raises(RunError, match="inputs was changed since the run was planned"):
        CountRun.open(tmp_path / "counts").run(0)


def again(folder):
    """Count all shards again in a run that opens the plan."""
    shutil.rmtree(folder / "shards")
    run = CountRun.open(folder)
    for shard in range(run.n_shards):
        run.run(shard)
    return run


def results(run):
    return [one.arrays for one in run.results()]


@pytest.mark.parametrize("settings", [{}, {"case": "fold"}, {"folded": True}])
def test_tasks_map_the_stored_tables_into_memory(tmp_path, corpus, settings, monkeypatch):
    run = plan(tmp_path, corpus, name_task(**settings))
    run.run_all(n_workers=1)
    first = results(run)
    monkeypatch.setattr(NameFinder, "_build", None)
    monkeypatch.setattr(SurfaceTable, "read", None)

    run = again(run.folder)

    np.testing.assert_equal(results(run), first)
    if (maps := Path("/proc/self/maps")).exists():
        mapped = {Path(line.split()[-1]) for line in maps.read_text().splitlines()}
        assert mapped.issuperset((run.folder / "inputs").glob("*.arrow"))
    (run.folder / "shards" / "00001.npz").unlink()
    assert plan(tmp_path, corpus, name_task(**settings)).run(1)
    np.testing.assert_equal(results(run), first)


def test_stored_tables_of_another_kernel_are_not_used(tmp_path, corpus, monkeypatch):
    run = plan(tmp_path, corpus)
    run.run_all(n_workers=1)
    first = results(run)
    (built,) = (run.folder / "inputs").glob("exact-*.arrow")
    built.write_bytes(b"of another kernel")
    monkeypatch.setattr(counter, "rules_digest", lambda rule: "of this one")

    np.testing.assert_equal(results(again(run.folder)), first)


def test_two_processes_do_not_count_one_shard(tmp_path, corpus):
    run = plan(tmp_path, corpus)
    (tmp_path / "counts" / "shards").mkdir()

    with CountRun.locked(tmp_path / "counts" / "shards" / ".00000.lock"):
        with pytest.raises(RunError, match="this process already works on this count"):
            run.run(0)
        assert run.run(1)


def _die_in(folder):
    run = CountRun.open(folder)
    counter = run.task.counter()
    type(counter).feed = lambda self, texts: os.kill(os.getpid(), signal.SIGKILL)
    run.run(1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_shard_of_a_killed_process_counts_once(tmp_path, corpus, monkeypatch):
    """In a separate process, or in a worker of the run."""
    run = plan(tmp_path, corpus)
    run.run(0)
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_die_in, args=(run.folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL

    assert run.missing() == [1, 2]
    with monkeypatch.context() as patch:
        patch.setattr(CountRun, "reader", lambda self, shard: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.raises(RunError, match="was killed"):
            run.run_all(n_workers=2)
    assert run.run_all(n_workers=2) == 2
    run.merge()

    assert counted(tmp_path / "counts") == expected(corpus)
    assert not list((tmp_path / "counts" / "shards").glob("*.part"))


def test_tables_contain_blockers_folded_names_and_pairs(tmp_path, corpus):
    """Blockers exclude longer names and are not names; n_folded ignores case."""
    (corpus / "x.jsonl").write_text('{"text": "york york york york york york york york"}\n' * 40)
    task = NameTask(
        SurfaceTable.from_records(NAMES),
        NameSettings(folded=True),
        pairs=(("Q60", "Q42462"),),
        pair_settings=PairSettings(occurrences="bounded"),
    )
    run = plan(tmp_path, corpus, task)
    merged(run)
    CountRun.open(run.folder).merge()

    names, entities = names_of(run), pd.read_parquet(run.folder / "entities.parquet")
    assert names.loc["New York", ["n_bounded", "n_longest"]].tolist() == [45, 30]
    assert names.loc["New York Times", "role"] == "blocker"
    assert entities["entity_id"].tolist() == ["Q60", "Q42462"]
    assert entities["n_surfaces"].tolist() == [2, 1]
    assert names.loc["York", "n_folded"] == names.loc["York", "n_bounded"] + 15 + 320
    assert "common_word" in names.loc["York", "flags"]
    assert "common_word" not in names.loc["New York", "flags"]
    pairs = pd.read_parquet(run.folder / "pairs.parquet")
    documents = [f"n_documents_{whose}" for whose in ("both", "subject", "object")]
    assert list(pairs) == ["subject_id", "object_id", *documents]
    assert pairs.to_numpy().tolist() == [["Q60", "Q42462", 45, 60, 45]]


def test_segmenter_is_given_by_name(tmp_path, corpus):
    task = name_task(boundary="segmented", segmenter="surface_consistency.text:tokenize")
    run = plan(tmp_path, corpus, task)
    with importable("surface_consistency.text:tokenize"):
        merged(run)

    # Words between white space: "York," is not one of the names.
    assert [row[0] for row in counted(run.folder)] == [30, 15, 60, 15]
    assert names_of(run)["n_folded"].isna().all()
    with pytest.raises(PluginError, match="nothing_here"):
        name_task(boundary="segmented", segmenter="nothing_here:f").counter()


@pytest.mark.parametrize(
    ("settings", "message"), [({}, "all counts are"), ({"sample": 1e-9}, "90 were not")]
)
def test_an_empty_corpus_gives_zero_counts_and_a_warning(tmp_path, corpus, settings, message):
    for file in corpus.iterdir() if not settings else ():
        file.write_text("")

    with pytest.warns(SurfaceConsistencyWarning, match=f"no documents were counted; {message}"):
        merged(plan(tmp_path, corpus, **settings))
    assert counted(tmp_path / "counts") == [[0, 0, 0]] * 4


def test_counts_of_ngrams_do_not_depend_on_the_shards(tmp_path, corpus):
    instances = {"a": "the New York Times of York 0", "b": "York 1", "c": ""}
    task = NgramTask(instances, NgramSettings(n=2))
    run = plan(tmp_path, corpus, task)
    run.run_all(n_workers=2)
    result = CountRun.open(run.folder).merge()

    frame = pd.read_parquet(run.folder / "ngrams.parquet")
    whole = count_ngrams(instances.values(), read_documents(corpus), n=2)
    assert frame["instance_id"].tolist() == ["a", "b", "c"]
    assert [row.tolist() for row in frame["counts"]] == [row.tolist() for row in whole]
    assert frame["n_ngrams"].tolist() == [6, 1, 0]
    assert result.counted["n_ngrams_seen"] == 7


def test_tokenizer_of_a_model_is_read_from_a_file(tmp_path, corpus):
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(["[UNK]", "New", "York", "Times", "the"])}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    file = tmp_path / "tokenizer.json"
    model.save(str(file))
    task = NgramTask({"a": "New York"}, NgramSettings(n=2, tokenizer=str(file)))
    run = plan(tmp_path, corpus, task)
    merged(run)

    frame = pd.read_parquet(tmp_path / "counts" / "ngrams.parquet")
    assert frame["counts"][0].tolist() == [45]
    file.write_text(file.read_text().replace("Times", "Time"))
    with pytest.raises(RunError, match=r"tokenizer was [0-9a-f]{12}, now"):
        plan(tmp_path, corpus, task)
    file.write_text("{}")
    with pytest.raises(DataError, match=r"tokenizer\.json is not a tokenizer"):
        NgramTask({"a": "b"}, NgramSettings(tokenizer=str(file))).counter()
    with pytest.raises(SourceNotFoundError, match=r"none.* not found; give a tokenizer"):
        NgramTask({"a": "b"}, NgramSettings(tokenizer=str(tmp_path / "none"))).counter()


def begin(folder, corpus):
    return CountRun.plan(folder, name_task(), CorpusSettings(corpus=(str(corpus),)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda home, _: CountRun.open(home).run(3), ValueError, "`shard` must be one of 0 to 2"),
        (lambda home, corpus: begin(corpus / "0.jsonl", corpus), DataError, "give `out` a folder"),
        (lambda home, corpus: begin(corpus, corpus), DataError, r"not belong to a count.* 0\.js"),
        (lambda _, corpus: CountRun.open(corpus), SourceNotFoundError, "not a folder of a count"),
    ],
)
def test_invalid_folders_and_shards_are_rejected(tmp_path, corpus, call, error, message):
    plan(tmp_path, corpus)
    with pytest.raises(error, match=message):
        call(tmp_path / "counts", corpus)


def test_manifests_of_another_format_are_rejected(tmp_path, corpus):
    manifest = plan(tmp_path, corpus).folder / "manifest.json"
    saved = json.loads(manifest.read_text())
    for content, message in (
        (json.dumps({**saved, "format": 9}), "is of format 9, kind 'surfaces'; this version reads"),
        ("{", r"manifest\.json is not a manifest of a count"),
    ):
        manifest.write_text(content)
        with pytest.raises(DataError, match=message):
            CountRun.open(manifest.parent)


def test_run_that_was_killed_while_writing_its_manifest_starts_again(tmp_path, corpus):
    """A folder in which another process starts a run is not rejected as foreign."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getppid()):
        part = partial_path(tmp_path / "run" / "manifest.json")
        part.parent.mkdir(exist_ok=True)
        part.with_name(part.name.replace(f"-{os.getpid()}-", f"-{process}-")).write_text("{")

    assert begin(tmp_path / "run", corpus).n_shards
    assert len(list((tmp_path / "run").glob(".*.part"))) == 1


def test_processes_that_plan_the_same_run_wait_for_the_first(tmp_path, corpus, monkeypatch):
    (tmp_path / "counts").mkdir()
    lock = CountRun.locked(tmp_path / "counts" / ".plan.lock")
    slept = []
    monkeypatch.setattr(time, "sleep", lambda seconds: slept.append(seconds) or lock.release())

    assert plan(tmp_path, corpus).n_shards == 3
    assert slept == [0.1]


def test_a_task_checks_only_the_files_of_its_shard(tmp_path, corpus, monkeypatch):
    run = plan(tmp_path, corpus, shards=3)
    seen = []
    monkeypatch.setattr(runs, "file_stamp", lambda path: seen.append(path) or file_stamp(path))

    settings = CorpusSettings(corpus=(str(corpus),), shards=3)
    again = CountRun.plan(run.folder, name_task(), settings, shard=1)
    assert again.digest == run.digest
    assert not seen
    again.run(1)
    assert {str(path) for path in seen} == {
        run.planned["files"][number]["path"] for number, *_ in run.planned["shards"][1]
    }

    other = CorpusSettings(corpus=(str(corpus / "0.jsonl"),), shards=3)
    with pytest.raises(RunError, match="contains a count with another plan: file"):
        CountRun.plan(tmp_path / "counts", name_task(), other, shard=1)


@pytest.mark.parametrize("content", ["[1, 2]", '[["a", ["b"]]]', "[[", "{}"])
def test_damaged_pairs_of_a_run_raise_an_error(tmp_path, content):
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "pairs.json").write_text(content)

    with pytest.raises(DataError, match=r"pairs\.json is damaged .*count again in a new folder"):
        tasks._read_json(tmp_path / "inputs" / "pairs.json", list[tuple[str, str]])
