import bz2
import gzip
import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia.wikidata import read_entity_batches

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency.taxonomy import RELATIONS

pytest.importorskip("msgspec")

PROPERTIES = tuple(relation.property_id for relation in RELATIONS.values())
WANTED = {"properties": PROPERTIES, "language": "en", "wiki": "enwiki"}


def claim(value, rank="normal", *, snaktype="value", kind="wikibase-entityid"):
    snak: dict[str, Any] = {"snaktype": snaktype, "property": "P19"}
    if snaktype == "value":
        snak["datavalue"] = {"value": value, "type": kind}
    return {"mainsnak": snak, "type": "statement", "id": "Q1$x", "rank": rank, "references": []}


def item(number):
    return {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}


def entity(number=1, **fields):
    empty = {"labels": {}, "descriptions": {}, "aliases": {}, "claims": {}, "sitelinks": {}}
    return {"type": "item", "id": f"Q{number}", **empty, **fields, "lastrevid": 5}


def write(path, *entities):
    lines = ",\n".join(json.dumps(each) for each in entities)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return path


Item = dict[str, Any]


def read(path, **options):
    """Read the items of all batches, each with its names and claims."""
    found: dict[int, Item] = {}
    for batch in read_entity_batches(path, **{**WANTED, **options}):
        for row in batch.entities.to_pylist():
            found[row["id"]] = row | {"aliases": [], "claims": {}}
        for row in batch.aliases.to_pylist():
            found[row["id"]]["aliases"].append(row["alias"])
        for row in batch.claims.to_pylist():
            found[row["subject"]]["claims"].setdefault(row["property"], []).append(row["object"])
    return list(found.values())


def ids(items):
    return [each["id"] for each in items]


def reference(raw, properties, languages, wiki):
    """Read one entity from its complete JSON with a plain parser."""
    labels, aliases, claims, links = (
        raw.get(name) or {} for name in ("labels", "aliases", "claims", "sitelinks")
    )
    found = {}
    for key in properties:
        statements = claims.get(key, [])
        best = [s for s in statements if s["rank"] == "preferred"]
        best = best or [s for s in statements if s["rank"] == "normal"]
        snaks = [s["mainsnak"] for s in best if s["mainsnak"]["snaktype"] == "value"]
        values = [snak["datavalue"]["value"] for snak in snaks]
        items = [
            v["numeric-id"]
            for v in values
            if isinstance(v, dict) and v.get("entity-type") == "item"
        ]
        if items:
            found[int(key[1:])] = list(dict.fromkeys(items))
    named = [labels[key]["value"] for key in languages if key in labels]
    others = [alias["value"] for key in languages for alias in aliases.get(key, [])]
    return {
        "id": int(raw["id"][1:]),
        "label": named[0] if named else None,
        "title": links[wiki]["title"] if wiki in links else None,
        "aliases": list(dict.fromkeys(others)),
        "claims": found,
    }


@pytest.mark.parametrize(
    ("languages", "wiki"), [(("en", "mul"), "enwiki"), (("ja", "zh-hans", "pt-br"), "jawiki")]
)
def test_entities_agree_with_json(data_files, languages, wiki):
    path = data_files / "wikidata" / "twenty_entities.json.bz2"
    raw = json.loads(bz2.decompress(path.read_bytes()))
    every = tuple(sorted({key for each in raw for key in each["claims"]}))
    named = {"language": languages[0], "fallback_languages": languages[1:], "wiki": wiki}

    found = read(path, properties=every, **named)

    assert found == [reference(each, every, languages, wiki) for each in raw]
    assert len(found) == 20
    assert sum(len(each["claims"]) for each in found) > 60


