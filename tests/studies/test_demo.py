"""The model organism: what was planted in its training text is what the study finds."""

import json
import re

import pandas as pd
import pytest

from surface_consistency.cli import main
from surface_consistency.data.sample import load_sample
from surface_consistency.studies.organisms import (
    EXPOSURES,
    count_names,
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
    assert list(table["times_in_text"]) == [24, 1, 0, 0]
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


def sample_questions():
    return load_sample().select(templates="original").questions


def stands(name, text):
    """Count a name by a regular expression of its own."""
    return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text))


@pytest.mark.parametrize("seed", range(4))
def test_plan_exposures_deals_redirects_in_equal_parts(seed):
    """One fact in six is held out; of the others' redirects a third is frequent, rare, absent."""
    questions = sample_questions()
    plan = plan_exposures(questions, seed=seed)

    canonical = {(q.triple.id, q.surface.text) for q in questions if q.surface.is_canonical}
    held_out = {fact for fact, name in canonical if plan[fact, name] == "absent"}
    dealt = [plan[key] for key in plan if key not in canonical and key[0] not in held_out]
    assert len(held_out) == 16
    assert len(canonical) == 96
    assert set(plan) == {(q.triple.id, q.surface.text) for q in questions}
    assert all(plan[key] == "frequent" for key in canonical if key[0] not in held_out)
    assert all(level == "absent" for (fact, _), level in plan.items() if fact in held_out)
    assert max(map(dealt.count, EXPOSURES)) - min(map(dealt.count, EXPOSURES)) <= 2
    assert plan_exposures(questions, seed=seed) == plan
    assert plan_exposures(questions, seed=seed + 9) != plan


@pytest.mark.parametrize("seed", range(4))
def test_names_stand_in_the_text_as_often_as_planted(seed):
    """Counted over the whole text, inside longer names and answers too: Beatles, Lee Bouvier."""
    questions = sample_questions()
    plan = plan_exposures(questions, seed=seed)

    text = "\n\n".join(sentences_of(questions, plan))

    assert {"Beatles", "Djokovic", "Lee Bouvier"} <= {name for _, name in plan}
    for (_, name), level in plan.items():
        assert stands(name, text) == EXPOSURES[level], name


def test_the_text_holds_questions_of_the_data_alone():
    """No sentence but those of the data, none of a fact that was held out."""
    questions = sample_questions()
    plan = plan_exposures(questions)
    taught = {
        f"Q: {question.question} A: {question.triple.answers[0]}"
        for question in questions
        if plan[question.triple.id, question.surface.text] != "absent"
    }

    assert set(sentences_of(questions, plan)) <= taught


def test_counts_agree_with_regular_expressions():
    names = ["Beatles", "The Beatles", "Lee", ".us", "E.T.", "Beat", "C++", "Ämter", "(X)"]
    texts = ["The Beatles' E.T. and E.T", "The Beatles' E.T. and E.T", "x.us .us C++, LeeLee Lee"]
    texts += ["Ämter (X)Beatles", "Beatles_ Beatles-Beatles", ""]

    assert count_names(texts, names) == {name: stands(name, "\n".join(texts)) for name in names}
    assert count_names(["a"], []) == {}


@pytest.mark.parametrize(
    ("name", "level", "message"),
    [
        (
            "Beatles",
            "absent",
            r"'Beatles' of fact \d+ is planted absent, 0 times, but stands 24 ti",
        ),
        ("Beatles", "rare", r"'Beatles' of fact \d+ is planted rare, 1 times, but stands 24 times"),
    ],
)
def test_sentences_are_refused_when_names_cannot_stand_as_planted(name, level, message):
    questions = sample_questions()
    plan = plan_exposures(questions)
    [key] = [key for key in plan if key[1] == name]
    assert plan[key] == "frequent"

    with pytest.raises(ValueError, match=message):
        sentences_of(questions, plan | {key: level})


def test_a_name_in_the_answer_of_another_fact_is_refused():
    """ "Lee Bouvier" is a redirect of one fact and inside "Janet Lee Bouvier", another's answer."""
    questions = sample_questions()
    plan = plan_exposures(questions)
    polluting = {q.triple.id for q in questions if "Lee Bouvier" in q.triple.answers[0]}
    assert polluting
    assert all(plan[key] == "absent" for key in plan if key[0] in polluting)

    taught = plan | {
        (q.triple.id, q.surface.text): "frequent"
        for q in questions
        if q.triple.id in polluting and q.surface.is_canonical
    }
    with pytest.raises(ValueError, match=r"'Lee Bouvier' of fact .* plan with plan_exposures"):
        sentences_of(questions, taught)


def test_several_templates_are_refused():
    questions = load_sample().questions

    with pytest.raises(ValueError, match=r"has \d questions.*select one template"):
        plan_exposures(questions)


def test_train_organism_rejects_an_empty_text(tmp_path):
    with pytest.raises(ValueError, match="sentences is empty"):
        train_organism([], tmp_path)


def test_train_organism_rejects_no_steps(tmp_path, capsys):
    with pytest.raises(ValueError, match="steps must be 1 or more, got 0"):
        train_organism(["Q: a A: b"], tmp_path, steps=0)
    assert main(["demo", "--steps", "0", "--out", str(tmp_path / "demo")]) == 2
    assert "steps must be 1 or more" in capsys.readouterr().err
