"""Steps compared with loops; `mini` has manually derived rows and counts of every step."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from surface_consistency_build.wikimedia.construction.steps import (
    balance,
    insert_facts,
    join_articles,
    name_objects,
    pair_given_facts,
    resolve_redirects,
    sample_triples,
)
from surface_consistency_build.wikimedia.wikis import UNCATEGORISED_LABEL

SHORT, LONG = "Redirects_from_short_names", "Redirects_from_long_names"
PLURAL = "Redirects_to_plurals"
FEW = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_join_articles_prefers_the_item_of_the_page_to_the_link(tables, lost):
    titles = ["Renamed", "Linked", "Redirect", "Choice", "Alone", "Zwilling"]
    tables.fill(
        pages=[(n, title, title, title == "Redirect") for n, title in enumerate(titles, 1)],
        page_props=[(1, 10, False), (4, None, True), (6, 10, False), (3, 30, False)],
        entities=[(10, "ten", "Old_name"), (20, None, "Linked"), (11, "eleven", "Renamed")],
        page_views=[("Renamed", 7)],
    )

    counts = join_articles(tables.connection)

    assert tables.rows("articles") == [
        (10, "Renamed", "Renamed", "ten", 7),
        (20, "Linked", "Linked", None, 0),
    ]
    reasons = ("a redirect", "a disambiguation page", "no Wikidata entity")
    assert lost(counts) == dict.fromkeys((*reasons, "a second page of the same entity"), 1)


def naive_sample(candidates, triples, seed):
    """The definition in the docstring, as a loop."""

    def place(row):
        text = f"{seed}:triple:{row[1]}:{row[2]}:{row[3]}"
        return hashlib.md5(text.encode()).hexdigest()

    gold = {}
    for row in sorted(candidates, key=lambda row: (place(row), row[3])):
        gold.setdefault(row[1:3], row)
    return sorted(sorted(gold.values(), key=lambda row: (place(row), row[0]))[:triples], key=repr)


@settings(FEW, max_examples=20)
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


@pytest.mark.parametrize(("max_hops", "kept"), [(1, 1), (2, 2), (5, 5), (6, 6), (7, 6)])
def test_redirect_chains_are_followed_up_to_max_hops(max_hops, kept, tables):
    tables.fill(
        pages=[(number, f"R{number}", "r", True) for number in range(6)],
        redirects=[(n, f"R{n - 1}" if n else "A", 0, False, False) for n in range(6)],
        page_props=[],
        articles=[(7, "A", "A", "a", 1)],
    )

    resolve_redirects(tables.connection, max_hops=max_hops)

    assert len(tables.rows("resolved")) == kept


def follow(links, start):
    """The end of a chain, computed in a loop; None if there is no end."""
    seen, at = set(), start
    while at in links:
        if at in seen:
            return None
        seen.add(at)
        at, fault = links[at]
        if fault:
            return None
    return at


def test_resolve_redirects_agrees_with_loop(tables):
    """200 wikis of at most 8 redirects and 2 articles each, in one run."""
    rng = np.random.default_rng(8)
    links = {}
    for wiki in range(0, 2_000, 10):
        for number in range(int(rng.integers(1, 9))):
            target, is_section = wiki + int(rng.integers(0, 10)), bool(rng.random() < 0.2)
            links[wiki + number] = (target, is_section)
    articles = [number for number in range(2_000) if number % 10 in (8, 9)]
    tables.fill(
        pages=[(number, f"T{number}", f"T{number}", True) for number in links],
        redirects=[
            (number, f"T{target}", 0, False, is_section)
            for number, (target, is_section) in links.items()
        ],
        page_props=[],
        articles=[(number, f"T{number}", "x", "x", 1) for number in articles],
    )

    resolve_redirects(tables.connection)

    ends = {number: follow(links, number) for number in links}
    expected = {(number, end) for number, end in ends.items() if end in articles}
    assert 50 < len(expected) < len(links) - 50
    assert set(tables.rows("resolved", "page_id, entity")) == expected


@settings(FEW, max_examples=25)
@given(
    labels=st.lists(
        st.sets(st.sampled_from([SHORT, LONG, PLURAL, UNCATEGORISED_LABEL]), min_size=1), min_size=1
    ),
    cap=st.integers(1, 6),
    seed=st.integers(0, 9),
)
def test_balance_fills_every_category_up_to_its_cap(labels, cap, seed, tables):
    """A category keeps all of its instances or at least the cap, without unnecessary ones."""
    instances = [
        (place // 2, place, f"T{place}", sorted(kinds)) for place, kinds in enumerate(labels)
    ]
    tables.fill(instances=instances)

    counts = balance(tables.connection, category_cap=cap, seed=seed)

    kept = {page for _, page in tables.rows("balanced")}
    for label in (SHORT, LONG, PLURAL):
        members = {page for _, page, _, kinds in instances if label in kinds}
        single_label = {page for _, page, _, kinds in instances if kinds == [label]}
        assert len(members & kept) >= min(cap, len(members))
        assert len(single_label & kept) <= cap
    free = {page for _, page, _, kinds in instances if UNCATEGORISED_LABEL in kinds}
    assert free <= kept
    triples = counts[-1]
    assert triples.rows_out == len({triplet for triplet, page, _, _ in instances if page in kept})
    assert triples.rows_in - triples.rows_out == triples.removed


def test_balance_depends_only_on_the_seed(tables):
    instances = [(number, number, f"T{number}", [SHORT]) for number in range(60)]
    kept = []
    for rows, seed in ((instances, 0), (instances[::-1], 0), (instances, 1)):
        tables.fill(instances=rows)
        balance(tables.connection, category_cap=20, seed=seed)
        kept.append(tables.rows("balanced"))

    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize(
    ("labels", "redirects"),
    [([SHORT], ["Twenty short"]), ([UNCATEGORISED_LABEL], ["20", "Twenty short"])],
)
def test_name_objects_lists_every_correct_object(labels, redirects, tables):
    tables.fill(
        sample=[(1, 10, 19, 21), (2, 11, 19, 20)],
        balanced=[(1, 5)],
        facts=[(10, 19, 20), (10, 19, 21), (10, 22, 22), (11, 19, 20)],
        entities=[(10, "ten", None), (20, "twenty", None), (21, None, None)],
        aliases=[(20, "score"), (20, "twenty"), (20, "XX"), (22, "no")],
        articles=[(20, "Twenty", "Twenty", "twenty", 1), (21, "Z_(a)", "Z", None, 1)],
        resolved=[(7, "Twenty_short", "Twenty short", 20, 1), (8, "20", "20", 20, 1)],
        categories=[(7, SHORT), (8, LONG)],
    )

    name_objects(tables.connection, labels=labels)

    assert tables.rows("right_answers") == [(1, [21, 20])]
    names = dict(tables.rows("entity_names"))
    assert names == {10: ["ten"], 20: ["twenty", "Twenty", "XX", "score", *redirects], 21: ["Z"]}


def test_given_facts_are_found_by_entity_or_by_title(tables, lost):
    tables.fill(
        articles=[(10, "A", "A", "a", 1), (11, "Bo_Bi", "Bo Bi", "b", 1)],
        surfaces=[(1, "S", "S", 10, [SHORT]), (2, "Alpha", "Alpha", 10, [SHORT])],
    )

    counts = insert_facts(tables.connection, [(5, 10, "Alpha"), (6, None, "Bo Bi"), (7, 12, "A")])
    assert tables.rows("sample") == [(5, 10, "Alpha"), (6, 11, "Bo Bi")]
    assert lost(counts) == {"the subject has no article": 1}

    counts = pair_given_facts(tables.connection)
    assert tables.rows("instances", "triplet_id, page_id") == [(5, 1)]
    reasons = ("the subject has no redirect surface", "the surface is the given name")
    assert lost(counts) == dict.fromkeys(reasons, 1)
