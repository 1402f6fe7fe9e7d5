import functools
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal
from scipy import stats

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    PAIRED_RATES,
    Intervals,
    cluster_bootstrap,
    clustered_mcnemar,
    contrasts_by,
    forgetting_by,
    mcnemar,
    paired_by,
    paired_table,
    with_adjusted_p_values,
)
from surface_consistency.metrics._groups import UNLABELLED, group_positions
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from surface_consistency.metrics.paired.paired_tables import cluster_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import cluster_t
from tests.refusals import refusals

FORMS = ["exact", "corrected", "uncorrected", "mid-p"]
CELLS = ["both", "first_only", "second_only", "neither"]
CATEGORIES = ["from surnames", "from plurals", "from misspellings", "to acronyms"]
TYPES = {"from misspellings": "Typical_Errors"}


def outcomes(seed=0, n=800):
    """Pairs of facts with correlated labels, with one to three categories, some repeated."""
    rng = np.random.default_rng(seed)
    fact = rng.integers(0, n // 2, n)
    known = rng.random(n // 2)[fact]
    categories = [
        [str(label) for label in rng.choice(CATEGORIES, size=rng.integers(1, 4))] for _ in range(n)
    ]
    kinds = [[TYPES.get(label, "Aliases_and_Abbreviations") for label in row] for row in categories]
    return pd.DataFrame(
        {
            "pair": [f"pair-{index}" for index in range(n)],
            "item": [f"Q{number}" for number in fact],
            "template": rng.integers(0, 2, n),
            "category": categories,
            "type": kinds,
            "first_correct": known > 0.4,
            "second_correct": rng.random(n) < known,
        }
    )


@pytest.fixture(scope="module")
def frame():
    return outcomes()


def named_rows(n=60):
    """Pairs identified by a prompt, of facts with several."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "item": np.arange(n) // 3,
            "prompt": [f"prompt {k}" for k in range(n)],
            "categories": [["a", "b"][: 1 + k % 2] for k in range(n)],
            "first_correct": rng.random(n) < 0.5,
            "second_correct": rng.random(n) < 0.5,
        }
    )


@pytest.mark.parametrize(
    "call",
    [
        paired_by,
        functools.partial(paired_by, by="categories"),
        functools.partial(contrasts_by, between="categories"),
        forgetting_by,
    ],
)
def test_rows_that_repeat_are_counted_in_a_warning(call):
    rows = named_rows()
    call(rows)

    with pytest.warns(DataWarning, match="60 of 120 rows repeat another in all columns"):
        call(pd.concat([rows, rows]))
    with pytest.warns(DataWarning, match="2 of 62 rows repeat another") as caught:
        call(pd.concat([rows, rows[:2]]))
    assert caught[0].filename == __file__


LABELLED = st.tuples(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4),
    *(st.booleans(), st.booleans(), st.integers(0, 5)),
)


@settings(deadline=None, max_examples=25)
@given(st.lists(LABELLED, min_size=1, max_size=30))
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_intervals_of_paired_by_are_within_their_bounds(rows):
    frame = pd.DataFrame(rows, columns=["label", "first_correct", "second_correct", "item"])

    result = paired_by(frame, by="label")

    assert result["n"].sum() == sum(len(set(row[0])) for row in rows)
    for name in PAIRED_RATES:
        floor = -1 if name in ("signed_alignment", "accuracy_difference") else 0
        low, high = result[f"{name}_low"], result[f"{name}_high"]
        defined = low.notna()
        assert (low[defined] <= high[defined]).all()
        assert ((low[defined] >= floor) & (high[defined] <= 1)).all()
        reason = result["not_inferred"]
        named = reason.str.contains(name) | ~reason.str.contains(":")
        unknown = result[name].notna() & ~defined
        assert (unknown <= (reason != "") & named).all()


_CELLS_OF_LABELS = st.one_of(
    st.none(),
    st.sampled_from(["a", "b", 1, 2.0, 2, float("nan")]),
    st.lists(st.sampled_from(["a", "b", 1, 2.0, None]), max_size=3),
)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(_CELLS_OF_LABELS, st.sampled_from("xy"), _CELLS_OF_LABELS)))
def test_groups_agree_with_a_loop_over_labels(rows):
    """For any mix of labels and lists, each row is in the groups of its labels."""
    frame = pd.DataFrame(rows, columns=["p", "q", "r"], dtype=object)

    def labels(cell):
        cell = cell if isinstance(cell, list) else [cell]
        return {label for label in cell if label is not None and label == label} or {UNLABELLED}

    expected = {}
    for position, row in enumerate(rows):
        for key in itertools.product(*map(labels, row)):
            expected.setdefault(key, []).append(position)

    found = group_positions(frame, ["p", "q", "r"])

    assert {key: positions.tolist() for key, positions in found.items()} == expected


@settings(deadline=None)
@given(b=st.integers(0, 20), c=st.integers(0, 20), same=st.integers(1, 20))
def test_exact_test_has_the_clopper_pearson_interval(b, c, same):
    """Clopper and Pearson's of the flips, which excludes 0 exactly if the test rejects."""
    first, second = [1] * b + [0] * c + [1] * same, [0] * b + [1] * c + [1] * same
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        row = paired_by(few(first, second), test="exact").iloc[0]

    low, high = row["accuracy_difference_low"], row["accuracy_difference_high"]
    assert low <= row["accuracy_difference"] <= high
    assert (row["p_value"] <= 0.05) == (low > 0 or high < 0)
    if b + c:
        share = stats.binomtest(c, b + c).proportion_ci(0.95, "exact")
        scale = (b + c) / len(first)
        assert low == pytest.approx(scale * (2 * share.low - 1), abs=1e-9)
        assert high == pytest.approx(scale * (2 * share.high - 1), abs=1e-9)


@pytest.mark.parametrize("method", ["auto", "percentile"])
def test_intervals_of_paired_by_agree_with_cluster_bootstrap(frame, method):
    """One group equals the result for arrays, up to resampling noise."""
    counts = cluster_counts(frame["first_correct"], frame["second_correct"], clusters=frame["item"])

    row = paired_by(frame, intervals=Intervals(confidence=0.8, method=method)).iloc[0]

    for name, rate in PAIRED_RATES.items():
        alone = cluster_bootstrap(counts, rate, intervals=Intervals(confidence=0.8, method=method))
        assert row[name] == alone[0]
        tolerance = (0.04 if method == "percentile" else 1e-9) * (alone[2] - alone[1])
        bounds = (row[f"{name}_low"], row[f"{name}_high"])
        assert bounds == pytest.approx(alone[1:], abs=tolerance)


def test_resamples_follow_the_seed_and_the_labels_of_groups(frame):
    """Generators in one state give one result and advance; groups have separate streams."""
    twice = frame.assign(group=[["a", "b"]] * len(frame))

    def drawn(rng):
        intervals = Intervals(resamples=300, seed=rng, method="percentile")
        return paired_by(twice, by="group", intervals=intervals)

    generator = np.random.default_rng(5)
    one, again, other = drawn(1), drawn(1), drawn(2)
    assert_frame_equal(one, again)
    assert_frame_equal(drawn(np.random.default_rng(5)), drawn(generator))
    for first, second in ((one, other), (drawn(generator), drawn(generator))):
        assert (first["consistency_low"] != second["consistency_low"]).any()
    assert (drawn(None)["consistency_low"] != drawn(None)["consistency_low"]).any()
    assert (one["consistency"].nunique(), one["consistency_low"].nunique()) == (1, 2)
    assert (one["consistency"] == other["consistency"]).all()


def test_custom_rates_are_in_the_given_order(frame):
    """All rates of a group share resamples, so omitting some does not change the others."""
    rates = {"kappa": kappa_of_counts, "flip_rate": PAIRED_RATES["flip_rate"]}
    drawn = Intervals(method="percentile", resamples=200)

    row = paired_by(frame, rates=rates, intervals=drawn).iloc[0]
    alone = paired_by(frame, intervals=drawn).iloc[0]

    names = [column for name in rates for column in (name, f"{name}_low", f"{name}_high")]
    assert [column for column in row.index if column.startswith(tuple(rates))] == names
    table = paired_table(frame["first_correct"], frame["second_correct"])
    assert row["kappa"] == kappa_of_counts(table.counts)
    assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
    assert row[names[3:]].tolist() == alone[names[3:]].tolist()
    # Resampled intervals have no test unless one is named.
    assert math.isnan(alone["p_value"])
    assert 0 <= paired_by(frame, intervals=drawn, test="exact")["p_value"].iloc[0] <= 1


@pytest.mark.parametrize("test", [*FORMS, "obuchowski", "durkalski", "auto", "independent"])
def test_test_of_a_group_equals_that_of_its_counts(frame, test):
    rows = paired_by(frame, by="template", test=test)

    for (_, part), row in zip(frame.groupby("template"), rows.to_dict("records"), strict=True):
        verdicts = part["first_correct"], part["second_correct"]
        counts = cluster_counts(*verdicts, clusters=part["item"])
        form = test
        if test == "auto":
            t = cluster_t(PAIRED_RATES["accuracy_difference"].parts, counts.astype(float))
            form, expected = "t", (float(t.t()), float(t.p_value()))
        elif test in ("obuchowski", "durkalski"):
            expected = clustered_mcnemar(counts, method=test)
        else:
            form = "corrected" if test == "independent" else test
            expected = mcnemar(paired_table(*verdicts), method=form)
        assert (row["statistic"], row["p_value"]) == pytest.approx(expected)
        assert row["test"] == form
        # Only the t and the exact test have an interval.
        assert math.isnan(row["accuracy_difference_low"]) == (form not in ("t", "exact"))


def test_a_repeated_pair_in_a_group_raises_an_error(frame):
    """A pair may be in several groups, but only once in each."""
    models = pd.concat([frame.assign(model="a"), frame.assign(model="b")], ignore_index=True)
    doubled = pd.concat([models, models.iloc[[900]]], ignore_index=True)

    assert len(paired_by(models, by="model", pair="pair")) == 2
    assert len(paired_by(frame, by="category", pair="pair")) == 4
    with pytest.raises(ValueError, match=r"'pair' contains 'pair-0' more than once in the frame"):
        paired_by(models, pair="pair")
    with pytest.raises(ValueError, match=r"'pair-100' more than once in group model='b' \(1 rows"):
        paired_by(doubled, by="model", pair="pair")


test_paired_by_rejects_options_out_of_range = refusals(
    lambda frame, options: paired_by(frame, **options),
    ({"first": "canonical"}, ColumnNotFoundError, "'canonical' not found; pass .*item"),
    ({"repeat": "item"}, "repeat needs pair"),
    ({"test": "sign"}, "test must be .auto., .independent., .exact..*got 'sign'"),
    ({"rates": {"n": kappa_of_counts}}, "repeats a column of the result: 'n'"),
    ({"rates": dict.fromkeys(("k", "k_low"), kappa_of_counts)}, "column of the result: 'k_low'"),
    fixture="frame",
)


def few(first, second, **columns):
    """Pairs of as many facts."""
    facts = {"item": range(len(first))} | columns
    return pd.DataFrame({"first_correct": first, "second_correct": second} | facts)


def test_rows_without_an_identifier_may_repeat():
    """Labels, facts and groups are shared; a name with two labels identifies no row."""
    rows = named_rows()
    verdicts = rows[["item", "first_correct", "second_correct"]].assign(item=1)
    other = rows.assign(prompt="the same", item=1, second_correct=~rows["second_correct"])

    assert paired_by(pd.concat([verdicts, verdicts]), cluster=None)["n"].item() == 2 * len(rows)
    paired_by(pd.concat([rows, rows]).assign(prompt="the same", categories="a"), by="prompt")
    paired_by(pd.concat([rows.assign(prompt="the same", item=1), other]), cluster=None)
    paired_by(rows.assign(pair=rows["prompt"]), pair="pair")
    # Rows are identified by all columns together.
    number = np.arange(2_000)
    names = {"item": number, "pair": np.where(number < 100, number, number + 10_000)}
    rows = few(number >= 100, number % 3 > 3, **names)
    models = pd.concat([rows.assign(model="a"), rows.assign(model="b")])
    assert paired_by(models, by="model")["n"].tolist() == [2_000, 2_000]


@pytest.mark.parametrize(
    ("values", "labels", "sizes"),
    [
        ([["a", "b"], ["b", "b"], []], ["a", "b", "none"], [2, 4, 2]),
        ([("a", "b"), ("b",), None], ["a", "b", "none"], [2, 4, 2]),
        ([{"a", "b"}, {"b"}, set()], ["a", "b", "none"], [2, 4, 2]),
        ([np.array(["a", "b"]), np.array(["b"]), np.array([])], ["a", "b", "none"], [2, 4, 2]),
        ([["a", "b", None], ["b", math.nan], [None]], ["a", "b", "none"], [2, 4, 2]),
        ([["a", "b"], "b", None], ["a", "b", "none"], [2, 4, 2]),
        ([2, 10, None], [2, 10, "none"], [2, 2, 2]),
        ([True, False, False], [False, True], [4, 2]),
        (pd.Categorical(["b", "a", None]), ["a", "b", "none"], [2, 2, 2]),
        (pd.array([1, None, 3], dtype="Int64"), [1, 3, "none"], [2, 2, 2]),
        ([0.5, 1.0, 2.0], [0.5, 1, 2], [2, 2, 2]),
        (["b", pd.Timestamp("2024-01-01"), 3], [3, pd.Timestamp("2024-01-01"), "b"], [2, 2, 2]),
        (["none", "none", "a"], ["a", "none"], [2, 4]),
    ],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
def test_labels_of_every_type_are_read_and_sorted(values, labels, sizes):
    """A pair counts once in each label, and a pair without any in the group "none"."""
    part = few([1, 0, 1], [1, 0, 0]).assign(label=pd.Series(values))
    frame = pd.concat([part, part.assign(first_correct=0)], ignore_index=True)

    result = paired_by(frame, by="label", cluster=None)

    assert UNLABELLED == "none"
    assert (result["label"].tolist(), result["n"].tolist()) == (labels, sizes)


# Pairs labelled "none" and pairs without a label would run into one group.
test_empty_cells_next_to_the_label_none_are_rejected = refusals(
    lambda labels: paired_by(few([1] * 4, [0, 1, 0, 1], label=labels), by="label", cluster=None),
    *(
        (labels, "column 'label' has empty cells and also the label 'none'")
        for labels in (
            ["none", None, "a", "a"],
            pd.Categorical(["none", None, "a", "a"]),
            pd.array(["none", None, "a", "a"], dtype="string"),
            [["none", "a"], [], ["a"], ["a"]],
            [["a"], ["b"], "none", None],
        )
    ),
)


def test_missing_labels_are_counted_and_change_nothing_else(frame):
    """A row without a group turns integers into floats; one without a label is excluded."""
    gap = frame.iloc[[0]].assign(template=np.nan, item="Q0")
    with_gap = pd.concat([frame, gap, gap.assign(item="Q1")], ignore_index=True)
    unscored = frame.astype({"second_correct": object})
    unscored.loc[unscored.index[:40], "second_correct"] = None

    with pytest.warns(UndefinedMetricWarning, match="template='none'"):
        labelled = paired_by(with_gap, by="template")
    with pytest.warns(UnscoredWarning, match="40 of 800 pairs lack a label") as caught:
        scored = paired_by(unscored, by="template")

    expected = paired_by(frame, by="template").drop(columns="template")
    assert labelled["template"].tolist() == [0, 1, UNLABELLED]
    assert_frame_equal(labelled.iloc[:2].drop(columns="template"), expected)
    assert [warning.filename for warning in caught] == [__file__]
    assert scored["n_missing"].sum() == 40


@pytest.mark.parametrize("test", ["auto", "exact", "corrected", "mid-p", "obuchowski"])
def test_group_without_pairs_has_no_test(test):
    """Its row remains, and its p-value is NaN and does not count when others are adjusted."""
    first, second = [1, 1, 0] * 10 + [1, 0, 0] * 10, [0, 1, 0] * 10 + [0, 0, 0] * 10
    frame = few([*first, None], [*second, None], label=["a"] * 30 + ["b"] * 30 + ["empty"])

    with (
        pytest.warns(UnscoredWarning, match="1 of 61"),
        pytest.warns(UndefinedMetricWarning, match=rf"{test} test \(1, such as in group label='em"),
    ):
        rows = paired_by(frame, by="label", test=test)

    empty = rows.iloc[2]
    assert empty[["n", "n_clusters", "n_missing"]].tolist() == [0, 0, 1]
    assert empty[["consistency", "consistency_low"]].isna().all()
    assert rows["p_value"].isna().tolist() == [False, False, True]
    assert rows["statistic"].isna().tolist() == [False, False, True]
    assert empty["test"] == ("t" if test == "auto" else test)
    adjusted = with_adjusted_p_values(rows)["p_value_holm"]
    alone = with_adjusted_p_values(rows.iloc[:2])["p_value_holm"]
    assert adjusted.tolist()[:2] == alone.tolist()


def test_undefined_numbers_are_listed_in_one_warning():
    frame = few([0, 0, 1, 0], [0, 1, 1, 0], label=[*"aabb"], item=[1, 2, 3, 3])

    with pytest.warns(UndefinedMetricWarning, match="undefined") as caught:
        result = paired_by(frame, by="label")

    assert [warning.filename for warning in caught] == [__file__]
    message = str(caught[0].message)
    assert "consistency_given_first_correct (1, such as in group label='a')" in message
    assert "all intervals (one cluster) (1, such as in group label='b')" in message
    assert result["flip_rate"].tolist() == [0.5, 0.0]
    assert result["flip_rate_low"].isna().tolist() == [True, True]
    reasons = [f"effective number of clusters {n}, minimum 4" for n in (2, 1)]
    assert result["not_inferred"].tolist() == reasons
    with pytest.warns(UndefinedMetricWarning, match=r"\(one cluster\) \(1, such as in the frame\)"):
        one = paired_by(frame[2:], test="obuchowski").iloc[0]
    assert math.isnan(one["p_value"])


def test_undefined_resamples_are_counted():
    """Ten facts, one correct at first: a resample omits it with probability 0.9 ** 10."""
    frame = few([1] + [0] * 9, [1, 1] + [0] * 8)

    row = paired_by(frame, intervals=Intervals(method="percentile")).iloc[0]

    assert row["n_undefined"] == pytest.approx(10_000 * 0.9**10, abs=250)
    assert (row["test"], str(row["p_value"])) == ("", "nan")
    assert row["consistency_given_first_correct_low"] == 1.0
    same = paired_by(few([1, 0] * 4, [1, 0] * 4)).iloc[0]
    assert (same["statistic"], same["p_value"]) == (0, 1)


def test_auto_keeps_its_level_if_facts_repeat():
    """A model that is correct or incorrect on all redirects of a fact, without asymmetry."""
    rejected, rates = {"auto": 0, "independent": 0}, {"flip_rate": PAIRED_RATES["flip_rate"]}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        fact = np.repeat(np.arange(30), 5)
        lean = rng.choice([-1, 1], 30)[fact] * (rng.random(150) < 0.35)
        frame = few(lean >= 0, lean <= 0, item=fact)
        for test in rejected:
            p_value = paired_by(frame, test=test, rates=rates)["p_value"].iloc[0]
            rejected[test] += p_value < 0.05

    # A binomial count of 300 trials at 0.05 lies within 5 and 28 with probability 0.999.
    assert 5 <= rejected["auto"] <= 28
    assert rejected["independent"] > 40


def test_conditional_rates_have_separate_denominators_and_effective_clusters():
    first = [1, 1, 0, 1, 1, 0, 1, 0, 1]
    frame = pd.DataFrame({"item": [0, 0, *range(7)], "first_correct": first, "second_correct": 1})
    row = paired_by(frame).iloc[0]
    sizes = [row[f"consistency_given_first_{name}_n"] for name in ("correct", "incorrect")]
    clusters = [row[f"consistency_given_first_{x}_n_clusters"] for x in ("correct", "incorrect")]
    assert (sizes, clusters, row["n"]) == ([6, 3], [5, 3], 9)
    # Kish: (sum of sizes)^2 / sum of squares.
    assert row["n_effective_clusters"] == pytest.approx(81 / (9 + 6))
