from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from scipy import stats

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    CountRatio,
    Intervals,
    alignment,
    alignment_by,
    cluster_bootstrap,
    paired_table,
    signed_alignment,
)
from surface_consistency.metrics.positions.alignment import topic_counts
from tests.refusals import refusals

SCORES = ["short_accuracy", "long_accuracy", "alignment", "signed_alignment"]
shapes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 6))


@st.composite
def verdicts(draw):
    n_topics, n_permutations, n_slots = draw(shapes)
    short = draw(npst.arrays(np.bool_, (n_topics, n_slots)))
    long = draw(npst.arrays(np.bool_, (n_topics, n_permutations, n_slots)))
    return short, long


def framed(short, long):
    """One row per sub-question and permutation."""
    long = np.asarray(long, dtype=object)
    long = long[:, None] if long.ndim == 2 else long
    topics, _, slots = np.indices(long.shape).reshape(3, -1)
    first = np.asarray(short, dtype=object)[topics, slots]
    return pd.DataFrame(
        {"topic_id": topics, "first_correct": first, "second_correct": long.ravel()}
    )


def scored(short, long, **options):
    """The one row for arrays of labels."""
    return alignment_by(framed(short, long), **options).iloc[0]


def naive(short, long):
    """Equations 1 to 4, one sub-question at a time, averaged over permutations, by topic."""
    rows = []
    for first, responses in zip(short, long, strict=True):
        scores = []
        for second in responses:
            pairs = list(zip(first, second, strict=True))
            aligned = [s == x for s, x in pairs]
            signed = [1 if s and x else -1 if not s and not x else 0 for s, x in pairs]
            scores.append([sum(part) / len(pairs) for part in (first, second, aligned, signed)])
        rows.append(np.mean(scores, axis=0))
    return np.array(rows)


def test_scores_agree_with_the_definitions_and_the_published_accuracies():
    # SLAQ eqs. 2 to 4 by hand: A_k = 1, 1, 0, 0, -1.
    short, long = [1, 1, 1, 0, 0], [1, 1, 0, 1, 0]
    assert alignment(short, long) == 0.6
    assert signed_alignment(short, long) == pytest.approx(0.2)
    # arXiv 2510.11218, section 4.2: alignment 73 to 78 %, signed alignment -0.51 to -0.01. A model
    # with both right in 37 % and both wrong in 38 % has alignment 0.75 and signed alignment -0.01.
    short = [1] * 37 + [1] * 13 + [0] * 12 + [0] * 38
    long = [1] * 37 + [0] * 13 + [1] * 12 + [0] * 38
    assert alignment(short, long) == pytest.approx(0.75)
    assert signed_alignment(short, long) == pytest.approx(-0.01)


@settings(deadline=None)
@given(verdicts(), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_scores_agree_with_a_naive_loop_and_satisfy_their_identities(data, random):
    """Signed alignment is F_S + F_L - 1, a function of the two accuracies."""
    short, long = data
    frame = framed(short, long)
    frame = frame.iloc[random.sample(range(len(frame)), len(frame))]
    expected = naive(short, long)

    topics = alignment_by(frame, by="topic_id", topic="topic_id")
    row = alignment_by(frame).iloc[0]

    assert topics[SCORES].to_numpy() == pytest.approx(expected)
    assert row[SCORES].tolist() == pytest.approx(expected.mean(axis=0))
    assert (row["n"], row["n_topics"]) == (len(frame), len(short))
    arrays = [frame[name].tolist() for name in ("first_correct", "second_correct", "topic_id")]
    assert alignment(*arrays) == pytest.approx(row["alignment"])
    assert signed_alignment(*arrays) == pytest.approx(row["signed_alignment"])
    first, second, aligned, signed = row[SCORES]
    assert abs(signed) - 1e-12 <= aligned <= 1
    assert signed == pytest.approx(first + second - 1)
    assert row["accuracy_difference"] == pytest.approx(second - first)
    # Negated labels change the sign of the signed score only; swapping exchanges F_S and F_L.
    turned = scored(~short, ~long)
    found = [turned["alignment"], turned["signed_alignment"]]
    assert found == pytest.approx([aligned, -signed])
    back = alignment_by(frame, short="second_correct", long="first_correct").iloc[0]
    assert back[SCORES].tolist() == pytest.approx([second, first, aligned, signed])
    table = paired_table(*arrays[:2])
    assert (row["alignment"], row["n"]) == (pytest.approx(table.consistency), table.n)


def test_topic_counts_accept_any_form_of_label():
    frame = pd.DataFrame([[True, False], [False, True]])
    for form in (
        [[True, False], [False, True]],
        [[1.0, 0.0], [0.0, 1.0]],
        np.array([[1, 0], [0, 1]], dtype=np.int8),
        np.ma.masked_array([[1, 0], [0, 1]], mask=False),
        frame,
        frame.astype("boolean"),
    ):
        counts = topic_counts(form, [[1, 1], [0, 0]], missing="raise")
        assert counts.tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]


def test_pairs_without_a_label_are_dropped():
    """A pair without one of its labels is excluded from all scores."""
    short = [[1, 0, None], [1, 1, 1]]
    long = [[[1, None, 1], [1, 0, 1]], [[0, 1, 1], [1, 1, 1]]]

    with (
        pytest.warns(UnscoredWarning, match="3 of 12 pairs lack a label"),
        pytest.warns(UndefinedMetricWarning, match="one cluster"),
    ):
        rows = alignment_by(framed(short, long), by="topic_id", topic="topic_id")
    with pytest.warns(UnscoredWarning, match="3 of 12 pairs"):
        counts = topic_counts(short, long, missing="drop")

    assert rows["n"].tolist() == counts.sum(axis=1).tolist() == [3, 6]
    assert rows["n_missing"].sum() == 3
    # Topic 0 keeps (1, 1), (1, 1) and (0, 0).
    assert rows.loc[0, SCORES].tolist() == pytest.approx([2 / 3, 2 / 3, 1.0, 1 / 3])


