"""`score`: judge a run again, or predictions made elsewhere."""

import argparse
from pathlib import Path

from surface_consistency.commands.judges import add_judge, load_judge
from surface_consistency.commands.options import Commands, add_rule, add_source
from surface_consistency.commands.output import finish, finish_slaq, study_of
from surface_consistency.commands.rows import load_rows

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `score`."""
    score = commands.add_parser(
        "score",
        help="judge a run again, or judge predictions made elsewhere",
        description="With RUN: judge its generations again, by another rule. With --predictions: "
        "judge a JSONL or CSV file or lm-evaluation-harness samples against the data, into --out.",
    )
    score.add_argument("run", nargs="?", metavar="RUN", help="folder of a run")
    score.add_argument("--predictions", help="file of predictions made elsewhere")
    score.add_argument("--id-column", help="column of question ids or question texts")
    score.add_argument("--text-column", help="column of generated text")
    score.add_argument("--label", help="name of the model in tables (default: the file's name)")
    add_source(score)
    add_rule(score)
    add_judge(score)
    score.add_argument("--out", help="folder of the new run, with --predictions")
    score.add_argument("--json", action="store_true", help="print one JSON object")
    score.set_defaults(handle=_score, parser=score)


def _score(arguments: argparse.Namespace) -> None:
    """Judge a run, or predictions made elsewhere."""
    from surface_consistency.inference.predictions import read_predictions
    from surface_consistency.studies.run_folder import RunFolder
    from surface_consistency.studies.scoring import import_predictions, score_run

    if (arguments.run is None) == (arguments.predictions is None):
        raise ValueError("give either the folder of a run or --predictions FILE, one of them")
    if arguments.run is not None:
        _refuse_data_options(arguments)
        study = study_of([arguments.run])
        _refuse_options_of_others(arguments, study)
        if study == "slaq":
            _score_slaq(arguments)
            return
        folder = RunFolder.open(arguments.run)
    else:
        if arguments.out is None:
            raise ValueError("--predictions needs --out, the folder for the verdicts")
        predictions = read_predictions(
            arguments.predictions,
            id_column=arguments.id_column,
            text_column=arguments.text_column,
        )
        folder = import_predictions(
            load_rows(arguments),
            predictions,
            arguments.out,
            model=arguments.label or Path(arguments.predictions).stem,
            origin=str(arguments.predictions),
        )
    score_run(folder, rule=arguments.rule, region=arguments.region)
    finish([folder.path], arguments, out=folder.path)


def _refuse_options_of_others(arguments: argparse.Namespace, study: str) -> None:
    """Refuse options that judging a run of this study would not heed."""
    if study == "audit":
        raise ValueError(
            f"{arguments.run} is an audit, which `surface-consistency audit` judges: give its own "
            "command again, with --cleaner and --equivalence"
        )
    parser: argparse.ArgumentParser = arguments.parser
    own = {"rule", "region"} if study == "slaq" else set(_judge_options(arguments))
    foreign = [name for name in sorted(own) if getattr(arguments, name) != parser.get_default(name)]
    if foreign:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        remedy = "use --judge-rule" if study == "slaq" else "use --rule and --region"
        raise ValueError(f"{named} does not judge runs of {study}; {remedy}")


def _judge_options(arguments: argparse.Namespace) -> set[str]:
    """Name the options of judges."""
    names = {name for name in vars(arguments) if name.startswith(("judge", "labelling"))}
    return names | {"all_facts", "labels"}


def _score_slaq(arguments: argparse.Namespace) -> None:
    """Judge a SLAQ run again."""
    from surface_consistency.studies.slaq.folder import SlaqFolder
    from surface_consistency.studies.slaq.score import score_slaq

    folder = SlaqFolder.open(arguments.run)
    judge = load_judge(arguments, folder.path, progress=not arguments.json)
    score_slaq(folder, judge)
    finish_slaq([folder.path], arguments, out=folder.path)


def _refuse_data_options(arguments: argparse.Namespace) -> None:
    """Refuse options that scoring a run again would not heed."""
    parser: argparse.ArgumentParser = arguments.parser
    heeded = {"command", "debug", "handle", "json", "parser", "region", "rule", "run"}
    heeded |= _judge_options(arguments)
    foreign = [
        f"--{name.replace('_', '-')}"
        for name, value in vars(arguments).items()
        if name not in heeded and value != parser.get_default(name)
    ]
    if foreign:
        raise ValueError(
            f"{', '.join(foreign)} belong to --predictions; a run is scored where it is, against "
            "its own questions"
        )
