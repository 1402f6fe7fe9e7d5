from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.data.slaq.popularity import popularity_halves
from surface_consistency.data.slaq.sample import load_slaq_sample

BASE = load_slaq_sample().topics[0]


def topic(name, category, views):
    questions = tuple(
        question.model_copy(update={"id": f"{name}/{question.index}"})
        for question in BASE.questions
    )
    return BASE.model_copy(
        update={
            "id": name,
            "topic": name,
            "category": category,
            "pageviews": views,
            "questions": questions,
        }
    )


def halves(topics, **options):
    return [one.popularity for one in popularity_halves(topics, **options)]


def test_halves_are_those_of_each_category():
    """A page with few views is popular in a category where others have fewer (appendix A.1)."""
    topics = [topic("a", "X", 9000), topic("b", "X", 8000), topic("c", "Y", 5), topic("d", "Y", 1)]

    assert halves(topics) == ["popular", "obscure", "popular", "obscure"]
    assert halves(topics, within="all") == ["popular", "popular", "obscure", "obscure"]


def test_middle_ties_and_unknown_views():
    topics = [topic("a", "X", 3), topic("b", "X", 2), topic("c", "X", 1), topic("d", "X", None)]

    assert halves(topics) == ["popular", "obscure", "obscure", None]
    assert halves([topic("b", "X", 4), topic("a", "X", 4)]) == ["obscure", "popular"]
    assert halves([topic("a", "X", 4)]) == [None]
    assert halves([]) == []


@given(st.lists(st.tuples(st.sampled_from("XYZ"), st.integers(0, 50)), max_size=30))
def test_halves_differ_by_one_and_by_views(drawn):
    """No obscure topic has more views than a popular one of its category."""
    topics = [topic(f"t{k:02}", category, views) for k, (category, views) in enumerate(drawn)]
    done = popularity_halves(topics)

    for category in "XYZ":
        group = [one for one in done if one.category == category]
        counts = Counter(one.popularity for one in group)
        if len(group) > 1:
            assert counts["obscure"] - counts["popular"] in (0, 1)
            assert min(one.pageviews for one in group if one.popularity == "popular") >= max(
                one.pageviews for one in group if one.popularity == "obscure"
            )


def test_halves_rejects_another_frame():
    with pytest.raises(ValueError, match="within must be one of"):
        popularity_halves([BASE], within="topic")
