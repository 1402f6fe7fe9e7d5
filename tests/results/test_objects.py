"""One JSON object that contains rows, in the formats of pandas and of tools."""

import json

import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.settings import ComparisonSettings
from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results

ROWS = [{"id": name, "correct": score} for name, score in (("q1", 1), ("q2", 0), ("q3", 1))]
FRAME = pd.DataFrame(ROWS)
BY_ID = FRAME.set_index("id")


def read(folder, content):
    path = folder / "results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_results(path).frame


OBJECTS = {
    **{f"pandas, {one}": FRAME.to_json(orient=one) for one in ("columns", "index", "split")},
    **{f"pandas, {one}": FRAME.to_json(orient=one) for one in ("records", "table")},
    **{f"index, {one}": BY_ID.to_json(orient=one) for one in ("columns", "index", "split")},
    "under a name": {"model": "results", "accuracy": 0.67, "results": ROWS},
    "under details": {"details": [{"id": row["id"], "score": row["correct"]} for row in ROWS]},
    "rows with queries": {"results": [{"query": "Q", **row} for row in ROWS]},
    "scores by item under a name": {"scores": {"q1": 1, "q2": 0, "q3": 1}},
    "below a name": {"data": {"rows": ROWS, "count": 3}, "config": {"seed": 1}},
    "beside other objects": {"results": ROWS, "prompts": [{"text": "a"}]},
    "labels of digits, columns": FRAME.set_index(pd.Index([7, 3, 9])).to_json(),
    "scores by item": {"q1": 1, "q2": 0, "q3": True},
    "objects by item": {name: {"correct": s} for name, s in (("q1", 1), ("q2", 0), ("q3", 1))},
    "SWE-bench, by instance": {
        name: {"patch_exists": True, "resolved": s, "tests_status": {"F": {}}}
        for name, s in (("q1", True), ("q2", False), ("q3", True))
    },
    "SWE-bench, report": {
        **{"total_instances": 3, "completed_ids": ["q1", "q2", "q3"], "resolved_ids": ["q3", "q1"]},
        **{"unresolved_ids": ["q2"], "error_ids": [], "unremoved_images": ["x"]},
    },
    "SWE-bench, of 2024": {
        "generated": ["q1", "q2", "q3"],
        "applied": [],
        "resolved": ["q1", "q3"],
    },
    "evalplus": {
        "date": "2026",
        "eval": {
            name: [{"task_id": name, "solution": "s", "base_status": status, "plus_status": None}]
            for name, status in (("q1", "pass"), ("q2", "fail"), ("q3", "pass"))
        },
    },
}


@pytest.mark.parametrize("content", OBJECTS.values(), ids=OBJECTS)
def test_rows_are_read_from_an_object(tmp_path, content):
    frame = read(tmp_path, content).sort_values("item")

    assert frame["item"].tolist() == ["q1", "q2", "q3"]
    assert frame["score"].tolist() == [1.0, 0.0, 1.0]
    assert set(frame["model"]) == {"results"}


def test_rows_have_the_model_of_their_object(tmp_path):
    frame = read(tmp_path, [{"model": name, "results": ROWS} for name in ("alpha", "beta")])

    assert frame.groupby("model", observed=True)["score"].sum().to_dict() == {"alpha": 2, "beta": 2}


def test_rows_under_equal_labels_are_all_read(tmp_path):
    twice = pd.concat([FRAME.assign(model="alpha"), FRAME.assign(model="beta")])

    assert len(read(tmp_path, twice.to_json(orient="split"))) == 6


@pytest.mark.parametrize(
    "row",
    [
        {"item": "q1", "correct": 1},
        {"id": "q1", "correct": 1, "messages": [{"role": "user"}]},
        {"id": "q1", "correct": 1, "metadata": {"correct": 0}},
    ],
)
def test_object_that_is_a_row_is_read_as_one_row(tmp_path, row):
    assert read(tmp_path, [row])["score"].tolist() == [1.0]


def test_rows_with_lists_of_objects_are_read_as_rows(tmp_path):
    rows = [{**row, "details": [{"id": 1, "correct": 0}]} for row in ROWS]

    assert read(tmp_path, rows)["item"].tolist() == ["q1", "q2", "q3"]


