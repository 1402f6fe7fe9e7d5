import pyarrow as pa
import pytest

from surface_consistency.runs import frames


@pytest.mark.parametrize("n_at_once", [1, 2, 100])
def test_shared_lists_agree_with_to_pylist(n_at_once, monkeypatch):
    """Whatever the chunks, and equal lists are one object."""
    monkeypatch.setattr(frames, "_ROWS_AT_ONCE", n_at_once)
    values = [["a", "b"], None, [], ["é"], ["a", "b"]]
    column = pa.chunked_array([pa.array(values[:2]), pa.array(values[2:])])

    made = frames.shared_lists(column)

    assert [None if item is None else list(item) for item in made] == values
    assert made[0] is made[4]


def test_shared_lists_of_no_rows():
    """No rows give no lists."""
    assert frames.shared_lists(pa.chunked_array([], pa.list_(pa.string()))) == []
