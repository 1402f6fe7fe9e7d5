"""Databases that are mapped from Parquet, against the same triplets in memory."""

import errno
import io
import json
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.schemas import AuditPrompt, LookupQuery, Triplet, TripletDatabase
from surface_consistency.studies.audit.retrieval import (
    AliasGroups,
    EmbeddingRetriever,
    FuzzyRetriever,
    TripletStore,
    alias_closures,
    content_digest,
    database_coverage,
    index_files,
    mapped_database,
    open_database,
    similarity_closures,
    verify_closures,
)

NAMES = st.sampled_from(["us", ".us", "US", "u s", "€", "$", "Ü", "ü", "Ｕs", "İ", "a_b", "東京"])
TRIPLETS = st.lists(st.builds(Triplet, NAMES, NAMES, NAMES), min_size=1, max_size=12)
ALIASES = st.lists(NAMES, max_size=3).map(tuple)
FACTS = st.builds(
    AuditPrompt,
    prompt_id=st.integers(0, 9**9),
    fact_id=st.just(0),
    subject=NAMES,
    relation=NAMES,
    gold_object=NAMES,
    prompt_text=st.just("?"),
    subject_aliases=ALIASES,
    relation_aliases=ALIASES,
    object_aliases=ALIASES,
)


def in_memory(triplets):
    """The same entries as a record, repeated ones too."""
    return TripletDatabase(
        entities=(), relationships=(), return_values=(), triplets=tuple(triplets)
    )


def write(path, triplets, names=("head", "relation", "tail"), **options):
    """Write triplets as Parquet."""
    columns = zip(*triplets, strict=True) if triplets else ((), (), ())
    table = pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
    )
    pq.write_table(table, path, **options)
    return path


def plain(closures):
    """Closures as lists."""
    return [(one.indices.tolist(), one.by_similarity.tolist()) for one in closures]


@given(
    triplets=TRIPLETS,
    facts=st.lists(FACTS, min_size=1, max_size=4),
    own_key=st.booleans(),
    scope=st.sets(st.sampled_from(["subject", "relation", "object"]), min_size=1),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_mapped_database_agrees_with_one_in_memory(
    tmp_path, table_encoder, triplets, facts, own_key, scope
):
    """Entries, closures by each rule, what they leave, lookup keys, searches and coverage."""
    home = tmp_path / content_digest(triplets)
    home.mkdir(exist_ok=True)
    mapped = open_database(write(home / "s.parquet", triplets, row_group_size=3), cache_dir=home)
    memory = in_memory(triplets)
    whole_groups = AliasGroups.from_prompts(facts, database=memory)

    assert list(mapped.triplets) == triplets
    assert [mapped.triplets[-1], *mapped.triplets[:2]] == [triplets[-1], *triplets[:2]]
    assert mapped.triplets.content == content_digest(memory.triplets)
    options = [
        {"scope": tuple(scope), "key": str.lower if own_key else "strict"},
        {"groups": whole_groups},
        {"groups": AliasGroups.from_prompts(facts)},
    ]
    for chosen in ({}, *options):
        closures = alias_closures(memory, facts, **chosen)
        assert plain(alias_closures(mapped, facts, **chosen)) == plain(closures)
        ours, theirs = (verify_closures(one, facts, closures) for one in (mapped, memory))
        assert ours == theirs == verify_closures(memory, facts, closures, groups=whole_groups)
    near = [
        similarity_closures(
            one, closures, embed=table_encoder().encode, radius=0.9, same_object="published"
        )
        for one in (mapped, memory)
    ]
    assert plain(near[0]) == plain(near[1])
    fact = facts[0]
    spoken = (fact.subject, *fact.subject_aliases), (fact.gold_object, *fact.object_aliases)
    assert mapped.relations_of(*spoken) == memory.relations_of(*spoken)
    query = LookupQuery(entity=fact.subject, relation=fact.relation)
    for make in (FuzzyRetriever, lambda some: EmbeddingRetriever(some, table_encoder())):
        traces = [
            TripletStore(one, make(one.triplets), k=3).look_up(
                [query], states=["DEL-ON"], deleted=[closures[0].indices], targets=[fact]
            )
            for one in (mapped, memory)
        ]
        assert traces[0] == traces[1]


def test_mapped_published_database_agrees_with_its_json(published, tmp_path):
    database, facts = published["countries/alias"]
    mapped = open_database(write(tmp_path / "alias.parquet", database.triplets))

    closures = alias_closures(mapped, facts)

    assert plain(closures) == plain(alias_closures(database, facts))
    assert verify_closures(mapped, facts, closures) == verify_closures(database, facts, closures)
    assert database_coverage(mapped, facts) == database_coverage(database, facts)


@pytest.mark.parametrize(
    "names", [("Tail", "HEAD", "relation"), ("value", "entity", "relationship")], ids=["htr", "lm"]
)
def test_columns_are_found_by_name_in_any_order_beside_others(tmp_path, names):
    table = pa.table(
        {
            names[0]: pa.array(["Paris"]).dictionary_encode(),
            "score": [0.5],
            names[2]: pa.array(["capital"], pa.large_string()),
            names[1]: ["France"],
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")

    assert open_database(tmp_path / "s.parquet").triplets[0] == ("France", "capital", "Paris")


def test_shards_are_one_database(tmp_path, facts):
    folder = tmp_path / "store.parquet"
    folder.mkdir()
    write(folder / "part-0.parquet", facts[:2])
    write(folder / "part-1.parquet", facts[2:])

    assert list(open_database(folder).triplets) == facts


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            {"head": ["a"], "tail": ["b"]},
            ColumnNotFoundError,
            "relation is missing.*'tail': rename",
        ),
        (
            {"head": ["a"], "entity": ["a"], "relation": ["r"], "tail": ["b"]},
            ColumnNotFoundError,
            "subject could be 'head' or 'entity'",
        ),
        ({"head": ["a"], "relation": ["r"], "tail": [3]}, DataError, "'tail' holds int64"),
        (
            {"head": ["a", None], "relation": ["r"] * 2, "tail": ["b"] * 2},
            DataError,
            "row 2 has no",
        ),
        (
            {"head": ["a", "a"], "relation": ["r", " "], "tail": ["b"] * 2},
            DataError,
            "row 2 has an e",
        ),
        (
            {"head": ["a"], "relation": ["r"], "tail": ["b" * 10_001]},
            DataError,
            "10,001 characters",
        ),
        (
            {name: pa.array([], pa.string()) for name in ("head", "relation", "tail")},
            DataError,
            "no tr",
        ),
    ],
    ids=["lacking", "two", "number", "null", "blank", "long", "empty"],
)
def test_open_database_rejects(tmp_path, table, error, message):
    pq.write_table(pa.table(table), tmp_path / "s.parquet")

    with pytest.raises(error, match=message):
        open_database(tmp_path / "s.parquet")

    assert not (tmp_path / "s.parquet.index").exists()


