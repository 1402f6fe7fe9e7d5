import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binomtest, chi2, f, ttest_1samp, ttest_rel

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import Intervals, compare_models, paired_by
from surface_consistency.metrics.comparison.comparisons import rank_intervals
from surface_consistency.metrics.comparison.equality import equality_test
from tests.refusals import refusals

SWE_BENCH = {
    0.868: (19, 17), 0.901: (33, 31), 0.243: (22, 14), 0.253: (29, 20),
    0.156: (49, 35), 0.134: (33, 21), 0.115: (47, 32), 0.026: (31, 15),
}  # fmt: skip
"""Exact p of the second to ninth entry of SWE-bench Verified against the first (swe-bench/
experiments, summer 2026), and discordant counts of 500 that give it."""


def long(scores, **columns):
    """Arrange scores by model as one row per model and item."""
    return pd.concat(
        pd.DataFrame({"model": name, "item": range(len(values)), "score": values, **columns})
        for name, values in scores.items()
    )


def simulate(seed, n_items=60, models="abc", size=1):
    rng = np.random.default_rng(seed)
    hard = rng.random(n_items // size).repeat(size)
    scores = {m: (rng.random(n_items) < 0.3 + 0.5 * hard).astype(float) for m in models}
    return long(scores, passage=np.arange(n_items) // size)


def test_difference_of_correctness_labels_equals_that_of_the_paired_table():
    frame = simulate(1, models="ab", size=3)
    row = compare_models(frame, cluster="passage").differences.iloc[0]
    wide = frame.pivot(index=["item", "passage"], columns="model", values="score").reset_index()
    table = paired_by(wide, first="a", second="b", cluster="passage").iloc[0]

    differences = {f"difference{end}": f"accuracy_difference{end}" for end in ("", "_low", "_high")}
    cells = {"both": "both", "reference_only": "first_only", "model_only": "second_only"}
    others = {"p_value": "p_value", "neither": "neither", "n_clusters": "n_clusters"}
    for own, name in (differences | cells | others).items():
        assert row[own] == pytest.approx(table[name], abs=1e-14), own


def test_scores_of_independent_items_have_nearly_the_paired_t_test():
    """The variance term for few events is close to 0 if all scores differ."""
    rng = np.random.default_rng(2)
    scores = {"a": rng.normal(60, 9, 40), "b": rng.normal(63, 9, 40)}
    compared = compare_models(long(scores))
    row, expected = compared.differences.iloc[0], ttest_rel(scores["b"], scores["a"])

    assert row["p_value"] == pytest.approx(expected.pvalue, rel=2e-3)
    low, high = expected.confidence_interval()
    bounds = (row["difference_low"], row["difference_high"])
    assert bounds == pytest.approx((low, high), abs=0.03 * (high - low))
    assert row["difference_low"] <= low
    assert row["difference_high"] >= high
    mean = compared.models.set_index("model").loc["a"]
    bounds = ttest_1samp(scores["a"], 0.0).confidence_interval()
    assert (mean["mean_low"], mean["mean_high"]) == pytest.approx(bounds, rel=1e-10)


@pytest.mark.parametrize("scale", [None, (0.0, 100.0)])
def test_scores_in_percent_have_the_same_inference_as_fractions(scale):
    rng = np.random.default_rng(6)
    topic = np.arange(300) // 20
    scores = {m: np.clip(rng.normal(0.6, 0.2, 300), 0, 1) for m in "abc"}
    percent = {m: 100 * x for m, x in scores.items()}

    one = compare_models(long(scores, topic=topic), cluster="topic")
    hundred = compare_models(long(percent, topic=topic), cluster="topic", scale=scale)

    for name in ("difference", "difference_low", "difference_high"):
        assert hundred.differences[name].tolist() == pytest.approx(100 * one.differences[name])
    # Fractions have the ends 0 and 1; scores in percent have ends if their scale is given.
    for name in ("mean", "mean_low", "mean_high") if scale else ("mean",):
        assert hundred.models[name].tolist() == pytest.approx(100 * one.models[name])
    p_values = hundred.differences["p_value"].tolist()
    assert p_values == pytest.approx(one.differences["p_value"])


@pytest.mark.parametrize("upper", [1.0, 100.0])
@pytest.mark.parametrize("is_low", [False, True])
def test_mean_of_graded_scores_with_one_value_at_a_bound_has_an_interval(upper, is_low):
    """The cluster t has no width if a single score differs from the bound by little."""
    scores = np.full(60, upper)
    scores[0] = 0.5 * upper
    scores = {"a": upper - scores if is_low else scores, "b": np.full(60, 0.0 if is_low else upper)}
    models = compare_models(long(scores), scale=(0.0, upper)).models.set_index("model")

    mean = models.loc["b"]
    trials = beta.ppf(0.025, 60, 1)
    assert mean["not_inferred"] == ""
    far, near = ("mean_high", "mean_low") if is_low else ("mean_low", "mean_high")
    assert mean[near] == (0.0 if is_low else upper)
    assert abs(mean[far] - mean[near]) / upper == pytest.approx(1 - trials, abs=0.005)
    assert models.loc["a", "mean_low"] < models.loc["a", "mean"] < models.loc["a", "mean_high"]


def test_identical_models_have_the_same_interval_with_several_tasks_as_with_one():
    """The variance term for few events depends on all items, however they are divided."""
    widths = []
    for n_tasks in (1, 2, 5, 10):
        frame = long({"a": np.ones(100), "b": np.ones(100)})
        frame["task"] = frame["item"] % n_tasks
        row = compare_models(frame, task="task").differences.iloc[0]
        widths.append(row["difference_high"] - row["difference_low"])
    assert widths == pytest.approx([widths[0]] * 4)


def test_models_that_differ_by_a_constant_have_no_test_of_equality():
    scores = np.repeat([[1.0, 0.0, 0.0]], 20, axis=0) / 3.0
    with pytest.warns(UndefinedMetricWarning, match="by the same amount on all"):
        assert np.isnan(equality_test(scores)["p_value"])


@pytest.mark.parametrize(("unit", "scale"), [(1.0, None), (100.0, (0.0, 100.0)), (100.0, None)])
def test_a_constant_difference_has_a_reason_and_no_p_value(unit, scale):
    first = np.linspace(0.2, 0.7, 24)
    frame = long({"a": unit * first, "b": unit * (first + 0.1)})
    with pytest.warns(UndefinedMetricWarning, match="equal in all clusters"):
        row = compare_models(frame, scale=scale).differences.iloc[0]
    assert row["difference"] == pytest.approx(0.1 * unit)
    assert math.isnan(row["p_value"])
    assert "equal in all clusters" in row["not_inferred"]


def test_p_of_graded_scores_is_below_0_05_if_the_interval_excludes_0():
    rng, is_shown = np.random.default_rng(8), []
    for n_items in (4, 6, 10, 20, 40) * 30:
        differs = rng.random(n_items) < rng.random()
        gains = differs * rng.normal(rng.normal(0, 0.5), 0.5, n_items).clip(-1, 1)
        if differs.any():
            row = compare_models(long({"a": np.zeros(n_items), "b": gains})).differences.iloc[0]
            if row["not_inferred"] == "":
                is_out = row["difference_low"] > 0.0 or row["difference_high"] < 0.0
                assert (row["p_value"] < 0.05) == is_out
                is_shown.append(is_out)
    assert {*is_shown} == {True, False}


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equivalence_of_graded_scores_starts_at_the_farther_end_of_the_interval(sign):
    """Also if it exceeds the mean difference of all items and there is no term for few events."""
    scores = {"a": np.zeros(5), "b": sign * np.array([0.5, 0.4, 0.6, 0.5, 0.3])}
    row = compare_models(long(scores), scale=(-1.0, 1.0)).differences.iloc[0]
    bounds = ttest_rel(scores["b"], scores["a"]).confidence_interval()
    farther = max(abs(row["difference_low"]), abs(row["difference_high"]))

    assert farther == pytest.approx(max(map(abs, bounds)), rel=1e-10)
    for off, is_shown in ((1e-6, True), (-1e-6, False)):
        again = compare_models(long(scores), scale=(-1.0, 1.0), margin=farther + off)
        assert (again.differences["p_equivalent"].iloc[0] < 0.025) == is_shown


def test_graded_scores_that_rarely_differ_have_intervals_with_nominal_coverage():
    """Student's t covers .90 and .89 here, because the few observed differences are too similar."""
    for n_items, share in ((50, 0.05), (200, 0.03)):
        rng, covered = np.random.default_rng(n_items), []
        for _ in range(40):
            is_other = rng.random((10, n_items)) < share
            drawn = is_other * rng.uniform(0.3, 1.0, (10, n_items))
            scores = {f"b{n}": row for n, row in enumerate(drawn) if row.any()}
            rows = compare_models(long({"a": np.zeros(n_items)} | scores), baseline="a").differences
            bounds = rows[["difference_low", "difference_high"]].to_numpy()
            covered += [low <= 0.65 * share <= high for low, high in bounds]
        assert np.mean(covered) > 0.92


def test_clusters_of_equal_size_have_the_t_of_their_means():
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 20).repeat(5)
    scores = {m: base + rng.normal(0, 2, 20).repeat(5) + rng.normal(0, 1, 100) for m in "ab"}
    frame = long(scores, passage=np.arange(100) // 5)
    means = frame.groupby(["model", "passage"])["score"].mean()
    row = compare_models(frame, cluster="passage").differences.iloc[0]
    assert row["p_value"] == pytest.approx(ttest_rel(means["b"], means["a"]).pvalue, rel=1e-3)


def test_tasks_have_equal_weights_and_items_do_in_the_pooled_difference():
    rng = np.random.default_rng(4)
    parts = [
        long({"a": rng.normal(0, 1, n), "b": rng.normal(d, 1, n)}, task=t)
        for t, n, d in (("x", 200, 1.0), ("y", 40, -0.8))
    ]
    frame = pd.concat(parts)
    row = compare_models(frame, task="task").differences.iloc[0]

    wide = frame.pivot(index=["task", "item"], columns="model", values="score")
    gain = wide["b"] - wide["a"]
    by_task = gain.groupby("task")
    assert row["difference"] == pytest.approx(by_task.mean().mean())
    assert row["pooled_difference"] == pytest.approx(gain.mean())
    error = np.sqrt((by_task.var() / by_task.size()).sum()) / 2
    width = row["difference_high"] - row["difference_low"]
    assert width / (2 * 1.97 * error) == pytest.approx(1.0, rel=0.04)
    groups = compare_models(frame, task="task").groups.set_index("group")
    assert groups["unlike_overall"].to_dict() == {"x": "significant", "y": "opposite"}


@pytest.mark.parametrize(("sizes", "worth"), [([40] + [2] * 30, 100**2 / 1720), ([3] * 12, 12)])
def test_effective_number_of_clusters_agrees_with_kish(sizes, worth):
    scores = np.random.default_rng(1).random((2, sum(sizes))) < 0.5
    frame = long(dict(zip("ab", scores, strict=True)))
    frame["group"] = [*np.repeat(np.arange(len(sizes)), sizes)] * 2

    assert compare_models(frame, cluster="group").n_effective == pytest.approx(worth)


def test_items_without_a_score_of_all_models_are_excluded_and_counted():
    shared = long({"a": [1, 0, 1, 1, 0, 1], "b": [0, 0, 1, 1, 0, 0]}, task="t")
    alone = long({"a": [1, 1, 0]}, task="u")

    result = compare_models(pd.concat([shared, alone]), task="task")

    expected = compare_models(shared, task="task")
    pd.testing.assert_frame_equal(result.differences, expected.differences)
    assert result.groups.empty
    assert (result.n_items, result.n_items_of_any) == (6, 9)
    frame = simulate(9)
    frame.iloc[3, frame.columns.get_loc("score")] = np.nan
    result = compare_models(frame.drop(index=7))
    assert (result.n_items, result.n_items_of_any) == (58, 59)
    assert result.models.set_index("model")["n_missing"].to_dict() == {"a": 1, "b": 0, "c": 0}


def test_published_exact_p_values_are_not_significant_after_holm():
    top = np.r_[np.ones(396), np.zeros(104)]
    scores = {"first": top}
    for p, (lost, gained) in SWE_BENCH.items():
        scores[str(p)] = np.r_[np.zeros(lost), np.ones(396 - lost + gained), np.zeros(104 - gained)]

    rows = compare_models(long(scores), baseline="first", test="exact").differences

    assert rows["p_value"].round(3).tolist() == list(SWE_BENCH)
    expected = [binomtest(gained, lost + gained).pvalue for lost, gained in SWE_BENCH.values()]
    assert rows["p_value"].to_list() == pytest.approx(expected)
    assert rows["p_value_holm"].min() == pytest.approx(8 * expected[-1])
    assert set(rows["conclusion"]) == {"no significant difference"}


def test_models_are_ranked_by_tests_of_all_pairs():
    rng = np.random.default_rng(5)
    base = rng.normal(0, 1, 300)
    gains = {"a": 0.0, "b": 0.02, "c": -2.0, "d": -4.0}
    frame = long({m: base + gain + rng.normal(0, 0.5, 300) for m, gain in gains.items()})

    ranks = compare_models(frame).models.set_index("model")

    assert ranks.loc[["a", "b"], ["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert ranks.loc[["c", "d"], ["rank_low", "rank_high"]].to_numpy().tolist() == [[3, 3], [4, 4]]
    assert ranks["may_be_best"].to_dict() == {"a": True, "b": True, "c": False, "d": False}


def test_conclusions_follow_margin_direction_and_clusters():
    rng = np.random.default_rng(6)
    base = rng.normal(0, 1, 400)
    frame = long({"a": base, "b": base + rng.normal(0, 0.1, 400), "c": rng.normal(0, 1, 400)})
    rows = compare_models(frame, baseline="a", margin=0.05).differences.set_index("model")

    assert rows["conclusion"].to_dict() == {"b": "equivalent", "c": "no significant difference"}
    gain = frame[frame["model"] == "b"]["score"].to_numpy() - base
    tails = [ttest_rel(gain, -m * np.ones(400), alternative=s).pvalue
             for m, s in ((0.05, "greater"), (-0.05, "less"))]  # fmt: skip
    assert rows.loc["b", "p_equivalent"] == pytest.approx(max(tails), rel=1e-8)
    assert rows.loc["b", "p_not_worse"] == pytest.approx(tails[0], rel=1e-8)
    # Worse by more than the margin is a separate test.
    frame = long({"a": base, "b": base - 0.3 + rng.normal(0, 0.1, 400)})
    near, far = (
        compare_models(frame, baseline="a", margin=margin).differences.iloc[0]
        for margin in (0.295, 0.2)
    )
    assert near["conclusion"] == far["conclusion"] == "worse"
    assert near["p_worse"] > 0.05 > far["p_worse"]
    # Lower is better for losses; three clusters are too few for inference.
    losses = compare_models(frame, higher_is_better=False)
    assert losses.differences["conclusion"].tolist() == ["better"]
    assert losses.models["model"].tolist() == ["b", "a"]
    with pytest.warns(UndefinedMetricWarning, match="no difference is defined"):
        few = compare_models(simulate(13, 30, "ab", 10), cluster="passage").differences
    assert few["conclusion"].tolist() == ["not inferred"]
    assert few["not_inferred"].tolist() == ["effective number of clusters 3, minimum 4"]


def test_intervals_and_ranks_miss_the_truth_in_at_most_five_percent():
    """200 simulated data sets of 40 passages of 4 questions and three models of equal accuracy."""
    rng = np.random.default_rng(10)
    misses = wrong_ranks = 0
    for _ in range(200):
        passage = rng.normal(0, 1, (40, 3)).repeat(4, axis=0)
        right = rng.random((160, 3)) < 1 / (1 + np.exp(-passage))
        frame = long(dict(zip("abc", right.T.astype(float), strict=True)))
        frame["passage"] = frame["item"] // 4
        result = compare_models(frame, cluster="passage")
        row = result.differences.iloc[0]
        misses += not row["difference_low"] <= 0 <= row["difference_high"]
        wrong_ranks += not result.models["may_be_best"].all()

    assert misses <= 18
    assert wrong_ranks <= 18


PASSAGES = {"passage": lambda f: (f["model"] == "a") * 7}
ITEMS = {"item": lambda f: f["item"] + 1000 * (f["model"] == "a")}


test_invalid_scores_and_options_are_rejected = refusals(
    lambda columns, options: compare_models(simulate(11).assign(**columns), **options),
    ({"item": 0}, {}, "177 rows repeat a model and item.*average repeats"),
    ({"model": None}, {}, "column 'model' is empty in row 0"),
    ({}, {"baseline": "z"}, "baseline='z' not found"),
    ({}, {"margin": 0.0}, "margin must be above 0"),
    ({}, {"margin": 1.0}, "margin 1 includes the whole scale, 0 to 1"),
    ({"score": lambda f: f["score"] * 7}, {"scale": (0, 5)}, "outside the scale 0 to 5"),
    ({}, {"scale": (1, 1)}, "scale must be the minimum and the maximum"),
    ({"score": np.inf}, {}, "values must be finite"),
    ({"score": 0.5}, {"test": "exact"}, "needs correctness labels of one task"),
    ({}, {"intervals": Intervals(method="percentile")}, "only method='auto'"),
    (ITEMS, {}, "no item has a score for every model.*a 60, b 60"),
    (PASSAGES, {"cluster": "passage"}, "is in one cluster for 'a' and in another for 'b'"),
)


def test_equality_of_models_agrees_with_hotellings_test_of_contrasts():
    rng = np.random.default_rng(14)
    totals = rng.normal(0, 1, (30, 4)) + np.array([0, 0, 0.4, 0.8])
    contrasts = totals[:, 1:] - totals[:, :1]
    mean, spread = contrasts.mean(axis=0), np.cov(contrasts.T)
    square = 30 * mean @ np.linalg.solve(spread, mean)
    statistic = 27 / (29 * 3) * square

    result = equality_test(totals)
    copies = equality_test(totals[:, [0, 1, 1, 0]])

    assert copies["df"] == (1, 29)
    assert copies["p_value"] == pytest.approx(ttest_rel(totals[:, 0], totals[:, 1]).pvalue)
    assert equality_test(np.ones((9, 3)))["p_value"] == 1.0
    assert result["statistic"] == pytest.approx(statistic)
    assert result["p_value"] == pytest.approx(f.sf(statistic, 3, 27))


def test_equality_of_exchangeable_models_equals_cochrans_q():
    contingency_tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    right = np.random.default_rng(17).random((60, 4)) < 0.5
    expected = contingency_tables.cochrans_q(right)

    result = equality_test(right, is_exchangeable=True)

    assert result["statistic"] == pytest.approx(expected.statistic)
    assert result["p_value"] == pytest.approx(expected.pvalue)


def test_equality_of_models_weights_tasks_equally_like_differences():
    """Models trade 0.4 on a task of 40 items for 0.4 on one of 400: equal by task, not by item."""
    rng = np.random.default_rng(18)
    rows = [
        (name, task, item, float(rng.random() < 0.5 + sign * shift))
        for task, n, sign in (("small", 40, 1), ("large", 400, -1))
        for item in range(n)
        for name, shift in (("a", 0.2), ("b", -0.2), ("c", 0.0))
    ]
    frame = pd.DataFrame(rows, columns=["model", "task", "item", "score"])

    by_task = compare_models(frame, task="task").equality
    pooled = compare_models(frame.assign(item=frame["task"] + frame["item"].astype(str))).equality

    assert pooled["p_value"] < 1e-6
    assert by_task["p_value"] > 0.05


def test_constant_difference_on_a_scale_without_limits_is_not_inferred():
    scores = pd.DataFrame({"item": range(9), "score": np.arange(9.0)})
    frame = pd.concat([scores.assign(model="a"), scores.assign(model="b", score=scores.score + 5)])

    with pytest.warns(UndefinedMetricWarning, match="equal in all clusters"):
        row = compare_models(frame).differences.iloc[0]

    assert row["difference"] == 5.0
    assert np.isnan([row["p_value"], row["difference_low"]]).all()
    assert row["conclusion"] == "not inferred"


@pytest.mark.parametrize("column", ["model", "task"])
def test_missing_model_or_task_raises_an_error(column):
    frame = pd.DataFrame({"model": ["a", "b"] * 5, "task": "t", "item": [*"aabbccddee"]})
    frame = frame.assign(score=1).astype(object)
    frame.loc[3, column] = None
    with pytest.raises(ValueError, match=f"column '{column}' is empty in row 3"):
        compare_models(frame, task="task")
    with pytest.raises(TypeError, match=r"score\[0\] is 'good', which is not a number"):
        compare_models(frame.dropna().assign(score="good"))


def test_significant_pairs_bound_the_ranks():
    """Holm's correction counts every ordered pair."""
    p_above = np.full((4, 4), 0.5)
    p_above[0, 1:], p_above[1:, 0] = 1e-6, 1 - 1e-6
    assert [bounds.tolist() for bounds in rank_intervals(p_above)] == [[1, 2, 2, 2], [1, 4, 4, 4]]
    p_above = np.full((3, 3), 0.9)
    p_above[0, 1] = 0.05 / 6 + 1e-6
    assert rank_intervals(p_above)[1].tolist() == [3, 3, 3]
    p_above[0, 1] -= 2e-6
    assert rank_intervals(p_above)[1].tolist() == [2, 3, 3]
    p_above[:] = np.nan
    assert [bounds.tolist() for bounds in rank_intervals(p_above)] == [[1, 1, 1], [3, 3, 3]]
    with pytest.raises(ValueError, match="must be square, one row per model"):
        rank_intervals([[0.1, 0.2]])


def near_copies(rng, n_items, n_models):
    """Correctness labels of models that are nearly the same except for the first."""
    ability = rng.normal(size=(n_items, 1))
    copies = np.tile(ability + rng.normal(size=(n_items, 1)) > 0, (1, n_models))
    copies ^= rng.random(copies.shape) < 0.02
    copies[:, 0] = ability[:, 0] + rng.normal(size=n_items) > 0
    return copies.astype(float)


def test_degrees_of_freedom_of_q_agree_with_huynh_and_feldt():
    pingouin = pytest.importorskip("pingouin")
    verdicts = near_copies(np.random.default_rng(3), 150, 5)
    result = equality_test(verdicts, is_exchangeable=True)
    epsilon = pingouin.epsilon(pd.DataFrame(verdicts), correction="hf")

    assert result["df"][0] == pytest.approx(4 * epsilon, rel=1e-6)
    expected = chi2.sf(result["statistic"] * epsilon, 4 * epsilon)
    assert result["p_value"] == pytest.approx(expected, rel=1e-6)


def test_forms_that_are_near_copies_are_not_rejected_too_often():
    """With chi-square of one degree of freedom less than forms, 0.12 of true hypotheses are."""
    rng = np.random.default_rng(4)
    p_values = [
        equality_test(near_copies(rng, 200, 6), is_exchangeable=True)["p_value"] for _ in range(400)
    ]
    assert np.mean(np.array(p_values) < 0.05) < 0.075


def test_models_that_rarely_differ_are_tested_by_q_instead_of_f():
    """F of 8 models at rates of 0.99 rejects 0.1 of true hypotheses."""
    rng = np.random.default_rng(5)
    rejected = []
    for _ in range(300):
        verdicts = (rng.random((400, 8)) < 0.99).astype(float)
        result = equality_test(verdicts)
        differ = np.count_nonzero(verdicts.min(axis=1) != verdicts.max(axis=1))
        assert not (differ < 20 * 6 and result["df"][1] < np.inf)
        rejected.append(result["p_value"] < 0.05)
    assert np.mean(rejected) < 0.08


@pytest.mark.parametrize(
    ("totals", "sizes", "message"),
    [
        ([[1, 0, 0]] * 9, None, "by the same amount on all"),
        ([[1, 0, 0, 0], [0, 1, 1, 0]] * 2, None, "by the same amount on all"),
        (np.arange(90).reshape(30, 3) % 7, [900] + [1] * 29, "clusters 1.* minimum 4"),
    ],
)
def test_equality_without_spread_is_undefined(totals, sizes, message):
    with pytest.warns(UndefinedMetricWarning, match=message):
        result = equality_test(totals, sizes=sizes)

    assert np.isnan(result["p_value"])
    assert result["not_inferred"] != ""
    with pytest.raises(ValueError, match="totals must be finite, one row per cluster"):
        equality_test([[1.0], [2.0]])


def test_one_model_in_few_clusters_has_no_interval_and_a_warning():
    frame = long({"a": [1, 0, 1]})
    with pytest.warns(UndefinedMetricWarning, match="the mean has no interval .*minimum 4"):
        result = compare_models(frame)

    assert result.models["mean_low"].isna().all()
    assert result.differences.empty
