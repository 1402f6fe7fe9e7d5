"""The command line: one command with subcommands, each loaded when it is called.

Lists of commands are printed from here, so that `--help` loads neither the library that reads
options nor anything that computes.
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
    "compare": "Compare models on the same items; of one model, the mean.",
    "consistency": "Measure how often two forms of an item are both correct or both incorrect.",
    "paired": "Compare two conditions of the same items, such as two names or two prompts.",
    "accuracy": "Compute the mean score of each model, with a confidence interval.",
    "score": "Score a run again, or score predictions made elsewhere.",
    "run": "Run a study end to end on a model.",
    "report": "Write tables and one page from scored runs.",
}
_FURTHER = {
    "analyse": "Add an analysis to the page of runs.",
    "build": "Build a data set from its sources.",
    "count": "Count names, pairs of entities or n-grams in a corpus.",
    "export": "Write scored runs as a data set of the hub.",
    "demo": "Train a small model on planted facts and run the whole study on it.",
    "lm-eval": "Run lm-evaluation-harness with the tasks of this package.",
    "lm-eval-path": "Print the folder of these tasks, for the harness' --include_path.",
}
_OPTIONS = {
    "--help": "Show this list, or with a command its options.",
    "--version": "Show the version.",
    "--debug": "Show the traceback of an error.",
    "--install-completion": "Let the shell complete commands and options.",
}
_CODES = {
    "0": "The work is done.",
    "2": "A mistake in the command, or bad input; the message says what to do.",
    "3": "The work is done, but prompts have no answer; the same command asks them again.",
    "4": "compare --fail-if: a model is worse than its reference.",
    "130": "Interrupted; the same command again keeps what is finished.",
}
_PLUGINS = {
    "run": ("Studies", "Ask a model every fact under both conditions, score, report."),
    "analyse": ("Analyses", "Read runs and something else; add to their page."),
}
_MAKERS = ("build", "count")
_HELP = ("--help", "-h")
_HARNESS = "lm-eval"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: Arguments after the program's name; None takes those of the process, which is taken to
            end after it.

    Returns:
        0 when the work is done, 2 for a user's mistake or bad input, 3 when the work is done but
        prompts have no answer, 4 of `compare --fail-if`, 130 when interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    out, err = _Terminal(sys.stdout), _Terminal(sys.stderr, has_progress=True)
    if not words or any(word in _HELP for word in words):
        out.is_raw = True  # Lists of options are set in colours.
    if words[:1] == [_HARNESS]:
        out.is_raw = err.is_raw = True  # What another program prints.
    code = 0
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        warnings.showwarning = _show_warning
        try:
            code = _run(words, is_process=argv is None)
            sys.stdout.flush()
        except BrokenPipeError:
            pass  # Whoever read our output has gone.
        except (SurfaceConsistencyError, ValueError, OSError) as error:
            if "--debug" in given:
                raise
            for line in _told(error).splitlines() or [type(error).__name__]:
                print(f"error: {line}", file=sys.stderr)
            code = 2
        except KeyboardInterrupt as error:
            ending = "keeps what is finished" if words[:1] != ["compare"] else "begins anew"
            remedy = (*error.args, f"the same command again {ending}")[0]
            print(f"interrupted; {remedy}", file=sys.stderr)
            code = 130
    if out.is_closed:
        # What is left cannot be written: the interpreter's last flush would say so once more.
        sys.stdout = Path("/dev/null").open("w")  # noqa: SIM115
    if argv is None:
        gc.freeze()  # Else the interpreter looks through everything once more before it ends.
    return code


class _Terminal(io.TextIOBase):
    """Prints text that others wrote: nothing in it steers the terminal, or ends the command.

    A line of progress may begin with the return that renews it.
    """

    def __init__(self, stream: TextIO, *, has_progress: bool = False) -> None:
        self._stream = stream
        self._renewal = re.compile("\r?(\x1b\\[K)?" if has_progress else "")
        self.is_raw = False
        self.is_closed = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What the stream can write."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text, escaped where it must be."""
        if not self.is_raw:
            renewal = self._renewal.match(text)
            start = renewal.end() if renewal else 0
            text = text[:start] + printable(text[start:], encoding=self.encoding)
        self._tell(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._tell(self._stream.flush)

    def close(self) -> None:
        """Leave the stream as it is: it is another's, and may be gone already."""

    def isatty(self) -> bool:
        """Return whether the stream is a terminal; False if it was closed."""
        return not self._stream.closed and self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def _tell(self, act: Callable[..., object], *arguments: str) -> None:
        """Write or flush; a full disk is named."""
        try:
            act(*arguments)
        except BrokenPipeError:
            self.is_closed = True
            raise
        except OSError as error:
            self.is_closed = True
            text = f"what is printed cannot be written ({error.strerror})"
            raise OSError(error.errno, text) from error


def _run(words: Sequence[str], *, is_process: bool) -> int:
    """Print a list, or load and call a command; return its exit code."""
    command, rest = (*words, "--help")[0], words[1:]
    if command in _HELP:
        text = "Is the same fact answered alike under two conditions?"
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
        raise ValueError(f"lm-eval-path takes no {rest[0]!r}; it prints a folder")
    else:
        print(path)


def _listing(usage: str, text: str, **parts: Mapping[str, str]) -> str:
    """Set names and what they do in two columns."""
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


def _told(error: Exception) -> str:
    """Say what went wrong; what the system says alone would not name file or remedy."""
    if isinstance(error, UnicodeEncodeError):
        text = error.object[max(error.start - 30, 0) : error.end + 30]
        return (
            f"{text!r} holds bytes that are no UTF-8, or half a surrogate pair, which no file here "
            "can hold; rename the file or folder, or replace it in the text"
        )
    if isinstance(error, OSError) and error.filename and error.errno in _NO_ROOM:
        return (
            f"{error.filename} cannot be written ({error.strerror}); free disk space or choose "
            "another place, then run the same again"
        )
    return str(error)


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a warning as one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