def test_labels_of_digits_are_the_items_if_they_are_not_the_positions(tmp_path):
    scores = FRAME[["correct"]].set_index(pd.Index([7, 3, 9]))

    for orient in ("columns", "index", "split"):
        frame = read(tmp_path, scores.to_json(orient=orient)).sort_values("item")
        assert frame["item"].tolist() == ["3", "7", "9"]
        assert frame["score"].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("orient", ["columns", "index", "split"])
def test_positions_of_rows_are_items_only_if_requested(tmp_path, orient):
    content = FRAME.rename(columns={"id": "nr"}).to_json(orient=orient)

    with pytest.raises(DataError, match=r"name it by `item`. Columns: row_label, nr, correct"):
        read(tmp_path, content)
    for name, items in (("row_label", ["0", "1", "2"]), ("nr", ["q1", "q2", "q3"])):
        path = tmp_path / "results.json"
        frame = read_results(path, ResultColumns(item=(name,))).frame.sort_values("item")
        assert (frame["item"].tolist(), frame["score"].tolist()) == (items, [1.0, 0.0, 1.0])


def test_a_label_without_a_score_is_a_missing_score(tmp_path):
    frame = read(tmp_path, '{"q1": 1, "q2": null, "q3": 0, "q4": NaN}')

    assert frame.set_index("item")["score"].dropna().to_dict() == {"q1": 1.0, "q3": 0.0}
    assert len(frame) == 4


SUMMARIES = {
    "standard errors": {"a": {"score": 1, "score_stderr": 0.1}, "b": {"score": 0}},
    "names of lm-eval": {"mine": {"acc,none": 0.5, "acc_stderr,none": 0.1, "alias": "mine"}},
    "accuracies": {"gpt": {"accuracy": 0.7}, "llama": {"accuracy": 0.5}},
    "percent": {"gpt": {"accuracy": 71.5}, "llama": {"accuracy": 50}},
    "known tasks": {"mmlu": 0.7, "gsm8k": 0.5},
    "known tasks of a model": {"model": "m", "mmlu": {"pass@1": 0.7}},
    "known tasks, 0 and 1": {"mmlu": 1, "gsm8k": 0},
    "known tasks with settings": {"harness|arc:challenge|25": {"em": 1}, "x": {"em": 0}},
    "a mean over tasks": {"x": 1, "y": 0, "macro_avg": 1},
    "a number of items": {"x": {"score": 0.5, "n": 100}, "y": {"score": 0.25, "n": 80}},
    "one run": {"accuracy": 0.7, "n": 100},
    "one run of a model": {"model": "gpt", "task": "mine", "score": 0.7},
    "pandas": pd.DataFrame({"acc": [0.5, 0.2]}, index=["x", "y"]).to_json(orient="split"),
    "results by task": {"results": {"mine": {"em": 0.5}}},
    "Every Eval Ever": {"evaluation_results": [{"score": 0.5}], "model_info": {"id": "m"}},
    "HELM": [{"name": {"name": "em"}, "count": 1, "sum": 0.5, "sum_squared": 0.25, "mean": 0.5}],
}


@pytest.mark.parametrize("content", SUMMARIES.values(), ids=SUMMARIES)
def test_a_summary_is_not_read_as_items(tmp_path, content):
    with pytest.raises(DataError, match=r"use the (file of )?samples"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    "content",
    [
        {"HumanEval/0": {"passed": True}, "HumanEval/1": {"passed": False}},
        {"mmlu_12": 1, "squad-56be": 0},
        {"q1": {"score": 0.5, "num_tokens": 4}, "q2": {"score": 0.25, "num_tokens": 9}},
        {name: {"id": name, "accuracy": 0.5} for name in "ab"},
    ],
)
def test_items_that_resemble_a_summary_are_read_as_items(tmp_path, content):
    assert len(read(tmp_path, content)["item"].unique()) == 2


