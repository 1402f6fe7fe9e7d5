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
    """There are 15 shots, or 14 without the relation religion (section 3.1)."""
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
def test_prompts_of_a_pair_differ_only_in_the_surface(scope, prompt_format):
    """Replacing the surface in one prompt gives the other prompt."""
    pool = DemonstrationPool(ALL, scope=scope)
    prompts = [*build_prompts(ALL, pool, prompt_format=prompt_format)]

    def parts(prompt):
        """Return the text before the question, and the question."""
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
    """A group is a relation under one template, or a fact; groups have different beginnings."""
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
def test_draws_depend_on_the_seed_and_not_on_the_order_of_rows(seed, order):
    first = DemonstrationPool(ALL, seed=seed).draw(ASKED, 15)

    assert DemonstrationPool(ALL.iloc[order], seed=seed).draw(ASKED, 15) == first
    assert DemonstrationPool(ALL, seed=seed + 1).draw(ASKED, 15) != first


@pytest.mark.parametrize("shots", [0, 4, 15, 20, 45])
def test_draw_returns_the_requested_number_of_distinct_demonstrations(shots):
    """Up to the number of relations each has at most one; above it, relations repeat."""
    drawn = POOL.draw(ASKED, shots)

    assert len({item.question for item in drawn}) == shots


def test_relations_without_a_second_paraphrase_use_their_first_one():
    """Relations can have different numbers of paraphrases."""
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
def test_invalid_shots_scopes_and_frames_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_truncation_removes_the_same_demonstrations_from_all_names_of_a_fact():
    """If one prompt is too long, demonstrations are removed from all prompts of the fact."""
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


def test_a_question_that_never_fits_is_kept_without_demonstrations():
    """The runner then reports the prompt."""
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
def test_frame_is_applied_to_every_question(frame, text):
    solved = [Demonstration(question="Where?", answer="Rome")]

    assert render_completion("Who?", solved, frame=frame) == text
    asked = [turn.content for turn in render_chat("Who?", solved, frame=frame)]
    assert f"{asked[0]} {asked[1]}\n\n{asked[2]}" == text


def test_questions_with_braces_are_not_filled_in():
    assert render_completion("What is {question}?", ()) == "Q: What is {question}? A:"
