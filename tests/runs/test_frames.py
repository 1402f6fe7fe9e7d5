import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.runs import frames
from surface_consistency.schemas import Record


@pytest.mark.parametrize("n_at_once", [1, 2, 100])
def test_shared_lists_agree_with_to_pylist(n_at_once, monkeypatch):
    """Whatever the chunks, and equal lists are one object."""
    monkeypatch.setattr(frames, "_ROWS_AT_ONCE", n_at_once)
    values = [["a", "b"], None, [], ["é"], ["a", "b"]]
    column = pa.chunked_array([pa.array(values[:2]), pa.array(values[2:])])

    made = frames.shared_lists(column)

    assert [None if item is None else list(item) for item in made] == values
    assert made[0] is made[4]
    assert frames.shared_lists(pa.chunked_array([], pa.list_(pa.string()))) == []


class Counted(Record):
    """A whole number that may be missing."""

    count: int | None


def test_whole_numbers_beside_gaps_keep_all_digits(tmp_path):
    """A frame that is made, written and read back has no float in between."""
    path, counts = tmp_path / "x.parquet", [2**53 + 1, None, 2**63 - 1]

    frame = frames.make_frame({"count": counts}, Counted)
    frames.write_frame(path, frame, Counted)
    back = frames.read_frame(path, Counted, remedy="make it")

    for made in (frame, back):
        assert [None if pd.isna(n) else int(n) for n in made["count"]] == counts
        assert made["count"].dtype == "Int64"
    # Floats that pandas has made of whole numbers beside gaps.
    frames.write_frame(path, pd.DataFrame({"count": [3.0, float("nan")]}), Counted)
    assert pq.read_table(path)["count"].to_pylist() == [3, None]
