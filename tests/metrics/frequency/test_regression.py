import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics.frequency.regression import correctness_regression
from tests.refusals import refusals

pytest.importorskip("statsmodels")
N = 200


def answers(seed=0, n_facts=1500, slopes=(0.3, 0.1), spread=0.0):
    """Scores of two answers per fact, labels with log odds linear in the scores, and the facts."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(np.arange(n_facts), 2)
    first = rng.uniform(3, 14, n_facts)[fact]
    scores = np.column_stack([first, first + np.log2(rng.random(2 * n_facts)), fact % 2])
    log_odds = scores[:, :2] @ slopes - 3 + spread * rng.normal(size=n_facts)[fact]
    return scores, rng.random(2 * n_facts) < 1 / (1 + np.exp(-log_odds)), fact


def newton_and_sandwich(scores, correct, fact):
    """Maximum likelihood by Newton's method, and the cluster sandwich, written out."""
    design = np.column_stack([np.ones(len(scores)), scores])
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        information = (design * (p * (1 - p))[:, None]).T @ design
        beta += np.linalg.solve(information, design.T @ (correct - p))
    sums = pd.DataFrame(design * (correct - p)[:, None]).groupby(fact).sum().to_numpy()
    g, (n, k) = len(sums), design.shape
    bread = np.linalg.inv(information)
    meat = sums.T @ sums * g / (g - 1) * (n - 1) / (n - k)
    return beta, np.sqrt(np.diag(bread @ meat @ bread))


def test_regression_agrees_with_newton_and_a_written_out_sandwich():
    scores, correct, fact = answers(1, spread=1.0)
    beta, errors = newton_and_sandwich(scores, correct, fact)

    rows = correctness_regression(scores, correct, names=["a", "b", "c"], clusters=fact)

    assert rows["term"].tolist() == ["intercept", "a", "b", "c"]
    half = stats.t.ppf(0.975, 1499) * errors
    expected = {
        "estimate": beta,
        "standard_error": errors,
        "z": beta / errors,
        "odds_ratio": np.exp(beta),
        "estimate_low": beta - half,
        "estimate_high": beta + half,
        "p_value": 2 * stats.t.sf(np.abs(beta / errors), 1499),
    }
    for name, values in expected.items():
        assert rows[name].tolist() == pytest.approx(values.tolist(), rel=1e-4), name
    assert (rows["n"] == 3000).all()
    assert (rows["n_clusters"] == 1500).all()


SCORES, CORRECT, FACT = answers(5, n_facts=N)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": np.ones(2 * N)}, "all answers are equal"),
        ({"correct": SCORES[:, 0] > 9}, "the terms separate correct from incorrect"),
        ({"correct": CORRECT | (FACT % 2 == 0)}, "the terms separate correct from incorrect"),
        ({"scores": SCORES[:, [0, 0, 2]]}, "linear function of the"),
        ({"scores": np.zeros(2 * N)}, "a term is constant"),
        ({"clusters": FACT % 4}, "4 clusters for 4 terms"),
        (
            {"clusters": FACT.clip(0, 100) // 10 * 10 + 1e3 * (FACT > 60)},
            "effective number of clusters 3.64, minimum 4",
        ),
    ],
)
def test_undefined_regression_is_nan_with_a_warning(change, message):
    arguments = {"scores": SCORES, "correct": CORRECT, "clusters": FACT} | change

    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        rows = correctness_regression(**arguments)

    columns = ["estimate", "standard_error", "estimate_low", "estimate_high", "z", "p_value"]
    assert rows[[*columns, "odds_ratio"]].isna().all(axis=None)
    assert caught[0].filename == __file__


def test_missing_statsmodels_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.genmod.generalized_linear_model", None)

    with pytest.raises(MissingDependencyError, match=r"needs statsmodels.*\[analysis\]"):
        correctness_regression(SCORES, CORRECT)


test_correctness_regression_rejects_bad_arguments = refusals(
    lambda scores, correct, options: correctness_regression(scores, correct, **options),
    ([0.0, np.nan, 1.0], [True, False, True], {}, r"scores\[1, 0\] is not finite"),
    ([0.0, 1.0], [True, False], {"names": ["a", "b"]}, "names must have 1 entries; got 2"),
    ([0.0, 1.0], [True, False], {"confidence": 95}, "confidence must be strictly"),
    ([0.0, 1.0], [True, 2], {}, r"correct\[1\] is 2, which is not a correctness label"),
    ([0.0, 1.0], [True, False], {"clusters": ["a"]}, "got 1 labels for 2"),
)


def test_a_large_cluster_reduces_degrees_of_freedom():
    """A fact with a quarter of the rows: 1 / (1/4^2 + 45 / 60^2) - 1 degrees, not 45."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=60)
    right = rng.random(60) < 1 / (1 + np.exp(-score))
    clusters = np.r_[np.zeros(15), np.arange(1, 46)]

    row = correctness_regression(score, right, clusters=clusters).iloc[1]

    df = 1 / (1 / 16 + 45 / 3600) - 1
    half = stats.t.ppf(0.975, df) * row["standard_error"]
    assert row["estimate_high"] - row["estimate"] == pytest.approx(half)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["z"]), df))
    assert (row["term"], row["n_clusters"]) == ("score_1", 46)
