import bz2
import gzip
import itertools
import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia._wikidata_items import WikidataCounts
from surface_consistency_build.wikimedia.wikidata import (
    WikidataEntity,
    read_entities,
    read_entity_batches,
)

from surface_consistency.errors import DataError, DataWarning, SourceNotFoundError
from surface_consistency.taxonomy import RELATIONS

pytest.importorskip("msgspec")

PROPERTIES = tuple(relation.property_id for relation in RELATIONS.values())
WANTED = {"properties": PROPERTIES, "languages": ("en", "mul"), "wikis": ("enwiki",)}


def claim(
    value: object, rank: str = "normal", *, snaktype: str = "value", kind: str = "wikibase-entityid"
) -> dict[str, Any]:
    snak: dict[str, Any] = {"snaktype": snaktype, "property": "P19"}
    if snaktype == "value":
        snak["datavalue"] = {"value": value, "type": kind}
    return {"mainsnak": snak, "type": "statement", "id": "Q1$x", "rank": rank, "references": []}


def item(number: int) -> dict[str, Any]:
    return {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}


def entity(number: int = 1, **fields: object) -> dict[str, Any]:
    empty = {"labels": {}, "descriptions": {}, "aliases": {}, "claims": {}, "sitelinks": {}}
    return {"type": "item", "id": f"Q{number}", **empty, **fields, "lastrevid": 5}


def write(path: Path, *entities: object) -> Path:
    lines = ",\n".join(json.dumps(each) for each in entities)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> list[WikidataEntity]:
    return list(read_entities(path, **{**WANTED, **options}))


def reference(
    raw: dict[str, Any], properties: tuple[str, ...], languages: tuple[str, ...], wiki: str
) -> WikidataEntity:
    """Read one entity the plain way, from its whole JSON."""
    labels, aliases, claims, links = (
        raw.get(name) or {} for name in ("labels", "aliases", "claims", "sitelinks")
    )
    found = {}
    for key in properties:
        statements = claims.get(key, [])
        best = [s for s in statements if s["rank"] == "preferred"]
        best = best or [s for s in statements if s["rank"] == "normal"]
        values = [
            s["mainsnak"]["datavalue"]["value"]
            for s in best
            if s["mainsnak"]["snaktype"] == "value"
        ]
        items = [
            f"Q{v['numeric-id']}"
            for v in values
            if isinstance(v, dict) and v.get("entity-type") == "item"
        ]
        if items:
            found[key] = tuple(dict.fromkeys(items))
    return WikidataEntity(
        id=raw["id"],
        labels={key: labels[key]["value"] for key in languages if key in labels},
        aliases={
            key: tuple(alias["value"] for alias in aliases[key])
            for key in languages
            if aliases.get(key)
        },
        claims=found,
        sitelinks={wiki: links[wiki]["title"]} if wiki in links else {},
    )


@pytest.mark.parametrize(
    ("languages", "wiki"), [(("en", "mul"), "enwiki"), (("ja", "zh-hans", "pt-br"), "jawiki")]
)
def test_entities_agree_with_json(data_files: Path, languages: tuple[str, ...], wiki: str) -> None:
    path = data_files / "wikidata" / "twenty_entities.json.bz2"
    raw = json.loads(bz2.decompress(path.read_bytes()))
    every = tuple(sorted({key for each in raw for key in each["claims"]}))
    counts = WikidataCounts()

    found = read(path, languages=languages, wikis=(wiki,), properties=every, counts=counts)

    assert found == [reference(each, every, languages, wiki) for each in raw]
    assert len(found) == counts.n_items == 20
    assert sum(len(each.claims) for each in found) > 60


def test_entities_of_the_sixteen_relations(data_files: Path) -> None:
    found = {e.id: e for e in read(data_files / "wikidata/twenty_entities.json.bz2")}

    born = found["Q58978"]
    assert born.labels == {"en": "Max Born"}
    assert born.sitelinks == {"enwiki": "Max Born"}
    assert born.claims["P19"] == ("Q1799",)
    assert found["Q59038"].claims == {"P17": ("Q159", "Q225")}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([claim(item(1)), claim(item(2))], ("Q1", "Q2")),
        ([claim(item(1)), claim(item(2), "preferred"), claim(item(3), "preferred")], ("Q2", "Q3")),
        ([claim(item(1), "deprecated"), claim(item(2))], ("Q2",)),
        ([claim(item(1), "deprecated")], None),
        ([claim(item(1), "preferred")], ("Q1",)),
        ([claim(None, snaktype="somevalue"), claim(item(2))], ("Q2",)),
        ([claim(None, snaktype="novalue")], None),
        # Wikidata's truthy statements: a preferred "no value" leaves nothing of lower rank.
        ([claim(None, "preferred", snaktype="novalue"), claim(item(2))], None),
        ([claim(item(4)), claim(item(4))], ("Q4",)),
        ([claim({"entity-type": "item", "numeric-id": 571})], ("Q571",)),
        ([claim({"entity-type": "property", "numeric-id": 31})], None),
        ([claim({"entity-type": "property", "numeric-id": 31, "id": "P31"})], None),
        ([claim({"entity-type": "lexeme", "id": "L7"})], None),
        ([claim({"entity-type": "item", "id": "Q8"})], ("Q8",)),
        ([claim("text", kind="string"), claim(item(2))], ("Q2",)),
        ([claim({"time": "+1969-00-00T00:00:00Z", "precision": 9}, kind="time")], None),
        ([claim(5), claim(1.5), claim(True), claim([1]), claim(item(2))], ("Q2",)),
        ([], None),
    ],
)
def test_claims_are_those_of_the_best_rank(
    tmp_path: Path, statements: list[dict[str, Any]], expected: tuple[str, ...] | None
) -> None:
    path = write(tmp_path / "e.json", entity(claims={"P19": statements, "P999": [claim(item(9))]}))

    (found,) = read(path)

    assert found.claims == ({} if expected is None else {"P19": expected})


