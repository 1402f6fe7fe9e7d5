"""`suite`: models x revisions x studies x settings from one file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from surface_consistency.cli.output import UNANSWERED
from surface_consistency.engine.study import find_study
from surface_consistency.engine.suite.file import Suite, read_suite
from surface_consistency.engine.suite.runs import CellState, run_suite, suite_states, takes_device
from surface_consistency.engine.suite.steps import SuiteMergeStep, SuiteStep
from surface_consistency.errors import MissingDependencyError
from surface_consistency.text import one_line

_EXAMPLES = Path(__file__).parents[1] / "studies" / "redirectqa" / "suites"
_FAILED = 2


def suite(
    file: Annotated[
        Path, Parameter(help="The suite in TOML, or the name of one that comes along: redirectqa.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder of the runs and of the page.")],
    dry_run: Annotated[
        bool, Parameter(help="Say what would run where, and stop.", negative=())
    ] = False,
    tasks: Annotated[
        int | None,
        Parameter(help="Run as so many tasks of a datatrove pipeline on this machine."),
    ] = None,
    workers: Annotated[int, Parameter(help="Tasks at a time, with --tasks.")] = 1,
    shards: Annotated[int, Parameter(help="Parts of each run, with --tasks.")] = 1,
    devices: Annotated[
        tuple[str, ...],
        Parameter(
            help="Where models run, such as cuda:0 cuda:1; each task takes one that is free.",
            consume_multiple=True,
            negative=(),
        ),
    ] = (),
) -> int:
    """Run models x revisions x studies x settings from one file, and report all on one page.

    What is done already is not asked again; a run that fails is told at the end and does not stop
    the others. Which model answers what and where is told before anything starts.
    """
    if tasks is None and (workers != 1 or shards != 1 or devices):
        raise ValueError("--workers, --shards and --devices are for --tasks; give it too")
    for flag, value in (("--tasks", tasks), ("--workers", workers), ("--shards", shards)):
        if value is not None and value < 1:
            raise ValueError(f"{flag} must be 1 or more, got {value}")
    shipped = _EXAMPLES / f"{file}.toml"
    read = read_suite(shipped if not file.exists() and shipped.is_file() else file)
    states = suite_states(read, out)
    print(_plan_text(states, out, shards, devices), flush=True)
    _print_failures(states, "failed so far")
    if dry_run:
        return 0
    if tasks is None:
        states = run_suite(read, out)
    else:
        _run_tasks(read, out, tasks, workers, shards, devices)
        states = suite_states(read, out)
    counts = Counter(one.state for one in states)
    print(f"\n{', '.join(f'{n} {state}' for state, n in counts.items())}")
    _print_failures(states, "failed")
    print(f"report: {out / 'report.html'}")
    return _FAILED if counts["failed"] else UNANSWERED if counts["unanswered"] else 0


def _plan_text(states: Sequence[CellState], out: Path, shards: int, devices: Sequence[str]) -> str:
    """Say which model answers which study, where, and what of it is done."""
    lines = [("state", "study", "model", "where", "folder")]
    for one in states:
        model = one.cell.model
        where = model.device_map or model.device or "best device there is"
        if devices and takes_device(model, find_study(one.cell.entry.study)):
            where = " or ".join(dict.fromkeys(devices))
        if model.runner not in (None, "transformers"):
            where = f"runner {model.runner}"
        bits = "8 bits" if model.int8 else "4 bits" if model.int4 else model.dtype or ""
        state = f"{one.state} as {one.why}" if one.state == "same weights" else one.state
        lines.append(
            (
                state,
                one.cell.entry.name,
                one.cell.label,
                f"{where} {bits}".strip(),
                str(out / one.cell.folder),
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    if shards > 1:
        text.append(f"each run in {shards} shards")
    return "\n".join(text)


def _print_failures(states: Sequence[CellState], state: str) -> None:
    """Say why runs have failed, those of a model whose revisions are not there before the start."""
    for one in states:
        if one.state == "failed":
            print(f"{state}: {one.cell.folder}: {one_line(one.why)}", flush=True)


def _run_tasks(
    suite: Suite, out: Path, tasks: int, workers: int, shards: int, devices: Sequence[str]
) -> None:
    """Run a suite as a datatrove pipeline on this machine."""
    try:
        from datatrove.executor import LocalPipelineExecutor
    except ImportError as error:
        raise MissingDependencyError("--tasks", "datatrove", "build") from error
    step = SuiteStep(suite.path, out, shards=shards, devices=devices)
    # Whether a run is done stands in its folder, not in the marks of finished tasks.
    LocalPipelineExecutor(
        [step],
        tasks=tasks,
        workers=workers,
        logging_dir=str(out / "logs" / "ask"),
        skip_completed=False,
    ).run()
    SuiteMergeStep(suite.path, out, shards=shards)(None)
