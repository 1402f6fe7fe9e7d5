"""Test published entity maps, read one array at a time, with known documents."""

import contextlib
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.linking.entity_maps import FAILURE_KEYS, EntityMap

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.studies.redirectqa.instances import entity_id

URI = "http://dbpedia.org/resource/"


def write(path, arrays):
    np.savez(path, **{name: np.asarray(array, dtype=np.int32) for name, array in arrays.items()})
    return path


@pytest.fixture
def known_map(tmp_path):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 120, 40)
    sets = {f"Entity {k}": set(rng.integers(0, 400, n).tolist()) for k, n in enumerate(sizes)}
    arrays = {URI + name.replace(" ", "_"): list(found) for name, found in sets.items()}
    failures = dict(zip(FAILURE_KEYS, ([401, 402], [403], []), strict=True))
    return sets, write(tmp_path / "map.npz", arrays | failures)


def test_documents_and_pairs_are_read_and_failures_are_not_entities(known_map):
    sets, path = known_map

    with EntityMap.open(path) as linked:
        assert len(linked) == len(sets)
        for name, documents in sets.items():
            assert linked.documents(name).tolist() == sorted(documents)
            for other, others in sets.items():
                assert linked.pair_count(name, other) == len(documents & others)
    with EntityMap.open(path) as linked:
        assert linked.failures == dict(zip(FAILURE_KEYS, (2, 1, 0), strict=True))
        assert not any(key in linked for key in FAILURE_KEYS)
        assert linked.count("__HTTP_ERROR__") == 0
        assert " HTTP ERROR " not in linked


def test_spellings_of_a_title_are_one_entity(tmp_path):
    arrays = {URI + "%C3%89dith_Piaf": [3, 1], URI + "Édith_Piaf": [3, 8], URI + "100%25": [4]}
    with EntityMap.open(write(tmp_path / "map.npz", arrays)) as linked:
        assert len(linked) == 2
        for name in ("Édith Piaf", "Édith_Piaf", URI + "%C3%89dith_Piaf"):
            assert linked.documents(name).tolist() == [1, 3, 8]
        assert linked.count("100%") == 1
        assert "Piaf" not in linked
        assert linked.pair_count("Piaf", "100%") == 0


def test_lookups_read_each_required_array_once(known_map, monkeypatch):
    read = []
    reading = zipfile.ZipFile.open

    def record(self, member):
        read.append(member.filename)
        return reading(self, member)

    monkeypatch.setattr(zipfile.ZipFile, "open", record)

    with EntityMap.open(known_map[1]) as linked:
        assert sorted(read) == sorted(f"{key}.npy" for key in FAILURE_KEYS)
        for _ in range(3):
            linked.pair_count("Entity 1", "Entity 2")

    assert read[len(FAILURE_KEYS) :] == [f"{URI}Entity_{k}.npy" for k in (1, 2)]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archive_is_read_like_with_numpy(tmp_path, save):
    rng = np.random.default_rng(0)
    names = [f"{URI}{word}" for word in ("Paris", "Édith", "東京", "a/b", "C%2B%2B")]
    arrays = {name: rng.integers(0, 9, size) for size, name in enumerate(names)}
    save(tmp_path / "a.npz", **arrays)

    with EntityMap.open(tmp_path / "a.npz") as linked:
        assert len(linked) == len(names)
        for name, expected in arrays.items():
            np.testing.assert_array_equal(linked.documents(name), np.unique(expected))
        assert linked.documents("none").size == 0


def test_an_archive_of_zip64_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 400)
    arrays = {URI + f"E{k}": [k, k + 1] for k in range(12)}

    with EntityMap.open(write(tmp_path / "map.npz", arrays)) as linked:
        assert (tmp_path / "map.npz").read_bytes().count(b"PK\6\6") == 1
        assert [linked.documents(f"E{k}").tolist() for k in (0, 11)] == [[0, 1], [11, 12]]


def damaged_archives(path, rng):
    """An npz file, first undamaged, then with bits flipped, or parts removed or repeated."""
    whole = path.read_bytes()
    yield whole
    for _ in range(130):
        broken = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
        first, last = sorted(rng.integers(len(whole), size=2))
        yield bytes(broken)
        yield bytes(broken[:first] + broken[last:])
        yield bytes(broken[:last] + broken[first:])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_archives_give_correct_documents_or_an_error(tmp_path, save):
    names = [URI + f"E{k}" for k in range(4)]
    path = tmp_path / "map.npz"
    save(path, **{name: np.arange(20) * k for k, name in enumerate(names)})
    expected = [sorted({n * k for n in range(20)}) for k in range(len(names))]
    n_read = 0
    for content in damaged_archives(path, np.random.default_rng(0)):
        path.write_bytes(content)
        with contextlib.suppress(DataError), EntityMap.open(path) as linked:
            for name in names:
                with contextlib.suppress(DataError):
                    documents = linked.documents(name).tolist()
                    assert documents == [] or documents in expected
                    n_read += bool(documents)
    assert n_read > 4


