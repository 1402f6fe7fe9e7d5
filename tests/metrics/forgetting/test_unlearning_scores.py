import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from surface_consistency.metrics.forgetting.unlearning_scores import (
    forget_quality,
    model_utility,
    privleak,
    truth_ratio,
    truth_ratio_score,
)
from tests.made_logs import MODELS, official_numbers, published


def noise_floor(data_files):
    """Truth ratios of one model taught TOFU and of seven retrained without 20 to 180 authors."""
    path = data_files / "unlearning" / "tofu_retrained_noise_floor.tsv"
    frame = pd.read_csv(path, sep="\t")
    return np.exp(frame[[name for name in frame if name.endswith("log_truth_ratio")]])


@pytest.mark.parametrize("model", MODELS)
def test_scores_of_forget10_agree_with_the_published_logs(data_files, model):
    sides = [official_numbers(data_files)[model, side] for side in ("full", "retain90")]

    result = forget_quality(*(side["truth_ratio"] for side in sides))

    expected = published(data_files)["forget_quality"][f"{model}/forget10"]
    assert result["p_value"] == pytest.approx(expected, rel=1e-9)
    for side in sides:
        wrong = side[[f"perturbed_loss_{k}" for k in range(5)]]
        ratios = truth_ratio(side["paraphrased_loss"], wrong)
        assert ratios == pytest.approx(side["truth_ratio"].to_numpy(), rel=2e-5)


@pytest.mark.parametrize(("split", "n"), [("forget01", 40), ("forget05", 200), ("forget10", 400)])
@pytest.mark.parametrize("model", MODELS)
def test_published_forget_qualities_are_points_of_the_grid(data_files, model, split, n):
    """p has few values: a distance is a whole number of n-ths."""
    expected = published(data_files)["forget_quality"][f"{model}/{split}"]
    first = np.arange(n, dtype=float)

    grid = [forget_quality(first, first + shift - 0.5)["p_value"] for shift in range(1, n // 2)]

    assert min(abs(p / expected - 1) for p in grid) < 1e-9


@pytest.mark.parametrize(
    ("n", "least", "lowest"),
    [(40, 0.325, 1.86e-23), (200, 0.14, 1.94e-119), (400, 0.0975, 1.06e-239)],
)
def test_floor_and_least_distance_of_forget_quality(n, least, lowest):
    """The two lowest p published for TOFU are 1.94e-119 and 1.06e-239."""
    result = forget_quality(np.arange(n), np.arange(n) + 10.0 * n)

    assert result["least_distance"] == least
    assert result["p_value"] == pytest.approx(result["lowest"], rel=1e-9)
    assert result["lowest"] == pytest.approx(lowest, rel=5e-3)
    assert result["lowest"] == 2 / math.comb(2 * n, n)
    assert (result["n_unlearned"], result["n_retrained"]) == (n, n)


def test_distances_are_multiples_of_their_step_whatever_rounding_leaves(monkeypatch):
    """scipy 1.18 leaves 0.09750000000000003 where 1.17 has 0.0975."""
    exact = scipy.stats.ks_2samp

    def blurred(a, b):
        tested = exact(a, b)
        statistic = math.nextafter(tested.statistic, 1.0)
        return SimpleNamespace(statistic=statistic, pvalue=tested.pvalue)

    monkeypatch.setattr(scipy.stats, "ks_2samp", blurred)
    result = forget_quality(np.arange(400), np.arange(400) + 39)

    assert (result["distance"], result["least_distance"]) == (0.0975, 0.0975)


def test_models_that_never_saw_the_authors_have_no_uniform_p(data_files):
    ratios = noise_floor(data_files)
    full = ratios.pop("locuslab_full.log_truth_ratio")

    pairs = itertools.combinations(ratios, 2)
    p_values = [forget_quality(ratios[a], ratios[b])["p_value"] for a, b in pairs]

    assert len(p_values) == 21
    assert min(p_values) == pytest.approx(0.585, abs=5e-4)
    assert max(p_values) == pytest.approx(0.9999, abs=5e-5)
    # locuslab/tofu prints .5160 for the full model, of geometric truth ratios.
    assert truth_ratio_score(full, is_forgotten=True) == pytest.approx(0.5160, abs=5e-5)
    scores = [truth_ratio_score(x, is_forgotten=True) for _, x in ratios.items()]
    assert 0.66 < min(scores) < max(scores) < 0.69


@given(st.lists(st.floats(0.01, 12.0), min_size=2, max_size=5), st.floats(0.01, 12.0))
def test_truth_ratios_agree_with_naive_means(wrong, right):
    geometric = truth_ratio([right], [wrong])[0]
    arithmetic = truth_ratio([right], [wrong], mean="arithmetic")[0]

    chances = np.exp(-np.array(wrong))
    assert arithmetic == pytest.approx(chances.mean() / (math.exp(-right) + 1e-10))
    assert arithmetic >= geometric * (1 - 1e-12)


def test_model_utility_is_that_of_the_published_log(data_files):
    log = json.loads((data_files / "unlearning" / "TOFU_EVAL.json").read_text("utf-8"))
    kinds = ("Q_A_Prob", "Q_A_ROUGE", "Truth_Ratio")
    names = [f"retain_{kind}" for kind in kinds]
    for prefix in ("ra", "wf"):
        names += [f"{prefix}_{kind}" for kind in ("Q_A_Prob_normalised", *kinds[1:])]

    utility = model_utility([log[name]["agg_value"] for name in names])

    assert utility == pytest.approx(log["model_utility"]["agg_value"], abs=1e-12)


def test_privleak_agrees_with_all_published_logs(data_files):
    of_log = published(data_files)["summary"]
    retrained = {"forget01": "retain99", "forget05": "retain95", "forget10": "retain90"}

    for name, log in of_log.items():
        reference = 0.5
        if "/full/" in name:
            model, _, split = name.split("/")
            reference = of_log[f"{model}/{retrained[split]}"]["mia_min_k"]
        elif "target" in name:
            reference = of_log[name.replace("target", "retrain")]["mia_min_k"]
        assert privleak(log["mia_min_k"], reference) == pytest.approx(log["privleak"], abs=1e-9)


def test_a_score_of_nothing_is_undefined():
    assert math.isnan(truth_ratio_score([], is_forgotten=True))
    assert math.isnan(model_utility([]))
    assert model_utility([0.0, 1.0]) == 0.0
    assert math.isnan(forget_quality([1.0], [2.0])["least_distance"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: truth_ratio([1.0, 2.0], [[1.0]]), r"shape \(n,\) and perturbed_losses \(n, k\)"),
        (lambda: truth_ratio([1.0], [[1.0]], mean="harmonic"), "mean must be"),
        (lambda: forget_quality([], [1.0]), "unlearned must hold finite truth ratios"),
        (lambda: forget_quality([1.0], [math.nan]), "retrained must hold finite truth ratios"),
        (lambda: model_utility([-0.1]), "scores must be 0 or more"),
        (lambda: privleak(0.5, 1.5), r"reference_auc must be in \[0, 1\]"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
