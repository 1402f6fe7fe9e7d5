"""Tests of the tasks of lm-evaluation-harness: numbers, prompts, limits and invalid input."""

import hashlib
import json
import math
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.data.sources import SAMPLES
from surface_consistency.engine.score import score_files
from surface_consistency.errors import DataError, DataWarning, SurfaceConsistencyWarning
from surface_consistency.integrations.harness import lm_eval_path
from surface_consistency.integrations.paired_task import PairedTask, to_verdicts
from surface_consistency.metrics import momentum, position_curve
from surface_consistency.metrics.positions.topic_layout import topic_arrays
from surface_consistency.studies.redirectqa import RedirectQAStudy
from tests.integrations.planted import DATA, NAMES, expected, last_question, reply

pytest.importorskip("lm_eval")

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


WARNING = "surface_consistency.errors"
incomplete = pytest.mark.filterwarnings(f"ignore:.* pairs are incomplete:{WARNING}.DataWarning")
unscored = pytest.mark.filterwarnings(f"ignore::{WARNING}.UnscoredWarning")
undefined = pytest.mark.filterwarnings(f"ignore::{WARNING}.UndefinedMetricWarning")

ENDS = ("", "_low", "_high")


@pytest.fixture(autouse=True)
def _without_environment_info(monkeypatch):
    """Listing packages and hardware takes longer than a task of these tests."""
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)


