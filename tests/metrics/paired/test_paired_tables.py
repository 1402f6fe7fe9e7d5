import math
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    PairedTable,
    consistency,
    consistency_given,
    flip_rate,
    paired_table,
)
from surface_consistency.metrics.paired.paired_tables import cluster_counts, table_of
from tests.metrics.harness import golden_rows
from tests.refusals import refusals


def japanese_tables(data_files):
    return {
        (row["dataset"], row["group"]): PairedTable(
            both=int(row["both_correct"]),
            first_only=int(row["canonical_only_correct"]),
            second_only=int(row["redirect_only_correct"]),
            neither=int(row["both_incorrect"]),
        )
        for row in golden_rows(data_files, "redirectqa_ja_contingencies.csv")
    }


def test_flip_rate_agrees_with_redirectqa_table_4(data_files):
    cells = {
        (row["canonical_correct"], row["redirect_correct"]): int(row["count"])
        for row in golden_rows(data_files, "redirectqa_table4_popqa_contingency.csv")
    }

    table = table_of([cells["1", "1"], cells["1", "0"], cells["0", "1"], cells["0", "0"]])

    # arXiv 2604.21882, appendix B.1: 14,489 pairs, 23.7 % of them inconsistent.
    assert table.n == 14_489
    assert 100 * table.flip_rate == pytest.approx(23.7, abs=0.05)
    assert table.accuracy_difference < 0


def test_flip_rate_agrees_with_the_japanese_paper_table_1(data_files):
    tables = japanese_tables(data_files)
    table = tables["popqa_redirect", "all"]

    # Section 3.2: 7,929 pairs, labels differ in 20.3 %. Table 2 has the other six rows.
    assert len(tables) == 7
    assert table.n == 7929
    assert 100 * table.flip_rate == pytest.approx(20.3, abs=0.05)


# The percentages printed in table 2 of the Japanese paper: of the pairs whose canonical form was
# right, the redirect right and wrong; of those whose canonical form was wrong, right and wrong.
@pytest.mark.parametrize(
    ("group", "printed"),
    [
        ("all", (79.8, 20.2, 5.8, 94.2)),
        ("alternative_names_and_abbreviations", (68.6, 31.4, 5.9, 94.1)),
        ("spelling_variants", (84.2, 15.8, 5.8, 94.2)),
        ("typical_errors", (71.3, 28.7, 4.0, 96.0)),
        ("from short names", (87.2, 12.8, 7.4, 92.6)),
        ("from long names", (63.3, 36.7, 4.7, 95.3)),
    ],
)
def test_conditional_consistency_agrees_with_the_japanese_paper_table_2(data_files, group, printed):
    table = japanese_tables(data_files)["redirectqa_v0", group]

    right, wrong = table.consistency_given_first_correct, table.consistency_given_first_incorrect
    computed = [100 * share for share in (right, 1 - right, 1 - wrong, wrong)]

    assert computed == pytest.approx(printed, abs=0.05 + 1e-9)


FORMULAS = {
    "consistency": 16 / 20,
    "flip_rate": 4 / 20,
    "negative_flip_rate": 3 / 20,
    "positive_flip_rate": 1 / 20,
    "signed_alignment": -6 / 20,
    "first_accuracy": 8 / 20,
    "second_accuracy": 6 / 20,
    "accuracy_difference": -2 / 20,
    "consistency_given_first_correct": 5 / 8,
    "consistency_given_first_incorrect": 11 / 12,
}


@pytest.mark.parametrize("name", PAIRED_RATES)
def test_rates_agree_with_their_formulas(name):
    """Also of many tables at once, and NaN with a warning without a pair."""
    table, tables = table_of([5, 3, 1, 11]), np.random.default_rng(5).integers(1, 50, (3, 7, 4))

    together = PAIRED_RATES[name](tables)

    assert getattr(table, name) == PAIRED_RATES[name](table.counts) == FORMULAS[name]
    assert together.shape == (3, 7)
    for index in np.ndindex(3, 7):
        assert together[index] == pytest.approx(float(PAIRED_RATES[name](tables[index])))
    with pytest.warns(UndefinedMetricWarning, match=f"^{name} is undefined"):
        assert np.isnan(getattr(table_of([0, 0, 0, 0]), name))


