"""Plugins of other packages are found and described, and raise an error if they are broken."""

from importlib.metadata import EntryPoint

import pytest

from surface_consistency import plugins
from surface_consistency.cli.main import main
from surface_consistency.engine.study import find_analysis, find_study
from surface_consistency.errors import PluginError
from surface_consistency.plugins import Plugins, importable
from tests.distributions import install

GROUP = "surface_consistency.studies"
MODULE = '''
from surface_consistency.engine import Design, Study, StudyRecords, StudySettings
from surface_consistency.schemas.settings import Settings


class Whole(Study):
    """Toys compared with games.

    More."""

    name = "toy"
    design = Design(title="Toys", question="toys and games")

    def load(self, source):
        return None

    def plan(self, data, settings, *, runner=None):
        raise ValueError("nothing to play with")


class Half(Study):
    """A study that is not finished."""

    name = "half"


class Renamed(Whole):
    """A study with the name of another study."""

    name = "slaq"


class Bare:
    """Not a study."""


class Alike:
    """Has the attributes of a study, but is not one."""

    name = "alike"
    design = records = load = plan = judge = report = None


class Unset(Whole):
    """Its settings are not a record."""

    name = "unset"
    records = StudyRecords(settings=None)


class Misgrouped(Whole):
    """Its groupings are by a column that the outcomes do not have."""

    name = "misgrouped"
    design = Design(title="Toys", groupings={"by_model": ("modle",)})


class Unjudged(Whole):
    """Its scoring has no option of the judge."""

    name = "unjudged"
    records = StudyRecords(scoring=Settings)


class Untrained(Whole):
    """Its toy model cannot be trained."""

    name = "untrained"
    records = StudyRecords(toy_model=Settings)


class Loose(Whole):
    """Its records are a dict."""

    name = "loose"
    records = {"settings": StudySettings}


class Plain(Whole):
    """Its design is not a Design."""

    name = "plain"
    design = {"title": "Toys"}


class Failing(Whole):
    """Cannot be created."""

    name = "crashing"

    def __init__(self):
        raise RuntimeError("no toys left")
'''


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A valid study and invalid ones, of the package toy-dist."""
    (tmp_path / "toy_studies.py").write_text(MODULE)
    (tmp_path / "toy_misnamed.py").write_text(
        "from surface_consistency.engine import Design\n"
        "X = Design(title='Toys', groupings={'by_toy': 'toy'})\n"
    )
    (tmp_path / "toy_crash.py").write_text("raise RuntimeError('boom')\n")
    (tmp_path / "toy_misplaced.py").write_text(
        "from surface_consistency.engine import Study\n\nclass X(Study):\n    outcome = None\n"
    )
    (tmp_path / "toy_exit.py").write_text("import sys; sys.exit(3)\n")
    points = {
        **{name: f"toy_studies:{name.title()}" for name in ("half", "bare", "alike", "unset")},
        **{name: f"toy_studies:{name.title()}" for name in ("misgrouped", "unjudged", "plain")},
        **{name: f"toy_studies:{name.title()}" for name in ("untrained", "loose")},
        **{
            "toy": "toy_studies:Whole",
            "twice": "toy_studies:Whole",
            "other": "toy_studies:Renamed",
        },
        **{"slaq": "toy_studies:Renamed", "crashing": "toy_studies:Failing"},
        **{"gone": "toy_missing:X", "lost": "toy_studies:Nothing", "crash": "toy_crash:X"},
        **{"misnamed": "toy_misnamed:X", "exit": "toy_exit:X", "misplaced": "toy_misplaced:X"},
    }
    install(tmp_path, "toy-dist", GROUP, points)
    install(tmp_path, "game-dist", GROUP, {"twice": "toy_studies:Half"})
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "'gone' of toy-dist cannot be loaded: importing 'toy_missing' failed with Mo"),
        ("exit", "study 'exit' of toy-dist cannot be loaded: .*SystemExit: 3"),
        ("alike", "study 'alike' of toy-dist is a Alike; derive it from surface_consistency.stud"),
        ("unset", "study 'unset' of toy-dist: settings must be a settings record, got None"),
        (
            "misgrouped",
            "by the column 'modle', which is not a field of PairedOutcome .*mean 'model'",
        ),
        ("unjudged", "scoring Settings lacks the option `judge`; derive it from .*JudgeSco"),
        ("untrained", "toy_model must be a ToyModelSettings, got .*Settings"),
        ("loose", r"records must be StudyRecords, got .*; write records = StudyRecords\("),
        ("plain", "study 'plain' of toy-dist: design must be a Design, got .*; write design = "),
        ("misnamed", "study 'misnamed' of toy-dist cannot be loaded: .*groupings.by_toy"),
        ("misplaced", r"TypeError: X.outcome is .* write records = StudyRecords\(outcome=\.\.\.\)"),
        ("crash", "study 'crash' of toy-dist cannot be loaded: .*RuntimeError: boom"),
        ("lost", "study 'lost' of toy-dist cannot be loaded: 'toy_studies' has no 'Nothing'"),
        ("half", "study 'half' of toy-dist lacks load, plan, which a subclass must define"),
        ("bare", "study 'bare' of toy-dist lacks name, design, records, load, plan, judge, report"),
        ("other", "study 'other' of toy-dist has the name 'slaq'; entry point and study must"),
        ("crashing", "study 'crashing' of toy-dist cannot be created: RuntimeError: no toys left"),
        ("twice", "several packages have a study 'twice'; name one of .*-dist:twice"),
        ("nothing", "study 'nothing' not found; available: .*redirectqa.*toy-dist:toy"),
        ("toy-dist:nothing", "not found|cannot be loaded"),
        ("toy_studies:Renamed", "has the name 'slaq'; .*which must be unique"),
    ],
)
def test_broken_studies_raise_with_the_name_of_their_package(toys, capsys, name, message):
    with importable(name), pytest.raises(PluginError, match=message):
        find_study(name)

    assert main(["run", name, "--out", "x"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_working_study_runs_although_others_are_broken(toys, capsys):
    assert type(find_study("slaq")).__module__.startswith("surface_consistency.")
    assert find_study("toy").design.title == find_study("toy-dist:toy").design.title == "Toys"
    assert main(["run", "toy", "--source", "x", "--runner", "fake", "--out", "x"]) == 2
    assert "error: " in capsys.readouterr().err


def test_list_of_studies_marks_broken_ones(toys, capsys):
    assert main(["run", "--help"]) == 0

    text = " ".join(capsys.readouterr().out.split())
    assert "toy Toys compared with games." in text
    assert "gone cannot be loaded: study 'gone' of toy-dist cannot be loaded: importing" in text
    assert "twice cannot be loaded: several packages have a study 'twice'" in text
    assert "slaq Compare answers to short questions with answers to long queries." in text


def test_message_for_an_option_lists_its_studies_although_others_are_broken(toys, capsys):
    assert main(["score", "--study", "slaq", "--predictions", "x.jsonl", "--rule", "fuzzy"]) == 2

    message = capsys.readouterr().err
    assert "--rule is not a scoring option of slaq; use --judge-rule" in message
    assert "cannot be loaded" not in message


def test_built_in_studies_are_described_without_import(monkeypatch):
    monkeypatch.setattr(plugins, "import_module", lambda name: pytest.fail(f"imported {name}"))
    described = Plugins(GROUP, "study").describe()

    assert (
        described["redirectqa"]
        == "Compare answers about canonical names with answers about Wikipedia redirects."
    )


def test_internal_studies_are_not_listed(capsys):
    assert main(["run", "--help"]) == 0
    listed = capsys.readouterr().out
    assert "slaq " in listed
    assert "verdicts" not in listed
    assert "Two runs" not in listed
    assert not {"runs", "verdicts"} & {*plugins.STUDIES.names()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "slaqq"], "study 'slaqq' not found (did you mean 'slaq'?); available: "),
        (["analyse", "frequncy"], "analysis 'frequncy' not found (did you mean 'frequency'?); "),
        (["analyse", "nothing", "x", "--out", "y"], "analysis 'nothing' not found"),
        (["runn"], "command 'runn' not found (did you mean 'run'?); commands: compare, "),
        (["run", "--out", "x", "slaq"], "name the study before its options"),
    ],
)
def test_mistyped_name_gives_a_suggestion(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_analyses_are_listed_and_others_raise(capsys):
    message = r"analysis 'nothing' not found; available: .*linking_vs_consistency.*; or name"
    with pytest.raises(PluginError, match=message):
        find_analysis("nothing")
    assert main(["analyse"]) == 0
    assert "linking_vs_consistency Compare the flips" in " ".join(capsys.readouterr().out.split())


def test_entry_point_without_a_distribution_is_reported_by_its_name(monkeypatch):
    point = EntryPoint("lone", "nowhere_at_all:X", GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])

    with pytest.raises(PluginError, match="study 'lone' cannot be loaded: importing 'nowhere_at"):
        Plugins(GROUP, "study").load("lone")
