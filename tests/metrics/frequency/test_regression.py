import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from surface_consistency.errors import (
    ColumnNotFoundError,
    MissingDependencyError,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics.frequency.regression import (
    correctness_regression,
    frequency_regression,
)

pytest.importorskip("statsmodels")


def questions(seed=0, n_facts=1500, entity_slope=0.3, surface_slope=0.1, spread=0.0):
    """Two questions a fact, whose log odds of being right rise by the slopes a doubling."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(np.arange(n_facts), 2)
    entity = np.ceil(2 ** rng.uniform(3, 14, n_facts))[fact]
    surface = np.ceil(entity * rng.random(2 * n_facts))
    log_odds = entity_slope * np.log2(entity) + surface_slope * np.log2(surface) - 3
    log_odds += spread * rng.normal(size=n_facts)[fact]
    return pd.DataFrame(
        {
            "fact_id": fact,
            "is_correct": rng.random(2 * n_facts) < 1 / (1 + np.exp(-log_odds)),
            "entity_frequency": entity,
            "surface_frequency": surface,
            "is_canonical": np.tile([True, False], n_facts),
        }
    )


def newton_and_sandwich(frame, columns):
    """Maximum likelihood by Newton's method, and the cluster sandwich, written out."""
    design = np.column_stack([np.ones(len(frame)), *columns])
    y = frame["is_correct"].to_numpy(dtype=float)
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        information = (design * (p * (1 - p))[:, None]).T @ design
        beta += np.linalg.solve(information, design.T @ (y - p))
    scores = pd.DataFrame(design * (y - p)[:, None]).groupby(frame["fact_id"].to_numpy()).sum()
    g, (n, k) = len(scores), design.shape
    bread = np.linalg.inv(information)
    meat = scores.to_numpy().T @ scores.to_numpy() * g / (g - 1) * (n - 1) / (n - k)
    return beta, np.sqrt(np.diag(bread @ meat @ bread))


def test_regression_agrees_with_newton_and_a_written_out_sandwich():
    frame = questions(1, spread=1.0)
    logs = [np.log2(frame["entity_frequency"]), np.log2(frame["surface_frequency"])]
    beta, errors = newton_and_sandwich(frame, [*logs, frame["is_canonical"]])

    rows = frequency_regression(frame, covariates=["is_canonical"])

    assert rows["term"].tolist() == ["intercept", "entity", "surface", "is_canonical"]
    assert rows["estimate"].tolist() == pytest.approx(beta, rel=1e-6)
    assert rows["standard_error"].tolist() == pytest.approx(errors, rel=1e-6)
    assert rows["z"].tolist() == pytest.approx(beta / errors, rel=1e-5)
    assert rows["odds_ratio"].tolist() == pytest.approx(np.exp(beta), rel=1e-6)
    half = stats.t.ppf(0.975, 1499) * errors
    assert rows["estimate_low"].tolist() == pytest.approx(beta - half, rel=1e-5)
    assert rows["estimate_high"].tolist() == pytest.approx(beta + half, rel=1e-5)
    assert rows["p_value"].tolist() == pytest.approx(
        (2 * stats.t.sf(np.abs(beta / errors), 1499)).tolist(), rel=1e-4
    )
    assert (rows["n"] == 3000).all()
    assert (rows["n_clusters"] == 1500).all()


def test_intervals_cover_where_those_of_rows_do_not():
    """Of 100 samples with two questions a fact, the cluster intervals hold the slope about 95."""
    covered = by_row = 0
    for seed in range(100):
        frame = questions(seed, n_facts=300, surface_slope=0.0, spread=0.0)
        # The second question repeats the first: half the rows tell nothing new.
        frame["is_correct"] = frame["is_correct"].to_numpy()[frame["fact_id"] * 2]
        frame["surface_frequency"] = frame["surface_frequency"].to_numpy()[frame["fact_id"] * 2]
        for cluster in ("fact_id", None):
            row = frequency_regression(frame, cluster=cluster).set_index("term").loc["entity"]
            holds = row["estimate_low"] <= 0.3 <= row["estimate_high"]
            covered += holds and cluster is not None
            by_row += holds and cluster is None

    assert covered >= 90
    assert by_row <= 90
    assert by_row < covered


def test_frequencies_may_be_scaled():
    """Counting in a tenth of the corpus moves the intercept alone."""
    frame = questions(2)
    tenth = frame.assign(
        entity_frequency=frame["entity_frequency"] / 10,
        surface_frequency=frame["surface_frequency"] / 10,
    )

    whole, part = (frequency_regression(rows).set_index("term") for rows in (frame, tenth))

    slopes = ["entity", "surface"]
    assert part.loc[slopes, "estimate"].tolist() == pytest.approx(
        whole.loc[slopes, "estimate"].tolist(), rel=1e-5
    )
    assert part.loc["intercept", "estimate"] > whole.loc["intercept", "estimate"]


def test_accuracy_of_two_templates_weighs_as_their_verdicts():
    """A fractional logit on means has the slopes of the logit on the verdicts behind them."""
    frame = questions(3)
    rng = np.random.default_rng(0)
    second = frame.assign(is_correct=rng.random(len(frame)) < 0.5)
    both = pd.concat([frame, second])
    means = frame.assign(is_correct=(frame["is_correct"] * 1.0 + second["is_correct"]) / 2)

    verdicts, accuracies = (frequency_regression(rows) for rows in (both, means))

    for column in ("estimate", "standard_error"):
        assert accuracies[column].tolist() == pytest.approx(verdicts[column].tolist(), rel=1e-2)


def test_groups_are_fitted_apart_and_dropped_rows_counted():
    frame = questions(4).assign(model=["a"] * 1500 + ["b"] * 1500)
    frame.loc[frame.index[:5], "surface_frequency"] = 0
    frame["is_correct"] = frame["is_correct"].astype(object)
    frame.loc[frame.index[-3:], "is_correct"] = None

    with pytest.warns(UnscoredWarning, match="3 of 3000 rows lack a value of the model"):
        rows = frequency_regression(frame, by="model").drop_duplicates("model").set_index("model")

    assert rows["n"].tolist() == [1495, 1497]
    assert rows["n_zero"].tolist() == [5, 0]
    assert rows["n_missing"].tolist() == [0, 3]
    alone = frequency_regression(frame[frame["model"] == "a"])
    assert alone["estimate"][0] == pytest.approx(rows["estimate"]["a"])
    with pytest.raises(ValueError, match=r"is_correct\[2997\] is missing"):
        frequency_regression(frame, missing="raise")


def separated(frame):
    return frame.assign(is_correct=frame["entity_frequency"] > 500)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(is_correct=True), "all answers are equal"),
        (separated, "the terms separate right from wrong"),
        (lambda f: f.assign(is_correct=f["is_canonical"]), "the terms separate right from wrong"),
        (lambda f: f.assign(surface_frequency=f["entity_frequency"]), "linear function of the"),
        (lambda f: f.assign(entity_frequency=8), "a term is constant"),
        (lambda f: f.assign(fact_id=f["fact_id"] % 4), "4 clusters for 4 terms"),
        (lambda f: f.assign(surface_frequency=0), "0 clusters for 4 terms"),
        (
            lambda f: f.assign(
                fact_id=f["fact_id"].clip(0, 100) // 10 * 10 + 1e3 * (f["fact_id"] > 60)
            ),
            "its rows are worth 3.64 clusters, under 4",
        ),
    ],
)
def test_undefined_regression_is_nan_with_a_warning(change, message):
    frame = change(questions(5, n_facts=200))

    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        rows = frequency_regression(frame, covariates=["is_canonical"])

    columns = [
        "estimate",
        "standard_error",
        "estimate_low",
        "estimate_high",
        "z",
        "p_value",
        "odds_ratio",
    ]
    assert rows[columns].isna().all(axis=None)
    assert caught[0].filename == __file__


