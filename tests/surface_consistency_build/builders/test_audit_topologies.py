from itertools import product

import pytest
from hypothesis import given, strategies as st
from surface_consistency_build.builders.audit_databases.fact_tables import (
    DOMAINS,
    Aliases,
    FactTable,
    RelatedFact,
    load_fact_table,
)
from surface_consistency_build.builders.audit_databases.topologies import (
    POINTER_RELATIONS,
    PUBLISHED_TOPOLOGIES,
    TOPOLOGIES,
    build_topology,
)

from surface_consistency.errors import DataError
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.base_facts import base_facts
from surface_consistency.studies.audit.files import read_database
from surface_consistency.text import folded, token_key
from tests.made_data import published  # noqa: F401 - fixtures

# Number of triplets that differ from the published ones; DIFFERENCES.md gives the reasons.
CORRECTED = {"countries/alias": 5, "sports/alias": 20}
CORRECTED |= dict.fromkeys(("countries/noise", "politicians/noise", "politicians/collision"), 2)
NAMES = st.text("abc", min_size=1, max_size=3)
FACTS = st.sets(st.builds(Triplet, NAMES, NAMES, NAMES), min_size=1)


def entries(table, topology):
    """The entries of a topology."""
    return tuple(build_topology(table, topology).database)


@pytest.mark.parametrize(
    ("domain", "topology"), list(product(DOMAINS, PUBLISHED_TOPOLOGIES)), ids="/".join
)
def test_databases_equal_the_published_ones_except_for_corrections(published, domain, topology):
    """Size, order and triplets are equal, except for corrected triplets."""
    name = f"{domain}/{topology}"
    theirs = tuple(read_database(published[name][0]))

    ours = entries(load_fact_table(domain), topology)

    assert len(ours) == len(theirs)
    different = sum(one != other for one, other in zip(ours, theirs, strict=True))
    assert different == len(set(ours) - set(theirs)) == CORRECTED.get(name, 0)


@pytest.mark.parametrize(("domain", "topology"), list(product(DOMAINS, TOPOLOGIES)), ids="/".join)
def test_targets_are_the_facts_and_object_aliases_are_not_names_of_the_subject(domain, topology):
    """A model that repeats the subject is not scored as correct because of an alias."""
    made = build_topology(load_fact_table(domain), topology)
    facts = [Triplet(item.subject, item.relation, item.gold_object) for item in made.targets]

    assert [item.prompt_id for item in made.targets] == list(range(len(facts)))
    if topology == "pointer":
        assert facts == list(entries(load_fact_table(domain), "alias"))
    else:
        assert facts == list(made.database)
    for item in made.targets:
        subject_keys = {token_key(name) for name in (item.subject, *item.subject_aliases)}
        assert not subject_keys & {token_key(name) for name in item.object_aliases}
        for names in (item.subject_aliases, item.relation_aliases, item.object_aliases):
            assert len({folded(name) for name in names}) == len(names)


@pytest.mark.parametrize("domain", DOMAINS)
def test_pointers_contain_only_names_and_not_objects_of_facts(domain):
    """After deletion of the fact, its value only remains if it is the name of a subject."""
    table = load_fact_table(domain)
    made = entries(table, "pointer")
    names = {fact.subject for fact in table.facts} | {fact.relation for fact in table.facts}

    assert made[: len(table.facts)] == table.facts
    for _, relation, value in made[len(table.facts) :]:
        assert relation in POINTER_RELATIONS.values()
        assert value in names


def test_alias_topology_of_a_custom_table(rivers):
    made = build_topology(rivers, "alias")

    assert tuple(made.database) == (
        Triplet("Rhine", "Flows Into", "North Sea"),
        Triplet("Rhine", "Mouth", "North Sea"),
        Triplet("Donau", "Flows Into", "Black Sea"),
        Triplet("Duna", "Mouth", "Black Sea"),
        Triplet("Donau", "Length", "2,850 km"),
        Triplet("Duna", "Length", "2,850 km"),
    )
    assert made.targets[2].subject_aliases == ("Danube", "Duna", "Dunaj")
    assert made.targets[2].object_aliases == ("Pontos",)


def test_decoys_of_a_custom_table_have_the_same_objects(rivers):
    made = entries(rivers, "noise")

    assert len(made) == 6
    for fact, decoy in zip(made[:3], made[3:], strict=True):
        assert decoy.object == fact.object
        assert decoy.subject != fact.subject


def test_near_misses_of_a_custom_table_share_only_the_subject(rivers):
    made = entries(rivers, "collision")

    assert made[3:] == (
        Triplet("Rhine", "Mouth of Danube", "Black Sea"),
        Triplet("Danube", "Mouth of Rhine", "North Sea"),
    )


