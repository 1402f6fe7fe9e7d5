"""Databases in Parquet, compared with the same triplets in memory."""

import errno
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.schemas import LookupQuery
from surface_consistency.studies.audit.retrieval import (
    Triplets,
    TripletStore,
    alias_closures,
    parquet,
    verify_closures,
)
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups, name_key
from surface_consistency.studies.audit.retrieval.closure import relations_of, similarity_closures
from surface_consistency.studies.audit.retrieval.parquet import read_parquet
from surface_consistency.studies.audit.retrieval.retrievers import (
    EmbeddingRetriever,
    FuzzyRetriever,
)
from surface_consistency.studies.audit.retrieval.triplets import content_digest
from tests.audit_databases import triplets_and_facts

NAMES = st.sampled_from(["us", ".us", "US", "u s", "€", "$", "Ü", "ü", "Ｕs", "İ", "a_b", "東京"])
NAMED = ("head", "relation", "tail")
ENTRIES, FACTS = triplets_and_facts(NAMES)
TRIPLETS = st.lists(ENTRIES, min_size=1, max_size=12)


def write(path, triplets, names=NAMED, **options):
    """Write triplets as Parquet."""
    columns = zip(*triplets, strict=True) if triplets else ((), (), ())
    table = pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
    )
    pq.write_table(table, path, **options)
    return path


def plain(closures):
    """Closures as lists."""
    return [one.tolist() for one in closures]


