"""Third-party files are read within bounds: specific errors and bounded memory."""

import csv
import gzip
import json
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from surface_consistency import reading
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    RunError,
    SourceNotFoundError,
)
from surface_consistency.reading import (
    DEEPEST,
    MOST_COLUMNS,
    delimited_rows,
    find_column,
    first_names,
    json_items,
    json_objects,
    json_or_text,
    parse_json,
    parse_toml,
    read_document,
    read_lines,
)
from surface_consistency.rows.cells import count_of, strings_of
from surface_consistency.runs.log import read_answers, read_generations
from surface_consistency.schemas.settings import values_of_items

NESTED = "[" * 100_000
DIGITS = "9" * 5_000

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_json_within_the_bounds_is_read_unchanged(value):
    assert parse_json(json.dumps(value), "x") == value


@given(st.integers(1, 3 * DEEPEST), st.sampled_from(["[", '{"a":']))
def test_documents_nested_beyond_the_maximum_raise(depth, opening):
    text = opening * (depth - 1) + ("[1, 2]" if opening == "[" else '{"b": 1}')
    text += {"[": "]", '{"a":': "}"}[opening] * (depth - 1)

    if depth <= DEEPEST:
        assert parse_json(text, "x") == json.loads(text)
    else:
        with pytest.raises(RecordError, match=r"^x: nested more than 64 levels deep"):
            parse_json(text, "x")


@given(st.text() | st.binary())
def test_invalid_json_raises_with_the_place(text):
    try:
        parse_json(text, "rows.jsonl:7")
    except RecordError as error:
        assert str(error).startswith("rows.jsonl:7")  # noqa: PT017 - most texts are not JSON


@given(st.binary(max_size=200))
def test_files_of_any_bytes_are_read_or_raise(content):
    folder = Path(__file__).parent
    path = folder / "never_written"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "read_lines", lambda _: enumerate(content.splitlines(True), 1))
        for read in (json_objects, lambda file: delimited_rows(file, ",")):
            try:
                assert all(isinstance(row, dict) for _, row in read(path))
            except RecordError as error:
                assert str(error).startswith(str(path))  # noqa: PT017


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_json, NESTED, "nested more than 64 levels deep"),
        (parse_json, '{"a": ' * 100_000, "nested more than 64 levels deep"),
        (parse_json, f'{{"a": {DIGITS}}}', "a number has more than 4,300 digits; write it as text"),
        (parse_json, '{"a": 1', "not JSON: Expecting ',' delimiter at column 8 of '{\"a\": 1'"),
        (parse_json, b'{"a": "\xe9t\xe9"}', "not UTF-8 at byte 7 of the line"),
        (json_or_text, NESTED, "nested more than 64 levels deep"),
        (json_or_text, '{"a": ' * 100_000, "nested more than 64 levels deep"),
        (json_or_text, f'{{"a": {DIGITS}}}', "a number has more than 4,300 digits"),
        (parse_toml, f"a = {NESTED}", "nested more than 64 levels deep"),
        (parse_toml, f"a = {'[' * 65}{']' * 65}", "nested more than 64 levels deep"),
        (parse_toml, f"a = {DIGITS}", "a number has more than 4,300 digits"),
        (parse_toml, "a = ", "not TOML: Invalid value"),
    ],
)
def test_hostile_documents_raise_with_their_place(parse, text, message):
    with pytest.raises(RecordError, match=f"^x:3: {message}"):
        parse(text, "x:3")


def test_hostile_option_of_a_runner_raises_with_its_name():
    for value, message in ((NESTED, "nested"), (DIGITS, "a number has more than")):
        with pytest.raises(RecordError, match=f"^`runner_option` concurrency: {message}"):
            values_of_items({"concurrency": value}, "runner_option")


@pytest.mark.parametrize(
    ("read", "cell", "message"),
    [
        (strings_of, NESTED, "the list: nested more"),
        (strings_of, f"[{DIGITS}]", "the list: a number has more"),
        (strings_of, f"[{'[' * 70}{']' * 70}]", "the list: nested more"),
        (count_of, 10**18 * 10, r"expected an integer below 2\*\*63"),
        (count_of, 10**4_000, r"expected an integer below 2\*\*63"),
        (count_of, "9" * 4_299, r"expected an integer below 2\*\*63"),
        (count_of, 1e300, r"expected an integer below 2\*\*63"),
    ],
)
def test_hostile_cell_is_not_read_as_list_or_count(read, cell, message):
    with pytest.raises(ValueError, match=message):
        read(cell)
    assert strings_of("[" + "-" * 100_000 + "1]") == ("[" + "-" * 100_000 + "1]",)


@pytest.mark.parametrize("line", [NESTED, f'{{"a": {DIGITS}}}'])
@pytest.mark.parametrize("read", [read_answers, lambda path: list(read_generations(path))])
def test_hostile_line_of_a_log_raises_with_its_number(tmp_path, line, read):
    """Also the last line, which is complete because it ends with a line feed."""
    log = tmp_path / "log.jsonl"
    good = '{"prompt_id": "q", "text": "x"}\n'

    for number, text in ((2, f"{good}{line}\n"), (1, f"{line}\n{good}")):
        log.write_text(text)
        with pytest.raises(RunError, match=rf"log\.jsonl:{number}: not a Generation"):
            read(log)


