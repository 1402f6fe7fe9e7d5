"""Result files of other tools, each written here in the tool's own layout."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import LONGEST_LINE
from surface_consistency.results import archives, layouts
from surface_consistency.results.archives import packed_rows
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.results.layouts import flat_rows
from surface_consistency.results.rows import ROLES
from surface_consistency.results.samples import reject_mixed_tasks

QUERY = "What is the capital of Peru?"


def rows_of(path):
    return [flat.row() for flat in flat_rows(packed_rows(path), path, [])[1]]


def written(path, content, **how):
    path.write_text(json.dumps(content, **how))
    return path


SAMPLE = {
    "id": "q1",
    "epoch": 1,
    "input": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": QUERY}]},
    ],
    "target": "Lima",
    "output": {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "Lima"}, "stop_reason": "stop"}],
        "completion": "Lima",
    },
    "scores": {
        "graded": {"value": "P", "answer": "Lima"},
        "parts": {"value": {"exact": 1.0, "length": 4}},
    },
    "metadata": {"topic": "cap"},
}
HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "forms", "model": "mockllm/alpha"},
    "results": {"total_samples": 1},
}


def archive(path, members):
    """Write a log of inspect_ai in its archive form, deflated as before its members were zstd."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            file.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return path


def one_sample(content):
    """The members of an archive of one sample."""
    return {"header.json": HEADER, "samples/a.json": content}


INSPECT_ROW = {
    **{"topic": "cap", "graded": 0.5, "parts.exact": 1.0, "parts.length": 4, "id": "q1"},
    **{"repeat": 0, "question": None, "prompt": QUERY, "prediction": "Lima", "target": "Lima"},
    **{"task": "forms", "model": "mockllm/alpha", "error": None, "doubt": None},
}


@pytest.mark.parametrize("name", ["log.eval", "renamed.zip", "log.json", "compact.json"])
def test_logs_of_inspect_ai_are_detected_by_their_content(tmp_path, name):
    if name.endswith("json"):
        indent = None if name == "compact.json" else 2
        path = written(tmp_path / name, {**HEADER, "samples": [SAMPLE]}, indent=indent)
    else:
        path = archive(tmp_path / name, {"samples/q1_epoch_1.json": SAMPLE, "header.json": HEADER})

    assert rows_of(path) == [INSPECT_ROW]


@pytest.mark.parametrize(
    ("change", "prompt", "prediction"),
    [
        ({"input": []}, None, "Lima"),
        ({"input": QUERY, "output": {"choices": [], "completion": ""}}, QUERY, ""),
        ({"error": {"message": "provider down"}, "scores": {}}, QUERY, None),
    ],
    ids=["empty input", "no choice", "failed"],
)
def test_samples_of_inspect_ai_without_some_fields_are_read(tmp_path, change, prompt, prediction):
    (row,) = rows_of(written(tmp_path / "log.json", {**HEADER, "samples": [SAMPLE | change]}))

    assert (row["prompt"], row["prediction"]) == (prompt, prediction)


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ({"_journal/start.json": {}}, DataError, r"log.eval: not a finished log of inspect_ai"),
        ({"mimetype": {}}, DataError, r"log.eval is a zip archive, but neither .* unpack it"),
        ({"header.json": HEADER}, DataError, r"log.eval is a log of inspect_ai without samples"),
        (
            one_sample(b'{"id": '),
            RecordError,
            r"\(samples/a.json\): not JSON: .*copy the log again",
        ),
        (
            one_sample([]),
            RecordError,
            r"log.eval \(samples/a.json\): expected a JSON object, got \[\]",
        ),
        (one_sample({"id": 1, "input": "x"}), RecordError, r":1: not in .* \(no field 'output'\)"),
    ],
    ids=["unfinished", "a workbook", "no samples", "cut off", "a list", "no output"],
)
def test_invalid_logs_of_inspect_ai_raise_an_error_with_the_path(tmp_path, members, error, message):
    with pytest.raises(error, match=message):
        rows_of(archive(tmp_path / "log.eval", members))


