"""Demonstrations and prompts."""

import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from surface_consistency.data.questions import (
    Question,
    question_frame,
    questions_of as read_questions,
)
from surface_consistency.schemas import (
    Entity,
    FactualTriple,
    Prompt,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.studies.redirectqa.demonstrations import Demonstration, DemonstrationPool
from surface_consistency.studies.redirectqa.prompts import (
    build_prompts,
    render_chat,
    render_completion,
    resolve_frame,
)
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.taxonomy import RELATIONS, TEMPLATES


def questions_of(n_facts: int, *, relations: Sequence[str]) -> tuple[QuestionRealization, ...]:
    """Facts with one canonical and two redirect surfaces, in both templates."""
    made = []
    redirect = {"categories": ("Redirects_from_long_names",)}
    redirect["types"] = ("alternative_names_and_abbreviations",)
    for name, number in itertools.product(relations, range(n_facts)):
        subject, value = f"{name} subject {number}", f"{name} object {number}"
        entities = {"subject": Entity(id=f"Q{number}", name=subject)}
        entities["object"] = Entity(id=None, name=value)
        fact = {"id": f"{name}-{number}", "relation": name, "answers": (value, "another")}
        triple = FactualTriple(**fact, **entities)
        for alias, template in itertools.product(("", " alias x", " alias y"), TEMPLATES):
            text = f"{subject}{alias}"
            surface = SurfaceForm(text=text, is_canonical=not alias, **redirect if alias else {})
            asked = {"question": RELATIONS[name].question(text, template=template)}
            asked |= {"id": f"{triple.id}:{template}:{text}", "template": template}
            made.append(QuestionRealization(triple=triple, surface=surface, **asked))
    return tuple(made)


def asked(question: QuestionRealization) -> Question:
    """A question as prompts are made of it."""
    return read_questions(question_frame([question]))[0]


def pool_of(questions: Sequence[QuestionRealization], **options) -> DemonstrationPool:
    """A pool of questions that are records."""
    return DemonstrationPool(question_frame(questions), **options)


def prompts_of(questions: Sequence[QuestionRealization], pool, **options):
    """Prompts of questions that are records."""
    return build_prompts(question_frame(questions), pool, **options)


ALL = questions_of(3, relations=list(RELATIONS))
ASKED = asked(ALL[0])
NO_RELIGION = questions_of(3, relations=[name for name in RELATIONS if name != "religion"])


def demonstrated(prompt: Prompt) -> list[str]:
    """Questions of the demonstrations in a plain prompt."""
    assert prompt.text is not None
    return re.findall(r"Q: (.*?) A: ", prompt.text)


@pytest.mark.parametrize(("questions", "shots"), [(ALL, 15), (NO_RELIGION, 14)])
def test_prompts_have_one_demonstration_of_each_other_relation(questions, shots):
    """15 shots are one of each other relation, 14 where religion is left out (section 3.1)."""
    pool = pool_of(questions)

    prompts = list(prompts_of(questions, pool, shots=shots))

    by_question = {q.question: q for q in questions}
    for question, prompt in zip(questions, prompts, strict=True):
        shown = [by_question[text] for text in demonstrated(prompt)]
        relations = [item.triple.relation for item in shown]
        assert sorted(relations) == sorted(
            {q.triple.relation for q in questions} - {question.triple.relation}
        )
        assert all(item.surface.is_canonical for item in shown)
        assert {item.template for item in shown} == {question.template}
        assert prompt.text.endswith(f"Q: {question.question} A:")


@pytest.mark.parametrize("scope", ["per_relation", "per_fact"])
@pytest.mark.parametrize("prompt_format", ["completion", "chat"])
def test_members_of_a_pair_differ_in_the_surface_alone(scope, prompt_format):
    """Putting one surface in place of the other turns one member's prompt into the other's."""
    prompts = {
        p.id: p for p in prompts_of(ALL, pool_of(ALL, scope=scope), prompt_format=prompt_format)
    }

    for question in ALL:
        canonical = f"{question.triple.id}:{question.template}:{question.triple.subject.name}"
        asked, reference = prompts[question.id], prompts[canonical]
        last = [
            p.text if p.text is not None else p.messages[-1].content for p in (asked, reference)
        ]
        start = [
            p.text.rpartition("Q:")[0] if p.text is not None else p.messages[:-1]
            for p in (asked, reference)
        ]
        assert start[0] == start[1]
        assert last[0].replace(question.surface.text, question.triple.subject.name) == last[1]
        assert asked.group == reference.group


@pytest.mark.parametrize(("scope", "n_groups"), [("per_relation", 32), ("per_fact", 96)])
def test_prompts_of_a_group_share_their_demonstrations(scope, n_groups):
    """A group is all facts of a relation under one template, or one fact; others start apart."""
    groups, by_question = {}, {question.question: question for question in ALL}
    prompts = prompts_of(ALL, pool_of(ALL, scope=scope))
    for question, prompt in zip(ALL, prompts, strict=True):
        groups.setdefault(prompt.group, []).append(prompt.text)
        subjects = {by_question[one].triple.subject.id for one in demonstrated(prompt)}
        assert scope == "per_relation" or question.triple.subject.id not in subjects

    starts = [{text.rpartition("Q: ")[0] for text in texts} for texts in groups.values()]
    assert len(groups) == n_groups
    assert all(len(found) == 1 for found in starts)
    assert len(set.union(*starts)) == n_groups
    assert all(start.count("Q: ") == 15 for start in set.union(*starts))
    assert all(group.endswith("|15") for group in groups)


@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False))
def test_draws_are_fixed_by_the_seed(seed, order):
    """The order of the rows does not change a draw; another seed does."""
    shuffled = list(ALL)
    order.shuffle(shuffled)

    first = pool_of(ALL, seed=seed).draw(ASKED, 15)

    assert pool_of(shuffled, seed=seed).draw(ASKED, 15) == first
    assert pool_of(ALL, seed=seed + 1).draw(ASKED, 15) != first


