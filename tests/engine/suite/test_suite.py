"""Suites: what a file says, what runs, what fails alone, and the same in tasks and shards."""

import json
import os
import warnings
from pathlib import Path

import pandas as pd
import pytest

import surface_consistency
from surface_consistency import FakeRunner
from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_sample
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.suite.file import read_suite
from surface_consistency.engine.suite.runs import run_suite, suite_states
from surface_consistency.engine.suite.steps import SuiteMergeStep, SuiteStep
from surface_consistency.errors import DataError, RunnerError, SourceNotFoundError
from surface_consistency.plugins import importable
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import read_generations

SHIPPED = Path(surface_consistency.__file__).parent / "studies" / "redirectqa" / "suites"

FILE = """
title = "Three models"

[[studies]]
study = "redirectqa"
source = "sample"
limit = 2
repeat = 3
shots = 0
answers = 0
agreement = false

[[models]]
label = "knowing"
model = "knowing"
runner = "{runner}"

[[models]]
label = "broken"
model = "broken"
runner = "{runner}"

[[models]]
label = "ignorant"
model = "ignorant"
runner = "{runner}"
"""


class Answerer(FakeRunner):
    """Knows all, or nothing, or cannot be loaded."""

    loaded: list[str] = []  # noqa: RUF012 - what was loaded, for the test
    is_mended = False

    def __init__(self, model, **options):
        self.loaded.append(model)
        if model == "broken" and not self.is_mended:
            raise RunnerError("this model does not fit into memory")
        answers = {q.question: q.triple.answers[0] for q in load_sample().questions}
        super().__init__(
            lambda prompt: (
                f" {answers[prompt.text.removeprefix('Q: ').removesuffix(' A:')]}"
                if model == "knowing"
                else " dunno"
            )
        )
        self.model = model

    def fingerprint(self):
        return {"runner": "answerer", "model": self.model}


@pytest.fixture(autouse=True)
def named():
    """Let suites name the runner of this file, as if a person had on the command line."""
    with importable(f"{__name__}:Answerer"):
        yield


def write(folder, text=FILE):
    path = folder / "suite.toml"
    path.write_text(text.replace("{runner}", f"{__name__}:Answerer"))
    return path


@pytest.fixture
def file(tmp_path):
    Answerer.loaded.clear()
    return write(tmp_path)


@pytest.fixture
def no_page(monkeypatch):
    """Leave out the pages, which take most of the time."""
    for module in ("runs", "steps"):
        monkeypatch.setattr(f"surface_consistency.engine.suite.{module}.report_suite", suite_states)


def states_of(suite, out):
    return {one.cell.label: one.state for one in suite_states(suite, out)}


