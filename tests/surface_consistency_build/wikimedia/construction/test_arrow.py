import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia.construction.database import (
    TableWriter,
    Tally,
    surfaces_of,
    text_column,
)

from surface_consistency.text import surface_from_title

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PIECES = [*"A_ ()\u3000\xa0\n\x1fé\u200bx", "(b)", "_(c)"]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.lists(st.sampled_from(PIECES)).map("".join), st.text())))
def test_surfaces_of_agrees_with_surface_from_title(titles):
    expected = [None if title is None else surface_from_title(title) for title in titles]

    assert surfaces_of(pa.array(titles, pa.string())).to_pylist() == expected


def test_text_column_drops_and_counts_texts_that_are_not_utf8():
    batch = pa.RecordBatch.from_pydict(
        {"n": [1, 2, 3], "t": pa.array([b"a", b"\xff", None], pa.binary())}
    )
    tally = Tally()

    kept, texts = text_column(batch, "t", tally)

    assert kept["n"].to_pylist() == [1, 3]
    assert texts.to_pylist() == ["a", None]
    assert tally.removed == {"title is not UTF-8": 1}


def test_table_writer_gives_the_same_bytes_for_any_batches(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    for name, size in (("a", 7), ("b", 1_000)):
        with TableWriter(tmp_path / name, schema) as writer:
            for start in range(0, 5_000, size):
                numbers = list(range(start, min(start + size, 5_000)))
                writer.write(pa.RecordBatch.from_pydict({"n": numbers}, schema=schema))

    assert pq.read_table(tmp_path / "a")["n"].to_pylist() == list(range(5_000))
    assert pq.read_table(tmp_path / "a") == pq.read_table(tmp_path / "b")
    with TableWriter(tmp_path / "empty", schema):
        pass
    assert pq.read_table(tmp_path / "empty").num_rows == 0
