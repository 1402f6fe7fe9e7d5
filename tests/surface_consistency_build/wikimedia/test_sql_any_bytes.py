"""Properties of the reader on generated dumps; the writer is independent of the reader."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia import _sql_rows, _sql_statements
from surface_consistency_build.wikimedia.sql import read_sql

from surface_consistency.errors import DataError

COLUMNS = ["id", "key", "note", "share", "type", "price"]
KINDS = ["integer", "bytes", "bytes", "float", "bytes", "decimal"]
HEAD = (
    b"CREATE TABLE `t` (`id` bigint(20) NOT NULL, `key` varbinary(230), `note` blob, "
    b"`share` double, `type` enum('page','subcat'), `price` decimal(9,2));\n"
)
MYSQLDUMP = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}


def plain_literal(value):
    """A literal in the format of mysqldump."""
    return b"'" + b"".join(MYSQLDUMP.get(byte, bytes([byte])) for byte in value) + b"'"


def odd_literal(value, style):
    """A literal in a format of other programs."""
    if style == 0:
        return b"'" + value.replace(b"\\", b"\\\\").replace(b"'", b"''") + b"'"
    if style == 1 and value:
        return b"0x" + value.hex().encode()
    if style == 2:
        return b"_binary " + plain_literal(value)
    if style == 3:
        return b"x'" + value.hex().upper().encode() + b"'"
    return plain_literal(value)


tricky = st.one_of(
    st.binary(max_size=20),
    st.lists(
        st.sampled_from(
            [b"'", b"\\", b"),(", b"(", b",", b";\n", b"NULL", b"INSERT INTO `t` VALUES (",
             b"\x00", b"\n", b"\x1a", b'"', b"`", b"--", b"/*", b"\xff\xfe", b"a", b"*+"]
        ),
        max_size=6,
    ).map(b"".join),
)  # fmt: skip
table_rows = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.none() | tricky,
        st.none() | tricky,
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([b"page", b"subcat", None]),
        st.none() | st.decimals(-9999, 9999, places=2).map(lambda x: b"%.2f" % x),
    ),
    max_size=12,
)


def write_row(row, odd):
    values = []
    for value, kind in zip(row, KINDS, strict=True):
        if value is None:
            values.append(b"NULL")
        elif kind == "bytes":
            style = None if odd is None else int(odd.integers(0, 5))
            values.append(plain_literal(value) if style is None else odd_literal(value, style))
        else:
            values.append(value if kind == "decimal" else repr(value).encode())
    return b"(" + b",".join(values) + b")"


@settings(max_examples=100, deadline=None)
@given(
    rows=table_rows,
    per_insert=st.integers(1, 5),
    between=st.sampled_from([b",", b",\n", b" ,\n  "]),
    is_odd=st.booleans(),
    first_read=st.sampled_from([1, 7, 64, 1 << 19]),
    stretch=st.sampled_from([16, 100, 1 << 18]),
    wanted=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True),
)
def test_any_dumped_rows_are_read_back_unchanged(
    rows, per_insert, between, is_odd, first_read, stretch, wanted
):
    """The result does not depend on the sizes of reads and stretches."""
    odd = np.random.default_rng(5) if is_odd else None
    text = HEAD
    for start in range(0, len(rows), per_insert):
        values = between.join(write_row(row, odd) for row in rows[start : start + per_insert])
        text += b"INSERT INTO `t` VALUES " + values + b";\n"
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sql_statements, "_FIRST_READ", first_read)
        patch.setattr(_sql_rows, "_STRETCH_BYTES", stretch)
        path = Path(name, "t.sql")
        path.write_bytes(text)

        found = [
            tuple(row.values()) for batch in read_sql(path, wanted) for row in batch.to_pylist()
        ]

    places = [COLUMNS.index(column) for column in wanted]
    assert found == [tuple(row[place] for place in places) for row in rows]


@settings(max_examples=60, deadline=None)
@given(rows=table_rows.filter(bool), cut=st.floats(0, 1))
def test_only_rows_before_a_truncation_are_kept(rows, cut):
    text = HEAD + b"INSERT INTO `t` VALUES " + b",".join(write_row(row, None) for row in rows)
    length = len(HEAD) + 23 + int(cut * (len(text) - len(HEAD) - 23))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "t.sql")
        path.write_bytes(text[:length])
        with pytest.raises(DataError, match="ends within"):
            list(read_sql(path, COLUMNS))
        reader = read_sql(path, COLUMNS, allow_truncated=True)
        with pytest.warns(match="is kept"):
            found = [tuple(row.values()) for batch in reader for row in batch.to_pylist()]

    assert found == rows[: len(found)]
    n_complete = 0
    while n_complete < len(rows) and len(HEAD) + 23 + _length(rows[: n_complete + 1]) < length:
        n_complete += 1
    assert len(found) == n_complete


def _length(rows):
    return sum(len(write_row(row, None)) + 1 for row in rows) - 1
