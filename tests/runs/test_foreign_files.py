"""Commands replace files of earlier commands, but not files of the user."""

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
def prepared(tmp_path_factory):
    """The files that the commands read, and a run."""
    home = tmp_path_factory.mktemp("prepared")
    crashes._prepare(home)
    crashes.write_labels(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert main([*RUN, "--out", "run"]) == 0
    return home


@pytest.fixture
def home(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def files(folder):
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


def assert_rejected(home, words, name, capsys):
    """A command rejects an existing file of the user by name, and writes no files."""
    path = home / "X" / name
    path.parent.mkdir(parents=True)
    path.write_text(OWN)

    assert main([*words, "--out", "X"]) == 2

    errors = capsys.readouterr().err
    assert f"X/{name} exists and is not listed as written by an earlier command" in errors
    assert "move or rename it, or choose another" in errors
    assert files(home / "X") == {name: OWN.encode()}
    shutil.rmtree(home / "X")


@pytest.mark.parametrize("name", REPORTS)
def test_report_replaces_only_files_of_an_earlier_report(name, home, capsys):
    words, table = REPORTS[name]
    for own in ("report.html", f"tables/{table}.csv"):
        assert_rejected(home, words, own, capsys)
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
def test_run_and_export_do_not_replace_files_of_the_user(words, names, home, capsys):
    for name in names:
        assert_rejected(home, words, name, capsys)


def test_only_a_link_in_place_of_a_report_is_replaced_and_none_is_followed(home, capsys):
    words = ["accuracy", "forms.csv", "--out", "X"]
    page, tables = home / "X/report.html", home / "X/tables"
    assert_rejected(home, words[:2], "tables/SOURCES.txt", capsys)
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


def test_labelling_sheets_and_human_labels_are_not_replaced(home, capsys):
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
