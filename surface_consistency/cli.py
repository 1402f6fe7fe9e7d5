"""The command line: one command with subcommands, each loaded when it is called."""

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cyclopts import App

import surface_consistency
from surface_consistency.commands.plugins import ANALYSES, STUDIES, add_plugins, run_app
from surface_consistency.errors import SurfaceConsistencyError

__all__ = ["main", "make_app"]

_HOME = "surface_consistency.commands"
_PLAIN = {
    "demo": ("demo", "Train a small model on planted facts and run the whole study on it."),
    "compare": ("compare", "The paired table, or page, of anyone's verdicts."),
}
_MADE = {
    "score": ("score", "make_score", "Judge a run again, or judge predictions made elsewhere."),
    "report": ("report", "make_report", "Tables, figures and one page from scored runs."),
}
_ALIASES = {"audit": ("run", "audit")}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; None takes those of the process.

    Returns:
        0 when the work is done, 2 for a user's mistake or bad input, 130 when interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in given
    words = [word for word in given if word != "--debug"]
    words[:1] = _ALIASES.get(words[0], words[:1]) if words else []
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            return run_app(make_app(words), words, debug=debug)
        except SurfaceConsistencyError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return 130
        except BrokenPipeError:
            # The reader of our output has gone; devnull keeps the interpreter's last flush quiet.
            sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115
            return 0


def make_app(argv: Sequence[str] = ()) -> App:
    """Describe the whole command line.

    Args:
        argv: The arguments, since the options of `score` are those of the run's study.

    Returns:
        The application. Nothing but the list of commands is loaded.
    """
    app = App(
        name="surface-consistency",
        help="Is the same fact answered alike under two conditions? --debug shows tracebacks.",
        version=surface_consistency.__version__,
        help_format="plaintext",
    )
    run = App(name="run", help="Run a study end to end on a model.", help_format="plaintext")
    build = App(name="build", help="Build a data set from its sources.", help_format="plaintext")
    analyse = App(
        name="analyse", help="Add an analysis to the page of runs.", help_format="plaintext"
    )
    command, called = (*argv[:2], "", "")[:2]
    if command == "run":
        add_plugins(run, STUDIES, _later("run", "make_run"), called=called)
    if command == "analyse":
        add_plugins(analyse, ANALYSES, _later("report", "make_analyse"), called=called)
    if command == "build":
        _later("build", "add")(build)
    for part in (run, analyse, build):
        app.command(part)
    for name, (module, text) in _PLAIN.items():
        app.command(f"{_HOME}.{module}:{name}", name=name, help=text)
    for name, (module, maker, text) in _MADE.items():
        made = _later(module, maker)(argv[1:]) if command == name else _unloaded
        app.command(made, name=name, help=None if command == name else text)
    return app


def _later(module: str, function: str) -> Callable[[Any], Any]:
    """Import a function of `commands` when it is called."""
    return lambda *given: getattr(import_module(f"{_HOME}.{module}"), function)(*given)


def _unloaded() -> None:
    """Stand for a command that is not called."""


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
