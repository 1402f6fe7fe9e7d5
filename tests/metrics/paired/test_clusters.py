from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics import cluster_counts, paired_table

rows = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("pqrs")), max_size=40)


@given(rows=rows)
def test_cluster_counts_agree_with_a_naive_loop(rows):
    order = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
    naive = Counter((label, order[first, second]) for first, second, label in rows)
    labels = list(dict.fromkeys(label for _, _, label in rows))

    counts = cluster_counts(
        [row[0] for row in rows], [row[1] for row in rows], clusters=[row[2] for row in rows]
    )

    assert counts.shape == (len(labels), 4)
    assert counts.tolist() == [[naive[label, cell] for cell in range(4)] for label in labels]


@given(rows=rows)
def test_cluster_counts_sum_to_the_table(rows):
    first, second = [row[0] for row in rows], [row[1] for row in rows]

    counts = cluster_counts(first, second, clusters=[row[2] for row in rows])

    assert tuple(counts.sum(axis=0)) == paired_table(first, second).counts


def test_cluster_counts_leave_out_clusters_without_a_scored_pair():
    with pytest.warns(UnscoredWarning, match="2 of 3 pairs"):
        counts = cluster_counts(
            [1, None, 0], [1, 1, None], clusters=["a", "b", "a"], missing="drop"
        )

    assert counts.tolist() == [[1, 0, 0, 0]]


def test_cluster_counts_reject_a_wrong_number_of_labels():
    with pytest.raises(ValueError, match="got 2 labels for 3 pairs"):
        cluster_counts([1, 0, 1], [1, 0, 1], clusters=["a", "b"])


@pytest.mark.parametrize("label", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_cluster_counts_reject_missing_labels(label):
    with pytest.raises(ValueError, match=r"clusters\[1\] is .*name the fact"):
        cluster_counts([1, 0], [1, 0], clusters=["a", label])