def slaq_like(seed, n_topics=600, n_permutations=5, n_slots=5):
    """Labels of SLAQ's size: facts differ in difficulty, the long query lowers accuracy."""
    rng = np.random.default_rng(seed)
    known = 0.6 * rng.beta(1, 1.5, (n_topics, 1)) + 0.4 * rng.beta(1, 1.5, (n_topics, n_slots))
    short = rng.random((n_topics, n_slots)) < known
    long = rng.random((n_topics, n_permutations, n_slots)) < 0.9 * known[:, None]
    return short, long


def test_intervals_agree_with_the_cluster_bootstrap_of_each_score():
    short, long = slaq_like(2, n_topics=150)
    aligned = (short[:, None] == long).mean(axis=(1, 2))
    counts = np.column_stack((aligned, np.ones(150)))
    mean = CountRatio(numerator=(1, 0), denominator=(0, 1))

    for method in ("auto", "percentile"):
        row = scored(short, long, intervals=Intervals(method=method, seed=5))
        reference = cluster_bootstrap(counts, mean, intervals=Intervals(method=method, seed=6))
        found = row[["alignment", "alignment_low", "alignment_high"]].tolist()
        assert found == pytest.approx(reference, abs=0.004)
        assert np.isnan(row["accuracy_difference_p_value"]) == (method == "percentile")


@pytest.mark.parametrize("n_topics", [1, 3, 4])
def test_few_topics_are_not_inferred_and_four_equal_topics_have_a_wide_interval(n_topics):
    with pytest.warns(UndefinedMetricWarning, match="cluster") if n_topics == 1 else nullcontext():
        row = scored([[0, 0]] * n_topics, [[0, 0]] * n_topics)

    assert (row["signed_alignment"], row["alignment"]) == (-1.0, 1.0)
    if n_topics == 4:
        assert row["alignment_low"] < 0.5
        assert row["alignment_high"] == 1.0
        assert row["accuracy_difference_low"] < 0 < row["accuracy_difference_high"]
        return
    names = ["alignment_low", "accuracy_difference_high", "accuracy_difference_p_value"]
    assert row[names].isna().all()
    assert f"number of clusters {n_topics}," in row["not_inferred"]


def test_difference_of_many_topics_is_the_paired_t_of_their_means():
    """With 2,000 topics the variance term for few events is 0."""
    short, long = slaq_like(8, n_topics=2000)
    theirs = stats.ttest_rel(long.mean(axis=(1, 2)), short.mean(axis=1))

    row = scored(short, long)

    bounds = theirs.confidence_interval(0.95)
    found = (row["accuracy_difference_low"], row["accuracy_difference_high"])
    assert found == pytest.approx((bounds.low, bounds.high), abs=1e-3)
    statistic = stats.t.isf(row["accuracy_difference_p_value"] / 2, 1999)
    assert statistic == pytest.approx(abs(theirs.statistic), rel=0.06)


test_topic_counts_reject_invalid_labels = refusals(
    lambda short, long: topic_counts(short, long, missing="raise"),
    ([[1, 0, 1]], [[1, 0]], "1 topics of 3 slots and 1 topics of 2 slots"),
    ([[1, 0]], [[1, 0], [0, 0]], "1 topics of 2 slots and 2 topics of 2 slots"),
    ([[1, 0], [1]], [[1, 0], [0, 0]], "short must have the same number of slots"),
    ([[1, 0]], [[[1, 0], [1]]], "long must have the same number of slots"),
    ([1, 0], [[1, 0]], r"short must have shape \(n_topics, n_slots\); got \(2,\)"),
    ([[1, 0]], [1, 0], r"long must have shape .* or .*; got \(2,\)"),
    ([[1, 0]], [[[[1, 0]]]], r"long must have shape .*; got \(1, 1, 1, 2\)"),
    ([], [], r"short must have shape .*; got \(0,\)"),
    ([[]], [[]], r"short is empty, shape \(1, 0\)"),
    ([[1, 2]], [[1, 0]], r"short\[0\]\[1\] is 2, which is not a correctness label"),
    ([[1, 0]], [[[1, 0], [0.5, 0]]], r"long\[0, 1\]\[0\] is 0.5, which is not a correctness label"),
    ([["yes", "no"]], [[1, 0]], r"short\[0\]\[0\] is 'yes', which is not a correctness label"),
    ([[1, None]], [[1, 0]], r"short\[0, 1\] has no label \(1 of 2"),
    ([[1, 0]], [[[1, 0], [1, np.nan]]], r"long\[0, 1, 1\] has no label"),
)


@pytest.mark.parametrize("score", [alignment, signed_alignment])
def test_alignment_of_pairs_without_any_label_is_nan(score):
    with (
        pytest.warns(UnscoredWarning, match="1 of 1 pairs"),
        pytest.warns(UndefinedMetricWarning, match="a long answer has both correctness labels"),
    ):
        assert np.isnan(score([None], [1], missing="drop"))


def test_alignment_rejects_missing_labels_and_topics_of_other_length():
    with pytest.raises(ValueError, match="has no label"):
        alignment([1, None], [1, 1])
    with pytest.raises(ValueError, match="topics must have one label per pair"):
        alignment([1], [1], topics=["a", "b"])


def test_a_topic_of_two_clusters_is_rejected():
    frame = framed([[1, 0], [1, 1]], [[1, 0], [0, 1]]).assign(domain=[0, 1, 2, 2])

    with pytest.raises(ValueError, match="more than one cluster of column 'domain'"):
        alignment_by(frame, cluster="domain")
