"""The runner that puts retrieved facts before prompts."""

import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.models.runner import FakeRunner
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import GenerationParams, Message, Prompt
from surface_consistency.schemas.memory import Candidate, Lookup, LookupQuery, RetrievalTrace
from surface_consistency.studies.audit.lookup.retrieval_augmented import RetrievalAugmentedRunner

CAPITALS = {"France": "Paris", "Peru": "Lima"}
PARAMS = GenerationParams(max_new_tokens=8, stop=())
OFF = {"OFF": "forbid", "ALLOW": "allow", "NULL": "null"}


class Store:
    def __init__(self):
        self.asked = []

    def mode(self, prompt):
        return OFF.get(prompt.condition, "answer")

    def look_up(self, requests):
        self.asked.append([query.entity for _, query in requests])
        known = [CAPITALS if prompt.condition == "FULL" else {} for prompt, _ in requests]
        return [
            Lookup(query=query, value=names.get(query.entity))
            for names, (_, query) in zip(known, requests, strict=True)
        ]


def query(prompt):
    text = prompt.text if prompt.text is not None else prompt.messages[-1].content
    return LookupQuery(entity=text.split()[-1].rstrip("?"), relation="Capital")


def prompt(country, state):
    text = f"What is the capital of {country}?"
    return Prompt(id=f"{country}/{state}", text=text, condition=state)


def echo(asked=None):
    return FakeRunner(lambda one: one.text or one.messages[-1].content, name="fake")


def answers(runner, prompts):
    return {one.prompt_id: one for one in runner.generate(prompts, PARAMS)}


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def runner(store):
    return RetrievalAugmentedRunner(echo(), store, query=query)


@pytest.mark.parametrize(
    ("state", "text", "n_lookups"),
    [
        ("FULL", "Facts:\nPeru | Capital | Lima\n\nWhat is the capital of Peru?", 1),
        ("DEL-ON", "Facts:\nunknown\n\nWhat is the capital of Peru?", 1),
        ("NULL", "Facts:\nunknown\n\nWhat is the capital of Peru?", 1),
        ("OFF", "What is the capital of Peru?", 0),
        ("ALLOW", "What is the capital of Peru?", 0),
    ],
)
def test_facts_in_the_prompt_depend_on_the_state(runner, state, text, n_lookups):
    found = next(runner.generate([prompt("Peru", state)], PARAMS))

    assert found.text == text
    assert len(found.lookups) == n_lookups
    assert found.prompt_id == f"Peru/{state}"


def test_lookups_of_a_batch_and_of_a_planned_run_are_sent_at_once(runner, store):
    prompts = [prompt(name, state) for name in ("Peru", "Chad") for state in ("FULL", *OFF)]
    found = answers(runner, prompts)

    assert store.asked == [["Peru", "Chad"]]
    assert [one.value for one in found["Peru/FULL"].lookups] == ["Lima"]
    assert [one.value for one in found["Chad/FULL"].lookups] == [None]

    batches = list(runner.plan([prompt(f"Land{n}", "FULL") for n in range(70)], PARAMS))
    for batch in batches:
        answers(runner, batch)

    assert [len(batch) for batch in batches] == [32, 32, 6]
    assert len(store.asked) == 2


def test_identical_augmented_prompts_are_sent_once(store):
    inner = echo()
    runner = RetrievalAugmentedRunner(inner, store, query=query)
    prompts = [prompt("Peru", state) for state in ("DEL-ON", "NULL", "OFF", "ALLOW", "FULL")]
    prompts.append(prompts[-1].model_copy(update={"id": "x"}))

    found = answers(runner, prompts)

    assert len(found) == 6
    assert len(inner.asked) == 3
    assert found["x"].text == found["Peru/FULL"].text
    assert found["x"].lookups == found["Peru/FULL"].lookups
    assert answers(runner, prompts) == found
    assert len(store.asked) == 2


@pytest.mark.parametrize(
    ("threshold", "n_facts", "expected"),
    [
        (0.6, 5, ["a", "b"]),
        (None, 5, ["a", "b", "c"]),
        (0.6, 1, ["a"]),
        # No entry reaches the threshold, and the fallback is used.
        (0.99, 5, ["a"]),
    ],
)
def test_facts_are_the_retained_candidates(threshold, n_facts, expected):
    flags = ("matches_subject", "matches_relation", "matches_object", "supports_target_fact")
    flags = dict.fromkeys((*flags, "matches_deleted_fact"), False)
    candidates = tuple(
        Candidate(subject=name, relation="R", object=name.upper(), score=score, **flags)
        for name, score in (("a", 0.9), ("b", 0.7), ("c", 0.1))
    )

    class Traced(Store):
        def look_up(self, requests):
            trace = RetrievalTrace(
                state="FULL",
                retrieval_enabled=True,
                lookup_query=requests[0].query,
                threshold=threshold,
                retained_candidates=candidates,
                selected_candidate=candidates[0],
                selected_value="A",
            )
            return [Lookup(query=requests[0].query, value="A", trace=trace)]

    runner = RetrievalAugmentedRunner(echo(), Traced(), query=query, n_facts=n_facts)

    found = next(runner.generate([prompt("Peru", "FULL")], PARAMS))

    lines = [f"{name} | R | {name.upper()}" for name in expected]
    assert found.text.splitlines()[1:-2] == lines


