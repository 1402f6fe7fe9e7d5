import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as npst

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import CountRatio, Intervals, cluster_bootstrap
from surface_consistency.metrics.paired.paired_tables import PairedTable, paired_table
from surface_consistency.metrics.positions.alignment import (
    alignment_scores,
    topic_alignment,
)

shapes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 6))


@st.composite
def verdicts(draw):
    n_topics, n_permutations, n_slots = draw(shapes)
    short = draw(npst.arrays(np.bool_, (n_topics, n_slots)))
    long = draw(npst.arrays(np.bool_, (n_topics, n_permutations, n_slots)))
    return short, long


def naive(short, long):
    """Equations 1 to 4, one sub-question at a time, averaged over permutations."""
    rows = []
    for topic in range(len(short)):
        per_permutation = []
        for answers in long[topic]:
            n = len(answers)
            aligned = [int(s == x) for s, x in zip(short[topic], answers, strict=True)]
            signed = [
                1 if s and x else -1 if not s and not x else 0
                for s, x in zip(short[topic], answers, strict=True)
            ]
            per_permutation.append(
                (sum(short[topic]) / n, sum(answers) / n, sum(aligned) / n, sum(signed) / n)
            )
        rows.append(np.mean(per_permutation, axis=0))
    return np.array(rows)


def columns(scores):
    return np.column_stack(
        (
            scores.short_accuracy,
            scores.long_accuracy,
            scores.alignment,
            scores.signed_alignment,
        )
    )


def test_topic_alignment_agrees_with_the_definitions():
    """A topic of five facts: three right in short, two of them in long, one gained."""
    scores = topic_alignment([[1, 1, 1, 0, 0]], [[1, 1, 0, 1, 0]])

    # SLAQ eqs. 2 to 4 by hand: A_k = 1, 1, 0, 0, -1.
    assert scores.short_accuracy.tolist() == [0.6]
    assert scores.long_accuracy.tolist() == [0.6]
    assert scores.alignment.tolist() == [0.6]
    assert scores.signed_alignment.tolist() == [0.2]
    assert scores.table == PairedTable(both=2, first_only=1, second_only=1, neither=1)
    assert scores.n_pairs.tolist() == [5]


@given(verdicts())
def test_topic_alignment_agrees_with_a_naive_loop(data):
    short, long = data

    scores = topic_alignment(short, long)

    assert columns(scores) == pytest.approx(naive(short, long))


@given(verdicts())
def test_topic_alignment_is_bounded_and_obeys_its_identities(data):
    """Signed alignment is F_S + F_L - 1: it adds nothing to the two accuracies."""
    scores = topic_alignment(*data)

    assert (scores.alignment >= np.abs(scores.signed_alignment) - 1e-12).all()
    assert ((scores.alignment >= 0) & (scores.alignment <= 1)).all()
    assert scores.signed_alignment == pytest.approx(
        scores.short_accuracy + scores.long_accuracy - 1.0
    )
    both = (scores.alignment + scores.signed_alignment) / 2
    assert (both <= np.minimum(scores.short_accuracy, scores.long_accuracy) + 1e-12).all()
    assert scores.table.n == scores.n_pairs.sum()


@given(verdicts(), st.randoms(use_true_random=False))
def test_topic_alignment_is_free_of_order(data, random):
    """Topics, permutations and sub-questions may stand in any order."""
    short, long = data
    topics, permutations, slots = (
        random.sample(range(size), size) for size in (len(long), long.shape[1], long.shape[2])
    )

    scores = topic_alignment(short[topics][:, slots], long[topics][:, permutations][:, :, slots])

    assert columns(scores) == pytest.approx(columns(topic_alignment(short, long))[topics])


@given(verdicts())
def test_topic_alignment_is_mirrored_by_swapping(data):
    short, long = data[0], data[1][:, 0]

    there, back = topic_alignment(short, long), topic_alignment(long, short)

    assert back.short_accuracy == pytest.approx(there.long_accuracy)
    assert back.alignment == pytest.approx(there.alignment)
    assert back.signed_alignment == pytest.approx(there.signed_alignment)
    assert back.table == there.table.swap()


@given(verdicts())
def test_topic_alignment_is_turned_by_negation(data):
    """Calling right wrong and wrong right turns the signed score and keeps the other."""
    short, long = data

    scores, turned = topic_alignment(short, long), topic_alignment(~short, ~long)

    assert turned.alignment == pytest.approx(scores.alignment)
    assert turned.signed_alignment == pytest.approx(-scores.signed_alignment)


