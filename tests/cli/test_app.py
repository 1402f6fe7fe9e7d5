"""Values of options: what is typed is what is taken, or it is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from surface_consistency.cli.app import new_app, run_app
from surface_consistency.cli.main import main
from surface_consistency.cli.record_command import record_command
from surface_consistency.schemas import Items
from surface_consistency.schemas.settings import Settings


class EveryType(Settings):
    """One field of every type that an option can hold."""

    switch: bool = False
    number: int = 0
    perhaps: int | None = 3
    share: float = 0.5
    either: int | float = 1
    text: str = ""
    place: Path | None = None
    form: Literal["short", "long"] = "short"
    numbers: Items[int] = ()
    sizes: Mapping[str, int] = {}
    shares: Mapping[str, float] = {}
    switches: Mapping[str, bool] = {}


@pytest.fixture
def read():
    made = []

    def do(*, record: EveryType) -> None:
        made.append(record)

    app = new_app("surface-consistency", "")
    app.command(record_command(do, record=EveryType), name="do")

    def reading(*words):
        assert run_app(app, ["do", *words]) == 0
        return made[-1]

    return reading


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("--number=1.5", "1.5"),
        ("--number=true", "true"),
        ("--perhaps=0.9", "0.9"),
        ("--switch=0.3", "0.3"),
        ("--form=Short", "Short"),
        ("--sizes=a=1.5", "1.5"),
        ("--switches=a=0.3", "0.3"),
    ],
)
def test_a_value_that_would_be_changed_is_refused_by_its_flag(read, word, value):
    flag = word.partition("=")[0]
    with pytest.raises(ValueError, match=rf"{flag}\b.*{value}|{value}.*{flag}\b"):
        read(word)


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("--number=-15", "number", -15),
        ("--share=inf", "share", float("inf")),
        ("--either=1.5", "either", 1.5),
        ("--either=2", "either", 2),
        ("--text=1.50", "text", "1.50"),
        ("--place=1.50", "place", Path("1.50")),
        ("--switch=yes", "switch", True),
    ],
)
def test_a_value_is_taken_as_it_is_typed(read, word, name, value):
    assert getattr(read(word), name) == value


@pytest.mark.parametrize(
    "words",
    [["demo", "--steps", "1.5"], ["run", "redirectqa", "--source", "sample", "--seed", "1.5"]],
)
def test_options_of_the_commands_themselves_round_nothing(words, capsys):
    assert main([*words, "--out", "x"]) == 2
    error = f"error: Invalid value for {words[-2]}: input should be a valid integer"
    assert error in capsys.readouterr().err