def test_one_failure_does_not_stop_the_rest_and_a_second_start_mends_it(
    file, tmp_path, capsys, monkeypatch
):
    """What runs is told first; what is done is not loaded again; the page covers all."""
    out = tmp_path / "out"

    assert main(["suite", str(file), "--out", str(out)]) == 2
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["new", "redirectqa", "knowing"],
        ["new", "redirectqa", "broken"],
        ["new", "redirectqa", "ignorant"],
    ]
    assert "2 done, 1 failed" in printed
    told = json.loads((out / "redirectqa" / "knowing" / "cell.json").read_text())
    assert (told["study"], told["settings"]["limit"]) == ("redirectqa", 2)
    assert "failed: redirectqa/broken: this model does not fit into memory" in printed
    assert Answerer.loaded == ["knowing", "broken", "ignorant"]
    overall = pd.read_csv(out / "redirectqa" / "tables" / "overall.csv").set_index("model")
    assert overall["first_accuracy"].to_dict() == {"knowing": 1, "ignorant": 0}

    monkeypatch.setattr(Answerer, "is_mended", True)
    assert main(["suite", str(file), "--out", str(out)]) == 0
    assert Answerer.loaded == ["knowing", "broken", "ignorant", "broken"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "3 of 3 runs are done." in page
    assert '<a href="redirectqa/report.html">the whole page</a>' in page


@pytest.mark.usefixtures("no_page")
def test_tasks_with_shards_make_the_same_runs(file, tmp_path):
    """Two shards in three tasks, then merged: answers and verdicts are those of one run."""
    text = file.read_text().split("[[models]]")
    file.write_text("[[models]]".join(text[:3]))
    suite = read_suite(file)
    run_suite(suite, tmp_path / "one", progress=False)

    for rank in range(3):
        SuiteStep(file, tmp_path / "many", shards=2)(None, rank=rank, world_size=3)
    SuiteMergeStep(file, tmp_path / "many", shards=2)(None)

    assert states_of(suite, tmp_path / "many") == states_of(suite, tmp_path / "one")
    folders = [RunFolder.open(tmp_path / n / "redirectqa" / "knowing") for n in ("one", "many")]
    for repeat in (False, True):
        answers = [
            {(g.prompt_key, g.text) for g in read_generations(folder.log(repeat=repeat))}
            for folder in folders
        ]
        assert answers[0] == answers[1]
    frames = [pd.read_parquet(folder.outcomes) for folder in folders]
    assert frames[0].equals(frames[1])
    broken = next(s for s in suite_states(suite, tmp_path / "many") if s.cell.label == "broken")
    assert broken.why == "this model does not fit into memory"


@pytest.mark.usefixtures("no_page")
def test_a_lost_task_is_told_and_asked_again(file, tmp_path):
    """Of three tasks one never ran: the merge names its shards, a second start asks them."""
    text = file.read_text().split("[[models]]")
    file.write_text("[[models]]".join(text[:2]))
    suite = read_suite(file)
    step = SuiteStep(file, tmp_path / "out", shards=3)
    for rank in (0, 2):
        step(None, rank=rank, world_size=3)

    SuiteMergeStep(file, tmp_path / "out", shards=3)(None)
    (lost,) = suite_states(suite, tmp_path / "out")
    step(None, rank=1, world_size=3)
    SuiteMergeStep(file, tmp_path / "out", shards=3)(None)

    assert lost.state == "failed"
    assert "not asked to the end" in lost.why
    assert states_of(suite, tmp_path / "out") == {"knowing": "done"}


@pytest.mark.usefixtures("no_page")
def test_a_merge_tells_why_a_shard_failed_and_not_what_it_lacks(file, tmp_path):
    """The first shard that failed says it, whichever that is."""
    text = file.read_text().split("[[models]]")
    file.write_text("[[models]]".join(text[:2]))
    SuiteStep(file, tmp_path / "out", shards=3)(None, rank=0, world_size=3)
    for number, why in ((1, "the memory was full"), (2, "the server was gone")):
        shard = tmp_path / f"out/redirectqa/knowing/shards/{number:05d}-of-00003"
        shard.mkdir()
        (shard / "failed.txt").write_text(f"{why}\n")

    SuiteMergeStep(file, tmp_path / "out", shards=3)(None)

    (lost,) = suite_states(read_suite(file), tmp_path / "out")
    assert (lost.state, lost.why) == ("failed", "the memory was full")


@pytest.mark.usefixtures("no_page")
def test_the_local_executor_runs_a_suite(file, tmp_path, capsys):
    """The same by datatrove, from the command line."""
    pytest.importorskip("datatrove")
    text = file.read_text().split("[[models]]")
    file.write_text("[[models]]".join(text[:2]))
    words = ["suite", str(file), "--out", str(tmp_path / "out"), "--tasks", "2", "--shards", "2"]

    with warnings.catch_warnings(action="ignore"):  # Of the executor's libraries.
        assert main([*words, "--devices", "cuda:0", "cuda:1"]) == 0

    printed = capsys.readouterr().out
    assert "1 done" in printed
    assert "each run in 2 shards" in printed


@pytest.mark.usefixtures("no_page")
def test_a_task_takes_a_device_that_no_other_holds(file, tmp_path, monkeypatch):
    """The second task finds the first device held; a third shares; runners of servers get none."""
    file.write_text("[[models]]".join(file.read_text().split("[[models]]")[:2]))
    given: list[object] = []
    monkeypatch.setattr(ModelSettings, "load", lambda self, study, **more: given.append(more))
    steps = [
        SuiteStep(file, tmp_path / "out", devices=["cuda:0", "cuda:1"], shards=n) for n in (1, 2, 3)
    ]

    with steps[0]._device(0) as first, steps[1]._device(2) as second, steps[2]._device(4) as third:
        pass
    with steps[0]._device(1):
        steps[1](None, rank=1, world_size=2)
    file.write_text(file.read_text().replace(f"{__name__}:Answerer", "openai"))
    SuiteStep(file, tmp_path / "other", devices=["cuda:0"])(None)

    assert (first, second, third) == ("cuda:0", "cuda:1", "cuda:0")
    assert given[0] == {"device": "cuda:0"}
    assert given[1:] == [{}]


SBATCH = """#!/bin/bash
cp "${@: -1}" "$FAKE/job-$(ls "$FAKE" | wc -l)"
echo "$@" >> "$FAKE/../calls"
echo "Submitted batch job $(ls "$FAKE" | wc -l)"
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A scheduler that writes down what it is given; its tasks are run here, one by one."""
    pytest.importorskip("datatrove")
    import dill

    jobs, programs = tmp_path / "jobs", tmp_path / "bin"
    jobs.mkdir()
    programs.mkdir()
    for name, text in (("sbatch", SBATCH), ("scontrol", '#!/bin/bash\necho "$3"\n')):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE", str(jobs))

    def run(logs, tasks):
        with monkeypatch.context() as inside:
            inside.setenv("SLURM_NODELIST", "here")
            for task in tasks:
                inside.setenv("SLURM_ARRAY_TASK_ID", str(task))
                executor = dill.loads((logs / "executor.pik").read_bytes())
                executor.requeue_signals = ()
                executor.run()

    return jobs, run


@pytest.mark.usefixtures("no_page")
def test_slurm_runs_a_suite_and_merges_after_a_killed_task_too(file, tmp_path, slurm):
    """An array of the shards, a merge that waits for it; what was lost is asked by a second job."""
    from datatrove.executor import SlurmPipelineExecutor

    file.write_text("[[models]]".join(file.read_text().split("[[models]]")[:2]))
    jobs, run = slurm
    how = {"time": "01:00:00", "partition": "gpu", "skip_completed": False}

    def submit():
        ask = SlurmPipelineExecutor(
            [SuiteStep(file, tmp_path / "out", shards=2)],
            tasks=2,
            gpus_per_task=1,
            logging_dir=str(tmp_path / "ask"),
            **how,
        )
        SlurmPipelineExecutor(
            [SuiteMergeStep(file, tmp_path / "out", shards=2)],
            tasks=1,
            logging_dir=str(tmp_path / "merge"),
            depends=ask,
            run_on_dependency_fail=True,
            **how,
        ).run()

    with warnings.catch_warnings(action="ignore"):  # Of the executor's libraries.
        submit()
        script = (jobs / "job-0").read_text()
        assert "#SBATCH --array=0-1\n" in script
        assert "#SBATCH --gpus=1\n" in script
        assert f"launch_pickled_pipeline {tmp_path / 'ask' / 'executor.pik'}" in script
        calls = (tmp_path / "calls").read_text().splitlines()
        assert "--dependency=afterany:1 " in calls[2]
        run(tmp_path / "ask", [0])
        run(tmp_path / "merge", [0])
        (lost,) = suite_states(read_suite(file), tmp_path / "out")
        assert "shard 00001-of-00002" in lost.why
        submit()
        run(tmp_path / "ask", [0, 1])
        run(tmp_path / "merge", [0])

    assert states_of(read_suite(file), tmp_path / "out") == {"knowing": "done"}
    assert Answerer.loaded == ["knowing"] * 3


@pytest.mark.usefixtures("no_page")
def test_a_changed_suite_does_not_mix_with_what_was_begun(file, tmp_path):
    """The run that differs is told with what differs; the others stay done."""
    out = tmp_path / "out"
    file.write_text("[[models]]".join(file.read_text().split("[[models]]")[:2]))
    run_suite(read_suite(file), out, progress=False)
    file.write_text(file.read_text().replace("shots = 0", "shots = 2"))

    states = run_suite(read_suite(file), out, progress=False)

    assert {one.state for one in states} == {"failed"}
    assert "shots was 0 and is 2" in states[0].why
    assert RunFolder.open(out / "redirectqa" / "knowing").read_manifest().settings["shots"] == 0
    # One that failed is not tried again with settings that its folder was not begun with.
    failed = out / "redirectqa" / "knowing" / "failed.txt"
    failed.write_text("the memory was full\n")
    run_suite(read_suite(file), out, progress=False)
    assert failed.read_text() == "the memory was full\n"


def test_models_revisions_studies_and_variants_are_multiplied(tmp_path):
    """Runs of a model stand together, so that it is loaded once."""
    file = write(
        tmp_path,
        """
        [[studies]]
        study = "redirectqa"
        source = "sample"
        max_new_tokens = 20
        [[studies.variants]]
        name = "none"
        shots = 0
        [[studies.variants]]
        name = "all"
        [[studies]]
        study = "slaq"
        source = "sample"
        [[models]]
        model = "a/b"
        revisions = ["step1", "step2"]
        [[models]]
        model = "c"
        int8 = true
        runner-option = { batch = 3, name = "x" }
        """,
    )

    suite = read_suite(file)

    assert [cell.folder for cell in suite.cells][:4] == [
        "redirectqa/a-b@step1--none",
        "redirectqa/a-b@step1--all",
        "slaq/a-b@step1",
        "redirectqa/a-b@step2--none",
    ]
    assert len(suite.cells) == 9
    assert [cell.settings.shots for cell in suite.cells[:2]] == [0, None]
    assert {cell.settings.max_new_tokens for cell in suite.cells[:2]} == {20}
    assert suite.models[1].options == {"batch": 3, "name": "x", "quantization": "int8"}


def test_revisions_that_are_missing_or_twins_are_told_before_the_start(tmp_path, capsys):
    """The other model is asked all the same."""
    for name, weights in (("step1", "a"), ("step2", "a")):
        folder = tmp_path / "model" / name
        folder.mkdir(parents=True)
        for part, text in (
            ("config.json", "{}"),
            ("tokenizer.json", ""),
            ("w.safetensors", weights),
        ):
            (folder / part).write_text(text)
    models = "".join(
        f"""
        [[models]]
        model = "{tmp_path}/model"
        label = "{label}"
        revisions = ["step1", "{other}"]
        """
        for label, other in (("twins", "step2"), ("missing", "step3"))
    )
    file = write(tmp_path, FILE.partition("[[models]]")[0] + models)

    states = suite_states(read_suite(file), tmp_path / "out")

    assert [one.state for one in states] == ["new", "same weights", "failed", "failed"]
    assert states[1].why == "step1"
    assert "holds no checkpoint 'step3'" in states[3].why
    file.write_text(file.read_text().replace('["step1", "step3"]', '"step3"'))
    assert main(["suite", str(file), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    told = "failed so far: redirectqa/missing@step3: "
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "shots = 0",
            "shosts = 0",
            r"study 1 \(redirectqa\): no key 'shosts'; did you mean 'shots'",
        ),
        ("[[studies]]", "[[study]]", r"no key 'study'; did you mean 'studies'\?"),
        ('label = "broken"', 'lable = "x"', r"model 2: no key 'lable'; did you mean 'label'\?"),
        ("shots = 0", "zzz = 0", r"no key 'zzz'; there are .*limit"),
        ("shots = 0", "shots = -1", r"redirectqa\): shots must be 0 or more, got -1"),
        ("shots = 0", 'shots = "many"', r"redirectqa\): shots: input should be a valid integer"),
        ('= "redirectqa"', '= "redirectq"', r"study 1: no study .*did you mean 'redirectqa'\?"),
        (
            'runner = "{runner}"',
            'runner = "transformer"',
            r"model 1: runner: no runner 'transformer' \(did you mean 'transformers'\?\)",
        ),
        (
            'runner = "{runner}"',
            'dtype = "bf16"',
            "model 1: dtype is one of auto, float32, bfloat16, float16, got 'bf16'",
        ),
        ('study = "redirectqa"', "", "study 1: needs `study`, one of audit"),
        ('label = "broken"', 'label = "knowing"', "two runs are redirectqa/knowing"),
        ('model = "broken"', 'model = "toy_model"', "model 2: a suite asks models that are there"),
        ('model = "broken"', "runner_option = 3", "model 2: runner_option is a table"),
        ('label = "broken"\nmodel = "broken"', "int8 = true", "model 2: needs `model`"),
        ("title =", "title ", "not TOML"),
    ],
)
def test_a_typo_is_named_with_the_nearest_right_key(tmp_path, old, new, message):
    assert old in FILE
    file = write(tmp_path, FILE.replace(old, new, 1))

    with pytest.raises(DataError, match=message):
        read_suite(file)


