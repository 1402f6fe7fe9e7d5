"""The callback of the Trainer: what it logs and keeps, and that training does not notice it."""

import importlib.metadata
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.errors import (
    DataError,
    MissingDependencyError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UnsupportedVersionError,
)
from surface_consistency.integrations import extras, trainer as trainer_module
from surface_consistency.integrations.trainer import StepEvaluator, read_curve
from surface_consistency.metrics import PAIRED_RATES, paired_by
from surface_consistency.schemas import Generation

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from surface_consistency.integrations.trainer import ConsistencyCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(pin_memory|lr_scheduler.step|use_cache).*", "ignore::DeprecationWarning:transformers"
)

OPTIONS = {"limit": 4, "shots": 1, "max_new_tokens": 6}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """What the planted model is taught: every question under its canonical name, answered."""
    return [
        f"Q: {question.question} A: {question.triple.answers[0]}\n"
        for question in load_sample().questions
        if question.surface.is_canonical
    ][:6]


@pytest.fixture
def train(tiny_model: Path, tmp_path: Path, texts: list[str]):
    """Train the tiny model for some steps with callbacks; return the Trainer."""

    def run(callbacks=(), *, steps=4, resume=None, lr=1e-3, **changes):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
        model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                module.register_forward_hook(
                    lambda *given: torch.nn.functional.dropout(
                        given[-1], 0.1, training=given[0].training
                    )
                )
        rows = [
            {"input_ids": ids, "labels": ids}
            for ids in (tokenizer(text).input_ids[:24] for text in texts)
        ]
        rows = [{name: (ids * 24)[:24] for name, ids in row.items()} for row in rows]
        settings = {
            "output_dir": str(tmp_path / "checkpoints"),
            "max_steps": steps,
            "per_device_train_batch_size": 2,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "save_strategy": "no",
            "learning_rate": lr,
            "logging_steps": 2,
            "report_to": [],
            "use_cpu": True,
            "disable_tqdm": True,
            "seed": 3,
            "dataloader_pin_memory": False,
        }
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(**(settings | changes)),
            train_dataset=rows,
            eval_dataset=rows[:2],
            processing_class=tokenizer,
            data_collator=transformers.default_data_collator,
            callbacks=list(callbacks),
        )
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    return run


def test_training_with_the_callback_is_bit_equal_to_training_without(train, tmp_path):
    plain = train()
    asked = train([ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS, every=1)])

    assert len(read_curve(tmp_path / "out")) == 5
    for (name, before), (_, after) in zip(
        plain.model.state_dict().items(), asked.model.state_dict().items(), strict=True
    ):
        assert torch.equal(before, after), name


def draw(*_):
    """Use the generators of random numbers, as a model that samples inside does."""
    torch.rand(1), np.random.rand(), random.random()  # noqa: NPY002


def test_model_settings_and_generators_are_left_as_found(train, tmp_path):
    trainer = train(steps=1)
    callback = ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS)
    model = trainer.model
    model.train()
    model.lm_head.eval()
    model.config.use_cache = False
    drawing = model.register_forward_hook(draw)
    numpy_state = np.random.get_state()  # noqa: NPY002
    found = (model.generation_config, torch.get_rng_state(), numpy_state, random.getstate())
    modes = [module.training for module in model.modules()]

    callback.evaluator.evaluate(model, trainer.processing_class, step=1)

    assert [module.training for module in model.modules()] == modes
    assert model.generation_config is found[0]
    assert model.config.use_cache is False
    assert torch.equal(torch.get_rng_state(), found[1])
    assert str(np.random.get_state()) == str(found[2])  # noqa: NPY002
    assert random.getstate() == found[3]
    drawing.remove()
    model.train()
    loss = model(input_ids=torch.tensor([[5, 6, 7]]), labels=torch.tensor([[5, 6, 7]])).loss
    loss.backward()


def test_best_model_is_chosen_by_a_number_of_the_callback(train, tmp_path):
    trainer = train(
        [ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS)],
        save_strategy="best",
        metric_for_best_model="eval_accuracy_canonical",
        greater_is_better=True,
        save_only_model=True,
    )

    logged = [row for row in trainer.state.log_history if "eval_accuracy_canonical" in row]
    assert [row["step"] for row in logged] == [0, 2, 4]
    assert trainer.state.best_metric == max(row["eval_accuracy_canonical"] for row in logged[1:])
    assert {"eval_consistency", "eval_consistency_low", "eval_only_redirect"} <= set(logged[0])
    assert "eval_flips_since_last" in logged[1]
    assert logged[1]["eval_consistency_seconds"] > 0


def test_verdicts_of_every_step_are_kept_and_give_its_numbers(train, tmp_path):
    options = OPTIONS | {"limit": 8}
    train([ConsistencyCallback("sample", out=tmp_path / "out", options=options)])

    curve = read_curve(tmp_path / "out").set_index("step")
    for step in (0, 2, 4):
        frame = pd.read_parquet(tmp_path / "out" / "steps" / f"{step:09d}.parquet")
        rates = {"consistency": PAIRED_RATES["consistency"]}
        row = paired_by(frame, cluster="subject_id", rates=rates).iloc[0]
        assert curve.loc[step, "consistency_low"] == pytest.approx(row["consistency_low"])
        assert curve.loc[step, "n_pairs"] == row["n"]


