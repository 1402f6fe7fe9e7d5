"""Groups of a frame, results laid out, and columns described."""

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning
from surface_consistency.metrics import Interval, split_accuracy
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.table import Column
from surface_consistency.tables.tabulation import Row, describe, spread, tabulate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    rate: float
    n: int
    rate_interval: Interval | None = None


_FRAME = pd.DataFrame(
    {
        "model": ["b", "a", "b", "a", "b"],
        "task": ["x", "x", "y", "y", "x"],
        "value": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)


def _mean(part: pd.DataFrame) -> dict[str, float]:
    return {"mean": float(part["value"].mean())}


def test_an_interval_is_laid_out_beside_its_number() -> None:
    bounds = Interval(low=0.1, high=0.4, confidence_level=0.95, method="wilson")

    row = spread(_Result(rate=0.2, n=10, rate_interval=bounds))

    assert row == {"rate": 0.2, "rate_low": 0.1, "rate_high": 0.4, "n": 10}


def test_an_interval_that_is_not_there_has_undefined_bounds() -> None:
    row = spread(_Result(rate=0.2, n=10))

    assert row == pytest.approx(
        {"rate": 0.2, "rate_low": nan, "rate_high": nan, "n": 10}, nan_ok=True
    )


def test_a_class_gives_its_columns_undefined() -> None:
    row = spread(_Result, ["rate"])

    assert row == pytest.approx({"rate": nan, "rate_low": nan, "rate_high": nan}, nan_ok=True)


def test_named_fields_are_laid_out_with_their_intervals_under_other_names() -> None:
    result = split_accuracy([1.0, 2.0, 3.0, 4.0] * 5, [0, 1, 1, 1] * 5)

    row = spread(result, {"n_high": "n_common", "difference": "gap"})

    assert list(row) == ["n_common", "gap", "gap_low", "gap_high"]
    assert row["gap_low"] == result.difference_interval.low


def test_a_field_that_the_result_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"_Result.*'share'.*rate, n"):
        spread(_Result(rate=0.2, n=10), ["share"])


def test_groups_stand_in_order_of_appearance_and_nested() -> None:
    table = tabulate(_FRAME, ["model", "task"], _mean)

    assert table.to_dict("list") == {
        "model": ["b", "b", "a", "a"],
        "task": ["x", "y", "x", "y"],
        "mean": [3.0, 3.0, 2.0, 4.0],
    }


def test_rows_of_one_outer_group_stand_together_however_they_lie_in_the_frame() -> None:
    frame = pd.DataFrame({"task": ["x", "y", "x"], "side": ["first", "first", "second"]})

    table = tabulate(frame, ["task", "side"], lambda part: {"n": len(part)})

    assert table[["task", "side"]].to_numpy().tolist() == [
        ["x", "first"],
        ["x", "second"],
        ["y", "first"],
    ]


def test_a_group_may_give_a_result_several_rows_or_none() -> None:
    gives: dict[str, Row | list[Row] | None] = {
        "x": _Result(rate=0.5, n=2),
        "y": [{"rate": 0.1, "n": 1}, _Result(rate=0.2, n=3)],
        "z": None,
        "w": [],
    }
    frame = pd.DataFrame({"task": list(gives)})

    table = tabulate(frame, ["task"], lambda part: gives[part["task"].iloc[0]])

    assert table["task"].tolist() == ["x", "y", "y"]
    assert table["rate"].tolist() == [0.5, 0.1, 0.2]


def test_rows_without_a_label_make_a_group() -> None:
    frame = pd.DataFrame({"task": ["x", None, "x", None], "value": [1.0, 2.0, 3.0, 6.0]})

    table = tabulate(frame, ["task"], _mean)

    assert table["mean"].tolist() == [2.0, 4.0]
    assert pd.isna(table["task"].iloc[1])


