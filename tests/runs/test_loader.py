import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.runs import loader
from surface_consistency.studies.redirectqa import RedirectOutcome
from tests.made_runs import make_manifest, make_outcomes, make_run, write_outcomes

__all__ = ["make_manifest", "make_outcomes", "make_run"]


def load_runs(folders):
    """Read runs of RedirectQA."""
    return loader.load_runs(folders, outcome=RedirectOutcome)


def load_run(folder):
    """Read one run of RedirectQA."""
    return load_runs([folder])[0]


VERDICTS = [(True, True), (True, False), (None, True), (False, False)]


def test_load_run_is_faithful_to_the_files(make_run, make_outcomes, make_manifest):
    """What was written is what is read: verdicts with their gaps, labels, checks, highlights."""
    manifest = make_manifest("toy_model")
    table = pd.DataFrame({"rule": ["exact", "NA"], "share": [0.25, None]})
    folder = make_run(
        "run",
        make_outcomes(VERDICTS, categories=[("a", "b"), ()]),
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


def test_load_run_is_content_without_optional_files(make_run, make_outcomes, make_manifest):
    """A run needs neither checks nor highlights."""
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / "checks").rmdir()
    (folder / "highlights").rmdir()

    run = load_run(folder)

    assert (run.label, run.judged_by, run.checks, run.highlights) == (
        "toy_model",
        "by hand",
        {},
        {},
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("manifest.json", r"not a run folder: manifest.json is missing; make one with"),
        ("outcomes.parquet", r"outcomes.parquet is gone, though scoring.json tells"),
    ],
)
def test_load_run_rejects_a_folder_without(name, message, make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / name).unlink()

    with pytest.raises(SourceNotFoundError, match=message):
        load_run(folder)


def test_load_run_rejects_an_absent_folder(tmp_path):
    with pytest.raises(
        SourceNotFoundError, match=r"there is no folder .*nowhere \(in .*check the path"
    ):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"study": "redirectqa"}', r"manifest.json: not a RunManifest: field 'model'"),
        ("{", r"manifest.json: not a RunManifest: .*Invalid JSON"),
    ],
)
def test_load_run_rejects_a_broken_manifest(
    content, message, make_run, make_outcomes, make_manifest
):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / "manifest.json").write_text(content, encoding="utf-8")

    with pytest.raises(RecordError, match=message):
        load_run(folder)


def test_load_run_rejects_outcomes_that_are_no_parquet(make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / "outcomes.parquet").write_text("pair_id,fact_id\n", encoding="utf-8")

    with pytest.raises(DataError, match=r"outcomes.parquet: cannot be read as Parquet"):
        load_run(folder)


def test_load_run_rejects_outcomes_of_another_schema(make_run, make_outcomes, make_manifest):
    """The message names the columns that are missing and those that are there."""
    outcomes = make_outcomes(VERDICTS).rename(columns={"types": "kinds"})
    folder = make_run("run", outcomes, make_manifest())

    with pytest.raises(ColumnNotFoundError, match=r"no column 'types' .*there are .*'kinds'"):
        load_run(folder)


def test_load_run_rejects_empty_outcomes(make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS).iloc[:0], make_manifest())

    with pytest.raises(DataError, match=r"holds no pair, so there is nothing to report; score"):
        load_run(folder)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("categories", ["a", "b", "c", "d"], r"'categories' must hold lists of labels, got 'a'"),
        (
            "first_correct",
            ["yes", "no", "yes", "no"],
            r"'first_correct' holds what RedirectOutcome",
        ),
        ("second_correct", [0, 1, 2, 1], r"'second_correct' holds what RedirectOutcome does not"),
        ("relation", ["a", "b", None, "c"], r"'relation' is empty in row 2; each row needs it"),
        ("pair_id", ["p", "q", "r", "q"], r"'pair_id' holds 'q' more than once"),
        ("model", ["other"] * 4, r"'model' holds 'other', but manifest.json is of 'toy_model'"),
        ("model", ["toy_model"] * 3 + ["b"], r"'model' holds 'toy_model', 'b', but manifest.json"),
    ],
)
def test_load_run_rejects_values_in(
    column, values, message, make_run, make_outcomes, make_manifest
):
    folder = make_run("run", make_outcomes(VERDICTS).assign(**{column: values}), make_manifest())

    with pytest.raises(DataError, match=message):
        load_run(folder)


def test_load_run_takes_an_empty_check_for_none(make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / "checks" / "rules.csv").write_bytes(b"")

    assert load_run(folder).checks == {}


def test_load_run_rejects_a_check_that_is_no_table(make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())
    (folder / "checks" / "rules.csv").write_text('a,b\n"1,2\n3,4,5\n')

    with pytest.raises(DataError, match=r"rules.csv: cannot be read as a CSV table"):
        load_run(folder)


def test_load_run_rejects_a_column_that_the_study_does_not_declare(
    make_run, make_outcomes, make_manifest
):
    folder = make_run("run", make_outcomes(VERDICTS).assign(mood="good"), make_manifest())

    with pytest.raises(DataError, match=r"column 'mood' is no field of RedirectOutcome; declare"):
        load_run(folder)


def test_load_runs_is_distinct_in_its_labels(make_run, make_outcomes, make_manifest):
    """Runs that share a model get as much of their path as tells them apart; others get none."""
    outcomes = make_outcomes(VERDICTS)
    folders = [make_run(name, outcomes, make_manifest()) for name in ("x/one", "x/two", "y/one")]
    other = make_run("z", make_outcomes(VERDICTS, model="other"), make_manifest("other"))

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


def test_load_runs_rejects_a_folder_given_twice(make_run, make_outcomes, make_manifest):
    folder = make_run("run", make_outcomes(VERDICTS), make_manifest())

    with pytest.raises(ValueError, match=r"run is given more than once"):
        load_runs([folder, folder.parent / "." / "run"])


def test_load_runs_rejects_no_folder():
    with pytest.raises(ValueError, match=r"folders is empty"):
        load_runs([])
