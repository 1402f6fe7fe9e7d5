"""Which judge decides whether an answer is right."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.commands.options import options_of

if TYPE_CHECKING:
    from surface_consistency.studies.slaq.judge import Judge

__all__ = ["add_judge", "load_judge"]

_JUDGES: Final = ("matcher", "llm", "human")


def add_judge(parser: argparse.ArgumentParser) -> None:
    """Describe who judges."""
    judge = parser.add_argument_group("judging (studies with a judge)")
    judge.add_argument(
        "--judge",
        choices=_JUDGES,
        default="matcher",
        help="a matching rule, a model, or labels of people (default: %(default)s)",
    )
    judge.add_argument(
        "--judge-rule",
        default="boundary",
        help="matching rule of --judge matcher (default: %(default)s)",
    )
    judge.add_argument(
        "--all-facts",
        action="store_true",
        help="match answers that are no named entities too; else they stay unjudged",
    )
    judge.add_argument(
        "--judge-model", help="model of --judge llm; a hub id, folder or server's id"
    )
    judge.add_argument(
        "--judge-runner",
        default="openai",
        help="runner of --judge llm (default: %(default)s, which reads OPENAI_BASE_URL)",
    )
    judge.add_argument(
        "--judge-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="keyword argument of the judge's runner; may be given again",
    )
    judge.add_argument(
        "--judge-max-new-tokens",
        type=int,
        default=64,
        help="longest reply of the judge; raise it for models that think (default: %(default)s)",
    )
    judge.add_argument("--labels", help="CSV file of --judge human")


def load_judge(arguments: argparse.Namespace, folder: Path, *, progress: bool) -> "Judge":
    """Make the judge that was asked for; a model's log goes into the folder."""
    from surface_consistency.inference.registry import load_runner
    from surface_consistency.studies.slaq.human_judge import HumanJudge
    from surface_consistency.studies.slaq.llm_judge import LLMJudge
    from surface_consistency.studies.slaq.matcher_judge import MatcherJudge

    if arguments.judge == "matcher":
        return MatcherJudge(arguments.judge_rule, entities_only=not arguments.all_facts)
    if arguments.judge == "human":
        if arguments.labels is None:
            raise ValueError("--judge human needs --labels, a CSV file of labels")
        return HumanJudge(arguments.labels)
    if arguments.judge_model is None and arguments.judge_runner in ("openai", "transformers"):
        raise ValueError("--judge llm needs --judge-model, the model that judges")
    runner = load_runner(
        arguments.judge_runner,
        model=arguments.judge_model,
        options=options_of(arguments.judge_option, "--judge-option"),
    )
    return LLMJudge(
        runner,
        folder,
        model=arguments.judge_model or runner.name,
        max_new_tokens=arguments.judge_max_new_tokens,
        progress=progress,
    )
