"""The options for `--help` of commands and of this package's studies, which need not be loaded.

`study_help.json` beside this module is made from the commands by `scripts/option_tables`; studies
of other packages describe themselves when they are loaded.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import App, Group, Parameter

PATH: Final = Path(__file__).with_suffix(".json")
"""The file: groups of options, and of each command its text and its groups."""

TYPES: Final = {kind.__name__: kind for kind in (bool, int, float, str, Path)}
"""Types that the file names."""


def print_help(command: str) -> bool:
    """Print the options of a command.

    Args:
        command: The command, such as "score", or "run" with the name of a study.

    Returns:
        Whether it is one of them; nothing is printed of another.
    """
    held = json.loads(PATH.read_text(encoding="utf-8"))
    known = held["commands"].get(command)
    if known is None:
        return False
    parameters = []
    for place, number in enumerate(known["groups"]):
        described = held["groups"][number]
        group = Group(described["title"], sort_key=place) if described["title"] else None
        parameters += [_parameter(option, group) for option in described["options"]]
    *path, name = command.split()
    app, *groups = (
        App(name=title, help="", help_format="plaintext", version_flags=())
        for title in ("surface-consistency", *path)
    )
    for within in groups:
        app.command(within)
    (app, *groups)[-1].command(_command(known["text"], parameters), name=name)
    app([*path, name, "--help"], result_action="return_value")
    return True


def _command(text: str, parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Make a function that has these parameters and does nothing."""

    def command(**_: object) -> None: ...

    command.__doc__ = text
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameter(option: Mapping[str, Any], group: Group | None) -> inspect.Parameter:
    """Describe one option to cyclopts; without a group it is among the command's parameters."""
    choices = tuple(option["choices"])
    kinds = [*([Literal[choices]] if choices else []), *map(TYPES.get, option["types"])]
    annotation: Any = reduce(or_, kinds)
    if option["is_several"]:
        annotation = tuple[annotation, ...]
    within: dict[str, Any] = {"group": group} if group else {}
    described = Parameter(
        name=option["flags"] or None,
        help=option["help"],
        show_default=False if option["is_required"] else option["default"],
        negative=option["negative"],
        negative_iterable=(),
        negative_none=(),
        **within,
    )
    return inspect.Parameter(
        option["name"],
        getattr(inspect.Parameter, option["kind"]),
        default=inspect.Parameter.empty if option["is_required"] else None,
        annotation=Annotated[annotation, described],
    )
