"""What the command line takes."""

import argparse
from typing import Final, TypeAlias

import surface_consistency
from surface_consistency.taxonomy import TEMPLATES

__all__ = ["SAMPLE", "make_parser"]

SAMPLE: Final = "sample"
"""Value of `--source` that stands for the bundled sample."""

_RULES: Final = ("popqa", "exact", "boundary", "token_f1", "fuzzy")
_REGIONS: Final = ("first_line", "whole")
_TESTS: Final = (
    "auto",
    "exact",
    "corrected",
    "uncorrected",
    "mid-p",
    "obuchowski",
    "durkalski",
)
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def make_parser() -> argparse.ArgumentParser:
    """Describe the whole command line.

    Returns:
        The parser; a parsed command has its name in `command`.
    """
    parser = argparse.ArgumentParser(
        prog="surface-consistency",
        description="Is the same fact answered alike under two conditions?",
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {surface_consistency.__version__}"
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    _add_demo(commands)
    _add_run(commands)
    _add_score(commands)
    _add_report(commands)
    _add_compare(commands)
    return parser


def _add_demo(commands: _Commands) -> None:
    """Describe `demo`."""
    demo = commands.add_parser(
        "demo",
        help="train a small model on planted facts and run the whole study on it",
        description="Train a small model on the bundled sample, in which some names are frequent, "
        "some rare and some absent, and run the RedirectQA study on it. No network, no GPU.",
    )
    demo.add_argument("--steps", type=int, default=None, help="training steps")
    _add_output(demo)


def _add_run(commands: _Commands) -> None:
    """Describe `run`."""
    run = commands.add_parser("run", help="run a study end to end on a model")
    studies = run.add_subparsers(title="studies", required=True, metavar="STUDY", dest="study")
    study = studies.add_parser(
        "redirectqa",
        help="canonical names against Wikipedia redirects",
        description="Ask a model every fact under its canonical and redirect names, score, report. "
        "Started again with the same arguments, a stopped run goes on where it was.",
    )
    _add_source(study)
    model = study.add_argument_group("model")
    model.add_argument("--model", help="hub id or folder; what the runner calls its model")
    model.add_argument("--label", help="name of the model in tables (default: --model)")
    model.add_argument(
        "--runner",
        default="transformers",
        help="registered runner, package:name or module:attribute (default: %(default)s)",
    )
    model.add_argument(
        "--runner-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="keyword argument of the runner, JSON or text; may be given again",
    )
    model.add_argument("--model-revision", help="commit, tag or branch of the model")
    model.add_argument("--dtype", help="auto, float32, bfloat16 or float16 (default: auto)")
    model.add_argument("--device", help="cpu, cuda, cuda:1, mps (default: the best there is)")
    model.add_argument("--int8", action="store_true", help="8-bit weights, as in the paper")
    model.add_argument("--batch-size", type=int, help="most prompts in a batch")
    _add_prompts(study)
    _add_rule(study)
    _add_output(study)


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


def _add_score(commands: _Commands) -> None:
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
    _add_source(score)
    _add_rule(score)
    score.add_argument("--out", help="folder of the new run, with --predictions")
    score.add_argument("--json", action="store_true", help="print one JSON object")


def _add_report(commands: _Commands) -> None:
    """Describe `report`."""
    report = commands.add_parser("report", help="tables, figures and one page from scored runs")
    report.add_argument("runs", nargs="+", metavar="RUN", help="folder of a scored run")
    report.add_argument(
        "--cluster",
        choices=("fact_id", "subject_id"),
        default="fact_id",
        help="what the bootstrap resamples (default: %(default)s)",
    )
    report.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples")
    _add_output(report)


def _add_compare(commands: _Commands) -> None:
    """Describe `compare`."""
    compare = commands.add_parser(
        "compare",
        help="the paired table of anyone's verdicts",
        description="Compare 0/1 verdicts under two conditions, from CSV, JSONL, Parquet or "
        "lm-evaluation-harness samples: one row a pair with a column for each condition, one row a "
        "verdict with --condition and --correct, or one file for each condition.",
    )
    compare.add_argument(
        "verdicts", nargs="+", metavar="FILE", help="one file, or one for each condition"
    )
    columns = compare.add_argument_group("columns")
    columns.add_argument("--first", required=True, help="column or condition of the first verdict")
    columns.add_argument("--second", required=True, help="column or condition of the second one")
    columns.add_argument("--condition", help="column of the condition, with one row a verdict")
    columns.add_argument("--correct", help="column of the verdict, with one row a verdict")
    columns.add_argument(
        "--fact",
        action="append",
        help="column that tells which verdicts belong together; may be given again",
    )
    columns.add_argument("--pair-id", help="column in which no value may stand twice in a group")
    columns.add_argument(
        "--cluster", help="column of what is resampled as a whole (default: fact_id if there)"
    )
    columns.add_argument(
        "--by", action="append", default=[], help="column of groups; may be given again"
    )
    columns.add_argument("--separator", help="what separates several labels in a cell of --by")
    columns.add_argument("--filter", help="filter of lm-evaluation-harness samples to read")
    how = compare.add_argument_group("statistics")
    how.add_argument("--test", choices=_TESTS, default="auto", help="McNemar's test (%(default)s)")
    how.add_argument("--confidence", type=float, default=0.95, help="of intervals (%(default)s)")
    how.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples")
    how.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    compare.add_argument("--json", action="store_true", help="print one JSON object a group")


def _add_source(parser: argparse.ArgumentParser) -> None:
    """Describe where the rows come from."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--source",
        default="naist-nlp/RedirectQA",
        help="hub id, folder, Parquet, JSONL or CSV file, or 'sample' (default: %(default)s)",
    )
    data.add_argument("--revision", help="commit, tag or branch of the data")
    data.add_argument("--split", default="test", help="split of the data (default: %(default)s)")
    data.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=COLUMN",
        help="name the column of a field; may be given again",
    )


def _add_rule(parser: argparse.ArgumentParser) -> None:
    """Describe how answers are judged."""
    rule = parser.add_argument_group("matching")
    rule.add_argument(
        "--rule", choices=_RULES, default="popqa", help="matching rule (default: %(default)s)"
    )
    rule.add_argument(
        "--region",
        choices=_REGIONS,
        default="first_line",
        help="judged part of the output (default: %(default)s)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Describe where the results go."""
    parser.add_argument("--out", required=True, help="folder of the results")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