def test_partly_separated_answers_are_nan_with_a_warning():
    """All canonical questions right and some of the others: the odds ratio has no maximum."""
    frame = questions(6, n_facts=200)
    frame.loc[frame["is_canonical"], "is_correct"] = True

    with pytest.warns(UndefinedMetricWarning, match="the terms separate right from wrong"):
        rows = frequency_regression(frame, covariates=["is_canonical"])

    assert rows["estimate"].isna().all()


def test_missing_statsmodels_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.genmod.generalized_linear_model", None)

    with pytest.raises(MissingDependencyError, match=r"needs statsmodels.*\[analysis\]"):
        frequency_regression(questions(7, n_facts=50))


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({}, {"correct": "right"}, ColumnNotFoundError, "column 'right' is not in the frame"),
        ({"is_correct": 2}, {}, ValueError, r"is_correct\[0\] must lie in \[0, 1\]"),
        ({"surface_frequency": -1}, {}, ValueError, r"surface_frequency\[0\] must lie in \[0, inf"),
        ({"fact_id": None}, {}, ValueError, "column 'fact_id' has no cluster id"),
        ({"kind": "x"}, {"covariates": ["kind"]}, TypeError, r"kind\[0\] is 'x', which is no"),
        ({}, {"covariates": ["entity"]}, ValueError, "a term of the model is named twice"),
        ({"n": 1}, {"by": "n"}, ValueError, "by column 'n' has the name of a column"),
        ({}, {"confidence_level": 95}, ValueError, "confidence_level must lie strictly"),
        ({}, {"missing": "zero"}, ValueError, "missing must be 'raise' or 'drop'"),
    ],
)
def test_frequency_regression_rejects_bad_arguments(change, options, error, message):
    with pytest.raises(error, match=message):
        frequency_regression(questions(8, n_facts=10).assign(**change), **options)


