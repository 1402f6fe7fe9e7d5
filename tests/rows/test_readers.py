import bz2
import gzip
import json
import lzma
import tracemalloc

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.rows.readers import Place, python_values, read_rows

ROWS = [
    {"subj": "NA", "obj": "null", "note": 'a "quoted"\nname, with\ttabs'},
    {"subj": "None", "obj": "nan", "note": "letter–word\u2028ППК"},
]


def write(path):
    frame = pd.DataFrame(ROWS)
    match path.suffix:
        case ".parquet":
            frame.to_parquet(path, index=False)
        case ".csv" | ".tsv":
            frame.to_csv(path, sep="," if path.suffix == ".csv" else "\t", index=False)
        case ".json":
            path.write_text(json.dumps(ROWS, indent=1), encoding="utf-8")
        case _:
            lines = [json.dumps(row, ensure_ascii=False) for row in ROWS]
            path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"])
def test_read_rows_gives_the_same_rows_for_all_formats(suffix, tmp_path):
    """Names such as "NA" and "null" are not read as missing in any format."""
    path = write(tmp_path / f"rows{suffix}")

    assert [row for _, row in read_rows(path)] == ROWS


def test_read_rows_accepts_upper_case_suffixes_and_byte_order_marks(tmp_path):
    """A CSV file as saved by a spreadsheet is read."""
    path = tmp_path / "ROWS.CSV"
    content = "\ufeffsubj,obj\r\nNA,é\r\n\r\n".encode()
    # Gzip is detected regardless of the name of the file.
    for written in (content, gzip.compress(content)):
        path.write_bytes(written)
        assert list(read_rows(path)) == [(Place(str(path), 2), {"subj": "NA", "obj": "é"})]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # One object per line, as on the hub.
        ("rows.json", "\n".join(map(json.dumps, ROWS))),
        # Samples of lm-eval 0.4.0 to 0.4.2 are one list in a `.jsonl` file.
        *(
            (name, "\ufeff \n" + json.dumps(ROWS, indent=1))
            for name in ("rows.json", "rows.jsonl", "rows.ndjson")
        ),
    ],
)
def test_files_with_json_suffixes_may_contain_lists_or_lines(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    assert [row for _, row in read_rows(path)] == ROWS


def test_a_table_with_two_columns_of_one_name_is_rejected(tmp_path):
    path = tmp_path / "twice.parquet"
    table = pa.table([["a"], ["b"]], names=["text", "text"])
    pq.write_table(table, path)

    with pytest.raises(RecordError, match=r"twice\.parquet: .* a column twice: 'text'; rename"):
        list(read_rows(path))


def test_places_have_line_numbers_of_text_and_row_numbers_of_tables(tmp_path):
    """A place is the line that an editor shows, or the row of a table."""
    lines = write(tmp_path / "rows.jsonl")
    table = write(tmp_path / "rows.parquet")
    delimited = write(tmp_path / "rows.csv")

    assert [str(place) for place, _ in read_rows(lines)] == [f"{lines}:1", f"{lines}:3"]
    assert [place.number for place, _ in read_rows(table)] == [1, 2]
    # The first record of the CSV file spans two lines and ends on the second.
    assert [place.number for place, _ in read_rows(delimited)] == [3, 4]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("torn.jsonl", b'{"a": 1}\n{"a": "b', r"torn\.jsonl:2: not JSON: .*'\{\"a\": \"b'; repair"),
        ("list.jsonl", b'{"a": 1}\n["a"]\n', r"list\.jsonl:2: each line must be a JSON object"),
        ("bytes.jsonl", b'{"a": 1}\n{"a": "\xe9t\xe9"}\n', r"bytes\.jsonl:2: not UTF-8 at byte 7"),
        ("bytes.csv", b"a,b\n\xff,1\n", r"bytes\.csv:2: not UTF-8 at byte 0 .*re-save the file"),
        ("short.csv", b"a,b\n1\n", r"short\.csv:2: 1 cells under 2 columns; quote cells"),
        ("long.tsv", b"a\tb\n1\t2\n1\t2\t3\n", r"long\.tsv:3: 3 cells under 2 columns"),
        ("twice.csv", b"a,b,a\n1,2,3\n", r"twice\.csv:1: the header names a column twice"),
        ("quote.csv", b'a,b\n"x"y,2\n', r"quote\.csv:2: .*expected after"),
        ("open.csv", b'a,b\n"x,2\n', r"open\.csv:2: unexpected end of data"),
        ("torn.json", b'[{"a": 1},\n{"a"', r"torn\.json:2: not JSON"),
        ("scalars.json", b"[1, 2]", r"scalars\.json:1: an item .* is one JSON object"),
        ("torn.parquet", b"PAR1 and then nothing", r"torn\.parquet is not a readable Parquet file"),
        ("rows.xlsx", b"PK", r"cannot read .*rows\.xlsx: the formats are \.parquet, \.jsonl"),
    ],
)
def test_error_of_read_rows_contains_file_line_and_remedy(name, content, message, tmp_path):
    path = tmp_path / name
    with pytest.raises(SourceNotFoundError, match=rf"file .*{name} not found; .*check the path"):
        list(read_rows(path))
    path.write_bytes(content)

    with pytest.raises(DataError, match=message) as caught:
        list(read_rows(path))

    one_line = not name.endswith((".json", ".parquet", ".xlsx", "twice.csv"))
    assert isinstance(caught.value, RecordError) or not one_line


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv"])
def test_read_rows_uses_bounded_memory(suffix, tmp_path):
    """A file of 20 MB is read with less than 2 MB of memory."""
    path = tmp_path / f"rows{suffix}"
    cell = "x" * 1000
    line = json.dumps({"a": cell}) if suffix == ".jsonl" else cell
    path.write_text("\n".join([*(["a"] if suffix == ".tsv" else []), *[line] * 20_000]))

    tracemalloc.start()
    try:
        count = sum(1 for _ in read_rows(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count == 20_000
    assert peak < 2_000_000


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "é", ""], pa.string()),
        (["a", None], pa.large_string()),
        ([["a", "b"], [], None, ["c"]], pa.list_(pa.string())),
        ([[1], None], pa.list_(pa.int64())),
        ([1, None, 3], pa.int64()),
        ([True, None], pa.bool_()),
        ([], pa.list_(pa.string())),
    ],
)
def test_python_values_agrees_with_to_pylist(values, kind):
    """Whole columns, parts of them, and columns of several chunks."""
    column = pa.array(values, kind)

    assert python_values(column) == values
    assert python_values(column[1:]) == values[1:]
    assert python_values(column[1:3]) == values[1:3]
    assert python_values(pa.chunked_array([column, column])) == values * 2


@pytest.mark.parametrize(
    ("pack", "name"),
    [(lzma.compress, "xz"), (bz2.compress, "bzip2"), (lambda t: b"\x28\xb5\x2f\xfd" + t, "zstd")],
    ids=["xz", "bzip2", "zstd"],
)
@pytest.mark.parametrize("file", ["p.jsonl", "p.jsonl.gz", "p.csv"])
def test_error_for_another_compression_contains_its_name(tmp_path, file, pack, name):
    path = tmp_path / file
    path.write_bytes(pack(b'{"id": 1}\n'))

    with pytest.raises(RecordError, match=rf"{file} is packed as {name}, which is not supported"):
        list(read_rows(path))
