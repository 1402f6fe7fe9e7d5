"""The noise floor: how often a verdict flips when the very same prompt is asked again.

Greedy decoding is not a function of the prompt alone: reduced precision makes it depend on the
other prompts of the batch. A flip rate between surface forms means something only above this.
"""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.inference.generate import run_prompts
from surface_consistency.inference.runner import Rebatchable, Runner
from surface_consistency.metrics import paired_by, wilson_interval
from surface_consistency.runs.log import RunLog
from surface_consistency.schemas import Prompt, QuestionRealization, RunManifest, Verdict
from surface_consistency.studies.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_floor", "retry_prompt", "sample_prompts"]


def sample_prompts(prompts: Sequence[Prompt], n: int, *, seed: int = 0) -> list[Prompt]:
    """Choose prompts to ask again, by the hash of their content.

    Args:
        prompts: All prompts of the run.
        n: How many; all of them when there are no more.
        seed: Seed of the choice.

    Returns:
        Distinct prompts, in an order that has nothing to do with the run's.
    """
    distinct = {prompt.key: prompt for prompt in reversed(prompts)}

    def rank(key: str) -> bytes:
        return hashlib.sha256(f"{seed}|{key}".encode()).digest()

    return [distinct[key] for key in sorted(distinct, key=rank)[:n]]


def retry_prompt(
    folder: RunFolder,
    runner: Runner,
    prompts: Sequence[Prompt],
    manifest: RunManifest,
    *,
    progress: bool = True,
) -> None:
    """Ask a sample of the prompts a second time, in other batches, into a log of its own.

    Args:
        folder: The run's folder.
        runner: Who answered the first time. One that is `Rebatchable` is asked in another batch
            composition; any other gets the sample in its own order and company.
        prompts: The sample.
        manifest: Settings of the run.
        progress: Whether to show a progress bar on a terminal.
    """
    again = runner.rebatched(1) if isinstance(runner, Rebatchable) else runner
    settings = manifest.model_copy(update={"runner": again.fingerprint()})
    with RunLog.open(folder.repeat, settings, manifest_path=folder.repeat_manifest) as log:
        if manifest.params is not None:
            run_prompts(again, prompts, manifest.params, log, progress=progress)


def noise_floor(
    questions: Sequence[QuestionRealization],
    first: Mapping[str, Verdict],
    second: Mapping[str, Verdict],
    *,
    model: str,
) -> "pd.DataFrame":
    """Compare the two answers to the same prompts.

    Args:
        questions: The questions of the run.
        first: Verdicts of the run by question id.
        second: Verdicts of the repetition by question id.
        model: Label of the model.

    Returns:
        One row a template: template, model, n_repeated, n_verdict_flips, flip_rate with
        `flip_rate_low` and `flip_rate_high` (95 %, clusters are facts; Wilson's interval where no
        or every verdict flips), and n_text_changes: judged
        texts that differ at all. Empty when nothing was repeated.
    """
    import pandas as pd

    rows = [
        {
            "template": question.template,
            "fact_id": question.triple.id,
            "first_correct": first[question.id].is_correct,
            "second_correct": second[question.id].is_correct,
            "changed": first[question.id].prediction != second[question.id].prediction,
        }
        for question in questions
        if question.id in first and question.id in second
    ]
    columns = ["template", "model", "n_repeated", "n_verdict_flips", "flip_rate"]
    bounds = ["flip_rate_low", "flip_rate_high"]
    if not rows:
        return pd.DataFrame(columns=[*columns, *bounds, "n_text_changes"])
    frame = pd.DataFrame(rows)
    with warnings.catch_warnings():
        # Only the flip rate is read, which is defined; the other rates may not be.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = paired_by(frame, by="template")
    table["model"] = model
    table["n_repeated"] = table["n"]
    table["n_verdict_flips"] = table["first_only"] + table["second_only"]
    for row in table.index[table["n_verdict_flips"].isin([0]) | (table["flip_rate"] == 1)]:
        # Resamples of a sample without variation have no width; Wilson's interval has.
        bounds_of = wilson_interval(
            int(table.loc[row, "n_verdict_flips"]), int(table.loc[row, "n"])
        )
        table.loc[row, bounds] = [bounds_of.low, bounds_of.high]
    changes = frame.groupby("template")["changed"].sum()
    table["n_text_changes"] = table["template"].map(changes)
    return table[[*columns, *bounds, "n_text_changes"]]
