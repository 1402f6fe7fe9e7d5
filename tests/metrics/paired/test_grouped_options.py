import math

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    cluster_bootstrap,
    cluster_counts,
    clustered_mcnemar,
    kappa_of_counts,
    mcnemar,
    paired_by,
    paired_table,
)


@pytest.fixture(scope="module")
def frame():
    """Pairs of 300 facts in two templates; verdicts of a fact go together."""
    rng = np.random.default_rng(6)
    fact = rng.integers(0, 300, 1200)
    known = rng.random(300)[fact]
    return pd.DataFrame(
        {
            "fact_id": fact,
            "template": rng.integers(0, 2, 1200),
            "first_correct": rng.random(1200) < known,
            "second_correct": rng.random(1200) < 0.9 * known,
        }
    )


def test_rates_of_ones_own_stand_in_the_order_given(frame):
    rates = {"kappa": kappa_of_counts, "flip_rate": PAIRED_RATES["flip_rate"]}

    row = paired_by(frame, rates=rates, n_resamples=500).iloc[0]

    names = [column for name in rates for column in (name, f"{name}_low", f"{name}_high")]
    assert [column for column in row.index if column.startswith(tuple(rates))] == names
    table = paired_table(frame["first_correct"], frame["second_correct"])
    assert row["kappa"] == kappa_of_counts(table.counts)
    assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
    assert row["flip_rate"] == table.flip_rate


def test_a_rate_has_the_same_numbers_beside_others_or_alone(frame):
    """All rates of a group share resamples, so leaving some out changes nothing in the rest."""
    everything = paired_by(frame, by="template", n_resamples=500)
    one = paired_by(
        frame, by="template", rates={"consistency": PAIRED_RATES["consistency"]}, n_resamples=500
    )

    assert_frame_equal(
        one.drop(columns="n_undefined"), everything[one.columns].drop(columns="n_undefined")
    )


def test_bca_intervals_agree_with_cluster_bootstrap(frame):
    counts = cluster_counts(
        frame["first_correct"], frame["second_correct"], clusters=frame["fact_id"]
    )

    row = paired_by(frame, interval="bca").iloc[0]

    for name, rate in PAIRED_RATES.items():
        alone = cluster_bootstrap(counts, rate, method="bca", rng=3)
        tolerance = 0.16 * alone.standard_error
        assert row[f"{name}_low"] == pytest.approx(alone.interval.low, abs=tolerance)
        assert row[f"{name}_high"] == pytest.approx(alone.interval.high, abs=tolerance)


def test_undefined_bca_intervals_are_named():
    """Without the one fact that is right at first, what follows from a right start is 0 / 0."""
    frame = pd.DataFrame(
        {"fact_id": range(8), "first_correct": [1] + [0] * 7, "second_correct": [1, 0] * 4}
    )

    with pytest.warns(UndefinedMetricWarning, match="interval of consistency_given_first_correct"):
        row = paired_by(frame, interval="bca").iloc[0]

    assert row["consistency_given_first_correct"] == 1
    assert math.isnan(row["consistency_given_first_correct_low"])
    assert row["flip_rate_low"] < row["flip_rate"] < row["flip_rate_high"]


@pytest.mark.parametrize("test", ["obuchowski", "durkalski"])
def test_clustered_test_of_a_group_agrees_with_clustered_mcnemar(frame, test):
    rows = paired_by(frame, by="template", test=test, n_resamples=20)

    for _, row in rows.iterrows():
        part = frame[frame["template"] == row["template"]]
        counts = cluster_counts(
            part["first_correct"], part["second_correct"], clusters=part["fact_id"]
        )
        expected = clustered_mcnemar(counts, method=test)
        assert row["mcnemar_method"] == test
        assert row["mcnemar_statistic"] == pytest.approx(expected.statistic, rel=1e-12)
        assert row["mcnemar_p_value"] == pytest.approx(expected.p_value, rel=1e-12)


@pytest.mark.parametrize("test", ["exact", "corrected", "uncorrected", "mid-p"])
def test_form_of_the_test_is_passed_on(frame, test):
    row = paired_by(frame, test=test, n_resamples=20).iloc[0]

    table = paired_table(frame["first_correct"], frame["second_correct"])
    assert row["mcnemar_p_value"] == mcnemar(table, method=test).p_value
    assert row["mcnemar_method"] == test


def test_clustered_test_of_one_cluster_is_named():
    frame = pd.DataFrame({"fact_id": [1, 1], "first_correct": [1, 0], "second_correct": [0, 0]})

    with pytest.warns(UndefinedMetricWarning, match=r"obuchowski test \(1, such as in the frame\)"):
        row = paired_by(frame, test="obuchowski").iloc[0]

    assert math.isnan(row["mcnemar_p_value"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "sign"}, "test must be one of auto, exact.*got 'sign'"),
        ({"interval": "basic"}, "interval must be one of percentile, bca; got 'basic'"),
        ({"rates": {"n": kappa_of_counts}}, "makes a column of the result twice: 'n'"),
        (
            {"rates": {"k": kappa_of_counts, "k_low": kappa_of_counts}},
            "makes a column of the result twice: 'k_low'",
        ),
    ],
)
def test_paired_by_rejects_unknown_choices(frame, options, message):
    with pytest.raises(ValueError, match=message):
        paired_by(frame, **options)
