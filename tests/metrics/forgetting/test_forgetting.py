import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    artifact_rate,
    forgetting_by,
    interference,
    leakage,
    mcnemar,
    paired_table,
    retrieval_mediated,
)
from tests.metrics.harness import golden_rows
from tests.refusals import refusals

facts = st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=60)

CELLS = "audit_contingencies.csv"
# The three databases that were answered from another one's index.
CONTAMINATED = {("sports", "Base"), ("sports", "Alias"), ("politicians", "Noise")}


def verdicts(*rows):
    """Labels under DEL-ON and DEL-OFF from the counts of cells, one per fact."""
    a, b, c, d = (sum(int(row[name]) for row in rows) for name in "abcd")
    return [1] * (a + b) + [0] * (c + d), [1] * a + [0] * b + [1] * c + [0] * d


def test_rates_agree_with_all_cells_of_the_audit(data_files):
    """The published counts of each cell are its rates times its number of facts."""
    rows = golden_rows(data_files, CELLS)

    assert len(rows) == 78
    for row in rows:
        (del_on, del_off), n = verdicts(row), int(row["n"])
        assert len(del_on) == n
        assert leakage(del_off) == int(row["del_off_correct"]) / n
        assert retrieval_mediated(del_on, del_off) == int(row["b"]) / n
        assert interference(del_on, del_off) == int(row["c"]) / n
        # The artifact rate carries no information of its own: it is DEL-ON accuracy everywhere.
        assert artifact_rate(del_on, [0] * n) == int(row["artifact"]) / n
        assert int(row["artifact"]) == int(row["del_on_correct"])


# n, a, b, c, L + R in percent, and McNemar's statistic or exact p, recomputed from the published
# per-cell metrics of arXiv 2607.00605; figure 3 prints 3.7, 6.2, 7.2, 13.6 and 0.7 %.
# The last column is L + R without the three contaminated databases, and their facts.
@pytest.mark.parametrize(
    ("variant", "n", "cells", "stack", "method", "value", "clean"),
    [
        ("Base", 1920, (0, 69, 2), 3.698, "corrected", 61.3521, (1320, 4.848)),
        ("Alias", 3840, (0, 236, 4), 6.250, "corrected", 222.3375, (2640, 9.053)),
        ("Collision", 2748, (1, 194, 2), 7.169, "corrected", 186.1276, (2748, 7.169)),
        ("Noise", 3120, (2, 418, 3), 13.558, "corrected", 407.1164, (2040, 20.686)),
        ("Released", 600, (0, 4, 0), 0.667, "exact", 0.125, (600, 0.667)),
        ("", 12_228, (3, 921, 11), 7.646, "corrected", 886.5676, (9348, 9.906)),
    ],
)
def test_variants_agree_with_the_audit(data_files, variant, n, cells, stack, method, value, clean):
    rows = [row for row in golden_rows(data_files, CELLS) if variant in row["variant"]]
    pair = verdicts(*rows)
    table = paired_table(*pair)

    assert table.n == n
    assert table.counts[:3] == cells
    assert 100 * (leakage(pair[1]) + retrieval_mediated(*pair)) == pytest.approx(stack, abs=5e-4)
    assert mcnemar(table)[method == "exact"] == pytest.approx(value, abs=5e-5)
    assert mcnemar(table)[1] < 0.001 or variant == "Released"
    pair = verdicts(*(row for row in rows if (row["domain"], row["variant"]) not in CONTAMINATED))
    found = (len(pair[0]), 100 * (leakage(pair[1]) + retrieval_mediated(*pair)))
    assert found == pytest.approx(clean, abs=5e-4)
    # Section 6.1: L = 0.11 % of all facts.
    assert variant or 100 * leakage(verdicts(*rows)[1]) == pytest.approx(0.1145, abs=5e-5)


def test_rates_agree_with_the_follow_up_where_retrieval_hurts():
    """A later audit of the same kind, in which retrieval hides 127 of 599 known facts."""
    # halo_cross_state_metrics.csv: n 599, 526 correct under FULL; a 25, b 7, c 127; given FULL
    # L 0.26237, R 0.013308, A and survival 0.060837.
    known, other = (
        verdicts(dict(zip("abcd", cells, strict=True)))
        for cells in ((25, 7, 113, 381), (0, 0, 14, 59))
    )
    frame = pd.DataFrame(
        {
            "first_correct": known[0] + other[0],
            "second_correct": known[1] + other[1],
            "full": [1] * 526 + [0] * 73,
            "gold_retrieved": 0,
        }
    )

    row = forgetting_by(frame, full="full", gold_retrieved="gold_retrieved", cluster=None).iloc[0]

    expected = {
        "leakage": 0.25375626043405675,
        "retrieval_mediated": 0.011686143572621035,
        "artifact_rate": 0.05342237061769616,
        "interference": 127 / 599,
        "full_correct": 526,
        "leakage_given_full": 0.2623574144486692,
        "retrieval_mediated_given_full": 0.013307984790874524,
        "artifact_rate_given_full": 0.060836501901140684,
        "survival_given_full": 0.060836501901140684,
        "interference_given_full": 113 / 526,
    }
    assert row[[*expected]].tolist() == pytest.approx([*expected.values()])


@settings(deadline=None)
@given(facts)
def test_rates_agree_with_a_naive_loop_and_their_identities(states):
    """L, R, I and A fact by fact; p(DEL-ON) = L + R - I (C.1); R = A if nothing leaks (6.1)."""
    del_on, del_off, _, gold = zip(*states, strict=True)
    n = len(states)

    mediated, hidden = retrieval_mediated(del_on, del_off), interference(del_on, del_off)
    assert leakage(del_off) == sum(del_off) / n
    assert mediated == sum(on and not off for on, off, _, _ in states) / n
    assert hidden == sum(off and not on for on, off, _, _ in states) / n
    assert artifact_rate(del_on, gold) == sum(on and not had for on, _, _, had in states) / n
    assert sum(del_on) / n == pytest.approx(leakage(del_off) + mediated - hidden)
    assert leakage(del_off) + mediated <= 1 + 1e-12
    assert artifact_rate(del_on, [0] * n) == retrieval_mediated(del_on, [0] * n)


def test_rates_of_no_facts_are_nan():
    with pytest.warns(UndefinedMetricWarning, match="no pair enters its denominator") as caught:
        assert math.isnan(retrieval_mediated([], []))
    assert caught[0].filename == __file__


def test_facts_without_a_label_are_dropped_with_a_warning():
    with pytest.warns(UnscoredWarning, match="2 of 5 pairs lack a label"):
        rate = interference([1, 0, None, 0, 1], [0, 1, 0, np.nan, 1], missing="drop")

    assert rate == 1 / 3
    with pytest.warns(UnscoredWarning, match="1 of 2 answers lack a label"):
        assert leakage([1, None], missing="drop") == 1


test_rates_reject_invalid_labels = refusals(
    lambda function, arguments: function(*arguments),
    (interference, ([1], [1, 0]), "del_on and del_off must have equal lengths"),
    (retrieval_mediated, ([1], [2]), r"del_off\[0\] is 2, which is not a correctness label"),
    (retrieval_mediated, ([[1]], [1]), "del_on must be one-dimensional"),
    (leakage, ([None],), r"del_off\[0\] has no label .* to exclude such answers"),
    (artifact_rate, ([1, 1], [0, None]), r"gold_retrieved\[1\] has no label"),
)
