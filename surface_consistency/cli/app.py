"""The commands with their options, parsed by cyclopts; only the called command is imported."""

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
        commands: Description of each command by name.
        is_process: Whether the process runs only this command.

    Returns:
        The exit code.

    Raises:
        ValueError: If the command or an option does not exist, an option is missing, or the
            command rejects its arguments.
    """
    app = new_app("surface-consistency", "")
    command = words[0]
    if command not in commands:
        near = did_you_mean(command, commands)
        raise ValueError(f"command {command!r} not found{near}; commands: {', '.join(commands)}")
    if list(words[:2]) == ["analyse", "forms"]:
        raise ValueError("analyse forms was removed; use consistency, or accuracy --by form")
    if "--out=" in words or ("--out", "") in pairwise(words):
        raise ValueError("--out is empty; pass a folder, such as '.' for the current one")
    was_on = gc.isenabled()
    # Imported modules stay in memory; collecting garbage in them is a fifth of a short command.
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
    """Prints the log messages of the package; those of warnings begin with `warning:`."""

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
        The exit code: the value that the command returns if it is an integer, else 0.

    Raises:
        ValueError: If arguments cannot be read, or the command rejects them.
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
        typed = f"; option {near[0]} does not exist" if near else ""
        raise ValueError(f"{name} is required and takes a value{typed}") from error
    except UnknownOptionError as error:
        flag = (error.token.keyword or error.token.value).partition("=")[0]
        setting = flag.removeprefix("--").replace("-", "_")
        if setting in getattr(error.target, "settings_without_flag", ()):
            text = f"Unknown option: {flag}. Use {SETTING} {setting}=VALUE"
            raise ValueError(text) from error
        raise ValueError(_foreign(words, flag) or str(error)) from error
    except CycloptsError as error:
        raise ValueError(str(error)) from error
    return done if isinstance(done, int) else 0


def install_completion() -> str:
    """Write the completion script of the current shell, with all commands and options.

    Returns:
        A message with the path of the script and the next step.

    Raises:
        ValueError: If the shell cannot be detected.
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
    """Replace the value of an argument such as token=..., because commands are recorded."""
    return _SECRET.sub(r"\1...", word)


def new_app(name: str, text: str) -> App:
    """Make a command that contains subcommands."""
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
    """Import a command and add it; if `rest` is None, with all its subcommands."""
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
        # Reading the plugins of packages takes longer than reading the options of `compare`.
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
    """Import a function of this subpackage."""
    maker: Callable[..., object] = getattr(
        import_module(f"surface_consistency.cli.{module}"), function
    )
    return maker


def _foreign(words: Sequence[str], flag: str) -> str | None:
    """Return the message for an option of another command or study, or None."""
    if words[0] == "run" and flag == "--prompts":
        from surface_consistency.cli.run import no_preset

        return no_preset(words[1])
    if words[0] == "compare" and flag in _OF_PAIRS:
        return f"compare has no option {flag}; use `surface-consistency paired` for two conditions"
    if words[0] != "score":
        return None
    from surface_consistency.cli.score import foreign_option

    return foreign_option(words[1:], flag)
