"""The toy model: the study recovers the frequencies in its training text."""

import json
import warnings

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.design import Report
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.mechanism.analysis import MechanismAnalysis
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.redirectqa.study import RedirectOutcome, RedirectQAStudy

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "demo"
    assert main(["demo", "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_demo_recovers_the_frequencies_of_the_training_text(demo):
    table = pd.read_csv(demo / "highlights" / "consistency_by_planted_exposure.csv")
    table = table.set_index("exposure")

    assert list(table.index) == ["frequent", "rare", "absent", "fact held out"]
    assert list(table["times_in_text"]) == [24, 1, 0, 0]
    assert table.loc["frequent", "consistency_low"] > table.loc["absent", "consistency_high"]
    assert (table["first_accuracy"].drop("fact held out") > 0.9).all()
    assert table.loc["fact held out", "first_accuracy"] < 0.2
    assert table["n"].sum() == 196
    # On the CPU in single precision, the same prompts in other batches get the same answers.
    floor = pd.read_csv(demo / "checks" / "noise_floor.csv")
    assert floor[["n_repeated", "n_text_changes"]].values.tolist() == [[292, 0]]
    page = (demo / "report.html").read_text(encoding="utf-8")
    assert page.index("onsistency by planted exposure") < page.index("Flip rate by group</h2>")
    headline = page[page.index("<h1") : page.index("</h1>")]
    assert "higher for redirects absent from the training text than for frequent ones" in headline


@pytest.mark.slow
def test_repeated_demo_neither_trains_nor_prompts_again(demo, capsys):
    model = (demo / "toy_model" / "model.safetensors").stat().st_mtime_ns
    log = (demo / "generations.jsonl").read_bytes()
    capsys.readouterr()

    assert main(["demo", "--out", str(demo), "--json"]) == 0

    assert (demo / "toy_model" / "model.safetensors").stat().st_mtime_ns == model
    assert (demo / "generations.jsonl").read_bytes() == log
    assert json.loads(capsys.readouterr().out)["tables"]["overall"][0]["n"] == 196


@pytest.mark.slow
def test_mechanism_of_consistent_pairs_is_more_similar(demo, tmp_path):
    """Pairs correct both times have more similar components than pairs correct once."""
    runs = load_runs([demo], outcome=RedirectOutcome)
    report = Report(runs=runs, design=RedirectQAStudy.design, cluster="subject_id")
    settings = MechanismSettings(device="cpu", per_class=8, store=tmp_path, heat_maps=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = MechanismAnalysis().tables(report, settings)

    rows = tables["mechanism_similarity"].frame.set_index("feature")
    assert rows.loc["iou", "aligned"] > rows.loc["iou", "misaligned"] + 0.1
    assert rows.loc["iou", "p_value"] < 0.05
    sets = tables["mechanism_sets"].frame
    assert (sets["greedy"] == 1.0).all()  # The model generated these texts itself.
    assert (sets["reached"] == 1.0).all()
    assert (sets["reached_by_sum"] < 0.8).all()


def test_zero_steps_are_rejected(tmp_path, capsys):
    assert main(["demo", "--steps", "0", "--out", str(tmp_path / "demo")]) == 2
    assert "steps must be 1 or more" in capsys.readouterr().err