def test_categories_without_rows_make_no_group() -> None:
    frame = _FRAME.assign(task=pd.Categorical(_FRAME["task"], categories=["z", "y", "x"]))

    table = tabulate(frame, ["task", "model"], _mean)

    assert table["task"].astype(str).tolist() == ["x", "x", "y", "y"]


def test_without_groups_all_rows_are_one() -> None:
    assert tabulate(_FRAME, [], _mean).to_dict("list") == {"mean": [3.0]}


@pytest.mark.parametrize("by", [["model"], ["model", "task"]])
def test_a_frame_without_rows_gives_an_empty_table(by: list[str]) -> None:
    table = tabulate(_FRAME.iloc[:0], by, _mean)

    assert table.empty
    assert list(table.columns) == by


def test_a_column_that_cannot_group_is_refused() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"'relation'.*'model', 'task', 'value'"):
        tabulate(_FRAME, ["model", "relation"], _mean)


def test_a_statistic_that_overwrites_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'model'.*another name"):
        tabulate(_FRAME, ["model"], lambda _: {"model": "c"})


def test_a_table_is_described_by_keys_and_columns_of_its_own() -> None:
    with pytest.warns(UndefinedMetricWarning, match=r"undefined .NaN.. interval of low, high"):
        numbers = tabulate(
            _FRAME.assign(correct=[0, 1, 1, 0, 1]),
            ["model"],
            lambda part: spread(split_accuracy(part["value"], part["correct"], missing="drop")),
        )
    own = Column(key="threshold", title="Cut", kind="number")

    table = describe(
        numbers,
        "Accuracy by value",
        ["model n_missing", own, "difference"],
        titles={"n_missing": "Left out"},
        note="Cut at the median.",
        cluster_column="n_clusters",
    )

    assert [column.title for column in table.columns] == ["Model", "Left out", "Cut", "Difference"]
    assert table.columns[-1].high == "difference_high"
    assert (table.note, table.cluster_column, table.model) == (
        "Cut at the median.",
        "n_clusters",
        "model",
    )


def test_a_description_leaves_the_catalogue_as_it_is() -> None:
    describe(pd.DataFrame({"n": [1]}), "Texts", "n", titles={"n": "Texts"})

    assert COLUMNS["n"].title == "Pairs"


def test_a_table_without_rows_has_the_columns_that_it_shows() -> None:
    table = describe(tabulate(_FRAME.iloc[:0], ["model"], _mean), "Nothing", "model n auc")

    assert list(table.frame.columns) == ["model", "n", "auc", "auc_low", "auc_high"]


def test_a_column_that_a_table_with_rows_lacks_is_refused() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"'Flips'.*'auc'"):
        describe(pd.DataFrame({"model": ["a"], "n": [1]}), "Flips", "model n auc")


def test_a_key_that_the_catalogue_does_not_describe_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'Flips'.*'ratio'.*Column"):
        describe(pd.DataFrame({"ratio": [nan]}), "Flips", "ratio")


def test_a_heading_of_a_column_that_is_not_shown_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'Flips'.*'auc'"):
        describe(pd.DataFrame({"n": [1]}), "Flips", "n", titles={"auc": "Area"})


def test_a_catalogue_describes_a_column_once() -> None:
    with pytest.raises(ValueError, match="'n' twice"):
        catalogue(Column(key="n", title="Pairs"), Column(key="n", title="Texts"))


def test_a_large_frame_is_parted_like_a_loop_over_its_labels() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 4, 300), "b": rng.integers(0, 5, 300), "value": rng.random(300)}
    )
    expected = [
        (a, b, frame.loc[(frame["a"] == a) & (frame["b"] == b), "value"].mean())
        for a in frame["a"].drop_duplicates()
        for b in frame.loc[frame["a"] == a, "b"].drop_duplicates()
    ]

    table = tabulate(frame, ["a", "b"], _mean)

    np.testing.assert_allclose(table.to_numpy(), expected, rtol=1e-15)
