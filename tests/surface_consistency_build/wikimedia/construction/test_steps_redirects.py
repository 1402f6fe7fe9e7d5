import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from surface_consistency_build.wikimedia.construction.steps import (
    balance,
    insert_facts,
    keep_categories,
    keep_surfaces,
    name_objects,
    pair_given_facts,
    pair_with_surfaces,
    resolve_redirects,
)
from surface_consistency_build.wikimedia.wikis import UNCATEGORISED_LABEL

SHORT, LONG, PLURAL = (
    "Redirects_from_short_names",
    "Redirects_from_long_names",
    "Redirects_to_plurals",
)


def test_resolve_redirects_tells_every_reason(tables, lost):
    tables.fill(
        pages=[
            *[(number, f"R{number}", f"R{number}", True) for number in range(1, 13)],
            (20, "A", "A", False),
            (21, "Choice", "Choice", False),
        ],
        redirects=[
            (1, "A", 0, False, False),
            (2, "R1", 0, False, False),
            (3, "A", 0, True, False),
            (4, "A", 1, False, False),
            (5, "A", 0, False, True),
            (6, "R7", 0, False, False),
            (7, "R6", 0, False, False),
            (8, "R8", 0, False, False),
            (9, "Choice", 0, False, False),
            (10, "Nowhere", 0, False, False),
            (11, "R5", 0, False, False),
            (12, "R2", 0, False, False),
            (99, "A", 0, False, False),
        ],
        page_props=[(21, None, True)],
        articles=[(7, "A", "A", "a", 1)],
    )

    counts = resolve_redirects(tables.connection)

    assert tables.rows("resolved") == [
        (1, "R1", "R1", 7, 1),
        (12, "R12", "R12", 7, 3),
        (2, "R2", "R2", 7, 2),
    ]
    assert lost(counts) == {
        "no redirect page of the article namespace": 1,
        "leads to another wiki": 1,
        "leads to another namespace": 1,
        "leads to a section": 2,
        "a loop, or a chain of more than 8 redirects": 3,
        "leads to a disambiguation page": 1,
        "leads to no article of an entity": 1,
    }


@pytest.mark.parametrize(("max_hops", "kept"), [(1, 1), (2, 2), (5, 5), (6, 6), (7, 6)])
def test_chains_are_followed_as_far_as_asked(max_hops, kept, tables):
    tables.fill(
        pages=[(number, f"R{number}", "r", True) for number in range(6)],
        redirects=[(number, f"R{number - 1}", 0, False, False) for number in range(1, 6)]
        + [(0, "A", 0, False, False)],
        page_props=[],
        articles=[(7, "A", "A", "a", 1)],
    )

    resolve_redirects(tables.connection, max_hops=max_hops)

    assert len(tables.rows("resolved")) == kept


def follow(links, start):
    """The end of a chain, in a loop; None where there is none."""
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
    """Two hundred wikis of at most eight redirects and two articles each, in one run."""
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


@pytest.fixture
def drawn(tables):
    tables.fill(
        sample=[(1, 10, 19, 20)],
        resolved=[
            (1, "S", "S", 10, 1),
            (2, "N", "N", 10, 1),
            (3, "O", "O", 20, 1),
            (4, "X", "X", 30, 1),
        ],
        categories=[
            (1, SHORT),
            (1, LONG),
            (1, SHORT),
            (1, "Redirects_from_books"),
            (3, LONG),
            (4, SHORT),
        ],
    )
    return tables


def test_keep_categories_keeps_sorted_labels_of_the_subjects(drawn, lost):
    counts = keep_categories(drawn.connection, labels=[SHORT, LONG])

    assert drawn.rows("kinds") == [(1, "S", "S", 10, [LONG, SHORT])]
    assert lost(counts) == {"in none of the categories": 1}


def test_uncategorised_redirects_are_kept_where_wanted(drawn):
    keep_categories(drawn.connection, labels=[SHORT, UNCATEGORISED_LABEL])

    assert drawn.rows("kinds", "page_id, labels") == [(1, [SHORT]), (2, [UNCATEGORISED_LABEL])]


def test_keep_surfaces_compares_letter_by_letter(tables, lost):
    tables.fill(
        kinds=[
            (1, "Lune_(river)", "Lune", 10, [SHORT]),
            (2, "LUNE", "LUNE", 10, [SHORT]),
            (3, "Grel", "Grel", 10, [SHORT]),
            (4, "Own", "Own", 10, [SHORT]),
            (5, "Xing_(b)", "Xing", 10, [SHORT]),
            (6, "Xing", "Xing", 10, [LONG]),
            (7, "Xing_(c)", "Xing", 11, [LONG]),
        ],
        articles=[(10, "Lune", "Lune", "Own", 1), (11, "B", "B", "b", 1)],
        entities=[(10, "Own", "Lune"), (50, "Grel", None), (51, "xing", None), (52, "Grel", None)],
    )

    counts = keep_surfaces(tables.connection)

    assert tables.rows("surfaces", "page_id") == [(2,), (6,), (7,)]
    assert lost(counts) == {
        "the surface is the canonical one": 1,
        "the surface is the label of an entity": 2,
        "another redirect of the entity has the same surface": 1,
    }


def test_pair_with_surfaces_counts_facts_without_any(tables):
    tables.fill(
        sample=[(1, 10, 19, 20), (2, 10, 22, 21), (3, 11, 19, 21)],
        surfaces=[(5, "S", "S", 10, [SHORT]), (6, "O", "O", 20, [SHORT])],
    )

    [count] = pair_with_surfaces(tables.connection)

    assert tables.rows("instances", "triplet_id, page_id") == [(1, 5), (2, 5)]
    assert (count.rows_in, count.rows_out, count.removed) == (3, 2, 1)


def test_balance_without_cap_keeps_all(tables, lost):
    instances = [(number, number, f"T{number}", [SHORT]) for number in range(50)]
    tables.fill(instances=instances)

    counts = balance(tables.connection, category_cap=None, seed=0)

    assert len(tables.rows("balanced")) == 50
    assert lost(counts) == {}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    labels=st.lists(
        st.sets(st.sampled_from([SHORT, LONG, PLURAL, UNCATEGORISED_LABEL]), min_size=1), min_size=1
    ),
    cap=st.integers(1, 6),
    seed=st.integers(0, 9),
)
def test_balance_fills_every_category_up_to_its_cap(labels, cap, seed, tables):
    """A category keeps all of its instances, or at least the cap; no instance stays for nothing."""
    instances = [
        (place // 2, place, f"T{place}", sorted(kinds)) for place, kinds in enumerate(labels)
    ]
    tables.fill(instances=instances)

    counts = balance(tables.connection, category_cap=cap, seed=seed)

    kept = {page for _, page in tables.rows("balanced")}
    for label in (SHORT, LONG, PLURAL):
        members = {page for _, page, _, kinds in instances if label in kinds}
        alone = {page for _, page, _, kinds in instances if kinds == [label]}
        assert len(members & kept) >= min(cap, len(members))
        assert len(alone & kept) <= cap
    free = {page for _, page, _, kinds in instances if UNCATEGORISED_LABEL in kinds}
    assert free <= kept
    triples = counts[-1]
    assert triples.rows_out == len({triplet for triplet, page, _, _ in instances if page in kept})
    assert triples.rows_in - triples.rows_out == triples.removed


def test_balance_depends_on_the_seed_alone(tables):
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
def test_name_objects_lists_every_right_object(labels, redirects, tables):
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
    assert lost(counts) == {
        "the subject has no redirect surface": 1,
        "the surface is the given name": 1,
    }
