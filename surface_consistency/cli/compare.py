"""`compare`: the paired table of anyone's verdicts, or of two runs."""

import json as json_
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import pandas as pd
from cyclopts import Parameter

from surface_consistency.engine.compare import (
    RUN_RATES,
    compare_verdicts,
    comparison_text,
    split_labels,
)
from surface_consistency.engine.verdict_files import read_verdicts
from surface_consistency.metrics.uncertainty.intervals import Intervals

if TYPE_CHECKING:
    from surface_consistency.engine.two_runs import TwoRuns

__all__ = ["make_compare"]

_Test = Literal[
    "auto",
    "independent",
    "exact",
    "corrected",
    "uncorrected",
    "mid-p",
    "obuchowski",
    "durkalski",
]
_FLAGS = {
    "n_resamples": "--resamples",
    "level": "--confidence",
    "rng": "--seed",
    "sample_filter": "--filter",
    "pair_id": "--pair-id",
} | {
    name: f"--{name}"
    for name in ("first", "second", "condition", "correct", "fact", "cluster", "by", "separator")
}


def make_compare(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command `compare`.

    Args:
        argv: Arguments after it; they do not matter.

    Returns:
        The command.
    """
    return _compare


def _compare(
    *verdicts: Annotated[
        Path, Parameter(help="One file, one for each condition, or the folders of two runs.")
    ],
    first: Annotated[
        str | None,
        Parameter(help="Column or condition of the first verdict; what to call the first run."),
    ] = None,
    second: Annotated[
        str | None,
        Parameter(help="Column or condition of the second one; what to call the second run."),
    ] = None,
    condition: Annotated[
        str | None, Parameter(help="Column of the condition, with one row a verdict.")
    ] = None,
    correct: Annotated[
        str | None, Parameter(help="Column of the verdict, with one row a verdict.")
    ] = None,
    fact: Annotated[
        tuple[str, ...],
        Parameter(
            help="Column that tells which verdicts belong together.",
            consume_multiple=True,
            negative=(),
        ),
    ] = ("fact_id",),
    pair_id: Annotated[
        str | None, Parameter(help="Column in which no value may stand twice in a group.")
    ] = None,
    cluster: Annotated[
        str | None,
        Parameter(
            help="Column of what intervals take as a whole; fact_id if there by default, of runs "
            "what their report takes."
        ),
    ] = None,
    by: Annotated[
        tuple[str, ...],
        Parameter(
            help="Column of groups; the page of two runs has all that they know by default.",
            consume_multiple=True,
            negative=(),
        ),
    ] = (),
    common: Annotated[
        bool,
        Parameter(help="Compare the questions that both runs asked, if not the same.", negative=()),
    ] = False,
    separator: Annotated[
        str | None, Parameter(help="What separates several labels in a cell of --by.")
    ] = None,
    sample_filter: Annotated[
        str | None,
        Parameter(name="--filter", help="Filter of lm-evaluation-harness samples to read."),
    ] = None,
    blank: Annotated[
        Literal["missing", "wrong"], Parameter(help="What a blank verdict counts as.")
    ] = "missing",
    test: Annotated[
        _Test,
        Parameter(
            help="Form of McNemar's test; auto is Obuchowski's where clusters hold several pairs."
        ),
    ] = "auto",
    interval: Annotated[
        Literal["auto", "percentile", "bca"],
        Parameter(help="How intervals are made; auto also holds near 0 and 1 and takes no draws."),
    ] = "auto",
    confidence: Annotated[float, Parameter(help="Coverage of the intervals.")] = 0.95,
    resamples: Annotated[
        int, Parameter(help="Bootstrap resamples of --interval percentile and bca.")
    ] = 10_000,
    seed: Annotated[int, Parameter(help="Seed of these resamples.")] = 0,
    out: Annotated[
        Path | None, Parameter(help="Folder for a page and tables besides what is printed.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object a group.", negative=())] = False,
) -> None:
    """Print the paired table of anyone's verdicts or of two runs, and write a page of them.

    Compare 0/1 verdicts under two conditions, from CSV, JSONL, Parquet or lm-evaluation-harness
    samples: one row a pair with a column for each condition, one row a verdict with --condition
    and --correct, or one file for each condition.

    Given the folders of two runs, compare them question by question: the same weights in 8 and in
    16 bits, before and after fine-tuning, unlearning or editing.
    """
    if not verdicts:
        raise ValueError("give a file of verdicts, one for each condition, or two run folders")
    if resamples < 1:
        raise ValueError(f"--resamples must be 1 or more, got {resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"--confidence must lie between 0 and 1, got {confidence}")
    if out is not None and (test, interval, confidence) != ("auto", "auto", 0.95):
        raise ValueError(
            "the page of --out has the default test and 95 % intervals, so its numbers would not "
            "be those printed; leave out --out, or --test, --interval and --confidence"
        )
    compared: TwoRuns | None = None
    if any(path.is_dir() for path in verdicts):
        _refuse_columns(
            condition=condition,
            correct=correct,
            fact=None if fact == ("fact_id",) else fact,
            pair_id=pair_id,
            separator=separator,
            filter=sample_filter,
            blank=None if blank == "missing" else blank,
        )
        compared = _two_runs(verdicts, cluster=cluster, common=common)
        first, second = first or compared.names[0], second or compared.names[1]
    elif common:
        raise ValueError("--common is for the folders of two runs")
    if first is None or second is None:
        missing = "--first" if first is None else "--second"
        raise ValueError(
            f"{missing} is required: the column of a verdict, the value of --condition, or what "
            "to call a file"
        )
    try:
        frame = (
            read_verdicts(
                verdicts[0] if len(verdicts) == 1 else verdicts,
                first=first,
                second=second,
                condition=condition,
                correct=correct,
                fact=fact[0] if len(fact) == 1 else fact,
                cluster=cluster,
                pair_id=pair_id,
                within=None,
                sample_filter=sample_filter,
                blank=blank,
            )
            if compared is None
            else compared.frame
        )
        tabulate = partial(
            compare_verdicts,
            frame,
            separator=separator,
            test=test,
            intervals=Intervals(level=confidence, method=interval, n_resamples=resamples, rng=seed),
            **({} if compared is None else {"rates": RUN_RATES}),
        )
        tables = [tabulate(by=by)]
        if compared is not None and not by and frame["condition"].nunique() > 1:
            # What is lost under one condition, such as a deletion, may be meant to be lost.
            tables.append(tabulate(by=("condition",)))
    except ValueError as error:
        # pydantic, which flags of records need, is loaded for an error alone.
        from surface_consistency.schemas.settings import name_flags

        raise ValueError(name_flags(str(error), _FLAGS)) from error
    if out is not None:
        split = split_labels(frame, by, separator)
        _write_page(split, out, verdicts, (first, second), by, resamples, seed, compared)
    if json:
        for row in chain.from_iterable(tables):
            print(json_.dumps(row, ensure_ascii=False, allow_nan=False))
        return
    print("\n\n".join(comparison_text(rows, first=first, second=second) for rows in tables))
    for note in () if compared is None else compared.notes:
        print(f"note: {note}")
    if out is not None:
        print(f"\nreport: {out / 'report.html'}")


def _refuse_columns(**options: object) -> None:
    """Refuse options that name columns of files where runs are given, which have their own."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given:
        raise ValueError(
            f"{', '.join(given)} say how to read files of verdicts; the folders of two runs need "
            "none of them"
        )


def _two_runs(folders: Sequence[Path], *, cluster: str | None, common: bool) -> "TwoRuns":
    """Read two runs."""
    from surface_consistency.engine.two_runs import read_two_runs

    if len(folders) != 2:
        given = ", ".join(map(str, folders))
        raise ValueError(f"give the folders of two runs, or files of verdicts; got {given}")
    return read_two_runs(*folders, cluster=cluster, common=common)


def _write_page(
    frame: pd.DataFrame,
    out: Path,
    verdicts: tuple[Path, ...],
    conditions: tuple[str, str],
    by: tuple[str, ...],
    resamples: int,
    seed: int,
    compared: "TwoRuns | None",
) -> None:
    """Write the page of a comparison."""
    # The engine is loaded for a page alone: the table on the terminal starts faster without it.
    from surface_consistency.engine.report import report_runs
    from surface_consistency.engine.study import ReportSettings
    from surface_consistency.engine.verdicts import import_verdicts

    first, second = conditions
    if compared is None:
        folder = import_verdicts(
            frame, out, origin=", ".join(map(str, verdicts)), first=first, second=second, by=by
        )
    else:
        from surface_consistency.engine.two_runs_study import import_two_runs

        folder = import_two_runs(compared, out, first=first, second=second, by=by or compared.by)
    report_runs(
        [folder.path], out, settings=ReportSettings(resamples=resamples, bootstrap_seed=seed)
    )