def test_maps_may_be_empty_lists_or_lack(tmp_path: Path) -> None:
    lists = {name: [] for name in ("labels", "aliases", "claims", "sitelinks")}
    path = write(tmp_path / "e.json", entity(1, **lists), {"id": "Q2", "type": "item"}, entity(3))

    found = read(path)

    assert [each.id for each in found] == ["Q1", "Q2", "Q3"]
    assert all(not (e.labels or e.aliases or e.claims or e.sitelinks) for e in found)


def test_other_types_are_skipped_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e.json",
        {"type": "property", "datatype": "string", "id": "P19", "labels": {}, "claims": []},
        entity(1),
        {"type": "lexeme", "id": "L7", "lemmas": {"en": {"value": "x"}}, "claims": []},
        {"type": "mediainfo", "id": "M4", "labels": [], "statements": []},
        {"type": "lexeme", "id": "L8"},
    )
    counts = WikidataCounts()

    assert [each.id for each in read(path, counts=counts)] == ["Q1"]
    assert counts == WikidataCounts(n_items=1, skipped={"property": 1, "lexeme": 2, "mediainfo": 1})


A, B = json.dumps(entity(1)), json.dumps(entity(2))


@pytest.mark.parametrize(
    "text",
    [
        f"[\n{A},\n{B}\n]\n",
        f"[\n{A},\n{B}\n]",
        f"[\r\n{A},\r\n{B}\r\n]\r\n",
        f"[{A},\n{B}]",
        f"[\n{A}\n,{B}\n]\n\n",
        f"[\n{A},\n\n{B},\n]\n",
        f"{A}\n{B}\n",
        f"{A}\n{B}",
        f"[{A},{B}]",
    ],
    ids=[
        "dump",
        "no-end-of-line",
        "crlf",
        "tight",
        "comma-first",
        "blanks",
        "lines",
        "cut-lines",
        "one-line",
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
def test_framing_is_free(tmp_path: Path, text: str, pack: Any) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(pack(text.encode()))

    assert [each.id for each in read(path)] == ["Q1", "Q2"]


def test_an_empty_array_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text("[\n]\n")

    assert read(tmp_path / "e.json") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"id": "Q2", "type": "item", "labels": {"en": {"value": 5}}}',
            "Expected `str`, got `int`",
        ),
        ('{"id": "Q2", "type": "it', "truncated"),
        ('{"type": "item"}', "missing required field `id`"),
        ('{"entities": {"Q1": {}}}', "missing required field `id`"),
        ("<html>", "malformed"),
    ],
    ids=["type", "cut", "no-id", "api", "html"],
)
def test_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(f"[\n{A},\n{B},\n{line},\n{A}\n]\n")
    offset = len(f"[\n{A},\n{B},\n")

    with pytest.raises(DataError, match=message) as raised:
        read(path)

    assert f"{path}: line 4 is no Wikidata entity" in str(raised.value)
    assert f"at plain byte {offset:,}, after 2 items" in str(raised.value)
    with pytest.warns(DataWarning, match="line 4 is no Wikidata entity"):
        assert [each.id for each in read(path, allow_truncated=True)] == ["Q1", "Q2"]


@pytest.mark.parametrize("separator", [",\n", "\n"], ids=["array", "lines"])
def test_malformed_line_far_in_a_dump_is_named(tmp_path: Path, separator: str) -> None:
    """Lines are counted over many chunks, and lines longer than a chunk are whole."""
    labels = {"de": {"language": "de", "value": "x" * 1_500_000}}
    lines = [json.dumps(entity(n)) for n in range(1, 9_000)]
    lines[5_000] = json.dumps(entity(5_001, labels=labels))
    lines[8_000] = '{"id": "Q8001", "type": 7}'
    path = tmp_path / "e.json"
    path.write_text(separator.join(lines), encoding="utf-8")
    offset = len(separator.join(lines[:8_000])) + len(separator)

    with pytest.raises(DataError, match=r"line 8,001 is no .* after 8,000 items") as raised:
        read(path)

    assert f"at plain byte {offset:,}," in str(raised.value)


