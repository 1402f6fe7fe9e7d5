"""The command line: one command with subcommands, each in its module of `commands`."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import surface_consistency
from surface_consistency.commands import audit, build, compare, demo, report, run, score
from surface_consistency.errors import SurfaceConsistencyError

__all__ = ["main", "make_parser"]


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
            arguments.handle(arguments)
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
    for module in (demo, run, audit, build, score, report, compare):
        module.add(commands)
    return parser


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
