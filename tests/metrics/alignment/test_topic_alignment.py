import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics.alignment.topic_alignment import topic_alignment
from surface_consistency.metrics.paired.table import PairedTable, paired_table

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