@given(
    triplets=TRIPLETS,
    facts=st.lists(FACTS, min_size=1, max_size=4),
    own_key=st.booleans(),
    scope=st.sets(st.sampled_from(["subject", "relation", "object"]), min_size=1),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_parquet_agrees_with_memory(tmp_path, table_encoder, triplets, facts, own_key, scope):
    """Entries, closures by each rule, remaining entries, lookup keys, searches and coverage."""
    home = tmp_path / content_digest(triplets)
    home.mkdir(exist_ok=True)
    file = write(home / "s.parquet", triplets, row_group_size=3)
    memory = Triplets.of(triplets)
    whole_groups = AliasGroups.from_prompts(facts, database=memory)
    rules = ["published", str.lower if own_key else "strict", whole_groups]
    rules.append(AliasGroups.from_prompts(facts))

    # Made at the first call, mapped at the second.
    for mapped in (read_parquet(file), read_parquet(file)):
        assert list(mapped) == triplets
        assert [mapped[-1], *mapped[:2]] == [triplets[-1], *triplets[:2]]
        assert mapped.content == content_digest(triplets)
        for rule in rules:
            closures = alias_closures(memory, facts, rule=rule)
            assert plain(alias_closures(mapped, facts, rule=rule)) == plain(closures)
            ours, theirs = (verify_closures(one, facts, closures) for one in (mapped, memory))
            assert ours.equals(theirs)
            wide = verify_closures(memory, facts, closures, groups=whole_groups)
            assert ours.equals(wide)
        some = [
            plain(alias_closures(one, facts, scope=tuple(scope), rule=rules[1]))
            for one in (mapped, memory)
        ]
        assert some[0] == some[1]
        near = [
            similarity_closures(
                one, closures, embed=table_encoder().encode, radius=0.9, same_object="published"
            )
            for one in (mapped, memory)
        ]
        assert plain(near[0]) == plain(near[1])
        fact = facts[0]
        spoken = (fact.subject, *fact.subject_aliases), (fact.gold_object, *fact.object_aliases)
        assert relations_of(mapped, *spoken) == naive_relations(triplets, *spoken)
        query = LookupQuery(entity=fact.subject, relation=fact.relation)
        for make in (FuzzyRetriever, lambda some: EmbeddingRetriever(some, table_encoder())):
            traces = [
                TripletStore(one, make(one), k=3).look_up(
                    [query], states=["DEL-ON"], deleted=[closures[0]], targets=[fact]
                )
                for one in (mapped, memory)
            ]
            assert traces[0] == traces[1]


def naive_relations(triplets, subjects, objects):
    """The relations of entries whose subject and object have a key of these names."""
    of = name_key("published")
    spoken, values = set(map(of, subjects)), set(map(of, objects))
    usable = (one for one in triplets if of(one.subject) in spoken and of(one.object) in values)
    return list(dict.fromkeys(one.relation for one in usable))


@pytest.mark.parametrize(
    "names", [("Tail", "HEAD", "relation"), ("value", "entity", "relationship")], ids=["htr", "lm"]
)
def test_columns_are_found_by_name_in_any_order(tmp_path, names):
    table = pa.table(
        {
            names[0]: pa.array(["Paris"]).dictionary_encode(),
            "score": [0.5],
            names[2]: pa.array(["capital"], pa.large_string()),
            names[1]: ["France"],
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")

    assert read_parquet(tmp_path / "s.parquet")[0] == ("France", "capital", "Paris")


def test_shards_are_one_database(tmp_path, facts):
    folder = tmp_path / "store.parquet"
    folder.mkdir()
    write(folder / "part-0.parquet", facts[:2])
    write(folder / "part-1.parquet", facts[2:])

    assert list(read_parquet(folder)) == facts


TABLES = {
    "lacking": ([["a"], ["b"]], ["head", "tail"], "relation is missing.*'tail': rename"),
    "two": ([["a"]] * 4, ["head", "entity", "relation", "tail"], "could be 'head' or 'entity'"),
    "twice": ([["a"]] * 4, ["head", "head", "relation", "tail"], "names a column twice: 'head'"),
    "number": ([["a"], ["r"], [3]], NAMED, "'tail' has the type int64"),
    "null": ([["a", None], ["r"] * 2, ["b"] * 2], NAMED, "row 2 has no"),
    "blank": ([["a", "a"], ["r", " "], ["b"] * 2], NAMED, "row 2 has an e"),
    "long": ([["a"], ["r"], ["b" * 10_001]], NAMED, "10,001 characters"),
    "empty": ([pa.array([], pa.string())] * 3, NAMED, "no tr"),
    "bytes": (
        [pa.array([b"\xff\xfe"]).view(pa.string()), ["r"], ["b"]],
        NAMED,
        "row 1: column 'head' has bytes that are not UTF-8",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_read_parquet_rejects_invalid_columns_and_cells(tmp_path, name):
    columns, names, message = TABLES[name]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=names)
    pq.write_table(table, tmp_path / "s.parquet")
    error = ColumnNotFoundError if name in ("lacking", "two") else DataError

    with pytest.raises(error, match=message):
        read_parquet(tmp_path / "s.parquet")

    assert not (tmp_path / "s.parquet.index").exists()


@pytest.mark.parametrize("cell", [None, " ", "x" * 10_001, b"\xff"])
def test_error_of_an_invalid_cell_names_shard_and_row(tmp_path, facts, cell):
    folder = tmp_path / "store.parquet"
    folder.mkdir()
    write(folder / "part-0.parquet", facts)
    cells = pa.array([b"a", cell if isinstance(cell, bytes | None) else cell.encode()])
    texts = {"head": cells.view(pa.string()), "relation": ["r"] * 2, "tail": ["b"] * 2}
    pq.write_table(pa.table(texts), folder / "part-1.parquet")

    with pytest.raises(DataError, match=r"part-1\.parquet: row 2"):
        read_parquet(folder)


def test_read_parquet_rejects_other_files(tmp_path, facts):
    (tmp_path / "s.parquet").write_text("{}")
    whole = write(tmp_path / "t.parquet", facts).read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-20])

    with pytest.raises(SourceNotFoundError, match=r"Parquet file .*none\.parquet not found"):
        read_parquet(tmp_path / "none.parquet")
    for name in ("s", "t"):
        with pytest.raises(DataError, match=rf"{name}\.parquet cannot be read as Parquet"):
            read_parquet(tmp_path / f"{name}.parquet")


def test_index_is_built_once_and_rebuilt_if_the_file_changed(tmp_path, facts, capsys):
    path = write(tmp_path / "s.parquet", facts)
    made = [read_parquet(path), read_parquet(path)]
    assert capsys.readouterr().err.count("indexing the triplets of") == 1
    assert {one.name for one in tmp_path.iterdir()} == {"s.parquet", "s.parquet.index"}

    write(path, facts[:2])
    again = read_parquet(path)

    assert list(again) == facts[:2]
    assert "made for another file or Python" in capsys.readouterr().err
    # An index that was mapped earlier is still complete.
    assert list(made[1]) == facts


def test_index_of_another_unicode_version_is_rebuilt(tmp_path, facts, capsys, monkeypatch):
    """Names are found by their folded forms, which may differ in another Python."""
    path = write(tmp_path / "s.parquet", facts)
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "_FORMAT", "1, Unicode 9.0.0")
        read_parquet(path)

    assert list(read_parquet(path)) == facts
    assert "made for another file or Python" in capsys.readouterr().err


def rewritten(place, change):
    """Write the index again with other values of a part."""
    with pa.ipc.open_file(place.read_bytes()) as file:
        table = file.read_all().combine_chunks()
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    changed = pa.table(change(columns)).replace_schema_metadata(table.schema.metadata)
    with pa.ipc.new_file(place, changed.schema) as file:
        file.write_table(changed)


def out_of_bounds(columns):
    ids = pa.array([77] * len(columns["object"]), pa.int32())
    wrong = pa.DictionaryArray.from_arrays(ids, columns["object"].dictionary, safe=False)
    return columns | {"object": wrong}


def other_hashes(columns):
    values = columns["subject"].dictionary
    parts = [values.field("name"), *(pa.array([7] * len(values), pa.uint64()) for _ in range(2))]
    struct = pa.StructArray.from_arrays(parts, ["name", "published", "strict"])
    indices = columns["subject"].indices
    return columns | {"subject": pa.DictionaryArray.from_arrays(indices, struct)}


BREAKS = {
    "short": lambda place: place.write_bytes(place.read_bytes()[:-9]),
    "empty": lambda place: place.write_bytes(b""),
    "text": lambda place: place.write_text("{}"),
    "no_column": lambda place: rewritten(place, lambda columns: {"subject": columns["subject"]}),
    "plain": lambda place: rewritten(place, lambda columns: {one: [1] for one in columns}),
    "out_of_bounds": lambda place: rewritten(place, out_of_bounds),
    "other_hashes": lambda place: rewritten(place, other_hashes),
}


@pytest.mark.parametrize("name", BREAKS)
def test_damaged_index_is_rebuilt(tmp_path, facts, caplog, name):
    path = write(tmp_path / "s.parquet", facts)
    whole = read_parquet(path)
    BREAKS[name](tmp_path / "s.parquet.index")

    again = read_parquet(path)

    assert list(again) == facts
    assert again.name_ids("subject").tolist() == whole.name_ids("subject").tolist()
    assert "rebuilt" in caplog.text
    caplog.clear()
    assert list(read_parquet(path)) == facts
    assert "rebuilt" not in caplog.text


class _FullDisk(io.RawIOBase):
    """A file on a full disk."""

    def writable(self):
        return True

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_triplets_are_read_if_the_index_cannot_be_written(tmp_path, facts, monkeypatch, caplog):
    path = write(tmp_path / "s.parquet", facts)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = pa.ipc.new_file
    monkeypatch.setattr(pa.ipc, "new_file", lambda sink, schema: made(_FullDisk(), schema))

    assert list(read_parquet(path)) == facts

    assert caplog.text.count("no index at") == caplog.text.count("No space left") == 2
    assert {one.name for one in tmp_path.rglob("*") if one.is_file()} == {"s.parquet"}


def test_index_is_written_to_the_cache_if_its_path_is_taken(tmp_path, facts, monkeypatch):
    path = write(tmp_path / "s.parquet", facts)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = tmp_path / "s.parquet.index" / "notes.txt"
    own.parent.mkdir()
    own.write_text("mine")

    assert list(read_parquet(path)) == list(read_parquet(path)) == facts

    (place,) = (tmp_path / "cache/surface-consistency/triplets").iterdir()
    assert place.suffix == ".index"
    assert own.read_text() == "mine"
