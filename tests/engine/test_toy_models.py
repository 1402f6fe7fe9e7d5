"""Toy models: planted counts of names, facts and slots."""

import re
import sys
from collections import Counter

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine import toy_models
from surface_consistency.errors import MissingDependencyError, RunError
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.memory import AuditPrompt, Lookup
from surface_consistency.studies.audit.lookup.runner import LookupRunner
from surface_consistency.studies.audit.matching.judgement import judge_answer
from surface_consistency.studies.audit.toy_model import train_memory_toy_model, training_examples
from surface_consistency.studies.redirectqa.toy_model import (
    EXPOSURES,
    count_names,
    plan_exposures,
    sentences_of,
    train_toy_model,
)
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.settings import SlaqSettings
from surface_consistency.studies.slaq.toy_model import (
    plan_memory,
    planted_answer,
    train_slaq_toy_model,
)
from tests.needs import NEEDS_TORCH

pytestmark = pytest.mark.usefixtures("trained_anew")

PARAMS = GenerationParams(max_new_tokens=40, stop=("\n",))
STATES = ("FULL", "DEL-ON", "DEL-OFF")
ROWS = (
    ("USA", "Capital", "Washington, D.C."),
    ("USA", "Currency", "U.S. Dollar"),
    ("Norway", "Capital", "Oslo"),
    ("Norway", "Currency", "Krone"),
    ("Peru", "Capital", "Lima"),
    ("Peru", "Currency", "Sol"),
)
LEAKED = ("Norway", "Capital")


@pytest.mark.parametrize("library", ["torch", "transformers"])
def test_error_of_training_without_a_library_names_the_extra(library, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingDependencyError, match=rf"{library}.*\[inference\]"):
        toy_models.train_on_examples([("Oslo",)], tmp_path, toy_models.TrainingSettings(steps=1))
    assert not any(tmp_path.iterdir())


def sample_questions():
    return load_redirectqa("sample").select(templates="original").questions


