"""Columnar files above the limit of decoded size are rejected before they are decoded."""

import io
import itertools
import json
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.errors import DataError, RecordError
from surface_consistency.rows import columnar
from surface_consistency.rows.columnar import check_arrays, check_saved_dataset, open_parquet
from surface_consistency.rows.pages import read_footer, read_pages
from surface_consistency.rows.readers import read_rows
from tests.faults.bombs import forge

MB = 1_000_000
LIMIT = "SURFACE_CONSISTENCY_MAX_UNPACKED_MB"


def written(path, values, **options):
    pq.write_table(pa.table({"a": values}), path, **options)
    return path


def repeated(n, text, *others):
    """Rows that all refer to one text of a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([text, *others]))


TEXTS = {
    "text": lambda n, text: repeated(n, text, "other"),
    "list": lambda n, text: pa.ListArray.from_arrays(range(n + 1), repeated(n, text)),
    "structure": lambda n, text: pa.StructArray.from_arrays([repeated(n, text)], ["b"]),
    "bytes": lambda n, text: repeated(n, text.encode()),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_dictionary_texts_count_once_per_row(tmp_path, kind, monkeypatch):
    text = "x" * MB
    path = written(tmp_path / "rows.parquet", TEXTS[kind](100, text), store_schema=False)

    monkeypatch.setenv(LIMIT, "100")
    with pytest.raises(RecordError, match=f"unpack to more than 100 MB .*{LIMIT}"):
        list(read_rows(path))
    monkeypatch.setenv(LIMIT, "110")
    assert len(list(read_rows(path))) == 100


def test_prefix_encoded_texts_count_with_their_full_length(tmp_path, monkeypatch):
    options = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    options["compression"] = "zstd"
    path = written(tmp_path / "rows.parquet", pa.array(["x" * MB] * 100), **options)
    assert path.stat().st_size < 10_000

    monkeypatch.setenv(LIMIT, "90")
    with pytest.raises(RecordError, match="unpack to more than 90 MB"):
        open_parquet(path)
    monkeypatch.setenv(LIMIT, "110")
    open_parquet(path).close()


def test_run_length_encoded_rows_count_with_their_full_size(tmp_path, monkeypatch):
    path = written(tmp_path / "rows.parquet", pa.array([1] * 100_000))
    monkeypatch.setenv(LIMIT, "10")

    with pytest.raises(RecordError, match="unpack to more than 10 MB"):
        list(read_rows(path))


def test_ordinary_texts_are_not_counted_twice(tmp_path, monkeypatch):
    """One long text among many short ones, and pages without a dictionary."""
    texts = ["y" * 500_000, *(f"{number:090}" for number in range(40_000))]
    path = written(tmp_path / "rows.parquet", pa.array(texts))
    monkeypatch.setenv(LIMIT, "20")

    assert [row["a"] for _, row in read_rows(path)] == texts


def test_cells_longer_than_the_maximum_line_are_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar, "LONGEST_LINE", 1_000)
    for value in (pa.array(["x" * 1_000, "x" * 1_001]), pa.array([["x" * 1_001]])):
        with pytest.raises(RecordError, match="a cell of column 'a' has more than 1,000 bytes"):
            list(read_rows(written(tmp_path / "rows.parquet", value)))
    assert len(list(read_rows(written(tmp_path / "rows.parquet", pa.array(["x" * 1_000]))))) == 1


def saved(folder, values, compression=None):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"a": [1]}).save_to_disk(str(folder))
    (file,) = folder.glob("*.arrow")
    batch = pa.RecordBatch.from_pydict({"a": values})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(str(file), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return folder


@pytest.mark.parametrize(
    ("values", "compression", "message"),
    [
        (pa.nulls(5_000_000), None, "unpack to more than 400 MB"),
        (pa.array([1, 2]), "zstd", "its buffers are compressed, which"),
        (pa.array([["a"]]), "lz4", "its buffers are compressed, which"),
        (repeated(3, "x"), None, "columns of dictionaries or views"),
        (pa.array([["x"]], pa.list_(pa.string_view())), None, "columns of dictionaries or views"),
    ],
)
def test_saved_data_sets_are_checked(tmp_path, values, compression, message):
    with pytest.raises(DataError, match=message):
        check_saved_dataset(saved(tmp_path / "d", values, compression))


def test_a_saved_data_set_with_broken_offsets_is_rejected(tmp_path):
    folder = saved(tmp_path / "d", pa.array(["abc", "de"]))
    check_saved_dataset(folder)
    (file,) = folder.glob("*.arrow")
    offsets = np.array([0, 3, 5], np.int32).tobytes()
    broken = np.array([0, 300, 5], np.int32).tobytes()
    file.write_bytes(file.read_bytes().replace(offsets, broken))

    with pytest.raises(DataError, match="Offset invariant failure"):
        check_saved_dataset(folder)


def test_arrays_with_invalid_sizes_in_their_headers_are_rejected(tmp_path, monkeypatch):
    path = tmp_path / "arrays.npz"
    np.savez_compressed(path, a=np.zeros(MB, np.uint8), b=np.arange(6).reshape(2, 3))
    check_arrays(path)
    monkeypatch.setenv(LIMIT, "1")
    with pytest.raises(RecordError, match="unpack to more than 1 MB"):
        check_arrays(path)

    content = io.BytesIO()
    np.save(content, np.zeros(10))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b.npy", content.getvalue().replace(b"(10,), }   ", b"(9999999,)}"))
    with pytest.raises(ValueError, match=r"'b.npy' states an array of shape \(9999999,"):
        check_arrays(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", content.getvalue().replace(b"(10,)", b"(10,("))
    with pytest.raises(ValueError, match=r"the header of 'a.npy' is broken"):
        check_arrays(path)


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("field", ["total_uncompressed_size", "num_values"])
def test_forged_footer_does_not_change_the_computed_size(tmp_path, monkeypatch, field, page):
    values = [f"{number:03}" + "x" * MB for number in range(20)]
    if field == "num_values":
        values = [1] * 500_000
    options = {"compression": "zstd", "use_dictionary": False, "data_page_version": page}
    path = written(tmp_path / "rows.parquet", pa.array(values), **options)
    forge(path, field)
    assert getattr(pq.read_metadata(path).row_group(0).column(0), field) == 1
    monkeypatch.setenv(LIMIT, "19")

    with pytest.raises(RecordError, match="unpack to more than 19 MB"):
        open_parquet(path)


def test_sizes_of_pages_agree_with_a_correct_footer(tmp_path):
    columns = {"a": pa.array([None, *range(99_999)]), "b": pa.array([[1, 2], []] * 50_000)}
    columns["c"] = pa.array([f"text {number // 3}" for number in range(100_000)])
    for options in ({}, {"data_page_version": "2.0", "data_page_size": 1_000}):
        path = tmp_path / "rows.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=30_000, **options)
        metadata = pq.read_metadata(path)
        with path.open("rb") as file:
            for group, chunks in enumerate(read_footer(file)):
                for place in range(3):
                    chunk = metadata.row_group(group).column(place)
                    pages = read_pages(file, chunks[place])
                    assert pages.n_values == chunk.num_values
                    assert pages.n_bytes >= chunk.total_uncompressed_size


def test_damaged_pages_raise_an_error_or_are_read(tmp_path):
    """Each byte of the first page header is changed in eight ways."""
    path = written(tmp_path / "rows.parquet", pa.array([f"{number}" for number in range(300)]))
    content = path.read_bytes()
    n_rejected = 0
    for at in range(4, 24):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                open_parquet(path).close()
            except DataError:
                n_rejected += 1
    assert n_rejected >= 60


DAMAGES = """
import sys
from pathlib import Path
from surface_consistency.errors import DataError
from surface_consistency.rows.readers import read_rows

