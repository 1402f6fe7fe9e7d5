"""`demo`: the whole study on a small model, trained on the spot."""

from collections.abc import Callable, Sequence
from typing import Annotated

from cyclopts import Parameter

from surface_consistency.commands.options import Json, Out
from surface_consistency.commands.output import finish
from surface_consistency.studies.demo import DEFAULT_STEPS, run_demo
from surface_consistency.studies.reporting import report_runs

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
    json: Json = False,
) -> int:
    """Train a small model on planted facts and run the whole study on it.

    In the bundled sample some names are frequent, some rare and some absent. No network, no GPU.
    """
    if steps < 1:
        raise ValueError(f"--steps must be 1 or more, got {steps}")
    folder, exposure = run_demo(
        out, steps=steps, say=None if json else lambda line: print(line, flush=True)
    )
    if not json:
        print(f"\n{exposure.to_string(index=False, float_format='{:.3f}'.format)}\n")
        print("first is the canonical name, second the redirect; times_in_text is how often the")
        print("redirect stands in the training text, by count, longer names and answers included.")
        print("Two wrong answers are consistent too: see the last row.\n")
    return finish(report_runs([folder.path], out), out, as_json=json)