@pytest.mark.parametrize("shots", [0, 4, 15, 20, 45])
def test_draw_gives_the_number_asked_for(shots):
    """Fewer shots than relations take a part of them; more go round again without repeating."""
    drawn = pool_of(ALL).draw(ASKED, shots)

    assert len({item.question for item in drawn}) == shots


def test_a_further_paraphrase_borrows_the_first_of_relations_that_have_no_such():
    """A writer may find two wordings for one relation and one for the others."""
    names = list(RELATIONS)[:3]

    def worded(questions, template):
        return [question.model_copy(update={"template": template}) for question in questions]

    first = worded(questions_of(2, relations=names), "paraphrase")
    second = worded(questions_of(2, relations=names[:1]), "paraphrase_2")
    pool = pool_of([*first, *second])

    drawn = pool.draw(asked(second[0]), 2)

    assert pool.relations("paraphrase_2") == set(names)
    assert pool.relations("original") == frozenset()
    assert {one.question for one in drawn} <= {
        one.question for one in first if one.triple.relation != names[0]
    }


MUTE = [q.model_copy(update={"triple": q.triple.model_copy(update={"answers": ()})}) for q in ALL]
OF_ONE_SUBJECT = [q for q in ALL if q.triple.subject.id == "Q0"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pool_of(ALL).draw(ASKED, 46),
            r"shots=46, but only 45 canonical questions .*'occupation'",
        ),
        (lambda: pool_of(ALL).draw(ASKED, -1), "shots must be 0 or more, got -1"),
        (
            lambda: pool_of(OF_ONE_SUBJECT, scope="per_fact").draw(asked(OF_ONE_SUBJECT[0]), 5),
            "only 0 demonstrations are about other subjects than Q0",
        ),
        (lambda: pool_of(MUTE).draw(ASKED, 1), "only 0 canonical questions"),
        (lambda: pool_of(ALL, scope="x"), "scope must be one of per_relation, per_fact, got 'x'"),
        (
            lambda: next(prompts_of(ALL, pool_of(ALL), prompt_format="x")),
            "prompt_format must be one of completion, chat, got 'x'",
        ),
        *(
            (lambda frame=frame: resolve_frame(frame), r"a frame is one of en, ar, cs, .*, zh, or")
            for frame in ("xx", "{question}", "Q: {question} A: ", "{question} {question}.")
        ),
        (lambda: RedirectQASettings(frame="xx"), "a frame is one of"),
    ],
)
def test_draws_prompts_and_frames_reject(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_truncation_keeps_the_members_of_a_fact_alike():
    """Where one surface is too long, all prompts of its fact lose the same demonstrations."""
    longest = max(ALL, key=lambda q: len(q.question))
    full = {p.id: p for p in prompts_of(ALL, pool_of(ALL))}
    limit = len(full[longest.id].text) - 1

    prompts = {p.id: p for p in prompts_of(ALL, pool_of(ALL), fits=lambda p: len(p.text) <= limit)}

    assert all(len(p.text) <= limit for p in prompts.values())
    counts = {}
    for question in ALL:
        shown = demonstrated(prompts[question.id])
        assert shown == demonstrated(full[question.id])[-len(shown) :]
        counts.setdefault((question.triple.id, question.template), set()).add(len(shown))
    assert all(len(found) == 1 for found in counts.values())
    for prompt in prompts.values():
        assert prompt.group.endswith(f"|{len(demonstrated(prompt))}")
    assert counts[longest.triple.id, longest.template] != {15}


def test_truncation_stops_at_no_demonstrations():
    """A question that never fits is left to the runner, which names it."""
    prompts = list(prompts_of(ALL[:1], pool_of(ALL), fits=lambda p: False))

    assert prompts[0].text == f"Q: {ALL[0].question} A:"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ("en", "Q: Where? A: Rome\n\nQ: Who? A:"),
        ("ja", "質問: Where? 回答: Rome\n\n質問: Who? 回答:"),
        ("Say: {question} It is", "Say: Where? It is Rome\n\nSay: Who? It is"),
    ],
)
def test_a_frame_stands_around_every_question(frame, text):
    solved = [Demonstration(question="Where?", answer="Rome")]

    assert render_completion("Who?", solved, frame=frame) == text
    asked = [turn.content for turn in render_chat("Who?", solved, frame=frame)]
    assert f"{asked[0]} {asked[1]}\n\n{asked[2]}" == text


def test_questions_with_braces_stay_as_they_are():
    assert render_completion("What is {question}?", ()) == "Q: What is {question}? A:"