def test_topic_alignment_agrees_with_the_paired_table():
    rng = np.random.default_rng(3)
    short, long = rng.random((40, 5)) < 0.5, rng.random((40, 5)) < 0.4

    scores = topic_alignment(short, long)

    table = paired_table(short.ravel(), long.ravel())
    assert scores.table == table
    assert scores.alignment.mean() == pytest.approx(table.consistency)
    assert scores.signed_alignment.mean() == pytest.approx(table.signed_alignment)


def test_topic_alignment_takes_any_form_of_verdict():
    expected = columns(topic_alignment([[1, 0], [0, 1]], [[1, 1], [0, 0]]))
    frame = pd.DataFrame([[True, False], [False, True]])

    forms = [
        [[True, False], [False, True]],
        [[1.0, 0.0], [0.0, 1.0]],
        np.array([[1, 0], [0, 1]], dtype=np.int8),
        np.ma.masked_array([[1, 0], [0, 1]], mask=False),
        frame,
        frame.astype("boolean"),
    ]

    for form in forms:
        assert (columns(topic_alignment(form, [[1, 1], [0, 0]])) == expected).all()


def test_topic_alignment_drops_pairs_that_lack_a_verdict():
    """A pair goes with either of its verdicts, and the other scores go with it."""
    short = [[1, 0, None], [1, 1, 1]]
    long = [[[1, None, 1], [1, 0, 1]], [[0, 1, 1], [1, 1, 1]]]

    with pytest.warns(UnscoredWarning, match="3 of 12 pairs lack a verdict"):
        scores = topic_alignment(short, long, missing="drop")

    assert scores.n_pairs.tolist() == [3, 6]
    assert scores.n_missing == 3
    # Topic 0 keeps (1, 1), (1, 1) and (0, 0).
    assert scores.short_accuracy[0] == pytest.approx(2 / 3)
    assert scores.alignment[0] == 1.0
    assert scores.signed_alignment[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, np.nan])
def test_topic_alignment_is_nan_for_a_topic_without_verdicts(gap):
    with pytest.warns(UnscoredWarning, match="2 of 4 pairs"):
        scores = topic_alignment([[gap, gap], [1, 0]], [[1, 1], [1, 0]], missing="drop")

    assert np.isnan(scores.alignment[0])
    assert scores.alignment[1] == 1.0
    assert scores.n_pairs.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("short", "long", "message"),
    [
        ([[1, 0, 1]], [[1, 0]], "1 topics of 3 slots and 1 topics of 2 slots"),
        ([[1, 0]], [[1, 0], [0, 0]], "1 topics of 2 slots and 2 topics of 2 slots"),
        ([[1, 0], [1]], [[1, 0], [0, 0]], "short must have the same number of slots"),
        ([[1, 0]], [[[1, 0], [1]]], "long must have the same number of slots"),
        ([1, 0], [[1, 0]], r"short must have shape \(n_topics, n_slots\); got \(2,\)"),
        ([[1, 0]], [1, 0], r"long must have shape .* or .*; got \(2,\)"),
        ([[1, 0]], [[[[1, 0]]]], r"long must have shape .*; got \(1, 1, 1, 2\)"),
        ([], [], r"short must have shape .*; got \(0,\)"),
        ([[]], [[]], r"short is empty, shape \(1, 0\)"),
        ([[1, 2]], [[1, 0]], r"short\[0\]\[1\] is 2, which is no verdict"),
        ([[1, 0]], [[[1, 0], [0.5, 0]]], r"long\[0, 1\]\[0\] is 0.5, which is no verdict"),
        ([["yes", "no"]], [[1, 0]], r"short\[0\]\[0\] is 'yes', which is no verdict"),
        ([[1, None]], [[1, 0]], r"short\[0, 1\] has no verdict \(in all 1 of 2"),
        ([[1, 0]], [[[1, 0], [1, np.nan]]], r"long\[0, 1, 1\] has no verdict"),
    ],
)
def test_topic_alignment_rejects_bad_verdicts(short, long, message):
    with pytest.raises(ValueError, match=message):
        topic_alignment(short, long)


def test_topic_alignment_rejects_an_unknown_policy():
    with pytest.raises(ValueError, match="missing must be 'raise' or 'drop'; got 'skip'"):
        topic_alignment([[1]], [[1]], missing="skip")


SCORES = (
    "short_accuracy",
    "long_accuracy",
    "accuracy_difference",
    "alignment",
    "signed_alignment",
)


def slaq_like(seed, n_topics=600, n_permutations=5, n_slots=5):
    """Verdicts of SLAQ's size: facts differ in difficulty, the long query costs a little."""
    rng = np.random.default_rng(seed)
    known = 0.6 * rng.beta(1, 1.5, (n_topics, 1)) + 0.4 * rng.beta(1, 1.5, (n_topics, n_slots))
    short = rng.random((n_topics, n_slots)) < known
    long = rng.random((n_topics, n_permutations, n_slots)) < 0.9 * known[:, None]
    return short, long


