"""`demo`: the whole study on a small model, trained on the spot."""

import argparse

from surface_consistency.commands.options import Commands, add_output
from surface_consistency.commands.output import as_text, finish

__all__ = ["add"]


def add(commands: Commands) -> None:
    """Describe `demo`."""
    demo = commands.add_parser(
        "demo",
        help="train a small model on planted facts and run the whole study on it",
        description="Train a small model on the bundled sample, in which some names are frequent, "
        "some rare and some absent, and run the RedirectQA study on it. No network, no GPU.",
    )
    demo.add_argument("--steps", type=int, default=None, help="training steps")
    add_output(demo)
    demo.set_defaults(handle=_demo)


def _demo(arguments: argparse.Namespace) -> None:
    """Run the demonstration."""
    from surface_consistency.studies.demo import DEFAULT_STEPS, run_demo

    folder, exposure = run_demo(
        arguments.out,
        steps=DEFAULT_STEPS if arguments.steps is None else arguments.steps,
        say=None if arguments.json else lambda line: print(line, flush=True),
    )
    if not arguments.json:
        print(f"\n{as_text(exposure)}\n")
        print("first is the canonical name, second the redirect; times_in_text is how often the")
        print("redirect stands in the training text, by count, longer names and answers included.")
        print("Two wrong answers are consistent too: see the last row.\n")
    finish([folder.path], arguments, out=folder.path)
