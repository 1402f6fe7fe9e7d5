import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import forms_by, paired_table
from tests.metrics.harness import long

fact_lists = st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=6), min_size=2, max_size=10)
IGNORED = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")


def measured(correct, *, clusters=None, **options):
    """The one row for labels: one sequence per fact, of any length."""
    sizes = [len(forms) for forms in correct]
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(len(sizes)), sizes),
            "form": np.concatenate([np.arange(size) for size in sizes]),
            "correct": pd.Series([v for forms in correct for v in forms], dtype=object),
        }
    )
    if clusters is not None:
        options |= {"cluster": "cluster"}
        frame = frame.assign(cluster=np.repeat(np.asarray(clusters), sizes))
    return forms_by(frame, **options).iloc[0]


@IGNORED
@settings(deadline=None)
@given(correct=fact_lists)
@example(correct=[[0, 0], [0, 0], [0, 0], [0, 0], [1, 1]])  # 1 - 0.8 is not 0.2.
def test_metrics_agree_with_naive_loops(correct):
    """Pairs of distinct forms, the law of total variance and the analysis of variance."""
    pairs = [np.mean([a == b for a, b in itertools.combinations(forms, 2)]) for forms in correct]
    shares, n = np.asarray([np.mean(forms) for forms in correct]), len(correct)
    sizes = np.asarray([len(forms) for forms in correct])
    grand = np.concatenate(correct).mean()
    between = (sizes * (shares - grand) ** 2).sum() / (n - 1)
    within = sum(((np.asarray(f) - np.mean(f)) ** 2).sum() for f in correct) / (sizes.sum() - n)
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (n - 1)
    total = shares.mean() * (1 - shares.mean())

    result = measured(correct)

    assert result.consistency == pytest.approx(np.mean(pairs), abs=1e-12)
    assert result.all_correct == sum(all(forms) for forms in correct) / n
    assert result.all_incorrect == sum(not any(forms) for forms in correct) / n
    assert result.all_agree == pytest.approx(result.all_correct + result.all_incorrect, abs=1e-12)
    assert result.accuracy == pytest.approx(np.mean(shares), abs=1e-12)
    assert result.all_correct <= result.accuracy <= 1 - result.all_incorrect + 1e-12
    assert (result.n_items, result.n_forms) == (n, sizes.max())
    if total == 0:
        assert math.isnan(result.within_item_share)
        assert math.isnan(result.intraclass_correlation)
        return
    assert result.consistency == pytest.approx(1 - 2 * total * result.within_item_share, abs=1e-12)
    assert -1e-12 <= result.within_item_share <= 2 + 1e-12
    expected = (between - within) / (between + (size - 1) * within)
    assert result.intraclass_correlation == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_intraclass_correlation_agrees_with_pingouin():
    pingouin = pytest.importorskip("pingouin")
    rng = np.random.default_rng(0)
    verdicts = (rng.random((60, 4)) < rng.random(60)[:, None]).astype(int)
    frame = long(verdicts)
    table = pingouin.intraclass_corr(frame, targets="item", raters="form", ratings="correct")

    expected = table["ICC"].iloc[0]
    assert measured(verdicts).intraclass_correlation == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
@IGNORED
def test_metrics_of_two_forms_equal_the_paired_table(pairs):
    """Negated labels swap the proportions of facts that are all correct and all incorrect."""
    result, inverse = measured(pairs), measured([[1 - a, 1 - b] for a, b in pairs])

    table = paired_table(*zip(*pairs, strict=True))
    assert result.consistency == pytest.approx(table.consistency, abs=1e-12)
    assert result.all_agree == pytest.approx(table.consistency, abs=1e-12)
    assert result.all_correct == inverse.all_incorrect == table.both / table.n
    for name in ("consistency", "all_agree", "within_item_share", "intraclass_correlation"):
        assert inverse[name] == pytest.approx(result[name], abs=1e-9, nan_ok=True)


def test_missing_forms_and_single_forms_are_excluded_and_counted():
    correct = [[1, None, 0], [1, None, None], [0, 0, 0], [1]] * 2

    with pytest.warns(UnscoredWarning, match="6 of 20 forms lack a label"):
        row = measured(correct)

    assert row[["n_items", "n_forms", "n_single", "n_missing"]].tolist() == [4, 3, 4, 6]
    assert row["consistency"] == 0.5


@pytest.mark.parametrize(
    ("correct", "clusters", "undefined", "consistency"),
    [
        ([[1, 1], [1, 1, 1]], None, ["within_item_share", "intraclass_correlation"], 1.0),
        ([[1, 0], [1, 1]], ["Q1", "Q1"], ["consistency_low", "accuracy_high"], 0.5),
        # Without a second fact nothing varies between facts.
        ([[1, 0, 1]], None, ["intraclass_correlation"], 1 / 3),
    ],
)
def test_undefined_metrics_are_nan_with_a_warning(correct, clusters, undefined, consistency):
    with pytest.warns(UndefinedMetricWarning, match="undefined"):
        row = measured(correct, clusters=clusters)

    assert row[undefined].isna().all()
    assert row["consistency"] == pytest.approx(consistency)
