import pytest

from surface_consistency.data.slaq.sample import load_slaq_sample
from surface_consistency.prompts.slaq.queries import free_query, topic_query

SAMPLE = load_slaq_sample().topics


@pytest.mark.parametrize("topic", SAMPLE, ids=lambda topic: topic.id)
def test_long_queries_of_the_sample_parse(topic):
    """In its own order a query is what the data says."""
    parts = topic_query(topic)

    assert not parts.is_rebuilt
    assert len(parts.query.clauses) == 5
    assert parts.query.render() == topic.long_question


@pytest.mark.parametrize(
    "long_question",
    [
        "Tell me about the Punic Wars.",
        "Discuss (1) a, (2) b, (3) c, and (4) d.",
        "Discuss it by covering (1) a, (2) b, (3) c, (4) who led, and (5) what he crossed.",
        "Discuss it by covering (1) a, (2) b, (3) c, (4) two men, and (5) what the latter did.",
    ],
)
def test_query_is_built_from_the_questions_where_clauses_cannot_move(make_topic, long_question):
    parts = topic_query(make_topic(long_question=long_question))

    assert parts.is_rebuilt
    assert parts.query.render([5, 4, 3, 2, 1]) == (
        "Discuss the topic The Punic Wars by answering these questions: "
        "(1) What did Hannibal famously cross the Alps with? "
        "(2) Who was the Carthaginian general in the Second Punic War? "
        "(3) Which two powers fought in the Punic Wars? "
        "(4) How long did the Punic Wars last? "
        "(5) When did the First Punic War occur?"
    )


def test_wording_decides(make_topic):
    dependent = make_topic(long_question="Say (1) a, (2) b, (3) c, (4) who, and (5) what he did.")
    plain = make_topic()

    assert topic_query(dependent, wording="query").query.clauses[4] == "what he did"
    assert topic_query(plain, wording="questions").is_rebuilt
    assert not topic_query(plain).is_rebuilt
    with pytest.raises(ValueError, match="wording must be one of"):
        topic_query(plain, wording="own")


def test_query_without_lead_gets_one(make_topic):
    topic = make_topic(long_question="(1) when, (2) how long, (3) who, (4) whom, (5) how")

    assert topic_query(topic).query.render().startswith("Discuss The Punic Wars by covering (1)")


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("The Punic Wars", "Tell me about the Punic Wars."),
        ("NaN", "Tell me about NaN."),
        ("Who Wants to Be a Millionaire?", "Tell me about Who Wants to Be a Millionaire?"),
        ("Apple Inc.", "Tell me about Apple Inc."),
        ("Theology", "Tell me about Theology."),
    ],
)
def test_free_query_lists_nothing(make_topic, name, query):
    assert free_query(make_topic(name)) == query