def test_correctness_regression_is_that_of_frequencies_on_their_logarithms():
    """One engine: the same numbers as the regression on log2 frequencies."""
    frame = questions(n_facts=300)
    scores = np.log2(frame[["entity_frequency", "surface_frequency"]].to_numpy(float))

    found = correctness_regression(
        scores, frame["is_correct"], names=["entity", "surface"], clusters=frame["fact_id"]
    )

    expected = frequency_regression(frame)[list(found.columns)]
    pd.testing.assert_frame_equal(found, expected)


def test_correctness_regression_says_why_it_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="a term is constant"):
        rows = correctness_regression(np.zeros(20), np.arange(20) % 2 == 0)
    assert rows["p_value"].isna().all()


def test_correctness_regression_rejects_what_is_missing():
    with pytest.raises(ValueError, match=r"scores\[1, 0\] is not finite"):
        correctness_regression([0.0, np.nan, 1.0], [True, False, True])
    with pytest.raises(ValueError, match="names must name 1 scores; got 2"):
        correctness_regression([0.0, 1.0], [True, False], names=["a", "b"])


def test_a_giant_cluster_costs_degrees_of_freedom():
    """A fact with a quarter of the rows: 1 / (1/4^2 + 45 / 60^2) - 1 degrees, not 45."""
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    score = rng.normal(size=60)
    right = rng.random(60) < 1 / (1 + np.exp(-score))
    clusters = np.r_[np.zeros(15), np.arange(1, 46)]

    row = correctness_regression(score, right, clusters=clusters).iloc[1]

    df = 1 / (1 / 16 + 45 / 3600) - 1
    half = stats.t.ppf(0.975, df) * row["standard_error"]
    assert row["estimate_high"] - row["estimate"] == pytest.approx(half)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["z"]), df))
    assert row["n_clusters"] == 46
