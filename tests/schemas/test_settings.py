"""Settings records as options of commands, and as tables."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from cyclopts import App, Parameter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from surface_consistency.cli.app import run_app
from surface_consistency.cli.record_command import record_command
from surface_consistency.schemas.settings import (
    Flag,
    name_flags,
    option_table,
    record_from_options,
    record_options,
)


class Record(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


class Params(Record):
    max_new_tokens: int = Field(default=15, gt=0)
    """Longest answer."""

    stop: tuple[str, ...] = ("\n",)
    """Texts that end it."""


class Settings(Record):
    templates: Annotated[
        tuple[Literal["original", "paraphrase"], ...], Field(strict=False), Flag("--template", "-t")
    ] = ("original",)
    """Question wordings."""

    shots: int | None = Field(default=None, ge=0)
    """Demonstrations a prompt;
    None for one of each relation."""

    n_permutations: int = Field(default=5, gt=0)
    """Orders."""

    truncate: bool = False
    """Drop demonstrations."""

    chat: bool = True
    """Use the chat template."""

    style: Literal["chat", "completion"] = "chat"
    """Turns | text."""

    threshold: float | None = 0.6
    """Lowest score."""

    cache: Path | None = None
    """Folder."""

    params: Params = Params()
    """Decoding."""

    lengths: dict[Literal["short", "long"], Annotated[int, Field(gt=0)]] = Field(
        default_factory=lambda: {"short": 64, "long": 512}
    )
    """Longest answer of each form."""

    @model_validator(mode="after")
    def _check(self):
        if self.truncate and self.shots == 0:
            raise ValueError("n_permutations cannot be cut with shots=0")
        return self


def ask(
    settings: Settings,
    *,
    out: Annotated[Path, Parameter(help="Folder of the results.")],
    model: str | None = None,
):
    """Ask every question."""
    if model == "broken":
        raise ValueError("n_permutations is more than the topics hold")
    ask.called = (settings, out, model)


@pytest.fixture
def run():
    app = App(name="sc", help_format="plaintext")
    app.command(record_command(ask, settings=Settings), name="ask")

    def call(*arguments):
        try:
            run_app(app, ["ask", *arguments])
        except ValueError as error:
            print(
                "".join(f"error: {line}\n" for line in str(error).splitlines()),
                file=sys.stderr,
                end="",
            )
            return 2
        return 0

    return call


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--template", "original", "paraphrase"], "templates", ("original", "paraphrase")),
        (["-t", "paraphrase", "-t", "original"], "templates", ("paraphrase", "original")),
        (["--shots", "3"], "shots", 3),
        (["--shots", "none"], "shots", None),
        (["--truncate"], "truncate", True),
        (["--no-chat"], "chat", False),
        (["--style", "completion"], "style", "completion"),
        (["--threshold", "none"], "threshold", None),
        (["--threshold", "1"], "threshold", 1.0),
        (["--cache", "a/b"], "cache", Path("a/b")),
        (["--max-new-tokens", "9"], "params", Params(max_new_tokens=9)),
        (["--lengths", "short=3"], "lengths", {"short": 3, "long": 512}),
        (["--lengths", "short=3", "long=4"], "lengths", {"short": 3, "long": 4}),
    ],
)
def test_every_kind_of_field_is_an_option(run, arguments, field, value):
    """What is given is set; everything else keeps its default."""
    assert run("--out", "x", "--model", "m", *arguments) == 0

    settings, out, model = ask.called
    assert getattr(settings, field) == value
    assert settings.model_dump(exclude={field}) == Settings().model_dump(exclude={field})
    assert (out, model) == (Path("x"), "m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-permutations", "0"], "--n-permutations must be more than 0, got 0"),
        (["--shots", "-1"], "--shots must be 0 or more, got -1"),
        (["--max-new-tokens", "0"], "--max-new-tokens must be more than 0, got 0"),
        (["--lengths", "short=0"], "--lengths must be more than 0, got 0"),
        (["--lengths", "short"], "--lengths takes NAME=VALUE, got 'short'"),
        (["--lengths", "free=1"], "--lengths: NAME is one of short, long, got 'free'"),
        (["--lengths", "short=a"], "--lengths: short takes int, got 'a'"),
        (["--shots", "abc"], 'Invalid value for --shots: unable to convert "abc" into int.'),
        (["--style", "foo"], 'Invalid value "foo" for --style'),
        (["--shot", "1"], "Unknown option: --shot. Did you mean --shots?"),
        (["--truncate", "--shots", "0"], "--n-permutations cannot be cut with --shots=0"),
        (["--model", "broken"], "--n-permutations is more than the topics hold"),
    ],
)
def test_errors_name_the_flag_and_are_code_2(run, capsys, arguments, message):
    assert run("--out", "x", *arguments) == 2

    printed = capsys.readouterr()
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_all_errors_are_told_at_once(run, capsys):
    assert run("--out", "x", "--n-permutations", "0", "--shots", "-1") == 2
    assert capsys.readouterr().err.count("error: --") == 2


def test_a_missing_option_is_named(run, capsys):
    assert run() == 2
    assert capsys.readouterr().err == "error: --out is required and takes a value\n"


def test_help_shows_docstrings_choices_and_defaults(run, capsys):
    assert run("--help") == 0

    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Demonstrations a prompt; None for one of each relation. [default: none]" in text
    assert "[choices: original, paraphrase] [default: original]" in text
    assert "--chat --no-chat" in text
    assert "[default: short=64 long=512]" in text
    assert "Folder of the results. [required]" in text


def test_the_table_has_a_row_a_field():
    """Fields of nested records stand beside the others; bars are escaped, newlines visible."""
    rows = option_table(Settings).splitlines()[2:]

    assert len(rows) == len(record_options(Settings)) == 11
    assert rows[1] == (
        "| `shots` | `--shots` | int >= 0, or none | `none` | "
        "Demonstrations a prompt; None for one of each relation. |"
    )
    assert rows[0].startswith("| `templates` | `--template`, `-t` | some of original, paraphrase |")
    assert r"Turns \| text." in rows[5]
    assert (
        rows[9] == r"| `params.stop` | `--stop` | one or more: text | `'\n'` | Texts that end it. |"
    )


def test_fields_of_the_same_flag_are_refused():
    class Twice(Record):
        max_new_tokens: int = 3
        params: Params = Params()

    with pytest.raises(ValueError, match=r"max_new_tokens and params\.max_new_tokens are both"):
        record_options(Twice)


def test_a_flag_of_the_command_is_refused():
    class Out(Record):
        out: str = ""

    with pytest.raises(ValueError, match="--out of Out is an option of every such command"):
        record_command(ask, settings=Out)


def test_a_type_that_no_option_holds_is_refused():
    class Odd(Record):
        pairs: tuple[tuple[str, str], ...] = ()

    with pytest.raises(TypeError, match=r"Odd\.pairs: no option can hold"):
        record_options(Odd)


def test_a_nested_record_needs_a_default():
    class Bare(Record):
        params: Params

    with pytest.raises(TypeError, match=r"Bare\.params: a record within settings needs a default"):
        record_options(Bare)


def test_words_are_no_flags():
    """A field called as an English word is replaced only where it is surely meant."""
    assert name_flags("no shots are left", Settings) == "no shots are left"
    assert name_flags("shots must be 0 or more", Settings) == "--shots must be 0 or more"
    assert name_flags("set `shots`", Settings) == "set --shots"
    assert name_flags("shots the model saw", Settings) == "shots the model saw"


def test_a_record_is_made_without_a_command():
    assert record_from_options(Settings, {}) == Settings()


def test_completion_knows_the_options_of_a_record(run):
    app = App(name="sc", help_format="plaintext")
    app.command(record_command(ask, settings=Settings), name="ask")

    script = app.generate_completion(shell="bash")

    assert "--n-permutations" in script
    assert "paraphrase" in script


def test_arguments_in_messages_are_written_as_flags():
    """What one would write in Python is what one would write on the command line."""
    flags = {"column": "--column", "split": "--split", "ask_by_template": "--ask-by-template"}

    assert name_flags("columns are ['ask_by_template']", flags) == "columns are ['ask_by_template']"

    found = name_flags(
        "no split; pass split='train', columns={'answers': 'NAME'} or `ask_by_template=True`", flags
    )

    assert found == "no split; pass --split='train', --column answers=NAME or --ask-by-template"
