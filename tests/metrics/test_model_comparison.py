import math

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    compare_models,
    kappa_of_counts,
    paired_by,
    paired_table,
)


def answers(n_facts=250, models=("small", "large", "tuned"), seed=0):
    """Models whose verdicts on a pair go together, being those on one fact."""
    rng = np.random.default_rng(seed)
    fact = rng.integers(0, n_facts, 3 * n_facts)
    known = rng.random(n_facts)[fact]
    luck = rng.random(fact.size)
    parts = []
    for number, model in enumerate(models):
        skill = 0.5 + 0.15 * number
        parts.append(
            pd.DataFrame(
                {
                    "model": model,
                    "pair_id": [f"p{index}" for index in range(fact.size)],
                    "fact_id": [f"Q{index}" for index in fact],
                    "first_correct": 0.7 * known + 0.3 * luck < skill,
                    "second_correct": 0.5 * known + 0.5 * rng.random(fact.size) < skill - 0.1,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def frame():
    return answers()


def test_values_agree_with_the_tables_of_the_models(frame):
    rows = compare_models(frame, rate=list(PAIRED_RATES), n_resamples=50)

    assert len(rows) == 3 * len(PAIRED_RATES)
    for _, row in rows.iterrows():
        values = []
        for name in (row["model_a"], row["model_b"]):
            part = frame[frame["model"] == name]
            table = paired_table(part["first_correct"], part["second_correct"])
            values.append(getattr(table, row["rate"]))
        assert [row["value_a"], row["value_b"]] == values
        assert row["difference"] == values[1] - values[0]
        assert (row["n"], row["n_missing"]) == (750, 0)


def test_intervals_agree_with_a_naive_cluster_loop(frame):
    """Each resample draws facts once and takes the rows of both models of them."""
    row = compare_models(frame, reference="small", rate="flip_rate").iloc[0]
    rng = np.random.default_rng(5)

    wide = frame.pivot(index="pair_id", columns="model", values=["first_correct", "second_correct"])
    flips = pd.DataFrame(
        {
            model: wide["first_correct"][model] != wide["second_correct"][model]
            for model in ("small", "large")
        }
    )
    fact_of = frame.drop_duplicates("pair_id").set_index("pair_id")["fact_id"]
    members = [part.to_numpy(dtype=float) for _, part in flips.groupby(fact_of)]
    values = []
    for _ in range(2000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        values.append(drawn[:, 1].mean() - drawn[:, 0].mean())

    low, high = np.quantile(values, [0.025, 0.975])
    assert (row["model_a"], row["model_b"]) == ("small", "large")
    assert row["difference_low"] == pytest.approx(low, abs=0.25 * np.std(values))
    assert row["difference_high"] == pytest.approx(high, abs=0.25 * np.std(values))


def test_shared_pairs_narrow_the_interval():
    """A model and its noisy copy differ by less than two separate intervals would allow."""
    rng = np.random.default_rng(3)
    one = answers(models=("one",), seed=8)
    other = one.assign(model="other")
    changed = rng.random(len(other)) < 0.03
    other["second_correct"] = other["second_correct"] ^ changed
    both = pd.concat([one, other], ignore_index=True)

    row = compare_models(both).iloc[0]
    separate = paired_by(both, by="model").iloc[0]

    width = row["difference_high"] - row["difference_low"]
    assert width < 0.6 * (separate["consistency_high"] - separate["consistency_low"])


def test_swapped_models_turn_the_sign(frame):
    two = frame[frame["model"] != "tuned"]
    swapped = pd.concat([two[two["model"] == "large"], two[two["model"] == "small"]])

    row = compare_models(two, rate="signed_alignment").iloc[0]
    other = compare_models(swapped, rate="signed_alignment").iloc[0]

    width = row["difference_high"] - row["difference_low"]
    assert other["difference"] == -row["difference"]
    assert other["difference_low"] == pytest.approx(-row["difference_high"], abs=0.05 * width)
    assert other["difference_high"] == pytest.approx(-row["difference_low"], abs=0.05 * width)


def test_comparison_is_free_of_the_order_of_rows(frame):
    shuffled = frame.sample(frac=1, random_state=np.random.default_rng(1))
    shuffled = pd.concat(
        [shuffled[shuffled["model"] == model] for model in ("small", "large", "tuned")]
    )

    assert_frame_equal(
        compare_models(shuffled, n_resamples=300), compare_models(frame, n_resamples=300)
    )


def test_p_value_agrees_with_the_interval(frame):
    """p is below 5 % exactly where the 95 % interval leaves out 0."""
    rows = compare_models(frame, rate=list(PAIRED_RATES))

    excludes = (rows["difference_low"] > 0) | (rows["difference_high"] < 0)
    assert (excludes == (rows["p_value"] < 0.05)).all()
    assert excludes.any()
    assert rows["p_value"].between(0, 1, inclusive="right").all()


def test_equal_models_do_not_differ():
    one = answers(models=("a",))
    row = compare_models(pd.concat([one, one.assign(model="b")])).iloc[0]

    assert row["difference"] == 0
    assert -0.2 < row["difference_low"] < 0 < row["difference_high"] < 0.2
    assert row["p_value"] == 1


def test_statistics_of_ones_own_are_compared(frame):
    rows = compare_models(frame, rate={"kappa": kappa_of_counts}, n_resamples=200)

    assert rows["rate"].tolist() == ["kappa"] * 3


def test_pairs_that_a_model_lacks_are_left_out_for_all(frame):
    gaps = frame.astype({"second_correct": object})
    gaps.loc[0, "second_correct"] = None
    gaps = gaps.drop(index=gaps.index[-1])
    complete = frame[~frame["pair_id"].isin(["p0", "p749"])]

    with pytest.warns(UnscoredWarning, match="2 of 750 pairs lack a verdict of some model"):
        rows = compare_models(gaps, n_resamples=200)

    expected = compare_models(complete, n_resamples=200)
    assert (rows["n_missing"] == 2).all()
    assert_frame_equal(rows.drop(columns="n_missing"), expected.drop(columns="n_missing"))


def test_missing_rows_are_refused_on_request(frame):
    with pytest.raises(ValueError, match="model 'tuned' has no row for pair 'p749'"):
        compare_models(frame.iloc[:-1], missing="raise")


def test_one_cluster_is_undefined(frame):
    with pytest.warns(UndefinedMetricWarning, match="undefined .* in 3 of 3 comparisons"):
        rows = compare_models(frame.assign(fact_id="Q1"))

    assert rows["difference_low"].isna().all()
    assert rows["p_value"].isna().all()
    assert rows["difference"].notna().all()


def test_undefined_resamples_are_counted():
    frame = pd.DataFrame(
        {
            "model": ["a"] * 6 + ["b"] * 6,
            "pair_id": [*range(6)] * 2,
            "first_correct": [1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0],
            "second_correct": [1, 0, 0, 0, 0, 0] * 2,
        }
    )

    row = compare_models(
        frame, rate="consistency_given_first_correct", cluster=None, interval="percentile"
    ).iloc[0]

    assert row["n_undefined"] == pytest.approx(10_000 * (5 / 6) ** 6, abs=250)
    assert math.isclose(row["difference"], 1 / 3 - 1)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: pd.concat([f, f.iloc[[4]]]), {}, "'p4' more than once for model 'small'"),
        (
            lambda f: f[f["model"] == "small"],
            {},
            r"two models to compare; the frame has \['small'\]",
        ),
        (lambda f: f, {"reference": "huge"}, "reference must be one of the models"),
        (lambda f: f, {"rate": "recall"}, "rate must be among consistency.*got 'recall'"),
        (
            lambda f: f.assign(pair_id=f["model"] + f["pair_id"]),
            {},
            "no pair of column 'pair_id' is answered by all",
        ),
        (
            lambda f: f.assign(fact_id=f["model"] + f["fact_id"]),
            {},
            "pair 'p0' belongs to more than one cluster",
        ),
        (lambda f: f.assign(model=None), {}, "column 'model' is empty in row 0"),
        (lambda f: f, {"confidence_level": 95}, "confidence_level must lie"),
        (lambda f: f.assign(first_correct=2), {}, r"first_correct\[0\] is 2"),
    ],
)
def test_compare_models_rejects_bad_input(frame, change, options, message):
    with pytest.raises(ValueError, match=message):
        compare_models(change(frame), n_resamples=20, **options)


@pytest.mark.parametrize("column", ["model", "pair_id", "first", "second", "cluster"])
def test_compare_models_rejects_missing_columns(frame, column):
    with pytest.raises(ColumnNotFoundError, match="'nowhere' is not in the frame"):
        compare_models(frame, **{column: "nowhere"})


@pytest.mark.parametrize("interval", ["auto", "percentile", "bca"])
def test_other_models_change_nothing(interval):
    """Neither a third model nor the order of models moves the bounds of two."""
    frame = answers()
    two = frame[frame["model"] != "tuned"]
    turned = pd.concat([frame[frame["model"] == name] for name in ("tuned", "large", "small")])
    options = {"rate": ["flip_rate", "consistency_given_first_correct"], "n_resamples": 300}

    rows, alone, other = (
        compare_models(part, interval=interval, **options) for part in (frame, two, turned)
    )

    first = rows[(rows["model_a"] == "small") & (rows["model_b"] == "large")]
    assert_frame_equal(first.reset_index(drop=True), alone)
    back = other[(other["model_a"] == "large") & (other["model_b"] == "small")]
    assert back["difference_low"].tolist() == pytest.approx((-alone["difference_high"]).tolist())
    assert back["p_value"].tolist() == alone["p_value"].tolist()


def test_pairwise_comparison_keeps_pairs_that_a_third_model_lacks():
    frame = answers()
    shrunk = frame[(frame["model"] != "tuned") | (frame["pair_id"].isin(["p1", "p2", "p3"]))]

    with pytest.warns(UnscoredWarning, match="left out of some comparisons"):
        rows = compare_models(shrunk, pairs="pairwise", cluster=None)
    with pytest.warns(UnscoredWarning, match="left out for all"):
        common = compare_models(shrunk, cluster=None)

    assert rows["n"].tolist() == [750, 3, 3]
    assert common["n"].tolist() == [3, 3, 3]
    assert rows["few_clusters"].tolist() == [False, True, True]


def test_p_value_of_a_difference_goes_with_its_interval():
    """At the level 1 - p the interval ends at 0."""
    (row,) = compare_models(answers(models=("small", "large"))).to_dict("records")
    level = 1 - row["p_value"]

    (at_p,) = compare_models(answers(models=("small", "large")), confidence_level=level).to_dict(
        "records"
    )

    nearest = min(abs(at_p["difference_low"]), abs(at_p["difference_high"]))
    assert 0 < row["p_value"] < 0.9
    assert nearest == pytest.approx(0, abs=1e-9)


def test_compare_models_rejects_unknown_pairs():
    with pytest.raises(ValueError, match="pairs must be 'common' or 'pairwise'; got 'all'"):
        compare_models(answers(), pairs="all")
