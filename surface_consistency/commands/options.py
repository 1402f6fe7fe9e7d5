"""Options that several subcommands share."""

import argparse
import json
from collections.abc import Sequence
from typing import Final, TypeAlias

__all__ = [
    "SAMPLE",
    "Commands",
    "add_model",
    "add_output",
    "add_rule",
    "add_source",
    "options_of",
    "pairs",
    "runner_options",
]

SAMPLE: Final = "sample"
"""Value of `--source` that stands for the bundled sample."""

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What `add_subparsers` returns."""

_RULES: Final = ("popqa", "exact", "boundary", "token_f1", "fuzzy")
_REGIONS: Final = ("first_line", "whole")


def add_source(parser: argparse.ArgumentParser, default: str = "naist-nlp/RedirectQA") -> None:
    """Describe where the rows come from."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--source",
        default=default,
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


def add_rule(parser: argparse.ArgumentParser) -> None:
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


def add_output(parser: argparse.ArgumentParser) -> None:
    """Describe where the results go."""
    parser.add_argument("--out", required=True, help="folder of the results")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Describe who answers."""
    model = parser.add_argument_group("model")
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


def runner_options(arguments: argparse.Namespace) -> dict[str, object]:
    """Gather the runner's keyword arguments: those given by name, then the named flags."""
    named = {
        "revision": arguments.model_revision,
        "dtype": arguments.dtype,
        "device": arguments.device,
        "quantization": "int8" if arguments.int8 else None,
        "batch_size": arguments.batch_size,
    }
    given = options_of(arguments.runner_option, "--runner-option")
    return given | {name: value for name, value in named.items() if value is not None}


def options_of(given: Sequence[str], option: str) -> dict[str, object]:
    """Read NAME=VALUE arguments whose values are JSON, or else text."""
    options: dict[str, object] = {}
    for name, value in pairs(given, option).items():
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Split NAME=VALUE arguments."""
    pairs = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise ValueError(f"{option} takes NAME=VALUE, got {item!r}")
        pairs[name] = value
    return pairs
