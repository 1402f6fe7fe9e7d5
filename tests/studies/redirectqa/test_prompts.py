"""Demonstrations and prompts."""

import re

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.data.questions import questions_of
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.schemas import Prompt
from surface_consistency.studies.redirectqa.demonstrations import Demonstration, DemonstrationPool
from surface_consistency.studies.redirectqa.prompts import (
    build_prompts,
    render_chat,
    render_completion,
    resolve_frame,
)
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.taxonomy import RELATIONS
from tests.made_data import rows_of


def facts_of(relations, n=3):
    """Facts of each relation with a title and two redirects, in both templates."""
    redirects = {f"Subject {k}": [f"Subject_{k}_alias_{x}" for x in "xy"] for k in range(n)}
    return load_redirectqa(
        [
            row
            for number, name in enumerate(relations)
            for k, (title, others) in enumerate(redirects.items())
            for row in rows_of(
                *(n * number + k, f"Q{k}", title, 1, name, None, [f"{name} object {k}", "another"]),
                {one: ["Redirects_from_long_names"] for one in others},
            )
        ]
    ).rows


ALL = facts_of(RELATIONS)
ASKED, POOL = questions_of(ALL)[0], DemonstrationPool(ALL)
NO_RELIGION = facts_of(name for name in RELATIONS if name != "religion")
BY_QUESTION = {question.question: question for question in questions_of(ALL)}


def demonstrated(prompt: Prompt) -> list[str]:
    """Questions of the demonstrations in a plain prompt."""
    assert prompt.text is not None
    return re.findall(r"Q: (.*?) A: ", prompt.text)


@pytest.mark.parametrize(("rows", "shots"), [(ALL, 15), (NO_RELIGION, 14)])
def test_prompts_have_one_demonstration_of_each_other_relation(rows, shots):
    """15 shots are one of each other relation, 14 where religion is left out (section 3.1)."""
    prompts = build_prompts(rows, DemonstrationPool(rows), shots=shots)

    for question, prompt in zip(questions_of(rows), prompts, strict=True):
        shown = [BY_QUESTION[text] for text in demonstrated(prompt)]
        others = {*rows["relation"]} - {question.relation}
        assert sorted(item.relation for item in shown) == sorted(others)
        assert all(item.is_canonical for item in shown)
        assert {item.template for item in shown} == {question.template}
        assert prompt.text.endswith(f"Q: {question.question} A:")


@pytest.mark.parametrize("scope", ["per_relation", "per_fact"])
@pytest.mark.parametrize("prompt_format", ["completion", "chat"])
def test_members_of_a_pair_differ_in_the_surface_alone(scope, prompt_format):
    """Putting one surface in place of the other turns one member's prompt into the other's."""
    pool = DemonstrationPool(ALL, scope=scope)
    prompts = [*build_prompts(ALL, pool, prompt_format=prompt_format)]

    def parts(prompt):
        """What stands before the question, and the question."""
        if prompt.text is not None:
            return prompt.text.rpartition("Q:")[::2]
        return prompt.messages[:-1], prompt.messages[-1].content

    made = ALL.assign(prompt=prompts)
    for _, members in made.groupby(["item", "template"]):
        reference = members.loc[members["is_canonical"], "prompt"].item()
        start, last = parts(reference)
        for surface, title, prompt in members[["surface", "subject_name", "prompt"]].to_numpy():
            assert parts(prompt)[0] == start
            assert parts(prompt)[1].replace(surface, title) == last
            assert prompt.group == reference.group


@pytest.mark.parametrize(("scope", "n_groups"), [("per_relation", 32), ("per_fact", 96)])
def test_prompts_of_a_group_share_their_demonstrations(scope, n_groups):
    """A group is all facts of a relation under one template, or one fact; others start apart."""
    groups = {}
    prompts = build_prompts(ALL, DemonstrationPool(ALL, scope=scope))
    for question, prompt in zip(questions_of(ALL), prompts, strict=True):
        groups.setdefault(prompt.group, []).append(prompt.text)
        subjects = {BY_QUESTION[one].subject_id for one in demonstrated(prompt)}
        assert scope == "per_relation" or question.subject_id not in subjects

    starts = [{text.rpartition("Q: ")[0] for text in texts} for texts in groups.values()]
    assert len(groups) == n_groups
    assert all(len(found) == 1 for found in starts)
    assert len(set.union(*starts)) == n_groups
    assert all(start.count("Q: ") == 15 for start in set.union(*starts))
    assert all(group.endswith("|15") for group in groups)


