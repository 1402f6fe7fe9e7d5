import pytest

from surface_consistency.data.publishing import RowCounts
from surface_consistency.errors import DataError
from surface_consistency.schemas import Message


def test_row_counts_agrees_with_a_count_by_hand(rows):
    counts = RowCounts()
    passed = list(counts.watch("test", iter(rows)))

    assert passed == rows
    assert counts.rows == {"test": 10}
    assert counts.facts == {"test": 2}
    assert counts.canonical == {"test": 2}
    assert counts.redirects == {"test": 3}
    assert counts.categories == {
        "Redirects_from_pseudonyms": 1,
        "Redirects_from_personal_names": 1,
        "Redirects_from_misspellings": 1,
    }
    assert counts.types == {"alternative_names_and_abbreviations": 2, "typical_errors": 1}
    assert counts.relations == {"place_of_birth": 1, "occupation": 1}
    assert counts.templates == {"original": 5, "paraphrase": 5}


def test_row_counts_are_sums_over_splits(rows):
    counts = RowCounts()
    list(counts.watch("test", rows[:8]))
    list(counts.watch("validation", rows[8:]))

    assert counts.rows == {"test": 8, "validation": 2}
    assert counts.facts == {"test": 1, "validation": 1}
    assert counts.relations == {"place_of_birth": 1, "occupation": 1}


def test_row_counts_counts_rows_of_other_records():
    counts = RowCounts()
    list(counts.watch("train", [Message(role="user", content="hello")]))

    assert counts.rows == {"train": 1}
    assert not counts.facts


def test_row_counts_rejects_rows_with_the_same_key(rows):
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))

    with pytest.raises(
        DataError,
        match=r"split 'test': rows 2 and 11 have the same key \(triplet_id=1, "
        r"subject_surface='Cat Stevens', template='paraphrase'\)",
    ):
        list(counts.watch("test", [*rows, rows[1]]))


def test_row_counts_takes_one_key_in_two_splits(rows):
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))
    list(counts.watch("test", rows))

    assert len(list(counts.watch("validation", rows))) == 10
