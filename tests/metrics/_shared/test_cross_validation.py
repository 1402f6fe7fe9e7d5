import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import MissingDependencyError, UndefinedMetricWarning
from surface_consistency.metrics._shared.cross_validation import (
    area_under_curve,
    defined_mean,
    group_folds,
    scaled_classifier,
)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_area_agrees_with_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    decision, truth = (np.asarray(values, dtype=int) for values in zip(*rows, strict=True))

    area = area_under_curve(truth, decision)

    if 0 < truth.sum() < truth.size:
        assert area == pytest.approx(metrics.roc_auc_score(truth, decision))
    else:
        assert math.isnan(area)


def test_folds_keep_groups_together():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(2)
    labels, owners = (rng.random(300) < 0.6).astype(int), rng.integers(0, 60, 300)

    folds = group_folds(labels, owners, 5, 0, feature="x")

    assert sorted(set(folds.tolist())) == [0, 1, 2, 3, 4]
    for owner in range(60):
        assert len(set(folds[owners == owner].tolist())) == 1


def test_mean_of_areas_leaves_undefined_ones_out_aloud():
    areas = np.array([0.5, math.nan, 0.75])

    with pytest.warns(UndefinedMetricWarning, match="1 of 3 folds hold one class only"):
        assert defined_mean(areas, stacklevel=1) == 0.625
    assert defined_mean(areas) == 0.625
    assert math.isnan(defined_mean(areas[1:2]))


def test_missing_library_is_named_with_what_needs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)

    with pytest.raises(MissingDependencyError, match="telling right from wrong needs scikit-learn"):
        scaled_classifier("svm", feature="telling right from wrong")
