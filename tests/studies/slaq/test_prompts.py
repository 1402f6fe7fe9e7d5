import numpy as np

from surface_consistency.data.slaq import load_slaq
from surface_consistency.metrics.positions.topic_layout import is_balanced
from surface_consistency.studies.slaq.prompts import fill_instruction, slaq_prompts
from surface_consistency.studies.slaq.queries import parse_long_query
from surface_consistency.studies.slaq.settings import SlaqSettings

ROWS = load_slaq("sample").rows
TOPICS = dict(list(ROWS.groupby("topic_id")))


def built(form, rows=ROWS, **settings):
    """Return text and row of each prompt of a form."""
    prompts, asked = slaq_prompts(rows, SlaqSettings(free=True, **settings))
    texts = [prompt.text or prompt.messages[0].content for prompt in prompts]
    pairs = zip(texts, asked.itertuples(), strict=True)
    return [(text, row) for text, row in pairs if row.form == form]


def test_each_prompt_has_one_row_with_its_id():
    prompts, asked = slaq_prompts(ROWS, SlaqSettings(free=True))

    assert asked["form"].value_counts().to_dict() == {"short": 120, "long": 120, "free": 24}
    assert [prompt.id for prompt in prompts] == asked["prompt_id"].tolist()
    assert asked["prompt_id"].is_unique
    assert len({prompt.key for prompt in prompts}) == len(prompts)
    assert not asked["is_rebuilt"].any()


def test_long_prompts_list_clauses_in_the_recorded_order():
    """The orders of each topic are balanced."""
    orders = []
    for text, row in built("long", permutations=10, seed=4):
        clauses = parse_long_query(TOPICS[row.topic_id]["long_question"].iloc[0]).clauses
        asked = parse_long_query(text.partition("Question: ")[2]).clauses
        assert asked == tuple(clauses[index - 1] for index in row.order)
        assert row.order_id == "-".join(map(str, row.order))
        orders.append(row.order)
    assert is_balanced(np.array(orders).reshape(24, 10, 5) - 1)


def test_short_prompts_contain_topic_and_question():
    for text, row in built("short"):
        facts = TOPICS[row.topic_id].set_index("question_index")
        [index] = row.order
        assert text.endswith(f"\nQuestion: {facts.loc[index, 'question']}")
        assert facts.loc[index, "topic"] in text
        assert row.prompt_id == f"{row.topic_id}/{index}/short"


def test_free_prompts_do_not_list_the_facts():
    for text, row in built("free"):
        assert parse_long_query(text) is None
        assert row.order == ()


def test_completion_format_is_plain_text():
    prompt = slaq_prompts(ROWS.head(5), SlaqSettings(completion=True))[0][0]

    assert prompt.messages is None
    assert prompt.text.endswith("Titan?\nAnswer:")


def test_rebuilt_topics_are_marked(row):
    listed = "Say (1) a, (2) b, (3) c, (4) d, and (5) e."
    rows = load_slaq([row("A", LongQ="Tell me about it."), row("B", LongQ=listed)]).rows

    assert {(r.topic_id[0], r.is_rebuilt) for _, r in built("long", rows)} == {
        ("a", True),
        ("b", False),
    }


def test_braces_in_questions_are_not_filled_in():
    """A question that contains the text of a placeholder is unchanged."""
    wording, question = "On {topic}, {x}: {question} {topic}", "What is {topic} or {0}?"

    asked = fill_instruction(wording, topic="{question}", question=question)

    assert asked == "On {question}, {x}: What is {topic} or {0}? {question}"
