"""SLAQ, asked: every fact alone, all five of a topic at once in balanced orders, free form.

The protocol is section 4.1 of SLAQ (arXiv 2510.11218), with orders that are balanced rather than
random.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import surface_consistency
from surface_consistency.data.slaq import Slaq
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.inference.generate import run_prompts
from surface_consistency.inference.runner import Rebatchable, Runner
from surface_consistency.prompts.slaq import (
    DEFAULT_INSTRUCTIONS,
    SlaqInstructions,
    SlaqPrompts,
    SlaqStyle,
    slaq_prompts,
)
from surface_consistency.prompts.slaq_queries import QueryWording
from surface_consistency.runs.log import RunLog
from surface_consistency.schemas import GenerationParams, Prompt, RunManifest, write_jsonl
from surface_consistency.schemas.slaq import SlaqForm
from surface_consistency.studies.noise import sample_prompts
from surface_consistency.studies.slaq.folder import SlaqFolder

__all__ = ["SlaqSettings", "ask_slaq", "prompts_of"]

_LONGEST: Mapping[SlaqForm, int] = {"short": 64, "long": 512, "free": 768}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaqSettings:
    """How the study asks; the defaults are the paper's, but for the balance of orders."""

    forms: tuple[SlaqForm, ...] = ("short", "long")
    """Which forms to ask; "free" adds a long query that does not list its sub-questions."""

    n_permutations: int = 5
    """Orders of each long query; multiples of five are balanced."""

    seed: int = 0
    """Seed of the orders and of the repeated sample."""

    wording: QueryWording = "auto"
    """Where the clauses of the long query come from."""

    style: SlaqStyle = "chat"
    """Turns for a chat template, or plain text."""

    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS
    """The wording around the questions."""

    max_new_tokens: Mapping[SlaqForm, int] = field(default_factory=lambda: dict(_LONGEST))
    """Longest answer of each form, in tokens."""

    repeat: int = 200
    """Prompts of each form to ask a second time, for the noise floor; 0 for none."""

    def params(self, form: SlaqForm) -> GenerationParams:
        """Return how a form is decoded: greedy; plain text stops at the newline when short.

        Args:
            form: The form.

        Returns:
            The decoding.
        """
        stops = ("\n",) if self.style == "completion" and form == "short" else ()
        longest = self.max_new_tokens.get(form, _LONGEST[form])
        return GenerationParams(max_new_tokens=longest, stop=stops)


def ask_slaq(
    data: Slaq,
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: SlaqSettings | None = None,
    progress: bool = True,
) -> SlaqFolder:
    """Ask a model every question of SLAQ, and a sample of the prompts twice.

    Started again with the same arguments it goes on where it was stopped.

    Args:
        data: The topics.
        runner: Who answers.
        out: Folder of the run.
        model: Label of the model in tables.
        settings: How to ask; None for the defaults.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        The run folder, with topics, prompts, generations and manifest.

    Raises:
        ValueError: If a setting is out of range.
        RunMismatchError: If the folder holds a run with other settings; names them.
        RunLogLockedError: If another process writes to this run.
    """
    settings = settings or SlaqSettings()
    if settings.repeat < 0:
        raise ValueError(f"repeat counts prompts and must be 0 or more, got {settings.repeat}")
    asked = prompts_of(data, settings)
    manifest = _manifest(data, runner, model, settings)
    folder = SlaqFolder.create(out)
    by_form = _by_form(asked)
    folder.agree_on(manifest)
    write_jsonl(folder.topics, data.topics)
    write_jsonl(folder.prompts, asked.prompts)
    write_jsonl(folder.details, asked.details)
    _warn_rebuilt(asked, len(data.topics))
    for form in settings.forms:
        _ask(folder, runner, by_form[form], manifest, settings, form, progress=progress)
    return folder


def prompts_of(data: Slaq, settings: SlaqSettings) -> SlaqPrompts:
    """Build what `ask_slaq` asks.

    Args:
        data: The topics.
        settings: How to ask.

    Returns:
        The prompts, form by form.

    Raises:
        ValueError: If a setting is out of range.
    """
    return slaq_prompts(
        data.topics,
        forms=settings.forms,
        n_permutations=settings.n_permutations,
        seed=settings.seed,
        wording=settings.wording,
        style=settings.style,
        instructions=settings.instructions,
    )


def _ask(
    folder: SlaqFolder,
    runner: Runner,
    prompts: Sequence[Prompt],
    manifest: RunManifest,
    settings: SlaqSettings,
    form: SlaqForm,
    *,
    progress: bool,
) -> None:
    """Ask the prompts of one form, then some of them again in other batches."""
    params = settings.params(form)
    again = runner.rebatched(1) if isinstance(runner, Rebatchable) else runner
    sample = sample_prompts(prompts, settings.repeat, seed=settings.seed)
    for asked, who, repeat in ((prompts, runner, False), (sample, again, True)):
        if not asked:
            continue
        own = manifest.model_copy(update={"params": params, "runner": who.fingerprint()})
        with RunLog.open(
            folder.log(form, repeat=repeat),
            own,
            manifest_path=folder.log_manifest(form, repeat=repeat),
        ) as log:
            run_prompts(who, asked, params, log, progress=progress)


def _manifest(data: Slaq, runner: Runner, model: str, settings: SlaqSettings) -> RunManifest:
    """Write down what makes the run."""
    return RunManifest(
        study="slaq",
        model=model,
        data=data.source,
        prompts=None,
        params=None,
        runner=runner.fingerprint(),
        settings={
            "forms": "+".join(settings.forms),
            "permutations": settings.n_permutations,
            "seed": settings.seed,
            "wording": settings.wording,
            "style": settings.style,
            "instructions": {
                form: getattr(settings.instructions, form) for form in ("short", "long", "free")
            },
            "max_new_tokens": {
                form: settings.params(form).max_new_tokens for form in settings.forms
            },
        },
        package_version=surface_consistency.__version__,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _by_form(asked: SlaqPrompts) -> dict[SlaqForm, list[Prompt]]:
    """Part the prompts by form."""
    parts: dict[SlaqForm, list[Prompt]] = {"short": [], "long": [], "free": []}
    for prompt, detail in zip(asked.prompts, asked.details, strict=True):
        parts[detail.form].append(prompt)
    return parts


def _warn_rebuilt(asked: SlaqPrompts, n_topics: int) -> None:
    """Say how many long queries are not in the wording of the data."""
    if asked.rebuilt:
        warnings.warn(
            f"the long query of {len(asked.rebuilt)} of {n_topics} topics was built from its short "
            "questions, because its own cannot be put into other orders, such as that of "
            f"{asked.rebuilt[0]!r}",
            SurfaceConsistencyWarning,
            stacklevel=3,
        )