def test_batches_have_the_given_size_and_types(data_files):
    path = data_files / "wikidata/twenty_entities.json.bz2"
    batches = list(read_entity_batches(path, batch_size=8, **WANTED))
    assert [batch.entities.num_rows for batch in batches] == [8, 8, 4]
    types = [str(field.type) for field in batches[0].entities.schema]
    assert types == ["int64", "string", "string"]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([claim(item(1)), claim(item(2))], [1, 2]),
        ([claim(item(1)), claim(item(2), "preferred"), claim(item(3), "preferred")], [2, 3]),
        ([claim(item(1), "deprecated"), claim(item(2))], [2]),
        ([claim(item(1), "deprecated")], None),
        ([claim(item(1), "preferred")], [1]),
        ([claim(None, snaktype="somevalue"), claim(item(2))], [2]),
        ([claim(None, snaktype="novalue")], None),
        # Wikidata's truthy statements: a preferred "no value" excludes statements of lower rank.
        ([claim(None, "preferred", snaktype="novalue"), claim(item(2))], None),
        ([claim(item(4)), claim(item(4))], [4]),
        ([claim({"entity-type": "item", "numeric-id": 571})], [571]),
        ([claim({"entity-type": "property", "numeric-id": 31})], None),
        ([claim({"entity-type": "property", "numeric-id": 31, "id": "P31"})], None),
        ([claim({"entity-type": "lexeme", "id": "L7"})], None),
        ([claim({"entity-type": "item", "id": "Q8"})], [8]),
        ([claim("text", kind="string"), claim(item(2))], [2]),
        ([claim({"time": "+1969-00-00T00:00:00Z", "precision": 9}, kind="time")], None),
        ([claim(5), claim(1.5), claim(True), claim([1]), claim(item(2))], [2]),
        ([], None),
    ],
)
def test_claims_are_those_of_the_best_rank(tmp_path, statements, expected):
    path = write(tmp_path / "e.json", entity(claims={"P19": statements, "P999": [claim(item(9))]}))

    (found,) = read(path)

    assert found["claims"] == ({} if expected is None else {19: expected})


def test_maps_may_be_empty_or_missing_and_other_types_are_skipped(tmp_path):
    lists = {name: [] for name in ("labels", "aliases", "claims", "sitelinks")}
    path = write(
        tmp_path / "e.json",
        {"type": "property", "datatype": "string", "id": "P19", "labels": {}, "claims": []},
        entity(1, **lists),
        {"type": "lexeme", "id": "L7", "lemmas": {"en": {"value": "x"}}, "claims": []},
        {"id": "Q2", "type": "item"},
        {"type": "mediainfo", "id": "M4", "labels": [], "statements": []},
        entity(3),
    )

    nothing = {"label": None, "title": None, "aliases": [], "claims": {}}
    assert read(path) == [{"id": number} | nothing for number in (1, 2, 3)]
    path.write_text("[\n]\n")
    assert read(path) == []


A, B = json.dumps(entity(1)), json.dumps(entity(2))


@pytest.mark.parametrize(
    "text",
    [
        f"[\n{A},\n{B}\n]\n", f"[\n{A},\n{B}\n]", f"[\r\n{A},\r\n{B}\r\n]\r\n", f"[{A},\n{B}]",
        f"[\n{A}\n,{B}\n]\n\n", f"[\n{A},\n\n{B},\n]\n", f"{A}\n{B}\n", f"{A}\n{B}", f"[{A},{B}]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
def test_all_formats_of_arrays_and_lines_are_read(tmp_path, text, pack):
    path = tmp_path / "e.json"
    path.write_bytes(pack(text.encode()))

    assert ids(read(path)) == [1, 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "Q2", "labels": {"en": {"value": 5}}}', "Expected `str`, got `int`"),
        ('{"id": "Q2", "type": "it', "truncated"),
        ('{"type": "item"}', "missing required field `id`"),
        ('{"entities": {"Q1": {}}}', "missing required field `id`"),
        ("<html>", "malformed"),
    ],
)
def test_error_for_a_malformed_line_contains_its_number(tmp_path, line, message):
    path = tmp_path / "e.json"
    path.write_text(f"[\n{A},\n{B},\n{line},\n{A}\n]\n")
    place = rf"at plain byte {len(A + B) + 6:,}, after 2 items"

    with pytest.raises(DataError, match=rf"line 4 is not a Wikidata .*{message}.* {place}"):
        read(path)
    with pytest.warns(DataWarning, match="line 4 is not a Wikidata entity"):
        assert ids(read(path, allow_truncated=True)) == [1, 2]


