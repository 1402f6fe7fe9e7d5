"""Rates corrected for the errors of an LLM judge."""

import math

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    Intervals,
    JudgeError,
    alignment_by,
    corrected_alignment,
    judge_agreement,
)
from surface_consistency.metrics.positions.alignment import SCORES, topic_counts, topic_shares
from tests.refusals import refusals

ERRORS = ("true_positives", "false_negatives", "false_positives", "true_negatives")


def judge(*counts):
    return JudgeError(**dict(zip(ERRORS, counts, strict=True)))


PERFECT, ERRING = judge(10**6, 0, 0, 10**6), judge(900, 100, 50, 950)


def corrected(short, long, short_error, long_error, resamples=20, rng=0, **options):
    """The corrected scores with few resamples."""
    options |= {"intervals": Intervals(resamples=resamples, seed=rng)}
    errors = {"short_error": short_error, "long_error": long_error}
    return corrected_alignment(short, long, **errors, **options)


def plain_scores(short, long):
    """The uncorrected scores of labels."""
    shares = topic_shares(topic_counts(short, long, missing="raise"))
    return {name: float(score(shares).mean()) for name, score in SCORES.items()}


def through(verdicts, sensitivity, specificity, rng):
    """Apply the errors of a judge to true labels."""
    right = rng.random(verdicts.shape) < sensitivity
    wrong = rng.random(verdicts.shape) < 1 - specificity
    return np.where(verdicts, right, wrong)


def test_perfect_judges_change_nothing():
    rng = np.random.default_rng(0)
    short, long = rng.random((40, 5)) < 0.6, rng.random((40, 3, 5)) < 0.5

    topics, _, slots = np.indices(long.shape).reshape(3, -1)
    frame = pd.DataFrame(
        {"topic_id": topics, "first_correct": short[topics, slots], "second_correct": long.ravel()}
    )
    plain = alignment_by(frame).iloc[0]
    found = corrected(short, long, PERFECT, PERFECT, resamples=500)

    for name in SCORES:
        assert found[name] == found[f"observed_{name}"] == pytest.approx(plain[name])
        for end in ("low", "high"):
            assert found[f"{name}_{end}"] == pytest.approx(plain[f"{name}_{end}"], abs=1e-4)
    assert not found["is_cut"]
    assert (found["n_topics"], found["n_missing"]) == (40, 0)


def test_true_scores_are_recovered_from_a_judge_with_errors():
    """The bias of scores is corrected, and intervals have nearly nominal coverage."""
    covered = np.zeros(4)
    judged_bias, corrected_bias = [], []
    n_worlds = 60
    for world in range(n_worlds):
        rng = np.random.default_rng(100 + world)
        topic = rng.beta(3, 2, (300, 1))
        short = rng.random((300, 5)) < topic
        long = np.where(rng.random((300, 5)) < 0.8, short, rng.random((300, 5)) < 0.3)
        labelled = rng.random(400) < 0.6
        agreement = judge_agreement(
            labelled, through(labelled, 0.9, 0.85, rng), intervals=Intervals(resamples=10)
        )
        error = judge(*(agreement[name] for name in ERRORS))
        judged = through(short, 0.9, 0.85, rng), through(long, 0.9, 0.85, rng)
        truth = plain_scores(short, long)

        result = corrected(*judged, error, error, resamples=400, rng=world)

        names = ("short_accuracy", "long_accuracy", "alignment", "accuracy_difference")
        for place, name in enumerate(names):
            covered[place] += result[f"{name}_low"] <= truth[name] <= result[f"{name}_high"]
        assert result["observed_alignment"] == pytest.approx(plain_scores(*judged)["alignment"])
        accuracies = result["short_accuracy"], result["long_accuracy"]
        assert result["signed_alignment"] == pytest.approx(sum(accuracies) - 1)
        assert result["accuracy_difference"] == pytest.approx(accuracies[1] - accuracies[0])
        judged_bias.append(result["observed_alignment"] - truth["alignment"])
        corrected_bias.append(result["alignment"] - truth["alignment"])

    assert np.mean(judged_bias) < -0.1
    assert abs(np.mean(corrected_bias)) < 0.02
    assert (covered / n_worlds >= 0.85).all()


def test_a_judge_not_better_than_chance_gives_nan_and_one_topic_no_interval():
    with pytest.warns(UndefinedMetricWarning, match="not better than chance"):
        result = corrected([[1, 0], [1, 1]], [[1, 0], [0, 1]], judge(5, 5, 5, 5), ERRING)
    assert math.isnan(result["alignment"])
    with pytest.warns(UndefinedMetricWarning, match="one topic"):
        result = corrected([[1, 1, 0]], [[1, 0, 0]], PERFECT, PERFECT)
    assert result["alignment"] == pytest.approx(2 / 3)
    assert math.isnan(result["alignment_low"])


def test_rates_that_judge_errors_cannot_produce_are_marked_as_cut():
    """A judge with many false positives cannot label so few answers correct."""
    inventive = judge(100, 0, 40, 60)

    result = corrected([[0, 0, 0, 0, 1]] * 20, [[0, 0, 0, 1, 0]] * 20, inventive, inventive)

    assert result["is_cut"]
    assert 0 <= result["alignment"] <= 1


test_invalid_judge_counts_and_error_correlations_are_rejected = refusals(
    lambda counts, call=judge: call(*counts),
    ((0, 0, 1, 1), "so sensitivity is unknown"),
    ((1, 1, 0, 0), "so specificity is unknown"),
    ((-1, 1, 1, 1), "true_positives"),
    (
        (judge(99, 1, 1, 99), judge(7, 3, 3, 7)),
        lambda *errors: corrected([[1, 0]] * 9, [[1, 1]] * 9, *errors, error_correlation=0.9),
        r"error_correlation is 0.9, but .* only .* to 0.154",
    ),
)


def test_correlated_errors_are_corrected_if_given():
    """A judge with errors on the same facts in both answers makes labels agree too often."""
    rng = np.random.default_rng(8)
    short = rng.random((4000, 5)) < 0.6
    long = np.where(rng.random((4000, 5)) < 0.7, short, rng.random((4000, 5)) < 0.5)
    truth = float((short == long).mean())
    errs = rng.random((4000, 5)) < 0.1
    error = judge(9000, 1000, 1000, 9000)

    weighted, unweighted = (
        corrected(short ^ errs, long ^ errs, error, error, 200, error_correlation=correlation)
        for correlation in (1.0, 0.0)
    )

    assert weighted["alignment"] == pytest.approx(truth, abs=0.01)
    assert unweighted["alignment"] > truth + 0.1
    # Rogan and Gladen: (observed + specificity - 1) / (sensitivity + specificity - 1).
    assert weighted["short_accuracy"] == pytest.approx(((short ^ errs).mean() - 0.1) / 0.8)


def test_corrected_accuracy_agrees_with_a_published_example():
    # Greiner and Gardner 2000, Preventive Veterinary Medicine 45, and epiR::epi.prev: apparent
    # prevalence 0.04, sensitivity 0.8, specificity 1 -> true prevalence 0.05.
    short, long = np.arange(100).reshape(20, 5) < 4, np.ones((20, 5))
    row = corrected(short, long, judge(80, 20, 0, 100), PERFECT)
    assert row["short_accuracy"] == pytest.approx(0.05)