def test_alignment_scores_agree_with_means_over_topics():
    """Figure 2: the average over topics of the scores of each topic."""
    short, long = slaq_like(1)

    result, topics = alignment_scores(short, long), topic_alignment(short, long)

    assert result.short_accuracy == pytest.approx(topics.short_accuracy.mean())
    assert result.long_accuracy == pytest.approx(topics.long_accuracy.mean())
    assert result.alignment == pytest.approx(topics.alignment.mean())
    assert result.signed_alignment == pytest.approx(topics.signed_alignment.mean())
    assert result.accuracy_difference == pytest.approx(result.long_accuracy - result.short_accuracy)
    assert result.table.consistency == pytest.approx(result.alignment)
    assert result.table.signed_alignment == pytest.approx(result.signed_alignment)
    assert (result.n_topics, result.n_missing, result.table.n) == (600, 0, 15_000)


def test_signed_alignment_follows_from_the_published_accuracies():
    """Signed alignment = F_S + F_L - 1, so a negative one says that accuracies sum below 1."""
    # arXiv 2510.11218, section 4.2: alignment 73 to 78 %, signed alignment -0.51 to -0.01. A model
    # with both right in 37 % and both wrong in 38 % has alignment 0.75 and signed alignment -0.01.
    short = [[1] * 37 + [1] * 13 + [0] * 12 + [0] * 38] * 4
    long = [[1] * 37 + [0] * 13 + [1] * 12 + [0] * 38] * 4

    result = alignment_scores(short, long, intervals=Intervals(n_resamples=10))

    assert result.alignment == pytest.approx(0.75)
    assert result.signed_alignment == pytest.approx(-0.01)
    assert result.short_accuracy + result.long_accuracy - 1 == pytest.approx(-0.01)


def test_intervals_agree_with_the_cluster_bootstrap_of_each_score():
    short, long = slaq_like(2, n_topics=150)
    topics = topic_alignment(short, long)
    counts = np.column_stack((topics.alignment, np.ones(150)))

    result = alignment_scores(short, long, intervals=Intervals(n_resamples=20_000, rng=5))
    reference = cluster_bootstrap(
        counts,
        CountRatio(numerator=(1, 0), denominator=(0, 1)),
        intervals=Intervals(n_resamples=20_000, rng=6),
    )

    assert result.alignment == pytest.approx(reference.estimate)
    assert result.alignment_interval.low == pytest.approx(
        reference.estimate_interval.low, abs=0.004
    )
    assert result.alignment_interval.high == pytest.approx(
        reference.estimate_interval.high, abs=0.004
    )


def test_intervals_are_wider_than_those_of_independent_pairs():
    """Facts of one topic resemble each other, so single pairs overstate the evidence."""
    short, long = slaq_like(3)

    by_topic = alignment_scores(short, long)
    by_pair = alignment_scores(
        np.repeat(short[:, None], 5, axis=1).reshape(-1, 1), long.reshape(-1, 1)
    )

    assert by_topic.long_accuracy == pytest.approx(by_pair.long_accuracy)
    width = by_topic.long_accuracy_interval.high - by_topic.long_accuracy_interval.low
    naive = by_pair.long_accuracy_interval.high - by_pair.long_accuracy_interval.low
    assert width > 1.5 * naive


def test_difference_interval_is_tighter_than_those_of_its_parts():
    """Both accuracies come from the same topics, so their difference varies less."""
    result = alignment_scores(*slaq_like(4))

    def width(name):
        interval = getattr(result, f"{name}_interval")
        return interval.high - interval.low

    assert width("accuracy_difference") < width("short_accuracy") + width("long_accuracy")
    assert result.accuracy_difference_interval.high < 0
    for name in SCORES:
        interval = getattr(result, f"{name}_interval")
        assert interval.low <= getattr(result, name) <= interval.high


def test_alignment_scores_are_the_same_for_the_same_seed():
    short, long = slaq_like(5, n_topics=50)

    options = Intervals(method="percentile", n_resamples=500, rng=9)
    first, second = (alignment_scores(short, long, intervals=options) for _ in range(2))

    # As text, where NaN is NaN.
    assert repr(first) == repr(second)
    other = alignment_scores(short, long, intervals=replace(options, rng=10))
    assert repr(other) != repr(first)


