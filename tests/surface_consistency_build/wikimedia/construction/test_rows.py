import pytest
from surface_consistency_build.wikimedia.construction.rows import BuiltRow, checked_row

from surface_consistency.engine.features import read_parquet, to_parquet
from surface_consistency.errors import RecordError


@pytest.mark.parametrize(
    ("change", "named"), [({"question": ""}, "question"), ({"triplet_id": -1}, "triplet_id")]
)
def test_invalid_rows_are_rejected_when_written_and_when_read(tmp_path, built, change, named):
    row = next(iter(built.rows()))
    broken = row.model_copy(update=change)
    with pytest.raises(RecordError, match=f"fact .*: field '{named}'"):
        checked_row(broken)
    to_parquet(tmp_path / "rows.parquet", [row, broken], BuiltRow)
    with pytest.raises(RecordError, match=f"parquet:2: not a BuiltRow: field '{named}'"):
        list(read_parquet(tmp_path / "rows.parquet", BuiltRow))
