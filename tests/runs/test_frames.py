import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.runs import frames
from surface_consistency.schemas import Record


@pytest.mark.parametrize("n_at_once", [1, 2, 100])
def test_shared_lists_agree_with_to_pylist(n_at_once, monkeypatch):
    """With any chunks; equal lists are one object."""
    monkeypatch.setattr(frames, "_ROWS_AT_ONCE", n_at_once)
    values = [["a", "b"], None, [], ["é"], ["a", "b"]]
    column = pa.chunked_array([pa.array(values[:2]), pa.array(values[2:])])

    made = frames.shared_lists(column)

    assert [None if item is None else list(item) for item in made] == values
    assert made[0] is made[4]
    assert frames.shared_lists(pa.chunked_array([], pa.list_(pa.string()))) == []


class Counted(Record):
    """An integer that may be missing."""

    count: int | None


def test_integers_in_a_column_with_missing_values_keep_all_digits(tmp_path):
    """A frame that is made, written and read back is not converted to floats."""
    path, counts = tmp_path / "x.parquet", [2**53 + 1, None, 2**63 - 1]

    frame = frames.make_frame({"count": counts}, Counted)
    frames.write_frame(path, frame, Counted)
    back = frames.read_frame(path, Counted, remedy="make it")

    for made in (frame, back):
        assert [None if pd.isna(n) else int(n) for n in made["count"]] == counts
        assert made["count"].dtype == "Int64"
    # Floats that pandas made of integers in a column with missing values.
    frames.write_frame(path, pd.DataFrame({"count": [3.0, float("nan")]}), Counted)
    assert pq.read_table(path)["count"].to_pylist() == [3, None]
