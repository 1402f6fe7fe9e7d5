"""The commands with their options, read by cyclopts; only the one that is called is loaded."""

import gc
import logging
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnknownOptionError

from surface_consistency.cli.record_command import COMMON, SETTING, read_exactly
from surface_consistency.errors import PluginError
from surface_consistency.runs.command import COMMAND
from surface_consistency.text import did_you_mean

_OWN: Final = {
    "compare": "compare",
    "demo": "demo",
    "export": "report",
    "report": "report",
    "score": "score",
}
_MEASURES: Final = ("accuracy", "consistency", "paired")
_OF_PAIRS: Final = ("--first", "--second", "--condition", "--pair")
_GROUPS: Final = ("build", "count")
_PLUGINS: Final = {
    "run": ("STUDIES", "run", "make_run"),
    "analyse": ("ANALYSES", "report", "make_analyse"),
}

_SECRET: Final = re.compile(r"(?i)((?:key|token|secret|password)=).+")


def run_command(
    words: Sequence[str], commands: Mapping[str, str], *, is_process: bool = False
) -> int:
    """Read the options of the command that is called, and call it.

    Args:
        words: Arguments after the program's name, at least one.
        commands: What each command does.
        is_process: Whether the process is this command's alone.

    Returns:
        The exit code.

    Raises:
        ValueError: If there is no such command or option, an option is missing, or the command
            refuses what it is given.
    """
    app = new_app("surface-consistency", "")
    command = words[0]
    if command not in commands:
        near = did_you_mean(command, commands)
        raise ValueError(f"no command {command!r}{near}; there are {', '.join(commands)}")
    if list(words[:2]) == ["analyse", "forms"]:
        raise ValueError("consistency replaces analyse forms; accuracy --by form has each form")
    if "--out=" in words or ("--out", "") in pairwise(words):
        raise ValueError("--out names no folder; the current one is '.'")
    was_on = gc.isenabled()
    # What is imported stays: looking through it for garbage is a fifth of a short command.
    gc.disable()
    try:
        _add(app, command, words[1:], commands[command])
        if is_process:
            gc.freeze()
    finally:
        if was_on:
            gc.enable()
    token = COMMAND.set(shlex.join(["surface-consistency", *map(_without_secret, words)]))
    messages, shown = logging.getLogger("surface_consistency"), _MessageLines(logging.INFO)
    level = messages.level
    messages.addHandler(shown)
    messages.setLevel(logging.INFO)
    try:
        return run_app(app, words)
    finally:
        messages.setLevel(level)
        messages.removeHandler(shown)
        COMMAND.reset(token)


class _MessageLines(logging.Handler):
    """Prints what the package has to say while it works, warnings as other warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        mark = "warning: " if record.levelno >= logging.WARNING else ""
        print(f"{mark}{record.getMessage()}", file=sys.stderr, flush=True)


def run_app(app: App, words: Sequence[str]) -> int:
    """Run a command line.

    Args:
        app: The commands.
        words: Arguments after the program's name.

    Returns:
        The exit code: what the command returns if that is a whole number, else 0.

    Raises:
        ValueError: For arguments that cannot be read, and for what the command refuses.
    """
    try:
        if words[-1] in ("--help", "-h"):
            app.help_print(words[:-1])
            return 0
        done = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except MissingArgumentError as error:
        name = error.argument.name if error.argument else "an option"
        arguments = error.app.assemble_argument_collection() if error.app else ()
        flags = {flag for argument in arguments for flag in argument.names}
        foreign = {word.partition("=")[0] for word in words[1:]} - flags
        near = get_close_matches(name, foreign, n=1)
        typed = f"; there is no {near[0]}" if near else ""
        raise ValueError(f"{name} is required and takes a value{typed}") from error
    except UnknownOptionError as error:
        flag = (error.token.keyword or error.token.value).partition("=")[0]
        setting = flag.removeprefix("--").replace("-", "_")
        if setting in getattr(error.target, "settings_without_flag", ()):
            text = f"Unknown option: {flag}. Write {SETTING} {setting}=VALUE"
            raise ValueError(text) from error
        raise ValueError(_foreign(words, flag) or str(error)) from error
    except CycloptsError as error:
        raise ValueError(str(error)) from error
    return done if isinstance(done, int) else 0


def install_completion() -> str:
    """Write the completion script of the present shell with all commands and options.

    Returns:
        What was written, and what to do next.

    Raises:
        ValueError: If the shell is not known.
    """
    from cyclopts.completion.detect import ShellDetectionError

    app = new_app("surface-consistency", "")
    makers = _GROUPS if find_spec("surface_consistency_build") else ()
    for command in (*_MEASURES, *_PLUGINS, *_OWN, *makers):
        _add(app, command, None, "")
    try:
        return f"wrote {app.install_completion()}; start a new shell to use it"
    except ShellDetectionError as error:
        raise ValueError(f"--install-completion: {error}") from error


def _without_secret(word: str) -> str:
    """Leave the value out of an argument such as token=..., since commands are written down."""
    return _SECRET.sub(r"\1...", word)


def new_app(name: str, text: str) -> App:
    """Make a command that others are put into."""
    return App(
        name=name,
        help=text,
        help_format="plaintext",
        version_flags=(),
        group_parameters=COMMON,
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(allow_repeating=True, converter=read_exactly),
    )


def _add(app: App, command: str, rest: Sequence[str] | None, text: str) -> None:
    """Load a command and add it; without the words after it, with all that may follow it."""
    if command in _OWN:
        own = _imported(_OWN[command], "make_score" if command == "score" else command)
        app.command(own(rest or ()) if command == "score" else own, name=command)
        return
    if command in _MEASURES:
        app.command(_imported("compare", "make_measure")(command), name=command)
        return
    within = new_app(command, text)
    if command in _GROUPS:
        from surface_consistency.plugins import load_maker

        load_maker(command, f"`{command}`")(within)
    else:
        # Reading what packages register takes longer than reading the options of `compare`.
        from surface_consistency import plugins

        group, module, maker = _PLUGINS[command]
        chosen: plugins.Plugins = getattr(plugins, group)
        names = [rest[0]] if rest else chosen.names()
        for name in names:
            if name.startswith("-"):
                raise PluginError(
                    f"name the {chosen.what} before its options: surface-consistency {command} "
                    f"{chosen.what.upper()} {name} ...; available: "
                    f"{', '.join(chosen.names()) or 'none'}"
                )
            within.command(_imported(module, maker)(name), name=name)
    app.command(within)


def _imported(module: str, function: str) -> Callable[..., Any]:
    """Import a function of this folder."""
    maker: Callable[..., object] = getattr(
        import_module(f"surface_consistency.cli.{module}"), function
    )
    return maker


def _foreign(words: Sequence[str], flag: str) -> str | None:
    """Say what to do where an option is given that another study has."""
    if words[0] == "run" and flag == "--prompts":
        from surface_consistency.cli.run import no_preset

        return no_preset(words[1])
    if words[0] == "compare" and flag in _OF_PAIRS:
        return f"compare has no {flag}; use `surface-consistency paired` for two conditions"
    if words[0] != "score":
        return None
    from surface_consistency.cli.score import foreign_option

    return foreign_option(words[1:], flag)
