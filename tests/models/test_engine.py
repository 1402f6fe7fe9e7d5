"""Padded rows of token ids, and the cache of keys and values."""

import pytest

from surface_consistency.models._engine import Batch, Engine, n_columns

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def engine(tiny_models):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_models("gpt_neox"))
    return Engine(model.eval())


BATCH = Batch(
    prefixes=((11, 12, 13), (21,)), owner=(1, 0, 1), suffixes=[[31, 32], [41], [51, 52, 53]]
)


def test_rows_are_padded_before_prefix_and_suffix(engine):
    ids, mask = engine._columns(BATCH)

    assert n_columns(BATCH) == 6
    assert mask.tolist() == [[0, 0, 1, 0, 1, 1], [1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 1, 1]]
    rows = [row[kept].tolist() for row, kept in zip(ids, mask.bool(), strict=True)]
    assert rows == [[21, 31, 32], [11, 12, 13, 41], [21, 51, 52, 53]]
    # Padding does not add tokens that a repetition penalty would count.
    assert [{*row} for row in ids.tolist()] == [{*row} for row in rows]


def test_cache_updates_write_into_preallocated_tensors(engine):
    """Updates change neither the address nor the earlier columns of the tensors."""
    config = transformers.GenerationConfig(max_new_tokens=4)
    with torch.inference_mode():
        layer = engine._cache(BATCH, config).layers[0]
        before, address = layer.keys.clone(), layer.keys.data_ptr()
        new = torch.ones(3, *before.shape[1:2], 2, before.shape[3])
        keys, values = layer.update(new, 2 * new)

    assert keys.data_ptr() == address
    assert torch.equal(keys[:, :, :3], before)
    assert torch.equal(keys[:, :, 3:], new)
    assert torch.equal(values[:, :, 3:], 2 * new)
    assert layer.get_seq_length() == 5