class PlantedLM(LM):
    """Returns planned answers and stores the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple] = []

    tokenizer_name = "planted"

    def generate_until(self, requests):
        self.asked += [request.args for request in requests]
        return [self.write(request.args[0]) for request in requests]

    def write(self, prompt):
        return f" {reply(last_question(prompt))}"

    def loglikelihood(self, requests):
        self.asked += [request.args for request in requests]
        return [(-float(len(option)), False) for _, option in (r.args for r in requests)]

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        return json.dumps(chat_history)

    def chat_template(self, chat_template=False):
        return "json"


def run(task: str, options: dict | None = None, *, model=None, **given):
    """Run one task of this package; return its results and the samples."""
    study = task.partition("_")[0]
    manager = TaskManager(
        include_path=str(lm_eval_path()),
        include_defaults=False,
        metadata={study: {"source": "sample", **(options or {})}},
    )
    found = simple_evaluate(
        model=model or PlantedLM(), tasks=[task], task_manager=manager, bootstrap_iters=10, **given
    )
    numbers = {
        name.removesuffix(",none"): value
        for name, value in found["results"][task].items()
        if name.endswith(",none")
    }
    return numbers, found["samples"][task]


@pytest.fixture(scope="module")
def planted():
    """Run all documents of the sample with planned answers."""
    model = PlantedLM()
    numbers, samples = run("redirectqa", {"shots": 3, "intervals": True}, model=model)
    return model, numbers, samples


def test_metrics_of_the_task_equal_paired_by_exactly(planted):
    row = expected()

    for name, column in NAMES.items():
        for end in ENDS:
            assert planted[1][name + end] == row[column + end]
    assert planted[1]["p_value"] == row["p_value"]
    assert (planted[1]["n_pairs"], planted[1]["n_clusters"]) == (row["n"], row["n_clusters"])
    assert 0.2 < planted[1]["consistency"] < 0.8
    assert planted[1]["consistency_stderr"] == "N/A"


@incomplete
@pytest.mark.parametrize(("accuracy", "warns"), [(0.01, True), (0.3, False)])
def test_table_starts_with_consistency_and_notes_low_accuracy(monkeypatch, capsys, accuracy, warns):
    import lm_eval.__main__
    import lm_eval.utils

    numbers, _ = run("redirectqa", {"shots": 0}, limit=8)
    assert "consistency" in numbers
    assert not [name for name in numbers if name.endswith(("_low", "_high"))]
    passed = {"acc,none": accuracy, **{f"{name},none": value for name, value in numbers.items()}}
    passed |= {"accuracy_canonical,none": accuracy, "accuracy_redirect,none": accuracy / 2}
    results = {
        "results": {"redirectqa": passed, "other": {"acc,none": 0.5}},
        "versions": {},
        "higher_is_better": {"redirectqa": {"consistency": True}},
    }
    before = lm_eval.utils.make_table
    monkeypatch.setattr(
        lm_eval.__main__, "cli_evaluate", lambda: print(lm_eval.utils.make_table(results))
    )

    assert main(["lm-eval", "run"]) == 0

    assert lm_eval.utils.make_table is before
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")] for line in printed.splitlines()]
    [first] = [row for row in rows if row[1:2] == ["redirectqa"]]
    assert first[5:7] == ["consistency", "↑"]
    assert ("the model is almost never correct (accuracy_canonical 0.0100" in printed) == warns


def test_members_of_a_pair_share_their_demonstrations_and_answers_end_at_the_newline(planted):
    shots = {}
    for sample in planted[2]:
        shown = sample["arguments"][0][0].rpartition("Q: ")[0]
        assert shown.count("Q: ") == 3
        assert shots.setdefault(sample["doc"]["item"], shown) == shown
    decoding = {name: planted[0].asked[0][1][name] for name in ("until", "max_gen_toks")}
    assert decoding == {"until": ["\n"], "max_gen_toks": 15}
    assert planted[0].asked[0][1]["do_sample"] is False


@pytest.mark.parametrize("layout", ["lines", "array", "named arguments"])
def test_score_reads_samples_of_any_version_with_equal_results(planted, tmp_path: Path, layout):
    file = tmp_path / "samples_redirectqa_2026-11-22T07-51-52.795344.jsonl"
    samples = [*planted[2]]
    if layout == "named arguments":
        named = [{"gen_args_0": dict(enumerate(one["arguments"][0]))} for one in samples]
        samples = [one | {"arguments": passed} for one, passed in zip(samples, named, strict=True)]
    lines = [json.dumps(sample, ensure_ascii=False) for sample in samples]
    text = json.dumps(samples, indent=2) if layout == "array" else "\n".join(lines)
    file.write_text(text + "\n", encoding="utf-8")

    score_files(RedirectQAStudy(), DATA, [file], tmp_path / "out")

    scored = pd.read_parquet(tmp_path / "out" / "outcomes.parquet")
    assert (scored["first_correct"] == scored["second_correct"]).mean() == planted[1]["consistency"]


@unscored
def test_score_reads_multiple_choice_samples_with_the_labels_of_the_harness(tmp_path: Path):
    _, samples = run("redirectqa_mc", {"options": 3, "shots": 0}, limit=30)
    lines = []
    for sample in samples:
        arguments = {
            f"gen_args_{n}": {"arg_0": context, "arg_1": option}
            for n, (context, option) in enumerate(sample["arguments"])
        }
        passed = [[str(value), str(greedy)] for ((value, greedy),) in sample["resps"]]
        texts = {"resps": [[pair] for pair in passed], "filtered_resps": passed}
        lines.append(json.dumps(sample | {"arguments": arguments} | texts))
    file = tmp_path / "samples_redirectqa_mc_2026-11-22T07-51-52.795344.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    with pytest.warns(SurfaceConsistencyWarning, match=r"3 of 30 samples .*\(a tie\)"):
        score_files(RedirectQAStudy(), DATA, [file], tmp_path / "out")

    verdicts = pd.read_parquet(tmp_path / "out" / "verdicts.parquet")
    by_id = verdicts.set_index("target_id")["correct"]
    known = {s["doc"]["id"]: s["acc"] for s in samples if s["acc"] is not None}
    assert len(known) > 5
    assert {name: float(by_id[name]) for name in known} == known
    assert by_id[[s["doc"]["id"] for s in samples if s["acc"] is None]].isna().all()


def test_samples_of_several_tasks_raise_an_error_with_their_names(tmp_path: Path):
    tasks, date = ("redirectqa", "redirectqa_mc"), "2026-11-22T07-51-52.795344.jsonl"
    files = [tmp_path / f"samples_{task}_{date}" for task in tasks]

    with pytest.raises(DataError, match=r"samples of 2 tasks .*redirectqa_mc"):
        score_files(RedirectQAStudy(), DATA, files, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@incomplete
@undefined
def test_pairs_that_a_limit_makes_incomplete_are_counted_and_reported(monkeypatch):
    model = PlantedLM()
    with pytest.warns(DataWarning, match="1 of 14 pairs are incomplete") as caught:
        numbers, samples = run("redirectqa", limit=20, num_fewshot=1, model=model)
    monkeypatch.setattr(PlantedLM, "write", lambda self, prompt: "no")
    alone, asked_alone = run("redirectqa_paraphrase", limit=1)

    asked = {sample["doc"]["id"] for sample in samples}
    pairs = PairedTask.load("redirectqa", {"source": "sample"}).pairs
    members = zip(pairs["first_target"], pairs["second_target"], strict=True)
    n_members = [len(asked & set(pair)) for pair in members]
    assert numbers["n_cut"] == n_members.count(1) == 1
    assert numbers["n_pairs"] == n_members.count(2) == 13
    assert len([each for each in caught if each.category is DataWarning]) == 1
    assert {prompt.count("Q: ") for prompt, _ in model.asked} == {2}
    # If no pair is complete, all numbers are NaN.
    assert math.isnan(alone["consistency"])
    assert alone["n_pairs"] == 0
    assert all(":paraphrase:" in sample["doc"]["id"] for sample in asked_alone)


@unscored
def test_multiple_choice_returns_the_most_probable_option():
    numbers, samples = run("redirectqa_mc", {"options": 3, "shots": 0}, limit=30)

    for sample in samples:
        options = [arguments[1] for arguments in sample["arguments"]]
        assert len(options) == 3
        assert all(option.startswith(" ") for option in options)
        shortest, second = (option.strip() for option in sorted(options, key=len)[:2])
        right = any(shortest == answer for answer in sample["doc"]["possible_answers"])
        # Two options of equal length are equally probable, so that neither is chosen.
        assert sample["acc"] == (None if len(shortest) == len(second) else float(right))
    assert 0 < sum(sample["acc"] is None for sample in samples) < len(samples)
    assert 0 < numbers["acc"] < 1


@unscored
@undefined
def test_slaq_pairs_short_with_long_answers(monkeypatch):
    task = PairedTask.load("slaq", {"source": "sample"})
    topic = task.documents[0].cluster
    n = sum(document.cluster == topic for document in task.documents)
    answers = task.targets.set_index("prompt_id")["references"]
    texts = {
        task.prompt(name, chat=False).text: str(answers[name][0])
        for name in answers.index[~answers.index.duplicated(keep=False)]
    }
    monkeypatch.setattr(PlantedLM, "write", lambda self, prompt: texts.get(prompt, "Nothing."))
    numbers, samples = run("slaq", limit=n)

    rates = ("accuracy_short", "accuracy_long", "only_short", "n_clusters")
    assert [numbers[name] for name in rates] == [1, 0, 1, 1]
    assert numbers["n_pairs"] + numbers["n_unscored"] == 25
    decoding = [sample["arguments"][0][1] for sample in samples]
    assert {(one["max_gen_toks"], *one["until"]) for one in decoding} == {(64, "\n"), (512,)}


@pytest.fixture(scope="module")
def slaq():
    """Return the task of SLAQ, and a model that omits planned answers."""
    options = {"source": "sample", "all_facts": True, "judge_part": "whole"}
    task = PairedTask.load("slaq", options)
    answers = {}
    for name, part in task.targets.groupby("prompt_id"):
        known = [
            f"It is {right[0]}."
            for target, right in zip(part["target_id"], part["references"], strict=True)
            if hashlib.sha256(target.encode()).digest()[0] % 3
        ]
        answers[task.prompt(name, chat=False).text] = " ".join(known) or "Nothing."
    return task, options, answers


def test_slots_and_momentum_of_the_task_equal_the_metrics_exactly(slaq, monkeypatch):
    task, options, answers = slaq
    monkeypatch.setattr(PlantedLM, "write", lambda self, prompt: answers[prompt])

    numbers, samples = run("slaq", options | {"intervals": True})

    replies = {sample["doc"]["id"]: sample["resps"][0][0] for sample in samples}
    frame = task.outcomes(task.judge(replies), model="planted")
    arrays = topic_arrays(frame, question="item")
    curve = position_curve(arrays["slots"], arrays["orders"])
    for point in curve.itertuples():
        found = tuple(numbers[f"accuracy_slot_{point.slot}{end}"] for end in ENDS)
        assert found == (point.accuracy, point.accuracy_low, point.accuracy_high)
        found = tuple(numbers["slot_slope" + end] for end in ENDS)
        assert found == (point.slope, point.slope_low, point.slope_high)
    points, slopes = momentum(arrays["slots"], orders=arrays["orders"], null="topic-and-slot")
    words = {1: "right", 0: "wrong"}
    assert sorted(slopes["streak"]) == [0, 1]
    assert set(points["streak"]) == {0, 1}
    for point in points.itertuples():
        name = f"accuracy_after_{words[point.streak]}_{point.length}"
        found = tuple(numbers[name + end] for end in ENDS)
        wanted = (point.probability, point.probability_low, point.probability_high)
        assert found == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)
    for row in slopes.itertuples():
        name = f"slope_after_{words[row.streak]}"
        assert numbers[name] == row.slope
        assert numbers[f"{name}_low"] == row.slope_low
        assert numbers[f"{name}_p_value"] == row.p_value
        assert numbers["momentum_p_value"] == row.band_p_value
    assert (numbers["n_slot_topics"], numbers["n_responses"]) == (24, 120)
    assert 0 < numbers["order_disagreement_low"] < numbers["order_disagreement"] < 1
    # A sample contains its labels only under the metric of their slot.
    long = next(sample for sample in samples if sample["doc"]["question"] is None)
    assert re.fullmatch(r"\d of 5 correct", long["accuracy_slot_1"])


def test_topic_that_a_limit_makes_incomplete_is_excluded_and_reported(slaq, monkeypatch):
    task, options, answers = slaq
    monkeypatch.setattr(PlantedLM, "write", lambda self, prompt: answers[prompt])
    first = task.documents[0].cluster
    n = sum(document.cluster == first for document in task.documents)

    with pytest.warns(DataWarning, match=r"by topics also exclude the incomplete ones \(1\)"):
        numbers, _ = run("slaq", options, limit=2 * n - 1)

    counts = ("n_slot_topics", "n_responses", "n_clusters", "n_cut")
    assert [numbers[name] for name in counts] == [1, 5, 2, 5]


@incomplete
@undefined
@pytest.mark.parametrize(("as_turns", "n_turns"), [(True, 6), (False, 2)])
def test_chat_template_receives_demonstrations_as_turns_or_one_text(monkeypatch, as_turns, n_turns):
    model = PlantedLM()
    monkeypatch.setattr(PlantedLM, "write", lambda self, prompt: "no")
    as_chat = {"apply_chat_template": True, "system_instruction": "Be short."}
    as_chat["fewshot_as_multiturn"] = as_turns
    run("redirectqa", {"shots": 2}, model=model, limit=1, **as_chat)

    turns = json.loads(model.asked[0][0])
    assert turns[0] == {"role": "system", "content": "Be short."}
    assert len(turns) == n_turns
    # A chat template raises an error, or drops the turn, if the roles do not alternate.
    alternating = ["user", "assistant"] * 3
    assert [turn["role"] for turn in turns[1:]] == alternating[: n_turns - 1]
    assert "".join(turn["content"] for turn in turns).count("Q: ") == 3


@incomplete
def test_task_reads_a_folder_in_the_layout_of_the_hub(tiny_model: Path):
    source = {"source": str(SAMPLES / "redirectqa")}
    loaded = {"pretrained": str(tiny_model), "dtype": "float32"}
    how = {"device": "cpu", "batch_size": 8, "limit": 8, "num_fewshot": 1}
    numbers, samples = run("redirectqa", source, model="hf", model_args=loaded, **how)

    task = PairedTask.load("redirectqa", source)
    judged = task.judge({sample["doc"]["id"]: sample["resps"][0][0] for sample in samples})
    again = task.numbers(to_verdicts(judged))
    assert numbers["consistency"] == again["consistency"]


def test_command_runs_the_harness_with_the_include_path(monkeypatch, capsys):
    import lm_eval.__main__

    passed: list[list[str]] = []
    monkeypatch.setattr(lm_eval.__main__, "cli_evaluate", lambda: passed.append(sys.argv))

    assert main(["lm-eval", "run", "--tasks", "redirectqa"]) == 0
    assert main(["lm-eval-path"]) == 0

    path = capsys.readouterr().out.strip()
    assert passed == [["lm_eval", "run", "--tasks", "redirectqa", "--include_path", path]]
    tasks = {file.stem for file in Path(path).glob("*.yaml")}
    assert tasks == {"forms", "redirectqa", "redirectqa_mc", "redirectqa_paraphrase", "slaq"}
    assert main(["lm-eval", "run", "--include_path", "x"]) == 2
    assert "--include_path is set by this command" in capsys.readouterr().err
    assert main(["lm-eval-path", "--out"]) == 2
    assert "does not accept '--out'" in capsys.readouterr().err


def test_task_rejects_unknown_keys_options_and_metadata(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(
        f"include: {lm_eval_path()}/redirectqa.yaml\ntask: mine\ndoc_to_text: x\n"
    )
    metadata = {"slaq": "sample", "redirectqa": {"shot": 3}}
    mine = TaskManager(include_path=str(tmp_path), include_defaults=False)
    ours = TaskManager(include_path=str(lm_eval_path()), include_defaults=False, metadata=metadata)

    for manager, name, message in (
        (mine, "mine", "task mine: unknown key 'doc_to_text'"),
        (ours, "slaq", "metadata 'slaq' is 'sample'; give a mapping"),
        (ours, "redirectqa", r"no option 'shot' \(did you mean 'shots'\?\)"),
    ):
        with pytest.raises(ValueError, match=message):
            manager.load([name])
