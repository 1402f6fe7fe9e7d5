"""Test lookups in indexes of tokens: simulated web services, and local ones compared with a plain
counter."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.counting.indexes import (
    InfiniGramAPI,
    InfiniGramMiniAPI,
    LocalIndex,
    lookup_counts,
    open_index,
)
from surface_consistency_build.counting.ngrams import NgramCounter

from surface_consistency.cli.main import main
from surface_consistency.errors import (
    DataError,
    RunnerError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)

RNG = np.random.default_rng(5)
DOCUMENTS = [RNG.integers(0, 12, size=size).tolist() for size in (0, 1, 40, 300, 7)]
DOCUMENTS += [[300, 5, 300, 5, 1], [65534, 1]]


def ngrams_of(documents, maximum=5):
    """Count every n-gram of up to five tokens, as the reference."""
    counts = Counter()
    for tokens in documents:
        for n in range(1, maximum + 1):
            counts.update(tuple(tokens[k : k + n]) for k in range(len(tokens) - n + 1))
    return counts


def write_tokens(folder, documents, dtype="<u2"):
    """Write the input of infini-gram's indexer."""
    width = np.dtype(dtype).itemsize
    content, offsets = b"", []
    for tokens in documents:
        offsets.append(len(content))
        content += b"\xff" * width + np.array(tokens, dtype=dtype).tobytes()
    (folder / "tokenized.0").write_bytes(content)
    (folder / "offset.0").write_bytes(np.array(offsets, dtype="<u8").tobytes())
    return content, width


def write_index(folder, documents, dtype="<u2", shard=0, pointer=3):
    """Write the index by a plain sort."""
    content, width = write_tokens(folder, documents, dtype)
    order = sorted(range(0, len(content), width), key=lambda place: content[place:])
    (folder / "table.0").write_bytes(b"".join(p.to_bytes(pointer, "little") for p in order))
    if shard:
        for name in ("tokenized", "table", "offset"):
            (folder / f"{name}.0").rename(folder / f"{name}.{shard}")


def check_counts(index, documents):
    """Look up all n-grams that occur, and some that do not."""
    counts = ngrams_of(documents)
    queries = [*counts, (11, 11, 11, 11, 11), (200,), (5, 30, 1)]
    assert [item.count for item in index.count(queries)] == [counts[query] for query in queries]


def test_local_counts_equal_those_of_the_documents_of_all_shards(tmp_path):
    write_index(tmp_path, DOCUMENTS[4:], shard=1)
    write_index(tmp_path, DOCUMENTS[:4])

    check_counts(LocalIndex(tmp_path), DOCUMENTS)
    wrong = LocalIndex(tmp_path).count([(), (65535,), (-1,), "Paris"])
    assert [item.count for item in wrong] == [None] * 4


@pytest.mark.parametrize(("dtype", "name"), [("<u1", "u8"), ("<u4", "u32")])
def test_tokens_of_other_widths_are_read(tmp_path, dtype, name):
    write_index(tmp_path, DOCUMENTS[:5], dtype)

    check_counts(open_index(f"local-{name}:{tmp_path}"), DOCUMENTS[:5])


def test_an_index_of_the_published_indexer_is_read(tmp_path):
    pytest.importorskip("infini_gram")
    write_tokens(tmp_path, DOCUMENTS)
    subprocess.run(
        [sys.executable, "-m", "infini_gram.indexing", "--data_dir", str(tmp_path), "--save_dir",
         str(tmp_path), "--mem", "1", "--cpus", "1", "--ulimit", "1024"],
        check=True,
        capture_output=True,
    )  # fmt: skip

    check_counts(LocalIndex(tmp_path), DOCUMENTS)


def test_invalid_local_indexes_are_rejected(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"tokenized\.0 not found"):
        LocalIndex(tmp_path)
    write_tokens(tmp_path, DOCUMENTS)
    with pytest.raises(SourceNotFoundError, match=r"tokenized\.0: table\.0 not found"):
        LocalIndex(tmp_path)
    write_index(tmp_path, DOCUMENTS)
    path = tmp_path / "table.0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="one may be cut off"):
        LocalIndex(tmp_path)
    with pytest.raises(ValueError, match="token_dtype must be one of u8, u16, u32"):
        LocalIndex(tmp_path, token_dtype="u64")


GRAMS = [(3, 1), (300, 5), (9, 9)]


