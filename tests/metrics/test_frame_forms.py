"""Properties of all metrics of frames, from the table of `harness`."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from pandas.testing import assert_frame_equal

from surface_consistency.errors import ColumnNotFoundError
from tests.metrics.harness import METRICS

GROUPED = [name for name, metric in METRICS.items() if metric.by]
PARTLY = {"paired_by", "forgetting_by", "unlearning_by", "alignment_by"}
"""Metrics whose reasons may concern another number than the one with the p-value."""
COUNTS = re.compile(
    r"n(_(?!clusters)|$)|(reference|model|first|second)_only|both|neither|design_effect|intraclass"
    "|(positive|negative)_(right|wrong)|artifacts|full_correct"
)
"""Columns that count rows or measure how alike those of a cluster are."""
seeds = st.integers(0, 10**6)
pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)


def rows_of(metric, frame, **options):
    return metric.call(frame, cluster=metric.cluster, **options)


@pytest.mark.parametrize("name", METRICS)
@settings(deadline=None, max_examples=5)
@given(seed=seeds)
def test_values_agree_with_a_naive_loop(name, seed):
    metric = METRICS[name]
    frame = metric.frame(seed)

    row = rows_of(metric, frame).iloc[0]

    expected = metric.naive(frame)
    assert {key: row[key] for key in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", GROUPED)
@settings(deadline=None, max_examples=5)
@given(seed=seeds)
def test_groups_equal_the_results_of_single_calls(name, seed):
    """Groups are sorted, and other groups change a row only by a correction for their number."""
    metric = METRICS[name]
    frame = metric.frame(seed)

    rows = rows_of(metric, frame, **{metric.by: "group"})

    assert rows["group"].unique().tolist() == sorted(set(frame["group"]))
    for label, part in frame.groupby("group"):
        alone = rows_of(metric, part)
        found = rows[rows["group"] == label][alone.columns].reset_index(drop=True)
        others = [column for column in alone if column.endswith("_holm")]
        assert_frame_equal(found.drop(columns=others), alone.drop(columns=others))


@pytest.mark.parametrize("name", METRICS)
@settings(deadline=None, max_examples=5)
@given(seed=seeds)
def test_order_of_rows_and_names_of_clusters_change_nothing(name, seed):
    metric = METRICS[name]
    frame, rng = metric.frame(seed), np.random.default_rng(seed)
    labels = rng.permutation(frame[metric.cluster].unique())
    names = {label: f"c{place}" for place, label in enumerate(labels)}
    moved = frame.sample(frac=1, random_state=rng)
    moved[metric.cluster] = moved[metric.cluster].map(names)
    if name == "form_contrasts":
        moved = moved.sort_values("model", kind="stable")

    columns = [column for column in ("worst", "best") if name == "form_spread_by"]
    expected = rows_of(metric, frame).drop(columns=columns)
    assert_frame_equal(rows_of(metric, moved).drop(columns=columns), expected)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.value])
@settings(deadline=None, max_examples=5)
@given(seed=seeds)
def test_rows_without_a_value_are_excluded(name, seed):
    metric = METRICS[name]
    frame = metric.frame(seed)
    is_gap = np.random.default_rng(seed).random(len(frame)) < 0.1
    gaps = frame.astype({metric.value: object})
    gaps.loc[is_gap, metric.value] = None

    found, expected = rows_of(metric, gaps), rows_of(metric, frame[~is_gap])

    if metric.drops:
        assert found["n_missing"].tolist() == [is_gap.sum()]
    others = ["n_missing", "n_single"]
    assert_frame_equal(
        found.drop(columns=others, errors="ignore"), expected.drop(columns=others, errors="ignore")
    )


@pytest.mark.parametrize("name", [name for name in METRICS if name != "variance_shares_by"])
@settings(deadline=None, max_examples=5)
@given(seed=seeds, n_copies=st.integers(2, 4))
def test_copies_of_rows_within_their_clusters_do_not_change_the_inference(name, seed, n_copies):
    """Equal weights of all rows change neither values nor intervals."""
    metric = METRICS[name]
    frame = metric.frame(seed)
    copies = [frame.copy() for _ in range(n_copies)]
    for place, copy in enumerate(copies if metric.names else ()):
        copy[metric.names] = copy[metric.names].astype(str) + f"/{place}"

    once, again = rows_of(metric, frame), rows_of(metric, pd.concat(copies, ignore_index=True))

    numbers = [
        name
        for name in once.select_dtypes("number")
        if not COUNTS.match(name) and not name.endswith("_n")
    ]
    assert_frame_equal(again[numbers], once[numbers], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.p_values])
@settings(deadline=None, max_examples=8)
@given(seed=seeds, n_clusters=st.integers(2, 40))
def test_p_is_below_0_05_exactly_if_the_interval_excludes_0(name, seed, n_clusters):
    metric = METRICS[name]
    frame = metric.frame(seed)
    labels = pd.factorize(frame["item"])[0] % n_clusters
    rows = rows_of(metric, frame.assign(**{metric.cluster: labels}))

    for value, p_value in metric.p_values.items():
        low, high = rows[f"{value}_low"], rows[f"{value}_high"]
        assert ((rows[p_value] < 0.05) == ((low > 0) | (high < 0))).all()
        assert (low.isna() == rows[p_value].isna()).all()
        assert ((rows["not_inferred"] != "") == low.isna()).all() or name in PARTLY
    for value in [column[:-4] for column in rows if column.endswith("_low")]:
        low, high = rows[f"{value}_low"], rows[f"{value}_high"]
        assert ((low <= rows[value]) & (rows[value] <= high) | low.isna()).all()


class OfAnotherLibrary:
    """A frame that is not a pandas frame but has `to_pandas`, like those of polars."""

    __module__ = "polars.dataframe.frame"
    to_pandas = None


REFUSALS = {
    "list": (lambda f, _: f.to_dict("records"), TypeError, "DataFrame, one row per.*got list"),
    "polars": (lambda *_: OfAnotherLibrary(), TypeError, r"of polars: pass frame.to_pandas\(\)"),
    "empty": (lambda f, _: f.iloc[:0], ValueError, "no rows"),
    "column": (lambda f, name: f.drop(columns=name), ColumnNotFoundError, "not found; pass"),
    "twice": (lambda f, name: pd.concat([f, f[[name]]], axis=1), ValueError, "occurs 2 times"),
    "cluster": (
        lambda f, name: f.assign(**{name: f[name].where(f.index != 0)}),
        ValueError,
        "has no cluster id in row 0",
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", METRICS)
def test_unusable_frames_raise_an_error(name, refusal):
    metric, (change, error, message) = METRICS[name], REFUSALS[refusal]

    with pytest.raises(error, match=message):
        rows_of(metric, change(metric.frame(0), metric.cluster))


@pytest.mark.parametrize(
    "name",
    ["paired_by", "forgetting_by", "alignment_by", "linking_by", "correlation_by", "forms_by"],
)
def test_unusable_values_and_policies_raise_an_error(name):
    metric = METRICS[name]
    frame = metric.frame(0).astype({metric.value: object})
    with pytest.raises(ValueError, match="missing must be 'raise' or 'drop'; got 'skip'"):
        rows_of(metric, frame, missing="skip")
    frame.loc[3, metric.value] = None
    with pytest.raises(ValueError, match=rf"{metric.value}\[3\] (has no label|is missing)"):
        rows_of(metric, frame, missing="raise")
    frame.loc[3, metric.value] = 2
    if "correct" in metric.value:
        with pytest.raises(ValueError, match=rf"{metric.value}\[3\] is 2, which is not a corr"):
            rows_of(metric, frame)


@pytest.mark.parametrize("name", GROUPED)
def test_unusable_grouping_columns_raise_an_error(name):
    metric = METRICS[name]
    frame = metric.frame(0)
    taken = rows_of(metric, frame).columns[-1]

    with pytest.raises(ValueError, match="by contains a column twice"):
        rows_of(metric, frame, **{metric.by: ["group", "group"]})
    with pytest.raises(ValueError, match="has the name of a column of the result"):
        rows_of(metric, frame.assign(**{taken: 1}), **{metric.by: taken})
    with pytest.raises(ColumnNotFoundError, match="'nowhere' not found; pass"):
        rows_of(metric, frame, **{metric.by: "nowhere"})