def test_conditional_rate_without_its_condition_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="consistency_given_first_correct"):
        assert np.isnan(table_of([0, 0, 2, 3]).consistency_given_first_correct)
    assert table_of([0, 0, 2, 3]).consistency_given_first_incorrect == 0.6


@given(pairs=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
@settings(deadline=None)
def test_paired_table_agrees_with_a_naive_loop(pairs):
    """Rates of arrays equal those of the table; swapping the conditions changes the sign."""
    naive = Counter(pairs)
    first, second = zip(*pairs, strict=True)

    table, back = paired_table(first, second), paired_table(second[::-1], first[::-1])

    cells = [(True, True), (True, False), (False, True), (False, False)]
    assert table.counts == tuple(naive[cell] for cell in cells)
    assert PairedTable(**table.to_dict()) == table
    assert back.counts == tuple(table.counts[place] for place in (0, 2, 1, 3))
    assert back.accuracy_difference == -table.accuracy_difference
    assert table.consistency + table.flip_rate == pytest.approx(1)
    assert table.negative_flip_rate + table.positive_flip_rate == pytest.approx(table.flip_rate)
    difference = table.second_accuracy - table.first_accuracy
    assert table.accuracy_difference == pytest.approx(difference)
    assert consistency(first, second) == pytest.approx(table.consistency)
    assert flip_rate(first, second) == pytest.approx(table.flip_rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for name in PAIRED_RATES:
            least = -1 if name in ("signed_alignment", "accuracy_difference") else 0
            assert np.isnan(getattr(table, name)) or least <= getattr(table, name) <= 1
        for correct, name in ((True, "correct"), (False, "incorrect")):
            found = consistency_given(first, second, first_correct=correct)
            expected = getattr(table, f"consistency_given_first_{name}")
            assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "first",
    [
        [True, False, True],
        (1, 0, 1),
        np.array([1.0, 0.0, 1.0]),
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([True, 0, np.float64(1)], dtype=object),
        pd.Series([True, False, True], index=[7, 8, 9]),
        pd.array([1, 0, 1], dtype="Int64"),
        pd.Series([True, False, True], dtype="boolean"),
    ],
)
def test_paired_table_reads_every_common_form(first):
    assert paired_table(first, [True, True, False]).counts == (1, 1, 1, 0)
    assert paired_table([], []).counts == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "first",
    [
        [True, None, False, None],
        [1.0, np.nan, 0.0, np.nan],
        [1, float("nan"), 0, None],
        pd.Series([True, None, False, pd.NA], dtype="boolean"),
        pd.Series([1, pd.NA, 0, None], dtype="Int64"),
        np.ma.masked_array([1, 1, 0, 0], mask=[False, True, False, True]),
    ],
)
def test_paired_table_drops_missing_labels_with_a_count(first):
    with pytest.warns(UnscoredWarning, match="2 of 4 pairs lack a label"):
        assert paired_table(first, [True] * 4, missing="drop").counts == (1, 0, 1, 0)


def test_missing_labels_are_dropped_pairwise():
    """A pair is dropped if either label is missing, and counted once if both are."""
    with pytest.warns(UnscoredWarning, match="3 of 4"):
        table = paired_table([1, None, 0, None], [None, 1, 0, None], missing="drop")
    with pytest.warns(UnscoredWarning, match="2 of 3 pairs"):
        counts = cluster_counts(
            [1, None, 0], [1, 1, None], clusters=["a", "b", "a"], missing="drop"
        )
    with pytest.warns(UnscoredWarning, match="1 of 2 pairs"):
        assert flip_rate([1, None], [0, 1], missing="drop") == 1.0
    with pytest.warns(UndefinedMetricWarning, match="no pair enters"):
        assert math.isnan(consistency_given([0], [0], first_correct=True))

    assert table.counts == (0, 0, 0, 1)
    assert counts.tolist() == [[1, 0, 0, 0]]


ONES = [1, 1, 1]


