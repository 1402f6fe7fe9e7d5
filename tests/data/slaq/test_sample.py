from collections import Counter

import datasets
import pytest

from surface_consistency.data.slaq.articles import clean_article
from surface_consistency.data.slaq.load import load_slaq
from surface_consistency.data.slaq.rules import check_topic
from surface_consistency.data.slaq.sample import SLAQ_SAMPLE_PATH, load_slaq_sample
from surface_consistency.data.slaq.written import WrittenFact, WrittenTopic
from surface_consistency.prompts.slaq_queries import free_query
from surface_consistency.schemas.slaq import SlaqArticle
from surface_consistency.text import padded_words

SAMPLE = load_slaq_sample()
# Appendix A.1 of the paper.
CATEGORIES = {
    "Aesthetics",
    "Algebra",
    "Anthropology",
    "Applied sciences",
    "Artificial intelligence",
    "Astronomy",
    "Cultural studies",
    "Sociology",
    "Software engineering",
    "Spirituality",
    "Statistics",
    "Technology",
    "Telecommunications",
    "Theology",
    "Virtual reality",
}


def test_sample_is_spread_over_categories_and_halves():
    counts = Counter((topic.category, topic.popularity) for topic in SAMPLE.topics)

    assert len(SAMPLE.topics) == 24
    assert {category for category, _ in counts} <= CATEGORIES
    assert len(counts) == 24
    assert set(counts.values()) == {1}


def test_sample_holds_names_that_look_like_nothing():
    answers = {question.answer for question in SAMPLE.questions}

    assert {"NA", "null", "None", "NaN", "Na"} <= answers
    assert "NaN" in {topic.topic for topic in SAMPLE.topics}


def test_sample_has_both_kinds_of_answer():
    flags = Counter(question.is_entity for question in SAMPLE.questions)

    assert flags[True] > 40
    assert flags[False] > 30
    assert flags[None] == 0


@pytest.mark.parametrize("topic", SAMPLE.topics, ids=lambda topic: topic.id)
def test_sample_breaks_no_rule(topic):
    """The sample passes the checks that are asked of a writer."""
    text = " ".join([topic.long_answer, *(question.answer for question in topic.questions)])
    written = WrittenTopic(
        facts=tuple(
            WrittenFact(question=question.question, answer=question.answer)
            for question in topic.questions
        ),
        long_question=topic.long_question,
        long_answer=topic.long_answer,
    )
    article = SlaqArticle(title=topic.topic, category=topic.category, text=clean_article(text))

    assert check_topic(written, article) == []


@pytest.mark.parametrize("topic", SAMPLE.topics, ids=lambda topic: topic.id)
def test_no_answer_stands_in_what_is_asked(topic):
    """An echo of the short question or of the long query never scores."""
    queries = [topic.long_question, free_query(topic)]
    for question in topic.questions:
        answer, *asked = padded_words([question.answer, question.question, *queries])
        assert not any(answer in text for text in asked)


def test_card_loads_the_sample_without_loss(tmp_path):
    """`load_dataset` with the card alone keeps "NA" and the like."""
    loaded = datasets.load_dataset(
        str(SLAQ_SAMPLE_PATH), split="test", cache_dir=str(tmp_path / "cache")
    )

    assert load_slaq(loaded).source.digest == SAMPLE.source.digest
    assert load_slaq(SLAQ_SAMPLE_PATH).topics == SAMPLE.topics
    assert loaded.features["Pageviews"].dtype == "int64"
