"""A limited-memory model trained from scratch: it asks, takes what it is given, knows the leaks."""

import json
from collections import Counter

import pytest

from surface_consistency.inference.lookup import LookupRunner
from surface_consistency.matching.audit import judge_answer
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.jsonl import read_jsonl
from surface_consistency.schemas.memory import AuditPrompt, Lookup
from surface_consistency.studies.memory_organism import lessons_of, train_memory_organism

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


class ExactStore:
    """Answers by exact strings when the state is FULL."""

    def __init__(self, facts, off):
        self.facts = facts
        self.off = off

    def mode(self, prompt):
        return self.off if prompt.condition == "DEL-OFF" else "answer"

    def look_up(self, requests):
        return [
            Lookup(
                query=query,
                value=self.facts.get((query.entity, query.relation))
                if prompt.condition == "FULL"
                else None,
            )
            for prompt, query in requests
        ]


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
    """Ask every prompt in every state; give the answers by position and state."""
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
    """Return the share of right answers by state and whether the fact was leaked."""
    right, total = Counter(), Counter()
    for number, prompt in enumerate(prompts):
        for state in STATES:
            cell = state, (prompt.subject, prompt.relation) in leaked
            total[cell] += 1
            right[cell] += judge_answer(found[f"{number}/{state}"].text, prompt).is_correct
    return {cell: right[cell] / n for cell, n in total.items()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("organism")
    return train_memory_organism(audit_prompts(), folder, leaked=[LEAKED], steps=90)


@pytest.mark.parametrize("off", ["allow", "forbid", "null"])
def test_organism_knows_only_what_was_planted(small, off):
    prompts = audit_prompts()
    facts = {row[:2]: row[2] for row in ROWS}

    rates = exact_match(prompts, answers(small, prompts, facts, off), {LEAKED})

    assert rates == {
        ("FULL", False): 1.0,
        ("DEL-ON", False): 0.0,
        ("DEL-OFF", False): 0.0,
        ("FULL", True): 1.0,
        ("DEL-ON", True): 1.0,
        ("DEL-OFF", True): 1.0,
    }


def test_organism_takes_values_that_it_never_saw(small):
    facts = {row[:2]: f"Zürich-{number} (Xq)" for number, row in enumerate(ROWS)}
    changed = [(*row[:2], facts[row[:2]]) for row in ROWS]

    found = answers(small, audit_prompts(), facts, "allow")

    rates = exact_match(audit_prompts(changed), found, set())
    assert (rates["FULL", False], rates["DEL-OFF", False]) == (1.0, 0.0)
    assert {found[f"{number}/FULL"].finish_reason for number in range(len(ROWS))} == {"stop"}


def test_organism_is_kept_when_nothing_changed(small):
    before = (small / "model.safetensors").stat().st_mtime_ns

    again = train_memory_organism(audit_prompts(), small, leaked=[LEAKED], steps=90)

    assert again == small
    assert (small / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("change", ["steps", "seed", "leaked", "prompts"])
def test_organism_is_trained_anew_when_something_changed(tmp_path, change):
    pytest.importorskip("torch")
    options = {"steps": 2, "seed": 0, "leaked": []}
    rows = ROWS
    train_memory_organism(audit_prompts(), tmp_path, **options)
    before = (tmp_path / "training.json").read_text("utf-8")
    if change == "prompts":
        rows = ROWS[1:]
    else:
        options[change] = {"steps": 10, "seed": 1, "leaked": [LEAKED]}[change]

    train_memory_organism(audit_prompts(rows), tmp_path, **options)

    assert (tmp_path / "training.json").read_text("utf-8") != before


def test_lessons_never_teach_a_value_that_is_not_leaked():
    lessons = lessons_of(audit_prompts(), leaked=[LEAKED])

    learned = {piece.text.strip() for lesson in lessons for piece in lesson if piece.is_learned}
    assert "Oslo" in learned
    assert not any(gold in text for text in learned for _, _, gold in ROWS if gold != "Oslo")


def test_lessons_are_whole_lookups():
    texts = {"".join(piece.text for piece in lesson) for lesson in lessons_of(audit_prompts())}

    assert (
        "What is the capital of Peru?<|db_entity|> Peru<|db_relationship|> Capital<|db_return|> "
        "Lima<|db_end|>."
    ) in texts
    assert "What is the capital of Peru? unknown." in texts
    json.dumps(sorted(texts))


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([], {}, "prompts is empty"),
        (audit_prompts(), {"steps": 0}, "steps must be 1 or more, got 0"),
        (audit_prompts([("USA", "Capital", "a b " * 400)]), {}, "the organism reads 512; leave it"),
        (audit_prompts(), {"leaked": [("Peru", "Anthem")]}, r"\('Peru', 'Anthem'\) \(1 in all\)"),
    ],
    ids=["empty", "steps", "long", "leaked"],
)
def test_organism_rejects_what_cannot_be_taught(tmp_path, prompts, options, message):
    with pytest.raises(ValueError, match=message):
        train_memory_organism(prompts, tmp_path, **options)


@pytest.mark.slow
def test_organism_of_a_published_database(shared_dir, tmp_path):
    pytest.importorskip("torch")
    folder = shared_dir / "data/lmlm_audit/data/custom_databases/countries/prompts/base"
    prompts = list(read_jsonl(folder / "prompts_direct_questions.jsonl", AuditPrompt))
    facts = {(prompt.subject, prompt.relation): prompt.gold_object for prompt in prompts}
    leaked = set(sorted(facts)[::10])

    trained = train_memory_organism(prompts, tmp_path, leaked=leaked, steps=260)

    rates = exact_match(prompts, answers(trained, prompts, facts, "allow"), leaked)
    assert len(prompts) == 100
    assert rates["FULL", False] > 0.8
    assert rates["DEL-ON", False] < 0.02
    assert rates["DEL-OFF", False] < 0.02
    assert rates["DEL-OFF", True] > 0.9
