from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.runs import loader
from surface_consistency.studies.redirectqa.study import RedirectOutcome
from tests.made_runs import make_manifest, make_outcomes, make_run, write_outcomes

__all__ = ["make_run"]


def load_runs(folders):
    return loader.load_runs(folders, outcome=RedirectOutcome)


def load_run(folder):
    return load_runs([folder])[0]


LABELS = [(True, True), (True, False), (None, True), (False, False)]


@pytest.fixture
def made(make_run):
    """Write a run of these labels with some columns changed."""

    def make(**columns):
        return make_run("run", make_outcomes(LABELS).assign(**columns), make_manifest())

    return make


def test_load_run_returns_the_content_of_the_files(make_run):
    manifest = make_manifest("toy_model")
    table = pd.DataFrame({"rule": ["exact", "NA"], "share": [0.25, None]})
    folder = make_run(
        "run",
        make_outcomes(LABELS, categories=[("a", "b"), ()]),
        manifest,
        checks={"rules": table},
        highlights={"by_planted_exposure": table},
    )
    write_outcomes(folder, pd.read_parquet(folder / "outcomes.parquet"), judged_by="popqa on whole")

    run = load_run(folder)

    assert run.label == "toy_model"
    assert run.manifest == manifest
    assert run.judged_by == "popqa on whole"
    assert run.outcomes["first_correct"].tolist() == [True, True, pd.NA, False]
    assert [*map(list, run.outcomes["categories"])] == [["a", "b"], [], ["a", "b"], []]
    assert list(run.checks) == ["rules"]
    assert list(run.highlights) == ["by planted exposure"]
    assert run.checks["rules"]["rule"].tolist() == ["exact", "NA"]
    assert run.checks["rules"]["share"].isna().tolist() == [False, True]


def test_load_run_accepts_a_run_without_optional_files(made):
    """Checks and highlights are optional, and an empty check is ignored."""
    folder = made()
    (folder / "checks" / "rules.csv").write_bytes(b"")
    assert load_run(folder).checks == {}
    (folder / "checks" / "rules.csv").unlink()
    (folder / "checks").rmdir()
    (folder / "highlights").rmdir()

    run = load_run(folder)

    assert (run.label, run.judged_by) == ("toy_model", "by hand")
    assert run.checks == run.highlights == {}


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("manifest.json", None, SourceNotFoundError, r"not a run folder: manifest.json is missing"),
        ("outcomes.parquet", None, SourceNotFoundError, r"is missing, but is listed in scoring"),
        ("manifest.json", '{"study": "x"}', RecordError, r"not a RunManifest: field 'model'"),
        ("manifest.json", "{", RecordError, r"not a RunManifest: .*Invalid JSON"),
        ("outcomes.parquet", "pair\n", DataError, r"cannot be read as Parquet"),
        ("checks/rules.csv", 'a,b\n"1,2\n3,4,5\n', DataError, r"cannot be read as a CSV table"),
    ],
)
def test_load_run_rejects_broken_files(made, name, content, error, message):
    folder = made()
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content, encoding="utf-8")

    with pytest.raises(error, match=rf"{Path(name).name}.*{message}|{message}"):
        load_run(folder)


def test_load_run_rejects_outcomes_with_another_schema_or_without_rows(make_run):
    outcomes = make_outcomes(LABELS)
    other = make_run("other", outcomes.rename(columns={"types": "kinds"}), make_manifest())
    empty = make_run("empty", outcomes.iloc[:0], make_manifest())

    with pytest.raises(ColumnNotFoundError, match=r"no column 'types' .*Columns: .*'kinds'"):
        load_run(other)
    with pytest.raises(DataError, match=r"no pair to report; score"):
        load_run(empty)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("categories", ["a", "b", "c", "d"], r"'categories' must contain lists of labels, got 'a'"),
        ("first_correct", ["yes", "no"] * 2, r"'first_correct' has values that RedirectOutcome"),
        ("second_correct", [0, 1, 2, 1], r"'second_correct' has values that RedirectOutcome"),
        ("relation", ["a", "b", None, "c"], r"'relation' is empty in row 2; each row needs it"),
        ("pair", ["p", "q", "r", "q"], r"'pair' has 'q' more than once"),
        ("model", ["other"] * 4, r"'model' has 'other', but manifest.json is of 'toy_model'"),
        ("model", ["toy_model"] * 3 + ["b"], r"'model' has 'toy_model', 'b', but manifest.json"),
    ],
)
def test_load_run_rejects_invalid_values_of_a_column(made, column, values, message):
    with pytest.raises(DataError, match=message):
        load_run(made(**{column: values}))


def test_load_runs_gives_distinct_labels(make_run):
    """Only labels of runs with a common model contain their path, as much as is necessary."""
    outcomes = make_outcomes(LABELS)
    folders = [make_run(name, outcomes, make_manifest()) for name in ("x/one", "x/two", "y/one")]
    other = make_run("z", make_outcomes(LABELS, model="other"), make_manifest("other"))

    pair = load_runs(folders[:2])
    runs = load_runs([*folders, other])

    assert [run.label for run in pair] == ["toy_model (one)", "toy_model (two)"]
    assert [run.label for run in runs] == [
        "toy_model (x/one)",
        "toy_model (x/two)",
        "toy_model (y/one)",
        "other",
    ]
    assert {run.manifest.model for run in pair} == {"toy_model"}


def test_load_runs_rejects_missing_and_repeated_folders(made, tmp_path):
    folder = made()

    with pytest.raises(ValueError, match=r"run is given more than once"):
        load_runs([folder, folder.parent / "." / "run"])
    with pytest.raises(ValueError, match=r"folders is empty"):
        load_runs([])
    with pytest.raises(SourceNotFoundError, match=r"folder .*nowhere not found \(in .*check the"):
        load_run(tmp_path / "nowhere")