@pytest.mark.parametrize("separator", [",\n", "\n"], ids=["array", "lines"])
def test_error_for_a_malformed_line_after_many_chunks_contains_its_number(tmp_path, separator):
    """Lines are counted over many chunks, and lines longer than a chunk are complete."""
    labels = {"de": {"language": "de", "value": "x" * 1_500_000}}
    lines = [json.dumps(entity(n)) for n in range(1, 9_000)]
    lines[5_000] = json.dumps(entity(5_001, labels=labels))
    lines[8_000] = '{"id": "Q8001", "type": 7}'
    path = tmp_path / "e.json"
    path.write_text(separator.join(lines), encoding="utf-8")
    offset = len(separator.join(lines[:8_000])) + len(separator)

    named = rf"line 8,001 is not a .* at plain byte {offset:,}, after 8,000 items"
    with pytest.raises(DataError, match=named):
        read(path)


def test_progress_is_reported_in_the_callers_thread_and_readers_can_be_closed_early(tmp_path):
    path = write(tmp_path / "e.json", *map(entity, range(1, 20_000)))
    states = []

    read(path, progress=lambda state: states.append((threading.get_ident(), state.read_bytes)))

    assert {thread for thread, _ in states} == {threading.get_ident()}
    assert [size for _, size in states] == sorted(size for _, size in states)
    assert states[-1][1] == path.stat().st_size
    batches = read_entity_batches(path, batch_size=10, **WANTED)
    assert next(batches).entities["id"][0].as_py() == 1
    batches.close()


def test_unclosed_array_is_reported_as_truncated(tmp_path):
    path = tmp_path / "e.json"
    path.write_text(f"[\n{A},\n{B},\n")

    with pytest.raises(DataError, match=r"no closing bracket.* after 2 items"):
        read(path)
    with pytest.warns(DataWarning, match="no closing bracket"):
        assert ids(read(path, allow_truncated=True)) == [1, 2]


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("e", {"properties": ["19"]}, ValueError, "identifiers such as 'P19', got '19'"),
        ("e", {"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        ("none", {}, SourceNotFoundError, "none"),
    ],
)
def test_read_entity_batches_rejects_invalid_arguments(tmp_path, name, options, error, message):
    write(tmp_path / "e.json", entity())
    with pytest.raises(error, match=message):
        read(tmp_path / f"{name}.json", **options)


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
TEXTS = st.builds(lambda value: {"language": "en", "value": value}, NAMES)
STATEMENTS = st.lists(
    st.builds(
        claim,
        st.one_of(
            st.integers(1, 10**9).map(item),
            st.just({"entity-type": "property", "numeric-id": 4, "id": "P4"}),
            NAMES,
            st.just({"amount": "+3", "unit": "1"}),
        ),
        st.sampled_from(["normal", "preferred", "deprecated"]),
        snaktype=st.sampled_from(["value", "value", "somevalue", "novalue"]),
    ),
    max_size=4,
)


def maps(keys, values):
    return st.dictionaries(st.sampled_from(keys.split()), values)


FIELDS = {
    "labels": maps("en mul de", TEXTS) | st.just([]),
    "aliases": maps("en mul", st.lists(TEXTS)),
    "claims": maps("P19 P17 P999", STATEMENTS),
    "sitelinks": maps("enwiki dewiki", st.builds(lambda title: {"title": title}, NAMES)),
}
ENTITIES = st.lists(st.fixed_dictionaries(FIELDS), max_size=6)


@settings(max_examples=40, deadline=None)
@given(ENTITIES, st.integers(1, 4), st.booleans())
def test_read_entities_equal_the_written_ones(fields, batch_size, ascii_only):
    raw = [entity(n, **each) for n, each in enumerate(fields, 1)]
    text = ",\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in raw)
    with TemporaryDirectory() as folder:
        path = Path(folder, "e.json")
        path.write_text(f"[\n{text}\n]\n", encoding="utf-8")
        found = read(path, batch_size=batch_size)
        batches = read_entity_batches(path, batch_size=batch_size, **WANTED)
        sizes = [batch.entities.num_rows for batch in batches]

    assert found == [reference(each, PROPERTIES, ("en", "mul"), "enwiki") for each in raw]
    assert sizes[:-1] == [batch_size] * (len(sizes) - 1)
