import csv
import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics.forgetting.forgetting import ForgettingCounts, forgetting_counts
from surface_consistency.metrics.paired.mcnemar_tests import mcnemar
from surface_consistency.metrics.paired.paired_tables import PairedTable

facts = st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=60)

# The three databases that were answered from another one's index.
CONTAMINATED = {("sports", "Base"), ("sports", "Alias"), ("politicians", "Noise")}


def table_of(cells):
    return PairedTable(both=cells[0], first_only=cells[1], second_only=cells[2], neither=cells[3])


def golden_cells(data_files):
    with (data_files / "golden" / "audit_contingencies.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def counts_of(row):
    return ForgettingCounts(
        table=table_of([int(row[name]) for name in "abcd"]),
        artifacts=int(row["artifact"]),
        full_correct=int(row["full_correct"]),
    )


def by_variant(rows):
    variants = {}
    for row in rows:
        variants.setdefault(row["variant"], []).append(counts_of(row))
    return {variant: reduce(add, cells) for variant, cells in variants.items()}


def counted(states):
    del_on, del_off, full, has_gold = zip(*states, strict=True)
    return forgetting_counts(del_on, del_off, full=full, has_gold=has_gold)


def test_rates_agree_with_all_cells_of_the_audit(data_files):
    """Every cell's published counts are its rates times its facts."""
    rows = golden_cells(data_files)

    assert len(rows) == 78
    for row in rows:
        counts, n = counts_of(row), int(row["n"])
        assert counts.n == n
        assert counts.del_on_accuracy == int(row["del_on_correct"]) / n
        assert counts.leakage == int(row["del_off_correct"]) / n
        assert counts.retrieval_mediated == int(row["b"]) / n
        assert counts.interference == int(row["c"]) / n
        assert counts.full_accuracy == int(row["full_correct"]) / n
        # The artifact rate carries no information of its own: it is DEL-ON accuracy everywhere.
        assert counts.artifact_rate == counts.del_on_accuracy


# n, a, b, c, L + R in percent, and McNemar's statistic or exact p, recomputed from the published
# per-cell metrics of arXiv 2607.00605; figure 3 prints 3.7, 6.2, 7.2, 13.6 and 0.7 %.
@pytest.mark.parametrize(
    ("variant", "n", "cells", "stack", "method", "value"),
    [
        ("Base", 1920, (0, 69, 2), 3.698, "corrected", 61.3521),
        ("Alias", 3840, (0, 236, 4), 6.250, "corrected", 222.3375),
        ("Collision", 2748, (1, 194, 2), 7.169, "corrected", 186.1276),
        ("Noise", 3120, (2, 418, 3), 13.558, "corrected", 407.1164),
        ("Released", 600, (0, 4, 0), 0.667, "exact", 0.125),
    ],
)
def test_variants_agree_with_the_audit(data_files, variant, n, cells, stack, method, value):
    counts = by_variant(golden_cells(data_files))[variant]

    test = mcnemar(counts.table)

    assert counts.n == n
    assert counts.table.counts[:3] == cells
    assert 100 * (counts.leakage + counts.retrieval_mediated) == pytest.approx(stack, abs=5e-4)
    assert test.method == method
    assert (test.statistic if method == "corrected" else test.p_value) == pytest.approx(
        value, abs=5e-5
    )
    assert test.p_value < 0.001 or variant == "Released"


def test_total_agrees_with_the_audit(data_files):
    total = reduce(add, by_variant(golden_cells(data_files)).values())

    assert total.n == 12_228
    assert total.table.counts == (3, 921, 11, 11_293)
    assert total.leakage == 14 / 12_228
    # arXiv 2607.00605, section 6.1: L = 0.11 %.
    assert 100 * total.leakage == pytest.approx(0.1145, abs=5e-5)
    assert 100 * (total.leakage + total.retrieval_mediated) == pytest.approx(7.646, abs=5e-4)


# Without the three contaminated databases.
@pytest.mark.parametrize(
    ("variant", "n", "stack"),
    [
        ("Base", 1320, 4.848),
        ("Alias", 2640, 9.053),
        ("Collision", 2748, 7.169),
        ("Noise", 2040, 20.686),
    ],
)
def test_variants_agree_with_the_audit_without_contaminated_databases(
    data_files, variant, n, stack
):
    rows = [
        row
        for row in golden_cells(data_files)
        if (row["domain"], row["variant"]) not in CONTAMINATED
    ]

    counts = by_variant(rows)[variant]

    assert counts.n == n
    assert 100 * (counts.leakage + counts.retrieval_mediated) == pytest.approx(stack, abs=5e-4)


def test_rates_agree_with_the_follow_up_where_retrieval_hurts():
    """A later audit of the same kind, in which retrieval hides 127 of 599 known facts."""
    # halo_cross_state_metrics.csv: n 599, 526 right under FULL; a 25, b 7, c 127; given FULL
    # L 0.26237, R 0.013308, A and survival 0.060837.
    counts = ForgettingCounts(
        table=table_of((25, 7, 127, 440)),
        artifacts=32,
        given_full=table_of((25, 7, 113, 381)),
        artifacts_given_full=32,
    )

    assert counts.leakage == pytest.approx(0.25375626043405675)
    assert counts.retrieval_mediated == pytest.approx(0.011686143572621035)
    assert counts.artifact_rate == pytest.approx(0.05342237061769616)
    assert counts.interference == 127 / 599
    assert counts.del_on_accuracy == pytest.approx(
        counts.leakage + counts.retrieval_mediated - counts.interference
    )
    assert counts.full_correct == 526
    assert counts.leakage_given_full == pytest.approx(0.2623574144486692)
    assert counts.retrieval_mediated_given_full == pytest.approx(0.013307984790874524)
    assert counts.artifact_rate_given_full == pytest.approx(0.060836501901140684)
    assert counts.survival_given_full == pytest.approx(0.060836501901140684)
    assert counts.interference_given_full == 113 / 526


@given(facts)
def test_forgetting_counts_agree_with_a_naive_loop(states):
    """L, R, I and A fact by fact, from their definitions."""
    counts = counted(states)
    n = len(states)

    leaks = [off for _, off, _, _ in states]
    mediated = [on and not off for on, off, _, _ in states]
    hidden = [off and not on for on, off, _, _ in states]
    artifacts = [on and not gold for on, _, _, gold in states]
    known = [full for _, _, full, _ in states]
    assert counts.leakage == sum(leaks) / n
    assert counts.retrieval_mediated == sum(mediated) / n
    assert counts.interference == sum(hidden) / n
    assert counts.artifact_rate == sum(artifacts) / n
    assert counts.full_accuracy == sum(known) / n
    if any(known):
        for name, values in {
            "leakage_given_full": leaks,
            "retrieval_mediated_given_full": mediated,
            "interference_given_full": hidden,
            "artifact_rate_given_full": artifacts,
            "survival_given_full": [on for on, _, _, _ in states],
        }.items():
            kept = [value for value, full in zip(values, known, strict=True) if full]
            assert getattr(counts, name) == pytest.approx(sum(kept) / len(kept))


@given(facts)
def test_decomposition_is_an_identity(states):
    """p(DEL-ON) = L + R - c/n for every set of facts (proposition C.1)."""
    counts = counted(states)

    right = counts.leakage + counts.retrieval_mediated - counts.table.second_only / counts.n
    assert counts.del_on_accuracy == pytest.approx(right)
    assert counts.leakage + counts.retrieval_mediated <= 1 + 1e-12
    assert counts.artifact_rate <= counts.del_on_accuracy + 1e-12


@given(facts)
def test_artifact_is_retrieval_mediated_without_leakage_and_gold(states):
    """Proposition 6.1: where nothing leaks and the deletion is complete, R = A fact by fact."""
    clean = [(on, False, full, False) for on, _, full, _ in states]

    counts = counted(clean)

    assert counts.artifacts == counts.table.first_only
    assert counts.artifacts_given_full == counts.given_full.first_only


def test_artifact_may_exceed_retrieval_mediated_where_a_fact_leaks():
    """Sports Noise, direct questions: A 9 of 160, R 7, because two facts leak."""
    counts = forgetting_counts([1] * 9 + [0] * 151, [1] * 2 + [0] * 158, has_gold=[0] * 160)

    assert (counts.artifacts, counts.table.first_only) == (9, 7)


@given(facts, st.randoms(use_true_random=False))
def test_forgetting_counts_are_free_of_order(states, random):
    shuffled = random.sample(states, len(states))

    assert counted(shuffled) == counted(states)


@given(facts, facts)
def test_adding_counts_is_counting_merged_facts(first, second):
    assert counted(first) + counted(second) == counted(first + second)


def test_counts_that_are_not_known_stay_unknown():
    known = forgetting_counts([1, 0], [0, 0], full=[1, 1], has_gold=[0, 0])
    unknown = forgetting_counts([1, 0], [0, 0])

    total = known + unknown

    assert (total.artifacts, total.full_correct, total.given_full) == (None, None, None)
    assert total.table == table_of((0, 2, 0, 2))
    with pytest.warns(UndefinedMetricWarning, match="artifact_rate is undefined .* not counted"):
        assert math.isnan(total.artifact_rate)
    with pytest.warns(UndefinedMetricWarning, match="full_accuracy is undefined"):
        assert math.isnan(total.full_accuracy)
    with pytest.warns(UndefinedMetricWarning, match="leakage_given_full is undefined"):
        assert math.isnan(total.leakage_given_full)


def test_rates_of_no_facts_are_nan():
    counts = forgetting_counts([], [], full=[])

    with pytest.warns(UndefinedMetricWarning, match="no fact enters its denominator"):
        assert math.isnan(counts.leakage)
    with pytest.warns(UndefinedMetricWarning, match="survival_given_full is undefined"):
        assert math.isnan(counts.survival_given_full)


def test_rates_given_full_are_nan_when_full_is_never_right():
    counts = forgetting_counts([1, 0], [1, 0], full=[0, 0])

    with pytest.warns(UndefinedMetricWarning, match="leakage_given_full is undefined"):
        assert math.isnan(counts.leakage_given_full)
    assert counts.full_accuracy == 0.0


def test_forgetting_counts_drop_facts_that_lack_a_value():
    """A fact without its trace, or without one of its verdicts, is left out of all counts."""
    with pytest.warns(UnscoredWarning, match="3 of 5 facts lack a verdict"):
        counts = forgetting_counts(
            [1, 1, None, 0, 1],
            [0, 0, 0, 1, 1],
            full=[1, np.nan, 1, 1, 0],
            has_gold=[0, 0, 0, None, 1],
            missing="drop",
        )

    assert counts.table == table_of((1, 1, 0, 0))
    assert (counts.artifacts, counts.full_correct) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"del_on": [1], "del_off": [1, 0]}, "del_on and del_off must have equal lengths"),
        ({"del_on": [1], "del_off": [2]}, r"del_off\[0\] is 2, which is no verdict"),
        ({"del_on": [[1]], "del_off": [1]}, "del_on must be one-dimensional"),
        ({"del_on": [1], "del_off": [None]}, r"del_off\[0\] has no verdict"),
        (
            {"del_on": [1], "del_off": [1], "full": [1, 1]},
            "full must hold one value a fact, as del_on does; got 2 and 1",
        ),
        ({"del_on": [1], "del_off": [1], "full": [0.5]}, r"full\[0\] is 0.5"),
        (
            {"del_on": [1, 1], "del_off": [1, 1], "has_gold": [0, None]},
            r"has_gold\[1\] is missing \(in all 1 of 2\)",
        ),
        (
            {"del_on": [1], "del_off": [1], "missing": "skip"},
            "missing must be 'raise' or 'drop'",
        ),
    ],
)
def test_forgetting_counts_reject_bad_verdicts(arguments, message):
    with pytest.raises(ValueError, match=message):
        forgetting_counts(**arguments)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"artifacts": 4}, "artifacts must not exceed facts right under DEL-ON; got 4 of 3"),
        ({"full_correct": 11}, "full_correct must not exceed facts; got 11 of 10"),
        (
            {"artifacts": 1, "artifacts_given_full": 2},
            "artifacts_given_full must not exceed artifacts; got 2 of 1",
        ),
        (
            {"given_full": table_of((2, 0, 0, 0))},
            "given_full.both must not exceed table.both; got 2 of 1",
        ),
        (
            {"given_full": table_of((1, 0, 0, 0)), "full_correct": 2},
            "given_full must hold the full_correct facts: got 1 and 2",
        ),
        (
            {"given_full": table_of((0, 1, 0, 3)), "artifacts": 3, "artifacts_given_full": 2},
            "artifacts_given_full must not exceed given_full right under DEL-ON; got 2 of 1",
        ),
        ({"artifacts": -1}, "artifacts must be a count of at least 0"),
    ],
)
def test_counts_reject_parts_larger_than_their_whole(parts, message):
    with pytest.raises(ValueError, match=message):
        ForgettingCounts(table=table_of((1, 2, 3, 4)), **parts)


def test_counts_reject_what_is_no_count():
    with pytest.raises(TypeError, match="artifacts must be an integer count"):
        ForgettingCounts(table=table_of((1, 2, 3, 4)), artifacts=1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        ForgettingCounts(table=table_of((1, 2, 3, 4))) + 1
