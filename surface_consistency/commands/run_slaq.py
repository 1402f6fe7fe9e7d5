"""`run slaq`: facts asked alone against all five of a topic in one query."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.commands.judges import add_judge, make_judge, take_labels
from surface_consistency.commands.options import (
    SAMPLE,
    Commands,
    add_model,
    add_output,
    add_source,
    pairs,
    runner_options,
)
from surface_consistency.commands.output import finish_slaq

if TYPE_CHECKING:
    from surface_consistency.data.slaq import Slaq
    from surface_consistency.inference.runner import Runner
    from surface_consistency.studies.slaq.ask import SlaqSettings

__all__ = ["add"]

_ORGANISM: Final = "organism"


def add(studies: Commands) -> None:
    """Describe `run slaq`."""
    study = studies.add_parser(
        "slaq",
        help="short against long queries",
        description="Ask a model every fact alone and all five of a topic in one query, judge, "
        "score, report. Started again with the same arguments, a stopped run goes on where it was. "
        "With --model organism a small model is trained on the prompts first, without network and "
        "GPU, into OUT/organism.",
    )
    add_source(study, "WueNLP/SLAQ")
    add_model(study)
    _add_prompts(study)
    add_judge(study)
    add_output(study)
    study.set_defaults(handle=_run)


def _add_prompts(study: argparse.ArgumentParser) -> None:
    """Describe how topics become prompts."""
    ask = study.add_argument_group("prompts")
    ask.add_argument(
        "--free", action="store_true", help="ask also a long query that does not list its questions"
    )
    ask.add_argument(
        "--permutations",
        type=int,
        default=5,
        help="orders of each long query; multiples of five are balanced (default: %(default)s)",
    )
    ask.add_argument("--seed", type=int, default=0, help="seed of orders and samples")
    ask.add_argument(
        "--wording",
        choices=("auto", "query", "questions"),
        default="auto",
        help="long queries from the data's own, or from the short questions (default: %(default)s)",
    )
    ask.add_argument(
        "--completion", action="store_true", help="plain text, for models without a chat template"
    )
    ask.add_argument("--limit", type=int, help="ask only the first so many topics")
    ask.add_argument("--short-tokens", type=int, default=64, help="longest short answer")
    ask.add_argument("--long-tokens", type=int, default=512, help="longest long answer")
    ask.add_argument("--free-tokens", type=int, default=768, help="longest free answer")
    ask.add_argument(
        "--repeat",
        type=int,
        default=200,
        help="prompts of each form asked twice for the noise floor (default: %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> None:
    """Ask, judge, score and report."""
    from surface_consistency.studies.slaq.ask import ask_slaq
    from surface_consistency.studies.slaq.score import score_slaq

    if arguments.runner == "transformers" and arguments.model is None:
        raise ValueError("--runner transformers needs --model, a hub id or the folder of a model")
    data = _topics(arguments)
    settings = _settings(arguments)
    judge = make_judge(arguments, Path(arguments.out), progress=not arguments.json)
    runner = _runner(arguments, data, settings)
    folder = ask_slaq(
        data,
        runner,
        arguments.out,
        model=arguments.label or arguments.model or runner.name,
        settings=settings,
        progress=not arguments.json,
    )
    take_labels(arguments, folder.path)
    score_slaq(folder, judge)
    finish_slaq([folder.path], arguments, out=folder.path)


def _runner(arguments: argparse.Namespace, data: "Slaq", settings: "SlaqSettings") -> "Runner":
    """Load who answers, or train the model organism."""
    from surface_consistency.inference.registry import load_runner

    options = runner_options(arguments)
    if arguments.runner != "transformers" or arguments.model != _ORGANISM:
        return load_runner(arguments.runner, model=arguments.model, options=options)
    from surface_consistency.studies.organisms import train_slaq_organism
    from surface_consistency.studies.slaq.ask import prompts_of

    if not arguments.json:
        print("training a small model on what it will be asked", flush=True)
    model = train_slaq_organism(
        data.topics, prompts_of(data, settings), Path(arguments.out) / _ORGANISM
    )
    options = {"device": "cpu", "dtype": "float32"} | options
    return load_runner(arguments.runner, model=str(model), options=options)


def _topics(arguments: argparse.Namespace) -> "Slaq":
    """Load the topics."""
    from surface_consistency.data.slaq import load_slaq, load_slaq_sample

    columns = pairs(arguments.column, "--column") or None
    if arguments.source == SAMPLE:
        if columns is not None:
            raise ValueError("--column belongs to data of your own; the sample's are known")
        data = load_slaq_sample()
    else:
        data = load_slaq(
            arguments.source,
            revision=arguments.revision,
            split=arguments.split,
            columns=columns,
        )
    return data if arguments.limit is None else data.select(limit=arguments.limit)


def _settings(arguments: argparse.Namespace) -> "SlaqSettings":
    """Gather how the study asks."""
    from surface_consistency.studies.slaq.ask import SlaqSettings

    longest = {
        "short": arguments.short_tokens,
        "long": arguments.long_tokens,
        "free": arguments.free_tokens,
    }
    for form, tokens in longest.items():
        if tokens < 1:
            raise ValueError(f"--{form}-tokens must be 1 or more, got {tokens}")
    return SlaqSettings(
        forms=("short", "long", "free") if arguments.free else ("short", "long"),
        n_permutations=arguments.permutations,
        seed=arguments.seed,
        wording=arguments.wording,
        style="completion" if arguments.completion else "chat",
        max_new_tokens={
            "short": arguments.short_tokens,
            "long": arguments.long_tokens,
            "free": arguments.free_tokens,
        },
        repeat=arguments.repeat,
    )