@given(seed=st.integers(0, 2**32), order=st.permutations(range(len(ALL))))
def test_draws_are_fixed_by_the_seed(seed, order):
    """The order of the rows does not change a draw; another seed does."""
    first = DemonstrationPool(ALL, seed=seed).draw(ASKED, 15)

    assert DemonstrationPool(ALL.iloc[order], seed=seed).draw(ASKED, 15) == first
    assert DemonstrationPool(ALL, seed=seed + 1).draw(ASKED, 15) != first


@pytest.mark.parametrize("shots", [0, 4, 15, 20, 45])
def test_draw_gives_the_number_asked_for(shots):
    """Fewer shots than relations take a part of them; more go round again without repeating."""
    drawn = POOL.draw(ASKED, shots)

    assert len({item.question for item in drawn}) == shots


def test_a_further_paraphrase_borrows_the_first_of_relations_that_have_no_such():
    """A writer may find two wordings for one relation and one for the others."""
    names = list(RELATIONS)[:3]
    rows = facts_of(names, 2).query("template == 'paraphrase'")
    second = rows[rows["relation"] == names[0]].assign(template="paraphrase_2")
    pool = DemonstrationPool(pd.concat([rows, second]))

    drawn = pool.draw(questions_of(second)[0], 2)

    assert pool.relations("paraphrase_2") == set(names)
    assert pool.relations("original") == frozenset()
    assert {BY_QUESTION[one.question].relation for one in drawn} == set(names[1:])


MUTE = ALL.assign(references=[()] * len(ALL))
OF_ONE_SUBJECT = ALL[ALL["subject_id"] == "Q0"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: POOL.draw(ASKED, 46), r"shots=46, but only 45 canonical questions .*'occupation'"),
        (lambda: POOL.draw(ASKED, -1), "shots must be 0 or more, got -1"),
        (
            lambda: DemonstrationPool(OF_ONE_SUBJECT, scope="per_fact").draw(ASKED, 5),
            "only 0 demonstrations are about other subjects than Q0",
        ),
        (lambda: DemonstrationPool(MUTE).draw(ASKED, 1), "only 0 canonical questions"),
        (
            lambda: DemonstrationPool(ALL, scope="x"),
            "scope must be one of per_relation, per_fact, per_question, got 'x'",
        ),
        (
            lambda: next(build_prompts(ALL, POOL, prompt_format="x")),
            "prompt_format must be one of completion, chat, got 'x'",
        ),
        *(
            (
                lambda frame=frame: resolve_frame(frame),
                r"a frame must be one of en, ar, cs, .*, zh, or",
            )
            for frame in ("xx", "{question}", "Q: {question} A: ", "{question} {question}.")
        ),
        (lambda: RedirectQASettings(frame="xx"), "a frame must be one of"),
    ],
)
def test_draws_prompts_and_frames_reject(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_truncation_keeps_the_members_of_a_fact_alike():
    """Where one surface is too long, all prompts of its fact lose the same demonstrations."""
    longest = max(questions_of(ALL), key=lambda q: len(q.question))
    full = {p.id: p for p in build_prompts(ALL, POOL)}
    limit = len(full[longest.id].text) - 1

    prompts = {p.id: p for p in build_prompts(ALL, POOL, fits=lambda p: len(p.text) <= limit)}

    assert all(len(p.text) <= limit for p in prompts.values())
    counts = {}
    for question in questions_of(ALL):
        shown = demonstrated(prompts[question.id])
        assert shown == demonstrated(full[question.id])[-len(shown) :]
        counts.setdefault((question.item, question.template), set()).add(len(shown))
    assert all(len(found) == 1 for found in counts.values())
    for prompt in prompts.values():
        assert prompt.group.endswith(f"|{len(demonstrated(prompt))}")
    assert counts[longest.item, longest.template] != {15}


def test_truncation_stops_at_no_demonstrations():
    """A question that never fits is left to the runner, which names it."""
    prompts = list(build_prompts(ALL[:1], POOL, fits=lambda p: False))

    assert prompts[0].text == f"Q: {ASKED.question} A:"


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
