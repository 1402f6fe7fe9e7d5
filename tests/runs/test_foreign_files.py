"""No command replaces a file that no earlier command wrote, and each replaces its own."""

import shutil

import pandas as pd
import pytest

import surface_consistency as sc
from surface_consistency.cli.main import main
from tests.faults import crashes

QUICK = ("--setting", "resamples=5", "--setting", "answers=3")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "2", *crashes.ECHO, *QUICK)
FORMS = "forms.csv"
pytestmark = pytest.mark.filterwarnings("ignore")
REPORTS = {
    "compare": (("compare", FORMS, "--form", "form", "--out", "X"), "models"),
    "accuracy": (("accuracy", FORMS, "--out", "X"), "accuracy"),
    "consistency": (("consistency", FORMS, "--out", "X"), "consistency"),
    "paired": (("paired", "v.csv", "--first", "a", "--second", "b", "--out", "X"), "paired"),
    "report": (("report", "run", "--out", "X", *QUICK), "overall"),
    "analyse": (
        ("analyse", "tests.faults.plugins:Counting", "run", "--out", "X", *QUICK), "overall"
    ),
    "run": ((*RUN, "--out", "X"), "overall"),
    "score --predictions": ((*crashes.PREDICTIONS, "--out", "X", *QUICK), "overall"),
}  # fmt: skip
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
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }  # fmt: skip


def refuse(home, words, name, capsys):
    """A command refuses a file of its user by name, and changes nothing."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OWN)
    before = files(home)

    assert main(list(words)) == 2

    said = capsys.readouterr().err
    assert f"{name} exists and was not written by an earlier command" in said
    assert "choose another --out" in said or "choose another `out`" in said
    found = files(home)
    assert {key: found.get(key) for key in before} == before
    path.unlink()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_replaces_what_a_report_wrote_and_nothing_else(name, home, capsys):
    words, table = REPORTS[name]
    for own in ("X/report.html", f"X/tables/{table}.csv"):
        refuse(home, words, own, capsys)
        shutil.rmtree(home / "X")
    assert main(list(words)) == 0
    first = files(home / "X")
    assert f"tables/{table}.csv" in first
    sources = first["tables/SOURCES.txt"].decode()
    assert all(f"  {file}\n" in sources for file in ("report.html", f"tables/{table}.csv"))
    (home / "X" / "report.html").write_text("edited")
    (home / "X" / "tables" / "notes.csv").write_text(OWN)

    assert main(list(words)) == 0

    found = files(home / "X")
    assert found.keys() == first.keys() | {"tables/notes.csv"}
    assert found.pop("tables/notes.csv") == OWN.encode()
    assert all(found[key] == first[key] for key in first if key.endswith(".csv"))
    assert found["report.html"].startswith(b"<!DOCTYPE html>")


def test_a_link_is_replaced_only_where_a_report_was_and_never_written_through(home, capsys):
    words = ["accuracy", FORMS, "--out", "X"]
    (home / "X").mkdir()
    (home / "own.html").write_text(OWN)
    for target in ("own.html", "nothing"):
        (home / "X" / "report.html").symlink_to(home / target)
        assert main(words) == 2
        assert "X/report.html exists and was not written" in capsys.readouterr().err
        (home / "X" / "report.html").unlink()
    (home / "elsewhere").mkdir()
    (home / "X" / "tables").symlink_to(home / "elsewhere")
    assert main(words) == 2
    assert "is a symbolic link" in capsys.readouterr().err
    (home / "X" / "tables").unlink()
    assert main(words) == 0
    (home / "X" / "report.html").unlink()
    (home / "X" / "report.html").symlink_to(home / "own.html")

    assert main(words) == 0

    assert not (home / "X" / "report.html").is_symlink()
    assert (home / "own.html").read_text() == OWN
    assert list((home / "elsewhere").iterdir()) == []


def test_a_list_of_files_that_no_report_wrote_is_refused(home, capsys):
    refuse(home, ["accuracy", FORMS, "--out", "X"], "X/tables/SOURCES.txt", capsys)


def test_results_are_saved_by_the_same_rule(home):
    frame = pd.read_csv(FORMS)
    results = [sc.accuracy(frame), sc.consistency(frame), sc.compare(frame)]
    for place, result in enumerate(results):
        (home / str(place)).mkdir()
        (home / str(place) / "report.html").write_text(OWN)
        with pytest.raises(sc.errors.DataError, match=r"report\.html exists and was not written"):
            result.save(home / str(place))
        assert files(home / str(place)) == {"report.html": OWN.encode()}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((*RUN, "--out", "X"), ("targets.parquet", "prompts.jsonl", "outcomes.parquet", "checks")),
        ((*RUN, "--out", "X"), ("scoring.json", "plan.json", "highlights")),
        ((*crashes.PREDICTIONS, "--out", "X", *QUICK), ("generations.jsonl", "outcomes.parquet")),
        ((*crashes.AUDIT, *crashes.ECHO, "--retriever", "fuzzy", "--threshold", "0.5", "0.9",
          "--out", "X", *QUICK), ("sweep.json",)),
        (("export", "run", "--out", "X"),
         ("README.md", "data/outcomes-00000-of-00001.parquet")),
    ],
)  # fmt: skip
def test_a_run_and_an_export_replace_nothing_else(words, names, home, capsys):
    for name in names:
        refuse(home, words, f"X/{name}", capsys)


def test_tables_of_a_study_and_labels_in_a_run_are_not_replaced(home, capsys):
    """A study adds tables to its run, and --labels copies a file."""
    lexical = [*crashes.LEXICAL, *crashes.SCORER, "--out", "X", *QUICK]
    assert main(lexical) == 0
    words = (home / "X" / "words.csv").read_bytes()
    assert main(lexical) == 0
    assert (home / "X" / "words.csv").read_bytes() == words
    prompts = pd.read_parquet(home / "run" / "targets.parquet")[["prompt_id", "item"]]
    labels = prompts.rename(columns={"item": "question_id"}).assign(correct=1)
    labels.head(1).to_csv(home / "l.csv", index=False)
    labels.head(2).to_csv(home / "run" / "labels.csv", index=False)

    assert main(["score", "run", "--labels", "l.csv"]) == 2

    assert "run/labels.csv exists and was not written" in capsys.readouterr().err
    assert len(pd.read_csv(home / "run" / "labels.csv")) == 2


def test_a_sheet_is_written_once_and_an_untouched_one_is_no_obstacle(home, capsys):
    words = ["score", "run", "--labelling-sheet", "sheet.csv"]
    assert main(words) == 0
    sheet = (home / "sheet.csv").read_bytes()
    assert main(words) == 0
    assert (home / "sheet.csv").read_bytes() == sheet
    for content in (OWN, sheet.decode().replace(",,", ",1,", 1)):
        (home / "sheet.csv").write_text(content)
        assert main(words) == 2
        assert "sheet.csv exists and may contain labels" in capsys.readouterr().err
        assert (home / "sheet.csv").read_text() == content
    assert main([*words, "--setting", "labelling_seed=1"]) == 2
    (home / "sheet.csv").write_bytes(sheet)
    assert main([*words, "--setting", "labelling_sample=1"]) == 2
