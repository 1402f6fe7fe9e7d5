"""RedirectQA end to end: is the same fact answered alike under its canonical and redirect names?

The protocol is section 3.1 of RedirectQA (arXiv 2604.21882); each stage reads and writes the files
of a `RunFolder`, so any of them can be run again or replaced.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import surface_consistency
from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.errors import (
    DataError,
    RunnerError,
    TruncatedPromptWarning,
    UnscoredWarning,
)
from surface_consistency.inference.generate import run_prompts
from surface_consistency.inference.runner import Runner
from surface_consistency.inference.stored import StoredRunner
from surface_consistency.prompts import DemonstrationPool, build_prompts
from surface_consistency.prompts.few_shot import DemonstrationScope, PromptStyle
from surface_consistency.runs.log import RunLog
from surface_consistency.schemas import (
    GenerationParams,
    Prompt,
    PromptSettings,
    QuestionRealization,
    RunManifest,
    write_jsonl,
)
from surface_consistency.studies.noise import retry_prompt, sample_prompts
from surface_consistency.studies.run_folder import RunFolder

__all__ = ["RedirectQASettings", "run_redirectqa"]

_MOST_SHOTS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectQASettings:
    """How the study asks; the defaults are the paper's."""

    templates: tuple[str, ...] = ("original",)
    """Question templates to ask: "original", "paraphrase" or both."""

    shots: int | None = None
    """Demonstrations a prompt; None takes one of each other relation, at most 15."""

    seed: int = 0
    """Seed of demonstrations and of the repeated sample."""

    demonstrations: DemonstrationScope = "per_relation"
    """Whether the facts of a relation share their demonstrations."""

    style: PromptStyle = "completion"
    """Plain text, or turns for a chat template."""

    params: GenerationParams = field(default_factory=GenerationParams)
    """Decoding: greedy, 15 new tokens, stop at the newline."""

    limit: int | None = None
    """Ask only the first so many facts, each under all its names; None asks all."""

    truncate: bool = False
    """Drop demonstrations where a prompt does not fit the model, rather than refuse; the count is
    told in a warning."""

    repeat: int = 1_000
    """Questions to ask a second time in other batches, for the noise floor; 0 for none."""


def run_redirectqa(
    data: RedirectQA,
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: RedirectQASettings | None = None,
    progress: bool = True,
) -> RunFolder:
    """Ask a model every question, and a sample of them twice.

    Started again with the same arguments it goes on where it was stopped.

    Args:
        data: The questions; demonstrations are drawn from all of them, whatever is asked.
        runner: Who answers.
        out: Folder of the run.
        model: Label of the model in tables.
        settings: How to ask; None for the paper's protocol.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        The run folder, with questions, prompts, generations and manifest.

    Raises:
        DataError: If no question is left to ask.
        RunMismatchError: If the folder holds a run with other settings; names them.
        RunLogLockedError: If another process writes to this run.
        PromptTooLongError: If a prompt does not fit the model and `truncate` is off.
    """
    settings = settings or RedirectQASettings()
    if settings.repeat < 0:
        raise ValueError(f"repeat counts questions and must be 0 or more, got {settings.repeat}")
    asked = data.select(templates=settings.templates, limit=settings.limit)
    if not asked.pairs:
        raise DataError(
            f"no canonical-redirect pair to ask in {data.source.id} with templates "
            f"{', '.join(settings.templates)}; the rows hold "
            f"{', '.join(sorted({q.template for q in data.questions})) or 'no questions'}"
        )
    shots = _shots(data, settings)
    prompts = _prompts(data, asked.questions, runner, settings, shots)
    manifest = RunManifest(
        study="redirectqa",
        model=model,
        data=asked.source,
        prompts=PromptSettings(
            shots=shots,
            seed=settings.seed,
            demonstrations=settings.demonstrations,
            style=settings.style,
            templates=settings.templates,
            truncate=settings.truncate,
        ),
        params=settings.params,
        runner=runner.fingerprint(),
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _warn_uncovered(runner, prompts)
    folder = RunFolder.create(out)
    with RunLog.open(folder.generations, manifest, manifest_path=folder.manifest) as log:
        write_jsonl(folder.questions, asked.questions)
        write_jsonl(folder.prompts, prompts)
        run_prompts(runner, prompts, settings.params, log, progress=progress)
    if settings.repeat:
        sample = sample_prompts(prompts, settings.repeat, seed=settings.seed)
        retry_prompt(folder, runner, sample, manifest, progress=progress)
    return folder


def _shots(data: RedirectQA, settings: RedirectQASettings) -> int:
    """Settle the number of demonstrations: one of each other relation unless told."""
    if settings.shots is not None:
        return settings.shots
    relations = {
        question.triple.relation
        for question in data.questions
        if question.template in settings.templates
    }
    return min(_MOST_SHOTS, len(relations) - 1)


def _prompts(
    data: RedirectQA,
    questions: Sequence[QuestionRealization],
    runner: Runner,
    settings: RedirectQASettings,
    shots: int,
) -> list[Prompt]:
    """Build all prompts, shortened to the model's context when asked."""
    pool = DemonstrationPool(data.questions, seed=settings.seed, scope=settings.demonstrations)
    fits = _fitting(runner, settings.params) if settings.truncate else None
    prompts = list(build_prompts(questions, pool, shots=shots, style=settings.style, fits=fits))
    n_short = sum(not (prompt.group or "").endswith(f"|{shots}") for prompt in prompts)
    if n_short:
        warnings.warn(
            f"{n_short} of {len(prompts)} prompts have fewer than {shots} demonstrations, because "
            f"{runner.name!r} cannot read more",
            TruncatedPromptWarning,
            stacklevel=3,
        )
    return prompts


def _fitting(runner: Runner, params: GenerationParams) -> Callable[[Prompt], bool]:
    """Ask the runner whether prompts fit its model."""
    fits = getattr(runner, "fits", None)
    if fits is None:
        raise RunnerError(
            f"runner {runner.name!r} cannot tell whether a prompt fits its model (it has no method "
            "`fits`), so demonstrations cannot be dropped; leave truncation off or ask for fewer "
            "shots"
        )
    return lambda prompt: bool(fits(prompt, params))


def _warn_uncovered(runner: Runner, prompts: Sequence[Prompt]) -> None:
    """Say which prompts stored predictions lack, and which predictions are of other questions."""
    if isinstance(runner, StoredRunner):
        told = runner.coverage(prompts).describe()
        if told is not None:
            warnings.warn(told, UnscoredWarning, stacklevel=3)
