import numpy as np
import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.metrics.positions.topic_layout import is_balanced
from surface_consistency.studies.slaq.prompts import (
    SlaqInstructions,
    slaq_prompts,
)
from surface_consistency.studies.slaq.queries import parse_long_query

TOPICS = load_slaq_sample().topics


def content(prompt):
    return prompt.messages[0].content


def test_prompts_and_details_go_together():
    built = slaq_prompts(TOPICS, forms=("short", "long", "free"), n_permutations=5)

    assert len(built.prompts) == 24 * (5 + 5 + 1)
    assert [prompt.id for prompt in built.prompts] == [one.prompt_id for one in built.details]
    assert len({prompt.id for prompt in built.prompts}) == len(built.prompts)
    assert len({prompt.key for prompt in built.prompts}) == len(built.prompts)
    assert built.rebuilt == ()


def test_long_prompts_ask_in_the_order_that_they_record():
    """Clause and slot agree for every topic and permutation."""
    built = slaq_prompts(TOPICS, forms=("long",), n_permutations=10, seed=4)
    clauses = {topic.id: parse_long_query(topic.long_question).clauses for topic in TOPICS}

    for prompt, detail in zip(built.prompts, built.details, strict=True):
        asked = parse_long_query(content(prompt).partition("Question: ")[2]).clauses
        assert asked == tuple(clauses[detail.topic_id][index - 1] for index in detail.order)


def test_orders_are_what_the_metrics_take():
    built = slaq_prompts(TOPICS, forms=("long",), n_permutations=5)
    orders = np.array([one.order for one in built.details]).reshape(24, 5, 5) - 1

    assert is_balanced(orders)


def test_short_prompts_name_topic_and_question():
    built = slaq_prompts(TOPICS, forms=("short",))

    for detail, prompt in zip(built.details, built.prompts, strict=True):
        topic = next(topic for topic in TOPICS if topic.id == detail.topic_id)
        question = next(one for one in topic.questions if one.id == detail.question_id)
        assert content(prompt).endswith(f"\nQuestion: {question.question}")
        assert topic.topic in content(prompt)


def test_free_prompts_do_not_list_the_facts():
    built = slaq_prompts(TOPICS, forms=("free",))

    assert len(built.prompts) == 24
    assert all(parse_long_query(content(prompt)) is None for prompt in built.prompts)
    assert all(one.order == () for one in built.details)


def test_completion_format_is_plain_text():
    prompt = slaq_prompts(TOPICS[:1], forms=("short",), prompt_format="completion").prompts[0]

    assert prompt.messages is None
    assert prompt.text.endswith("Titan?\nAnswer:")


def test_rebuilt_topics_are_named(make_topic):
    topic = make_topic(long_question="Tell me about it.")

    assert slaq_prompts([topic, TOPICS[0]], forms=("long",)).rebuilt == ("t-1",)


def test_instructions_leave_braces_alone(make_topic):
    """A question that holds a placeholder's text is asked as it is."""
    topic = make_topic("{question}", questions=["What is {topic} or {0}?", "b", "c", "d", "e"])
    wording = SlaqInstructions(short="On {topic}, {x}: {question} {topic}")

    asked = content(slaq_prompts([topic], forms=("short",), instructions=wording).prompts[0])

    assert asked == "On {question}, {x}: What is {topic} or {0}? {question}"


@pytest.mark.parametrize("form", ["short", "long", "free"])
def test_instructions_rejects_a_wording_without_question(form):
    with pytest.raises(ValueError, match=f"the {form} instruction needs"):
        SlaqInstructions(**{form: "Answer."})


def test_instructions_rejects_an_unknown_form():
    with pytest.raises(ValueError, match="form must be one of"):
        SlaqInstructions().fill("medium", topic="a", question="b")


@pytest.mark.parametrize("forms", [(), ("short", "short"), ("medium",)])
def test_prompts_rejects_other_forms(forms):
    with pytest.raises(ValueError, match="forms must be some of"):
        slaq_prompts(TOPICS, forms=forms)


def test_prompts_rejects_an_unknown_prompt_format():
    with pytest.raises(ValueError, match="prompt_format must be one of"):
        slaq_prompts(TOPICS, forms=("short",), prompt_format="poem")