def test_long_line_raises_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": "' + b"x" * 50_000_000 + b'"}\n')
    monkeypatch.setattr(reading, "LONGEST_LINE", 1_000_000)

    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match=r"rows\.jsonl:2: the line has more than 1,000,000 b"):
            list(json_objects(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_large_document_raises_unread_and_byte_order_mark_is_skipped(tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    path.write_bytes(b"\xef\xbb\xbfa\nb 345")
    assert list(read_lines(path)) == [(1, b"a\n"), (2, b"b 345")]
    assert next(read_lines(path, keep_bom=True)) == (1, b"\xef\xbb\xbfa\n")

    monkeypatch.setattr(reading, "LONGEST_DOCUMENT", 8)
    with pytest.raises(
        RecordError, match=r"10 bytes are more than the maximum of 8 .* \(\.jsonl\)"
    ):
        read_document(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_row_with_too_many_columns_raises_immediately(tmp_path, suffix):
    names = [f"column{number}" for number in range(10 * MOST_COLUMNS)]
    path = tmp_path / f"wide{suffix}"
    if suffix == ".csv":
        path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    else:
        path.write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    start = time.process_time()

    with pytest.raises(
        RecordError, match=r"wide\.\w+:1: 100,000 columns are more than the maximum of 10,000"
    ):
        list(delimited_rows(path, ",") if suffix == ".csv" else json_objects(path))

    assert time.process_time() - start < 5


def test_columns_are_found_by_similar_names():
    columns = ["Question ", "possibleAnswers", "PRED", "a b", "a_b"]

    found = [find_column(name, columns) for name in ("question", "possible_answers", "pred", "z")]

    assert found == ["Question ", "possibleAnswers", "PRED", None]
    assert find_column("a_b", columns) == "a_b"
    with pytest.raises(ColumnNotFoundError, match="'a b' and 'a_b' are both spellings of 'A-B'"):
        find_column("A-B", columns)
    assert first_names(range(100, 170)) == ", ".join(map(str, range(100, 166))) + " and 4 more"
    assert len(first_names(["a" * 3_000] * 50)) < 240


def test_folder_and_missing_path_have_different_errors(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"is a folder, but rows is expected; name its"):
        reading.existing_file(tmp_path, "rows", "*.csv")
    with pytest.raises(SourceNotFoundError, match=r"file .* not found; expected rows"):
        reading.existing_file(tmp_path / "x", "rows", "*.csv")


@pytest.mark.parametrize("indent", [None, 1])
def test_list_read_by_item_equals_the_parser(tmp_path, indent):
    path = tmp_path / "rows.json"
    rows = [{"a": "é" * n, "b": [n, 1.5, None]} for n in range(300)]
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=indent))

    assert [row for _, row in json_items(path)] == rows
    path.write_text("\ufeff [ ] ")
    assert list(json_items(path)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2", "x.json: not JSON: Expecting ',' delimiter at column 6"),
        ("[1, ]", "x.json: not JSON: Expecting value at column 5"),
        ("[1] 2", "x.json: not JSON: Extra data at column 5"),
        ('["a' + "b" * 300 + '"]', "x.json:1: the item of the list has more than 100 characters"),
        ("[1, " + "[" * 65 + "]" * 65 + "]", "x.json:2: nested more than 64 levels"),
        (f"[1,{DIGITS}]", "x.json:2: a number has more than 4,300 digits"),
    ],
)
def test_broken_lists_raise_with_the_item(tmp_path, text, message, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 200 if "[[" in text else 100)
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(RecordError, match=message):
        list(json_items(path))


def test_maximum_length_of_cell_and_row_is_that_of_a_line(tmp_path, monkeypatch):
    path, text = tmp_path / "rows.csv", "x,\n" * 50_000
    path.write_text(f'id,prediction\n1,"{text}"\n')
    before = csv.field_size_limit()

    assert [row["prediction"] for _, row in delimited_rows(path, ",")] == [text]
    monkeypatch.setattr(reading, "LONGEST_LINE", 150_000)
    with pytest.raises(RecordError, match=r"rows.csv:\d+: the row has more than 150,000 bytes"):
        list(delimited_rows(path, ","))
    csv.field_size_limit(before)


def test_limit_of_unpacked_files_can_be_set(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1, "b": 2}\n' * 20_000))
    assert sum(1 for _ in json_objects(path)) == 20_000

    monkeypatch.setenv("SURFACE_CONSISTENCY_MAX_UNPACKED_MB", "5")
    with pytest.raises(RecordError, match=r"more than 5 MB .*SURFACE_CONSISTENCY_MAX_UNPACKED_MB"):
        list(json_objects(path))
    monkeypatch.setenv("SURFACE_CONSISTENCY_MAX_UNPACKED_MB", "7")
    assert sum(1 for _ in json_objects(path)) == 20_000
    monkeypatch.setenv("SURFACE_CONSISTENCY_MAX_UNPACKED_MB", "many")
    with pytest.raises(DataError, match="must be a whole number of megabytes, got 'many'"):
        list(json_objects(path))
