"""The model organism: what was planted in its training text is what the study finds."""

import json

import pandas as pd
import pytest

from surface_consistency.cli import main
from surface_consistency.data.redirectqa import load_sample
from surface_consistency.studies.organism import (
    EXPOSURES,
    plan_exposures,
    sentences_of,
    train_organism,
)

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The whole demonstration, as the command runs it."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    assert main(["demo", "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_demo_finds_the_planted_frequencies(demo):
    """Names it was taught are answered like the canonical one, names it never saw are not."""
    table = pd.read_csv(demo / "highlights" / "consistency_by_planted_exposure.csv")
    table = table.set_index("exposure")

    assert list(table.index) == ["frequent", "rare", "absent", "fact held out"]
    assert table.loc["frequent", "consistency_low"] > table.loc["absent", "consistency_high"]
    assert (table["first_accuracy"].drop("fact held out") > 0.9).all()
    assert table.loc["fact held out", "first_accuracy"] < 0.2
    assert table["n"].sum() == 196


@pytest.mark.slow
def test_demo_leaves_every_product(demo):
    """Run, outcomes, tables, figures and report are where the README says."""
    for name in (
        "manifest.json",
        "questions.jsonl",
        "prompts.jsonl",
        "generations.jsonl",
        "generations-repeat.jsonl",
        "verdicts.jsonl",
        "outcomes.parquet",
        "tables/overall.csv",
        "tables/by_type.csv",
        "tables/by_category.csv",
        "checks/noise_floor.csv",
        "checks/rules.csv",
        "figures/consistency-original.png",
        "figures/consistency-original.svg",
        "report.html",
    ):
        assert (demo / name).stat().st_size > 0
    page = (demo / "report.html").read_text(encoding="utf-8")
    assert page.index("onsistency by planted exposure") < page.index(">Main numbers</h2>")
    assert len(pd.read_csv(demo / "tables" / "by_category.csv")) == 33


@pytest.mark.slow
def test_demo_in_single_precision_has_no_noise(demo):
    """The same prompts in other batches are answered alike on the CPU."""
    floor = pd.read_csv(demo / "checks" / "noise_floor.csv")

    assert list(floor["n_repeated"]) == [292]
    assert list(floor["n_text_changes"]) == [0]


@pytest.mark.slow
def test_demo_again_trains_and_asks_nothing(demo, capsys):
    """A second start keeps the model and the answers."""
    model = (demo / "organism" / "model.safetensors").stat().st_mtime_ns
    log = (demo / "generations.jsonl").read_bytes()
    capsys.readouterr()

    assert main(["demo", "--out", str(demo), "--json"]) == 0

    assert (demo / "organism" / "model.safetensors").stat().st_mtime_ns == model
    assert (demo / "generations.jsonl").read_bytes() == log
    assert json.loads(capsys.readouterr().out)["tables"]["overall"][0]["n"] == 196


def test_plan_exposures_deals_redirects_in_equal_parts():
    """One fact in six is held out; of the others' redirects a third is frequent, rare, absent."""
    questions = load_sample().select(templates="original").questions
    plan = plan_exposures(questions, seed=1)

    canonical = {(q.triple.id, q.surface.text) for q in questions if q.surface.is_canonical}
    held_out = {fact for fact, name in canonical if plan[fact, name] == "absent"}
    dealt = [plan[key] for key in plan if key not in canonical and key[0] not in held_out]
    assert len(held_out) == 16
    assert len(canonical) == 96
    assert all(level == "absent" for (fact, _), level in plan.items() if fact in held_out)
    assert max(map(dealt.count, EXPOSURES)) - min(map(dealt.count, EXPOSURES)) <= 1
    assert plan_exposures(questions, seed=1) == plan
    assert plan_exposures(questions, seed=2) != plan


def test_sentences_stand_as_often_as_planned():
    """The training text holds each question as often as its exposure says, and no other."""
    questions = load_sample().select(templates="original").questions
    plan = plan_exposures(questions)

    sentences = sentences_of(questions, plan)

    for question in questions:
        expected = EXPOSURES[plan[question.triple.id, question.surface.text]]
        sentence = f"Q: {question.question} A: {question.triple.answers[0]}"
        assert sentences.count(sentence) == expected


def test_train_organism_rejects_an_empty_text(tmp_path):
    with pytest.raises(ValueError, match="sentences is empty"):
        train_organism([], tmp_path)


def test_train_organism_rejects_no_steps(tmp_path, capsys):
    with pytest.raises(ValueError, match="steps must be 1 or more, got 0"):
        train_organism(["Q: a A: b"], tmp_path, steps=0)
    assert main(["demo", "--steps", "0", "--out", str(tmp_path / "demo")]) == 2
    assert "steps must be 1 or more" in capsys.readouterr().err
