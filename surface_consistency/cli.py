"""The command line: one command with subcommands, each loaded when it is called.

Lists of commands are printed from here, so that `--help` loads neither the library that reads
options nor anything that computes.
"""

import shutil
import sys
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import surface_consistency
from surface_consistency.errors import SurfaceConsistencyError

__all__ = ["main"]

_COMMANDS = {
    "run": "Run a study end to end on a model.",
    "score": "Judge a run again, or judge predictions made elsewhere.",
    "report": "Tables, figures and one page from scored runs.",
    "analyse": "Add an analysis to the page of runs.",
    "compare": "The paired table, or page, of anyone's verdicts.",
    "build": "Build a data set from its sources.",
    "count": "Count names, pairs of entities or n-grams in a corpus.",
    "demo": "Train a small model on planted facts and run the whole study on it.",
}
_OPTIONS = {
    "--help": "Show this list, or with a command its options.",
    "--version": "Show the version.",
    "--debug": "Show the traceback of an error.",
    "--install-completion": "Let the shell complete commands and options.",
}
_PLUGINS = {
    "run": ("study", "studies", "Ask a model every fact under both conditions, score, report."),
    "analyse": ("analysis", "analyses", "Read runs and something else; add to their page."),
}
_ALIASES = {"audit": ("run", "audit")}
_HELP = ("--help", "-h")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; None takes those of the process.

    Returns:
        0 when the work is done, 2 for a user's mistake or bad input, 130 when interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    words[:1] = _ALIASES.get(words[0], words[:1]) if words else []
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            _run(words)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has gone; devnull keeps the interpreter's last flush quiet.
            sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115
        except (SurfaceConsistencyError, ValueError, OSError) as error:
            if "--debug" in given:
                raise
            for line in str(error).splitlines():
                print(f"error: {line}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return 130
    return 0


def _run(words: Sequence[str]) -> None:
    """Print a list, or load and call a command."""
    command, rest = (*words, "--help")[0], words[1:]
    if command in _HELP:
        text = "Is the same fact answered alike under two conditions?"
        print(_listing("COMMAND", text, Commands=_COMMANDS, Options=_OPTIONS))
    elif command == "--version":
        print(surface_consistency.__version__)
    elif command in _PLUGINS and (not rest or rest[0] in _HELP):
        from surface_consistency.plugins import Plugins

        what, group, text = _PLUGINS[command]
        found = Plugins(f"surface_consistency.{group}", what).describe()
        usage = f"{command} {what.upper()} [OPTIONS]"
        print(_listing(usage, text, **{group.capitalize(): found or {"none": "is installed"}}))
    else:
        from surface_consistency.commands.app import install_completion, run_command

        if command == "--install-completion":
            print(install_completion())
        else:
            run_command(words, _COMMANDS)


def _listing(usage: str, text: str, **parts: Mapping[str, str]) -> str:
    """Set names and what they do in two columns."""
    width = min(shutil.get_terminal_size().columns, 100)
    column = max(len(name) for part in parts.values() for name in part) + 4
    lines = [f"Usage: surface-consistency {usage}", "", *textwrap.wrap(text, width)]
    for title, items in parts.items():
        lines += ["", f"{title}:"]
        for name, line in items.items():
            rest = textwrap.wrap(line, max(width - column, 20)) or [""]
            lines.append(f"  {name}".ljust(column) + rest[0])
            lines += [" " * column + more for more in rest[1:]]
    return "\n".join(lines)


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
