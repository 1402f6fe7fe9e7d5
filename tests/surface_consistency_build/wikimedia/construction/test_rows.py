import pytest
from surface_consistency_build.wikimedia.construction.rows import BuiltRow, checked_row

from surface_consistency.engine.features import read_parquet, to_parquet
from surface_consistency.errors import RecordError

ROW = BuiltRow(
    triplet_id=3,
    subject_id="Q1",
    subject_surface="ППК",
    subject_surface_category=("Redirects_from_initialisms",),
    subject_wiki_title="Walther PPK",
    subject_redirect_wiki_title="ППК",
    subject_pageviews=5,
    subject_aliases=(),
    relation="country",
    relation_id="P17",
    object_id="Q183",
    object_surface="Germany",
    object_aliases=("Germany", "BRD"),
    template="original",
    question="In what country is ППК?",
    object_surface_category=("__MAIN__",),
    object_wiki_title=None,
    object_redirect_wiki_title=None,
    object_pageviews=None,
    redirect_pageviews=0,
    n_objects=1,
)


@pytest.mark.parametrize(
    ("change", "named"), [({"question": ""}, "question"), ({"triplet_id": -1}, "triplet_id")]
)
def test_a_row_that_breaks_its_record_is_refused_when_written_and_when_read(
    tmp_path, change, named
):
    broken = ROW.model_copy(update=change)
    with pytest.raises(RecordError, match=f"fact .*: field '{named}'"):
        checked_row(broken)
    to_parquet(tmp_path / "rows.parquet", [ROW, broken], BuiltRow)
    with pytest.raises(RecordError, match=f"parquet:2: not a BuiltRow: field '{named}'"):
        list(read_parquet(tmp_path / "rows.parquet", BuiltRow))
