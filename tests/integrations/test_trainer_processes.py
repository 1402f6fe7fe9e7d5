"""The callback in trainings on several processes, run for real on two that talk over gloo."""

import json
from pathlib import Path

import pandas as pd
import pytest
from packaging.version import Version

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.integrations.trainer import StepEvaluator, read_curve
from tests.integrations.processes import OPTIONS, run_on_two, train_and_evaluate

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Folder of what the processes wrote."""
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def processes(tiny_model: Path, folder: Path) -> list[dict]:
    """What each process told of its work."""
    texts = [
        f"Q: {question.question} A: {question.triple.answers[0]}\n"
        for question in load_sample().questions
        if question.surface.is_canonical
    ][:6]
    return run_on_two(train_and_evaluate, folder, tiny_model=tiny_model, out=folder, texts=texts)


def test_training_on_two_processes_has_one_course(processes, folder):
    first, second = (each["train"] for each in processes)

    assert first["wrapped"] == second["wrapped"] == "DistributedDataParallel"
    assert [row["step"] for row in first["log"]] == [0, 1, 2]
    # As JSON, since undefined bounds are NaN.
    assert json.dumps(first["log"]) == json.dumps(second["log"])
    assert first["best"] == second["best"]
    assert first["best"][0] is not None
    # transformers 4 keeps no step where only the best is saved.
    if Version(transformers.__version__) >= Version("5"):
        assert first["best"][1] in (1, 2)
    assert first["written"] == [f"00000000{step}.parquet" for step in (0, 1, 2)]
    assert second["written"] == []
    assert first["is_left"] == second["is_left"] == [True] * 3
    assert first["weights"] == second["weights"]
    assert read_curve(folder / "train")["step"].tolist() == [0, 1, 2]
    frame = pd.read_parquet(folder / "train" / "steps" / "000000002.parquet")
    assert frame["pair_id"].is_unique
    assert frame["first_prediction"].notna().all()


def test_processes_ask_a_part_each_and_find_what_one_finds(
    processes, folder, tiny_model: Path, tmp_path: Path
):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    alone = StepEvaluator("sample", out=tmp_path, options=OPTIONS)

    expected = alone.evaluate(model, tokenizer, step=0)

    found = processes[0]["share_out"]["whole"]
    assert {**found, "seconds": 0} == pytest.approx({**expected, "seconds": 0}, nan_ok=True)
    parts = [each["share_out"]["n_asked"] for each in processes]
    assert abs(parts[0] - parts[1]) <= 1
    assert sum(parts) == found["n_pairs"] + OPTIONS["limit"]
    name = "steps/000000000.parquet"
    frames = [pd.read_parquet(place / name) for place in (folder / "share_out/whole", tmp_path)]
    pd.testing.assert_frame_equal(*frames)


def test_weights_that_are_shared_out_answer_as_a_whole_model(processes, folder):
    first, second = ({**each["share_out"], "n_asked": 0} for each in processes)

    assert json.dumps(first) == json.dumps(second)
    whole = pd.read_parquet(folder / "share_out" / "whole" / "steps" / "000000000.parquet")
    assert whole["first_prediction"].nunique() > 1
    for name in ("fully_shard", "FullyShardedDataParallel"):
        expected = {**first["whole"], "seconds": 0}
        assert {**first[name], "seconds": 0} == pytest.approx(expected, nan_ok=True)
        shared = pd.read_parquet(folder / "share_out" / name / "steps" / "000000000.parquet")
        pd.testing.assert_frame_equal(shared, whole)


def test_a_process_that_fails_tells_the_others(processes):
    first, second = (each["fail"] for each in processes)

    assert second["known"] == "RunnerOutOfMemoryError: too large"
    assert first["known"] == "SurfaceConsistencyError: process 1: RunnerOutOfMemoryError: too large"
    assert second["unknown"] == "ValueError: a bug"
    assert first["unknown"] == "RuntimeError: process 1: ValueError: a bug"
    assert first["write"] == "OSError: the disk is full"
    assert second["write"] == "RuntimeError: process 0: OSError: the disk is full"
    assert first["afterwards"] == second["afterwards"] == "went on"
    for name in ("start", "start shared out"):
        assert "holds the steps of another training" in first[name]
        assert second[name].startswith("SurfaceConsistencyError: process 0: DataError")
