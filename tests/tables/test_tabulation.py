"""Grouping of frames, results per group, and descriptions of columns."""

from typing import get_args

import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, UndefinedMetricWarning
from surface_consistency.metrics import split_accuracy
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.table import Column, ColumnKind
from surface_consistency.tables.tabulation import Row, describe, tabulate

_FRAME = pd.DataFrame(
    {
        "model": ["b", "a", "b", "a", "b"],
        "task": ["x", "x", "y", "y", "x"],
        "value": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)


def _mean(part: pd.DataFrame) -> dict[str, float]:
    return {"mean": float(part["value"].mean())}


def test_groups_are_nested_and_in_order_of_appearance() -> None:
    table = tabulate(_FRAME, ["model", "task"], _mean)

    assert table.to_dict("list") == {
        "model": ["b", "b", "a", "a"],
        "task": ["x", "y", "x", "y"],
        "mean": [3.0, 3.0, 2.0, 4.0],
    }
    assert tabulate(_FRAME, [], _mean).to_dict("list") == {"mean": [3.0]}
    frame = pd.DataFrame({"task": ["x", None, "x", None], "value": [1.0, 2.0, 3.0, 6.0]})
    unlabelled = tabulate(frame, ["task"], _mean)
    assert unlabelled["mean"].tolist() == [2.0, 4.0]
    assert pd.isna(unlabelled["task"].iloc[1])
    for by in (["model"], ["model", "task"]):
        empty = tabulate(_FRAME.iloc[:0], by, _mean)
        assert empty.empty
        assert list(empty.columns) == by


def test_group_may_give_one_row_several_rows_or_none() -> None:
    gives: dict[str, Row | list[Row] | None] = {
        "x": {"rate": 0.5, "n": 2},
        "y": [{"rate": 0.1, "n": 1}, {"rate": 0.2, "n": 3}],
        "z": None,
        "w": [],
    }
    frame = pd.DataFrame({"task": list(gives)})

    table = tabulate(frame, ["task"], lambda part: gives[part["task"].iloc[0]])

    assert table["task"].tolist() == ["x", "y", "y"]
    assert table["rate"].tolist() == [0.5, 0.1, 0.2]


def test_categories_without_rows_are_not_groups() -> None:
    frame = _FRAME.assign(task=pd.Categorical(_FRAME["task"], categories=["z", "y", "x"]))

    table = tabulate(frame, ["task", "model"], _mean)

    assert table["task"].astype(str).tolist() == ["x", "x", "y", "y"]


def test_table_is_described_by_keys_and_custom_columns() -> None:
    with pytest.warns(
        UndefinedMetricWarning, match=r"undefined .NaN.. interval of low_accuracy, high_accuracy"
    ):
        numbers = tabulate(
            _FRAME.assign(correct=[0, 1, 1, 0, 1]),
            ["model"],
            lambda part: split_accuracy(part["value"], part["correct"], missing="drop"),
        )
    custom = Column(key="threshold", title="Cut", kind="number")

    table = describe(
        numbers,
        "Accuracy by value",
        ["model n_missing", custom, "difference"],
        titles={"n_missing": "Left out"},
        note="Cut at the median.",
        cluster_column="n_clusters",
    )

    assert [column.title for column in table.columns] == ["Model", "Left out", "Cut", "Difference"]
    assert table.columns[-1].high == "difference_high"
    found = (table.note, table.cluster_column, table.model)
    assert found == ("Cut at the median.", "n_clusters", "model")


def test_custom_titles_do_not_change_the_catalogue() -> None:
    describe(pd.DataFrame({"n": [1]}), "Texts", "n", titles={"n": "Texts"})

    assert COLUMNS["n"].title == "Pairs"


def test_table_without_rows_has_the_described_columns() -> None:
    table = describe(tabulate(_FRAME.iloc[:0], ["model"], _mean), "Nothing", "model n auc")

    assert list(table.frame.columns) == ["model", "n", "auc", "auc_low", "auc_high"]


_MISSING, _TWO, _AREA = ColumnNotFoundError, ["model", "relation"], {"auc": "Area"}
_RATIO = _FRAME.assign(ratio=0.5)
_TWICE = "key\ttitle\tkind\nn\tPairs\tcount\nn\tTexts\tcount"


def _named(part: pd.DataFrame) -> dict[str, str]:
    return {"model": "c"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tabulate(_FRAME, _TWO, _mean), _MISSING, "'relation'.*'model', 'task', 'value'"),
        (lambda: tabulate(_FRAME, ["model"], _named), ValueError, "'model'.*rename it"),
        (lambda: describe(_FRAME, "Flips", "model auc"), _MISSING, "'Flips'.*'auc'"),
        (lambda: describe(_RATIO, "Flips", "ratio"), ValueError, "'Flips'.*'ratio'.*Column"),
        (lambda: describe(_FRAME, "Flips", "model", titles=_AREA), ValueError, "'Flips'.*'auc'"),
        (lambda: catalogue(_TWICE), ValueError, "'n' twice"),
    ],
    ids=["group", "statistic", "column", "key", "heading", "catalogue"],
)
def test_invalid_columns_are_rejected(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


def test_every_column_of_the_catalogue_has_a_valid_kind_and_a_title() -> None:
    kinds = set(get_args(ColumnKind))

    assert {column.kind for column in COLUMNS.values()} <= kinds
    assert all(column.title for column in COLUMNS.values())


def test_column_can_be_described_by_another_entry() -> None:
    frame = pd.DataFrame({"n": [3], "accuracy": [0.5], "accuracy_low": [0.4], "accuracy_high": [1]})

    table = describe(frame, "Slots", "n:slots accuracy:agreement_with kappa? accuracy_difference?")

    shown = {one.key: one.title for one in table.columns}
    assert shown == {"n": "Slots", "accuracy": "Agreement"}
    assert (table.columns[1].low, table.columns[1].high) == ("accuracy_low", "accuracy_high")


def test_a_column_without_bounds_is_shown_without_an_interval() -> None:
    table = describe(pd.DataFrame({"auc": [0.6]}), "Areas", "auc", labels={"auc": {"x": "y"}})

    assert (table.columns[0].low, table.columns[0].labels) == (None, {"x": "y"})