def test_curve_rises_with_what_is_learned_and_not_before(tiny_model, tmp_path, monkeypatch):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model)
    evaluator = StepEvaluator("sample", out=tmp_path / "out", options=OPTIONS)
    learned: list[bool] = []
    questions = {question.id: question for question in load_sample().questions}

    def answers(runner, asked, score):
        for prompt, _params in asked:
            question = questions[prompt.id]
            knows = question.surface.is_canonical or bool(learned)
            text = question.triple.answers[0] if knows else "no idea"
            yield Generation(prompt_id=prompt.id, text=text)

    monkeypatch.setattr(trainer_module, "_answers", answers)
    found = [evaluator.evaluate(model, tokenizer, step=step) for step in (0, 10)]
    learned.append(True)
    found += [evaluator.evaluate(model, tokenizer, step=step) for step in (20, 30)]

    n_facts, n_redirects = 4, found[0]["n_pairs"]
    assert [row["consistency"] for row in found] == [0.0, 0.0, 1.0, 1.0]
    assert [row["only_canonical"] for row in found] == [1.0, 1.0, 0.0, 0.0]
    assert found[1]["flips_since_last"] == found[3]["flips_since_last"] == 0.0
    assert found[2]["flips_since_last"] == n_redirects / (n_redirects + n_facts)
    again = StepEvaluator("sample", out=tmp_path / "out", options=OPTIONS)
    again.start(model, tokenizer, step=20)
    assert again.evaluate(model, tokenizer, step=25)["flips_since_last"] == 0.0
    assert read_curve(tmp_path / "out")["step"].tolist() == [0, 10, 20, 25]


def test_weights_of_each_step_answer_for_themselves(tiny_model, tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    options = OPTIONS | {"shots": 2}
    evaluator = StepEvaluator("sample", out=tmp_path / "1", options=options)
    evaluator.evaluate(model, tokenizer, step=1)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))

    evaluator.evaluate(model, tokenizer, step=2)
    fresh = StepEvaluator("sample", out=tmp_path / "2", options=options)
    fresh.evaluate(model, tokenizer, step=2)

    kept = [
        pd.read_parquet(tmp_path / folder / "steps" / f"00000000{step}.parquet")["first_prediction"]
        for folder, step in (("1", 1), ("1", 2), ("2", 2))
    ]
    assert kept[1].tolist() == kept[2].tolist()
    assert kept[0].tolist() != kept[1].tolist()


def test_training_goes_on_from_a_checkpoint_without_doubling_a_step(train, tmp_path):
    def callback():
        return ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS, every=1)

    train([callback()], steps=3, save_strategy="steps", save_steps=2)
    train([callback()], steps=4, resume=str(tmp_path / "checkpoints" / "checkpoint-2"))

    assert read_curve(tmp_path / "out")["step"].tolist() == [0, 1, 2, 3, 4]


def test_a_training_that_goes_on_asks_what_was_asked(train, tmp_path):
    """Otherwise one curve would be of two sets of questions."""

    def callback(**options):
        return ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS | options)

    train([callback()], steps=2, save_strategy="steps", save_steps=2)
    with pytest.raises(DataError, match=r"were asked otherwise: settings, prompts of asked\.json"):
        train(
            [callback(template="paraphrase")],
            steps=3,
            resume=str(tmp_path / "checkpoints" / "checkpoint-2"),
        )


def test_new_training_in_the_folder_of_another_is_refused(train, tmp_path):
    train([ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS)], steps=2)

    with pytest.raises(DataError, match="holds the steps of another training, up to 2"):
        train([ConsistencyCallback("sample", out=tmp_path / "out", options=OPTIONS)], steps=2)


def test_model_that_cannot_be_asked_warns_or_ends_the_training(train, tmp_path):
    long = OPTIONS | {"max_new_tokens": 5_000, "truncate": False}
    warning = ConsistencyCallback("sample", out=tmp_path / "out", options=long, at_start=False)

    with pytest.warns(SurfaceConsistencyWarning, match=r"step 2: no consistency, .*tokens"):
        train([warning], steps=2)
    with pytest.raises(ValueError, match="prompts are too long"):
        train(
            [ConsistencyCallback("sample", out=tmp_path / "2", options=long, on_error="raise")],
            steps=2,
        )


def test_data_that_is_not_there_ends_the_training_at_once(train, tmp_path):
    callback = ConsistencyCallback(tmp_path / "none.jsonl", out=tmp_path / "out", at_start=False)

    with pytest.raises(SourceNotFoundError, match="none"):
        train([callback])


def test_callback_rejects_what_it_cannot_do(tmp_path):
    with pytest.raises(ValueError, match="`every` counts steps and is at least 1, got 0"):
        ConsistencyCallback("sample", out=tmp_path, every=0)
    with pytest.raises(ValueError, match="`on_error` is 'warn' or 'raise', got 'stop'"):
        ConsistencyCallback("sample", out=tmp_path, on_error="stop")
    with pytest.raises(DataError, match=r"holds no curve\.csv"):
        read_curve(tmp_path)


@pytest.mark.parametrize(
    ("tool", "installed", "message"),
    [
        (
            "transformers",
            "4.56.0",
            r"works with transformers <6,>=4\.57, and 4\.56\.0 is installed",
        ),
        ("torch", "2.5.0", r"works with torch >=2\.6, and 2\.5\.0 is installed"),
        ("torch", None, r"ConsistencyCallback needs torch.*surface-consistency\[inference\]"),
    ],
)
def test_libraries_of_another_version_are_refused(tmp_path, monkeypatch, tool, installed, message):
    def version(name):
        if name == tool and installed is None:
            raise extras.PackageNotFoundError(name)
        return installed if name == tool else importlib.metadata.version(name)

    monkeypatch.setattr(extras, "version", version)

    with pytest.raises((MissingDependencyError, UnsupportedVersionError), match=message):
        ConsistencyCallback("sample", out=tmp_path)


def test_source_tree_that_is_not_installed_has_no_bounds(tmp_path, monkeypatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", requires)

    assert ConsistencyCallback("sample", out=tmp_path).evaluator.folder == tmp_path
