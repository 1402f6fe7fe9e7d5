import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.report.audit import audit_run_tables, load_audit_runs


@pytest.fixture
def folder(audit_run, random_audit, audit_manifest):
    """A run of 96 facts."""
    return audit_run("run", random_audit(8, seed=3), audit_manifest())


def test_load_audit_runs_gives_what_the_folder_holds(folder):
    (folder / "scoring.json").write_text('{"cleaner": "audit", "equivalence": "published"}')

    [run] = load_audit_runs([folder])

    assert run.label == "organism"
    assert len(run.outcomes) == 96
    assert str(run.outcomes["first_correct"].dtype) == "boolean"
    assert run.tables["overall"]["n"].tolist() == [96]
    assert run.varying == {}
    assert run.signature.endswith("|judged_by:audit cleaner, published equivalence")


def test_labels_of_a_sweep_are_the_settings_that_differ(audit_run, random_audit, audit_manifest):
    folders = [
        audit_run(f"run-{limit}", random_audit(3, seed=1), audit_manifest(settings=told))
        for limit, told in ((1, {"threshold": 0.5}), (2, {"threshold": 0.6}))
    ]

    runs = load_audit_runs(folders)
    tables = audit_run_tables(runs)

    assert [run.label for run in runs] == ["organism (threshold 0.5)", "organism (threshold 0.6)"]
    assert tables["settings"]["threshold"].tolist() == ["0.5", "0.6"]
    assert tables["by_variant"]["model"].nunique() == 2


def test_labels_of_runs_with_the_same_settings_are_their_folders(
    audit_run, random_audit, audit_manifest
):
    folders = [audit_run(name, random_audit(3, seed=1), audit_manifest()) for name in "ab"]

    assert [run.label for run in load_audit_runs(folders)] == ["organism (a)", "organism (b)"]


def test_load_audit_runs_rejects_no_folder_and_one_given_twice(folder):
    with pytest.raises(ValueError, match="at least one run folder, and each of them once"):
        load_audit_runs([])
    with pytest.raises(ValueError, match="each of them once"):
        load_audit_runs([folder, folder])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("manifest.json", r"no manifest.json, which `surface-consistency audit --out` writes"),
        ("outcomes.parquet", r"no outcomes.parquet: its answers are not judged yet"),
        ("tables/overall.csv", r"no tables/overall.csv: the run is judged, but"),
    ],
)
def test_load_audit_runs_rejects_a_folder_without(folder, file, message):
    (folder / file).unlink()

    with pytest.raises(SourceNotFoundError, match=message):
        load_audit_runs([folder])


def test_load_audit_runs_rejects_another_study(folder, audit_manifest):
    manifest = audit_manifest(study="slaq").model_dump_json()
    (folder / "manifest.json").write_text(manifest)

    with pytest.raises(DataError, match="a run of the study 'slaq', not of 'audit'"):
        load_audit_runs([folder])


def test_load_audit_runs_rejects_a_broken_manifest(folder):
    (folder / "manifest.json").write_text('{"study": "audit"}')

    with pytest.raises(RecordError, match="not a RunManifest"):
        load_audit_runs([folder])


@pytest.mark.parametrize("content", ["[]", "{}", "not JSON"])
def test_load_audit_runs_rejects_broken_rules(folder, content):
    (folder / "scoring.json").write_text(content)

    with pytest.raises(DataError, match="does not name cleaner and equivalence"):
        load_audit_runs([folder])


def test_load_audit_runs_rejects_broken_outcomes(folder, random_audit):
    frame = random_audit(8, seed=3)
    target = folder / "outcomes.parquet"

    frame.drop(columns="variant").to_parquet(target)
    with pytest.raises(ColumnNotFoundError, match="no column variant of AuditOutcome"):
        load_audit_runs([folder])
    frame.iloc[:0].to_parquet(target)
    with pytest.raises(DataError, match="holds no outcome"):
        load_audit_runs([folder])
    frame.assign(style=[None, *frame["style"][1:]]).to_parquet(target)
    with pytest.raises(DataError, match="column 'style' is empty in row 0"):
        load_audit_runs([folder])
    pd.concat([frame, frame.head(1)]).to_parquet(target)
    with pytest.raises(DataError, match="'pair_id' holds 'countries/base/cloze/0' more than once"):
        load_audit_runs([folder])
    target.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load_audit_runs([folder])


def test_load_audit_runs_rejects_tables_of_other_outcomes(folder, random_audit):
    random_audit(8, seed=4).to_parquet(folder / "outcomes.parquet")

    with pytest.raises(DataError, match="they are of different scorings, so make the tables"):
        load_audit_runs([folder])


def test_load_audit_runs_passes_over_empty_tables_and_rejects_broken_ones(folder):
    (folder / "checks" / "closure_facts.csv").write_text("\n")
    assert load_audit_runs([folder])[0].checks == {}

    (folder / "checks" / "fit.csv").write_text('"a\n1,2')
    with pytest.raises(DataError, match="cannot be read as a CSV table"):
        load_audit_runs([folder])


def test_tables_of_a_report_written_into_its_run_are_not_taken_for_the_studys(
    audit_run, random_audit, audit_manifest
):
    checks = {"closure": pd.DataFrame({"database": ["released"], "n_facts": [3]})}
    folder = audit_run("run", random_audit(3, seed=1), audit_manifest(), checks=checks)
    tables = audit_run_tables(load_audit_runs([folder]))
    for name, table in tables.items():
        table.to_csv(folder / "tables" / f"{name}.csv", index=False)

    again = audit_run_tables(load_audit_runs([folder]))

    assert again.keys() == tables.keys()
    assert len(again["check_closure"]) == 1


def test_audit_run_tables_rejects_no_runs():
    with pytest.raises(ValueError, match="runs is empty"):
        audit_run_tables([])


def test_the_folder_of_a_sweep_names_its_runs(audit_run, audit_frame, audit_manifest):
    folder = audit_run("sweep/fuzzy-0.5", audit_frame([{}]), audit_manifest())

    with pytest.raises(SourceNotFoundError, match=r"holds several: give .*fuzzy-0\.5"):
        load_audit_runs([folder.parent])
