"""The command line: one command with subcommands, thin over studies and report."""

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from surface_consistency.arguments import SAMPLE, make_parser
from surface_consistency.errors import MissingDependencyError, SurfaceConsistencyError
from surface_consistency.taxonomy import TEMPLATES

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.data.redirectqa import RedirectQA
    from surface_consistency.studies.redirectqa import RedirectQASettings

__all__ = ["main"]

_SHOWN: Final = ("template", "n", "first_accuracy", "second_accuracy", "consistency", "flip_rate")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; None takes those of the process.

    Returns:
        0 when the work is done, 2 for a user's mistake or bad input, 130 when interrupted.
    """
    arguments = make_parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _COMMANDS[arguments.command](arguments)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; devnull keeps the interpreter's last flush quiet.
        sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115
        return 0
    except (SurfaceConsistencyError, ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)


def _demo(arguments: argparse.Namespace) -> None:
    """Run the demonstration."""
    from surface_consistency.studies.demo import DEFAULT_STEPS, run_demo

    folder, exposure = run_demo(
        arguments.out,
        steps=DEFAULT_STEPS if arguments.steps is None else arguments.steps,
        say=None if arguments.json else lambda line: print(line, flush=True),
    )
    if not arguments.json:
        print(f"\n{_as_text(exposure)}\n")
        print("first is the canonical name, second the redirect; exposure is how often the model")
        print("was taught the redirect. Two wrong answers are consistent too: see the last row.\n")
    _finish([folder.path], arguments, out=folder.path)


def _run_redirectqa(arguments: argparse.Namespace) -> None:
    """Ask, score and report."""
    from surface_consistency.inference.registry import load_runner
    from surface_consistency.studies.redirectqa import run_redirectqa
    from surface_consistency.studies.scoring import score_run

    if arguments.runner == "transformers" and arguments.model is None:
        raise ValueError("--runner transformers needs --model, a hub id or the folder of a model")
    data = _load(arguments)
    options = _runner_options(arguments)
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
    _finish([folder.path], arguments, out=folder.path)


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


def _runner_options(arguments: argparse.Namespace) -> dict[str, object]:
    """Gather the runner's keyword arguments: those given by name, then the named flags."""
    options: dict[str, object] = {}
    for name, value in _pairs(arguments.runner_option, "--runner-option").items():
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    named = {
        "revision": arguments.model_revision,
        "dtype": arguments.dtype,
        "device": arguments.device,
        "quantization": "int8" if arguments.int8 else None,
        "batch_size": arguments.batch_size,
    }
    return options | {name: value for name, value in named.items() if value is not None}


def _score(arguments: argparse.Namespace) -> None:
    """Judge a run, or predictions made elsewhere."""
    from surface_consistency.inference.predictions import read_predictions
    from surface_consistency.studies.run_folder import RunFolder
    from surface_consistency.studies.scoring import import_predictions, score_run

    if (arguments.run is None) == (arguments.predictions is None):
        raise ValueError("give either the folder of a run or --predictions FILE, one of them")
    if arguments.run is not None:
        _refuse_data_options(arguments)
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
            _load(arguments),
            predictions,
            arguments.out,
            model=arguments.label or Path(arguments.predictions).stem,
            origin=str(arguments.predictions),
        )
    score_run(folder, rule=arguments.rule, region=arguments.region)
    _finish([folder.path], arguments, out=folder.path)


def _refuse_data_options(arguments: argparse.Namespace) -> None:
    """Refuse options that scoring a run again would not heed."""
    defaults = make_parser().parse_args(["score", arguments.run])
    heeded = {"command", "debug", "json", "region", "rule", "run"}
    foreign = [
        f"--{name.replace('_', '-')}"
        for name, value in vars(arguments).items()
        if name not in heeded and value != getattr(defaults, name)
    ]
    if foreign:
        raise ValueError(
            f"{', '.join(foreign)} belong to --predictions; a run is scored where it is, against "
            "its own questions"
        )


def _report(arguments: argparse.Namespace) -> None:
    """Write the page."""
    out = Path(arguments.out)
    if out.suffix == ".html" or out.is_file():
        raise ValueError(f"--out names a folder, which gets report.html, not {out}")
    _finish(
        arguments.runs,
        arguments,
        out=Path(arguments.out),
        cluster=arguments.cluster,
        n_resamples=arguments.resamples,
    )


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


def _load(arguments: argparse.Namespace) -> "RedirectQA":
    """Load the rows."""
    from surface_consistency.data.redirectqa import load_redirectqa
    from surface_consistency.data.sample import load_sample

    columns = _pairs(arguments.column, "--column") or None
    if arguments.source == SAMPLE:
        if columns is not None:
            raise ValueError("--column belongs to data of your own; the sample's are known")
        return load_sample()
    return load_redirectqa(
        arguments.source,
        revision=arguments.revision,
        split=arguments.split,
        columns=columns,
    )


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Split NAME=VALUE arguments."""
    pairs = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise ValueError(f"{option} takes NAME=VALUE, got {item!r}")
        pairs[name] = value
    return pairs


def _finish(
    runs: Sequence[str | Path],
    arguments: argparse.Namespace,
    *,
    out: Path,
    cluster: str = "fact_id",
    n_resamples: int = 10_000,
) -> None:
    """Write tables, figures and page, and say where they are."""
    from surface_consistency.report import (
        load_runs,
        study_tables,
        write_figures,
        write_report,
        write_tables,
    )

    loaded = load_runs(runs)
    tables = study_tables(loaded, cluster=cluster, n_resamples=n_resamples)
    write_tables(tables, out / "tables", runs=loaded)
    page = write_report(
        loaded, out / "report.html", cluster=cluster, n_resamples=n_resamples, tables=tables
    )
    try:
        write_figures(tables, out / "figures")
    except MissingDependencyError as error:
        print(f"warning: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(_as_json(out, page, tables), ensure_ascii=False))
        return
    overall = tables["overall"]
    print(_as_text(overall[[name for name in ("model", *_SHOWN) if name in overall]]))
    print(f"\nreport: {page}\ntables: {out / 'tables'}")


def _as_text(table: "pd.DataFrame") -> str:
    """Set a table in plain text, rates with three decimals."""
    return table.to_string(index=False, float_format="{:.3f}".format)


def _as_json(out: Path, page: Path, tables: "dict[str, pd.DataFrame]") -> dict[str, object]:
    """Gather what a machine wants to read; undefined numbers are null."""
    return {
        "out": str(out),
        "report": str(page),
        "tables": {
            name: [{key: _plain(value) for key, value in row.items()} for row in rows]
            for name, rows in (
                (name, table.to_dict(orient="records")) for name, table in tables.items()
            )
        },
    }


def _plain(value: object) -> object:
    """Turn a cell into what JSON knows."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


_COMMANDS: Final[dict[str, Callable[[argparse.Namespace], None]]] = {
    "demo": _demo,
    "run": _run_redirectqa,
    "score": _score,
    "report": _report,
    "compare": _compare,
}


if __name__ == "__main__":
    sys.exit(main())
