"""`compare`: the paired table of anyone's verdicts."""

import argparse
import json
from typing import Final

from surface_consistency.commands.options import Commands

__all__ = ["add"]

_TESTS: Final = (
    "auto",
    "exact",
    "corrected",
    "uncorrected",
    "mid-p",
    "obuchowski",
    "durkalski",
)


def add(commands: Commands) -> None:
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
    compare.set_defaults(handle=_compare)


def _compare(arguments: argparse.Namespace) -> None:
    """Print the paired table of anyone's verdicts."""
    from surface_consistency.studies.compare import compare, comparison_text

    files = arguments.verdicts
    rows = compare(
        files[0] if len(files) == 1 else files,
        first=arguments.first,
        second=arguments.second,
        condition=arguments.condition,
        correct=arguments.correct,
        fact=arguments.fact or "fact_id",
        cluster=arguments.cluster,
        pair_id=arguments.pair_id,
        sample_filter=arguments.filter,
        by=arguments.by,
        separator=arguments.separator,
        test=arguments.test,
        confidence=arguments.confidence,
        n_resamples=arguments.resamples,
        seed=arguments.seed,
    )
    if not arguments.json:
        print(comparison_text(rows, first=arguments.first, second=arguments.second))
        return
    for row in rows:
        print(json.dumps(row, ensure_ascii=False, allow_nan=False))
