"""Deletion closures."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import RunnerError
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.retrieval import Triplets, alias_closures
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.studies.audit.retrieval.closure import similarity_closures
from surface_consistency.text import folded, token_key
from tests.audit_databases import triplets_and_facts

NAMES = st.sampled_from(["us", ".us", "US", "usa", "u s", "€", "$", "Ü", "ü"])
ENTRIES, FACTS = triplets_and_facts(NAMES)
TRIPLETS = st.lists(ENTRIES, max_size=12, unique=True)
ROLES = ("subject", "relation", "object")


def alias_closure(database, fact, **options):
    """The closure of one fact."""
    return alias_closures(database, [fact], **options)[0]


def names_of(fact):
    """Names of the parts of a fact."""
    return (
        (fact.subject, *fact.subject_aliases),
        (fact.relation, *fact.relation_aliases),
        (fact.gold_object, *fact.object_aliases),
    )


def naive_closure(database, fact, key, scope=ROLES):
    """Compare every entry with every name."""

    def equal(one, other):
        """Whether two names are equivalent; names without a key equal only themselves."""
        return key(one) == key(other) if key(one) or key(other) else one == other

    return [
        number
        for number, entry in enumerate(database)
        if all(
            any(equal(part, name) for name in names)
            for role, part, names in zip(ROLES, entry, names_of(fact), strict=True)
            if role in scope
        )
    ]


@given(
    triplets=TRIPLETS,
    fact=FACTS,
    key=st.sampled_from([("published", token_key), ("strict", folded)]),
    scope=st.sets(st.sampled_from(ROLES), min_size=1),
)
def test_closure_agrees_with_a_naive_implementation(triplets, fact, key, scope):
    database = Triplets.of(triplets)

    found = alias_closure(database, fact, rule=key[0], scope=tuple(scope))

    assert found.tolist() == naive_closure(database, fact, key[1], scope)


@pytest.mark.parametrize("key", [("published", token_key), ("strict", folded)], ids=lambda k: k[0])
def test_closures_of_the_published_facts_agree_with_a_naive_implementation(published, key):
    of = cache(key[1])
    for database, facts in published.values():
        for fact, closure in zip(facts, alias_closures(database, facts, rule=key[0]), strict=True):
            assert closure.tolist() == naive_closure(database, fact, of)


# Triplets that the published predicate deletes for each fact; 20 of politicians/alias lose one of
# two (their relation's aliases were overwritten), 4 of sports/collision one too many.
SIZES = {
    "countries/base": {1: 100},
    "countries/alias": {2: 200},
    "politicians/base": {1: 120},
    "politicians/alias": {1: 20, 2: 220},
    "sports/alias": {2: 200},
    "sports/collision": {1: 154, 2: 4},
    "released": {1: 100},
}


def test_published_deletions_have_these_sizes(published):
    for name, expected in SIZES.items():
        assert Counter(map(len, alias_closures(*published[name]))) == expected


@given(
    triplets=TRIPLETS,
    fact=FACTS,
    extra=st.lists(NAMES, max_size=3).map(tuple),
    role=st.sampled_from(ROLES),
)
def test_closure_contains_the_fact_and_is_monotone_and_idempotent(triplets, fact, extra, role):
    """More aliases delete at least as much, and remaining entries do not state the fact."""
    triplets = [*triplets, Triplet(fact.subject, fact.relation, fact.gold_object)]
    database, field = Triplets.of(triplets), f"{role}_aliases"
    wider = fact.model_copy(update={field: getattr(fact, field) + extra})

    gone = set(alias_closure(database, fact).tolist())

    assert len(triplets) - 1 in gone
    assert gone <= set(alias_closure(database, wider).tolist())
    left = Triplets.of(entry for i, entry in enumerate(triplets) if i not in gone)
    assert alias_closure(left, fact).size == 0


@given(triplets=TRIPLETS, facts=st.lists(FACTS, min_size=1, max_size=4))
def test_groups_delete_at_least_the_closure_of_the_aliases_of_a_fact(triplets, facts):
    database = Triplets.of(triplets)
    groups = AliasGroups.from_prompts(facts, database=database)

    for own, wide in zip(
        alias_closures(database, facts), alias_closures(database, facts, rule=groups), strict=True
    ):
        assert set(own) <= set(wide)


def test_key_may_be_a_function_and_the_closure_cannot_be_written_to(make, fact):
    database = make(("Abc", "r", "x"), ("abd", "r", "x"))

    found = alias_closure(database, fact("a", "r", "x"), rule=lambda name: name[0].lower())

    assert found.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": ()}, "scope must name some of subject, relation, object"),
        ({"scope": ("subject", "value")}, "scope must name some of subject, relation, object"),
        ({"rule": "loose"}, "key must be one of published, strict or a function"),
    ],
)
def test_invalid_scope_and_key_are_rejected(make, fact, options, message):
    with pytest.raises(ValueError, match=message):
        alias_closure(make(), fact("a", "b", "c"), **options)


def letters(texts):
    """Embed a text as its counts of letters."""
    return np.array([[text.count(letter) for letter in "abcdefgh "] for text in texts], float)


def indices(closures):
    """Entries of closures as lists."""
    return [closure.tolist() for closure in closures]


def naive(database, closures, embed, radius):
    """Compare each entry of a closure with every entry."""
    vectors = embed([f"{s.lower()} {r.lower()}" for s, r, _ in database])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        sorted(
            {
                other
                for entry in closure
                for other in range(len(units))
                if 1 - units[entry] @ units[other] <= radius + 1e-6
            }
        )
        for closure in closures
    ]


WORDS = st.text("abc", min_size=1, max_size=3)


@settings(max_examples=50)
@given(
    triplets=st.lists(st.builds(Triplet, WORDS, WORDS, WORDS), min_size=1, max_size=10),
    radius=st.sampled_from([0.0, 0.05, 0.2, 0.5, 2.0]),
    data=st.data(),
)
def test_similarity_agrees_with_a_naive_implementation(triplets, radius, data):
    database = Triplets.of(triplets)
    entries = st.sets(st.integers(0, len(triplets) - 1), max_size=3)
    closures = [
        np.array(sorted(chosen), dtype=np.int64)
        for chosen in data.draw(st.lists(entries, min_size=1, max_size=3))
    ]

    found = similarity_closures(database, closures, embed=letters, radius=radius)

    assert indices(found) == naive(database, closures, letters, radius)


def test_radius_deletes_a_decoy_and_same_object_keeps_other_objects(make, fact):
    database = make(
        ("abc", "cap", "x"), ("abc h", "cap", "x"), ("abc", "cap h", "y"), ("ddd", "ggg", "x")
    )
    closures = alias_closures(database, [fact("abc", "cap", "x")])
    options = {"embed": letters, "radius": 0.2}

    every = similarity_closures(database, closures, **options)
    spared = similarity_closures(database, closures, same_object="published", **options)

    assert indices(every) == [[0, 1, 2]]
    assert np.setdiff1d(every[0], closures[0]).tolist() == [1, 2]
    assert indices(spared) == [[0, 1]]


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda texts: np.ones(len(texts)), r"one vector per text, shape \(1, d\); got \(1,\)"),
        (lambda texts: np.full((len(texts), 3), np.nan), "an invalid vector for 1 texts"),
        (lambda texts: np.zeros((len(texts), 3)), "such as 'a r'; a vector must be finite"),
    ],
    ids=["shape", "nan", "zero"],
)
def test_invalid_vectors_of_encoders_are_rejected(make, fact, embed, message):
    database = make(("a", "r", "x"), ("b", "r", "x"))
    closures = alias_closures(database, [fact("a", "r", "x")])

    with pytest.raises(RunnerError, match=message):
        similarity_closures(database, closures, embed=embed, radius=0.1)


@pytest.mark.parametrize(
    ("closures", "radius", "message"),
    [
        ([], -0.1, r"radius must be a cosine distance in \[0, 2\]"),
        ([], 2.1, r"radius must be a cosine distance in \[0, 2\]"),
        ([], float("nan"), r"radius must be a cosine distance in \[0, 2\]"),
        ([np.array([0, 4])], 0.1, "of this database of 1 triplets, got the index 4"),
    ],
)
def test_invalid_radius_and_closures_are_rejected(make, closures, radius, message):
    with pytest.raises(ValueError, match=message):
        similarity_closures(make(("a", "b", "c")), closures, embed=letters, radius=radius)


def test_empty_closures_stay_empty(make, fact):
    database = make(("a", "r", "x"))
    empty = alias_closures(database, [fact("b", "r", "x")])

    assert similarity_closures(database, [], embed=letters, radius=0.1) == []
    assert indices(similarity_closures(database, empty, embed=letters, radius=0.1)) == [[]]
