import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from pandas.testing import assert_frame_equal
from scipy import stats

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    adjust_p_values,
    contrast,
    contrasts_by,
    paired_table,
)
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from tests.refusals import refusals

cells = npst.arrays(
    np.int64, st.tuples(st.integers(3, 12), st.just(4)), elements=st.integers(0, 4)
).filter(lambda counts: (counts.sum(axis=1) > 0).sum() >= 3)


def simulate(rng, n_clusters, mean, correlation, extra):
    """Flips of clusters whose own rates spread around a mean: a beta-binomial of each."""
    spread = (1 - correlation) / correlation
    own = rng.beta(mean * spread, (1 - mean) * spread, n_clusters)
    return own, flips_of(rng, own, 1 + rng.poisson(extra, n_clusters))


def flips_of(rng, own, sizes):
    flips = rng.binomial(sizes, own)
    zeros = np.zeros_like(flips)
    return np.column_stack([sizes - flips, flips, zeros, zeros])


def naive(a, b, rate):
    """Difference and cluster jackknife error, one cluster omitted at a time."""

    def difference(kept):
        return float(rate(a[kept].sum(axis=0))) - float(rate(b[kept].sum(axis=0)))

    clusters = np.arange(len(a))
    left = np.array([difference(clusters != k) for k in clusters])
    total = ((left - left.mean()) ** 2).sum()
    return difference(clusters >= 0), math.sqrt((len(a) - 1) / len(a) * total)


def test_contrast_of_a_custom_statistic_agrees_with_a_naive_jackknife():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (15, 4)), rng.integers(0, 3, (15, 4))

    result = contrast(a, b, rate=kappa_of_counts, margin=0.1)

    difference, error = naive(a, b, kappa_of_counts)
    weights = sum((part.sum(axis=1) / part.sum()) ** 2 for part in (a, b))
    freedom = weights.sum() ** 2 / (weights**2).sum() - 1
    reach = stats.t.ppf(0.975, freedom) * error
    assert result["difference"] == pytest.approx(difference)
    assert result["difference_low"] == pytest.approx(difference - reach)
    assert result["difference_high"] == pytest.approx(difference + reach)
    assert result["p_value"] == pytest.approx(2 * stats.t.sf(abs(difference) / error, freedom))
    tails = [stats.t.sf((0.1 + sign * difference) / error, freedom) for sign in (1, -1)]
    assert result["p_equivalent"] == pytest.approx(max(tails))
    assert (result["n_a"], result["n_b"], result["n_clusters"]) == (a.sum(), b.sum(), 15)


