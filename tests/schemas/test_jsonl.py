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
from tests.refusals import refusals

ENTITIES = (
    Entity(id="Q1313938", name="PPK", aliases=("ППК", 'José "Joseíto"'), pageviews=12),
    Entity(id=None, name="letter–word\u2028line", aliases=(), pageviews=None),
)
NAME = SurfaceForm(text="a", is_canonical=True)

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
entities = st.builds(
    Entity,
    id=st.none() | text,
    name=text,
    aliases=st.lists(text, max_size=3).map(tuple),
    pageviews=st.none() | st.integers(0, 2**62),
)


def test_read_jsonl_returns_the_written_records(tmp_path):
    """A byte order mark and blank lines are ignored; non-finite floats are kept."""
    path, bom, params = (tmp_path / f"{name}.jsonl" for name in ("entities", "bom", "params"))
    lines = [item.model_dump_json() for item in ENTITIES]
    bom.write_bytes(("\ufeff" + lines[0] + "\r\n\r\n" + lines[1]).encode("utf-8"))

    assert write_jsonl(path, ENTITIES) == 2
    write_jsonl(params, [GenerationParams(temperature=math.inf)])

    assert tuple(read_jsonl(path, Entity)) == tuple(read_jsonl(bom, Entity)) == ENTITIES
    assert next(read_jsonl(params, GenerationParams)).temperature == math.inf
    with pytest.raises(RecordError, match=r"entities\.jsonl:1: not a Generation: .*prompt_id"):
        list(read_jsonl(path, Generation))
    with pytest.raises(
        SourceNotFoundError, match=r"file .*absent\.jsonl not found; it needs lines of"
    ):
        list(read_jsonl(tmp_path / "absent.jsonl", Entity))


@given(items=st.lists(entities, max_size=5))
def test_jsonl_round_trip_is_lossless(items, tmp_path_factory):
    path = tmp_path_factory.mktemp("jsonl") / "items.jsonl"

    write_jsonl(path, items)

    assert list(read_jsonl(path, Entity)) == items
    assert path.read_bytes().count(b"\n") == len(items)


def test_read_jsonl_is_lazy(tmp_path):
    path = tmp_path / "late.jsonl"
    path.write_text(ENTITIES[0].model_dump_json() + "\n{torn", encoding="utf-8")

    stream = read_jsonl(path, Entity)

    assert next(stream) == ENTITIES[0]
    with pytest.raises(RecordError, match=r"late\.jsonl:2: not a Entity"):
        next(stream)


def read_second(tmp_path, line, record=Entity):
    """Read a file with a valid first line and the given second line."""
    path, first = tmp_path / "rows.jsonl", {Entity: ENTITIES[0], SurfaceForm: NAME}[record]
    path.write_bytes(first.model_dump_json().encode() + b"\n" + line + b"\n")
    return list(read_jsonl(path, record))


test_read_jsonl_rejects_invalid_lines_with_their_number = refusals(
    read_second,
    (b'{"id": "Q1", "na', r"rows\.jsonl:2: not a Entity: field 'record': Invalid JSON"),
    (b'{"id": "Q1", "name": "\xff\xfe"}', r"rows\.jsonl:2: not UTF-8 at byte 22 of the line"),
    (b'{"id": "Q1", "name": 5}', r"rows\.jsonl:2: .*field 'name': .*valid string, got 5"),
    (b'{"id": "Q1", "name": ""}', r"rows\.jsonl:2: .*field 'name': .*at least 1 character"),
    (b'{"id": "Q1", "name": "a", "aliases": ["b", 7]}', r"field 'aliases\.1': .*got 7"),
    (b'{"id": "Q1", "name": "a", "pageviews": "7"}', r"field 'pageviews': .*got '7'"),
    (b'{"id": "Q1", "name": "a", "views": 7}', r"field 'views': Extra inputs"),
    (b'{"id": "Q1"}', r"field 'name': Field required"),
    (b'["Q1"]', r"rows\.jsonl:2: not a Entity: field 'record': .*got \['Q1'\]"),
    # Long values are shortened.
    (b'{"id": "Q1", "name": ["%s"]}' % (b"x" * 10_000), r"^.{0,300}got \['x{1,99}\.\.\.$"),
    (
        b'{"text": "a", "is_canonical": true, "categories": ["x"]}',
        SurfaceForm,
        "a canonical surface form has no redirect categories",
    ),
    error=RecordError,
    fixture="tmp_path",
)


def test_failed_write_keeps_the_previous_file(tmp_path):
    path = tmp_path / "entities.jsonl"
    write_jsonl(path, ENTITIES)

    def torn():
        yield ENTITIES[0]
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_jsonl(path, torn())

    assert tuple(read_jsonl(path, Entity)) == ENTITIES
    write_text(path, "old")
    write_text(path, "é\nb")
    assert path.read_bytes() == b"\xc3\xa9\nb"
    assert [file.name for file in tmp_path.iterdir()] == ["entities.jsonl"]
