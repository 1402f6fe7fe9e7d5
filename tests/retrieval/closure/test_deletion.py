import numpy as np
import pytest

from surface_consistency.retrieval.closure import (
    Closure,
    alias_closures,
    deleted_entries,
    deletion_masks,
)


@pytest.mark.parametrize("name", ["countries/alias", "sports/collision", "released"])
def test_masks_and_indices_say_the_same(published, name):
    closures = alias_closures(*published[name])

    masks = deletion_masks(closures)

    assert masks.dtype == np.bool_
    for row, closure, entries in zip(masks, closures, deleted_entries(closures), strict=True):
        assert np.flatnonzero(row).tolist() == closure.indices.tolist() == entries.tolist()
        assert (closure.mask() == row).all()


def test_full_state_deletes_nothing(published):
    closures = alias_closures(*published["sports/base"])

    assert deleted_entries(closures, state="FULL") == [None] * 100
    assert all(item is not None for item in deleted_entries(closures, state="DEL-OFF"))


@pytest.mark.parametrize("sizes", [(), (3, 4)])
def test_masks_reject_closures_of_several_databases(sizes):
    closures = [Closure(indices=np.array([0]), n_triplets=size) for size in sizes]

    with pytest.raises(ValueError, match="closures must be of one database"):
        deletion_masks(closures)
