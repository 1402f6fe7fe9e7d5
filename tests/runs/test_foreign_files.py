"""No command replaces a file that no earlier command wrote, and each replaces its own."""

import shutil

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from tests.faults import crashes

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = ("--setting", "resamples=5", "--setting", "answers=3")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "2", *crashes.ECHO, *QUICK)
SWEEP = ("--retriever", "fuzzy", "--threshold", "0.5", "0.9", *QUICK)
REPORTS = {
    "compare": (("compare", "forms.csv", "--form", "form"), "models"),
    "accuracy": (("accuracy", "forms.csv"), "accuracy"),
    "consistency": (("consistency", "forms.csv"), "consistency"),
    "paired": (("paired", "v.csv", "--first", "a", "--second", "b"), "paired"),
    "report": (("report", "run", *QUICK), "overall"),
    "analyse": (("analyse", "tests.faults.plugins:Counting", "run", *QUICK), "overall"),
    "run": (RUN, "overall"),
}
OTHERS = (
    (RUN, ("targets.parquet", "outcomes.parquet", "scoring.json", "checks", "highlights")),
    ((*crashes.PREDICTIONS, *QUICK), ("generations.jsonl", "outcomes.parquet", "report.html")),
    ((*crashes.AUDIT, *crashes.ECHO, *SWEEP), ("sweep.json",)),
    (("export", "run"), ("README.md", "data/outcomes-00000-of-00001.parquet")),
)
OWN = "written by its user\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that the commands read, and a run."""
    home = tmp_path_factory.mktemp("made")
    crashes._prepare(home)
    crashes.verdicts_of_forms(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main([*RUN, "--out", "run"]) == 0
    return home


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def files(folder):
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


def refuse(home, words, name, capsys):
    """A command refuses a file of its user by name, and writes nothing."""
    path = home / "X" / name
    path.parent.mkdir(parents=True)
    path.write_text(OWN)

    assert main([*words, "--out", "X"]) == 2

    said = capsys.readouterr().err
    assert f"X/{name} exists and is not listed as written by an earlier command" in said
    assert "move or rename it, or choose another" in said
    assert files(home / "X") == {name: OWN.encode()}
    shutil.rmtree(home / "X")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_replaces_what_a_report_wrote_and_nothing_else(name, home, capsys):
    words, table = REPORTS[name]
    for own in ("report.html", f"tables/{table}.csv"):
        refuse(home, words, own, capsys)
    assert main([*words, "--out", "X"]) == 0
    first = files(home / "X")
    sources = first["tables/SOURCES.txt"].decode()
    assert all(f"  {file}\n" in sources for file in ("report.html", f"tables/{table}.csv"))
    (home / "X" / "report.html").write_text("edited")
    (home / "X" / "tables" / "notes.csv").write_text(OWN)

    assert main([*words, "--out", "X"]) == 0

    found = files(home / "X")
    assert found.pop("tables/notes.csv") == OWN.encode()
    assert found.keys() == first.keys()
    assert found["report.html"].startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("words", "names"), OTHERS)
def test_a_run_and_an_export_replace_nothing_else(words, names, home, capsys):
    for name in names:
        refuse(home, words, name, capsys)


def test_a_link_is_replaced_only_where_a_report_was_and_never_written_through(home, capsys):
    words = ["accuracy", "forms.csv", "--out", "X"]
    page, tables = home / "X/report.html", home / "X/tables"
    refuse(home, words[:2], "tables/SOURCES.txt", capsys)
    (home / "own.html").write_text(OWN)
    (home / "elsewhere").mkdir()
    (home / "X").mkdir()
    for link, target in ((page, "own.html"), (page, "nothing"), (tables, "elsewhere")):
        link.symlink_to(home / target)
        assert main(words) == 2
        assert str(link.relative_to(home)) in capsys.readouterr().err
        link.unlink()
    assert main(words) == 0
    page.unlink()
    page.symlink_to(home / "own.html")

    assert main(words) == 0

    assert not page.is_symlink()
    assert (home / "own.html").read_text() == OWN
    assert list((home / "elsewhere").iterdir()) == []


def test_sheets_and_labels_of_people_are_not_replaced(home, capsys):
    words = ["score", "run", "--labelling-sheet", "sheet.csv"]
    assert main(words) == main(words) == 0
    sheet = (home / "sheet.csv").read_text()
    labelled = sheet.replace(",,", ",1,", 1)
    for content, more in ((OWN, ()), (labelled, ()), (sheet, ("--setting", "labelling_sample=1"))):
        (home / "sheet.csv").write_text(content)
        assert main([*words, *more]) == 2
        assert "sheet.csv exists and may contain labels" in capsys.readouterr().err
        assert (home / "sheet.csv").read_text() == content
    (home / "run" / "labels.csv").write_text(sheet)
    pd.read_csv(home / "sheet.csv").assign(correct=1).head(1).to_csv(home / "l.csv", index=False)

    assert main(["score", "run", "--labels", "l.csv"]) == 2

    assert "run/labels.csv exists and is not listed as written" in capsys.readouterr().err
    assert (home / "run" / "labels.csv").read_text() == sheet