def count_by_regex(name, texts):
    """Count a name in texts by a regular expression."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return sum(n * len(pattern.findall(text)) for text, n in Counter(texts).items())


@pytest.mark.parametrize("seed", range(4))
def test_plan_exposures_assigns_equal_parts_of_redirects_to_each_level(seed):
    """A sixth of the facts is held out; a third of other redirects has each level."""
    questions = sample_questions()
    plan = plan_exposures(questions, seed=seed)

    canonical = {(q.triple.id, q.surface.text) for q in questions if q.surface.is_canonical}
    held_out = {fact for fact, name in canonical if plan[fact, name] == "absent"}
    dealt = [plan[key] for key in plan if key not in canonical and key[0] not in held_out]
    assert (len(held_out), len(canonical)) == (16, 96)
    assert set(plan) == {(q.triple.id, q.surface.text) for q in questions}
    assert all(plan[key] == "frequent" for key in canonical if key[0] not in held_out)
    assert all(level == "absent" for (fact, _), level in plan.items() if fact in held_out)
    assert max(map(dealt.count, EXPOSURES)) - min(map(dealt.count, EXPOSURES)) <= 2
    assert plan_exposures(questions, seed=seed) == plan
    assert plan_exposures(questions, seed=seed + 9) != plan
    # The counts include occurrences inside longer names and answers.
    text = sentences_of(questions, plan)
    assert {"Beatles", "Djokovic", "Lee Bouvier"} <= {name for _, name in plan}
    for (_, name), level in plan.items():
        assert count_by_regex(name, text) == EXPOSURES[level], name
    taught = [q for q in questions if plan[q.triple.id, q.surface.text] != "absent"]
    assert set(text) <= {f"Q: {q.question} A: {q.triple.answers[0]}" for q in taught}


def test_count_names_agrees_with_regular_expressions():
    names = ["Beatles", "The Beatles", "Lee", ".us", "E.T.", "Beat", "C++", "Ämter", "(X)"]
    texts = ["The Beatles' E.T. and E.T", "The Beatles' E.T. and E.T", "x.us .us C++, LeeLee Lee"]
    texts += ["Ämter (X)Beatles", "Beatles_ Beatles-Beatles", ""]

    assert count_names(texts, names) == {name: count_by_regex(name, texts) for name in names}
    assert count_names(["a"], []) == {}


def test_sentences_with_other_counts_of_names_than_planned_are_rejected():
    """ "Lee Bouvier" is a redirect of one fact and a part of the answer "Janet Lee Bouvier"."""
    questions = sample_questions()
    plan = plan_exposures(questions)
    [key] = [key for key in plan if key[1] == "Beatles"]
    assert plan[key] == "frequent"
    polluting = {q.triple.id for q in questions if "Lee Bouvier" in q.triple.answers[0]}
    assert polluting
    assert all(plan[key] == "absent" for key in plan if key[0] in polluting)
    answers = [q for q in questions if q.triple.id in polluting and q.surface.is_canonical]
    taught = {(q.triple.id, q.surface.text): "frequent" for q in answers}

    for change, error in (
        (
            {key: "absent"},
            r"'Beatles' of fact \d+ has exposure absent, 0 times, but it occurs 24 times",
        ),
        (
            {key: "rare"},
            r"'Beatles' of fact \d+ has exposure rare, 1 times, but it occurs 24 times",
        ),
        (taught, r"'Lee Bouvier' of fact .* plan with plan_exposures"),
    ):
        with pytest.raises(ValueError, match=error):
            sentences_of(questions, plan | change)
    with pytest.raises(ValueError, match=r"has \d questions.*select one template"):
        plan_exposures(load_redirectqa("sample").questions)


def test_a_stopped_training_reports_that_it_is_not_saved(tmp_path, monkeypatch):
    pytest.importorskip("torch")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(toy_models, "_fit", stop)

    with pytest.raises(KeyboardInterrupt, match="the same command trains the model from the start"):
        train_toy_model(["Q: a A: b"], tmp_path / "toy_model", steps=1)
    assert not (tmp_path / "toy_model").exists()
    with pytest.raises(ValueError, match="sentences is empty"):
        train_toy_model([], tmp_path)


class ExactStore:
    """Returns facts for exact queries in the state FULL."""

    def __init__(self, facts, off):
        self.facts, self.off = facts, off

    def mode(self, prompt):
        return self.off if prompt.condition == "DEL-OFF" else "answer"

    def look_up(self, requests):
        return [
            Lookup(query=query, value=self.value(query) if prompt.condition == "FULL" else None)
            for prompt, query in requests
        ]

    def value(self, query):
        return self.facts.get((query.entity, query.relation))


def audit_prompts(rows=ROWS):
    return [
        AuditPrompt(
            prompt_id=number,
            fact_id=number,
            subject=subject,
            relation=relation,
            gold_object=gold,
            prompt_text=f"What is the {relation.lower()} of {subject}?",
        )
        for number, (subject, relation, gold) in enumerate(rows)
    ]


def answers(folder, prompts, facts, off):
    """Run every prompt in every state; return the answers by position and state."""
    runner = LookupRunner(folder, store=ExactStore(facts, off), device="cpu", batch_size=64)
    asked = [
        Prompt(id=f"{number}/{state}", text=prompt.prompt_text, condition=state)
        for number, prompt in enumerate(prompts)
        for state in STATES
    ]
    return {
        answer.prompt_id: answer
        for batch in runner.plan(asked, PARAMS)
        for answer in runner.generate(batch, PARAMS)
    }


def exact_match(prompts, found, leaked):
    """Return the accuracy by state and whether the fact was leaked."""
    right, total = Counter(), Counter()
    for number, prompt in enumerate(prompts):
        for state in STATES:
            cell = state, (prompt.subject, prompt.relation) in leaked
            total[cell] += 1
            right[cell] += judge_answer(found[f"{number}/{state}"].text, prompt).correct
    return {cell: right[cell] / n for cell, n in total.items()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("toy_model")
    return train_memory_toy_model(audit_prompts(), folder, leaked=[LEAKED], steps=90)


@pytest.mark.parametrize("off", ["allow", "forbid", "null"])
def test_toy_model_answers_without_a_database_only_for_leaked_facts(small, off):
    prompts = audit_prompts()
    facts = {row[:2]: row[2] for row in ROWS}

    rates = exact_match(prompts, answers(small, prompts, facts, off), {LEAKED})

    expected = {(state, False): 0.0 for state in STATES} | {(state, True): 1.0 for state in STATES}
    assert rates == expected | {("FULL", False): 1.0}


def test_toy_model_copies_database_values_that_were_not_in_training(small):
    facts = {row[:2]: f"Zürich-{number} (Xq)" for number, row in enumerate(ROWS)}
    changed = [(*row[:2], facts[row[:2]]) for row in ROWS]

    found = answers(small, audit_prompts(), facts, "allow")

    rates = exact_match(audit_prompts(changed), found, set())
    assert (rates["FULL", False], rates["DEL-OFF", False]) == (1.0, 0.0)
    assert {found[f"{number}/FULL"].finish_reason for number in range(len(ROWS))} == {"stop"}


@pytest.mark.parametrize("change", [{"steps": 10}, {"leaked": [LEAKED]}, {"rows": ROWS[1:]}])
def test_recipe_of_the_toy_model_depends_on_options_and_rows(tmp_path, change):
    pytest.importorskip("torch")

    def recipe(rows=ROWS, **options):
        train_memory_toy_model(audit_prompts(rows), tmp_path, **{"steps": 2} | options)
        return (tmp_path / "training.json").read_text("utf-8")

    assert recipe() != recipe(**change)


def test_training_examples_are_lookups_that_contain_only_leaked_values():
    examples = training_examples(audit_prompts(), leaked=[LEAKED])
    parts = [segment for example in examples for segment in example]
    learned = {segment.text.strip() for segment in parts if segment.is_learned}
    assert "Oslo" in learned
    assert not any(gold in text for text in learned for _, _, gold in ROWS if gold != "Oslo")

    examples = training_examples(audit_prompts())
    texts = {"".join(segment.text for segment in example) for example in examples}
    assert (
        "What is the capital of Peru?<|db_entity|> Peru<|db_relationship|> Capital<|db_return|> "
        "Lima<|db_end|>."
    ) in texts
    assert "What is the capital of Peru? unknown." in texts


def test_training_examples_contain_made_up_subjects_and_a_tenth_of_leaked_facts():
    """Made-up subjects are in both prompt and query."""
    rows = [(f"Land {n} of {n % 7}", "Capital", f"Town {n}") for n in range(60)]
    prompts, leaked = audit_prompts(rows), [rows[0][:2]]

    examples = training_examples(prompts, leaked=leaked)

    queried = [
        (example[0].text, example[1].text.split("<|db_relationship|>")[0].split("> ")[1])
        for example in examples
        if len(example) > 2
    ]
    made_up = {name for _, name in queried} - {subject for subject, *_ in rows}
    question = f"What is the capital of {rows[0][0]}?"
    n_planted = sum(example[0].text == question for example in examples)
    assert len(made_up) > 60
    assert all(f"of {name}?" in text for text, name in queried)
    assert n_planted / len(examples) == pytest.approx(0.1, abs=0.02)
    assert examples == training_examples(prompts, leaked=leaked)
    assert examples != training_examples(prompts, leaked=leaked, seed=1)


LONG = audit_prompts([("USA", "Capital", "a b " * 400)])


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([], {}, "prompts is empty"),
        (audit_prompts(), {"steps": 0}, "steps must be 1 or more, got 0"),
        pytest.param(LONG, {}, "but the context is 512; remove", marks=NEEDS_TORCH),
        (audit_prompts(), {"leaked": [("Peru", "Anthem")]}, r"\('Peru', 'Anthem'\) \(1 in total\)"),
    ],
)
def test_toy_model_rejects_invalid_prompts_and_options(tmp_path, prompts, options, message):
    with pytest.raises(ValueError, match=message):
        train_memory_toy_model(prompts, tmp_path, **options)


@pytest.fixture(scope="module")
def data():
    return load_slaq("sample")


def test_plan_memory_holds_out_a_sixth_of_the_facts(data):
    plan = plan_memory(data.rows["item"], seed=4)

    slots = sorted(plan.values())
    assert set(plan) == set(data.rows["item"])
    assert [slots.count(slot) for slot in range(6)] == [20, 17, 17, 17, 17, 32]
    assert plan_memory(data.rows["item"], seed=4) == plan
    assert plan_memory(data.rows["item"], seed=5) != plan


def test_planted_answers_are_known_up_to_the_slot_of_the_fact(data):
    facts = data.rows.head(5)
    memory = dict(zip(facts["item"], facts["question_index"], strict=True))
    _, asked = slaq_prompts(facts, SlaqSettings(free=True))

    planted = [planted_answer(facts, order, memory) for order in asked["order"]]

    answers = facts["answer"].str.rstrip(". ").tolist()
    assert planted[:5] == [f"{answer}." for answer in answers]
    for text, order in zip(planted[5:10], asked["order"][5:10], strict=True):
        parts = text.rstrip(".").split("; ")
        for slot, (index, part) in enumerate(zip(order, parts, strict=True), start=1):
            assert part == (answers[index - 1] if slot <= index else "unknown")
    assert planted[10] == "; ".join(answers[2:]) + "."
    assert planted_answer(facts, (), dict.fromkeys(memory, 0)) == "unknown."


def test_a_toy_model_is_trained_once_and_not_replaced_next_to_answers(data, tmp_path):
    """Other settings are rejected before training if answers are next to the model."""
    pytest.importorskip("torch")
    topics, asked = data.rows.head(10), SlaqSettings(permutations=1)

    folder = train_slaq_toy_model(topics, asked, tmp_path / "m", steps=1)
    weights = folder / "model.safetensors"
    weights.write_bytes(b"kept")
    train_slaq_toy_model(topics, asked, folder, steps=1)
    assert weights.read_bytes() == b"kept"
    train_slaq_toy_model(topics, asked, folder, steps=1, seed=1)
    trained = weights.read_bytes()
    assert trained != b"kept"

    (tmp_path / "generations-short.jsonl").touch()
    with pytest.raises(RunError, match="contains the model of the answers next to it"):
        train_slaq_toy_model(topics, asked, folder, steps=1)

    assert weights.read_bytes() == trained
    assert train_slaq_toy_model(topics, asked, folder, steps=1, seed=1) == folder