@pytest.mark.parametrize("n_topologies", [1, 2, 4, 6])
@pytest.mark.parametrize("lists_others", [True, False])
def test_clusters_of_any_number_of_topologies_are_the_facts(n_topologies, lists_others):
    """Aliases, decoys and near misses of a fact are in its cluster, both listed and drawn ones."""
    facts = tuple(Triplet(f"River {n}", "Mouth", f"Sea {n}") for n in range(40))
    aliases = [Aliases(name=fact.subject, aliases=(f"Flumen {fact.subject}",)) for fact in facts]

    def near(subject, relation):
        """One related entry with other names per fact."""
        made = (Triplet(subject.format(fact.subject), relation, fact.object) for fact in facts)
        return tuple(
            RelatedFact(triplet=one, near=fact[:2]) for one, fact in zip(made, facts, strict=True)
        )

    listed = {"noise": near("Valley of {}", "Drains Into"), "collision": near("{}", "Source")}
    table = FactTable(
        name="rivers", facts=facts, aliases=tuple(aliases), **(listed if lists_others else {})
    )
    topologies = TOPOLOGIES[:n_topologies]

    found = base_facts(
        [(one, target) for one in topologies for target in build_topology(table, one).targets]
    )

    assert {fact.name for fact in found} == {f"{fact.subject} | Mouth" for fact in facts}
    assert all(fact.is_linked for fact in found)


@given(FACTS, st.integers(0, 3))
def test_near_misses_of_questions_with_several_objects_are_made_once(facts, seed):
    """Two facts of one subject and relation may draw the same near miss."""
    extra = {Triplet(f"{fact.subject} too", fact.relation, "other") for fact in facts}
    table = FactTable(name="t", facts=tuple(sorted(facts | extra)))

    made = build_topology(table, "collision", seed=seed)

    stated = {Triplet(item.subject, item.relation, item.gold_object) for item in made.targets}
    assert len(stated) == len(made.targets) == len(made.database)
    assert set(table.facts) < stated
    assert all(" of " in fact.relation for fact in stated - set(table.facts))


def test_near_misses_that_are_facts_and_pointers_to_the_subject_are_excluded():
    facts = (Triplet("a", "r", "x"), Triplet("b", "r", "y"), Triplet("a", "r of b", "y"))
    decoy = RelatedFact(triplet=Triplet("A", "s", "o"), near=("a", "r"))
    table = FactTable(name="t", facts=(Triplet("a", "r", "o"),), noise=(decoy,))

    made = entries(FactTable(name="t", facts=facts), "collision")

    assert made == (*facts, Triplet("b", "r of a", "x"))
    assert entries(table, "pointer") == table.facts


def test_near_misses_depend_on_the_seed():
    facts = tuple(Triplet(f"s{i}", "r", f"o{i}") for i in range(30))
    table = FactTable(name="t", facts=facts)

    one, other = (list(build_topology(table, "collision", seed=seed).database) for seed in (1, 2))

    assert one != other


def test_paraphrases_of_a_custom_table_are_forms_of_the_fact(rivers):
    made = build_topology(rivers, "paraphrase")

    assert tuple(made.database[2:4]) == (
        Triplet("Danube", "Mouth", "Black Sea"),
        Triplet("Mouth of Danube", "Is", "Black Sea"),
    )
    assert "Mouth of Danube" in made.targets[2].subject_aliases
    assert "Danube" in made.targets[3].subject_aliases
    assert made.targets[2].relation_aliases == ("Flows Into", "Is")


@given(FACTS, st.sampled_from(["base", "noise", "paraphrase"]))
def test_every_fact_of_any_table_is_a_target_once(facts, topology):
    table = FactTable(name="t", facts=tuple(sorted(facts)))

    made = build_topology(table, topology)

    stated = [(item.subject, item.relation, item.gold_object) for item in made.targets]
    assert len(stated) == len(set(stated)) == len(made.database)
    assert facts <= set(stated)


SHARED_ALIAS = FactTable(
    name="t",
    facts=(Triplet("a", "r", "o"), Triplet("b", "r", "o")),
    aliases=(Aliases(name="a", aliases=("c",)), Aliases(name="b", aliases=("c",))),
)
SINGLE = FactTable(name="one", facts=(Triplet("s", "r", "o"),))


@pytest.mark.parametrize(
    ("table", "topology", "error", "message"),
    [
        (SINGLE, "collision", DataError, "lists no near misses and none can be drawn"),
        (SHARED_ALIAS, "alias", DataError, "repeats triplet"),
        (SINGLE, "star", ValueError, "topology must be one of base, alias, noise"),
    ],
)
def test_topologies_that_cannot_be_built_raise_an_error(table, topology, error, message):
    with pytest.raises(error, match=message):
        build_topology(table, topology)
