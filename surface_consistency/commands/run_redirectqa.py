"""`run redirectqa`: canonical names against Wikipedia redirects."""

import argparse
from typing import TYPE_CHECKING

from surface_consistency.commands.options import (
    Commands,
    add_model,
    add_output,
    add_rule,
    add_source,
    runner_options,
)
from surface_consistency.commands.output import finish
from surface_consistency.commands.rows import load_rows
from surface_consistency.taxonomy import TEMPLATES

if TYPE_CHECKING:
    from surface_consistency.studies.redirectqa import RedirectQASettings

__all__ = ["add"]


def add(studies: Commands) -> None:
    """Describe `run redirectqa`."""
    study = studies.add_parser(
        "redirectqa",
        help="canonical names against Wikipedia redirects",
        description="Ask a model every fact under its canonical and redirect names, score, report. "
        "Started again with the same arguments, a stopped run goes on where it was.",
    )
    add_source(study)
    add_model(study)
    _add_prompts(study)
    add_rule(study)
    add_output(study)
    study.set_defaults(handle=_run)


def _add_prompts(study: argparse.ArgumentParser) -> None:
    """Describe how questions become prompts."""
    ask = study.add_argument_group("prompts")
    ask.add_argument(
        "--template",
        choices=(*TEMPLATES, "both"),
        default="original",
        help="question wording (default: %(default)s, the paper's figure 2)",
    )
    ask.add_argument("--shots", type=int, help="demonstrations (default: one a relation, 15)")
    ask.add_argument("--seed", type=int, default=0, help="seed of demonstrations and samples")
    ask.add_argument(
        "--demonstrations",
        choices=("per_relation", "per_fact"),
        default="per_relation",
        help="shared by the facts of a relation, or drawn for each fact (default: %(default)s)",
    )
    ask.add_argument("--chat", action="store_true", help="use the tokenizer's chat template")
    ask.add_argument(
        "--truncate",
        action="store_true",
        help="drop demonstrations where a prompt exceeds the model's context",
    )
    ask.add_argument("--limit", type=int, help="ask only the first so many facts")
    ask.add_argument(
        "--max-new-tokens", type=int, default=15, help="longest answer (default: %(default)s)"
    )
    ask.add_argument(
        "--no-stop", action="store_true", help="write on after the newline, to judge whole outputs"
    )
    ask.add_argument(
        "--repeat",
        type=int,
        default=1_000,
        help="questions asked twice for the noise floor (default: %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> None:
    """Ask, score and report."""
    from surface_consistency.inference.registry import load_runner
    from surface_consistency.studies.redirectqa import run_redirectqa
    from surface_consistency.studies.scoring import score_run

    if arguments.runner == "transformers" and arguments.model is None:
        raise ValueError("--runner transformers needs --model, a hub id or the folder of a model")
    data = load_rows(arguments)
    options = runner_options(arguments)
    runner = load_runner(arguments.runner, model=arguments.model, options=options)
    folder = run_redirectqa(
        data,
        runner,
        arguments.out,
        model=arguments.label or arguments.model or runner.name,
        settings=_settings(arguments),
        progress=not arguments.json,
    )
    score_run(folder, rule=arguments.rule, region=arguments.region)
    finish([folder.path], arguments, out=folder.path)


def _settings(arguments: argparse.Namespace) -> "RedirectQASettings":
    """Gather how the study asks."""
    from surface_consistency.schemas import GenerationParams
    from surface_consistency.studies.redirectqa import RedirectQASettings

    if arguments.max_new_tokens < 1:
        raise ValueError(f"--max-new-tokens must be 1 or more, got {arguments.max_new_tokens}")
    both = arguments.template == "both"
    return RedirectQASettings(
        templates=TEMPLATES if both else (arguments.template,),
        shots=arguments.shots,
        seed=arguments.seed,
        demonstrations=arguments.demonstrations,
        style="chat" if arguments.chat else "completion",
        params=GenerationParams(
            max_new_tokens=arguments.max_new_tokens, stop=() if arguments.no_stop else ("\n",)
        ),
        limit=arguments.limit,
        truncate=arguments.truncate,
        repeat=arguments.repeat,
    )
