from surface_consistency.schemas import LookupQuery
from surface_consistency.studies.audit.retrieval import alias_closures
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.studies.audit.retrieval.canonical import canonicalise


def test_two_aliased_entries_of_a_fact_become_one_record(published):
    """The alias topology has every fact twice; the canonical store has it once."""
    database, facts = published["countries/alias"]
    _, base = published["countries/base"]

    made = canonicalise(
        database,
        AliasGroups.from_prompts(facts),
        preferred=[name for fact in base for name in (fact.subject, fact.relation)],
    )

    assert set(made.database) == set(published["countries/base"][0])
    assert (len(database), len(made.database)) == (200, 100)


def test_deletion_of_a_canonical_record_needs_one_entry(published):
    database, facts = published["sports/alias"]
    made = canonicalise(database, AliasGroups.from_prompts(facts))

    sizes = {len(closure) for closure in alias_closures(made.database, facts)}

    assert sizes == {1}


def test_records_hold_the_objects_of_their_entries(published):
    for database, facts in published.values():
        made = canonicalise(database, AliasGroups.from_prompts(facts, database=database))

        records = [
            (
                made.name("subject", entry.subject),
                made.name("relation", entry.relation),
                entry.object,
            )
            for entry in database
        ]
        assert list(made.database) == list(dict.fromkeys(records))


def test_canonicalising_is_idempotent(published):
    database, facts = published["politicians/alias"]
    groups = AliasGroups.from_prompts(facts)

    once = canonicalise(database, groups)

    assert list(canonicalise(once.database, groups).database) == list(once.database)


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


def test_an_alias_of_two_things_makes_them_not_one(make, fact):
    """Else one athlete's team would be written to the other's record."""
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

    assert [entry.subject for entry in made.database] == [
        "Michael Jordan",
        "Magic Johnson",
        "MJ",
    ]
    assert groups.shared_aliases("subject") == {"MJ": ("Michael Jordan", "Magic Johnson")}
    query = LookupQuery(entity="mj", relation="Team")
    assert made.resolve(query) == query.model_copy(update={"entity": "MJ"})
