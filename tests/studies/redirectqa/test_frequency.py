"""The analysis of frequencies: joined by instance, with the results of the metrics functions."""

import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.report import build_page
from surface_consistency.engine.run import run_study
from surface_consistency.errors import ColumnNotFoundError, DataError, SurfaceConsistencyWarning
from surface_consistency.metrics import frequency_analysis
from surface_consistency.models import FakeRunner
from surface_consistency.studies.redirectqa.frequency import FrequencyAnalysis, FrequencySettings
from surface_consistency.studies.redirectqa.instances import surface_id
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.tables.numbers import sentence_text
from tests.made_runs import make_manifest, make_outcomes, make_run  # noqa: F401 - fixtures

N_FACTS = 300
SIDES = ("entity", "surface")


def planted(seed=0):
    """Instances, and the labels of a model that depend on all mentions of an entity."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet([2, 0.5, 0.5], N_FACTS)
    surface = rng.poisson(np.exp(rng.normal(5, 1.5, (N_FACTS, 1))) * share)
    fact, form = np.divmod(np.arange(3 * N_FACTS), 3)
    entity = surface.sum(axis=1)[fact]
    instances = pd.DataFrame(
        {
            "item": [f"fact-{n}" for n in fact],
            "surface": [f"name {n} {k}" for n, k in zip(fact, form, strict=True)],
            "is_canonical": form == 0,
            "entity_frequency": entity,
            "surface_frequency": surface.ravel(),
            "pair_documents": entity // 3,
            "pageviews": pd.array(entity * 10 + 1, "Int64"),
            "measure": "longest",
        }
    )
    instances["surface_id"] = instances["item"] + "|" + instances["surface"]
    chance = 1 / (1 + np.exp(4 - np.log1p(entity)))
    return instances, {name: rng.random(len(fact)) < chance for name in ("original", "paraphrase")}


def outcomes_of(instances, right):
    """Pairs of each title with each redirect, in both templates."""
    second = np.flatnonzero(~instances["is_canonical"])
    first, names = second // 3 * 3, instances["surface"].to_numpy()
    return pd.concat(
        [
            make_outcomes(
                list(zip(verdicts[first], verdicts[second], strict=True)), template=template
            ).assign(first_surface=names[first], second_surface=names[second])
            for template, verdicts in right.items()
        ],
        ignore_index=True,
    )


@pytest.fixture
def run(make_run):
    return make_run("run", outcomes_of(*planted()), make_manifest())


@pytest.fixture
def counts(tmp_path):
    instances, _ = planted()
    folder = tmp_path / "counts"
    folder.mkdir()
    instances.to_parquet(folder / "instances.parquet")
    return folder


def analysed(run, path, **settings):
    chosen = FrequencySettings(frequencies=path, **settings)
    _, tables, _ = build_page([run], analyses={FrequencyAnalysis(): chosen})
    return {name: table.frame for name, table in tables.items() if "frequency" in name}


def test_tables_equal_the_metrics_on_the_planted_rows(run, counts):
    instances, right = planted()
    instances["accuracy"] = (right["original"].astype(float) + right["paraphrase"]) / 2
    instances["subject_id"] = [f"Q{row // 6}" for row in range(len(instances))]
    expected = frequency_analysis(instances, cluster="subject_id")
    expected = expected.set_index(["subset", "statistic"])

    tables = analysed(run, counts)

    plain = tables["frequency_correlations"].set_index("subset")
    partial = tables["frequency_partial"].set_index("subset")
    statistics = [(plain, name) for name in ("entity", "surface", "entity_minus_surface")]
    statistics += [(partial, f"{name}_given_{other}") for name, other in (SIDES, SIDES[::-1])]
    for subset in plain.index:
        for frame, name in statistics:
            row = expected.loc[(subset, name)]
            for end in ("", "_low", "_p_value", "_p_value_independent"):
                theirs = end[1:] if "p_value" in end else f"estimate{end}"
                assert frame.loc[subset, f"{name}{end}"] == pytest.approx(row[theirs], abs=1e-12)
            assert frame.loc[subset, "n"] == row["n"]
    assert partial.loc["overall", "entity_given_surface_low"] > 0.2
    assert abs(partial.loc["overall", "surface_given_entity"]) < 0.1
    assert tables["frequency_bins"]["n"].sum() > 0


def test_counts_without_pairs_and_pageviews_omit_their_tables(run, counts, tmp_path):
    bare = tmp_path / "bare.parquet"
    pd.read_parquet(counts / "instances.parquet").drop(
        columns=["pair_documents", "pageviews"]
    ).to_parquet(bare)

    tables = analysed(run, bare)

    assert "frequency_pageviews" not in tables
    assert tables["frequency_others"]["held"].unique().tolist() == [""]


def test_names_without_counts_are_reported(run, counts):
    rows = pd.read_parquet(counts / "instances.parquet")
    rows.iloc[30:].to_parquet(counts / "instances.parquet")

    with pytest.warns(SurfaceConsistencyWarning, match="30 of 900 names have no count"):
        frame = analysed(run, counts)["frequency_correlations"].set_index("subset")

    assert frame.loc["canonical", "n_missing"] == 10
    assert frame.loc["redirect", "n_missing"] == 20


def test_counts_of_another_version_of_the_questions_raise_an_error(run, counts):
    rows = pd.read_parquet(counts / "instances.parquet")
    subjects = pd.Series([f"Q{row // 6}" for row in range(len(rows))])
    rows.assign(subject_id=subjects).to_parquet(counts / "instances.parquet")
    assert "frequency_partial" in analysed(run, counts)

    changed = subjects.mask(rows["item"] == "fact-3", "Q999")
    rows.assign(subject_id=changed).to_parquet(counts / "instances.parquet")
    with pytest.raises(DataError, match="1 facts are about another entity, such as 'fact-3' about"):
        analysed(run, counts)

    # The id of an entity without an item is its name.
    rows.assign(subject_id="name:x").to_parquet(counts / "instances.parquet")
    assert "frequency_partial" in analysed(run, counts)


def test_surface_ids_contain_normalized_names():
    assert surface_id("f", " E\u0301dith   Piaf ") == "f|\u00c9dith Piaf"


@pytest.mark.parametrize(
    ("change", "settings", "error", "message"),
    [
        (lambda rows: rows.drop(columns="measure"), {}, ColumnNotFoundError, "lacks the column m"),
        (lambda rows: rows, {"measure": "linked"}, DataError, "linked; it has longest"),
        (lambda rows: pd.concat([rows, rows]), {}, DataError, "twice under measure 'longest'"),
        (
            lambda rows: rows.assign(surface_id="x|" + rows["surface_id"]),
            {},
            DataError,
            "the counts contain none of the 900 names of toy_model",
        ),
    ],
)
def test_counts_that_do_not_match_raise_errors(run, counts, change, settings, error, message):
    path = counts / "instances.parquet"
    change(pd.read_parquet(path)).to_parquet(path)

    with pytest.raises(error, match=message):
        analysed(run, counts, **settings)


@pytest.mark.parametrize(
    ("file", "path", "message"),
    [
        ("note.txt", "", "takes a folder of `count`, or a Parquet file"),
        ("manifest.json", "", "count the names of the questions with `count names`"),
        ("text.parquet", "text.parquet", "is not a Parquet file of instances"),
    ],
)
def test_folders_without_counts_raise_errors(run, tmp_path, file, path, message):
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / file).write_text("{}")

    with pytest.raises(DataError, match=message):
        analysed(run, folder / path)


def test_analyse_reads_the_counts_of_count(tmp_path, capsys):
    pytest.importorskip("surface_consistency_build", reason="it counts a corpus")
    data = load_redirectqa("sample")
    rng = np.random.default_rng(0)
    with (tmp_path / "a.jsonl").open("w") as file:
        for question in data.questions:
            for _ in range(rng.geometric(0.1)):
                text = f"{question.surface.text} and {question.triple.object.name}."
                file.write(json.dumps({"text": text}) + "\n")
    counts = tmp_path / "counts"
    corpus = str(tmp_path / "a.jsonl")
    command = ["count", "pairs", "--data", "sample", "--corpus", corpus, "--out", str(counts)]
    assert main(command) == 0
    answers = {question.question: question.triple.answers[0] for question in data.questions}

    def answer(prompt):
        asked = prompt.text.rpartition("Q: ")[2].removesuffix(" A:")
        return f" {answers[asked]}" if len(asked) % 3 else " nobody"

    settings = RedirectQASettings(shots=0, repeat=0, template="original")
    run = tmp_path / "run"
    run_study(RedirectQAStudy(), data, FakeRunner(answer), run, model="m", settings=settings)

    assert main(["score", str(run)]) == 0
    analyse = ["analyse", "frequency", str(run), "--out", str(run), "--frequencies"]
    assert main([*analyse, str(counts)]) == 0

    frame = pd.read_csv(run / "tables" / "frequency_correlations.csv").set_index("subset")
    n = len({(q.triple.id, q.surface.text) for q in data.questions})
    assert frame.loc["overall", ["n", "n_zero", "n_missing"]].tolist() == [n, 0, 0]
    page = (run / "report.html").read_text("utf-8")
    assert "Accuracy by the frequency of the entity, titles" in page
    printed = capsys.readouterr().out
    assert "Correlation of accuracy with the log frequency of the entity and of this na" in printed
    assert f"complete table: {run / 'report.html'}#frequency" in printed
    assert 'id="frequency"' in page
    assert "counted 0 times" not in printed
    assert main([*analyse, str(counts), "--measure", "bounded"]) == 0
    assert (run / "tables" / "frequency_others.csv").is_file()


def test_many_names_with_a_count_of_zero_are_reported(run, counts):
    """Rows without a logarithm are excluded; a check reports if they are half of them or more."""
    path = counts / "instances.parquet"
    rows = pd.read_parquet(path)
    rows.loc[: len(rows) // 2, "surface_frequency"] = 0
    rows.to_parquet(path)
    chosen = {FrequencyAnalysis(): FrequencySettings(frequencies=counts)}

    page, _, _ = build_page([run], analyses=chosen)

    [check] = [check for check in page.checks if "does not contain" in check.title]
    assert check.level == "warning"
    n_zero = int((rows["surface_frequency"] == 0).sum())
    assert (
        f"{n_zero} of {3 * N_FACTS} names, or their entities, have a frequency of 0"
        in sentence_text(check.text)
    )
    assert f"use the other {3 * N_FACTS - n_zero}." in sentence_text(check.text)


def test_corpus_without_the_names_gives_undefined_numbers(run, counts):
    path = counts / "instances.parquet"
    nothing = dict.fromkeys(("entity_frequency", "surface_frequency", "pair_documents"), 0)
    pd.read_parquet(path).assign(**nothing).to_parquet(path)

    tables = analysed(run, counts)

    frame = tables["frequency_correlations"].set_index("subset")
    assert frame["entity"].isna().all()
    assert frame.loc["overall", ["n", "n_zero"]].tolist() == [0, 3 * N_FACTS]
    assert tables["frequency_bins"].empty
