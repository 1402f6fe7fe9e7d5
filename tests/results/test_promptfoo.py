"""Results of promptfoo in each of its formats, with repeats and prompts."""

import csv
import json

import numpy as np
import pytest

from surface_consistency.errors import RecordError
from surface_consistency.results.frame import read_results

CORRECT = {("alpha", "plain"): [1, 1, 0], ("beta", "plain"): [1, 0, 0]}
CORRECT |= {("alpha", "brief"): [0, 1, 0], ("beta", "brief"): [0, 0, 0]}


def results(providers=("alpha", "beta"), prompts=("plain",), repeats=1):
    """Results in the order of promptfoo, which increments `testIdx` in each repeat."""
    pairs = [(provider, prompt) for provider in providers for prompt in prompts]
    tests = [(question, repeat) for question in range(3) for repeat in range(repeats)]
    return [
        {
            **{"promptIdx": place, "testIdx": test, "provider": {"id": provider, "label": ""}},
            **{"prompt": {"raw": f"{prompt}: Q{question}", "label": prompt}},
            **{"vars": {"question": f"Q{question}"}, "response": {"output": f"A{question}"}},
            "testCase": {"vars": {"question": f"Q{question}"}, "assert": [{"type": "contains"}]},
            "success": bool(CORRECT[provider, prompt][question]),
            "score": float(CORRECT[provider, prompt][question]),
            **{"namedScores": {}, "failureReason": 0},
        }
        for test, (question, _) in enumerate(tests)
        for place, (provider, prompt) in enumerate(pairs)
    ]


def old(rows):
    """Results as before promptfoo numbered tests and prompts."""
    kept = ("provider", "prompt", "vars", "response", "success", "score", "namedScores")
    return [{name: row[name] for name in kept} for row in rows]


def written(folder, name, rows):
    path = folder / name
    current = {"evalId": "e", "results": {"version": 3, "results": rows, "prompts": [{}]}}
    earlier = {"results": {"version": 2, "results": old(rows), "stats": {}}, "config": {}}
    match name:
        case "a.json":
            path.write_text(json.dumps(current))
        case "old.json":
            path.write_text(json.dumps(earlier, indent=2))
        case _:
            path.write_text("\n".join(map(json.dumps, rows)))
    return path


def scores(frame):
    """Scores of each model and form by item, the mean of repeats."""
    success = frame[frame["metric"] == "success"]
    groups = success.groupby(["model", "form"], observed=True)
    return {key: part.groupby("item", sort=False)["score"].mean().tolist() for key, part in groups}


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "old.json"])
def test_repeats_are_read_from_each_format(tmp_path, name, repeats):
    frame = read_results(written(tmp_path, name, results(repeats=repeats))).frame

    assert scores(frame) == {(model, ""): CORRECT[model, "plain"] for model in ("alpha", "beta")}
    assert sorted(frame["item"].unique()) == ["0", "1", "2"]
    assert sorted(frame["repeat"].unique()) == list(range(repeats))


def test_tests_with_equal_variables_and_different_assertions_are_different_items(tmp_path):
    rows = results(repeats=2)
    for row in rows:
        row["testCase"]["assert"] = [{"type": "contains", "value": row["testIdx"] % 2}]
    frame = read_results(written(tmp_path, "a.json", rows)).frame

    assert frame["item"].nunique() == 6
    assert (frame["repeat"] == 0).all()


@pytest.mark.parametrize("name", ["a.json", "old.json"])
@pytest.mark.parametrize("providers", [("alpha",), ("alpha", "beta")])
def test_prompts_are_models_for_one_provider_and_forms_for_several(tmp_path, name, providers):
    rows = results(providers, ("plain", "brief"))
    read = read_results(written(tmp_path, name, rows))

    if providers == ("alpha",):
        expected = {(prompt, ""): CORRECT["alpha", prompt] for prompt in ("brief", "plain")}
    else:
        expected = {key: CORRECT[key] for key in sorted(CORRECT)}
    assert scores(read.frame) == expected
    assert "'prompt_label'" in read.notes[0]


def test_prompts_with_equal_labels_are_named_by_their_number(tmp_path):
    rows = results(("alpha",), ("plain", "brief"))
    for row in rows:
        row["prompt"]["label"] = "x"
    frame = read_results(written(tmp_path, "a.json", rows)).frame

    assert list(frame["model"].unique()) == ["x (0)", "x (1)"]


def table(folder, head, cells):
    """A CSV of both providers: the cells of an output by whether it is correct."""
    names = [one for provider in ("alpha", "beta") for one in head(f"[{provider}] Say:\n{{q}}")]
    rows = [
        [
            f"Q{n}",
            *(cell for model in ("alpha", "beta") for cell in cells(CORRECT[model, "plain"][n])),
        ]
        for n in range(3)
    ]
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["question", *names], *rows])
    return folder / "t.csv"


def test_csv_of_promptfoo_gives_the_same_scores_as_its_json(tmp_path):
    def head(name):
        return [name, "Status", "Score", "Named Scores", "Grader Reason", "Comment"]

    def cells(right):
        return ["A", "PASS" if right else "FAIL", f"{right:.2f}", '{"tone":0.5}', "why", ""]

    frame = read_results(table(tmp_path, head, cells)).frame

    assert scores(frame) == {(model, ""): CORRECT[model, "plain"] for model in ("alpha", "beta")}
    assert frame.loc[frame["metric"] == "tone", "score"].tolist() == [0.5] * 6
    assert frame["question"].tolist()[0] == "Q0"


def test_csv_of_old_versions_with_status_score_and_text_in_a_cell_is_read(tmp_path):
    def cells(right):
        return [
            f"[{'PASS' if right else 'FAIL'}] ({right:.2f}, tone: 0.50)\n\nA, b\n\nPass Reason: x"
        ]

    frame = read_results(table(tmp_path, lambda name: [name], cells)).frame

    assert scores(frame) == {(model, ""): CORRECT[model, "plain"] for model in ("alpha", "beta")}
    assert set(frame["prediction"]) == {"A, b"}


def test_failed_output_in_the_csv_has_no_score(tmp_path):
    frame = read_results(
        table(
            tmp_path,
            lambda n: [n, "Status", "Score", "Grader Reason"],
            lambda r: ["500", "ERROR", "0", ""],
        )
    ).frame

    assert np.isnan(frame["score"]).all()
    assert set(frame["error"]) == {"500"}


def test_csv_row_with_an_extra_cell_raises_an_error(tmp_path):
    path = table(
        tmp_path,
        lambda n: [n, "Status", "Score", "Grader Reason"],
        lambda r: ["A", "PASS", "1", ""],
    )
    path.write_text(path.read_text() + "Q9,A,PASS,1,,A,PASS,1,,more\n")

    with pytest.raises(RecordError, match=r"t\.csv:4: 10 cells under 9 columns"):
        read_results(path)


@pytest.mark.parametrize("names", ["Answer,Status,Score", "[a] b,n,Score"])
def test_table_with_column_names_of_promptfoo_is_read_as_a_table(tmp_path, names):
    (tmp_path / "t.csv").write_text(f"id,{names}\nq1,x,1,0\nq2,y,2,1\n")

    assert read_results(tmp_path / "t.csv").frame["score"].tolist() == [0, 1]
