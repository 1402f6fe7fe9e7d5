import bz2
import gzip
import json
import lzma
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from surface_consistency_build.counting import documents as documents_module, read_documents
from surface_consistency_build.counting.documents import DocumentReader, FilePart, corpus_files

from surface_consistency.errors import DataError, SourceNotFoundError

ROWS = [{"text": "New York", "id": 1}, {"text": "Zoë", "id": 2}, {"id": 3, "text": ""}]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def texts_of(source, **options):
    reader = read_documents(source, **options)
    return [text for batch in reader for text in batch], reader.report


@pytest.mark.parametrize("packed", PACKERS)
def test_lines_of_compressed_and_uncompressed_files_are_read(tmp_path, packed):
    path = tmp_path / f"a.jsonl{packed}"
    path.write_bytes(PACKERS[packed](LINES) + (PACKERS[packed](LINES) if packed else LINES))

    texts, report = texts_of(path)

    assert texts == ["New York", "Zoë", ""] * 2
    assert (report.documents, report.n_bytes, report.faults) == (6, 24, {})


def test_parquet_files_text_files_and_folders_are_read(tmp_path):
    pq.write_table(pa.table({"body": ["a", None, "c"]}), tmp_path / "b.parquet", row_group_size=1)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "one.txt").write_bytes(b"\xef\xbb\xbfwhole\r\ntext")
    (tmp_path / "two.txt.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "notes.md").write_text("none of the corpus")

    texts, report = texts_of(tmp_path, text="body")

    assert sorted(texts) == ["a", "c", "packed", "whole\r\ntext"]
    assert report.faults == {"null text": 1}
    assert report.places["null text"] == [f"{tmp_path.resolve() / 'b.parquet'}:row 1"]


def test_rows_that_can_be_read_once_are_read_completely(monkeypatch):
    monkeypatch.setattr(documents_module, "_BATCH_BYTES", 1)
    reader = read_documents({"text": text} for text in "abc")
    assert [list(batch) for batch in reader] == [["a"], ["b"], ["c"]]
    datasets = pytest.importorskip("datasets")
    stream = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
    assert texts_of(stream)[0] == ["New York", "Zoë", ""]


def test_faults_are_counted_with_their_places(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        b'{"text": "good"}', b'{"text": null}', b'{"body": "x"}', b'{"text": 5}', b'{"text": "half',
        b"[1]", b'{"text": "Zo\xeb"}', b'{"text": "half \\ud800"}', b'{"text": "nul \\u0000"}',
        b'{"text": "not a number", "x": NaN}', b"", b"   ", b'{"text": "last"}',
    ]  # fmt: skip
    path.write_bytes(b"\n".join(lines))

    texts, report = texts_of(path)

    assert texts == ["good", "Zo\ufffd", "half \ufffd", "nul \x00", "not a number", "last"]
    once = dict.fromkeys(("null text", "no text field", "text of another type", "NUL"), 1)
    assert report.faults == once | {"broken line": 2, "invalid UTF-8": 2}
    assert report.places["null text"] == [f"{path.resolve()}:byte 17"]
    assert "1 documents: null text (excluded), first at" in report.lines()[0]


def test_lines_of_parts_equal_those_of_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINES + LINES.rstrip(b"\n"))
    whole, _ = texts_of(path)
    size = path.stat().st_size

    for cut in range(1, size):
        found = []
        for part in (FilePart(path, 0, cut), FilePart(path, cut, None)):
            options = {"text": "text", "id": None, "sample": 1.0, "seed": 0}
            reader = DocumentReader([part], **options, allow_truncated=False)
            found += [text for batch in reader for text in batch]
        assert found == whole, cut


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_lines_do_not_depend_on_the_chunk_size(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(documents_module, "_CHUNK", chunk)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))

    assert texts_of(path)[0] == ["New York", "Zoë", ""]


