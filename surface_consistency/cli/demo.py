"""`demo`: the whole study on a small model, trained on the spot."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from surface_consistency.cli.demo_run import DEFAULT_STEPS, run_demo
from surface_consistency.cli.options import Json, Out
from surface_consistency.cli.output import finish
from surface_consistency.engine.report import report_runs
from surface_consistency.plugins import load_maker

__all__ = ["make_demo"]


def make_demo(argv: Sequence[str]) -> Callable[..., object]:
    """Make the command `demo`.

    Args:
        argv: Arguments after it; they do not matter.

    Returns:
        The command.
    """
    return _demo


def _demo(
    *,
    out: Out,
    steps: Annotated[int, Parameter(help="Training steps.")] = DEFAULT_STEPS,
    frequency: Annotated[
        bool,
        Parameter(
            help="Two worlds of planted frequencies instead: whether what counts is how often "
            "the name was read, or how often the entity was.",
            negative=(),
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Train a small model on planted facts and run the whole study on it.

    In the bundled sample some names are frequent, some rare and some absent. No network, no GPU.
    """
    if steps < 1:
        raise ValueError(f"--steps must be 1 or more, got {steps}")
    if frequency:
        return _demo_frequency(out, steps, json=json)
    folder, exposure = run_demo(
        out, steps=steps, say=None if json else lambda line: print(line, flush=True)
    )
    if not json:
        print(f"\n{exposure.to_string(index=False, float_format='{:.3f}'.format)}\n")
        print("first is the canonical name, second the redirect; times_in_text is how often the")
        print("redirect stands in the training text, by count, longer names and answers included.")
        print("Two wrong answers are consistent too: see the last row.\n")
    return finish(report_runs([folder.path], out), out, as_json=json)


def _demo_frequency(out: Path, steps: int, *, json: bool) -> int:
    """Train a small model in each of two worlds and see whether the analysis tells them apart."""
    run_frequency_demo = load_maker("demo-frequency", "`demo --frequency`")

    reported, table = run_frequency_demo(
        out, steps=steps, say=None if json else lambda line: print(line, flush=True)
    )
    if not json:
        print(f"\n{table.to_string(index=False, float_format='{:.3f}'.format)}\n")
        print("entity_given_surface: does accuracy go with the frequency of the entity beyond that")
        print("of the name? In the surface world it does not, whatever a linker's errors feign.\n")
    return finish(reported, out, as_json=json)
