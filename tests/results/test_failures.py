"""Failed requests and failed scorers in files of each tool, each written in the tool's layout."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import accuracy
from surface_consistency.analysis.settings import ComparisonSettings
from surface_consistency.errors import DataError, UnscoredWarning
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.failures import ANSWERS, MARKS
from surface_consistency.results.frame import read_results
from surface_consistency.results.predictions import answers_only, read_predictions
from tests.results.kinds import written

UNREAD = "Could not extract JSON from llm-rubric response"
MALFORMED = "llm-rubric produced malformed response - output must be string or object"


def promptfoo(**change):
    result = {
        **{"testIdx": 0, "vars": {"question": "Who?"}, "prompt": {"raw": "Who?"}},
        **{"provider": {"id": "m"}, "response": {"output": "I"}, "success": False, "score": 0},
        **{"namedScores": {"tone": 0}, "error": "no", "failureReason": 1},
    }
    return {"evalId": "e", "results": {"results": [result | change]}}


def component(**fields):
    good = {"pass": True, "score": 1, "reason": "All assertions passed"}
    return {"gradingResult": {"reason": "no", "componentResults": [good, fields]}}


def deepeval(*metrics):
    case = {"input": "Who?", "actualOutput": "I", "success": False}
    return {"testFile": None, "testCases": [case | {"metricsData": list(metrics)}]}


def openai(kind, **data):
    spec = {"spec": {"completion_fns": ["m"], "eval_name": "t"}}
    sampling = {"prompt": "Who?", "sampled": ["I"]}
    events = [("sampling", sampling), (kind, data)]
    return [spec] + [
        {"run_id": "r", "event_id": n, "sample_id": "q1", "type": name, "data": one}
        for n, (name, one) in enumerate(events)
    ]


def nemo(**details):
    row = {"problem_idx": 0, "reward": 0.0, "repeat": 0, "model_response": "I"}
    return [row | {"scoring_details": details}]


def vlm(**change):
    row = {"index": 0, "question": "Who?", "answer": "me", "prediction": "I", "hit": 0}
    return [row | {"log": "Match Log: A. "} | change]


def mt_bench(score):
    row = {"question_id": 81, "model": "m", "judge": ["gpt-4", "single-v1"], "turn": 1}
    return [row | {"user_prompt": "p", "judgment": "j", "score": score, "tstamp": 1.0}]


def opencompass(letter):
    return {"details": {"0": {"prediction": "I", "correct": False, "grade_letter": letter}}}


SCORER_ERROR = {"name": "G", "score": None, "success": False, "error": "judge down"}
LOW_SCORE = {"name": "E", "score": 0.2, "success": False, "error": None}
FAILED = {
    "promptfoo, a component": promptfoo(**component(metadata={"graderError": True})),
    "promptfoo, the result": promptfoo(gradingResult={"metadata": {"graderError": True}}),
    "promptfoo, no JSON": promptfoo(gradingResult={"reason": UNREAD}),
    "promptfoo, malformed": promptfoo(**component(reason=MALFORMED)),
    "OpenAI evals, choice": openai("metrics", choice="__invalid__", score=0.0),
    "OpenAI evals, picked": openai("match", correct=False, picked="__invalid__"),
    "OpenAI evals, invalid_choice": openai("metrics", invalid_choice=True, score=0.0),
    "NeMo Evaluator": nemo(parse_error=True),
    "NeMo Evaluator, message": nemo(parse_error="no JSON in the reply"),
    "NeMo Evaluator, error": nemo(error="judge timed out"),
    "NeMo Evaluator, judge_error": nemo(judge_error="429"),
    "NeMo Evaluator, judge": nemo(judge={"score": 0, "parse_error": True}),
    "NeMo Evaluator, no judge": nemo(judge={"error": "no judge_client configured"}),
    "VLMEvalKit, judge": vlm(log="Match Log: Failed to obtain answer via API. "),
    "VLMEvalKit, chance": vlm(hit=1, log="Failed to predict, thus randomly generate one. "),
    "FastChat": mt_bench(-1),
    "OpenCompass": opencompass("unknown"),
    "deepeval, several": deepeval(SCORER_ERROR, LOW_SCORE),
    "deepeval, no score": deepeval(SCORER_ERROR | {"error": None}, LOW_SCORE),
}
SCORED = {
    "promptfoo": (promptfoo(**component(reason="is not polite")), "success"),
    "OpenAI evals": (openai("metrics", choice="No", score=0.0), "score"),
    "NeMo Evaluator": (nemo(error_category="turn_budget_exhausted"), "reward"),
    "VLMEvalKit": (vlm(), "hit"),
    "FastChat": (mt_bench(1), "score"),
    "OpenCompass": (opencompass("B"), "correct"),
    "deepeval": (deepeval(LOW_SCORE), "success"),
    "deepeval, flaky": (deepeval(LOW_SCORE, SCORER_ERROR | {"flaky": True}), "success"),
}
REQUESTS = {
    "promptfoo": (promptfoo(response=None, failureReason=None), "no"),
    "promptfoo, graded": (promptfoo(response={"error": "429"}, failureReason=0, error=None), "429"),
    "promptfoo, marked": (promptfoo(failureReason=2), "no"),
    "OpenAI evals": (openai("error", type="APIError", message="overloaded"), "overloaded"),
    "NeMo Evaluator": (nemo(error_category="infra_error"), "request failed: error_category is in"),
    "VLMEvalKit": (vlm(prediction="Failed to obtain answer via API. 429"), "request failed: Fail"),
}


def read(content):
    """Read rows or the one object of a file."""
    return read_results(content if isinstance(content, list) else [content]).frame


@pytest.mark.parametrize("name", FAILED)
def test_answer_with_a_failed_scorer_is_kept_without_a_score(name):
    frame = read(FAILED[name])
    failed = frame[frame["metric"] != "E"]

    assert failed["score"].isna().all()
    assert failed["error"].str.startswith("scorer failed: ").all()
    assert frame.loc[frame["metric"] == "E", "score"].tolist() == [0.2] * name.startswith("deep")
    if not name.startswith(("FastChat", "OpenAI")):
        assert (frame["prediction"] == "I").all()


@pytest.mark.parametrize("name", SCORED)
def test_scored_answer_keeps_its_score(name):
    content, metric = SCORED[name]
    row = read(content).set_index("metric").loc[metric]

    assert row["score"] == (1.0 if name == "FastChat" else 0.0)
    assert row["error"] is None


@pytest.mark.parametrize("name", REQUESTS)
def test_failed_request_has_neither_answer_nor_score(name):
    content, error = REQUESTS[name]
    frame = read(content)

    assert frame["score"].isna().all()
    assert frame["prediction"].isna().all()
    assert all(text.startswith(error) for text in frame["error"])


def test_every_mark_of_a_failure_is_tested_and_documented():
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "results.md"
    _, _, table = page.read_text("utf-8").partition("| tool | mark of a failure |")
    rows = [row.split("|")[1:3] for row in table.partition("\n\n")[0].splitlines()[2:]]
    tools = {name.partition(",")[0] for name in (*FAILED, *REQUESTS)}

    for mark in MARKS:
        assert mark.tool in tools
        field = mark.path.rpartition(".")[2]
        assert any(tool.strip() == mark.tool and f"`{field}`" in text for tool, text in rows)
    for text, tool in ANSWERS.items():
        assert any(name.strip() == tool and f"`{text}`" in row for name, row in rows)


ROWS = [
    *({"item": n, "prediction": "town", "target": "town", "correct": 1} for n in range(8)),
    {"item": 8, "prediction": "$ERROR$", "target": "town", "correct": 0},
    {"item": 9, "prediction": "No response (bad request).", "target": "town", "correct": 0},
    {"item": 10, "prediction": "nan", "target": "town", "correct": 0},
    {"item": 11, "prediction": "nan", "target": "NaN", "correct": 1},
    {"item": 12, "prediction": "nancy", "target": "town", "correct": 0},
]
NAMES = ("x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz")


@pytest.mark.parametrize("name", NAMES)
def test_failed_answers_of_any_table_are_missing(tmp_path, name):
    path = written(tmp_path / name, ROWS)
    compared = compare_results([path])
    (metric,) = compared.metrics.values()

    assert metric.models["mean"].tolist() == [pytest.approx(9 / 10)]
    (sentence,) = compared.failed_answers["correct"]
    assert re.fullmatch(
        r"3 of 13 answers of x.* failed \(2 failed requests, 1 missing answer\) and have no score",
        sentence,
    )
    by_rule = compare_results([path], settings=ComparisonSettings(rule="popqa")).metrics["popqa"]
    assert by_rule.models["mean"].tolist() == [pytest.approx(9 / 10)]


def test_failed_answers_to_the_questions_of_a_study_are_missing(tmp_path):
    path = written(tmp_path / "p.jsonl", [{"id": row["item"], **row} for row in ROWS[7:11]])
    texts = read_predictions(path).texts

    assert texts == ["town", None, None, None]
    with pytest.warns(UnscoredWarning, match="3 of 4 prompts have no prediction; .* to wrong"):
        assert answers_only(texts, None, read_predictions(path).settings) == texts


def test_failures_count_as_incorrect_or_raise_an_error_as_missing_states(tmp_path):
    path = written(tmp_path / "x.jsonl", ROWS)

    wrong = compare_results([path], settings=ComparisonSettings(missing="wrong"))
    assert wrong.metrics["correct"].models["mean"].tolist() == [pytest.approx(9 / 13)]
    assert wrong.failed_answers["correct"][0].endswith("and count as incorrect")
    with pytest.raises(DataError, match=r"`missing=raise`: 3 of 13 answers of x failed \(2 fail"):
        compare_results([path], settings=ComparisonSettings(missing="raise"))


def test_answers_whose_scorer_failed_are_scored_by_a_rule():
    case = {"input": "Who?", "actualOutput": "I", "expectedOutput": "I", "success": False}
    cases = [case | {"input": f"Who {n}?", "metricsData": [SCORER_ERROR]} for n in range(4)]
    run = {"testFile": None, "testCases": cases}

    compared = compare_results({"m": [run]}, settings=ComparisonSettings(rule="exact"))
    assert compared.metrics["exact"].models["mean"].tolist() == [1.0]
    assert compared.failed_answers == {}


def test_empty_values_of_an_error_column_are_read_as_none():
    cells = ["", "None", "null", "NaN", "false", "0", "[]", "{}", None, "timeout", "500"]
    frame = read([{"item": n, "correct": 1, "error": cell} for n, cell in enumerate(cells)])

    assert frame["error"].tolist() == [None] * 9 + ["timeout", "500"]
    assert frame["score"].notna().tolist() == [True] * 9 + [False] * 2


NOTHING = ("nan", "NaN", "<NA>", "NaT")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", NOTHING)
def test_texts_for_missing_cells_are_answers_if_one_is_correct(tmp_path, name, text):
    rows = [row | {"prediction": text} if row["prediction"] == "nan" else row for row in ROWS[:11]]
    rows += [{"item": 11, "prediction": text, "target": "bread", "correct": 1}]
    path = written(tmp_path / name, rows)

    frame = read_results(path).frame
    assert frame["score"].isna().tolist() == [False] * 8 + [True] * 2 + [False] * 2
    (sentence,) = compare_results([path]).failed_answers["correct"]
    assert "missing answer" not in sentence
    (sentence,) = compare_results([written(tmp_path / name, rows[:-1])]).failed_answers["correct"]
    assert "1 missing answer)" in sentence


@pytest.mark.parametrize("text", NOTHING)
def test_column_of_texts_for_missing_cells_is_not_read_as_answers(tmp_path, text):
    rows = [{"item": n, "prediction": text, "target": "x", "correct": n % 2} for n in range(20)]
    compared = compare_results([written(tmp_path / "x.csv", rows)])

    assert compared.metrics["correct"].models["mean"].tolist() == [0.5]
    assert compared.failed_answers == {}
    assert read_results(rows).frame["prediction"].isna().all()
    with pytest.raises(DataError, match="no row contains an answer and references"):
        compare_results(rows, settings=ComparisonSettings(rule="exact"))


@pytest.mark.parametrize("text", ["None", "null", "NA", "Nan"])
def test_other_texts_for_missing_values_are_answers(text):
    frame = read(
        [{"item": n, "prediction": one, "correct": 0} for n, one in enumerate([text, "a"])]
    )

    assert frame["score"].tolist() == [0, 0]
    assert frame["prediction"].tolist() == [text, "a"]


@pytest.mark.parametrize("kind", ["x.csv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("cells", [[0.25, 0, 3.5], [2, 0, 17]])
def test_numeric_error_measure_is_not_a_failure(tmp_path, kind, cells):
    path = written(
        tmp_path / kind, [{"item": n, "correct": 1, "error": c} for n, c in enumerate(cells)]
    )

    frame = read_results(path).frame
    assert frame["error"].isna().all()
    assert frame["score"].tolist() == [1, 1, 1]


def test_error_column_named_as_score_is_not_a_failure():
    rows = [{"item": n, "error": n % 2} for n in range(4)]

    assert read_results(rows, ResultColumns(score="error")).frame["score"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kind", ["x.csv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize(
    ("cells", "messages"),
    [
        (["500", None, "429"], ["500", None, "429"]),
        ([1, 0, 0], ["1", None, None]),
        ([True, False, None], ["True", None, None]),
        (["timeout", "", "None"], ["timeout", None, None]),
    ],
)
@pytest.mark.parametrize(
    "column",
    [
        *("error", "error_message", "errorMessage", "error_msg", "exception"),
        *("judge_error", "parse_error", "Grader Error"),
    ],
)
def test_values_of_error_columns_are_failures(tmp_path, kind, column, cells, messages):
    is_scorer = column in ("judge_error", "parse_error", "Grader Error")
    answers = ["a" if is_scorer or m is None else "" for m in messages]
    rows = [
        {"item": n, "correct": 1, "prediction": answer, column: cell}
        for n, (answer, cell) in enumerate(zip(answers, cells, strict=True))
    ]

    frame = read_results(written(tmp_path / kind, rows)).frame

    start = "scorer failed: " if is_scorer else ""
    assert frame["error"].tolist() == [m and f"{start}{m}" for m in messages]
    assert frame["score"].isna().tolist() == [m is not None for m in messages]
    assert frame["prediction"].fillna("").tolist() == answers


@pytest.mark.parametrize("kind", ["x.csv", "x.jsonl", "x.parquet"])
@pytest.mark.parametrize("cells", [[1, 0, 1, 0], [True, False, True, False]])
def test_error_column_equal_to_1_minus_score_is_a_measure_unless_named(tmp_path, kind, cells):
    rows = [{"item": n, "correct": int(not cell), "error": cell} for n, cell in enumerate(cells)]
    path = written(tmp_path / kind, rows)

    results = read_results(path)
    assert results.frame["score"].tolist() == [0, 1, 0, 1]
    assert "column 'error' is 1 for each incorrect answer and 0 for the others" in results.notes[0]
    named = read_results(path, ResultColumns(error="error"))
    assert named.frame["score"].isna().tolist() == [True, False, True, False]
    empty = [row | {"correct": None if row["error"] else 1} for row in rows]
    assert read_results(empty).frame["score"].isna().tolist() == [True, False, True, False]


def test_file_with_only_failed_requests_has_no_scores():
    rows = [{"item": n, "correct": 0, "error": 1} for n in range(4)]

    assert read_results(rows).frame["score"].isna().all()


def test_a_row_with_an_answer_and_an_error_keeps_its_score_and_is_reported():
    """An exception of generated code is not a failed request."""
    rows = [
        {"item": n, "model": m, "correct": int(n % k > 0), "prediction": "SELECT 1"}
        | {"exception": None if n % k else "AssertionError"}
        for m, k in (("a", 5), ("b", 2))
        for n in range(40)
    ]

    results = read_results(rows)
    by_model = results.frame.groupby("model", observed=True)["score"]
    assert by_model.agg(["mean", "size"]).to_numpy().tolist() == [[0.8, 40], [0.5, 40]]
    assert results.notes == (
        "rows: 28 of 80 rows have an answer and an error, such as 'AssertionError'; their "
        "scores count",
    )
    frame = pd.DataFrame(rows)
    assert accuracy(frame).to_frame()["accuracy"].tolist() == [0.8, 0.5]


@pytest.mark.parametrize("end", [1, "tool_calls"])
def test_answer_with_a_finish_reason_that_is_not_a_failure_counts(end):
    rows = [{"item": n, "correct": 1, "prediction": "a", "finish_reason": end} for n in range(3)]

    assert read_results(rows).frame["score"].tolist() == [1, 1, 1]
    blank = [row | {"prediction": ""} for row in rows]
    assert read_results(blank).frame["score"].isna().all()


def test_first_error_of_several_error_columns_is_reported():
    row = {"item": 1, "correct": 1, "error": None, "judge_error": "429", "error_message": ""}

    assert read([row])["error"].tolist() == ["scorer failed: 429"]


def test_scores_of_minus_one_are_reported_and_empty_cells_remove_the_note():
    scores = {"a": [7, 9, 8, 6], "b": [-1, 9, -1, 6]}
    rows = [
        {"item": n, "model": name, "score": score}
        for name, values in scores.items()
        for n, score in enumerate(values)
    ]
    (note,) = read_results(rows).notes
    assert note.startswith("2 scores are -1 and all others are 0 or more; -1 often marks")
    emptied = [row | {"score": None if row["score"] == -1 else row["score"]} for row in rows]
    assert read_results(emptied).notes == ()
    for others in ([-1, 0, 1], [-1, -3, 2]):
        rows = [{"item": n, "score": score} for n, score in enumerate(others)]
        assert not any("-1" in note for note in read_results(rows).notes)


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_turns_of_mt_bench_are_forms_in_any_kind_of_file(tmp_path, name):
    scores = {1: [8, -1, 6], 2: [7, 5, -1]}
    rows = [
        {**mt_bench(score)[0], "question_id": 81 + n, "turn": turn, "judge": "gpt-4"}
        for turn, values in scores.items()
        for n, score in enumerate(values)
    ]
    path = written(tmp_path / name, rows)

    for given in (None, ResultColumns(form="turn")):
        frame = read_results(path, given).frame
        assert frame["form"].tolist() == ["1"] * 3 + ["2"] * 3
        assert frame["score"].fillna(0).tolist() == [8, 0, 6, 7, 5, 0]
        assert frame["model"].unique().tolist() == ["m"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_harness_run_without_scores_is_scored_by_a_rule(tmp_path):
    """lm-evaluation-harness writes these samples itself, with --predict_only."""
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    documents = tmp_path / "documents.jsonl"
    documents.write_text("".join(json.dumps({"q": f"{n}?", "a": "lol"}) + "\n" for n in range(6)))
    (tmp_path / "towns.yaml").write_text(
        "task: towns\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {documents}}}}}\n"
        "test_split: test\noutput_type: generate_until\n"
        'doc_to_text: "{{q}}"\ndoc_to_target: "{{a}}"\n'
        "metric_list: [{metric: exact_match}]\n"
    )
    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    found = lm_eval.simple_evaluate(
        "dummy", tasks=["towns"], task_manager=TaskManager(include_path=str(tmp_path)),
        predict_only=True, log_samples=True, bootstrap_iters=0, evaluation_tracker=tracker,
    )  # fmt: skip
    tracker.save_results_aggregated(
        results={name: one for name, one in found.items() if name != "samples"},
        samples=found["samples"],
    )
    tracker.save_results_samples("towns", found["samples"]["towns"])
    (path,) = (tmp_path / "out").rglob("samples_*.jsonl")

    with pytest.raises(DataError, match=r"score the answers by `rule`.*with predict_only"):
        compare_results([path])
    compared = compare_results([path], settings=ComparisonSettings(rule="exact"))
    assert compared.metrics["exact"].models["mean"].tolist() == [1.0]
