"""Agreement of a judge with human labels."""

import math

import numpy as np
import pytest

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import Intervals, judge_agreement

FEW = Intervals(resamples=50)


def test_judge_agreement_agrees_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    human = rng.random(500) < 0.6
    judge = np.where(rng.random(500) < 0.1, ~human, human)

    result = judge_agreement(human, judge, intervals=FEW)

    assert result["accuracy"] == pytest.approx(metrics.accuracy_score(human, judge))
    assert result["kappa"] == pytest.approx(metrics.cohen_kappa_score(human, judge))
    assert result["sensitivity"] == pytest.approx(metrics.recall_score(human, judge))
    assert result["specificity"] == pytest.approx(metrics.recall_score(~human, ~judge))
    tn, fp, fn, tp = metrics.confusion_matrix(human, judge).ravel()
    names = ("true_positives", "false_negatives", "false_positives", "true_negatives")
    assert [result[name] for name in names] == [tp, fn, fp, tn]
    assert result["kappa_low"] < result["kappa"] < result["kappa_high"]


def test_accuracy_interval_of_the_judge_of_slaq_agrees_with_r():
    # SLAQ, appendix A.2: 92 % of 250 short facts, so 230 of 250.
    human = [1] * 125 + [0] * 125
    judge = [1] * 115 + [0] * 10 + [0] * 115 + [1] * 10
    result = judge_agreement(human, judge)

    assert result["accuracy"] == 0.92
    # R: binom::binom.wilson(230, 250)
    assert result["accuracy_low"] == pytest.approx(0.8795, abs=5e-4)
    assert result["accuracy_high"] == pytest.approx(0.9476, abs=5e-4)


def test_judge_agreement_drops_missing_labels_with_a_count_or_rejects_them():
    human, judge = [1, 0, 1, 0, None, 1], [1, 0, None, 0, 1, 1]
    with pytest.warns(UnscoredWarning, match="2 of 6"):
        result = judge_agreement(human, judge, missing="drop", intervals=FEW)

    assert (result["accuracy"], result["n_missing"], result["n"]) == (1.0, 2, 4)
    with pytest.raises(ValueError, match="has no label"):
        judge_agreement([1, 0], [1, None])
    with (
        pytest.warns(UnscoredWarning, match="2 of 2"),
        pytest.raises(ValueError, match="both a human label and one"),
    ):
        judge_agreement([1, None], [None, 0], missing="drop")


def test_labels_of_one_kind_make_a_rate_undefined():
    with (
        pytest.warns(UndefinedMetricWarning, match="specificity is undefined"),
        pytest.warns(UndefinedMetricWarning, match="kappa is undefined"),
    ):
        result = judge_agreement([1, 1, 1], [1, 1, 1], intervals=FEW)

    assert math.isnan(result["specificity"])
    assert math.isnan(result["kappa"])
    assert result["sensitivity"] == 1.0
