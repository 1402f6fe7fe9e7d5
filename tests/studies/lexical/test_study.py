"""Perturbed benchmarks end to end, with a planted preference and with a tiny model."""

import json
import math
import sys
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.engine import (
    report_runs,
    run_study,
    score_run,
    settings as engine_settings,
)
from surface_consistency.errors import DataError, MissingDependencyError
from surface_consistency.models import FakeRunner
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.studies.lexical.benchmarks import Benchmark, load_benchmark
from surface_consistency.studies.lexical.settings import (
    LexicalScoring,
    LexicalSettings,
    LexicalSource,
)
from surface_consistency.studies.lexical.study import LexicalJudge, LexicalStudy
from tests.made_scores import Scoring
from tests.tiny_models import save_tiny_model

pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")

WORDNET = str(Path(__file__).parent / "perturbation" / "wordnet")

BLIMP = [
    {"sentence_good": f"Some {noun} helped {name}.", "sentence_bad": f"Some {noun}s helps {name}."}
    for noun in ("dog", "apple", "crime", "story")
    for name in ("Mary", "John", "Sue", "Tom", "Liz")
]
PIQA = [
    {"goal": "To choose a dog,", "sol1": "look at it.", "sol2": "eat it.", "label": 0},
    {"goal": "To use an apple,", "sol1": "eat it up.", "sol2": "throw it.", "label": 1},
]
COPA = [
    {"premise": "The man fell.", "choice1": "He slipped.", "choice2": "He slept on it."}
    | {"question": question, "label": label}
    for question, label in (("cause", 0), ("effect", 1))
]
WINOGRANDE = [
    {"sentence": f"Ann gave {thing} to Sue because _ was kind.", "answer": answer}
    | {"option1": "Ann", "option2": "Sue"}
    for thing, answer in (("dogs", "1"), ("cats", "2"), ("a story", "1"))
]
LAMBADA = [{"text": "He had a dog and she had a dog"}, {"text": "They chose a story of the hour"}]


def penalising(*rare):
    """Make a runner that decreases the probability of a text with each of the given words."""

    def fields(request):
        text = request.context + request.continuation
        is_right = "helped" in text or "slipped" in text
        has_rare = any(word in text.lower() for word in rare)
        value = -1.0 if is_right != has_rare else -2.0
        return {"token_ids": (1,), "log_probabilities": (value,), "is_greedy": not has_rare}

    return Scoring(fields)


def data_of(**tasks):
    loaded = [load_benchmark(task, rows) for task, rows in tasks.items()]
    return Benchmark(
        instances=tuple(instance for item in loaded for instance in item.instances),
        source=loaded[0].source,
    )


def blimp_rows():
    return [{**row, "UID": "anaphor_number_agreement"} for row in BLIMP]


def run(data, runner, out, **settings):
    chosen = LexicalSettings(**({"wordnet": WORDNET, "repeat": 0} | settings))
    return run_study(LexicalStudy(), data, runner, out, model="m", settings=chosen)


def test_planted_preference_flips_exactly_the_pairs_with_the_rare_word(tmp_path):
    data = data_of(anaphor_agreement=blimp_rows(), lambada=LAMBADA)
    folder = run(data, penalising("hound", "fellow"), tmp_path / "run", draws=2, repeat=5)
    score_run(folder)
    outcomes = pd.read_parquet(folder.outcomes)
    assert len(outcomes) == 2 * (len(BLIMP) + len(LAMBADA))
    assert outcomes["first_correct"].all()
    has_rare = outcomes["second_surface"].str.contains("hound")
    assert has_rare.any()
    assert (outcomes["second_correct"] == ~has_rare).all()
    apples = outcomes["first_surface"].str.contains("apple")
    assert (outcomes.loc[apples, "replaced"] == "none").all()
    assert not outcomes["is_broken"].any()
    tables = report_runs([folder.path], tmp_path / "report").tables
    lexical = tables["lexical"].frame.set_index("task").loc["anaphor_agreement"]
    shown = lexical[["original", "perturbed", "change", "unchanged"]].tolist()
    assert shown == pytest.approx([1.0, 0.75, -0.25, 0.25])
    data = data_of(anaphor_agreement=blimp_rows())
    plan = LexicalStudy().plan(data, LexicalSettings(wordnet=WORDNET))
    quality = plan.checks["perturbation"]
    assert quality["n_unchanged"].iloc[0] == 5
    assert 0.0 < quality["rouge_l"].iloc[0] < 1.0


def test_llm_judge_and_human_labels_score_the_chosen_options(tmp_path, monkeypatch):
    folder = run(data_of(lambada=LAMBADA), penalising("hound"), tmp_path / "run")
    by_rule = score_run(folder)
    grudging = FakeRunner(lambda prompt: "0")
    monkeypatch.setattr(engine_settings, "load_runner", lambda name, **options: grudging)
    sheet = tmp_path / "sheet.csv"
    scoring = {"labelling_sheet": sheet, "labelling_sample": 100}

    by_model = score_run(folder, scoring=LexicalScoring(judge_model="jay", **scoring))

    assert by_rule["first_correct"].all()
    assert not by_model["first_correct"].any()
    assert by_model["first_log_probability"].equals(by_rule["first_log_probability"])
    against = pd.read_csv(folder.checks / "judge_against_rule.csv").set_index("condition")
    assert against.loc["original", "false_negatives"] == len(LAMBADA)
    labels = pd.read_csv(sheet)
    assert set(labels["condition"]) == {"original", "other words"}
    labels.assign(correct=1).to_csv(sheet, index=False)
    by_people = score_run(folder, scoring=LexicalScoring(judge="human", labels=sheet))
    assert by_people["first_correct"].all()


