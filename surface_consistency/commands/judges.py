"""Which judge decides whether an answer is right, and what people say of it."""

import argparse
import hashlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.commands.options import options_of

if TYPE_CHECKING:
    from surface_consistency.studies.slaq.judge import Judge

__all__ = ["add_judge", "load_judge", "make_judge", "take_labels"]

_JUDGES: Final = ("matcher", "llm", "human")
_FOLDER: Final = "judges"


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
        "--judge-label", help="name of the judging model in tables (default: --judge-model)"
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
    _add_labels(judge)


def _add_labels(judge: "argparse._ArgumentGroup") -> None:
    """Describe what people say of answers."""
    judge.add_argument(
        "--labels",
        help="CSV file of labels: the verdicts of --judge human; any other judge is held against "
        "them, and its errors are taken out of the scores",
    )
    judge.add_argument(
        "--labelling-sheet",
        dest="judge_sheet",
        metavar="FILE",
        help="write a CSV file of answers drawn at random, for people to label",
    )
    judge.add_argument(
        "--labelling-sample",
        dest="judge_sample",
        type=int,
        default=50,
        metavar="N",
        help="facts of each form in --labelling-sheet (default: %(default)s)",
    )
    judge.add_argument(
        "--labelling-seed",
        dest="judge_seed",
        type=int,
        default=0,
        metavar="SEED",
        help="seed of the draw of --labelling-sheet (default: %(default)s)",
    )


def load_judge(arguments: argparse.Namespace, folder: Path, *, progress: bool) -> "Judge":
    """Make the judge of a run that is there, and do what was asked for about labels."""
    judge = make_judge(arguments, folder, progress=progress)
    take_labels(arguments, folder)
    return judge


def make_judge(arguments: argparse.Namespace, folder: Path, *, progress: bool) -> "Judge":
    """Make the judge that was asked for; a model's log goes into the folder."""
    from surface_consistency.inference.registry import load_runner
    from surface_consistency.studies.slaq.human_judge import HumanJudge
    from surface_consistency.studies.slaq.labels import read_labels
    from surface_consistency.studies.slaq.llm_judge import LLMJudge
    from surface_consistency.studies.slaq.matcher_judge import MatcherJudge

    if arguments.judge == "human":
        if arguments.labels is None:
            raise ValueError("--judge human needs --labels, a CSV file of labels")
        return HumanJudge(arguments.labels)
    if arguments.labels is not None:
        read_labels(arguments.labels)
    if arguments.judge == "matcher":
        return MatcherJudge(arguments.judge_rule, entities_only=not arguments.all_facts)
    if arguments.judge_model is None and arguments.judge_runner in ("openai", "transformers"):
        raise ValueError("--judge llm needs --judge-model, the model that judges")
    if arguments.judge_max_new_tokens < 1:
        raise ValueError(
            f"--judge-max-new-tokens must be 1 or more, got {arguments.judge_max_new_tokens}"
        )
    runner = load_runner(
        arguments.judge_runner,
        model=arguments.judge_model,
        options=options_of(arguments.judge_option, "--judge-option"),
    )
    label = arguments.judge_label or arguments.judge_model or runner.name
    return LLMJudge(
        runner,
        folder / _FOLDER / _file_name(label),
        model=label,
        max_new_tokens=arguments.judge_max_new_tokens,
        progress=progress,
    )


def take_labels(arguments: argparse.Namespace, folder: Path) -> None:
    """Put the labels into the run's folder, and write the sheet that was asked for."""
    from surface_consistency.studies.slaq.folder import SlaqFolder
    from surface_consistency.studies.slaq.labels import (
        check_labels,
        read_labels,
        write_labelling_sheet,
    )
    from surface_consistency.studies.slaq.score import read_slaq_tasks

    if arguments.labels is None and arguments.judge_sheet is None:
        return
    run = SlaqFolder.open(folder)
    tasks = read_slaq_tasks(run)
    if arguments.labels is not None:
        answered = {(task.prompt_id, fact.id) for task in tasks for fact in task.questions}
        check_labels(read_labels(arguments.labels), answered)
        if Path(arguments.labels).resolve() != run.labels.resolve():
            shutil.copyfile(arguments.labels, run.labels)
    if arguments.judge_sheet is not None:
        write_labelling_sheet(
            arguments.judge_sheet, tasks, n=arguments.judge_sample, seed=arguments.judge_seed
        )


def _file_name(label: str) -> str:
    """Name a folder after a judge: its letters and digits, and a digest that tells alike apart."""
    words = "-".join(re.findall(r"[A-Za-z0-9]+", label))[-60:] or "judge"
    return f"{words}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
