"""The callback for the Trainer of transformers that the guide prints."""

import re
from pathlib import Path

import pytest

from surface_consistency.metrics import paired_by

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "integrations.md"

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(pin_memory|lr_scheduler.step|use_cache).*",
    "ignore::DeprecationWarning:transformers",
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning",
)


@pytest.fixture(scope="module")
def recipe():
    """Return the class that the guide prints."""
    [code] = re.findall(
        r"```python\n(import torch\n.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, type] = {}
    exec(compile(code, str(GUIDE), "exec"), names)
    return names["ConsistencyCallback"]


def train(folder, out, callbacks=(), **changes):
    """Train the tiny model for four steps."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    embeddings = model.get_input_embeddings()
    embeddings.register_forward_hook(
        lambda module, args, output: torch.nn.functional.dropout(output, 0.1, module.training)
    )
    rows = [{"input_ids": [*range(5, 29)], "labels": [*range(5, 29)]}] * 6
    settings = {
        **{"output_dir": str(out), "max_steps": 4, "per_device_train_batch_size": 2, "seed": 3},
        **{"eval_strategy": "steps", "eval_steps": 2, "save_strategy": "no", "report_to": []},
        **{"use_cpu": True, "disable_tqdm": True, "dataloader_pin_memory": False},
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
    trainer.train()
    return trainer


def test_callback_logs_metrics_and_does_not_change_the_training(recipe, tiny_model, tmp_path):
    options = {"source": "sample", "limit": 4, "shots": 1, "max_new_tokens": 6}
    callback = recipe(**options)

    best = {"save_strategy": "best", "metric_for_best_model": "eval_consistency"}
    best |= {"greater_is_better": True, "save_only_model": True}
    plain = train(tiny_model, tmp_path / "plain")
    evaluated = train(tiny_model, tmp_path / "evaluated", [callback], **best)

    for (name, before), (_, after) in zip(
        plain.model.state_dict().items(), evaluated.model.state_dict().items(), strict=True
    ):
        assert torch.equal(before, after), name
    logged = [row for row in evaluated.state.log_history if "eval_consistency" in row]
    assert [row["step"] for row in logged] == [2, 4]
    assert evaluated.state.best_metric == max(row["eval_consistency"] for row in logged)
    for row in logged:
        expected = paired_by(callback.outcomes[row["step"]], cluster="subject_id").iloc[0]
        assert row["eval_n_pairs"] == expected["n"]
        assert row["eval_consistency"] == expected["consistency"]
        assert row["eval_consistency_low"] == pytest.approx(
            expected["consistency_low"], nan_ok=True
        )
