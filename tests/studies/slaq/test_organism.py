"""A trained model with planted memory, through the whole study, on the CPU and without network."""

import re

import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.prompts.slaq import SlaqPrompts, slaq_prompts
from surface_consistency.studies.slaq.organism import (
    plan_memory,
    planted_answer,
    train_slaq_organism,
)


@pytest.fixture(scope="module")
def data():
    return load_slaq_sample()


def test_a_sixth_of_the_facts_is_held_out(data):
    plan = plan_memory(data.topics, seed=4)

    slots = sorted(plan.values())
    assert set(plan) == {question.id for question in data.questions}
    assert [slots.count(slot) for slot in range(6)] == [20, 17, 17, 17, 17, 32]
    assert plan_memory(data.topics, seed=4) == plan != plan_memory(data.topics, seed=5)


def test_planted_answers_follow_the_slots(data):
    topic = data.topics[0]
    memory = {question.id: question.index for question in topic.questions}
    asked = slaq_prompts([topic], forms=("short", "long", "free"))

    said = [planted_answer(topic, detail, memory) for detail in asked.details]

    answers = [question.answer.rstrip(". ") for question in topic.questions]
    assert said[:5] == [f"{answer}." for answer in answers]
    for text, detail in zip(said[5:10], asked.details[5:10], strict=True):
        parts = text.rstrip(".").split("; ")
        for slot, (index, part) in enumerate(zip(detail.order, parts, strict=True), start=1):
            assert part == (answers[index - 1] if slot <= index else "unknown")
    assert said[10] == "; ".join(answers[2:]) + "."
    assert planted_answer(topic, asked.details[10], dict.fromkeys(memory, 0)) == "unknown."


def test_nothing_to_learn_is_rejected(data, tmp_path):
    with pytest.raises(ValueError, match="asked holds no prompt"):
        train_slaq_organism(data.topics, SlaqPrompts(prompts=(), details=()), tmp_path)
    with pytest.raises(ValueError, match="steps must be 1 or more, got 0"):
        train_slaq_organism(data.topics, slaq_prompts(data.topics), tmp_path, steps=0)


def test_an_organism_is_trained_once_for_the_same_lessons(data, tmp_path):
    pytest.importorskip("torch")
    topics = data.topics[:2]
    asked = slaq_prompts(topics, n_permutations=1)

    folder = train_slaq_organism(topics, asked, tmp_path / "m", steps=1)
    (folder / "model.safetensors").write_bytes(b"kept")
    train_slaq_organism(topics, asked, folder, steps=1)
    assert (folder / "model.safetensors").read_bytes() == b"kept"

    train_slaq_organism(topics, asked, folder, steps=1, seed=1)
    assert (folder / "model.safetensors").read_bytes() != b"kept"


@pytest.mark.slow
def test_the_study_finds_what_was_planted(data, ask, score, tmp_path):
    """Trained, asked, judged twice, scored and reported; the verdicts are those of the plan.

    A quarter of the sample, so that half of the training does.
    """
    pytest.importorskip("torch")
    from surface_consistency.inference import FakeRunner
    from surface_consistency.runs.loader import load_runs
    from surface_consistency.studies.slaq.judges import SlaqLLMJudge
    from surface_consistency.studies.slaq.study import SlaqOrganism, SlaqSettings, SlaqStudy
    from surface_consistency.studies.slaq.tables import slaq_tables

    asked = {"short_tokens": 32, "long_tokens": 96, "repeat": 20, "limit": 6}
    runner = SlaqStudy().train_organism(
        data,
        SlaqSettings(**asked),
        SlaqOrganism(organism_steps=140),
        tmp_path / "model",
        options={},
    )
    data = data.select(limit=6)
    folder = ask(data, runner, tmp_path / "run", model="organism", **asked)

    frame = score(folder, all_facts=True)

    memory = plan_memory(data.topics)
    planted_short = frame["fact_id"].map(memory) > 0
    planted_long = frame["slot"].astype(int) <= frame["fact_id"].map(memory)
    assert (frame["first_correct"].astype(bool) == planted_short).mean() > 0.95
    assert (frame["second_correct"].astype(bool) == planted_long).mean() > 0.75

    def reply(prompt):
        answer = prompt.messages[1].content.split("<answer>\n")[1].casefold()
        references = re.findall(r"Reference: (.*?)\.?\n", prompt.messages[1].content)
        found = [int(reference.casefold() in answer) for reference in references]
        return str(found[0]) if len(found) == 1 else str(found)

    judge = SlaqLLMJudge(FakeRunner(reply), tmp_path / "judge", model="scripted", progress=False)
    again = score(folder, judge)
    assert (again["second_correct"] == frame["second_correct"]).mean() > 0.95

    [run] = load_runs([folder.path], outcome=SlaqStudy.outcome)
    tables = slaq_tables(run.outcomes, n_resamples=500, n_null=200)
    overall, position = tables["overall"].iloc[0], tables["position"]
    assert overall["first_accuracy"] > overall["second_accuracy"] + 0.2
    assert position["slope_high"].iloc[0] < -0.05
    assert run.judged_by == "llm:scripted"
    # Greedy decoding in other batches: the noise floor is next to nothing.
    assert (run.checks["noise_floor"]["flip_rate"] < 0.05).all()