@pytest.mark.parametrize(
    ("error", "content", "message"),
    [
        (RecordError, FRAME.to_json(orient="values"), r"is one JSON object .*, got \['q1', 1\]"),
        (DataError, {"columns": ["id"], "data": [["q1", 1]]}, "in which no rows are found"),
        (DataError, {"train": ROWS, "test": ROWS}, "fields train, test, in which no rows"),
        (DataError, {"results": ROWS, "data": ROWS}, "fields results, data, in which no rows"),
        (DataError, {"q1": 0.5, "q2": 0.25}, "fields q1, q2, in which no rows"),
        (DataError, {"q1": "Lima", "q2": "Quito"}, "fields q1, q2, in which no rows"),
        (DataError, {"accuracy": 1, "f1": 0}, "fields accuracy, f1, in which no rows"),
        (DataError, {"pass@1": 1, "pass@10": 1}, "fields pass@1, pass@10, in which no rows"),
        (DataError, {"item": {"score": 1}, "score": {"score": 0}}, "in which no rows are found"),
        (DataError, {"id": "run 1", "results": ROWS}, "one row, or contain rows under results"),
        (DataError, {"no_logs": ["q1"], "resolved": ["q2"]}, "so the number of others is not"),
    ],
)
def test_ambiguous_objects_raise_an_error(tmp_path, error, content, message):
    with pytest.raises(error, match=message):
        read(tmp_path, content)


def test_an_empty_patch_of_swe_bench_is_incorrect_and_an_error_has_no_score(tmp_path):
    """As in swebench.harness.reporting, a patch of "" or None is not run, and not resolved."""
    frame = read(
        tmp_path,
        {
            **{"submitted_ids": ["a", "b", "c", "d"], "resolved_ids": ["a"]},
            **{"unresolved_ids": ["b"], "error_ids": ["c"], "empty_patch_ids": ["d"]},
            "incomplete_ids": ["e"],
        },
    ).set_index("item")

    assert frame["score"].dropna().to_dict() == {"a": 1.0, "b": 0.0, "d": 0.0}
    assert frame["prediction"].dropna().to_dict() == {"d": ""}
    assert frame["error"].dropna().to_dict() == {
        "c": "error, as SWE-bench reports",
        "e": "incomplete, as SWE-bench reports",
    }


def test_empty_patches_and_missing_instances_give_the_rate_of_the_leaderboard():
    """The leaderboard divides the number of resolved instances by that of all: 10 of 20."""
    reports = {
        name: [
            {
                **{"resolved_ids": [f"a{n}" for n in range(10)], "error_ids": ["c", "d", "e"]},
                **{"unresolved_ids": [f"b{n}" for n in range(5)], "empty_patch_ids": ["f", "g"]},
            }
        ]
        for name in ("one", "two")
    }

    compared = compare_results(reports, settings=ComparisonSettings(missing="wrong"))
    (models,) = (one.models for one in compared.metrics.values())
    assert models["mean"].tolist() == [0.5, 0.5]
    assert compared.doubts[0].startswith("2 of 20 answers of one are empty, refused, failed or ")


def test_a_solution_passes_the_plus_tests_of_evalplus_with_the_base_ones(tmp_path):
    """As in evalplus.evaluate: base_status == plus_status == PASS."""
    statuses = [("pass", "pass"), ("fail", "pass"), ("pass", "timeout")]
    samples = [{"base_status": base, "plus_status": plus} for base, plus in statuses]
    frame = read(tmp_path, {"eval": {"HumanEval/0": samples}})

    cells = frame.pivot(index="repeat", columns="metric", values="score")
    assert cells[["base", "plus"]].to_numpy().tolist() == [[1, 1], [0, 0], [1, 0]]


def test_human_eval_is_read_by_its_tasks(tmp_path):
    rows = [
        {"task_id": f"HumanEval/{n}", "completion": "c", "result": "passed", "passed": n != 1}
        for n in range(3)
    ]
    frame = read(tmp_path, rows)

    assert frame["item"].tolist() == ["HumanEval/0", "HumanEval/1", "HumanEval/2"]
    assert frame["score"].tolist() == [1.0, 0.0, 1.0]


def test_token_accuracies_of_easyedit_raise_an_error_also_without_its_prompts(tmp_path):
    rows = [{"case_id": 0, "pre": {"rewrite_acc": [0.3]}, "post": {"rewrite_acc": [1.0]}}]

    with pytest.raises(DataError, match="contains accuracies of tokens"):
        read(tmp_path, rows)


def test_labels_of_several_metrics_may_be_missing(tmp_path):
    frame = read(tmp_path, '{"q1": {"em": NaN, "f1": 0.5}, "q2": {"em": 1, "f1": null}}')

    assert frame["item"].unique().tolist() == ["q1", "q2"]
    assert frame["score"].dropna().tolist() == [0.5, 1.0]