def test_a_suite_needs_models_and_a_file(tmp_path):
    with pytest.raises(DataError, match=r"holds no \[\[models\]\]"):
        read_suite(write(tmp_path, '[[studies]]\nstudy = "slaq"\n'))
    with pytest.raises(SourceNotFoundError, match="expected a suite there"):
        read_suite(tmp_path / "none.toml")


def test_the_shipped_suite_is_that_of_the_paper(tmp_path, capsys):
    """Thirteen models, those with weights in 8 bits; it is found by its name."""
    suite = read_suite(SHIPPED / "redirectqa.toml")

    assert len(suite.cells) == 13
    assert [model.int8 for model in suite.models] == [True] * 12 + [False]
    assert suite.studies[0].variants[""].template == "both"
    assert main(["suite", "redirectqa", "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 14
    assert not (tmp_path / "out").exists()


def test_options_of_tasks_need_tasks(file, capsys):
    assert main(["suite", str(file), "--out", "x", "--shards", "2"]) == 2
    assert "--shards and --devices are for --tasks" in capsys.readouterr().err
    with pytest.raises(ValueError, match="`shards` is 1 or more"):
        SuiteStep(file, "x", shards=0)


def test_documents_of_a_step_before_are_refused(file, tmp_path):
    for step in (SuiteStep(file, tmp_path), SuiteMergeStep(file, tmp_path)):
        with pytest.raises(DataError, match="put no reader before it"):
            step(iter(["a document"]))


def test_names_of_dots_stay_within_the_folder_of_the_suite(tmp_path):
    path = write(tmp_path, FILE.replace('"broken"', '".."').replace('"knowing"', '"."'))
    path.write_text(
        path.read_text().replace(
            'study = "redirectqa"', '&\nname = ".."'.replace("&", 'study = "redirectqa"')
        )
    )

    assert [cell.folder for cell in read_suite(path).cells] == ["--/-", "--/--", "--/ignorant"]


def test_locks_of_devices_lie_in_a_folder_of_the_user(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    step = SuiteStep(file, tmp_path / "out", devices=["cuda:0", "cuda:1"])

    with step._device(0) as first, step._device(0) as second:
        locks = sorted(path.name for path in (tmp_path / "cache").rglob("*.lock"))
        assert (first, second) == ("cuda:0", "cuda:1")
        assert [name[-7:] for name in locks] == ["-0.lock", "-1.lock"]
