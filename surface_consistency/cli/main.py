"""The command line: one command with subcommands, each imported when it is called.

This module prints the lists of commands, so `--help` imports neither cyclopts nor modules that
compute.
"""

import errno
import gc
import io
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

import surface_consistency
from surface_consistency.errors import SurfaceConsistencyError
from surface_consistency.text import printable

_COMMANDS = {
    "compare": "Compare models on the same items; for one model, report the mean.",
    "consistency": "Measure how often two forms of an item are both correct or both incorrect.",
    "paired": "Compare two conditions of the same items, such as two names or two prompts.",
    "accuracy": "Compute the mean score of each model, with a confidence interval.",
    "score": "Score a run again, or score predictions made elsewhere.",
    "run": "Run a study end to end on a model.",
    "report": "Write tables and a report page from scored runs.",
}
_FURTHER = {
    "analyse": "Analyse scored runs and add the results to their page.",
    "build": "Build a data set from its sources.",
    "count": "Count names, pairs of entities or n-grams in a corpus.",
    "export": "Write scored runs as a data set for the Hugging Face Hub.",
    "demo": "Train a small model on planted facts and run a complete study on it.",
    "lm-eval": "Run lm-evaluation-harness with the tasks of this package.",
    "lm-eval-path": "Print the folder of these tasks, for --include_path of the harness.",
}
_OPTIONS = {
    "--help": "Show this list, or the options of a command.",
    "--version": "Show the version.",
    "--debug": "Show the traceback of an error.",
    "--install-completion": "Install shell completion of commands and options.",
}
_CODES = {
    "0": "Success.",
    "2": "Invalid command or input; the message includes the remedy.",
    "3": "Success, but some prompts have no answer; repeat the command to resend them.",
    "4": "compare --fail-if: a model is worse than its reference.",
    "130": "Interrupted; repeat the command to resume, which keeps finished work.",
}
_PLUGINS = {
    "run": (
        "Studies",
        "Send the prompts of a study to a model, score the answers and write a report.",
    ),
    "analyse": ("Analyses", "Analyse scored runs and add the results to their page."),
}
_MAKERS = ("build", "count")
_HELP = ("--help", "-h")
_HARNESS = "lm-eval"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; None uses `sys.argv` and assumes that the process
            ends afterwards.

    Returns:
        0 on success, 2 for an invalid command or input, 3 on success if prompts have no answer, 4
        if `compare --fail-if` applies, 130 if interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    out, err = _Terminal(sys.stdout), _Terminal(sys.stderr, has_progress=True)
    if not words or any(word in _HELP for word in words):
        out.is_raw = True  # Lists of options are coloured.
    if words[:1] == [_HARNESS]:
        out.is_raw = err.is_raw = True  # Output of another program.
    code = 0
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        warnings.showwarning = _show_warning
        try:
            code = _run(words, is_process=argv is None)
            sys.stdout.flush()
        except (SurfaceConsistencyError, ValueError, OSError) as error:
            if "--debug" in given:
                raise
            for line in _message(error).splitlines() or [type(error).__name__]:
                print(f"error: {line}", file=sys.stderr)
            code = 2
        except KeyboardInterrupt as error:
            ending = "resume" if words[:1] != ["compare"] else "start again"
            remedy = (*error.args, f"repeat the command to {ending}")[0]
            print(f"interrupted; {remedy}", file=sys.stderr)
            code = 130
    # The rest cannot be written, and the last flush of the interpreter would report that again.
    if out.is_closed:
        sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115
    if err.is_closed:
        sys.stderr = Path("/dev/null").open("w")  # noqa: SIM115
    if argv is None:
        gc.freeze()  # Skip the garbage collection at the end of the process.
    return code


