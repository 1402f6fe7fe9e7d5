from surface_consistency.schemas import LookupQuery
from surface_consistency.studies.audit.retrieval import alias_closures
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.studies.audit.retrieval.canonical import canonicalise


def test_two_aliased_entries_of_a_fact_become_one_record(published):
    """The alias topology has every fact twice; the canonical store has it once."""
    database, facts = published["countries/alias"]
    base, prompts = published["countries/base"]
    groups = AliasGroups.from_prompts(facts)
    preferred = [name for fact in prompts for name in (fact.subject, fact.relation)]

    made = canonicalise(database, groups, preferred=preferred)

    assert set(made.database) == set(base)
    assert (len(database), len(made.database)) == (200, 100)
    # The deletion of a fact removes one entry, and no pointer is left.
    assert {len(closure) for closure in alias_closures(made.database, facts)} == {1}
    again = canonicalise(made.database, groups, preferred=preferred)
    assert list(again.database) == list(made.database)


def test_records_contain_the_objects_of_their_entries(published):
    for database, facts in published.values():
        made = canonicalise(database, AliasGroups.from_prompts(facts, database=database))

        records = [
            (made.name("subject", s), made.name("relation", r), value) for s, r, value in database
        ]
        assert list(made.database) == list(dict.fromkeys(records))


def test_lookups_follow_the_pointers(published):
    database, facts = published["countries/alias"]
    made = canonicalise(
        database, AliasGroups.from_prompts(facts), preferred=["Japan", "Internet TLD"]
    )

    resolved = made.resolve(LookupQuery(entity="nippon", relation="internet suffix"))

    assert resolved == LookupQuery(entity="Japan", relation="Internet TLD")
    unknown = LookupQuery(entity="Atlantis", relation="Depth")
    assert made.resolve(unknown) == unknown


def test_objects_keep_their_names(make):
    groups = AliasGroups()
    groups.join("object", ["US Dollar", "USD"])
    database = make(("a", "r", "USD"))

    assert canonicalise(database, groups).database[0].object == "USD"


def test_an_alias_of_two_entities_does_not_merge_their_records(make, fact):
    """Otherwise the team of one athlete would be in the record of another."""
    database = make(
        ("Michael Jordan", "Sport", "Basketball"), ("Earvin", "Team", "Lakers"), ("MJ", "Born", "?")
    )
    groups = AliasGroups.from_prompts(
        [
            fact("Michael Jordan", "Sport", "Basketball", subjects=("MJ",)),
            fact("Magic Johnson", "Team", "Lakers", subjects=("MJ", "Earvin")),
        ]
    )

    made = canonicalise(database, groups)

    subjects = [entry.subject for entry in made.database]
    assert subjects == ["Michael Jordan", "Magic Johnson", "MJ"]
    assert groups.shared_aliases("subject") == {"MJ": ("Michael Jordan", "Magic Johnson")}
    query = LookupQuery(entity="mj", relation="Team")
    assert made.resolve(query) == query.model_copy(update={"entity": "MJ"})