@pytest.mark.parametrize("by", [None, "id"])
def test_sampling_draws_the_same_documents_in_any_order_and_part(tmp_path, by):
    rows = [{"text": f"text {i}", "id": f"d{i}"} for i in range(3_000)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    size = path.stat().st_size

    drawn, report = texts_of(path, sample=0.1, id=by)
    parts = [FilePart(path, 0, size // 3), FilePart(path, size // 3, None)]
    options = {"text": "text", "id": by, "sample": 0.1, "seed": 0, "allow_truncated": False}
    in_parts = [t for batch in DocumentReader(parts[::-1], **options) for t in batch]
    packed = tmp_path / "again" / "a.jsonl"
    packed.parent.mkdir()
    packed.write_bytes(path.read_bytes())

    assert 240 <= len(drawn) <= 360
    assert report.not_sampled == 3_000 - len(drawn)
    assert sorted(in_parts) == sorted(drawn)
    assert texts_of(packed, sample=0.1, id=by)[0] == drawn
    assert texts_of(path, sample=0.1, seed=1, id=by)[0] != drawn
    if by:
        assert set(texts_of(rows[::-1], sample=0.1, id=by)[0]) == set(drawn)


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz", ".zst"])
def test_truncated_files_raise_or_are_counted_up_to_the_cut(tmp_path, packed):
    path = tmp_path / f"a.jsonl{packed}"
    lines = b"".join(b'{"text": "%d"}\n' % (i * 7919 % 10_007) for i in range(200_000))
    content = PACKERS[packed](lines)
    path.write_bytes(content[: len(content) // 2])

    with pytest.raises(DataError, match=rf"a\.jsonl{packed} is cut off.*download it again"):
        texts_of(path)
    texts, report = texts_of(path, allow_truncated=True)
    assert report.truncated == [str(path.resolve())]
    assert "ended early; the data before that was counted" in report.lines()[-1]
    assert len(texts) < 200_000


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz", ".zst"])
def test_errors_for_damaged_files_contain_their_names(tmp_path, packed):
    """Errors of the decompressing library are replaced."""
    path = tmp_path / f"a.jsonl{packed}"
    content = PACKERS[packed](LINES * 20)

    for place in range(len(content) // 3, len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        with suppress(DataError):
            texts_of(path)
    path.write_bytes(content[:-9] + bytes(9))
    with pytest.raises(DataError, match=rf"a\.jsonl{packed} is cut off or damaged"):
        texts_of(path)


def test_a_line_without_end_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(documents_module, "_LONGEST", 100)
    monkeypatch.setattr(documents_module, "_CHUNK", 64)
    path, text = tmp_path / "a.jsonl", tmp_path / "a.txt"
    path.write_bytes(b'{"text": "' + b"x" * 500)
    text.write_bytes(b"x" * 500)

    with pytest.raises(DataError, match="the line at byte 0 is longer than 100 bytes; split it"):
        texts_of(path)
    with pytest.raises(DataError, match="is a text of more than 100 bytes; split it"):
        texts_of(text)


def test_files_are_found_by_folder_pattern_and_name(tmp_path):
    for name in ("a.jsonl", "b.json.gz", "c.txt", ".hidden.jsonl", "d.csv"):
        (tmp_path / name).write_bytes(b"")

    names = [path.name for path in corpus_files([tmp_path, tmp_path / "a.jsonl"])]

    assert names == ["a.jsonl", "b.json.gz", "c.txt"]
    assert [path.name for path in corpus_files(str(tmp_path / "*.jsonl"))] == ["a.jsonl"]
    with pytest.raises(SourceNotFoundError, match=r"no documents at .*contains no files"):
        corpus_files(str(tmp_path / "nothing*"))
    with pytest.raises(DataError, match=r"cannot read .*d\.csv; the known formats are"):
        corpus_files(tmp_path / "d.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"PAR1 but no more", r"a\.parquet: cannot be read as Parquet"),
        (
            "a.jsonl",
            b'{"body": "x"}\n' * 3,
            "none of the 3 lines is an object with the field 'text'",
        ),
        ("a.jsonl.gz", b"", r"a\.jsonl\.gz is cut off or damaged \(the file is empty"),
        *(
            (f"a.jsonl{packed}", LINES * 20, rf"a\.jsonl{packed}: .*correct its suffix")
            for packed in PACKERS
            if packed
        ),
    ],
)
def test_errors_for_unreadable_files_contain_their_names(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        texts_of(tmp_path / name)


def test_invalid_columns_and_samples_are_rejected(tmp_path):
    path, empty = tmp_path / "b.parquet", tmp_path / "a.jsonl.gz"
    pq.write_table(pa.table({"body": ["a"]}), path)
    empty.write_bytes(b"")
    with pytest.raises(DataError, match=r"b\.parquet has no column 'text'; it has body"):
        texts_of(path)
    with pytest.raises(
        DataError, match="row 0: field 'key' not found; documents are sampled by it"
    ):
        texts_of([{"text": "a"}], sample=0.5, id="key")
    for sample in (0.0, -0.1, 1.5):
        with pytest.raises(ValueError, match="sample must be above 0 and at most 1"):
            read_documents([], sample=sample)
    assert texts_of(empty, allow_truncated=True)[1].truncated == [str(empty.resolve())]
