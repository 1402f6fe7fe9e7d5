import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics.linking.linking import LINKING_KINDS, LINKING_RATES, linking_by
from surface_consistency.metrics.uncertainty.intervals import Intervals
from tests.metrics.harness import golden_rows


def rates_of(cells):
    """Each rate of four counts by name."""
    return {name: float(rate(cells)) for name, rate in LINKING_RATES.items()}


def test_table_7_follows_from_its_positive_and_negative_accuracy(data_files):
    """Raw accuracy weighs two negatives a positive, balanced accuracy one class as the other."""
    published = golden_rows(data_files, "redirectqa_table7_entity_linking.csv")

    for row in published:
        positive = round(1000 * float(row["positive_accuracy"]))
        negative = round(2000 * float(row["negative_accuracy"]))
        rates = rates_of((positive, 1000 - positive, negative, 2000 - negative))
        for name in ("raw_accuracy", "balanced_accuracy"):
            assert rates[name] == pytest.approx(float(row[name]), abs=0.001), row
    assert len(published) == 6


@given(cells=st.tuples(*[st.integers(1, 60)] * 4), weight=st.integers(2, 5), yes=st.booleans())
@settings(deadline=None)
def test_rates_are_bounded_and_balanced_accuracy_is_free_of_prevalence(cells, weight, yes):
    rates = rates_of(cells)
    more_negatives = rates_of((*cells[:2], *(weight * cell for cell in cells[2:])))

    assert all(0 <= rate <= 1 for rate in rates.values())
    assert more_negatives["balanced_accuracy"] == pytest.approx(rates["balanced_accuracy"])
    ends = sorted((rates["positive_accuracy"], rates["negative_accuracy"]))
    assert ends[0] - 1e-12 <= rates["raw_accuracy"] <= ends[1] + 1e-12
    # A model that always says yes, or always no, has a balanced accuracy of one half.
    positive, _, negative, _ = cells
    constant = rates_of((positive, 0, 0, negative) if yes else (0, positive, negative, 0))
    assert (constant["balanced_accuracy"], constant["yes_rate"]) == (0.5, float(yes))


def examples(seed=0, n_pairs=300):
    """Three examples a pair; pairs of a fact share how well the model knows the entity."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(rng.integers(0, n_pairs // 2, n_pairs), 3)
    known = rng.random(n_pairs)[fact]
    kind = np.tile(LINKING_KINDS, n_pairs)
    chance = np.where(kind == "positive", 0.2 + 0.5 * known, 0.5 + 0.4 * known)
    verdicts = rng.random(3 * n_pairs) < chance
    return pd.DataFrame({"fact_id": fact, "kind": kind, "is_correct": verdicts})


def test_intervals_agree_with_a_naive_cluster_loop():
    frame = examples(1, n_pairs=80)
    parts = dict(iter(frame.groupby("fact_id")))
    rng = np.random.default_rng(2)
    values = []
    for _ in range(600):
        drawn = pd.concat([parts[fact] for fact in rng.choice(list(parts), len(parts))])
        halves = drawn["is_correct"].groupby(drawn["kind"] == "positive").mean()
        values.append(halves.mean())

    (row,) = linking_by(frame, intervals=Intervals(method="percentile")).to_dict("records")

    bounds = row["balanced_accuracy_low"], row["balanced_accuracy_high"]
    assert bounds == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.2 * np.std(values))


def test_group_without_negatives_is_nan_with_a_warning():
    frame = examples(5).astype({"is_correct": object})
    frame.loc[0, "is_correct"] = None

    with (
        pytest.warns(UnscoredWarning, match="1 of 300 linking examples lack a verdict"),
        pytest.warns(UndefinedMetricWarning, match="balanced_accuracy"),
    ):
        row = linking_by(frame[frame["kind"] == "positive"], cluster=None).iloc[0]

    assert math.isnan(row["balanced_accuracy"])
    assert row["raw_accuracy"] == row["positive_accuracy"]
    assert row["n_clusters"] == row["n"] == 299
    with pytest.raises(ValueError, match=r"kind\[0\] must be one of positive, .*'negative'"):
        linking_by(frame.assign(kind="negative"))