test_paired_table_rejects_invalid_labels = refusals(
    lambda first, second=ONES, missing="raise", call=paired_table: call(
        first, second, missing=missing
    ),
    ([1, 0, 2], ONES, "drop", r"first\[2\] is 2, which is not a correctness label"),
    ([1.0, 0.5, 1.0], ONES, "drop", r"first\[1\] is 0\.5"),
    ([1.0, np.inf, 1.0], ONES, "drop", r"first\[1\] is inf"),
    ([True, "yes", False], ONES, "drop", r"first\[1\] is 'yes'"),
    (["1", "0", "1"], ONES, "drop", r"first\[0\] is '1'.*; convert texts of numbers with pandas"),
    ([True, False, pd.Timestamp("2024-01-01")], ONES, "drop", r"first\[2\] is Timestamp"),
    (pd.Series([0, -1, 1], index=[5, 6, 7]), ONES, "drop", r"first\[1\] is -1"),
    ([1 + 0j, 0, 1], ONES, "drop", r"first\[0\] is \(1\+0j\)"),
    ([1, 0, 1], [1, 0], r"equal lengths.*got 3 and 2"),
    ([1, 0, 1], [1, 0], "raise", consistency, r"equal lengths.*got 3 and 2"),
    ([[1, 0], [1, 1]], "first must be one-dimensional"),
    (1, "first must be one-dimensional"),
    (np.ma.masked_array([[1, 0]]), "first must be one-dimensional"),
    (ONES, ONES, "skip", "missing must be 'raise' or 'drop'; got 'skip'"),
    (ONES, ONES, "skip", consistency, "missing must be 'raise' or 'drop'; got 'skip'"),
    (ONES, [1, None, np.nan], r"second\[1\] has no label \(2 of 3.*drop"),
)


@pytest.mark.parametrize("bad", [1.0, "3", None, True, np.bool_(True), np.float64(2)])
def test_table_rejects_values_that_are_not_counts(bad):
    with pytest.raises(TypeError, match="second_only must be an integer count"):
        PairedTable(both=1, first_only=2, second_only=bad, neither=3)


def test_table_contains_python_integers_and_is_frozen():
    table = table_of(np.array([1, 2, 3, 4]))

    assert all(type(count) is int for count in table.counts)
    assert len({table, table_of([1, 2, 3, 4])}) == 1
    with pytest.raises(AttributeError, match="both"):
        table.both = 5
    with pytest.raises(ValueError, match="neither must be a count of at least 0; got -1"):
        PairedTable(both=1, first_only=2, second_only=3, neither=-1)
    with pytest.raises(TypeError, match="does not support item assignment"):
        PAIRED_RATES["consistency"] = None


def test_count_ratio_of_zero_denominator_is_nan_or_infinite():
    values = CountRatio(numerator=(1, 0), denominator=(0, 1))([[0, 0], [3, 0], [3, 2]])

    assert np.isnan(values[0])
    assert values[1:].tolist() == [np.inf, 1.5]
    with pytest.raises(ValueError, match="got 2 and 3 weights"):
        CountRatio(numerator=(1, 0), denominator=(1, 1, 1))


rows = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("pqrs")), max_size=40)


@given(rows=rows)
def test_cluster_counts_agree_with_a_naive_loop(rows):
    order = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}
    naive = Counter((label, order[first, second]) for first, second, label in rows)
    labels = list(dict.fromkeys(label for _, _, label in rows))
    first, second, clusters = ([row[place] for row in rows] for place in range(3))

    counts = cluster_counts(first, second, clusters=clusters)

    assert counts.shape == (len(labels), 4)
    assert counts.tolist() == [[naive[label, cell] for cell in range(4)] for label in labels]
    assert tuple(counts.sum(axis=0)) == paired_table(first, second).counts


@pytest.mark.parametrize("label", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_cluster_counts_reject_missing_labels(label):
    with pytest.raises(ValueError, match=r"clusters\[1\] is .*fill it"):
        cluster_counts([1, 0], [1, 0], clusters=["a", label])
    with pytest.raises(ValueError, match="got 2 labels for 3 pairs"):
        cluster_counts([1, 0, 1], [1, 0, 1], clusters=["a", "b"])
