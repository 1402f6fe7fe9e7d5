import json

import pandas as pd
import pytest
from surface_consistency_build.counting import CorpusSettings, CountRun, NameTask, SurfaceTable
from surface_consistency_build.counting.runs import CountStep, MergeStep

from surface_consistency.errors import DataError

executors = pytest.importorskip("datatrove.executor")
pytestmark = pytest.mark.filterwarnings("ignore")

N_SHARDS, N_NAMES = 6, 400


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
    executors.LocalPipelineExecutor(
        pipeline=steps, tasks=tasks, workers=1, logging_dir=str(tmp_path / logs)
    ).run()


def counted(run):
    return pd.read_parquet(run.folder / "surfaces.parquet")["n_bounded"].tolist()


def test_the_local_executor_counts_what_the_run_counts(planned, tmp_path):
    execute([CountStep(planned.folder)], tmp_path, tasks=2)
    execute([MergeStep(planned.folder)], tmp_path, tasks=1, logs="merge")

    assert planned.missing() == []
    assert counted(planned) == [N_NAMES, 2 * N_NAMES]


@pytest.mark.parametrize("again", [2, 3, 4])
def test_other_tasks_in_the_same_folder_of_logs_count_nothing_twice(planned, tmp_path, again):
    execute([CountStep(planned.folder)], tmp_path, tasks=2)
    execute([CountStep(planned.folder)], tmp_path, tasks=again)
    execute([MergeStep(planned.folder)], tmp_path, tasks=1, logs="merge")

    assert counted(planned) == [N_NAMES, 2 * N_NAMES]


def test_a_lost_rank_is_refused_by_the_merge_and_counted_again(planned, tmp_path):
    step = CountStep(planned.folder)
    step(None, rank=0, world_size=2)

    with pytest.raises(DataError, match=r"3 of 6 shards are not done yet \(1, 3, 5\)"):
        MergeStep(planned.folder)(None)
    execute([step], tmp_path, tasks=2)
    MergeStep(planned.folder)(None, rank=1, world_size=2)
    assert not (planned.folder / "surfaces.parquet").exists()
    MergeStep(planned.folder)(None, rank=0, world_size=2)

    assert counted(planned) == [N_NAMES, 2 * N_NAMES]


def test_documents_of_a_step_before_are_refused(planned):
    for step in (CountStep(planned.folder), MergeStep(planned.folder)):
        with pytest.raises(DataError, match="reads the documents of its plan itself; put no"):
            step(iter(["a document"]))
    assert len(planned.missing()) == N_SHARDS