def test_reader_may_be_left_early(tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", *map(entity, range(1, 20_000)))

    entities = read_entities(path, **WANTED)

    assert next(iter(entities)).id == "Q1"
    entities.close()


def test_progress_is_told_in_the_callers_thread(tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", *map(entity, range(1, 20_000)))
    told = []

    read(path, progress=lambda state: told.append((threading.get_ident(), state.read_bytes)))

    assert {thread for thread, _ in told} == {threading.get_ident()}
    assert [size for _, size in told] == sorted(size for _, size in told)
    assert told[-1][1] == path.stat().st_size


def test_an_open_array_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_text(f"[\n{A},\n{B},\n")

    with pytest.raises(DataError, match=r"no closing bracket.* after 2 items"):
        read(path)
    with pytest.warns(DataWarning, match="no closing bracket"):
        assert len(read(path, allow_truncated=True)) == 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
def test_cut_dump_keeps_what_came_before_where_allowed(tmp_path: Path, pack: Any) -> None:
    numbers = range(1, 4_000)
    labels = {"en": {"language": "en", "value": "x" * 400}}
    whole = write(tmp_path / "whole.json", *(entity(n, labels=labels) for n in numbers))
    data = pack(whole.read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(data[: len(data) * 2 // 3])

    with pytest.raises(DataError, match=r"cut\.json: the .* early"):
        read(path)
    with pytest.warns(DataWarning, match="what came before is kept"):
        kept = read(path, allow_truncated=True)

    assert [each.id for each in kept] == [f"Q{n}" for n in numbers[: len(kept)]]
    assert pack is bz2.compress or len(kept) > 100


def test_entities_rejects_bad_arguments(tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", entity())

    with pytest.raises(ValueError, match="identifiers such as 'P19', got '19'"):
        read(path, properties=["19"])
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        next(read_entity_batches(path, properties=[], language="en", wiki="enwiki", batch_size=0))
    with pytest.raises(SourceNotFoundError, match="none"):
        read(tmp_path / "none.json")


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
ENTITIES = st.lists(
    st.fixed_dictionaries(
        {
            "labels": st.dictionaries(st.sampled_from(["en", "mul", "de"]), TEXTS) | st.just([]),
            "aliases": st.dictionaries(st.sampled_from(["en", "mul"]), st.lists(TEXTS)),
            "claims": st.dictionaries(st.sampled_from(["P19", "P17", "P999"]), STATEMENTS),
            "sitelinks": st.dictionaries(
                st.sampled_from(["enwiki", "dewiki"]), st.builds(lambda t: {"title": t}, NAMES)
            ),
        }
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(ENTITIES, st.integers(1, 4), st.booleans())
def test_entities_are_those_that_were_written(
    fields: list[dict[str, Any]], batch_size: int, ascii_only: bool
) -> None:
    raw = [entity(n, **each) for n, each in enumerate(fields, 1)]
    text = ",\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in raw)
    expected = [reference(each, PROPERTIES, ("en", "mul"), "enwiki") for each in raw]
    with TemporaryDirectory() as folder:
        path = Path(folder, "e.json")
        path.write_text(f"[\n{text}\n]\n", encoding="utf-8")
        found = read(path)
        batches = list(
            read_entity_batches(
                path, properties=PROPERTIES, language="en", wiki="enwiki", batch_size=batch_size
            )
        )

    assert found == expected
    assert [b.entities.num_rows for b in batches[:-1]] == [batch_size] * (len(batches) - 1)
    rows = list(itertools.chain.from_iterable(b.entities.to_pylist() for b in batches))
    assert rows == [
        {
            "id": int(each.id[1:]),
            "label": each.labels.get("en", each.labels.get("mul")),
            "title": each.sitelinks.get("enwiki"),
        }
        for each in expected
    ]
    aliases = list(itertools.chain.from_iterable(b.aliases.to_pylist() for b in batches))
    assert aliases == [
        {"id": int(each.id[1:]), "alias": alias}
        for each in expected
        for alias in dict.fromkeys((*each.aliases.get("en", ()), *each.aliases.get("mul", ())))
    ]
    claims = list(itertools.chain.from_iterable(b.claims.to_pylist() for b in batches))
    assert claims == [
        {"subject": int(each.id[1:]), "property": int(key[1:]), "object": int(value[1:])}
        for each in expected
        for key, values in each.claims.items()
        for value in values
    ]


def test_batches_of_real_entities(data_files: Path) -> None:
    path = data_files / "wikidata" / "twenty_entities.json.bz2"

    batches = list(
        read_entity_batches(path, properties=PROPERTIES, language="en", wiki="enwiki", batch_size=8)
    )

    assert [batch.entities.num_rows for batch in batches] == [8, 8, 4]
    types = [str(field.type) for field in batches[0].entities.schema]
    assert types == ["int64", "string", "string"]
    assert {"subject": 58978, "property": 19, "object": 1799} in batches[0].claims.to_pylist()
