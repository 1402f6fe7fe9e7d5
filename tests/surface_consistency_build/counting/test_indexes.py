"""Look-ups in indexes of tokens: web services by replay, local ones against a plain counter."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.commands import count
from surface_consistency_build.counting import (
    InfiniGramAPI,
    InfiniGramMiniAPI,
    LocalIndex,
    SurfaceTable,
    lookup_table,
    open_index,
)

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_sample
from surface_consistency.errors import (
    DataError,
    RunnerError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
)

RNG = np.random.default_rng(5)
DOCUMENTS = [RNG.integers(0, 12, size=size).tolist() for size in (0, 1, 40, 300, 7)]
DOCUMENTS += [[300, 5, 300, 5, 1], [65534, 1]]


def ngrams_of(documents, most=5):
    """Count every n-gram of up to five tokens; the oracle."""
    counts = Counter()
    for tokens in documents:
        for n in range(1, most + 1):
            counts.update(tuple(tokens[k : k + n]) for k in range(len(tokens) - n + 1))
    return counts


def write_tokens(folder, documents, dtype="<u2"):
    """Write what infini-gram's indexer starts from."""
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


def queries_of(counts):
    """Every n-gram that occurs, and some that do not."""
    absent = [(11, 11, 11, 11, 11), (400,), (5, 300, 1)]
    return [*counts, *(query for query in absent if query not in counts)]


def test_local_counts_are_those_of_the_documents_over_all_shards(tmp_path):
    write_index(tmp_path, DOCUMENTS[4:], shard=1)
    write_index(tmp_path, DOCUMENTS[:4])
    counts = ngrams_of(DOCUMENTS)

    queries = queries_of(counts)
    found = list(LocalIndex(tmp_path).count(queries))

    assert [told.count for told in found] == [counts[query] for query in queries]


@pytest.mark.parametrize(("dtype", "name"), [("<u1", "u8"), ("<u4", "u32")])
def test_tokens_of_other_widths(tmp_path, dtype, name):
    documents = DOCUMENTS[:5]
    write_index(tmp_path, documents, dtype)
    counts = ngrams_of(documents)

    index = open_index(f"local-{name}:{tmp_path}")

    assert [told.count for told in index.count(list(counts))] == list(counts.values())


