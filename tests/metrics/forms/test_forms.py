import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import forms_by, paired_table

METRICS = [
    *("consistency", "all_right", "all_wrong", "all_agree", "accuracy"),
    *("form_share", "intraclass_correlation"),
]
fact_lists = st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=6), min_size=2, max_size=10)


def measured(correct, *, clusters=None, **options):
    """The one row of verdicts: one sequence per fact, of any length."""
    sizes = [len(forms) for forms in correct]
    frame = pd.DataFrame(
        {
            "fact_id": np.repeat(np.arange(len(sizes)), sizes),
            "form": np.concatenate([np.arange(size) for size in sizes]),
            "correct": pd.Series([v for forms in correct for v in forms], dtype=object),
        }
    )
    if clusters is not None:
        options |= {"cluster": "cluster"}
        frame = frame.assign(cluster=np.repeat(np.asarray(clusters), sizes))
    return forms_by(frame, **options).iloc[0]


def quiet(correct, **options):
    """The row, whether or not something is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return measured(correct, **options)


@settings(deadline=None)
@given(correct=fact_lists)
def test_consistency_agrees_with_all_pairs_of_forms(correct):
    """Unbiased: two distinct forms; plug-in: two draws, which may be the same form."""
    distinct = [np.mean([a == b for a, b in itertools.combinations(forms, 2)]) for forms in correct]
    drawn = [np.mean([a == b for a in forms for b in forms]) for forms in correct]

    unbiased, plug_in = quiet(correct), quiet(correct, estimator="plug-in")

    assert unbiased.consistency == pytest.approx(np.mean(distinct), abs=1e-12)
    assert plug_in.consistency == pytest.approx(np.mean(drawn), abs=1e-12)
    assert plug_in.consistency >= unbiased.consistency - 1e-12


@settings(deadline=None)
@given(correct=fact_lists)
@example(correct=[[0, 0], [0, 0], [0, 0], [0, 0], [1, 1]])  # 1 - 0.8 is not 0.2.
def test_shares_of_facts_agree_with_a_naive_loop(correct):
    result = quiet(correct)

    n = len(correct)
    assert result.all_right == sum(all(forms) for forms in correct) / n
    assert result.all_wrong == sum(not any(forms) for forms in correct) / n
    assert result.all_agree == pytest.approx(result.all_right + result.all_wrong, abs=1e-12)
    assert result.accuracy == pytest.approx(np.mean([np.mean(f) for f in correct]), abs=1e-12)
    assert result.all_right <= result.accuracy <= 1 - result.all_wrong + 1e-12
    assert (result.n_facts, result.n_forms) == (n, sum(map(len, correct)))


@settings(deadline=None)
@given(correct=fact_lists)
def test_form_share_is_a_part_of_the_total_variance(correct):
    """Law of total variance, facts weighing alike; and P_C = 1 - 2 Var PVAP of Srikanth et al."""
    shares = np.asarray([np.mean(forms) for forms in correct])
    total = shares.mean() * (1 - shares.mean())
    result = quiet(correct, estimator="plug-in")
    if total == 0:
        assert math.isnan(result.form_share)
        return

    assert result.form_share * total + shares.var() == pytest.approx(total, abs=1e-12)
    assert result.consistency == pytest.approx(1 - 2 * total * result.form_share, abs=1e-12)
    assert 0 <= result.form_share <= 1 + 1e-12
    unbiased = quiet(correct)
    assert unbiased.consistency == pytest.approx(1 - 2 * total * unbiased.form_share, abs=1e-12)
    assert -1e-12 <= unbiased.form_share <= 2 + 1e-12


@settings(deadline=None)
@given(correct=fact_lists)
def test_intraclass_correlation_agrees_with_analysis_of_variance(correct):
    """Mean squares between and within facts, with the mean size of unbalanced designs."""
    values = np.concatenate([np.asarray(forms, dtype=float) for forms in correct])
    sizes = np.asarray([len(forms) for forms in correct])
    grand = values.mean()
    between = sum(len(f) * (np.mean(f) - grand) ** 2 for f in correct) / (len(correct) - 1)
    within = sum(((np.asarray(f) - np.mean(f)) ** 2).sum() for f in correct)
    within /= sizes.sum() - len(correct)
    size = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(correct) - 1)
    result = quiet(correct)
    if values.min() == values.max():
        assert math.isnan(result.intraclass_correlation)
        return

    expected = (between - within) / (between + (size - 1) * within)
    assert result.intraclass_correlation == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_intraclass_correlation_agrees_with_pingouin():
    pingouin = pytest.importorskip("pingouin")
    rng = np.random.default_rng(0)
    verdicts = (rng.random((60, 4)) < rng.random(60)[:, None]).astype(int)
    long = pd.DataFrame(
        {
            "fact": np.repeat(np.arange(60), 4),
            "form": np.tile(np.arange(4), 60),
            "correct": verdicts.ravel(),
        }
    )

    table = pingouin.intraclass_corr(long, targets="fact", raters="form", ratings="correct")

    expected = table["ICC"].iloc[0]
    assert measured(verdicts).intraclass_correlation == pytest.approx(expected, abs=1e-9)


def test_form_share_is_one_less_the_intraclass_correlation_in_large_samples():
    rng = np.random.default_rng(3)
    verdicts = rng.random((40_000, 3)) < rng.beta(0.6, 0.9, 40_000)[:, None]

    result = measured(verdicts)

    # The intraclass correlation of a beta distribution is 1 / (a + b + 1).
    assert result.intraclass_correlation == pytest.approx(1 / 2.5, abs=0.01)
    assert result.form_share == pytest.approx(1 - 1 / 2.5, abs=0.01)


def test_unbiased_consistency_does_not_depend_on_the_number_of_forms():
    """Few forms push the plug-in estimate up, but not the unbiased one."""
    rng = np.random.default_rng(4)
    ability = rng.beta(1.0, 1.0, 60_000)
    truth = 1 - 2 * (1 / 2 - 1 / 3)

    for n_forms in (2, 3, 8):
        verdicts = rng.random((60_000, n_forms)) < ability[:, None]
        unbiased = measured(verdicts).consistency
        plug_in = measured(verdicts, estimator="plug-in").consistency
        assert unbiased == pytest.approx(truth, abs=0.006)
        assert plug_in == pytest.approx(truth + (1 - truth) / n_forms, abs=0.006)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
def test_two_forms_are_the_paired_table(pairs):
    result = quiet(pairs)
    table = paired_table(*zip(*pairs, strict=True))

    assert result.consistency == pytest.approx(table.consistency, abs=1e-12)
    assert result.all_agree == pytest.approx(table.consistency, abs=1e-12)
    assert result.all_right == table.both / table.n


@settings(deadline=None)
@given(correct=fact_lists, data=st.data())
def test_metrics_are_free_of_order(correct, data):
    """Facts and forms may come in any order; calling right wrong swaps only the accuracies."""
    order = data.draw(st.permutations(range(len(correct))))
    shuffled = [list(reversed(correct[index])) for index in order]
    inverted = [[1 - value for value in forms] for forms in correct]

    result, other, inverse = quiet(correct), quiet(shuffled), quiet(inverted)

    for name in METRICS:
        assert getattr(other, name) == pytest.approx(getattr(result, name), abs=1e-9, nan_ok=True)
    for name in ("consistency", "all_agree", "form_share", "intraclass_correlation"):
        assert getattr(inverse, name) == pytest.approx(getattr(result, name), abs=1e-9, nan_ok=True)
    assert inverse.all_right == result.all_wrong


def test_intervals_hold_the_estimates():
    rng = np.random.default_rng(7)
    row = measured(rng.random((400, 5)) < rng.random(400)[:, None])

    for name in METRICS:
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
    assert row["n_clusters"] == 400


def test_intervals_of_clusters_are_wider():
    """Facts of one subject that go together are worth less than as many independent ones."""
    rng = np.random.default_rng(8)
    verdicts = np.repeat(rng.random((50, 5)) < rng.random(50)[:, None], 8, axis=0)

    by_fact = measured(verdicts)
    by_subject = measured(verdicts, clusters=np.repeat(np.arange(50), 8))

    widths = [row["consistency_high"] - row["consistency_low"] for row in (by_fact, by_subject)]
    assert by_subject["n_clusters"] == 50
    assert widths[1] / widths[0] == pytest.approx(8**0.5, rel=0.15)


def test_missing_forms_and_single_forms_are_left_out_and_counted():
    correct = [[1, None, 0], [1, None, None], [0, 0, 0], [1]] * 2

    with pytest.warns(UnscoredWarning, match="6 of 20 forms lack a verdict"):
        row = measured(correct)

    assert row[["n_facts", "n_forms", "n_single", "n_missing"]].tolist() == [4, 10, 4, 6]
    assert row["consistency"] == 0.5


def test_verdicts_that_do_not_vary_are_undefined():
    with pytest.warns(UndefinedMetricWarning, match="form_share"):
        row = measured([[1, 1], [1, 1, 1]])

    assert row["consistency"] == row["all_right"] == 1
    assert row[["form_share", "form_share_low", "intraclass_correlation"]].isna().all()


def test_one_cluster_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="all intervals"):
        row = measured([[1, 0], [1, 1]], clusters=["Q1", "Q1"])

    assert math.isnan(row["consistency_low"])
    assert row["consistency"] == 0.5


@pytest.mark.parametrize(
    ("correct", "options", "message"),
    [
        ([[1, 2]], {}, r"correct\[1\] is 2, which is no verdict"),
        ([[1, 0], [1, None]], {"missing": "raise"}, r"correct\[3\] has no verdict"),
        ([[1, 0]], {"clusters": [None]}, "no cluster id in row 0"),
        ([[1, 0]], {"estimator": "naive"}, "'unbiased' or 'plug-in'; got 'naive'"),
        ([[1, 0]], {"missing": "ignore"}, "missing must be"),
    ],
)
def test_forms_by_rejects_bad_input(correct, options, message):
    with pytest.raises(ValueError, match=message):
        measured(correct, **options)


def test_a_single_fact_has_no_intraclass_correlation():
    """Without a second fact nothing varies between facts; all else is defined."""
    with pytest.warns(UndefinedMetricWarning, match="intraclass_correlation"):
        row = measured([[1, 0, 1]])

    assert math.isnan(row["intraclass_correlation"])
    assert row["consistency"] == pytest.approx(1 / 3)
    assert row["form_share"] == pytest.approx(1.5)
