"""The cached index: identity by content and encoder, and recovery from damage."""

import hashlib
import logging
import multiprocessing

import numpy as np
import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit.retrieval.embedding_index import build_index, index_identity
from surface_consistency.studies.audit.retrieval.retrievers import EmbeddingRetriever
from surface_consistency.studies.audit.retrieval.triplets import content_digest


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def place_of(index, folder):
    """The file of a cached index."""
    (path,) = folder.glob(f"{index.identity}-*.npy")
    return path


@pytest.mark.parametrize("block_size", [1, 2, 5, 100])
def test_cached_index_is_mapped(facts, table_encoder, tmp_path, block_size):
    """An index is the same for any size of blocks, and equal content shares it."""
    encoder = table_encoder()
    index = build_index(facts, encoder)
    assert len(index.vectors) == len(encoder.seen) == 5
    blocks = build_index(facts, table_encoder(), block_size=block_size)
    np.testing.assert_array_equal(blocks.vectors, index.vectors)
    # The index of an empty store is not written.
    empty = build_index([], table_encoder(), cache_dir=tmp_path / "deep" / "one")
    assert empty.vectors.shape == (0, 0)

    for is_kept in (False, True):
        place, encoder = tmp_path / "deep" / "one", table_encoder()
        kept = build_index(list(facts), encoder, cache_dir=place, block_size=block_size)
        assert bool(encoder.seen) != is_kept
        np.testing.assert_array_equal(kept.vectors, index.vectors)
        assert kept.identity == index.identity
        assert isinstance(kept.vectors.base, np.memmap)
        assert not kept.vectors.flags.writeable

    (name,) = files_in(tmp_path / "deep" / "one")
    assert name.startswith(f"{index.identity}-")


def test_databases_of_equal_name_and_size_have_different_indices(
    facts, ask, table_encoder, tmp_path
):
    """The published cache used file name and size as key and confused such databases."""
    others = [Triplet(f"{s} II", r, f"{o} II") for s, r, o in facts]
    assert len(facts) == len(others)

    one = EmbeddingRetriever(facts, table_encoder(), cache_dir=tmp_path)
    two = EmbeddingRetriever(others, table_encoder(), cache_dir=tmp_path)

    assert one.index.identity != two.index.identity
    assert len(files_in(tmp_path)) == 2
    hits = two.search([ask("France II", "capital")], k=1)
    assert hits.indices.tolist() == [[0]]
    assert hits.scores[0, 0] == pytest.approx(1.0)


def test_published_databases_have_thirteen_identities(published):
    """By name and size there are only ten identities."""
    contents = {content_digest(base) for base, _ in published.values()}
    by_name_and_size = {(name.split("/")[-1], len(base)) for name, (base, _) in published.items()}

    assert len(contents) == len(published) == 13
    # The three databases with an identity of an earlier one.
    assert len(by_name_and_size) == 10


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts[::-1],
        lambda facts: facts[:-1],
        lambda facts: [*facts[:-1], facts[-1]._replace(object="x")],
        lambda facts: [facts[0]._replace(subject="Francec", relation="apital"), *facts[1:]],
        lambda facts: [facts[0]._replace(subject="FRANCE"), *facts[1:]],
    ],
    ids=["order", "fewer", "object", "shifted_letter", "case"],
)
def test_different_content_has_a_different_index(facts, change):
    assert content_digest(change(facts)) != content_digest(facts)


def test_identity_depends_on_content_and_encoder():
    names = {
        index_identity(content, {"model": model, "max_tokens": n})
        for content in ("a", "b")
        for model in ("m", "n")
        for n in (1, 2)
    }

    assert len(names) == 8
    assert index_identity("a", {"x": 1, "y": 2}) == index_identity("a", {"y": 2, "x": 1})


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def write_other(path):
    """An index of fewer keys under the name of its own digest."""
    with path.open("wb") as file:
        np.save(file, np.zeros((4, 16), np.float32))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.rename(path.with_name(f"{path.stem.partition('-')[0]}-{digest}.npy"))


BREAKS = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "flipped_bit": flip,
    "empty": lambda path: path.write_bytes(b""),
    "other_number": write_other,
}


@pytest.mark.parametrize("name", BREAKS)
def test_damaged_index_is_rebuilt(name, facts, table_encoder, tmp_path, caplog):
    index = build_index(facts, table_encoder(), cache_dir=tmp_path)
    vectors, place = np.array(index.vectors), place_of(index, tmp_path)
    del index
    BREAKS[name](place)
    encoder = table_encoder()

    with caplog.at_level(logging.WARNING):
        again = build_index(facts, encoder, cache_dir=tmp_path)

    assert "rebuilt" in caplog.text
    assert encoder.seen
    np.testing.assert_array_equal(again.vectors, vectors)
    assert files_in(tmp_path) == [place.name]


def test_failed_build_leaves_no_files(facts, table_encoder, tmp_path):
    class Dying(table_encoder):
        def encode(self, texts):
            if self.seen:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        build_index(facts, Dying(), cache_dir=tmp_path / "cache", block_size=2)

    assert files_in(tmp_path / "cache") == []


def test_build_index_rejects_invalid_options_and_encoders(facts, table_encoder, tmp_path):
    class Growing(table_encoder):
        def encode(self, texts):
            self.dimension += 1
            return super().encode(texts)

    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ValueError, match="block_size must be at least 1; got 0"):
        build_index(facts, table_encoder(), block_size=0)
    with pytest.raises(RunnerError, match="dimension 17, then of 18"):
        build_index(facts, Growing(), block_size=1)
    with pytest.raises(RunnerError, match="the index cannot be written"):
        build_index(facts, table_encoder(), cache_dir=tmp_path / "file" / "index")
    with pytest.raises(RunnerError, match=r"one vector per text, shape \(5, dimension\)"):
        build_index(facts, type("Flat", (table_encoder,), {"encode": lambda *_: [1.0]})())


def build_in_cache(arguments):
    encoder_class, facts, folder = arguments
    return len(build_index(facts, encoder_class(), cache_dir=folder).vectors)


def test_processes_that_build_one_index_agree(facts, table_encoder, tmp_path):
    """The last process finds or replaces an equal index; no process fails or leaves files."""
    many = [Triplet(f"s{i}", "r", "o") for i in range(400)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        sizes = pool.map(build_in_cache, [(table_encoder, many, tmp_path)] * 6, chunksize=1)

    assert sizes == [400] * 6
    assert len(files_in(tmp_path)) == 1