def test_open_database_rejects_a_column_that_stands_twice(tmp_path):
    columns = [pa.array([cell]) for cell in "aarb"]
    table = pa.Table.from_arrays(columns, names=["head", "head", "relation", "tail"])
    pq.write_table(table, tmp_path / "s.parquet")

    with pytest.raises(ColumnNotFoundError, match="the subject could be 'head' or 'head'"):
        open_database(tmp_path / "s.parquet")


@pytest.mark.parametrize("cell", [None, " ", "x" * 10_001, b"\xff"])
def test_a_broken_cell_is_named_by_its_shard_and_row(tmp_path, facts, cell):
    folder = tmp_path / "store.parquet"
    folder.mkdir()
    write(folder / "part-0.parquet", facts)
    cells = pa.array([b"a", cell if isinstance(cell, bytes | None) else cell.encode()])
    texts = {"head": cells.view(pa.string()), "relation": ["r"] * 2, "tail": ["b"] * 2}
    pq.write_table(pa.table(texts), folder / "part-1.parquet")

    with pytest.raises(DataError, match=r"part-1\.parquet: row 2"):
        open_database(folder)


def test_more_entries_than_can_be_numbered_are_refused(tmp_path, facts, monkeypatch):
    monkeypatch.setattr(index_files, "_MOST", len(facts) - 1)

    with pytest.raises(DataError, match="6 triplets; a database has 1 to 5 of them"):
        open_database(write(tmp_path / "s.parquet", facts))


def test_what_is_no_index_is_left_alone(tmp_path, facts):
    own = tmp_path / "s.parquet.index" / "notes.txt"
    own.parent.mkdir()
    own.write_text("mine")

    with pytest.raises(DataError, match=r"s\.parquet\.index is in the way of the index"):
        open_database(write(tmp_path / "s.parquet", facts))

    assert own.read_text() == "mine"


def test_open_database_rejects_what_is_no_parquet(tmp_path, facts):
    (tmp_path / "s.parquet").write_text("{}")
    whole = write(tmp_path / "t.parquet", facts).read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-20])

    with pytest.raises(SourceNotFoundError, match=r"no Parquet file .*none\.parquet"):
        open_database(tmp_path / "none.parquet")
    for name in ("s", "t"):
        with pytest.raises(DataError, match=rf"{name}\.parquet cannot be read as Parquet"):
            open_database(tmp_path / f"{name}.parquet")


