import hashlib

import pytest
from surface_consistency_build.cards.build_records import RowCounts, describe_file

from surface_consistency.errors import DataError, SourceNotFoundError


def test_row_counts_agree_with_manual_counts(built_rows):
    counts = RowCounts()
    passed = list(counts.watch("test", iter(built_rows)))

    assert passed == built_rows
    assert counts.rows == {"test": 10}
    assert counts.facts == {"test": 2}
    assert counts.canonical == {"test": 2}
    assert counts.redirects == {"test": 3}
    kinds = ("pseudonyms", "personal_names", "misspellings")
    assert counts.categories == {f"Redirects_from_{kind}": 1 for kind in kinds}
    assert counts.types == {"alternative_names_and_abbreviations": 2, "typical_errors": 1}
    assert counts.relations == {"place_of_birth": 1, "occupation": 1}
    assert counts.templates == {"original": 5, "paraphrase": 5}


def test_row_counts_rejects_rows_with_the_same_key(built_rows):
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))

    key = r"\(triplet_id=1, subject_surface='Cat Stevens', template='paraphrase'\)"
    with pytest.raises(DataError, match=f"'test': rows 2 and 11 have the same key {key}"):
        list(counts.watch("test", [*built_rows, built_rows[1]]))


def test_row_counts_are_sums_over_splits(built_rows):
    """One key may occur in two splits; rows of other layouts are only counted."""
    counts = RowCounts(key=("triplet_id", "subject_surface", "template"))
    list(counts.watch("test", built_rows[:8]))
    list(counts.watch("validation", built_rows[6:]))
    other = RowCounts()
    list(other.watch("train", [{"role": "user", "content": "hello"}]))

    assert counts.rows == {"test": 8, "validation": 4}
    assert counts.facts == {"test": 1, "validation": 2}
    assert counts.relations == {"place_of_birth": 2, "occupation": 1}
    assert (other.rows, other.facts) == ({"train": 1}, {})


def test_describe_file_agrees_with_hashlib(tmp_path):
    names = ("enwiki-20260101-page.sql.gz", "pageviews-202412-user.bz2", "latest-all.json.bz2")
    for name in names:
        (tmp_path / name).write_bytes(b"abc")
    page, views, latest = (describe_file(tmp_path / name) for name in names)

    sha1 = hashlib.sha1(b"abc", usedforsecurity=False).hexdigest()
    given = {"name": names[0], "date": "20260101", "n_bytes": 3, "sha1": sha1}
    assert page.model_dump() == given
    assert (views.date, latest.date) == ("202412", None)
    assert describe_file(tmp_path / names[0], checksum=False).sha1 is None
    with pytest.raises(SourceNotFoundError, match=r"file .*absent not found"):
        describe_file(tmp_path / "absent")