@pytest.mark.enable_socket
def test_queries_of_the_service_are_token_ids(replay):
    counts = {(3, 1): 50, (300, 5): 700, (9, 9): 0}

    def answer(path, body):
        ids = tuple(body["query_ids"])
        return 200, {"count": counts[ids], "approx": ids == (300, 5), "token_ids": list(ids)}

    server = replay(answer)
    with pytest.warns(SurfaceConsistencyWarning, match="1 counts are estimates"):
        found = lookup_counts(GRAMS, InfiniGramAPI("v4_x", url=server.url))

    assert found.tolist() == [50, 700, 0]
    sent = [body for _, body in server.requests]
    assert {"index": "v4_x", "query_type": "count", "query_ids": [3, 1]} in sent


@pytest.mark.enable_socket
def test_queries_of_an_index_of_substrings_are_words(replay):
    server = replay(lambda path, body: (200, {"count": 9, "latency": 1.5}))

    found = lookup_counts([("a", "b"), ("c", "d")], InfiniGramMiniAPI("v2_x", url=server.url))

    assert found.tolist() == [9, 9]
    assert sorted(body["query"] for _, body in server.requests) == ["a b", "c d"]


@pytest.mark.enable_socket
def test_errors_of_the_service_are_reported(replay):
    server = replay(lambda path, body: (200, {"error": "no such index"}))
    with pytest.raises(DataError, match=r"1 n-grams have no count, such as 'a b': .*no such index"):
        lookup_counts([("a", "b")], InfiniGramMiniAPI("v2_x", url=server.url))

    for damaged in ({"count": "5"}, {"count": -1}, {"latency": 1}, [], b"<html>"):
        broken = replay(lambda path, body, damaged=damaged: (200, damaged))
        index = InfiniGramAPI("x", url=broken.url, first_wait=0.001, max_retries=1)
        with pytest.raises(RunnerError, match="a damaged answer"):
            list(index.count(["Paris"]))


@pytest.mark.parametrize(
    "name", ["", "infini-gram", "infini-gram:", "wimbd:x", "tokengrams:a", "local:"]
)
def test_invalid_names_of_indexes_are_rejected(name):
    with pytest.raises(ValueError, match="index must be infini-gram:INDEX"):
        open_index(name)


def test_counts_of_ngrams_of_instances_equal_those_of_the_index(tmp_path):
    """Token ids of a local index, against the plain counter of its documents."""
    write_index(tmp_path, DOCUMENTS)
    texts = [" ".join(map(str, tokens)) for tokens in (DOCUMENTS[2], DOCUMENTS[4], [11, 11, 11])]
    counter = NgramCounter(texts, n=2, tokenize=lambda text: list(map(int, text.split())))
    counts = ngrams_of(DOCUMENTS)

    counter.add(lookup_counts(counter.ngrams(), LocalIndex(tmp_path)))

    for text, found in zip(texts, counter.result(), strict=True):
        tokens = tuple(map(int, text.split()))
        grams = dict.fromkeys(tokens[k : k + 2] for k in range(len(tokens) - 1))
        assert found.tolist() == [counts[gram] for gram in grams]


@pytest.mark.enable_socket
def test_command_looks_up_ngrams_in_an_index(tmp_path, replay, capsys):
    server = replay(lambda path, body: (200, {"count": len(body["query"])}))
    data = tmp_path / "texts.jsonl"
    data.write_text('{"id": "a", "text": "x y zz y zz"}\n{"id": "b", "text": "x"}\n')
    words = ["count", "ngrams", "--data", str(data), "--n", "2", "--out", str(tmp_path / "out")]
    service = ["--from", "infini-gram-mini:v2_x", "--url", server.url]

    for _ in range(2):
        assert main([*words, *service, "--json"]) == 0

    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["n_instances"], summary["n_ngrams"], summary["n_ngrams_seen"]) == (2, 3, 3)
    frame = pd.read_parquet(tmp_path / "out" / "ngrams.parquet")
    assert [list(counts) for counts in frame["counts"]] == [[3, 4, 4], []]
    # The second lookup is from the cache.
    assert len(server.requests) == 3
    write_index(tmp_path, DOCUMENTS)
    for more, message in (
        (["--from", f"local:{tmp_path}"], "--tokenizer is required"),
        ([], "give either --corpus or --from"),
        ([*service, "--corpus", str(data)], "not both"),
    ):
        assert main([*words, *more]) == 2
        assert message in capsys.readouterr().err
