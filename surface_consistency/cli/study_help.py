"""The options of this package's studies for `run STUDY --help`, which need not load the study.

`study_help.json` beside this module is made from the settings records by `scripts/option_tables`;
studies of other packages describe themselves when they are loaded.
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
"""The file: groups of options, and of each study its text and its groups."""

TYPES: Final = {kind.__name__: kind for kind in (bool, int, float, str, Path)}
"""Types that the file names."""


def print_study_help(name: str) -> bool:
    """Print the options of `run` with a study of this package.

    Args:
        name: The study.

    Returns:
        Whether it is one of them; nothing is printed of another.
    """
    held = json.loads(PATH.read_text(encoding="utf-8"))
    study = held["studies"].get(name)
    if study is None:
        return False
    parameters = []
    for place, number in enumerate(study["groups"]):
        described = held["groups"][number]
        group = Group(described["title"], sort_key=place) if described["title"] else None
        parameters += [_parameter(option, group) for option in described["options"]]
    app, within = (
        App(name=title, help="", help_format="plaintext", version_flags=())
        for title in ("surface-consistency", "run")
    )
    within.command(_command(study["text"], parameters), name=name)
    app.command(within)
    app(["run", name, "--help"], result_action="return_value")
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
        name=option["flags"],
        help=option["help"],
        show_default=False if option["is_required"] else option["default"],
        negative=option["negative"],
        negative_iterable=(),
        negative_none=(),
        **within,
    )
    return inspect.Parameter(
        option["flags"][0].strip("-").replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option["is_required"] else None,
        annotation=Annotated[annotation, described],
    )
