from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.retrieval.closure import AliasGroups, alias_closure, alias_closures
from surface_consistency.schemas import AuditPrompt, Triplet, TripletDatabase
from surface_consistency.text import folded, token_key

NAMES = st.sampled_from(["us", ".us", "US", "usa", "u s", "€", "$", "Ü", "ü"])
TRIPLETS = st.lists(st.builds(Triplet, NAMES, NAMES, NAMES), max_size=12, unique=True)
ALIASES = st.lists(NAMES, max_size=3).map(tuple)
FACTS = st.builds(
    AuditPrompt,
    prompt_id=st.just(0),
    fact_id=st.just(0),
    subject=NAMES,
    relation=NAMES,
    gold_object=NAMES,
    prompt_text=st.just("?"),
    subject_aliases=ALIASES,
    relation_aliases=ALIASES,
    object_aliases=ALIASES,
)
ROLES = ("subject", "relation", "object")


def database_of(triplets):
    """A database whose lists are not looked at."""
    return TripletDatabase(
        entities=(), relationships=(), return_values=(), triplets=tuple(triplets)
    )


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
        """Whether two names are one; names without a key are their own."""
        return key(one) == key(other) if key(one) or key(other) else one == other

    return [
        number
        for number, entry in enumerate(database.triplets)
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
def test_closure_agrees_with_a_naive_one(triplets, fact, key, scope):
    database = database_of(triplets)

    found = alias_closure(database, fact, key=key[0], scope=tuple(scope)).indices

    assert found.tolist() == naive_closure(database, fact, key[1], scope)


@pytest.mark.parametrize("key", [("published", token_key), ("strict", folded)], ids=lambda k: k[0])
def test_closures_of_the_published_facts_agree_with_naive_ones(published, key):
    of = cache(key[1])
    for database, facts in published.values():
        for fact, closure in zip(facts, alias_closures(database, facts, key=key[0]), strict=True):
            assert closure.indices.tolist() == naive_closure(database, fact, of)


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


@pytest.mark.parametrize("name", SIZES)
def test_published_deletions_have_these_sizes(published, name):
    sizes = [len(closure.indices) for closure in alias_closures(*published[name])]

    assert {size: sizes.count(size) for size in sorted(set(sizes))} == SIZES[name]


@given(triplets=TRIPLETS, fact=FACTS)
def test_closure_holds_the_fact_itself(triplets, fact):
    own = Triplet(fact.subject, fact.relation, fact.gold_object)

    closure = alias_closure(database_of([*triplets, own]), fact)

    assert len(triplets) in closure.indices


@given(triplets=TRIPLETS, fact=FACTS, extra=ALIASES, role=st.sampled_from(ROLES))
def test_closure_is_monotone_in_the_aliases(triplets, fact, extra, role):
    field = f"{role}_aliases"
    wider = fact.model_copy(update={field: getattr(fact, field) + extra})
    database = database_of(triplets)

    assert set(alias_closure(database, fact).indices) <= set(alias_closure(database, wider).indices)


@given(triplets=TRIPLETS, fact=FACTS)
def test_closure_is_idempotent(triplets, fact):
    """What a closure leaves states the fact no more."""
    database = database_of(triplets)
    gone = set(alias_closure(database, fact).indices.tolist())

    left = database_of(entry for i, entry in enumerate(triplets) if i not in gone)

    assert alias_closure(left, fact).indices.size == 0


@given(triplets=TRIPLETS, facts=st.lists(FACTS, min_size=1, max_size=4))
def test_groups_are_never_narrower_than_a_facts_own_aliases(triplets, facts):
    database = database_of(triplets)
    groups = AliasGroups.from_prompts(facts, database=database)

    for own, wide in zip(
        alias_closures(database, facts), alias_closures(database, facts, groups=groups), strict=True
    ):
        assert set(own.indices) <= set(wide.indices)


def test_names_without_letters_and_digits_are_their_own(make, fact):
    """Under the published key all of them would be one."""
    database = make(("EU", "Sign", "€"), ("EU", "Sign", "$"))

    assert alias_closure(database, fact("EU", "Sign", "€")).indices.tolist() == [0]


def test_scope_widens_the_deletion(make, fact):
    database = make(("a", "r", "x"), ("a", "r", "y"), ("b", "s", "x"))
    target = fact("a", "r", "x")

    found = {
        scope: alias_closure(database, target, scope=scope).indices.tolist()
        for scope in (("subject", "relation"), ("object",), ("relation", "object"))
    }

    assert found == {
        ("subject", "relation"): [0, 1],
        ("object",): [0, 2],
        ("relation", "object"): [0],
    }


def test_key_may_be_a_function(make, fact):
    database = make(("Abc", "r", "x"), ("abd", "r", "x"))

    found = alias_closure(database, fact("a", "r", "x"), key=lambda name: name[0].lower())

    assert found.indices.tolist() == [0, 1]


def test_equal_facts_share_one_closure(published):
    database, facts = published["countries/base"]

    one, *_, other = alias_closures(database, [facts[3], facts[4], facts[3]])

    assert one is other


def test_closure_cannot_be_written_to(published):
    closure = alias_closures(*published["countries/base"])[0]

    with pytest.raises(ValueError, match="read-only"):
        closure.indices[0] = 5


@pytest.mark.parametrize("scope", [(), ("subject", "value")])
def test_wrong_scope_is_rejected(make, fact, scope):
    with pytest.raises(ValueError, match="scope must name some of subject, relation, object"):
        alias_closure(make(), fact("a", "b", "c"), scope=scope)


def test_unknown_key_is_rejected(make, fact):
    with pytest.raises(ValueError, match="key must be one of published, strict or a function"):
        alias_closure(make(), fact("a", "b", "c"), key="loose")