def judged(*scores):
    """Score an answer to a prompt with two options, the first of which is correct."""
    row = {"prompt_id": "q1", "options": ["a", "b"], "correct": 0, "scores": scores}
    return LexicalJudge().judge(pd.DataFrame([row])).iloc[0]


def test_scores_of_other_options_are_rejected_and_missing_ones_give_no_label():
    """A single first token has no log-probability."""
    one = ScoredText(request_id="0", token_ids=(5,), log_probabilities=(-1.0,))
    none = ScoredText(request_id="0", token_ids=(5,), log_probabilities=(None,))

    for n in (1, 3):
        with pytest.raises(DataError, match=rf"'q1' contains log-probabilities of {n} .* has 2"):
            judged(*[one] * n)
    assert pd.isna(judged(none, one)["correct"])
    assert judged(none, one)["reason"] == "no log-probability of an option"


def test_pos_and_limit_select_replaced_words_and_instances(tmp_path):
    settings = LexicalSettings(wordnet=WORDNET, pos=("verb",), limit=1)
    plan = LexicalStudy().plan(data_of(piqa=PIQA), settings)
    assert list(plan.pairs["replaced"]) == ["verb"]
    assert plan.pairs["second_surface"][0].startswith("To select a dog,")


def test_tasks_are_read_from_subfolders(tmp_path):
    for task, rows in (("piqa", PIQA), ("copa", COPA)):
        (tmp_path / task).mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / task / "validation.jsonl").write_text(lines)
    loaded = LexicalStudy().load(LexicalSource(task=("piqa", "copa"), source=str(tmp_path)))
    assert [instance.task for instance in loaded.instances] == ["piqa"] * 2 + ["copa"] * 2
    assert loaded.source.n_questions == 4


@pytest.mark.parametrize(
    ("contexts", "match"),
    [(("a",), "one text per option, got 1 for 2 options"), (("a", "a"), "no option twice")],
)
def test_contexts_of_options_are_part_of_the_key_and_validated(contexts, match):
    prompt = Prompt(id="p", text="x", contexts=("a", "b"), options=(" c", " c"))

    assert prompt.key != prompt.model_copy(update={"contexts": ("a", "d")}).key
    with pytest.raises(ValueError, match=match):
        Prompt(id="p", text="x", contexts=contexts, options=(" c", " c"))


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    """A random GPT-2 with a byte-level tokenizer, which has a begin token."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny")
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=256)
    save_tiny_model(folder, config, [str(row) for row in (*BLIMP, *PIQA, *COPA, *WINOGRANDE)])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.bos_token = tokenizer.eos_token
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("task", "rows", "yaml", "split"),
    [
        ("piqa", PIQA, "piqa/piqa.yaml", "validation"),
        ("copa", COPA, "super_glue/copa/default.yaml", "validation"),
        ("winogrande", WINOGRANDE, "winogrande/default.yaml", "validation"),
        ("lambada", LAMBADA, "lambada/lambada_openai.yaml", "test"),
        ("anaphor_agreement", BLIMP, "blimp/anaphor_number_agreement.yaml", "train"),
    ],
)
def test_accuracy_equals_that_of_lm_evaluation_harness(
    tiny_model, tmp_path, monkeypatch, task, rows, yaml, split
):
    lm_eval = pytest.importorskip("lm_eval")
    # The harness lists packages and hardware for its log.
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
    huggingface = pytest.importorskip("lm_eval.models.huggingface")
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._yaml_loader import load_yaml

    from surface_consistency.models import TransformersRunner

    rows = [{**row, "n": number} for row in rows for number in range(6)]
    for row in rows:
        for name in ("goal", "premise", "sentence", "sentence_good", "sentence_bad", "text"):
            if name in row:
                row[name] = f"{'Well, ' * row['n']}{row[name]}"
    path = tmp_path / f"{split}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = load_yaml(Path(lm_eval.__file__).parent / "tasks" / yaml, resolve_func=True)
    config |= {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {split: str(path)}, "cache_dir": str(tmp_path / "c")},
        "training_split": None,
    }
    config.pop("include", None)
    config.pop("tag", None)
    runner = TransformersRunner(tiny_model, dtype="float32", batch_size=1)
    harness = huggingface.HFLM(
        pretrained=runner._engine.model, tokenizer=runner._encoder.tokenizer, batch_size=1
    )
    theirs = lm_eval.simple_evaluate(
        model=harness,
        tasks=[ConfigurableTask(config=config)],
        bootstrap_iters=0,
        # Reading the index of all tasks of the harness takes ten seconds.
        task_manager=TaskManager(include_defaults=False),
    )
    (result,) = theirs["results"].values()

    given = [{**row, "UID": "anaphor_number_agreement"} for row in rows]
    folder = run(data_of(**{task: given}), runner, tmp_path / "run")
    score_run(folder)
    outcomes = pd.read_parquet(folder.outcomes)
    assert outcomes["first_correct"].mean() == result["acc,none"]
    if task == "lambada":
        perplexity = math.exp(-outcomes["first_log_probability"].mean())
        assert perplexity == pytest.approx(result["perplexity,none"], rel=1e-5)
    else:
        # Both labels occur, so that the agreement is informative.
        assert task == "copa" or 0.0 < result["acc,none"] < 1.0
    if "acc_norm,none" in result:
        score_run(folder, scoring=LexicalScoring(option_score="per_character"))
        outcomes = pd.read_parquet(folder.outcomes)
        assert outcomes["first_correct"].mean() == result["acc_norm,none"]


def test_missing_lemminflect_is_reported_before_data_is_read(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[lexical\]"):
        LexicalStudy().load(LexicalSource(task=("piqa",), source=str(tmp_path / "missing")))
