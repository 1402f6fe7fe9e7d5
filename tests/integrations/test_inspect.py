"""The tasks of inspect_ai: entry point, metrics and logs."""

import gc
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.engine.score import score_files
from surface_consistency.errors import DataError, MissingDependencyError
from surface_consistency.integrations import extras
from surface_consistency.integrations.inspect_tasks import register
from surface_consistency.integrations.paired_task import PairedTask
from surface_consistency.metrics import paired_by
from surface_consistency.studies.redirectqa import RedirectQAStudy
from tests.integrations.planted import BY_QUESTION, DATA, NAMES, expected, last_question, reply

pytest.importorskip("inspect_ai")

import inspect_ai
from inspect_ai.model import ModelAPI, ModelOutput, modelapi

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


N_FACTS = 12


class PlantedAPI(ModelAPI):
    """Returns planned answers; the mock model of inspect_ai downloads a tokenizer."""

    async def generate(self, input, tools, tool_choice, config):
        question = last_question(input[-1].text)
        if question not in BY_QUESTION:
            return ModelOutput.from_content("planted", "Athens")
        assert (config.max_tokens, config.temperature, len(input)) == (15, 0.0, 3)
        return ModelOutput.from_content("planted", reply(question))

    async def count_tokens(self, input, config=None):
        return 1

    count_text_tokens = count_tokens


@modelapi(name="planted")
def planted_api():
    return PlantedAPI


@pytest.fixture(scope="module", autouse=True)
def _collect_open_files():
    """Close files that inspect_ai leaves open while its warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory):
    """The log of redirectqa on the sample, run by its entry point name."""
    found = inspect_ai.eval(
        "surface_consistency/redirectqa",
        model="planted/model",
        task_args={"source": "sample", "shots": 1, "limit": N_FACTS},
        log_dir=str(tmp_path_factory.mktemp("logs")),
        display="none",
    )[0]
    assert found.status == "success", found.error
    return found


def test_entry_point_registers_all_tasks_scorers_and_metrics():
    (point,) = [p for p in entry_points(group="inspect_ai") if p.name == "surface_consistency"]

    assert set(point.load()) == {
        *("redirectqa", "slaq", "forms", "paired_verdicts", "paired_numbers"),
        *("match", "consistency"),
    }


@pytest.mark.parametrize("name", ["redirectqa", "slaq"])
def test_stop_strings_of_tasks_equal_those_of_the_study(name, monkeypatch):
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "planted/model")
    options = {"source": "sample", "limit": 3}
    task = register()[name](**options)
    study = PairedTask.load(name, options, tool="inspect_ai")

    stop = study.params(str(task.dataset[0].id)).stop
    assert task.config.stop_seqs == (list(stop) or None)


def test_metrics_of_the_log_equal_paired_by_exactly(log):
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    row = expected(N_FACTS)

    for name, column in NAMES.items():
        for end in ("", "_low", "_high"):
            assert metrics[name + end] == row[column + end]
    assert metrics["stderr"] > 0
    assert metrics["n_cut"] == 0


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_score_of_the_log_gives_the_same_interval(log, tmp_path: Path, suffix):
    file = Path(log.location.removeprefix("file://"))
    if suffix == ".json":
        file = tmp_path / "log.json"
        inspect_ai.log.write_eval_log(log, str(file))

    data = DATA.select(limit=N_FACTS)
    (folder,) = score_files(RedirectQAStudy(), data, [file], tmp_path / "out")

    row = paired_by(pd.read_parquet(folder.outcomes), cluster="subject_id").iloc[0]
    assert row["consistency_low"] == expected(N_FACTS)["consistency_low"]


def test_log_of_an_unknown_task_is_rejected_by_name(tmp_path: Path):
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match

    asked = Sample(id="1", input="Q: What is Greece's capital? A:", target="Athens")
    task = inspect_ai.Task(dataset=[asked], scorer=match(), name="capitals")
    log = inspect_ai.eval(task, model="planted/model", log_dir=str(tmp_path), display="none")[0]
    assert log.status == "success", log.error
    file = Path(log.location.removeprefix("file://"))

    with pytest.raises(DataError, match=r"the log of the task 'capitals', names"):
        score_files(RedirectQAStudy(), DATA, [file], tmp_path / "out")


def test_multiple_choice_and_a_missing_inspect_ai_are_rejected(monkeypatch):
    read = {"source": "sample", "read": "multiple-choice", "options": 3}
    task, model = "surface_consistency/redirectqa", "planted/model"
    with pytest.raises(ValueError, match="read=multiple-choice needs the probabilities of opt"):
        inspect_ai.eval(task, model=model, task_args=read, display="none")

    def missing(name):
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "version", missing)
    register.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[inspect\]"):
        register()


# stderr(cluster=) of inspect_ai divides 0 by 0 if the limit leaves one cluster.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning:inspect_ai.scorer")
@pytest.mark.parametrize("place", [0, 1])
def test_documented_commands_run_on_a_local_model(place, tiny_model: Path, tmp_path: Path):
    from inspect_ai._cli.main import inspect as command

    guide = Path(__file__).parents[2] / "docs" / "guides" / "harnesses.md"
    lines = re.findall(r"^inspect (eval .*)$", guide.read_text(encoding="utf-8"), re.MULTILINE)
    words = shlex.split(lines[place])
    words[words.index("--model") + 1] = "hf/local"
    words += ["-M", f"model_path={tiny_model}", "-M", "device=cpu", "--limit", "4"]
    words += ["--log-dir", str(tmp_path), "--display", "none"]

    command.main(words, standalone_mode=False)

    [file] = tmp_path.glob("*.eval")
    read = inspect_ai.log.read_eval_log(str(file))
    assert read.status == "success", read.error
    assert (read.plan.config.top_k, read.plan.config.temperature) == (1, None)
    assert "consistency" in read.results.scores[0].metrics
