import pytest
from surface_consistency_build.wikimedia.construction import (
    BuiltRow,
    read_rows,
    rows as rows_module,
)
from surface_consistency_build.wikimedia.construction.rows import row_schema, write_rows

from surface_consistency.errors import RecordError, SourceNotFoundError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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


def test_written_rows_are_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", 1_000)
    rows = [ROW.model_copy(update={"triplet_id": number}) for number in range(2_500)]

    assert write_rows(tmp_path / "rows.parquet", iter(rows)) == 2_500
    assert list(read_rows(tmp_path / "rows.parquet")) == rows


def test_write_rows_rejects_a_row_that_breaks_its_record(tmp_path):
    with pytest.raises(RecordError, match="fact 3: field 'question'"):
        write_rows(tmp_path / "rows.parquet", [ROW.model_copy(update={"question": ""})])


def test_read_rows_names_the_row_that_breaks_its_record(tmp_path):
    broken = [ROW.model_dump(), ROW.model_dump() | {"triplet_id": -1}]
    pq.write_table(pa.Table.from_pylist(broken, row_schema()), tmp_path / "rows.parquet")

    with pytest.raises(RecordError, match=r"row 1: field 'triplet_id'"):
        list(read_rows(tmp_path / "rows.parquet"))


def test_read_rows_rejects_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SourceNotFoundError, match="build them first"):
        list(read_rows(tmp_path / "rows.parquet"))
