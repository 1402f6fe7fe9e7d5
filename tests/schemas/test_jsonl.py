import json
import math

import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import (
    Entity,
    Generation,
    GenerationParams,
    SurfaceForm,
    read_jsonl,
    write_jsonl,
)

ENTITIES = (
    Entity(id="Q1313938", name="PPK", aliases=("ППК", 'José "Joseíto"'), pageviews=12),
    Entity(id=None, name="letter–word\u2028line", aliases=(), pageviews=None),
)

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
entities = st.builds(
    Entity,
    id=st.none() | text,
    name=text,
    aliases=st.lists(text, max_size=3).map(tuple),
    pageviews=st.none() | st.integers(0, 2**62),
)


def test_read_jsonl_returns_what_was_written(tmp_path):
    """A file of records reads back as the same records."""
    path = tmp_path / "entities.jsonl"

    count = write_jsonl(path, ENTITIES)

    assert count == 2
    assert tuple(read_jsonl(path, Entity)) == ENTITIES


@given(items=st.lists(entities, max_size=5))
def test_jsonl_round_trip_is_lossless(items, tmp_path_factory):
    """Whatever a record holds, line separators of Unicode included, stands on one line."""
    path = tmp_path_factory.mktemp("jsonl") / "items.jsonl"

    write_jsonl(path, items)

    assert list(read_jsonl(path, Entity)) == items
    assert path.read_bytes().count(b"\n") == len(items)


def test_jsonl_keeps_infinity(tmp_path):
    """Non-finite floats survive, which plain pydantic JSON turns into null."""
    path = tmp_path / "params.jsonl"

    write_jsonl(path, [GenerationParams(temperature=math.inf)])

    assert next(read_jsonl(path, GenerationParams)).temperature == math.inf


def test_read_jsonl_takes_a_byte_order_mark_and_blank_lines(tmp_path):
    """What Windows editors add does not count."""
    path = tmp_path / "bom.jsonl"
    lines = [item.model_dump_json() for item in ENTITIES]
    path.write_bytes(("\ufeff" + lines[0] + "\r\n\r\n" + lines[1]).encode("utf-8"))

    assert tuple(read_jsonl(path, Entity)) == ENTITIES


def test_read_jsonl_is_lazy(tmp_path):
    """A broken line is met when it is reached, not before."""
    path = tmp_path / "late.jsonl"
    path.write_text(ENTITIES[0].model_dump_json() + "\n{torn", encoding="utf-8")

    stream = read_jsonl(path, Entity)

    assert next(stream) == ENTITIES[0]
    with pytest.raises(RecordError, match=r"late\.jsonl:2: not a Entity"):
        next(stream)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "Q1", "na', r"rows\.jsonl:2: not a Entity: field 'record': Invalid JSON"),
        (b'{"id": "Q1", "name": "\xff\xfe"}', r"rows\.jsonl:2: not UTF-8 at byte 22 of the line"),
        (b'{"id": "Q1", "name": 5}', r"rows\.jsonl:2: .*field 'name': .*valid string, got 5"),
        (b'{"id": "Q1", "name": ""}', r"rows\.jsonl:2: .*field 'name': .*at least 1 character"),
        (b'{"id": "Q1", "name": "a", "aliases": ["b", 7]}', r"field 'aliases\.1': .*got 7"),
        (b'{"id": "Q1", "name": "a", "pageviews": "7"}', r"field 'pageviews': .*got '7'"),
        (b'{"id": "Q1", "name": "a", "views": 7}', r"field 'views': Extra inputs"),
        (b'{"id": "Q1"}', r"field 'name': Field required"),
        (b'["Q1"]', r"rows\.jsonl:2: not a Entity: field 'record': .*got \['Q1'\]"),
    ],
)
def test_read_jsonl_rejects_and_names_the_line(line, message, tmp_path):
    """A bad line is named by file, number, field and value."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ENTITIES[0].model_dump_json().encode() + b"\n" + line + b"\n")

    with pytest.raises(RecordError, match=message):
        list(read_jsonl(path, Entity))


def test_read_jsonl_shortens_long_values_in_messages(tmp_path):
    """A value of a megabyte does not become a message of a megabyte."""
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"id": "Q1", "name": ["x" * 10_000]}), encoding="utf-8")

    with pytest.raises(RecordError, match=r"got \['x+\.\.\.$") as caught:
        list(read_jsonl(path, Entity))

    assert len(str(caught.value)) < 400


def test_read_jsonl_rejects_a_missing_file(tmp_path):
    """A path that is not there is named with what was expected there."""
    with pytest.raises(
        SourceNotFoundError, match=r"no file .*absent\.jsonl; expected lines of Ent"
    ):
        list(read_jsonl(tmp_path / "absent.jsonl", Entity))


def test_write_jsonl_leaves_the_older_file_when_it_fails(tmp_path):
    """A file appears whole or not at all, and no part of it stays behind."""
    path = tmp_path / "entities.jsonl"
    write_jsonl(path, ENTITIES)

    def torn():
        yield ENTITIES[0]
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_jsonl(path, torn())

    assert tuple(read_jsonl(path, Entity)) == ENTITIES
    assert [file.name for file in tmp_path.iterdir()] == ["entities.jsonl"]


def test_write_text_replaces_the_file(tmp_path):
    """Text is UTF-8 with plain line feeds on every system."""
    path = tmp_path / "note.txt"

    write_text(path, "old")
    write_text(path, "é\nb")

    assert path.read_bytes() == b"\xc3\xa9\nb"
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_records_validate_their_own_rules_from_lines(tmp_path):
    """Rules that hold between fields hold for files too."""
    path = tmp_path / "surfaces.jsonl"
    path.write_text('{"text": "a", "is_canonical": true, "categories": ["x"]}', encoding="utf-8")

    with pytest.raises(RecordError, match="a canonical surface form has no redirect categories"):
        list(read_jsonl(path, SurfaceForm))


def test_read_jsonl_rejects_lines_of_another_record(tmp_path):
    """A file of one record is not taken for a file of another."""
    path = tmp_path / "foreign.jsonl"
    write_jsonl(path, ENTITIES)

    with pytest.raises(RecordError, match=r"foreign\.jsonl:1: not a Generation: .*prompt_id"):
        list(read_jsonl(path, Generation))
