import math

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics.linking.linking import LINKING_KINDS, LINKING_RATES, linking_by
from tests.metrics.harness import golden_rows


def rates_of(cells):
    """Each rate of four counts by name."""
    return {name: float(rate(cells)) for name, rate in LINKING_RATES.items()}


def test_table_7_follows_from_its_positive_and_negative_accuracy(data_files):
    """Raw accuracy has two negatives per positive, balanced accuracy equal class weights."""
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
def test_rates_are_bounded_and_balanced_accuracy_is_independent_of_prevalence(cells, weight, yes):
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


def test_group_without_negatives_is_nan_with_a_warning():
    kinds, verdicts = [*LINKING_KINDS] * 30, [None, *[True, False, True, True] * 22, False]
    frame = pd.DataFrame({"item": 1, "kind": kinds, "correct": verdicts})

    with (
        pytest.warns(UnscoredWarning, match="1 of 30 linking examples lack a label"),
        pytest.warns(UndefinedMetricWarning, match="balanced_accuracy"),
    ):
        row = linking_by(frame[frame["kind"] == "positive"], cluster=None).iloc[0]

    assert math.isnan(row["balanced_accuracy"])
    assert row["raw_accuracy"] == row["positive_accuracy"]
    assert row["n_clusters"] == row["n"] == 29
    with pytest.raises(ValueError, match=r"kind\[0\] must be one of positive, .*'negative'"):
        linking_by(frame.assign(kind="negative"))
