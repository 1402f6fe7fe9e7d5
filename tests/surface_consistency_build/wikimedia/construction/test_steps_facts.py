import hashlib

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from surface_consistency_build.wikimedia.construction.steps import (
    candidate_triples,
    find_shared_names,
    join_articles,
    sample_triples,
    sum_views,
)


def test_sum_views_adds_months_and_drops_titles_that_are_no_page(tables):
    tables.fill(
        views=[("A", 2), ("A", 3), ("B_(c)", 4), ("No_page", 9)],
        pages=[(1, "A", "A", False), (2, "B_(c)", "B", True), (3, "Unseen", "Unseen", False)],
    )

    [count] = sum_views(tables.connection)

    assert tables.rows("page_views") == [("A", 5), ("B_(c)", 4)]
    assert (count.rows_in, count.rows_out) == (4, 2)


def test_join_articles_prefers_the_pages_own_item_to_the_link(tables, lost):
    tables.fill(
        pages=[
            (1, "Renamed", "Renamed", False),
            (2, "Linked", "Linked", False),
            (3, "Redirect", "Redirect", True),
            (4, "Choice", "Choice", False),
            (5, "Alone", "Alone", False),
            (6, "Zwilling", "Zwilling", False),
        ],
        page_props=[(1, 10, False), (4, None, True), (6, 10, False), (3, 30, False)],
        entities=[(10, "ten", "Old_name"), (20, None, "Linked"), (11, "eleven", "Renamed")],
        page_views=[("Renamed", 7)],
    )

    counts = join_articles(tables.connection)

    assert tables.rows("articles") == [
        (10, "Renamed", "Renamed", "ten", 7),
        (20, "Linked", "Linked", None, 0),
    ]
    assert lost(counts) == {
        "a redirect": 1,
        "a disambiguation page": 1,
        "no Wikidata entity": 1,
        "a second page of the same entity": 1,
    }


def test_find_shared_names_compares_surfaces_with_all_labels_and_surfaces(tables):
    tables.fill(
        articles=[
            (1, "Mercury_(planet)", "Mercury", "Mercury", 1),
            (2, "Mercury_(element)", "Mercury", "mercury", 1),
            (3, "Venus", "Venus", "Venus", 1),
            (4, "Earth", "Earth", "Terra", 1),
            (5, "Mars", "Mars", "Mars", 1),
        ],
        entities=[
            (1, "Mercury", None),
            (2, "mercury", None),
            (3, "Venus", None),
            (4, "Terra", None),
            (5, "Mars", None),
            (99, "Earth", None),
            (98, "mars", None),
        ],
    )

    [count] = find_shared_names(tables.connection)

    assert tables.rows("shared_names") == [("Earth",), ("Mercury",)]
    assert (count.rows_in, count.rows_out) == (4, 2)


@pytest.mark.parametrize("unambiguous", ["subject", "both"])
def test_candidate_triples_names_the_first_reason(unambiguous, tables, lost):
    tables.fill(
        claims=[
            (1, 19, 2),
            (1, 19, 2),
            (1, 99, 2),
            (77, 19, 2),
            (4, 19, 2),
            (5, 19, 2),
            (1, 19, 77),
            (1, 19, 4),
            (3, 19, 2),
            (1, 19, 3),
            (2, 19, 1),
            (1, 19, 5),
        ],
        articles=[
            (1, "A", "A", "a", 1),
            (2, "B", "B", "b", 9),
            (3, "C", "C", "c", 0),
            (4, "D", "D", None, 1),
            (5, "E", "E", "e", 1),
        ],
        shared_names=[("E",)],
    )

    counts = candidate_triples(tables.connection, properties=[19], unambiguous=unambiguous)

    kept = {"subject": [(1, 1, 19, 2), (2, 1, 19, 5), (3, 2, 19, 1)]}
    kept["both"] = [(1, 1, 19, 2), (2, 2, 19, 1)]
    assert tables.rows("candidates") == kept[unambiguous]
    expected = {
        "another relation, or said twice": 2,
        "the subject has no page": 1,
        "the subject has no label": 1,
        "the subject's canonical surface is shared by several entities": 1,
        "the object has no page": 1,
        "the object has no label": 1,
        "the subject's page was not viewed": 1,
        "the object's page was not viewed": 1,
    }
    if unambiguous == "both":
        expected["the object's canonical surface is shared by several entities"] = 1
    assert lost(counts) == expected
    assert (1, 19, 5) in tables.rows("facts")


def naive_sample(candidates, triples, seed):
    """The definition in the docstring, in a loop."""

    def place(row):
        text = f"{seed}:triple:{row[1]}:{row[2]}:{row[3]}"
        return hashlib.md5(text.encode()).hexdigest()

    gold = {}
    for row in sorted(candidates, key=lambda row: (place(row), row[3])):
        gold.setdefault(row[1:3], row)
    return sorted(sorted(gold.values(), key=lambda row: (place(row), row[0]))[:triples], key=repr)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    claims=st.sets(st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 5)), max_size=30),
    triples=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_sample_triples_agrees_with_loop(claims, triples, seed, tables):
    candidates = [(place, *claim) for place, claim in enumerate(sorted(claims), start=1)]
    tables.fill(candidates=list(reversed(candidates)))

    counts = sample_triples(tables.connection, triples=triples, seed=seed)

    assert tables.rows("sample") == naive_sample(candidates, triples, seed)
    assert counts[0].rows_in - counts[0].rows_out == sum(count.removed for count in counts)


def test_smaller_sample_is_part_of_a_larger_one_and_seeds_differ(tables):
    tables.fill(candidates=[(number, number, 19, 1) for number in range(1, 101)])

    drawn = {}
    for triples, seed in ((10, 0), (40, 0), (40, 1)):
        sample_triples(tables.connection, triples=triples, seed=seed)
        drawn[triples, seed] = set(tables.rows("sample"))

    assert drawn[10, 0] < drawn[40, 0]
    assert drawn[40, 0] != drawn[40, 1]