def test_facts_are_put_before_the_last_turn(runner):
    turns = [("system", "Be brief."), ("user", "Capital of Peru?")]
    messages = [Message(role=role, content=content) for role, content in turns]

    found = next(runner.generate([Prompt(id="q", messages=messages, condition="FULL")], PARAMS))

    assert found.text == "Facts:\nPeru | Capital | Lima\n\nCapital of Peru?"


@pytest.mark.parametrize("state", ["FULL", "OFF"])
def test_options_and_their_contexts_are_kept(store, state):
    """Facts are put before each context."""
    asked = []
    inner = FakeRunner(lambda one: asked.append(one) or "Lima")
    choice = Prompt(
        id="q",
        text="Capital of Peru?",
        options=[" is.", " is!"],
        contexts=["Lima of Peru?", "Quito of Peru?"],
        group="g",
        condition=state,
    )

    next(RetrievalAugmentedRunner(inner, store, query=query).generate([choice], PARAMS))

    before = "Facts:\nPeru | Capital | Lima\n\n" if state == "FULL" else ""
    assert asked[0].options == (" is.", " is!")
    assert asked[0].contexts == (f"{before}Lima of Peru?", f"{before}Quito of Peru?")
    assert (asked[0].text, asked[0].group) == (f"{before}Capital of Peru?", "g")
    assert asked[0].condition is None


def test_braces_in_facts_are_kept_and_null_text_can_be_omitted(store):
    braces = RetrievalAugmentedRunner(
        echo(), store, query=lambda one: LookupQuery(entity="France", relation="{x}")
    )
    bare = RetrievalAugmentedRunner(echo(), store, query=query, null_text=None)

    found = next(braces.generate([prompt("{France}", "FULL")], PARAMS))

    assert found.text == "Facts:\nFrance | {x} | Paris\n\nWhat is the capital of {France}?"
    assert next(bare.generate([prompt("Chad", "FULL")], PARAMS)).text.startswith("What is")


def test_a_real_model_reads_the_facts(tiny_models, store):
    pytest.importorskip("torch")
    inner = TransformersRunner(tiny_models("llama"), device="cpu", batch_size=4)
    runner = RetrievalAugmentedRunner(inner, store, query=query)
    prompts = [
        prompt(name, state) for name in ("Peru", "France", "Chad") for state in ("FULL", "OFF")
    ]

    planned = list(runner.plan(prompts, PARAMS))
    found = {one.prompt_id: one for batch in planned for one in runner.generate(batch, PARAMS)}

    written = Prompt(id="x", text="Facts:\nPeru | Capital | Lima\n\nWhat is the capital of Peru?")
    assert found["Peru/FULL"].text == next(inner.generate([written], PARAMS)).text
    assert found["Peru/FULL"].text != found["Peru/OFF"].text
    assert sorted(one.id for batch in planned for one in batch) == sorted(found)


def test_facts_count_towards_the_context(tiny_models, store, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(CAPITALS, "Peru", "Lima " * 400)
    runner = RetrievalAugmentedRunner(
        TransformersRunner(tiny_models("llama"), device="cpu"), store, query=query
    )

    with pytest.raises(RunnerError, match="Peru/FULL"):
        list(runner.plan([prompt("Peru", "FULL")], PARAMS))


def test_runner_rejects_answers_to_other_prompts_and_less_than_one_fact(store):
    class Astray(FakeRunner):
        def generate(self, prompts, params=None):
            yield from super().generate([prompts[0].model_copy(update={"id": "other"})])

    runner = RetrievalAugmentedRunner(Astray(lambda one: "x"), store, query=query)

    with pytest.raises(RunnerError, match="runner 'fake' answered prompt 'other', which is not"):
        answers(runner, [prompt("Peru", "FULL")])
    with pytest.raises(ValueError, match="`n_facts` must be at least 1, got 0"):
        RetrievalAugmentedRunner(echo(), store, query=query, n_facts=0)


def test_fingerprint_contains_all_options_that_affect_answers(runner, store):
    other = RetrievalAugmentedRunner(echo(), store, query=query, n_facts=1)

    assert runner.fingerprint()["asks"] == echo().fingerprint()
    assert runner.fingerprint()["source"] == "Store"
    assert runner.fingerprint() != other.fingerprint()
