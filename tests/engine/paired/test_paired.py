import warnings

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine import report as reporting
from surface_consistency.engine.design import Report
from surface_consistency.engine.paired import tables as paired_tables
from surface_consistency.engine.paired.page import inferred
from surface_consistency.engine.paired.tables import above_noise_by, with_detectable
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.report.page import ForestPlot
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.tables.numbers import Value, sentence_text
from surface_consistency.tables.sentences import detectable_note
from tests.made_runs import (
    make_manifest,
    make_outcomes,
    make_run,
    memory_run,
    noise_floor,
    random_outcomes,
)

__all__ = ["make_run"]


def study_run(outcomes, label="m", *, floor=None, **checks):
    checks = checks if floor is None else checks | {"noise_floor": floor}
    return memory_run(outcomes, label, checks=checks)


def panels(n):
    return pd.concat(
        random_outcomes(n, seed=seed, model="m", template=template)
        for seed, template in ((4, "original"), (5, "paraphrase"))
    )


def compute_report(runs, *, resamples=50, **options):
    """Return a report of runs and its tables, including those of the checks."""
    report = Report(
        **{"runs": runs, "design": RedirectQAStudy.design} | options,
        settings=ReportSettings(resamples=resamples),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        return report, RedirectQAStudy.report.compute(report) | reporting._check_tables(runs)


def study_tables(runs, **options):
    return {name: table.frame for name, table in compute_report(runs, **options)[1].items()}


@pytest.fixture
def runs():
    """Two models, one of them under two templates."""
    b = random_outcomes(60, seed=1, model="b")
    paraphrased = random_outcomes(50, seed=2, model="a", template="paraphrase")
    a = pd.concat([paraphrased, random_outcomes(40, seed=3, model="a")])
    return [study_run(b, "b"), study_run(a, "a")]


def test_table_of_runs_without_correctness_labels_has_one_row_with_nan():
    row = study_tables([study_run(make_outcomes([(None, None)] * 3))])["overall"].iloc[0]

    assert (row["n"], row["n_missing"]) == (0, 3)
    assert pd.isna(row["consistency"])


def test_checks_of_all_runs_are_joined_into_one_table_per_check():
    """Runs without rows of a check are omitted."""
    outcomes = make_outcomes([(True, False), (True, True)])
    rules = pd.DataFrame({"first_rule": ["popqa"], "second_rule": ["exact"], "n_differ": [3]})
    floor = noise_floor("toy_model", 1, 100)
    runs = [
        study_run(outcomes, "toy_model (x)", rules=rules, floor=floor),
        study_run(outcomes, "toy_model (y)", rules=rules),
        study_run(outcomes, "toy_model (z)", rules=rules.iloc[:0]),
    ]

    tables = study_tables(runs, resamples=20)

    assert tables["rules"]["model"].tolist() == ["toy_model (x)", "toy_model (y)"]
    assert tables["rules"]["n_differ"].tolist() == [3, 3]
    assert tables["noise_floor"]["model"].tolist() == ["toy_model (x)"]
    assert list(tables["rules"].columns) == ["model", "first_rule", "second_rule", "n_differ"]


@pytest.mark.parametrize(
    ("change", "cluster", "message"),
    [
        ({"subject_id": None}, "subject_id", r"run 'toy_model' has 3 pairs without subject_id"),
        ({}, "x", r"`cluster` must be one of subject_id, item, relation for .*; got 'x'"),
    ],
)
def test_report_rejects_missing_and_unknown_clusters(change, cluster, message, make_run, tmp_path):
    folder = make_run("run", make_outcomes([(True, False)] * 3).assign(**change), make_manifest())

    with pytest.raises(ValueError, match=message):
        reporting.report_runs([folder], tmp_path / "out", settings=ReportSettings(cluster=cluster))


def test_written_tables_are_read_by_pandas_without_options(runs, tmp_path):
    _, specs = compute_report(runs, cluster="item")
    tables = {name: table.frame for name, table in specs.items()}

    written = reporting.write_tables(specs, tmp_path / "deep" / "tables", runs=runs)

    assert [path.name for path in written] == [*(f"{n}.csv" for n in tables), "SOURCES.txt"]
    for name, table in tables.items():
        back = pd.read_csv(tmp_path / "deep" / "tables" / f"{name}.csv")
        # An empty reason is read as NaN.
        reasons = table.filter(["not_inferred"])
        expected = table.assign(**reasons.where(reasons.ne(""), np.nan))
        pd.testing.assert_frame_equal(back, expected, check_dtype=False, rtol=1e-15)
    lines = (tmp_path / "deep" / "tables" / "SOURCES.txt").read_text("utf-8").splitlines()
    assert lines == [f"{run.label}\t{run.signature}" for run in runs]


def test_tables_do_not_depend_on_the_number_of_processes(runs, monkeypatch):
    alone = study_tables(runs)
    monkeypatch.setattr(paired_tables, "_FEW_ROWS", 0)

    apart = study_tables(runs)

    assert alone.keys() == apart.keys()
    for name, table in alone.items():
        assert table.to_csv() == apart[name].to_csv()


def page_of(runs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        return RedirectQAStudy.report.page(*compute_report(runs, resamples=200, **options))


def titles(page):
    return {check.title for check in page.checks}


TWELVE = [(True, False)] * 12 + [(True, True)] * 28
"""12 of 40 pairs flip."""


@pytest.mark.parametrize(
    ("n_flips", "title"),
    [
        (2, "Above test-retest noise"),
        (56, "Not significantly above test-retest noise"),
        (180, "Not significantly above test-retest noise"),
    ],
)
def test_flip_rate_is_above_the_noise_only_if_significantly_higher(n_flips, title):
    """12 of 40 pairs flip: significantly more than 2 of 200, but not than 56 of 200."""
    run = study_run(make_outcomes(TWELVE), floor=noise_floor("m", n_flips, 200))

    known = {"Above test-retest noise", "Not significantly above test-retest noise"}
    assert titles(page_of([run])) & known == {title}


def test_groups_are_compared_with_the_noise_by_a_one_sided_test():
    """20 and 2 of 40 pairs flip in the relations, and 20 of 200 repeated prompts."""
    cells = [(True, False)] * 20 + [(True, True)] * 20 + [(True, False)] * 2 + [(True, True)] * 38
    outcomes = make_outcomes(cells).assign(relation=["capital"] * 40 + ["author"] * 40)
    run = study_run(outcomes, floor=noise_floor("m", 20, 200))
    report = Report(runs=[run], design=RedirectQAStudy.design, cluster="item")

    p_values = above_noise_by(report, ["relation"]).droplevel(["model", "template"])

    assert p_values["capital"] < 0.01
    assert p_values["author"] > 0.5


BY_KIND = RedirectQAStudy.design.model_copy(update={"stratum": "kind", "facet": None})
"""A design with a noise floor per stratum and tables without facets."""


def test_flip_rate_is_compared_with_the_largest_floor_of_all_strata():
    floors = [noise_floor("m", n, 200).assign(kind=kind) for n, kind in ((0, "a"), (60, "b"))]
    run = study_run(make_outcomes(TWELVE), floor=pd.concat(floors))

    page = page_of([run], design=BY_KIND)

    assert "Not significantly above test-retest noise" in titles(page)
    blocks = [block for section in page.sections for block in section.blocks]
    charts = [b for b in blocks if isinstance(b, ForestPlot) and b.name.startswith("flips-")]
    # Each group has one row with one marker.
    rows = [row for chart in charts for row in chart.rows]
    assert {(level, len(dots)) for _, level, dots in rows} == {(0, 1)}
    parts = page.finding.summary
    shown = sentence_text(parts).replace("\u00a0", " ")
    assert "test-retest flip rate of identical prompts of m is 0.0 % (95 % CI " in shown
    assert ", a); 30.0 % (95 % CI " in shown
    assert ", b)." in shown


def test_finding_of_several_templates_names_its_template():
    """Templates are never pooled; the sentence is about the first one."""
    outcomes = panels(80)
    runs = study_run(outcomes), study_run(outcomes[outcomes["template"] == "original"])

    both, one = (sentence_text(page_of([run]).finding.sentence) for run in runs)

    assert "of m between “title” and “redirect” (template: original) is " in both
    assert "of m between “title” and “redirect” is " in one


@pytest.mark.parametrize("label", ["500", "0500", "1e3", "nan"])
def test_labels_that_look_like_numbers_are_read_as_text(make_run, label):
    """Such as a checkpoint in a folder named 500."""
    outcomes = make_outcomes([(True, False), (True, True)], model=label)
    checks = {"noise_floor": noise_floor(label, 1, 10)}
    folder = make_run("run", outcomes, make_manifest(label), checks=checks)

    page, tables, _ = reporting.build_page([folder], settings=ReportSettings(resamples=20))

    assert tables["noise_floor"].frame["model"].tolist() == [label]
    assert "No noise floor" not in titles(page)
    assert "test-retest flip rate of identical prompts" in sentence_text(page.finding.summary)


def test_clusters_are_subjects_if_all_are_known_and_items_otherwise(make_run):
    outcomes = make_outcomes([(True, False), (True, True)] * 10)
    known = make_run("known", outcomes, make_manifest())
    unknown = make_run("unknown", outcomes.assign(subject_id=None), make_manifest())
    few = ReportSettings(resamples=20)

    for folder, column in ((known, "subject_id"), (unknown, "item")):
        _, tables, _ = reporting.build_page([folder], settings=few)
        n_clusters = tables["overall"].frame["n_clusters"].iloc[0]
        assert n_clusters == outcomes[column].nunique()
    assert outcomes["subject_id"].nunique() != outcomes["item"].nunique()


def test_table_by_relation_has_intervals_if_relations_are_the_clusters():
    outcomes = random_outcomes(200, seed=9, model="m")

    tables = study_tables([study_run(outcomes)], cluster="relation")

    assert tables["overall"]["n_clusters"].iloc[0] == outcomes["relation"].nunique()
    assert tables["by_relation"]["flip_rate_low"].notna().any()


def test_detectable_difference_follows_from_the_interval_and_is_nan_without_one():
    bounds = {"low": [np.nan, -0.7, -0.07, -0.99], "high": [np.nan, 0.7, 0.07, -0.01]}
    table = pd.DataFrame({f"accuracy_difference_{end}": row for end, row in bounds.items()})

    found = with_detectable(table)["detectable_difference"]

    assert np.isnan(found[0])
    assert found[2] == pytest.approx(0.1, abs=0.001)
    # The first row has no interval, the second too wide a one; the last is significant.
    assert detectable_note(table.iloc[[0, 1, 2]]) == (
        "Minimum detectable difference at 80 % power, before correction: 10.0 points. 2 of 3 rows "
        "have too few pairs to detect any."
    )
    assert "too few" not in detectable_note(table.iloc[[2, 3]])


def test_checks_are_reported_for_each_template():
    checks = page_of([study_run(panels(15))]).checks

    for title in ("Few clusters", "No noise floor"):
        shown = [sentence_text(check.text) for check in checks if check.title == title]
        assert ["original" in shown[0], "paraphrase" in shown[1], len(shown)] == [True, True, 2]


def test_statistics_without_an_interval_or_p_value_are_omitted_below_plots():
    facts = [
        ("same label", Value(value=0.5, low=0.4, high=0.6), ""),
        ("kappa", Value(value=0.2, kind="number"), ""),
        ("tested", Value(value=0.03, kind="p_value"), "t"),
        ("not tested", Value(value=float("nan"), kind="p_value"), ""),
    ]

    assert [name for name, *_ in inferred(facts)] == ["same label", "tested"]
