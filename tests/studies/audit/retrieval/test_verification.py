from itertools import product

import pytest

from surface_consistency.errors import DataError
from surface_consistency.studies.audit.retrieval import (
    Triplets,
    alias_closures,
    closure_counts,
    verify_closures,
)
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.studies.audit.retrieval.verification import database_coverage


def left_by(database, facts):
    """Delete as published and verify; one item per fact, and the counts."""
    left = verify_closures(database, facts, alias_closures(database, facts))
    return list(left.itertuples()), closure_counts(left)


def test_overwritten_aliases_leave_a_triplet(published):
    """Twenty published deletions take one of two triplets, and the other still states the fact."""
    database, facts = published["politicians/alias"]

    items, counts = left_by(database, facts)

    left = [item for item in items if item.remaining]
    assert len(left) == counts["n_incomplete"] == 20
    assert {item.relation for item in left} == {"Country Represented"}
    for item in left:
        (entry,) = item.remaining
        assert database[entry].relation == "Nation Led"
        assert database[entry].object == item.gold_object
    assert not counts["closure_is_complete"]
    assert "deletion INCOMPLETE: 20 of 240" in counts["summary"]


def test_other_published_deletions_are_complete(published):
    found = {name: left_by(*cell)[1] for name, cell in published.items()}

    incomplete = [name for name, counts in found.items() if counts["n_incomplete"]]
    assert incomplete == ["politicians/alias"]
    assert sum(counts["n_absent"] for counts in found.values()) == 0


def test_iso_codes_remain_as_internet_suffixes(published):
    """In 19 of 20 countries the published key reads ".us" as "US"; for the UK it is "GB"."""
    database, facts = published["countries/base"]

    items, _ = left_by(database, facts)

    sharing = [item for item in items if item.shared_by_punctuation]
    assert [item.relation for item in sharing].count("ISO Code") == 19
    assert [item.relation for item in sharing].count("Internet TLD") == 19
    assert "United Kingdom" not in {item.subject for item in sharing}
    code = next(item for item in sharing if item.relation == "ISO Code")
    assert database[code.shared_surface[0]].object == f".{code.gold_object.lower()}"


def test_capitals_remain_as_largest_cities(published):
    """They are equal under any key, so punctuation is not the cause."""
    items, _ = left_by(*published["countries/collision"])

    capitals = [item for item in items if item.relation == "Capital"]
    assert sum(bool(item.shared_surface) for item in capitals) == 13
    assert sum(bool(item.shared_by_punctuation) for item in capitals) == 0


def test_objects_that_are_their_subjects_are_found(published):
    items, counts = left_by(*published["sports/base"])

    echoing = {(item.subject, item.relation) for item in items if item.echoes}
    assert ("Barcelona", "City") in echoing
    assert ("Lionel Messi", "Nickname") in echoing
    assert ("Lionel Messi", "Birth Year") not in echoing
    assert counts["n_echoing"] == len(echoing) == 13


def test_groups_complete_the_deletion(published):
    database, facts = published["politicians/alias"]
    groups = AliasGroups.from_prompts(facts)

    closures = alias_closures(database, facts, rule=groups)

    assert not verify_closures(database, facts, closures)["remaining"].map(len).any()
    assert {len(closure) for closure in closures} == {2}


def test_unpaired_closures_are_rejected(published):
    database, facts = published["sports/base"]
    closures = alias_closures(database, facts)

    with pytest.raises(ValueError, match="differ in number: 100, 99"):
        verify_closures(database, facts, closures[1:])
    with pytest.raises(ValueError, match="of this database of 100 triplets, got the index 101"):
        verify_closures(database, facts, [closures[0] + 101, *closures[1:]])


def test_entries_kept_only_by_a_shared_alias_are_marked(make, fact):
    """Another athlete's fact is listed, since an alias may be missing, and marked."""
    database = make(
        ("Michael Jordan", "Sport", "Basketball"),
        ("Magic Johnson", "Sport", "Basketball"),
        ("His Airness", "Sport", "Basketball"),
    )
    facts = [
        fact("Michael Jordan", "Sport", "Basketball", subjects=("MJ",)),
        fact("Magic Johnson", "Sport", "Basketball", subjects=("MJ",)),
        fact("His Airness", "Sport", "Basketball", subjects=("Michael Jordan",)),
    ]

    items, counts = left_by(database, facts)

    assert [item.remaining for item in items] == [(1, 2), (0, 2), (1,)]
    assert [item.by_shared_alias for item in items] == [(1,), (0, 2), (1,)]
    assert counts["n_incomplete"] == 3
    assert "(2 only by an alias of two entities)" in counts["summary"]


def test_many_facts_are_checked_as_if_one_by_one(published):
    """Similar facts together, in any number: remaining entries are reported per fact."""
    database, facts = published["politicians/alias"]
    closures = alias_closures(database, facts)
    groups = AliasGroups.from_prompts(facts, database=database)

    left = verify_closures(database, facts, closures, groups=groups)

    assert left.equals(verify_closures(database, facts, closures))
    for fact, closure, item in zip(facts, closures, left.to_dict("records"), strict=True):
        alone = verify_closures(database, [fact], [closure], groups=groups)
        assert alone.to_dict("records") == [item]
    assert closure_counts(verify_closures(database, [], []))["n_items"] == 0


def test_names_outside_all_groups_are_equivalent_by_their_key(make, fact):
    database = make(("U.S.", "Capital", "Washington"), ("usa", "Capital", "Washington"))
    facts = [fact("u s", "capital", "WASHINGTON"), fact("b", "capital", "Washington")]

    closures = alias_closures(database, facts, rule=AliasGroups())
    left = verify_closures(database, facts, closures, groups=AliasGroups())

    assert [closure.tolist() for closure in closures] == [[0], []]
    assert left["remaining"].tolist() == [(), ()]
    assert closure_counts(left)["n_absent"] == 1


def test_empty_prompts_and_prompts_of_another_domain_are_rejected(published):
    for (name, (database, _)), (other, (_, prompts)) in product(published.items(), repeat=2):
        if name.split("/")[0] != other.split("/")[0]:
            with pytest.raises(DataError, match="they belong to another database"):
                database_coverage(database, prompts)
    with pytest.raises(ValueError, match="at least one prompt"):
        database_coverage(Triplets.of([]), [])