def test_damaged_archives_raise_an_error_with_the_path(tmp_path):
    path = archive(tmp_path / "log.eval", one_sample(SAMPLE))
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[whole.index(b"samples/a.json") + 40] ^= 255

    path.write_bytes(flipped)
    with pytest.raises(RecordError, match=r"log.eval \(samples/a.json\): cannot be unpacked"):
        rows_of(path)
    path.write_bytes(whole[:-30])
    with pytest.raises(DataError, match=r"log.eval: not a readable log"):
        rows_of(path)


def test_archive_member_above_the_limit_of_size_is_rejected_unread(tmp_path, monkeypatch):
    """A zip bomb: a few hundred kilobytes that unpack to gigabytes of records."""
    text = b'{"id": "' + b"0" * (LONGEST_LINE + 1) + b'"}'
    path = archive(tmp_path / "log.eval", one_sample(text))
    assert path.stat().st_size < 200_000
    with pytest.raises(
        RecordError, match=r"\(samples/a.json\): 16,777,\d+ bytes after unpacking are"
    ):
        rows_of(path)

    members = one_sample(SAMPLE)
    path = archive(tmp_path / "log.eval", members)
    longest = max(len(json.dumps(value)) for value in members.values())
    monkeypatch.setattr(archives, "LONGEST_LINE", longest)
    assert len(rows_of(path)) == 1
    monkeypatch.setattr(archives, "LONGEST_LINE", longest - 1)
    with pytest.raises(RecordError, match="bytes after unpacking are more than"):
        rows_of(path)


