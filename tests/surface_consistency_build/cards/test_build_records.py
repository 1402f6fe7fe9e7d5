import hashlib

import pytest
from surface_consistency_build.cards.build_records import RowCounts, describe_files

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.schemas import Message


def test_row_counts_agrees_with_a_count_by_hand(built_rows):
    counts = RowCounts()
    passed = list(counts.watch("test", iter(built_rows)))

    assert passed == built_rows
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


def test_row_counts_are_sums_over_splits(built_rows):
    counts = RowCounts()
    list(counts.watch("test", built_rows[:8]))
    list(counts.watch("validation", built_rows[8:]))

    assert counts.rows == {"test": 8, "validation": 2}
    assert counts.facts == {"test": 1, "validation": 1}
    assert counts.relations == {"place_of_birth": 1, "occupation": 1}


def test_row_counts_counts_rows_of_other_records():
    counts = RowCounts()
    list(counts.watch("train", [Message(role="user", content="hello")]))

    assert counts.rows == {"train": 1}
    assert not counts.facts


def test_row_counts_rejects_rows_with_the_same_key(built_rows):
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))

    with pytest.raises(
        DataError,
        match=r"split 'test': rows 2 and 11 have the same key \(triplet_id=1, "
        r"subject_surface='Cat Stevens', template='paraphrase'\)",
    ):
        list(counts.watch("test", [*built_rows, built_rows[1]]))


def test_row_counts_takes_one_key_in_two_splits(built_rows):
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))
    list(counts.watch("test", built_rows))

    assert len(list(counts.watch("validation", built_rows))) == 10


@pytest.fixture
def files(tmp_path):
    """Two small dumps."""
    for name, content in (
        ("enwiki-20260101-page.sql.gz", b"abc"),
        ("pageviews-202412-user.bz2", b"defg"),
    ):
        (tmp_path / name).write_bytes(content)
    return sorted(tmp_path.iterdir())


def test_describe_files_agrees_with_hashlib(files):
    page, views = describe_files(files)

    assert page.model_dump() == {
        "name": "enwiki-20260101-page.sql.gz",
        "date": "20260101",
        "n_bytes": 3,
        "sha1": hashlib.sha1(b"abc", usedforsecurity=False).hexdigest(),
    }
    assert (views.date, views.n_bytes) == ("202412", 4)


def test_describe_files_leaves_checksums_and_dates_out(files, tmp_path):
    latest = tmp_path / "latest-all.json.bz2"
    latest.write_bytes(b"x")
    (described,) = describe_files([latest], checksums=False)

    assert (described.date, described.sha1, described.n_bytes) == (None, None, 1)


def test_describe_files_rejects_a_missing_file(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"no file .*absent"):
        describe_files([tmp_path / "absent"])
