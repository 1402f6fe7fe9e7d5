import math

import numpy as np
import pytest

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import CountRatio, cluster_bootstrap
from surface_consistency.metrics.alignment.alignment import alignment_scores
from surface_consistency.metrics.alignment.topic_alignment import topic_alignment

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
    short = [[1] * 37 + [1] * 13 + [0] * 12 + [0] * 38] * 2
    long = [[1] * 37 + [0] * 13 + [1] * 12 + [0] * 38] * 2

    result = alignment_scores(short, long, n_resamples=10)

    assert result.alignment == pytest.approx(0.75)
    assert result.signed_alignment == pytest.approx(-0.01)
    assert result.short_accuracy + result.long_accuracy - 1 == pytest.approx(-0.01)


def test_intervals_agree_with_the_cluster_bootstrap_of_each_score():
    short, long = slaq_like(2, n_topics=150)
    topics = topic_alignment(short, long)
    counts = np.column_stack((topics.alignment, np.ones(150)))

    result = alignment_scores(short, long, n_resamples=20_000, rng=5)
    reference = cluster_bootstrap(
        counts, CountRatio(numerator=(1, 0), denominator=(0, 1)), n_resamples=20_000, rng=6
    )

    assert result.alignment == pytest.approx(reference.estimate)
    assert result.alignment_interval.low == pytest.approx(reference.interval.low, abs=0.004)
    assert result.alignment_interval.high == pytest.approx(reference.interval.high, abs=0.004)


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

    first, second = (alignment_scores(short, long, rng=9, n_resamples=500) for _ in range(2))

    assert first == second
    assert alignment_scores(short, long, rng=10, n_resamples=500) != first


def test_alignment_scores_leave_topics_without_verdicts_out():
    with pytest.warns(UnscoredWarning, match="2 of 6 pairs"):
        result = alignment_scores(
            [[1, 0], [None, None], [1, 1]], [[1, 0], [1, 1], [1, 1]], missing="drop", n_resamples=50
        )

    assert (result.n_topics, result.n_missing) == (2, 2)
    assert result.alignment == 1.0
    assert result.short_accuracy == 0.75


def test_alignment_scores_of_one_topic_have_no_interval():
    with pytest.warns(UndefinedMetricWarning, match="one topic says nothing"):
        result = alignment_scores([[1, 0, 1]], [[1, 1, 1]])

    assert result.alignment == pytest.approx(2 / 3)
    assert math.isnan(result.alignment_interval.low)
    assert math.isnan(result.accuracy_difference_interval.high)


def test_alignment_scores_of_constant_verdicts_have_intervals_without_width():
    result = alignment_scores([[0, 0]] * 4, [[0, 0]] * 4, n_resamples=100)

    assert result.signed_alignment == -1.0
    assert result.alignment == 1.0
    assert (result.alignment_interval.low, result.alignment_interval.high) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"n_resamples": 0}, "n_resamples must be at least 1"),
    ],
)
def test_alignment_scores_reject_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        alignment_scores([[1, 0]] * 3, [[1, 0]] * 3, **options)


def test_alignment_scores_reject_pairs_without_any_verdict():
    with (
        pytest.warns(UnscoredWarning, match="2 of 2 pairs"),
        pytest.raises(ValueError, match="no pair of a short and a long answer has both verdicts"),
    ):
        alignment_scores([[None, None]], [[1, 1]], missing="drop")