def test_alignment_scores_leave_topics_without_verdicts_out():
    with pytest.warns(UnscoredWarning, match="2 of 10 pairs"):
        result = alignment_scores(
            [[1, 0], [None, None], [1, 1], [1, 0], [1, 1]],
            [[1, 0], [1, 1], [1, 1], [1, 0], [1, 1]],
            missing="drop",
            intervals=Intervals(n_resamples=50),
        )

    assert (result.n_topics, result.n_missing) == (4, 2)
    assert result.alignment == 1.0
    assert result.short_accuracy == 0.75


def test_alignment_scores_of_one_topic_have_no_interval():
    with pytest.warns(UndefinedMetricWarning, match="worth 1 cluster, under 4"):
        result = alignment_scores([[1, 0, 1]], [[1, 1, 1]])

    assert result.alignment == pytest.approx(2 / 3)
    assert math.isnan(result.alignment_interval.low)
    assert math.isnan(result.accuracy_difference_interval.high)


def test_alignment_scores_of_constant_verdicts_have_intervals_with_a_width():
    """Four topics that agree throughout do not prove that all topics do."""
    result = alignment_scores([[0, 0]] * 4, [[0, 0]] * 4)

    assert result.signed_alignment == -1.0
    assert result.alignment == 1.0
    assert result.alignment_interval.low < 0.5
    assert result.alignment_interval.high == 1.0
    assert result.accuracy_difference_interval.low < 0 < result.accuracy_difference_interval.high


def test_alignment_scores_reject_pairs_without_any_verdict():
    with (
        pytest.warns(UnscoredWarning, match="2 of 2 pairs"),
        pytest.raises(ValueError, match="no pair of a short and a long answer has both verdicts"),
    ):
        alignment_scores([[None, None]], [[1, 1]], missing="drop")


@given(
    seed=st.integers(0, 2**16),
    n_topics=st.integers(4, 30),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
@settings(deadline=None, max_examples=40)
def test_interval_of_the_difference_leaves_out_0_exactly_where_its_test_rejects(
    seed, n_topics, level
):
    rng = np.random.default_rng(seed)
    short = rng.random((n_topics, 3)) < rng.random()
    long = rng.random((n_topics, 2, 3)) < rng.random()

    result = alignment_scores(short, long, intervals=Intervals(level=level))

    interval, p_value = result.accuracy_difference_interval, result.accuracy_difference_p_value
    assume(abs(p_value - (1 - level)) > 1e-9)
    assert (p_value < 1 - level) == (interval.low > 0 or interval.high < 0)
    assert interval.low <= result.accuracy_difference <= interval.high


def test_difference_of_many_topics_is_the_paired_t_of_their_means():
    """What few events cannot show is nothing among 2,000."""
    stats = pytest.importorskip("scipy.stats")
    short, long = slaq_like(8, n_topics=2000)
    topics = topic_alignment(short, long)
    theirs = stats.ttest_rel(topics.long_accuracy, topics.short_accuracy)

    result = alignment_scores(short, long)

    bounds = theirs.confidence_interval(0.95)
    interval = result.accuracy_difference_interval
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-3)
    statistic = stats.t.isf(result.accuracy_difference_p_value / 2, 1999)
    assert statistic == pytest.approx(abs(theirs.statistic), rel=0.06)


@pytest.mark.parametrize(("n_topics", "rate"), [(6, 0.5), (20, 0.5), (20, 0.95), (60, 0.98)])
def test_test_of_the_difference_keeps_its_level(n_topics, rate):
    rng, rejected, tries = np.random.default_rng(3), 0, 300
    for _ in range(tries):
        ease = rng.beta(8 * rate, 8 * (1 - rate), (n_topics, 1))
        short = rng.random((n_topics, 5)) < ease
        long = rng.random((n_topics, 5)) < ease
        rejected += alignment_scores(short, long).accuracy_difference_p_value < 0.05

    assert rejected / tries <= 0.08


def test_three_topics_are_not_inferred_from():
    short, long = slaq_like(9, n_topics=3)
    with pytest.warns(
        UndefinedMetricWarning, match="intervals are undefined.*worth 3 clusters, under 4"
    ):
        result = alignment_scores(short, long)
    assert math.isnan(result.accuracy_difference_p_value)
    assert math.isnan(result.accuracy_difference_interval.low)
    assert math.isnan(result.short_accuracy_interval.low)


def test_resampled_differences_have_no_p_value_of_another_statistic():
    short, long = slaq_like(5, n_topics=30)

    drawn = alignment_scores(short, long, intervals=Intervals(method="percentile", n_resamples=90))

    assert math.isnan(drawn.accuracy_difference_p_value)
    assert (drawn.n_resamples, alignment_scores(short, long).n_resamples) == (90, None)