def test_bytes_that_are_no_text_are_rejected(tmp_path):
    raw = pa.array([b"\xff\xfe"]).view(pa.string())
    pq.write_table(
        pa.table({"head": raw, "relation": ["r"], "tail": ["b"]}), tmp_path / "s.parquet"
    )

    with pytest.raises(DataError, match="row 1: column 'head' holds bytes that are not UTF-8"):
        open_database(tmp_path / "s.parquet")


def test_index_is_made_once_and_anew_where_the_file_changed(tmp_path, facts, capsys):
    path = write(tmp_path / "s.parquet", facts)
    made = [open_database(path), open_database(path)]
    assert capsys.readouterr().err.count("indexing the triplets of") == 1
    assert made[0].folder == made[1].folder == tmp_path / "s.parquet.index"

    write(path, facts[:2])
    again = open_database(path)

    assert list(again.triplets) == facts[:2]
    assert "has changed since it was indexed" in capsys.readouterr().err
    # What was mapped before is still whole.
    assert list(made[0].triplets) == facts


def test_index_of_another_unicode_is_made_again(tmp_path, facts, capsys):
    """Names are found by their folded forms, which another Python may fold otherwise."""
    path = write(tmp_path / "s.parquet", facts)
    meta = open_database(path).folder / "meta.json"
    meta.write_text(meta.read_text().replace(unicodedata.unidata_version, "9.0.0"))

    assert list(open_database(path).triplets) == facts
    assert "this package or Python has changed since" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["subject_ids.npy", "meta.json"])
def test_torn_index_is_made_again(tmp_path, facts, caplog, name):
    path = write(tmp_path / "s.parquet", facts)
    torn = open_database(path).folder / name
    torn.write_bytes(torn.read_bytes()[:-9])

    assert list(open_database(path).triplets) == facts
    assert "made again" in caplog.text


class _FullDisk(io.RawIOBase):
    """A file on a disk without room."""

    def writable(self):
        return True

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_full_disk_leaves_no_index(tmp_path, facts, monkeypatch):
    path = write(tmp_path / "s.parquet", facts)
    opened = Path.open

    def open_full(self, *args, **options):
        return _FullDisk() if self.name == "object_names.arrow" else opened(self, *args, **options)

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(DataError, match=r"s\.parquet\.index cannot be written \(No space"):
        open_database(path)

    assert {one.name for one in tmp_path.iterdir()} <= {"s.parquet", ".s.parquet.index.lock"}
    monkeypatch.undo()
    assert list(open_database(path).triplets) == facts


def test_killed_build_leaves_no_index_and_its_rest_is_removed(tmp_path, facts, monkeypatch):
    """A killed process cleans nothing up; its draft bears the number of a process that is gone."""
    path = write(tmp_path / "s.parquet", facts)
    killed = mapped_database.part_beside(tmp_path / "s.parquet.index")
    dead = killed.with_name(killed.name.replace(f"-{mapped_database.os.getpid()}-", "-4194399-"))
    dead.mkdir()
    shutil.copy(path, dead / "subject_ids.npy")

    assert list(open_database(path).triplets) == facts
    assert not dead.exists()


def test_index_goes_to_the_cache_where_nothing_can_be_written_beside(tmp_path, facts, monkeypatch):
    path = write(tmp_path / "s.parquet", facts)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mapped_database.os, "access", lambda place, mode: place != tmp_path)

    assert open_database(path).folder.parent == tmp_path / "cache/surface-consistency/triplets"
    assert not (tmp_path / "s.parquet.index").exists()


def test_colliding_hashes_are_told_apart(tmp_path, facts, fact, monkeypatch):
    for module in (mapped_database, index_files):
        monkeypatch.setattr(module, "hash_key", len)
    mapped = open_database(write(tmp_path / "s.parquet", facts))

    chad = fact("chad", "capital", "N'Djamena")

    assert alias_closures(mapped, [chad])[0].indices.tolist() == [1]


def test_index_says_what_it_is_made_of(tmp_path, facts):
    folder = open_database(write(tmp_path / "s.parquet", facts)).folder

    meta = json.loads((folder / "meta.json").read_text())

    assert meta["format"].endswith(f"Unicode {unicodedata.unidata_version}")
    assert meta["n_triplets"] == 6
    assert meta["content"] == content_digest(facts)
    assert np.load(folder / "key_ids.npy").tolist() == [0, 1, 2, 3, 4, 1]
