"""Settings records as options of commands."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from cyclopts import App, Parameter
from pydantic import Field, model_validator

from surface_consistency.cli.app import new_app, run_app
from surface_consistency.cli.main import main
from surface_consistency.cli.record_command import flag_of, name_flags, record_command
from surface_consistency.errors import DataError, PluginError
from surface_consistency.schemas import Items
from surface_consistency.schemas.settings import Flag, Rare, Settings


class Queries(Settings):
    """Settings of the questions."""

    templates: Items[Literal["original", "paraphrase"]] = ("original",)
    """Question wordings."""

    shots: int | None = Field(default=None, ge=0)
    """Demonstrations per prompt;
    None for one of each relation."""

    n_permutations: int = Field(default=5, gt=0)
    truncate: bool = False
    chat: bool = True
    style: Literal["chat", "completion"] = "chat"
    threshold: float | None = 0.6
    cache: Path | None = None
    lengths: dict[Literal["short", "long"], Annotated[int, Field(gt=0)]] = Field(
        default_factory=lambda: {"short": 64, "long": 512}
    )
    cluster: Annotated[str | None, Flag("--cluster-column")] = None
    either: int | float = 1
    switches: dict[str, bool] = Field(default_factory=dict)
    draws: Rare[int] = Field(default=10, ge=1)
    tags: Rare[Items[str] | None] = None
    options: Rare[dict[str, str]] = Field(default_factory=dict)
    agreement: Rare[bool] = True

    @model_validator(mode="after")
    def _check(self):
        if self.truncate and self.shots == 0:
            raise ValueError("`truncate` has no effect with `shots=0`; omit it")
        return self


class Source(Settings):
    """The source of the data."""

    task: Items[str]
    """Tasks."""

    revision: str | None = None
    """Revision."""


def ask(
    settings: Queries,
    *,
    out: Annotated[Path, Parameter(help="Folder of the results.")],
    model: str | None = None,
):
    if model == "broken":
        raise DataError("`n_permutations` is more than the topics contain; `draws=3` is enough")
    ask.called = (settings, out, model)


@pytest.fixture
def run():
    app = new_app("sc", "")
    app.command(record_command(ask, settings=Queries), name="ask")

    def call(*arguments):
        try:
            run_app(app, ["ask", *arguments])
        except ValueError as error:
            print("".join(f"error: {line}\n" for line in str(error).splitlines()), file=sys.stderr)
            return 2
        return 0

    return call


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--templates", "original", "paraphrase"], "templates", ("original", "paraphrase")),
        (["--templates", "paraphrase", "--templates", "original"], "templates", None),
        (["--shots", "3"], "shots", 3),
        (["--shots", "none"], "shots", None),
        (["--truncate"], "truncate", True),
        (["--no-chat"], "chat", False),
        (["--style", "completion"], "style", "completion"),
        (["--threshold", "none"], "threshold", None),
        (["--threshold", "1"], "threshold", 1.0),
        (["--cache", "a/b"], "cache", Path("a/b")),
        (["--lengths", "short=3"], "lengths", {"short": 3, "long": 512}),
        (["--lengths", "short=3", "long=4"], "lengths", {"short": 3, "long": 4}),
        (["--setting", "draws=3"], "draws", 3),
        (["--setting", "tags=<a>,</a>"], "tags", ("<a>", "</a>")),
        (["--setting", "options=a=1,b=x=y"], "options", {"a": "1", "b": "x=y"}),
        (["--setting", "agreement=false"], "agreement", False),
        (["--either=-15"], "either", -15),
        (["--either=1.5"], "either", 1.5),
        (["--either=2"], "either", 2),
        (["--threshold=inf"], "threshold", float("inf")),
        (["--cluster-column=1.50"], "cluster", "1.50"),
        (["--cache=1.50"], "cache", Path("1.50")),
        (["--truncate=yes"], "truncate", True),
    ],
)
def test_every_type_of_field_is_an_option(run, arguments, field, value):
    """Values are read exactly as typed."""
    assert run("--out", "x", "--model", "m", *arguments) == 0

    settings, out, model = ask.called
    expected = ("paraphrase", "original") if field == "templates" and value is None else value
    assert getattr(settings, field) == expected
    assert settings.model_fields_set == {field}
    assert settings.model_dump(exclude={field}) == Queries().model_dump(exclude={field})
    assert (out, model) == (Path("x"), "m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-permutations", "0"], "--n-permutations: input should be greater than 0, got 0"),
        (["--shots", "-1"], "--shots: input should be greater than or equal to 0, got -1"),
        (["--lengths", "short=0"], "--lengths: input should be greater than 0, got '0'"),
        (["--lengths", "short"], "--lengths requires NAME=VALUE, got 'short'"),
        (["--lengths", "free=1"], "--lengths: input should be 'short' or 'long', got 'free'"),
        (["--lengths", "short=a"], "--lengths: input should be a valid integer"),
        (["--shots", "abc"], "Invalid value for --shots: input should be a valid integer"),
        (["--style", "foo"], "Invalid value for --style: input should be 'chat' or 'completion'"),
        (["--shot", "1"], "Unknown option: --shot. Did you mean --shots?"),
        (["--draws", "3"], "Unknown option: --draws. Use --setting draws=VALUE"),
        (["--truncate", "--shots", "0"], "--truncate has no effect with --shots 0; omit it"),
        (["--setting", "draws"], "--setting requires NAME=VALUE, got 'draws'"),
        (["--setting", "draws=0"], "--setting draws: input should be greater than or equal to 1"),
        (
            ["--setting", "drawn=1"],
            "--setting has no setting 'drawn' (did you mean 'draws'?); it has",
        ),
        (["--model", "broken"], "--n-permutations is more than the topics contain; --setting "),
        # A value that would be rounded.
        *(
            ([f"--{name}={value}"], f"Invalid value for --{name}: input should be a valid integer")
            for name, value in (("n-permutations", 1.5), ("n-permutations", "true"), ("shots", 0.9))
        ),
        (["--truncate=0.3"], 'Invalid value for --truncate: unable to convert "0.3" into bool'),
        (["--style=Chat"], "Invalid value for --style: input should be 'chat' or 'completion', go"),
        (["--lengths=short=1.5"], "--lengths: input should be a valid integer"),
        (["--switches=a=0.3"], "--switches: input should be a valid boolean"),
    ],
)
def test_errors_name_the_flag(run, capsys, arguments, message):
    assert run("--out", "x", *arguments) == 2

    printed = capsys.readouterr()
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("error: ") == 1
    assert printed.out == ""


@pytest.mark.parametrize(
    "words",
    [["demo", "--steps", "1.5"], ["run", "redirectqa", "--source", "sample", "--seed", "1.5"]],
)
def test_options_of_the_commands_are_not_rounded(words, capsys):
    assert main([*words, "--out", "x"]) == 2
    error = f"error: Invalid value for {words[-2]}: input should be a valid integer"
    assert error in capsys.readouterr().err


def test_every_violated_limit_and_a_missing_option_are_reported(run, capsys):
    assert run("--out", "x", "--n-permutations", "0", "--shots", "-1") == 2
    assert capsys.readouterr().err.count("error: --") == 2
    assert run() == 2
    assert "error: --out is required and takes a value\n" in capsys.readouterr().err


def test_error_of_the_library_keeps_its_class():
    app = App(name="sc")
    app.command(record_command(ask, settings=Queries), name="ask")
    with pytest.raises(DataError, match="--n-permutations is more than the topics contain"):
        app(["ask", "--out", "x", "--model", "broken"], exit_on_error=False, print_error=False)


def test_optional_record_without_options_is_none():
    seen = []

    def score(source: Source | None):
        seen.append(source)

    app = App(name="sc")
    app.command(record_command(score, optional=("source",), source=Source), name="score")
    for words in (["score"], ["score", "--task", "a"]):
        run_app(app, words)
    assert seen == [None, Source(task=("a",))]
    with pytest.raises(ValueError, match="--task is required"):
        run_app(app, ["score", "--revision", "b"])


def test_help_shows_docstrings_choices_and_defaults(run, capsys):
    assert run("--help") == 0

    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Demonstrations per prompt; None for one of each relation." in text
    assert "[choices: original, paraphrase] [default: original]" in text
    assert "--no-chat" in text
    assert "--no-truncate" not in text
    assert "[default: short=64 long=512]" in text
    assert "Folder of the results. [required]" in text
    assert "as NAME=VALUE: agreement, draws, options, tags." in text


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("n_permutations", "--n-permutations"),
        ("chat", "--no-chat"),
        ("draws", "--setting draws"),
        ("cluster", "--cluster-column"),
    ],
)
def test_each_field_has_one_flag(field, flag):
    assert flag_of(field, Queries.model_fields[field]) == flag


def test_rare_fields_with_equal_name_and_type_share_an_option():
    class First(Settings):
        seed: int = 0

    class Second(Settings):
        seed: Rare[int] = 0

    seen = []
    function = record_command(
        lambda first, second: seen.append((first, second)), first=First, second=Second
    )
    run_app(App(name="sc", default_command=function), ["--seed", "3"])

    assert seen == [(First(seed=3), Second(seed=3))]


def test_options_with_equal_names_and_nested_records_raise():
    class Out(Settings):
        out: str = ""

    class Outer(Settings):
        inner: Queries = Queries()

    for records, message in (
        ({"settings": Out}, r"Out\.out: another option of the command has this nam"),
        ({"settings": Queries, "further": Queries}, r"Queries\.templates: another option"),
        ({"settings": Outer}, r"Outer\.inner: an option cannot contain a record; put"),
    ):
        with pytest.raises(PluginError, match=message):
            record_command(ask, **records)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("shots must be 0", "shots must be 0"),
        ("set `shots`", "set --shots"),
        ("pass `style='chat'`", "pass --style chat"),
        ("leave `truncate=True` out", "leave --truncate out"),
        ("leave `chat=False` out", "leave --no-chat out"),
        ("`other` is no option", "`other` is no option"),
        ("style='nothing' is not known", "--style nothing is not known"),
        ("shots=500, but only 3", "--shots 500, but only 3"),
        ("pass options={'a': 'b'}", "pass options={'a': 'b'}"),
        ("columns={'a': 'NAME'}", "--column a=NAME"),
        ("`columns={'a': 'NAME'}`", "--column a=NAME"),
    ],
)
def test_names_of_fields_in_backticks_become_flags(message, shown):
    flags = {name: flag_of(name, field) for name, field in Queries.model_fields.items()}
    flags["column"] = "--column"
    assert name_flags(message, flags) == shown
