"""Comparisons of flat Parquet files by sums over clusters equal those by rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surface_consistency.analysis import flat
from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.models import result_of
from surface_consistency.analysis.settings import ComparisonSettings, TableSettings
from surface_consistency.errors import DataError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results

N = 600
ITEM = np.arange(N)
TEXT = np.array([f"q{item:04}" for item in ITEM])


def drawn(model, /, **columns):
    rng = np.random.default_rng(model)
    easy = np.random.default_rng(99).random(N)
    correct = (0.6 * easy + 0.4 * rng.random(N) < 0.5 + 0.03 * model).astype(float)
    return pd.DataFrame({"item": ITEM, "passage": ITEM // 10, "correct": correct} | columns)


def with_missing_scores(frame, seed):
    rng = np.random.default_rng(seed)
    return frame.assign(correct=frame["correct"].mask(rng.random(len(frame)) < 0.1))


def with_missing_items(frame, seed):
    return frame[np.random.default_rng(seed).random(len(frame)) < 0.8]


def graded(model, scale=1.0):
    rng = np.random.default_rng(model)
    return drawn(model, correct=scale * rng.random(N))


def shuffled(frame):
    return frame.sample(frac=1.0, random_state=3)


FLAT = {
    "same order": [drawn(0), drawn(1)],
    "one model": [drawn(0)],
    "three models": [drawn(0), drawn(1), drawn(2)],
    "three models, graded": [graded(0), graded(1), graded(2)],
    "another order": [drawn(0), shuffled(drawn(1))],
    "texts": [drawn(0, item=TEXT), drawn(1, item=TEXT)],
    "texts in another order": [drawn(0, item=TEXT), shuffled(drawn(1, item=TEXT))],
    "missing items": [with_missing_items(drawn(0), 1), with_missing_items(drawn(1), 2)],
    "missing texts": [with_missing_items(drawn(k, item=TEXT), k) for k in range(3)],
    "missing items, another order": [
        with_missing_items(drawn(0), 1),
        shuffled(with_missing_items(drawn(1), 2)),
    ],
    "missing scores": [with_missing_scores(drawn(0), 1), with_missing_scores(drawn(1), 2)],
    "sparse numbers": [with_missing_items(drawn(k, item=ITEM**3), k) for k in (0, 1)],
    "graded": [graded(0), graded(1)],
    "beyond 1": [graded(0, 9.0), graded(1, 9.0)],
    "verdicts and grades": [drawn(0), graded(1)],
    "uneven clusters": [drawn(k, passage=(np.sqrt(ITEM) * 2).astype(int)) for k in (0, 1)],
    "named clusters": [drawn(k, passage=[f"p{item % 7}" for item in ITEM]) for k in (0, 1)],
    "two columns of clusters": [drawn(k, topic=ITEM // 100) for k in (0, 1)],
    "items without clusters": [drawn(k).drop(columns="passage") for k in (0, 1)],
    "items and holes without clusters": [
        with_missing_scores(drawn(k), k).drop(columns="passage") for k in (0, 1)
    ],
    "identical": [drawn(0), drawn(0)],
    "own model names": [drawn(k, model=f"m{k}") for k in (0, 1)],
    "questions": [drawn(k, question=np.char.add("What is ", TEXT)) for k in (0, 1)],
    "true and false": [drawn(k).astype({"correct": bool}) for k in (0, 1)],
}
ROWS = {
    "three clusters": [drawn(k, passage=ITEM // 200) for k in (0, 1)],
    "repeats": [pd.concat([drawn(k, epoch=e) for e in (0, 1)]) for k in (0, 1)],
    "several tasks": [drawn(k, task=np.where(ITEM < 200, "a", "b")) for k in (0, 1)],
    "several forms": [drawn(k, form=np.where(ITEM % 2, "a", "b"), item=ITEM // 2) for k in (0, 1)],
    "several metrics": [drawn(k, f1=graded(k)["correct"]) for k in (0, 1)],
    "two models in a file": [pd.concat([drawn(k, model=f"m{k}") for k in (0, 1)])],
    "the same rows twice": [shuffled(pd.concat([drawn(k), drawn(k)])) for k in (0, 1)],
    "a text that is often an incorrect answer": [
        drawn(k, prediction=np.where(drawn(k)["correct"] == 0, "N/A", TEXT)) for k in (0, 1)
    ],
    "one scale of two": [graded(0), graded(1, 9.0)],
    "a column of texts": [
        drawn(k).astype({"correct": int}).astype({"correct": str}) for k in (0, 1)
    ],
}


def written(folder, frames):
    paths = [folder / f"{name}.parquet" for name, _ in zip("abc", frames, strict=False)]
    for path, frame in zip(paths, frames, strict=True):
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=150)
    return paths


@pytest.mark.parametrize("case", FLAT)
def test_sums_give_the_numbers_of_rows(case, tmp_path, monkeypatch):
    monkeypatch.setattr(flat, "_ROWS", 64)
    paths = written(tmp_path, FLAT[case])
    by_rows = compare_results(read_results(paths))
    with monkeypatch.context() as patched:
        patched.setattr("surface_consistency.analysis.compare._by_rows", None)
        by_sums = compare_results(paths)

    for metric, expected in by_rows.metrics.items():
        result = by_sums.metrics[metric]
        for name in ("models", "differences", "groups"):
            ours, theirs = getattr(result, name), getattr(expected, name)
            pd.testing.assert_frame_equal(ours, theirs, rtol=1e-9, atol=1e-12)
        assert result.n_items_of_any == expected.n_items_of_any
        if expected.equality is not None:
            for name in ("statistic", "p_value"):
                assert result.equality[name] == pytest.approx(expected.equality[name], rel=1e-7)
    for name in ("models", "cluster_note", "missing", "notes", "is_same_questions", "tools"):
        assert getattr(by_sums, name) == getattr(by_rows, name), name
    assert by_sums.are_items_clusters == by_rows.are_items_clusters
    if len(paths) > 1:
        assert result_of(by_sums).sentences == result_of(by_rows).sentences
    pd.testing.assert_frame_equal(by_sums.rows, by_rows.rows)


@pytest.mark.parametrize("case", ROWS)
def test_files_that_are_not_flat_are_compared_by_rows(case, tmp_path):
    paths = written(tmp_path, ROWS[case])

    by_rows = compare_results(read_results(paths))

    ours, theirs = (result_of(one).to_dict(all=True) for one in (compare_results(paths), by_rows))
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        {"settings": ComparisonSettings(margin=0.1, baseline="a")},
        {"settings": ComparisonSettings(lower_is_better=("correct",), scale=(0, 2))},
        {"table": TableSettings(test="obuchowski", confidence=0.9)},
        {"columns": ResultColumns(cluster=("item",), names=("x", "y"))},
        {"columns": ResultColumns(cluster=("passage",))},
    ],
)
def test_options_apply_to_sums(options, tmp_path):
    paths = written(tmp_path, FLAT["missing items"])
    results = read_results(paths, options.get("columns"))

    by_sums, by_rows = compare_results(paths, **options), compare_results(results, **options)

    ours, theirs = (one.metrics["correct"].differences for one in (by_sums, by_rows))
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-9, atol=1e-12)
    assert by_sums.cluster_note == by_rows.cluster_note


def test_sums_reject_the_same_files_as_rows(tmp_path):
    """An item with two scores, and two models under one name."""
    again = pd.concat([drawn(0), drawn(1)]).sort_values("passage", kind="stable")
    paths = written(tmp_path, [again, again])
    with pytest.raises(DataError, match="item '0' of 'a' occurs more than once"):
        compare_results(paths)

    two_models = drawn(0, model=np.where(ITEM < 300, "m", "n"))
    paths = written(tmp_path, [two_models, drawn(1, model="k")])
    with pytest.raises(DataError, match="contains 2 models"):
        compare_results(paths, ResultColumns(names=("x", "y")))