def promptfoo(label, reason):
    """A result of promptfoo; `reason` is its failure reason, or 0."""
    case = {"vars": {"question": QUERY}, "metadata": {"topic": "cap"}}
    return {
        **{"testIdx": 0, "testCase": case, "vars": case["vars"]},
        **{"prompt": {"raw": f"Q: {QUERY}", "label": "Q"}, "response": {"output": "Lima"}},
        **{"provider": {"id": "openai:m", "label": label}, "namedScores": {"brevity": 0.5}},
        **{"success": reason == 0, "score": 1 - reason // 2, "failureReason": reason},
        "error": "500" if reason else None,
    }


EEE = {
    **{"schema_version": "0.3.0", "evaluation_id": "e", "model_id": "our/alpha"},
    **{"evaluation_name": "forms", "sample_id": "q1", "metadata": {"topic": "cap"}},
    "input": {"raw": QUERY, "formatted": f"Q: {QUERY}", "reference": ["Lima"]},
    **{"output": {"raw": ["Lima"]}, "evaluation": {"score": 1.0, "is_correct": True}},
}
RESULTS = [promptfoo("alpha", 0), promptfoo("", 2)]
EXPECTED_ROWS = {
    "promptfoo": (
        {"evalId": "eval-x", "results": {"version": 3, "results": RESULTS}},
        [
            {"id": 0, "question": QUERY, "model": "alpha", "success": True, "prediction": "Lima"},
            {"id": 0, "question": QUERY, "model": "openai:m", "error": "500", "prediction": None},
        ],
    ),
    "Every Eval Ever": (
        [EEE, EEE | {"error": "timeout"}],
        [
            {"id": "q1", "question": QUERY, "prediction": "Lima", "score": 1.0, "topic": "cap"},
            {"id": "q1", "question": QUERY, "prediction": None, "model": "our/alpha"},
        ],
    ),
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("tool", EXPECTED_ROWS)
def test_results_of_a_tool_are_flattened_to_rows(tmp_path, tool, indent):
    content, expected = EXPECTED_ROWS[tool]
    path = written(tmp_path / "results.json", content, indent=indent)

    rows = rows_of(path)

    pairs = zip(rows, expected, strict=True)
    assert [{name: row[name] for name in wanted} for row, wanted in pairs] == expected


@pytest.mark.parametrize(
    "row",
    [
        {"results": "good", "id": 1},
        {"details": "long", "id": 1},
        {"0": "a", "1": "b", "id": 1},
        {"spec": "x", "id": 1},
        {"id": "q1", "prediction": "x"},
    ],
)
def test_plain_table_with_a_column_name_of_a_tool_is_read_as_a_table(tmp_path, row):
    for indent in (None, 1):
        assert rows_of(written(tmp_path / "p.json", row, indent=indent)) == [row]


MEANS = {"results": {"forms": {"acc,none": 0.5}}, "versions": {}}
HALF = {"evalId": "x", "results": {"results": [{"testIdx": 0}]}}
SEVERAL = (json.dumps({"id": "q1"}, indent=1) + "\n") * 2


@pytest.mark.parametrize(
    ("error", "content", "message"),
    [
        (DataError, MEANS, "without answers; use the samples, such as samples_<task>_"),
        (DataError, MEANS | {"config_general": {}}, r"or details_<task>_\*.parquet of l"),
        (DataError, HEADER, "is a log of inspect_ai without samples"),
        (RecordError, HALF, r"r.json:1: not in the layout of promptfoo \(no field"),
        (RecordError, SEVERAL, r"r.jsonl:4: not JSON: Extra data .*one per line"),
    ],
    ids=["lm-eval", "lighteval", "inspect_ai", "promptfoo", "several objects"],
)
def test_files_without_samples_and_broken_layouts_are_rejected(tmp_path, error, content, message):
    path = tmp_path / ("r.jsonl" if content == SEVERAL else "r.json")
    path.write_text(content if content == SEVERAL else json.dumps(content))

    with pytest.raises(error, match=message):
        rows_of(path)


def test_samples_of_several_tasks_are_rejected_with_their_names(tmp_path):
    date = "2026-11-22T19-06-44.917256.jsonl"
    one, other = tmp_path / f"samples_redirectqa_{date}", tmp_path / f"samples_redirectqa_mc_{date}"

    reject_mixed_tasks([one, tmp_path / "b" / one.name, tmp_path / "mine.jsonl"])
    with pytest.raises(DataError, match=r"of 2 tasks .*: redirectqa \(.*, redirectqa_mc \(.*TASK_"):
        reject_mixed_tasks([one, other])


def test_no_layout_contains_all_columns_of_an_earlier_one():
    """An entry after one that requires a subset of its columns would never be reached."""
    sets = [set(layout.columns.split()) for layout in layouts.LAYOUTS]

    assert not [
        (one, other) for n, one in enumerate(sets) for other in sets[n + 1 :] if one <= other
    ]
    for layout in layouts.LAYOUTS:
        names = {field.partition("=")[0] for field in layout.parts.split()}
        assert names <= set(ROLES), layout.tool


def test_documented_layouts_are_those_of_the_code():
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "results.md"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \|", page.read_text("utf-8"), re.M)

    own = [(one.tool, one.versions, one.columns) for one in layouts.LAYOUTS if one.versions]
    assert rows == own


def test_prompteval_scores_are_read_from_its_files(tmp_path):
    rng = np.random.default_rng(1)
    seen = {}
    for subject, n_items in (("abstract_algebra", 12), ("formal_logic", 15)):
        for name in ("google_flan_t5_xl", "tiiuae_falcon_40b"):
            right = rng.integers(0, 2, size=(7, n_items))
            seen[subject, name] = right
            path = tmp_path / "prompteval" / subject / f"{name}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(right, columns=[f"example_{n}" for n in range(n_items)]).to_parquet(path)

    frame = read_results(tmp_path / "prompteval").frame

    cells = frame.set_index(["task", "model", "form", "item"])["score"]
    for (subject, name), right in seen.items():
        part = cells[subject, name].unstack("form")
        columns = [f"template {n}" for n in range(7)]
        names = [f"example_{n}" for n in range(right.shape[1])]
        np.testing.assert_array_equal(part.loc[names, columns].to_numpy().T, right)


def test_table_with_example_columns_is_not_read_as_prompteval(tmp_path):
    table = pd.DataFrame({"item": ["a"], "model": ["m"], "correct": [1]})
    table.assign(example_0="x", example_1="y").to_csv(tmp_path / "own.csv", index=False)

    assert read_results(tmp_path / "own.csv").frame["score"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("shown", "score"),
    [("True", 1), ("0.35", 0.35), ("-0.25", -0.25), ("1e-05", 1e-05), ("-3.5E+1", -35), ("2", 2)],
)
def test_every_number_of_simple_evals_is_a_score(tmp_path, shown, score):
    page = f"<p>Correct Answer: Lima</p><p>Extracted Answer: Lima</p><p>Score: {shown}</p>"
    turns = [{"role": "user", "content": QUERY}, {"role": "assistant", "content": "Lima"}]
    path = written(tmp_path / "a_b_allresults.json", {"htmls": [page], "convos": [turns]})

    assert read_results(path).frame["score"].tolist() == [score]


@pytest.mark.parametrize("shown", ["None", "nan"])
def test_simple_evals_sample_without_a_score_is_missing_and_others_keep_theirs(tmp_path, shown):
    pages = [f"<p>Score: {one}</p>" for one in (shown, "-1.5")]
    turns = [[{"role": "user", "content": f"Q{n}"}] for n in range(2)]
    path = written(tmp_path / "a_b_allresults.json", {"htmls": pages, "convos": turns})

    np.testing.assert_array_equal(read_results(path).frame["score"], [np.nan, -1.5])


def test_metrics_with_equal_names_are_numbered(tmp_path):
    """For example, two GEval metrics of deepeval with the same name."""
    metrics = [{"name": "Correct", "score": 1.0}, {"name": "Correct", "score": 0.0}]
    metrics.append({"name": "Brief", "score": 0.5})
    case = {"input": QUERY, "actualOutput": "Lima", "success": False, "metricsData": metrics}
    path = written(tmp_path / "run.json", {"testFile": None, "testCases": [case]})
    frame = read_results(path).frame

    scores = dict(zip(frame["metric"], frame["score"], strict=True))
    assert scores == {"success": 0, "Correct (1)": 1, "Correct (2)": 0, "Brief": 0.5}
    with pytest.raises(DataError, match=r"no metric 'Correct'; name one of .* Correct \(1\), "):
        read_results(path, ResultColumns(metrics=["Correct"]))


def test_deepeval_metric_whose_low_scores_succeed_is_lower_better():
    """Success is score <= threshold for Bias and similar metrics, otherwise score >= threshold."""
    rows = {"gentle": (0.1, 0.8), "rude": (0.9, 0.7)}
    runs = {
        model: [{"testFile": None, "testCases": [
            {
                **{"input": f"Q{n}", "actualOutput": "A", "success": True},
                "metricsData": [
                    {"name": "Rudeness", "score": rude + n % 3 / 40 * rude, "threshold": 0.5,
                     "success": rude <= 0.5},
                    {"name": "Tone", "score": tone + n % 3 / 40 * rude, "threshold": 0.5,
                     "success": tone >= 0.5},
                    {"name": "Even", "score": 0.5, "threshold": 0.5, "success": True},
                    {"name": "Mixed", "score": n % 2, "threshold": 0.5, "success": True},
                ],
            }
            for n in range(30)
        ]}]
        for model, (rude, tone) in rows.items()
    }  # fmt: skip
    compared = compare_results(runs)

    found = {name: one.differences["conclusion"].tolist() for name, one in compared.metrics.items()}
    assert (found["Rudeness"], found["Tone"]) == (["worse"], ["worse"])
    assert [note.partition(";")[0] for note in compared.notes] == [
        "lower scores of Rudeness are better, by the files"
    ]