path, rejected = Path(sys.argv[1]), []
content = path.read_bytes()
start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for at in range(start, len(content) - 8):
    for bits in (1, 2, 16, 128):
        path.write_bytes(content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :])
        try:
            list(read_rows(path))
        except DataError as error:
            rejected.append(str(error))
assert all(len(message) < 500 for message in rejected)
print(len(rejected))
"""


def test_a_damaged_footer_does_not_end_the_process(tmp_path):
    """pyarrow ends the process if the size statistics lack a number of a level."""
    values = pa.array([["x", None], None, ["y"]])
    file = written(tmp_path / "rows.parquet", values, store_schema=False)

    done = subprocess.run(
        [sys.executable, "-c", DAMAGES, file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) > 300


def test_footer_with_a_list_longer_than_the_footer_is_rejected(tmp_path):
    """pyarrow allocates 600 MB for the columns of a row group that this footer states."""
    footer = bytes.fromhex("1502 191c 480172 1500 00 1600 191c 19fc c0843d")
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")

    with pytest.raises(DataError, match="is not a readable Parquet file: its footer is damaged"):
        open_parquet(path)


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_pages_with_more_lengths_than_values_are_rejected(tmp_path, encoding, page):
    """pyarrow reads as many lengths as a page states, with 4 bytes of memory each."""
    options = {"use_dictionary": False, "column_encoding": encoding, "data_page_version": page}
    path = written(tmp_path / "rows.parquet", pa.array(["abc"]), compression="none", **options)
    content, header = path.read_bytes(), b"\x80\x01\x04\x01"  # Blocks of 128 in 4 parts; 1 length.
    at = content.index(header) if encoding.startswith("DELTA_LENGTH") else content.rindex(header)
    path.write_bytes(content[:at] + header[:3] + b"\x7f" + content[at + 4 :])
    with pytest.raises(DataError, match="a page states 127 lengths of texts for 1 values"):
        open_parquet(path)

    for n, codec in itertools.product((0, 1, 129, 3_000), ("none", "snappy", "zstd")):
        texts = [[f"{number}" * (number % 9), None] for number in range(n)]
        values = pa.array(texts, pa.list_(pa.string()))
        options |= {"compression": codec, "data_page_size": 2_000}
        with open_parquet(written(path, values, **options)) as file:
            assert file.read()["a"].combine_chunks().flatten() == values.flatten()


def test_long_columns_of_delta_length_texts_are_read(tmp_path):
    """pyarrow cannot make a dictionary of such texts."""
    options = {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"}
    texts = [f"{number:090}" for number in range(20_000)]
    path = written(tmp_path / "rows.parquet", pa.array(texts), **options)

    assert [row["a"] for _, row in read_rows(path)] == texts


def test_splits_of_a_saved_data_set_are_read_from_its_dictionary(tmp_path):
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "d"
    datasets.DatasetDict({"test": datasets.Dataset.from_dict({"a": [1]})}).save_to_disk(folder)
    check_saved_dataset(folder)
    (folder / "deep").mkdir()
    saved(folder / "test", pa.array([1]), "zstd").rename(folder / "deep/test")
    splits = folder / "dataset_dict.json"

    for name, message in {
        "deep/test": "its buffers are compressed",
        "../other": "leads out of its folder",
        "x::file:///other": "is not the name of a file",
        "missing": "not a folder of Dataset.save_to_disk",
    }.items():
        splits.write_text(json.dumps({"splits": [name]}))
        with pytest.raises(DataError, match=message):
            check_saved_dataset(folder)
    state = folder / "deep/test/state.json"
    state.write_text(json.dumps({"_data_files": [{"filename": "../../../other.arrow"}]}))
    with pytest.raises(DataError, match="leads out of its folder"):
        check_saved_dataset(folder / "deep/test")
