"""Results in memory: frames, data sets, logs of inspect_ai, and lists and mappings of these."""

import warnings

import datasets
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results

A = pd.DataFrame({"item": [1, 2, 3], "correct": [1, 0, 1]})
B = A.assign(correct=[0, 0, 1])
TEXTS = A.astype({"item": str})
NAMES = ResultColumns(names=("a", "b"))


def dataset(frame):
    return datasets.Dataset.from_pandas(frame, preserve_index=False)


@pytest.fixture
def written(tmp_path):
    B.to_parquet(tmp_path / "b.parquet")
    A.to_csv(tmp_path / "a.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "columns"),
    [
        ([A, B], NAMES),
        ({"a": A, "b": B}, None),
        ([A.assign(model="a"), B.assign(model="b")], None),
        ([dataset(A), dataset(B)], NAMES),
        ({"a": dataset(A), "b": B.to_dict("records")}, None),
        ([A, B.to_dict("records")], NAMES),
    ],
)
def test_each_of_several_tables_is_a_model(sources, columns):
    frame = read_results(sources, columns).frame

    assert frame["model"].tolist() == ["a"] * 3 + ["b"] * 3
    assert frame["score"].tolist() == [1, 0, 1, 0, 0, 1]


def test_files_and_tables_may_be_mixed(written):
    for sources, columns in (
        ({"a": A, "b": written / "b.parquet"}, None),
        ([str(written / "a.csv"), B], NAMES),
        ({"a": written / "a.csv", "b": written / "b.parquet"}, None),
    ):
        frame = read_results(sources, columns).frame

        assert frame["model"].unique().tolist() == ["a", "b"]
        assert frame["score"].tolist() == [1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("sources", "columns", "error", "message"),
    [
        ([A, B], None, DataError, "results 1: no column contains the model.*pass `names`, one per"),
        ([A, B], ResultColumns(names=("a",)), DataError, "gives a for 2 files or tables"),
        ({"a": A, "b": B}, NAMES, DataError, "have the names a, b already; omit `names`"),
        ({"a": A, "b": B[:0]}, None, DataError, "^b contains no rows"),
        ({}, None, DataError, "no results are given; the mapping is empty"),
        (
            {"a": dataset(A), "b": dataset(B[["correct"]])},
            None,
            ColumnNotFoundError,
            "^b: no column identifies the items.*name it by `item`",
        ),
        (
            {"a": A, "b": TEXTS},
            None,
            DataError,
            r"numbers in a and texts in b.*convert them to one type, such as frame\['item'\]",
        ),
        (
            {"a": A.astype({"item": object}).replace({"item": {3: "1"}})},
            None,
            RecordError,
            "column 'item' contains the id 1 both as a number and as a text",
        ),
        (
            {"a": pd.concat([A, B]), "b": B},
            None,
            DataError,
            "a: item '1' of 'a' occurs more than once .*by `repeat`",
        ),
        (datasets.DatasetDict(a=dataset(A)), None, DataError, "several splits, a: give one"),
    ],
)
def test_ambiguous_or_invalid_tables_are_rejected(sources, columns, error, message):
    with pytest.raises(error, match=message):
        read_results(sources, columns)


def test_logs_and_samples_df_of_inspect_ai_give_the_same_rows_as_files(data_files):
    inspect_log = pytest.importorskip("inspect_ai.log")
    analysis = pytest.importorskip("inspect_ai.analysis")
    files = [data_files / "forms/inspect_ai/2-epoch" / f"{one}.eval" for one in ("alpha", "beta")]
    logs = [inspect_log.read_eval_log(str(file)) for file in files]
    columns = ["model", "item", "repeat", "metric", "score", "question"]
    expected = read_results(files).frame[columns]

    pd.testing.assert_frame_equal(read_results(logs).frame[columns], expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inspect_ai uses what pandas deprecates.
        samples = analysis.samples_df([str(file) for file in files], quiet=True)
    table = read_results(samples).frame
    assert sorted(table["model"].unique()) == ["alpha", "beta"]
    keys, lists = ["item", "repeat", "metric", "score"], []
    for frame in (table, expected):
        known = frame.loc[frame["score"].notna(), keys].astype({"metric": str})
        lists.append(sorted(known.itertuples(index=False, name=None)))
    assert lists[0] == lists[1]
    header = inspect_log.read_eval_log(str(files[0]), header_only=True)
    with pytest.raises(DataError, match="results 1 is a log of inspect_ai without samples"):
        read_results([header])
