import json
from typing import NamedTuple

import pandas as pd
import pytest
from surface_consistency_build.counting import CorpusSettings, CountRun, NameTask, SurfaceTable
from surface_consistency_build.counting.runs import CountStep, MergeStep
from surface_consistency_build.counting.tasks import NgramSettings, NgramTask

from surface_consistency.errors import DataError, RunError

executors = pytest.importorskip("datatrove.executor")
pytestmark = pytest.mark.filterwarnings("ignore")

N_SHARDS, N_NAMES = 6, 400


class Document(NamedTuple):
    """A document of a pipeline."""

    text: str


@pytest.fixture
def planned(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(4):
        lines = [json.dumps({"text": f"New York {i} York"}) for i in range(N_NAMES // 4)]
        (corpus / f"{number}.jsonl").write_text("\n".join(lines))
    table = SurfaceTable.from_records([("Q60", "New York"), ("Q42462", "York")])
    settings = CorpusSettings(corpus=(str(corpus),), shards=N_SHARDS)
    return CountRun.plan(tmp_path / "counts", NameTask(table), settings)


def execute(steps, tmp_path, *, tasks, logs="logs"):
    where = str(tmp_path / logs)
    executors.LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=where).run()


def counted(run):
    return pd.read_parquet(run.folder / "surfaces.parquet")["n_bounded"].tolist()


@pytest.mark.parametrize("again", [2, 3])
def test_tasks_with_the_same_folder_of_logs_count_each_shard_once(planned, tmp_path, again):
    execute([CountStep(planned.folder)], tmp_path, tasks=2)
    assert planned.missing() == []
    execute([CountStep(planned.folder)], tmp_path, tasks=again)
    execute([MergeStep(planned.folder)], tmp_path, tasks=1, logs="merge")

    assert counted(planned) == [N_NAMES, 2 * N_NAMES]


def test_merge_rejects_missing_shards_which_can_be_counted_later(planned, tmp_path):
    step = CountStep(planned.folder)
    step(None, rank=0, world_size=2)

    with pytest.raises(DataError, match=r"3 of 6 shards are not done yet \(1, 3, 5\)"):
        MergeStep(planned.folder)(None)
    execute([step], tmp_path, tasks=2)
    MergeStep(planned.folder)(None, rank=1, world_size=2)
    assert not (planned.folder / "surfaces.parquet").exists()
    MergeStep(planned.folder)(None, rank=0, world_size=2)

    assert counted(planned) == [N_NAMES, 2 * N_NAMES]


def test_documents_of_a_reader_give_the_counts_of_its_files(planned, tmp_path):
    planned.run_all(n_workers=1)
    planned.merge()
    run = CountRun.plan_documents(tmp_path / "given", planned.task, shards=6)
    readers = pytest.importorskip("datatrove.pipeline.readers")
    reader = readers.JsonlReader(str(tmp_path / "corpus"), text_key="text")

    for logs in ("first", "again"):
        execute([reader, CountStep(run.folder)], tmp_path, tasks=6, logs=logs)
    execute([MergeStep(run.folder)], tmp_path, tasks=1, logs="merge")

    assert counted(run) == counted(planned) == [N_NAMES, 2 * N_NAMES]
    assert CountRun.open(run.folder).manifest["result"]["read"]["documents"] == N_NAMES


def test_a_filter_before_the_count_excludes_documents(planned, tmp_path):
    run = CountRun.plan_documents(tmp_path / "given", planned.task, shards=1)
    readers = pytest.importorskip("datatrove.pipeline.readers")
    filters = pytest.importorskip("datatrove.pipeline.filters")
    reader = readers.JsonlReader(str(tmp_path / "corpus"), text_key="text")
    few = filters.LambdaFilter(lambda document: document.text.endswith(" 7 York"))

    execute([reader, few, CountStep(run.folder)], tmp_path, tasks=1)
    run.merge()

    assert counted(run) == [4, 8]


def test_plans_of_files_and_of_given_documents_are_not_interchangeable(planned, tmp_path):
    with pytest.raises(DataError, match="reads its documents; remove the reader before it"):
        CountStep(planned.folder)(iter([Document("a document")]))
    with pytest.raises(DataError, match="the counts of CountStep; remove the reader before it"):
        MergeStep(planned.folder)(iter(["a document"]))
    assert len(planned.missing()) == N_SHARDS
    given = CountRun.plan_documents(tmp_path / "given", planned.task, shards=2)
    with pytest.raises(DataError, match="of given documents; put a reader before"):
        CountStep(given.folder)(None, world_size=2)
    with pytest.raises(DataError, match=r"has 2 shards.*there are 3 tasks; start one task"):
        CountStep(given.folder)(iter(()), world_size=3)
    with pytest.raises(ValueError, match="shards must be at least 1, got 0"):
        CountRun.plan_documents(tmp_path / "none", planned.task, shards=0)
    with pytest.raises(RunError, match="contains a count with another plan: number of shards"):
        CountRun.plan_documents(given.folder, planned.task, shards=3)


@pytest.fixture(scope="module")
def cluster():
    """A small Ray on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["surfaces", "pairs", "ngrams"])
def test_counts_with_ray_equal_those_of_the_run(planned, tmp_path, kind, cluster):
    readers = pytest.importorskip("datatrove.pipeline.readers")
    names, corpus = planned.task.table, str(tmp_path / "corpus")
    task = {
        "surfaces": NameTask(names),
        "pairs": NameTask(names, pairs=(("Q60", "Q42462"),)),
        "ngrams": NgramTask({"a": "New York 7 York"}, NgramSettings(n=3)),
    }[kind]
    settings = CorpusSettings(corpus=(corpus,), shards=N_SHARDS)
    direct = CountRun.plan(tmp_path / "direct", task, settings)
    direct.run_all(n_workers=1)
    direct.merge()
    files = CountRun.plan(tmp_path / "files", task, settings)
    given = CountRun.plan_documents(tmp_path / "given", task, shards=2)
    reader = readers.JsonlReader(corpus, text_key="text")

    for run, steps in ((files, []), (given, [reader])):
        for name, pipeline, tasks in (
            ("count", [*steps, CountStep(run.folder)], 2),
            ("merge", [MergeStep(run.folder)], 1),
        ):
            logs = str(tmp_path / "logs" / run.folder.name / name)
            executors.RayPipelineExecutor(
                pipeline=pipeline, tasks=tasks, logging_dir=logs, mem_per_cpu_gb=0.5
            ).run()
        tables = sorted(direct.folder.glob("*.parquet"))
        assert tables
        for table in tables:
            pd.testing.assert_frame_equal(
                pd.read_parquet(run.folder / table.name), pd.read_parquet(table)
            )