def one_member(path, content, n_plain=None):
    """Write an archive of one member, whose entry may have an incorrect size."""
    member = zipfile.ZipInfo(URI + "Bomb.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content, zipfile.ZIP_DEFLATED)
        member.file_size = n_plain or member.file_size
    return path


def headed(shape, kind="<i8"):
    """Write a header that may differ from the data."""
    content = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (headed((1 << 40,)) + bytes(32), "declares 1,099,511,627,776 numbers"),
        (headed((3,)) + bytes(32), "declares 3 numbers, but 32 bytes follow"),
        (headed((-4,)) + bytes(32), "declares -4 numbers"),
        (headed((2, 2)) + bytes(32), "must be a 1-D array"),
        (headed((4,), "<U8") + bytes(128), "must contain numbers of documents"),
        (headed((4,), "|O") + bytes(32), "must be a 1-D array"),
        (headed((4,)).replace(b"<i8", b"\xff)]") + bytes(32), "is damaged"),
        (b"\x93NUMPY", "is damaged"),
        (headed((4,), "<f8") + bytes(32), "must contain numbers of documents"),
    ],
)
def test_error_for_an_incorrect_header_contains_the_name_of_the_array(tmp_path, content, message):
    with (
        EntityMap.open(one_member(tmp_path / "map.npz", content)) as linked,
        pytest.raises(DataError, match=rf"map.npz: .*Bomb.npy.*{message}"),
    ):
        linked.count("Bomb")


def test_a_decompression_bomb_is_rejected_before_decompression(tmp_path):
    zeros = headed((1 << 24,)) + bytes(1 << 27)
    path = one_member(tmp_path / "map.npz", zeros)
    assert path.stat().st_size < 1 << 18

    tracemalloc.start()
    with (
        EntityMap.open(path) as linked,
        pytest.raises(DataError, match=r"Bomb.* plain size is 134,217"),
    ):
        linked.count("Bomb")

    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    little = one_member(tmp_path / "zeros.npz", headed((1 << 20,)) + bytes(1 << 23))
    with EntityMap.open(little) as linked:
        assert linked.documents("Bomb").tolist() == [0]
    tracemalloc.start()
    less = one_member(tmp_path / "less.npz", zeros, n_plain=160)
    with EntityMap.open(less) as linked, pytest.raises(DataError, match="is damaged"):
        linked.count("Bomb")
    with zipfile.ZipFile(tmp_path / "bzip2.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("Bomb.npy", headed((1 << 20,)) + bytes(1 << 23))
    made = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    with (
        EntityMap.open(tmp_path / "bzip2.npz") as linked,
        pytest.raises(DataError, match="compression is not that of numpy"),
    ):
        linked.count("Bomb")
    assert tracemalloc.get_traced_memory()[1] - made < 1 << 20
    tracemalloc.stop()
    large = one_member(tmp_path / "large.npz", headed((4,)) + bytes(32), n_plain=1 << 31)
    with EntityMap.open(large) as linked, pytest.raises(DataError, match="plain size is 2,147,483"):
        linked.count("Bomb")


def test_command_counts_entities_and_pairs_of_the_questions(tmp_path, capsys):
    triples = {
        question.triple.id: question.triple for question in load_redirectqa("sample").questions
    }
    pairs = [(triple.subject, triple.object) for triple in triples.values()]
    missing, *known = sorted({one.name for pair in pairs for one in pair})
    rng = np.random.default_rng(1)
    sets = {name: set(rng.integers(0, 300, 60).tolist()) for name in known}
    arrays = {URI + name.replace(" ", "_"): sorted(found) for name, found in sets.items()}
    path = write(tmp_path / "map.npz", arrays | {FAILURE_KEYS[0]: [7, 8]})
    out = tmp_path / "out"
    command = ["count", "linked", "--from", str(path), "--out", str(out)]

    assert main([*command, "--data", "sample", "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["entities_not_found"] >= 1
    assert printed[f"documents {FAILURE_KEYS[0]}"] == 2
    assert json.loads((out / "coverage.json").read_text())["entity_map"] == str(path)
    entities = pd.read_parquet(out / "linked_entities.parquet")
    assert entities.loc[~entities["is_found"], "title"].tolist() == [missing]
    counts = pd.read_parquet(out / "linked_pairs.parquet").set_index(["subject_id", "object_id"])
    for pair in pairs:
        row = counts.loc[tuple(map(entity_id, pair))]
        first, second = (sets.get(one.name, set()) for one in pair)
        assert row.tolist() == [len(first & second), len(first), len(second)]
    titles = tmp_path / "titles.csv"
    renamed = entities.loc[~entities["is_found"], "entity_id"].item()
    titles.write_text(f"entity_id,title\n{renamed},{URI}{known[0].replace(' ', '_')}\n")
    assert main([*command, "--data", "sample", "--titles", str(titles)]) == 0
    again = pd.read_parquet(out / "linked_entities.parquet")
    assert again["is_found"].all()
    assert main(command) == 2
    assert "give either --data or --names" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [0, 3, 50, 300, -1, -30])
def test_files_that_are_not_maps_are_rejected(tmp_path, kept):
    path = write(tmp_path / "map.npz", {URI + "E": [1]})
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(DataError, match="is not an npz file of arrays by entity"):
        EntityMap.open(path)
    with pytest.raises(SourceNotFoundError, match=r"entity map .* not found"):
        EntityMap.open(tmp_path / "none.npz")
    with pytest.raises(DataError, match="no entities, only __HTTP_ERROR__: the linker failed"):
        EntityMap.open(write(tmp_path / "failed.npz", {"__HTTP_ERROR__": [1]}))