@pytest.mark.parametrize("rate", ["flip_rate", "accuracy_difference", "first_accuracy"])
def test_contrast_of_many_clusters_agrees_with_a_naive_jackknife(rate):
    """With 2,000 clusters the t interval is the plain one."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, (2000, 4))
    b = np.minimum(a, rng.integers(0, 4, (2000, 4)))

    result = contrast(a, b, rate=rate)

    difference, error = naive(a, b, PAIRED_RATES[rate])
    assert result["difference"] == pytest.approx(difference)
    for end, sign in (("low", -1), ("high", 1)):
        assert result[f"difference_{end}"] == pytest.approx(
            difference + sign * 1.96 * error, abs=0.06 * error
        )


def test_contrast_of_disjoint_groups_of_single_pairs_agrees_with_newcombe():
    """Newcombe 1998, table II, method 10, with t of very many clusters for the normal quantile."""
    n = 4000
    rows = np.arange(n)[:, None]
    a = np.hstack([rows < 0, (rows < 56), (rows >= 56) & (rows < 70), rows < 0])
    b = np.hstack([rows < 0, (rows >= 70) & (rows < 118), (rows >= 118) & (rows < 150), rows < 0])

    result = contrast(a.astype(int), b.astype(int), rate="first_accuracy")

    # (56/70 - 48/80) is [0.0524, 0.3339]; t with 69 and 79 degrees of freedom is a little wider.
    bounds = (result["difference_low"], result["difference_high"])
    assert bounds == pytest.approx((0.0524, 0.3339), abs=0.014)


@pytest.mark.parametrize("rate", ["flip_rate", "first_accuracy", "kappa"])
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_p_values_agree_with_intervals(rate):
    """At the level 1 - p the interval ends at 0, and at 1 - 2 p of equivalence at the margin."""
    rng = np.random.default_rng(6)
    own, a = simulate(rng, 40, 0.3, 0.3, 4)
    a, b = a + rng.integers(0, 3, a.shape), flips_of(rng, own, np.full(40, 5))
    options = {"rate": kappa_of_counts if rate == "kappa" else rate}
    options["margin"] = margin = abs(contrast(a, b, **options)["difference"]) + 0.08

    found = contrast(a, b, **options)

    ends = [
        [abs(row[name]) for name in ("difference_low", "difference_high")]
        for p in (found["p_value"], 2 * found["p_equivalent"])
        for row in [contrast(a, b, confidence=1 - p, **options)]
    ]
    # A p of the order of 1e-16 leaves few digits of the level.
    assert min(ends[0]) == pytest.approx(0, abs=1e-5)
    assert max(ends[1]) == pytest.approx(margin, abs=1e-6)


def test_groups_without_a_flip_have_an_interval_with_a_width():
    """Ten clusters without a flip are not evidence that there are none."""
    nothing = np.tile([5, 0, 0, 0], (10, 1))

    result = contrast(nothing, nothing, margin=0.05)

    assert (result["difference"], result["p_value"]) == (0, 1)
    # Wilson's limit at 0 of 10, with Student's quantile, on either side.
    quantile = stats.t.ppf(0.975, 9)
    assert result["difference_high"] == pytest.approx(quantile**2 / (10 + quantile**2))
    assert result["difference_low"] == pytest.approx(-result["difference_high"])
    assert result["p_equivalent"] > 0.05
    assert math.isnan(contrast(nothing, nothing)["p_equivalent"])


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("kind", ["shared", "apart", "few"])
def test_contrast_keeps_its_level(kind):
    """Without a difference p is at most 0.05 in at most one of twenty data sets."""
    rejected, rng = 0, np.random.default_rng(20)
    for _ in range(250):
        own, a = simulate(rng, 20, 0.3, 0.3, 4)
        b = flips_of(rng, own, 1 + rng.poisson(2, 20))
        if kind == "apart":
            b, none = simulate(rng, 20, 0.3, 0.3, 2)[1], np.zeros_like(a)
            a, b = np.vstack([a, none]), np.vstack([none, b])
        elif kind == "few":
            a[5:] = 0
        rejected += contrast(a, b)["p_value"] <= 0.05

    # A binomial count of 250 trials at 0.05 exceeds 24 with probability 0.0006.
    assert rejected <= 24
    assert kind == "few" or rejected >= 3


def test_models_with_nearly_equal_flips_have_an_interval_that_covers():
    """A model and its copy with one change in 200 pairs: a difference is rare, not impossible."""
    rng, covered = np.random.default_rng(7), 0
    rows = pd.DataFrame({"pair": range(200), "item": np.arange(200) // 5})
    for _ in range(50):
        right = rng.random((2, 200)) < 0.7
        sides = {"a": right[1], "b": right[1] ^ (rng.random(200) < 0.005)}
        models = [
            rows.assign(model=name, first_correct=right[0], second_correct=second)
            for name, second in sides.items()
        ]
        options = {"between": "model", "pair": "pair", "rate": "second_accuracy"}
        row = contrasts_by(pd.concat(models), **options).iloc[0]
        covered += row["difference_low"] <= 0.005 * 0.4 <= row["difference_high"]

    # A binomial count of 50 trials at 0.95 is below 43 with probability 0.004.
    assert covered >= 43


@pytest.fixture
def frame():
    """Two models on 40 facts of three types; some pairs have two types."""
    rng, kinds = np.random.default_rng(4), [["alias"], ["error", "alias"], ["spelling"]]
    rows = [
        (model, f"{fact}/{place}", fact, types, rng.random() < 0.7, rng.random() < 0.5)
        for fact in range(40)
        for place, types in enumerate(kinds)
        for model in ("small", "large")
    ]
    columns = ["model", "pair", "item", "types", "first_correct", "second_correct"]
    return pd.DataFrame(rows, columns=columns)


def test_contrasts_by_agrees_with_contrast(frame):
    rows = contrasts_by(frame, between="types", within="model", rate=["flip_rate"], margin=0.2)

    assert list(zip(rows["model"], rows["a"], rows["b"], strict=True))[:3] == [
        ("large", "alias", "error"),
        ("large", "alias", "spelling"),
        ("large", "error", "spelling"),
    ]
    for row in rows.to_dict("records"):
        counts = []
        for label in (row["a"], row["b"]):
            covered = frame["types"].map(lambda types, label=label: label in types)
            facts = frame[covered & (frame["model"] == row["model"])].groupby("item")
            tables = [paired_table(x["first_correct"], x["second_correct"]) for _, x in facts]
            counts.append([table.counts for table in tables])
        expected = contrast(*counts, margin=0.2)
        for name in ("value_a", "difference", "p_value", "p_equivalent", "n_a", "n_clusters"):
            assert row[name] == pytest.approx(expected[name]), name


def test_models_are_compared_on_the_pairs_that_both_answered(frame):
    part = frame.drop(frame.index[(frame["model"] == "small") & (frame["item"] < 10)])
    missing = part.index[part["model"] == "large"][:4]
    part["first_correct"] = part["first_correct"].astype(object)
    part.loc[missing, "first_correct"] = None

    with pytest.warns(UnscoredWarning, match="4 of"):
        row = contrasts_by(part, between="model", pair="pair").iloc[0]

    assert (row["a"], row["b"]) == ("large", "small")
    assert row["n_a"] == row["n_b"] == 90
    assert row["n_clusters"] == 30
    assert not row["few_clusters"]


def test_comparisons_do_not_depend_on_other_models(frame):
    """Neither a third model nor the order of the rows changes a comparison of two others."""
    other = frame[frame["model"] == "small"].assign(model="other").iloc[:9]
    many = pd.concat([other, frame.iloc[::-1]], ignore_index=True)
    options = {"between": "model", "pair": "pair", "rate": list(PAIRED_RATES)}

    alone, beside = contrasts_by(frame, **options), contrasts_by(many, **options)

    kept = beside[(beside["a"] == "large") & (beside["b"] == "small")].reset_index(drop=True)
    assert_frame_equal(kept.drop(columns="p_value_holm"), alone.drop(columns="p_value_holm"))
    assert alone["n_a"].unique().tolist() == [120]
    assert set(beside["n_a"]) == {9, 120}


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@settings(deadline=None, max_examples=60)
@given(counts=cells, random=st.randoms(use_true_random=False))
def test_contrast_changes_sign_by_swapping_and_is_independent_of_order(counts, random):
    other = counts[::-1]
    order = list(range(len(counts)))
    random.shuffle(order)

    there, back = contrast(counts, other), contrast(other, counts)
    moved = contrast(counts[order], other[order])

    if not math.isnan(there["p_value"]):
        assert back["difference"] == pytest.approx(-there["difference"])
        assert back["p_value"] == pytest.approx(there["p_value"])
        assert moved["p_value"] == pytest.approx(there["p_value"])
        assert 0 < there["p_value"] <= 1
        assert -1 <= there["difference_low"] <= there["difference_high"] <= 1


def test_groups_that_cannot_be_compared_are_named(frame):
    few = contrasts_by(frame[frame["item"] < 3], between="types")
    assert few["not_inferred"].tolist() == ["effective number of clusters 3, minimum 4"] * 3
    assert few[["difference_low", "difference_high", "p_value"]].isna().all(axis=None)
    assert few["difference"].notna().all()
    with pytest.warns(UndefinedMetricWarning, match="effective number of clusters 1, minimum 4"):
        alone = contrast([[1, 2, 0, 1]], [[3, 1, 0, 0]])
    assert math.isnan(alone["p_value"])
    assert alone["difference"] == pytest.approx(0.25)
    # Ids that name other pairs in each model leave nothing to compare.
    frame["pair"] = frame["model"] + frame["pair"]
    with pytest.warns(UndefinedMetricWarning, match="1 couples of groups have no pair"):
        assert contrasts_by(frame, between="model", pair="pair").empty


def test_contrasts_with_a_reference_are_corrected_by_rate(frame):
    rows = contrasts_by(
        frame, between="types", reference="error", rate=["flip_rate", "consistency"]
    )

    couples = [("alias", "error"), ("spelling", "error")] * 2
    assert list(zip(rows["a"], rows["b"], strict=True)) == couples
    for _, part in rows.groupby("rate"):
        assert part["p_value_holm"].tolist() == adjust_p_values(part["p_value"]).tolist()


ONE = [[1] * 4]


test_contrast_rejects_bad_input = refusals(
    lambda a, b, options: contrast(a, b, **options),
    ([[1, 0, 0]], [[1, 0, 0]], {}, r"counts_a must have shape \(n_clusters, 4\)"),
    (ONE, ONE * 2, {}, "must have the same clusters in the same rows"),
    (ONE, [[-1] * 4], {}, r"counts_b must be counts of at least 0; row 0"),
    ([["a"] * 4], ONE, {}, TypeError, "counts_a must contain numbers"),
    (ONE, ONE, {"rate": "flips"}, "rate must be among consistency"),
    (ONE, ONE, {"margin": 0}, "margin must be above 0"),
    (ONE, ONE, {"confidence": 2}, "confidence must be"),
)


test_contrasts_by_rejects_bad_options = refusals(
    lambda frame, options: contrasts_by(frame, **{"between": "types"} | options),
    ({"between": "kind"}, ColumnNotFoundError, "'kind' not found; pass"),
    ({"reference": "x"}, "reference must be one of the groups"),
    ({"rate": "x"}, "rate must be among"),
    ({"margin": -1}, "margin must be above 0"),
    ({"pair": "pair"}, "occurs more than once in group"),
    (
        {"between": "model", "pair": "pair", "cluster": "model"},
        "120 pairs belong to different clusters in two groups",
    ),
    fixture="frame",
)
