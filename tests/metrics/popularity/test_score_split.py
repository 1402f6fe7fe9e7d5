import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import split_accuracy
from tests.refusals import refusals

# Lexical Popularity, table 4 and table K (accuracy in the low and the high half by TDE likelihood
# and by MIA neighbours), and the accuracy of OLMo 7B in tables 1 and D. The halves are equally
# large, so their mean is the accuracy of the model whose labels were split. In every row, those
# of Pythia included, that is the accuracy of OLMo 7B.
HALVES = {
    "LAMBADA": (70.75, [(70.20, 71.31), (69.69, 71.82), (70.43, 71.08), (70.00, 71.51)]),
    "PIQA": (79.22, [(82.92, 75.52), (83.03, 75.41), (82.26, 76.17), (81.07, 77.37)]),
    "COPA": (85.0, [(86.0, 84.0), (84.0, 86.0), (88.0, 82.0), (76.0, 94.0)]),
    "WinoGrande": (69.14, [(69.09, 69.19), (71.77, 66.51), (70.82, 67.46), (67.82, 70.46)]),
    "Anaphor Agr.": (99.20, [(99.10, 99.30), (98.60, 99.80), (99.40, 99.00), (99.00, 99.40)]),
    "Arg. Structure": (82.08, [(80.35, 83.80), (78.20, 85.95), (81.20, 82.95), (78.80, 85.35)]),
    "Det.-Noun Agr.": (94.65, [(92.58, 96.72), (93.20, 96.10), (92.42, 96.88), (93.05, 96.25)]),
    "Subj.-Verb Agr.": (89.65, [(90.43, 88.87), (87.93, 91.37), (90.20, 89.10), (87.03, 92.27)]),
}


@pytest.mark.parametrize("task", HALVES)
def test_published_halves_average_to_the_accuracy_of_one_model(task):
    """A median split into equal halves keeps the mean, and the tables keep that of OLMo 7B."""
    accuracy, halves = HALVES[task]

    for low, high in halves:
        assert (low + high) / 2 == pytest.approx(accuracy, abs=0.011)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=40),
    threshold=st.one_of(st.none(), st.integers(0, 9)),
)
def test_split_accuracy_agrees_with_a_naive_loop(rows, threshold):
    scores, correct = zip(*rows, strict=True)
    cut = np.median(scores) if threshold is None else threshold
    low = [right for score, right in rows if score <= cut]
    high = [right for score, right in rows if score > cut]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = split_accuracy(scores, correct, threshold=threshold)

    bounds = [result["low_accuracy_low"], result["high_accuracy_low"]]
    assert [w.category for w in caught] == [UndefinedMetricWarning] * bool(caught)
    assert bool(caught) == any(map(math.isnan, bounds))
    assert [math.isnan(bound) for bound in bounds] == [len(low) < 4, len(high) < 4]
    assert (result["n_low"], result["n_high"]) == (len(low), len(high))
    assert result["n_tied"] == sum(score == cut for score in scores)
    assert result["threshold"] == cut
    means = [np.mean(side) if side else math.nan for side in (low, high)]
    found = [result["low_accuracy"], result["high_accuracy"], result["difference"]]
    assert found == pytest.approx([*means, means[1] - means[0]], nan_ok=True)


def test_interval_of_the_difference_agrees_with_two_independent_halves():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=2000)
    correct = rng.random(2000) < 0.6 + 0.1 * (scores > 0)

    result = split_accuracy(scores, correct)

    low, high = result["low_accuracy"], result["high_accuracy"]
    error = math.sqrt(low * (1 - low) / result["n_low"] + high * (1 - high) / result["n_high"])
    for end, sign in (("low", -1.96), ("high", 1.96)):
        expected = result["difference"] + sign * error
        assert result[f"difference_{end}"] == pytest.approx(expected, abs=0.1 * error)
    assert result["low_accuracy_low"] < low < result["low_accuracy_high"]


def test_clusters_widen_the_intervals():
    rng = np.random.default_rng(6)
    scores, correct = np.repeat(rng.random(80), 9), np.repeat(rng.random(80) < 0.6, 9)

    single = split_accuracy(scores, correct)
    grouped = split_accuracy(scores, correct, clusters=np.repeat(np.arange(80), 9).tolist())

    widths = [row["difference_high"] - row["difference_low"] for row in (grouped, single)]
    assert grouped["n_clusters"] == 80
    assert widths[0] / widths[1] == pytest.approx(3, rel=0.15)


def test_missing_values_are_excluded_and_counted():
    with (
        pytest.warns(UndefinedMetricWarning, match=r"interval of low_accuracy.*2 low and 1 high"),
        pytest.warns(UnscoredWarning, match="2 of 5 instances lack a score or label"),
    ):
        result = split_accuracy([1.0, math.nan, 3.0, 4.0, 2.0], [1, 1, None, 0, 1], missing="drop")

    assert (result["n_low"], result["n_high"], result["n_missing"]) == (2, 1, 2)


test_split_accuracy_rejects_bad_input = refusals(
    lambda arguments, options: split_accuracy(*arguments, **options),
    (([1, 2], [1]), {}, "scores and correct must have equal lengths; got 2 and 1"),
    (([[1, 2]], [1, 0]), {}, "one-dimensional"),
    (([1, 2], [1, 5]), {}, r"correct\[1\] is 5"),
    (([1, math.nan], [1, 0]), {}, r"scores\[1\] is missing .*exclude such instances"),
    (([1, 2], [1, None]), {}, r"correct\[1\] has no label"),
    (([math.nan], [1]), {"missing": "drop"}, "no instance has both"),
    (([1, 2], [1, 0]), {"clusters": ["a"]}, "got 1 labels for 2"),
    (([1, 2], [1, 0]), {"clusters": ["a", None]}, r"clusters\[1\] is None"),
    (([1, 2], [1, 0]), {"missing": "skip"}, "missing must be"),
)
