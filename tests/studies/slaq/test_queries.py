import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from surface_consistency.data.slaq import load_slaq
from surface_consistency.metrics.positions.topic_layout import is_balanced
from surface_consistency.studies.slaq.queries import free_query, latin_square_orders, topic_query

ROWS = load_slaq("sample").rows
QUESTIONS = (
    "When did the First Punic War occur?",
    "How long did the Punic Wars last?",
    "Which two powers fought in the Punic Wars?",
    "Who was the Carthaginian general in the Second Punic War?",
    "What did Hannibal famously cross the Alps with",
)
PLAIN = "Discuss the wars: (1) when, (2) how long, (3) who, (4) whom, and (5) how."


def query_of(long_question, **options):
    return topic_query("The Punic Wars", long_question, QUESTIONS, **options)


def test_long_queries_of_the_sample_parse():
    """In the original order a query equals that of the data."""
    for topic, facts in ROWS.groupby("topic"):
        long_question = facts["long_question"].iloc[0]
        query, is_rebuilt = topic_query(topic, long_question, facts["question"])
        assert not is_rebuilt
        assert len(query.clauses) == 5
        assert query.render() == long_question


@pytest.mark.parametrize(
    "long_question",
    [
        "Tell me about the Punic Wars.",
        "Discuss (1) a, (2) b, (3) c, and (4) d.",
        "Discuss it by covering (1) a, (2) b, (3) c, (4) who led, and (5) what he crossed.",
        "Discuss it by covering (1) a, (2) b, (3) c, (4) two men, and (5) what the latter did.",
    ],
)
def test_query_with_dependent_clauses_is_rebuilt_from_the_questions(long_question):
    query, is_rebuilt = query_of(long_question)

    assert is_rebuilt
    assert query.render([5, 4, 3, 2, 1]) == (
        "Discuss the topic The Punic Wars by answering these questions: "
        "(1) What did Hannibal famously cross the Alps with? "
        "(2) Who was the Carthaginian general in the Second Punic War? "
        "(3) Which two powers fought in the Punic Wars? "
        "(4) How long did the Punic Wars last? "
        "(5) When did the First Punic War occur?"
    )


def test_wording_selects_the_clauses_or_the_questions():
    dependent = "Say (1) a, (2) b, (3) c, (4) who, and (5) what he did."

    assert query_of(dependent, wording="query")[0].clauses[4] == "what he did"
    assert query_of(PLAIN, wording="questions")[1]
    assert not query_of(PLAIN)[1]
    with pytest.raises(ValueError, match="wording must be one of"):
        query_of(PLAIN, wording="own")


def test_query_without_lead_gets_one():
    query, _ = query_of("(1) when, (2) how long, (3) who, (4) whom, (5) how")

    assert query.render().startswith("Discuss The Punic Wars by covering (1)")


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("The Punic Wars", "Tell me about the Punic Wars."),
        ("NaN", "Tell me about NaN."),
        ("Who Wants to Be a Millionaire?", "Tell me about Who Wants to Be a Millionaire?"),
        ("Apple Inc.", "Tell me about Apple Inc."),
    ],
)
def test_free_query_contains_only_the_topic(name, query):
    assert free_query(name) == query


INDICES = [1, 2, 3, 4, 5]


@given(n=st.integers(1, 60), seed=st.integers(-5, 10_000), topic=st.text(max_size=5))
def test_orders_are_balanced_over_slots(n, seed, topic):
    """The counts differ by at most 1, and are equal for multiples of five."""
    orders = latin_square_orders(n, seed=seed, topic_id=topic)
    counts = [Counter(order[slot] for order in orders) for slot in range(5)]
    cells = [count[index] for count in counts for index in INDICES]

    assert len(orders) == n
    assert all(sorted(order) == INDICES for order in orders)
    assert max(cells) - min(cells) <= (n % 5 != 0)
    assert is_balanced((np.array(orders) - 1)[None]) == (n % 5 == 0)


@given(k=st.integers(1, 12), seed=st.integers(0, 1000))
def test_orders_balance_the_preceding_sub_question(k, seed):
    """For multiples of ten, each pair of neighbours is equally frequent."""
    orders = latin_square_orders(10 * k, seed=seed)
    pairs = Counter(pair for order in orders for pair in itertools.pairwise(order))

    assert len(pairs) == 20
    assert set(pairs.values()) == {2 * k}


def test_orders_differ_and_depend_only_on_seed_and_topic():
    first = latin_square_orders(5, seed=1, topic_id="a")

    assert len(set(latin_square_orders(120, seed=3))) == 120
    assert latin_square_orders(5, seed=1, topic_id="a") == first
    assert latin_square_orders(5, seed=2, topic_id="a") != first
    assert latin_square_orders(5, seed=1, topic_id="b") != first
    for n in (0, -1):
        with pytest.raises(ValueError, match="n_permutations must be at least 1"):
            latin_square_orders(n)


def test_first_orders_place_sub_questions_in_each_slot_equally_often():
    """One order per topic is drawn for 5,000 topics."""
    orders = [latin_square_orders(1, topic_id=str(topic))[0] for topic in range(5000)]
    counts = np.array([[sum(o[s] == k for o in orders) for s in range(5)] for k in INDICES])

    # Expected count per cell 1,000, standard deviation 28.
    assert np.abs(counts - 1000).max() < 140


def test_orders_of_many_topics_balance_pairs_of_neighbours():
    """A single Latin square of five cannot balance neighbours."""
    pairs = Counter(
        pair
        for topic in range(2000)
        for order in latin_square_orders(5, topic_id=str(topic))
        for pair in itertools.pairwise(order)
    )

    # 40,000 pairs in 20 cells.
    assert max(abs(count - 2000) for count in pairs.values()) < 300