def test_an_index_of_the_published_indexer_is_read(tmp_path):
    pytest.importorskip("infini_gram")
    write_tokens(tmp_path, DOCUMENTS)
    subprocess.run(
        [sys.executable, "-m", "infini_gram.indexing", "--data_dir", str(tmp_path), "--save_dir",
         str(tmp_path), "--mem", "1", "--cpus", "1", "--ulimit", "1024"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    counts = ngrams_of(DOCUMENTS)

    queries = queries_of(counts)
    found = list(LocalIndex(tmp_path).count(queries))

    assert [told.count for told in found] == [counts[query] for query in queries]


def test_what_is_no_local_index_is_refused(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"there is no tokenized\.0"):
        LocalIndex(tmp_path)
    write_tokens(tmp_path, DOCUMENTS)
    with pytest.raises(SourceNotFoundError, match=r"has no table\.0 beside it"):
        LocalIndex(tmp_path)
    write_index(tmp_path, DOCUMENTS)
    path = tmp_path / "table.0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="one may be cut off"):
        LocalIndex(tmp_path)
    with pytest.raises(ValueError, match="token_dtype must be one of u8, u16, u32"):
        LocalIndex(tmp_path, token_dtype="u64")


def test_queries_that_no_index_holds(tmp_path):
    write_index(tmp_path, DOCUMENTS)
    index = LocalIndex(tmp_path)

    assert [told.count for told in index.count([(), (65535,), (-1,)])] == [None] * 3
    with pytest.raises(TypeError, match="counts token ids"):
        next(index.count(["Paris"]))


NAMES = SurfaceTable.from_records([("Q90", "Paris"), ("Q1", "War AND Peace"), ("Q1", "Tolstoi")])


@pytest.mark.enable_socket
def test_the_service_is_asked_for_both_variants_and_operators_are_refused(replay):
    counts = {"Paris": 50, " Paris": 700, "Tolstoi": 3, " Tolstoi": 4}
    ids = {"Paris": [7], " Paris": [8], "Tolstoi": [1, 2], " Tolstoi": [0, 1, 2]}

    def answer(path, told):
        query = told["query"]
        approx = query == " Paris"
        return 200, {"count": counts[query], "approx": approx, "token_ids": ids[query]}

    server = replay(answer)
    with pytest.warns(
        SurfaceConsistencyWarning, match="look-ups have no count|counts are estimates"
    ) as told:
        rows = lookup_table(NAMES, InfiniGramAPI("v4_x", url=server.url)).to_pandas()

    said = [str(one.message) for one in told]
    assert (
        "2 look-ups have no count, such as 'War AND Peace', 'War AND Peace': AND or OR" in said[0]
    )
    assert "1 counts are estimates" in said[1]
    assert rows["count"].fillna(-1).tolist() == [50, 700, -1, -1, 3, 4]
    # The tokens of " Tolstoi" hold those of "Tolstoi", so that its occurrences are counted there.
    assert rows["is_summed"].tolist() == [True, True, False, False, True, False]
    asked = [body for _, body in server.requests]
    assert {"index": "v4_x", "query_type": "count", "query": "Paris"} in asked
    assert not any("War" in body["query"] for _, body in server.requests)


@pytest.mark.enable_socket
def test_a_tokenizer_sends_ids_whatever_the_name(replay):
    server = replay(lambda path, told: (200, {"count": 2, "token_ids": told["query_ids"]}))

    def tokenize(text):
        return [len(word) for word in text.split(" ")]

    index = InfiniGramAPI("v4_x", url=server.url)
    rows = lookup_table(NAMES, index, tokenize=tokenize).to_pandas()

    assert rows["count"].notna().all()
    assert {"index": "v4_x", "query_type": "count", "query_ids": [3, 3, 5]} in [
        body for _, body in server.requests
    ]


@pytest.mark.enable_socket
def test_substrings_are_asked_for_once(replay):
    server = replay(lambda path, told: (200, {"count": 9, "latency": 1.5}))

    rows = lookup_table(NAMES, InfiniGramMiniAPI("v2_x", url=server.url)).to_pandas()

    assert rows["variant"].tolist() == ["plain"] * 3
    assert rows["count"].tolist() == [9, 9, 9]


@pytest.mark.enable_socket
def test_errors_of_the_service_are_told(replay):
    server = replay(lambda path, told: (200, {"error": "no such index"}))
    with pytest.warns(SurfaceConsistencyWarning, match="the index says: no such index"):
        rows = lookup_table(NAMES, InfiniGramMiniAPI("v2_x", url=server.url))
    assert rows["count"].null_count == 3

    for damaged in ({"count": "5"}, {"count": -1}, {"latency": 1}, [], b"<html>"):
        broken = replay(lambda path, told, damaged=damaged: (200, damaged))
        index = InfiniGramAPI("x", url=broken.url, first_wait=0.001, max_retries=1)
        with pytest.raises(RunnerError, match="a damaged answer"):
            list(index.count(["Paris"]))


@pytest.mark.parametrize(
    "name", ["", "infini-gram", "infini-gram:", "wimbd:x", "tokengrams:a", "local:"]
)
def test_names_of_indexes_that_are_none(name):
    with pytest.raises(ValueError, match="index must be infini-gram:INDEX"):
        open_index(name)


@pytest.mark.enable_socket
def test_the_command_writes_lookups_and_instances(tmp_path, replay, capsys, monkeypatch):
    server = replay(lambda path, told: (200, {"count": 3, "token_ids": [len(told["query"])]}))
    few = [question for question in load_sample().questions if question.template == "original"]
    monkeypatch.setattr(count.NameSource, "questions", few[:6])
    words = ["count", "index", "--index", "infini-gram:v4_x", "--url", server.url]

    assert main([*words, "--data", "sample", "--out", str(tmp_path / "out"), "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["n_lookups"] == 2 * told["n_names"]
    rows = pd.read_parquet(tmp_path / "out" / "instances.parquet")
    assert set(rows["measure"]) == {"lookup"}
    assert (rows["surface_frequency"] == 6).all()
    assert (rows["entity_frequency"] >= rows["surface_frequency"]).all()
    n_asked = len(server.requests)
    assert main([*words, "--data", "sample", "--out", str(tmp_path / "out")]) == 0
    assert len(server.requests) == n_asked
    write_index(tmp_path, DOCUMENTS)
    local = ["count", "index", "--index", f"local:{tmp_path}", "--data", "sample"]
    assert main([*local, "--out", str(tmp_path / "local")]) == 2
    assert "give --tokenizer" in capsys.readouterr().err