class _Terminal(io.TextIOBase):
    """Prints text with control characters escaped, so that it cannot control the terminal.

    A progress line may begin with the carriage return that overwrites the previous one.
    """

    def __init__(self, stream: TextIO, *, has_progress: bool = False) -> None:
        self._stream = stream
        self._renewal = re.compile("\r?(\x1b\\[K)?" if has_progress else "")
        self.is_raw = False
        self.is_closed = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text, with control characters escaped."""
        if not self.is_raw:
            renewal = self._renewal.match(text)
            start = renewal.end() if renewal else 0
            text = text[:start] + printable(text[start:], encoding=self.encoding)
        self._call(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._call(self._stream.flush)

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller and may be closed already."""

    def isatty(self) -> bool:
        """Return whether the stream is a terminal; False if it was closed."""
        return not self._stream.closed and self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True: the stream is writable."""
        return True

    def _call(self, act: Callable[..., object], *arguments: str) -> None:
        """Write or flush; an error such as a full disk has a message that describes it.

        After the reader has closed the pipe, output is discarded: the exit code stays the same.
        """
        try:
            act(*arguments)
        except BrokenPipeError:
            self.is_closed = True
        except OSError as error:
            self.is_closed = True
            text = f"output cannot be written ({error.strerror})"
            raise OSError(error.errno, text) from error


def _run(words: Sequence[str], *, is_process: bool) -> int:
    """Print a list, or load and call a command; return its exit code."""
    command, rest = (*words, "--help")[0], words[1:]
    if command in _HELP:
        text = "Measure whether a model answers the same fact consistently under two conditions."
        makers = () if find_spec("surface_consistency_build") else _MAKERS
        further = {name: line for name, line in _FURTHER.items() if name not in makers}
        parts = {"Commands": _COMMANDS, "Further commands": further}
        print(_listing("COMMAND", text, **parts, Options=_OPTIONS, **{"Exit codes": _CODES}))
    elif command == "--version":
        print(surface_consistency.__version__)
    elif command in _PLUGINS and (not rest or rest[0] in _HELP):
        from surface_consistency import plugins

        title, text = _PLUGINS[command]
        chosen: plugins.Plugins = getattr(plugins, title.upper())
        usage = f"{command} {chosen.what.upper()} [OPTIONS]"
        print(_listing(usage, text, **{title: chosen.describe() or {"none": "is installed"}}))
    elif command in (_HARNESS, f"{_HARNESS}-path"):
        from surface_consistency.integrations.harness import lm_eval_path, run_lm_eval

        if command == _HARNESS:
            return run_lm_eval(rest)
        _print_path(lm_eval_path(), rest)
    else:
        from surface_consistency.cli.app import install_completion, run_command
        from surface_consistency.plugins import importable

        if command == "--install-completion":
            print(install_completion())
        else:
            with importable(*words):
                return run_command(words, _COMMANDS | _FURTHER, is_process=is_process)
    return 0


def _print_path(path: Path, rest: Sequence[str]) -> None:
    """Print a path, for a command that takes no options."""
    if any(word in _HELP for word in rest):
        print(_listing("lm-eval-path", _FURTHER["lm-eval-path"]))
    elif rest:
        raise ValueError(f"lm-eval-path does not accept {rest[0]!r}; it prints a folder")
    else:
        print(path)


def _listing(usage: str, text: str, **parts: Mapping[str, str]) -> str:
    """Format names and their descriptions in two columns."""
    width = min(shutil.get_terminal_size().columns, 100)
    column = max((len(name) for part in parts.values() for name in part), default=0) + 4
    lines = [f"Usage: surface-consistency {usage}", "", *textwrap.wrap(text, width)]
    for title, items in parts.items():
        lines += ["", f"{title}:"]
        for name, line in items.items():
            rest = textwrap.wrap(line, max(width - column, 20)) or [""]
            lines.append(f"  {name}".ljust(column) + rest[0])
            lines += [" " * column + more for more in rest[1:]]
    return "\n".join(lines)


def _message(error: Exception) -> str:
    """Return the message of an error, with file and remedy if the system omits them."""
    if isinstance(error, UnicodeEncodeError):
        text = error.object[max(error.start - 30, 0) : error.end + 30]
        return (
            f"{text!r} contains bytes that are not UTF-8, or half a surrogate pair, which cannot "
            "be written to a file; rename the file or folder, or replace it in the text"
        )
    if isinstance(error, OSError) and error.filename and error.errno in _NO_ROOM:
        return (
            f"{error.filename} cannot be written ({error.strerror}); free disk space or choose "
            "another folder, then repeat the command"
        )
    return str(error)


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without its location in the code."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
