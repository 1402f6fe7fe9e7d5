"""Result files of 16 tools with the same known pairs of scores, and errors for invalid files."""

import itertools
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.results.tables import COLUMNS

COUNTS = (3, 2, 0, 1)


def both(pattern):
    """The files of both models."""
    return [pattern.format(model) for model in ("alpha", "beta")]


def written(folder, **files):
    """Write files of JSON lines; return their paths."""
    paths = [folder / f"{name}.jsonl" for name in files]
    for path, rows in zip(paths, files.values(), strict=True):
        path.write_text("\n".join(map(json.dumps, rows)))
    return paths


LAYOUTS = {
    "inspect .eval": (both("inspect_ai/1-epoch/{}.eval"), "graded", COUNTS),
    "inspect .json": (both("inspect_ai/1-epoch/{}.json"), "graded", COUNTS),
    "inspect, an object": (both("inspect_ai/1-epoch/{}.json"), "parts.exact", COUNTS),
    "inspect, both writings": (["inspect_ai/1-epoch"], "graded", COUNTS),
    "lm-eval choices": (both("lm_eval/0.4.13/{}/samples_forms_mc*"), "acc", COUNTS),
    "lm-eval first": (both("lm_eval/0.4.13/{}/*gen*"), "exact_match,first", COUNTS),
    "lm-eval strict": (both("lm_eval/0.4.13/{}/*gen*"), "exact_match,strict", COUNTS),
    "lm-eval, folders of tasks": (both("lm_eval/0.4.13/{}"), "acc_norm", COUNTS),
    "lm-eval, two ranks": (both("lm_eval/two-ranks-two-filters/{}/*"), "exact_match,none", COUNTS),
    "lm-eval 0.4.0": (both("lm_eval/0.4.0-0.4.2/*{}*"), "exact_match", COUNTS),
    "lm-eval 0.3": (both("lm_eval/0.3/{}/*"), "em", COUNTS),
    "lmms-eval": (both("lmms_eval/{}/*"), "forms_score", COUNTS),
    "lighteval 0.13": (both("lighteval/0.13/{}/*"), "em", COUNTS),
    "lighteval 0.6": (both("lighteval/0.6/{}/*"), "em", COUNTS),
    "HELM, both forms": (both("helm/{}"), "exact_match", (5, 2, 0, 2)),
    "OpenCompass": (both("opencompass/results/{}/*"), "correct", COUNTS),
    "OpenCompass, replicas": (both("opencompass/results-2-replicas/{}/*"), "correct", (6, 4, 0, 2)),
    "promptfoo, one error": (["promptfoo/results.json"], "success", (3, 2, 0, 0)),
    "OpenAI evals": (both("openai_evals/{}.jsonl"), "correct", COUNTS),
    "simple-evals": (both("simple_evals/*{}*"), "score", COUNTS),
    "deepeval": (both("deepeval/{}/*"), "Exact Match", COUNTS),
    "deepeval, all metrics": (both("deepeval/{}"), "success", COUNTS),
    "Every Eval Ever": (both("eee/{}*"), "exact_match", COUNTS),
    "VLMEvalKit, judged": (both("vlmevalkit/{}"), "hit", (2, 2, 0, 2)),
    "NeMo Evaluator": (both("nemo_evaluator/{}/*"), "reward", COUNTS),
}


@pytest.fixture
def read(data_files):
    """Read files below the folder of forms."""

    def read(patterns, **columns):
        folder = data_files / "forms"
        files = [path for name in patterns for path in sorted(folder.glob(name))]
        assert files
        return read_results(files, ResultColumns(**columns))

    return read


def paired(frame):
    """Counts of items that both models, only the first, only the second or neither got correct."""
    wide = frame.pivot(index=["task", "item", "form", "repeat"], columns="model", values="score")
    first, second = (wide[name] for name in sorted(wide))
    pairs = ((1, 1), (1, 0), (0, 1), (0, 0))
    return tuple(int(((first == one) & (second == other)).sum()) for one, other in pairs)


BY_REPEATS = ("HELM, both forms", "OpenCompass, replicas")
WITHOUT = ("lm-eval 0.3", "OpenCompass", "OpenAI evals", "simple-evals")
CLUSTERS = {
    **dict.fromkeys(BY_REPEATS, ("item",)),
    **dict.fromkeys(WITHOUT, ()),
    **dict.fromkeys(("VLMEvalKit, judged", "NeMo Evaluator"), ("category",)),
}
FIRST_ITEMS = {
    **dict.fromkeys(("inspect .eval", "Every Eval Ever"), "q0"),
    **dict.fromkeys(("lm-eval choices", "lmms-eval", "lighteval 0.13", "OpenCompass"), "0"),
    **dict.fromkeys(("promptfoo, one error", "NeMo Evaluator"), "0"),
    **dict.fromkeys(
        ("lighteval 0.6", "simple-evals", "deepeval"), "What is the capital of France?"
    ),
    **{"HELM, both forms": "id10", "OpenCompass, replicas": "forms_0"},
}
ANSWERS = ("Paris", "Lima", "Nairobi", "Austen", "Joyce", "Goethe")


@pytest.mark.parametrize("name", LAYOUTS)
def test_known_scores_are_read_from_each_tool_without_options(read, name):
    patterns, metric, table = LAYOUTS[name]

    results = read(patterns)

    frame = results.frame
    assert tuple(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert paired(frame[frame["metric"] == metric]) == table
    assert {model[-4:].strip("/") for model in frame["model"]} == {"beta", "lpha"}
    has_prediction = frame.groupby("file", observed=True)["prediction"].count() > 0
    assert has_prediction.all() == ("VLM" not in name)
    assert (frame["content"] > 0).all()
    assert set(frame["references"]) <= {(), *((answer,) for answer in ANSWERS)}
    assert results.clusters == CLUSTERS.get(name, ("topic",))
    assert min(frame["item"]) == FIRST_ITEMS.get(name, min(frame["item"]))
    scored = frame[
        (frame["metric"] == metric) & frame["prediction"].notna() & (frame["score"] >= 0)
    ]
    pairs = zip(scored["prediction"], scored["references"], strict=True)
    is_right = [text.strip() in accepted for text, accepted in pairs]
    if "promptfoo" not in name:  # Its file has no references.
        assert is_right == (scored["score"] == 1).tolist()
    asked = frame["question"].dropna()
    assert asked.str.contains("What is the capital of |Who wrote ").all()
    assert asked.empty == (name in ("OpenCompass, replicas", "NeMo Evaluator"))


@pytest.mark.parametrize("pattern", ["opencompass/predictions/{}/*", "vlmevalkit/{}/*Forms.tsv"])
def test_answers_without_scores_are_read_and_reported(read, pattern):
    results = read(both(pattern))

    assert set(results.frame["metric"]) == {""}
    assert results.frame["score"].isna().all()
    assert ": answers without scores; score them with a rule or an LLM judge" in results.notes[0]
    first = results.frame[results.frame["form"] == ""]
    right = [p in r for p, r in zip(first["prediction"], first["references"], strict=True)]
    assert paired(first.assign(score=np.array(right, dtype=float))) == COUNTS
    # Rotations of options are forms of one item.
    forms = {"", "rotation 1"} if "vlm" in pattern else {""}
    assert set(results.frame["form"]) == forms
    assert results.frame["item"].nunique() == 6


def test_epochs_are_repeats_and_errors_are_missing_scores(read):
    results = read(["inspect_ai/2-epoch/beta.eval"])
    alpha = read(["inspect_ai/2-epoch/alpha.eval"]).frame

    graded = results.frame[results.frame["metric"] == "graded"]
    assert sorted(graded["repeat"].unique()) == [0, 1]
    failed = graded[graded["error"].notna()]
    assert list(zip(failed["item"], failed["repeat"], strict=True)) == [("q4", 1)]
    assert failed["score"].isna().all()
    assert results.clusters[0] == "item"
    # Grades are numbers.
    second = alpha[(alpha["metric"] == "graded") & (alpha["repeat"] == 1)].set_index("item")
    assert second["score"].loc[["q0", "q2", "q3"]].tolist() == [1.0, 0.5, 0.0]


EXCLUSION_NOTE = r"1 file was excluded: .*has no metric 'acc'; name one of exact_match,first"


@pytest.mark.parametrize(
    ("files", "columns", "metrics", "note"),
    [
        ("*mc*", {}, "acc acc_norm", "metric 'f1' contains lists, the inputs of a metric over all"),
        ("*gen*", {"metrics": ["exact_match"]}, "exact_match,first exact_match,strict", ""),
        ("*gen*", {"metrics": ["exact_match,strict"]}, "exact_match,strict", ""),
        ("*gen*", {"filter": "strict"}, "exact_match", ""),
        ("*", {"metrics": ["acc"]}, "acc", EXCLUSION_NOTE),
    ],
)
def test_metrics_are_chosen_by_name_and_filter(read, files, columns, metrics, note):
    results = read([f"lm_eval/0.4.13/alpha/{files}"], **columns)

    assert set(results.frame["metric"]) == {*metrics.split()}
    assert re.search(note, "".join(results.notes))


MC = "lm_eval/0.4.13/alpha/*mc*"
OLD = "lm_eval/0.4.0-0.4.2/*"


@pytest.mark.parametrize(
    ("pattern", "columns", "message"),
    [
        (MC, {"metrics": ["f1"]}, r"'f1' contains lists.*name another by `metrics`: acc"),
        (MC, {"metrics": ["em"]}, r"has no metric 'em'; name one of acc, acc_norm by"),
        ("lm_eval/0.4.13/alpha/*gen*", {"filter": "loose"}, "filter 'loose'; name one of: f"),
        (
            OLD,
            {"names": ["a", "b", "c"]},
            r"`names` gives a, b, c for 2 files or tables; give one name",
        ),
        ("promptfoo/results.json", {"names": ["a", "b"]}, "2 labels, a, b, are neither .*, beta"),
        (
            "promptfoo/results.json",
            {"names": ["a"]},
            r"2 models \(alpha, beta\), but `names` gives one label",
        ),
    ],
)
def test_missing_metrics_filters_and_labels_raise_with_the_choices(read, pattern, columns, message):
    with pytest.raises(DataError, match=message):
        read([pattern], **columns)


def test_published_helm_file_is_read_without_its_counts_and_costs(data_files):
    """Of 27 statistics, 19 are counts, costs, flags and sums of log-probabilities."""
    folder = data_files / "forms" / "helm" / "real-mmlu-philosophy-gpt2"
    results = read_results(folder)

    names = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match")
    assert set(results.frame["metric"]) == {*names, *(f"{name}@5" for name in names)}
    assert results.frame["item"].nunique() == 10
    own = {
        (row["instance_id"], stat["name"]["name"]): stat.get("mean")
        for row in json.loads((folder / "per_instance_stats.json").read_text())
        for stat in row["stats"]
    }
    keys = zip(results.frame["item"], results.frame["metric"], strict=True)
    assert results.frame["score"].tolist() == [own[key] for key in keys]


def test_folder_name_of_helm_gives_scenario_and_model(data_files, tmp_path):
    name = "mmlu:subject=philosophy,model=openai_gpt2"
    shutil.copytree(data_files / "forms" / "helm" / "alpha", tmp_path / name)
    frame = read_results(tmp_path / name).frame

    assert (*frame["task"].unique(), *frame["model"].unique()) == tuple(name.split(",model="))


def test_parts_of_large_opencompass_sets_are_concatenated(tmp_path):
    for number, answers in enumerate((["Lima", "Paris"], ["Rome"])):
        rows = {str(n): {"prediction": text, "gold": text} for n, text in enumerate(answers)}
        (tmp_path / f"caps_{number}.json").write_text(json.dumps(rows))

    frame = read_results(tmp_path).frame

    assert list(frame["item"]) == ["0:0", "0:1", "1:0"]
    assert set(frame["task"]) == {"caps"}


def test_duplicate_lines_count_once(data_files):
    results = read_results(data_files / "forms" / "traps" / "lm_eval_beta_every_line_twice.jsonl")
    one = {"item": "q1", "model": "a", "score": 1}

    assert len(results.frame) == 2 * 6
    assert "12 rows of " in results.notes[-1]
    assert "are duplicates and are counted once" in results.notes[-1]
    note = "1 row of rows is a duplicate and is counted once"
    assert read_results([one, one]).notes == (note,)


def test_a_null_score_is_missing(data_files):
    frame = read_results(data_files / "forms" / "traps" / "lm_eval_beta_one_score_null.jsonl").frame
    scores = frame[frame["metric"] == "acc"]["score"]

    assert scores.isna().sum() == 1
    assert scores.dropna().isin([0.0, 1.0]).all()


@pytest.mark.parametrize(
    ("error", "content", "message"),
    [
        (DataError, b"", "contains no rows, so no results"),
        (RecordError, b'{"item": "q1", "corr', "if the last line is cut off"),
        (RecordError, b'\xff\xfe{\x00"\x00', "not UTF-8 at byte 0 .* re-save the file as UTF-8"),
        (DataError, b'{"item": "q1", "note": "x"}', "neither scores nor .* Columns: item, note$"),
        (RecordError, b'{"id": ["q1"], "correct": 1}', r"'id' contains \['q1'\], and a list"),
        (DataError, b'{"correct": 1}', "p.jsonl:1 is one object with the fields correct, in which"),
        (
            DataError,
            b'{"x": "a", "correct": 1}',
            "no column identifies the items; searched for 'item', ",
        ),
        (
            RecordError,
            b'{"item": "q1", "correct": "maybe"}',
            "row 1 of column 'correct' contains 'm",
        ),
        (ColumnNotFoundError, b"id;score\n1;1\n", "separated by ';': write them with commas"),
    ],
)
def test_invalid_files_raise_an_error_with_a_remedy(tmp_path, error, content, message):
    path = tmp_path / ("p.csv" if content.startswith(b"id") else "p.jsonl")
    path.write_bytes(content)

    with pytest.raises(error, match=message):
        read_results(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.csv", "item,correct\nq1,1\n"), ("p.jsonl", '{"item": "q1", "correct": 1}')],
)
def test_byte_order_mark_is_ignored(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8-sig")

    assert read_results(tmp_path / name).frame["item"].tolist() == ["q1"]


@pytest.mark.parametrize("name", ["perplexity", "random_chance", "acc_random"])
def test_metrics_whose_names_are_not_scores_are_excluded(name):
    sample = {"doc_id": 0, "doc": {}, "resps": [["a"]], "filtered_resps": ["a"], "acc": 1.0}

    results = read_results([sample | {name: -3.5}])

    assert set(results.frame["metric"]) == {"acc"}
    assert f"metric '{name}' is " in results.notes[0]


@pytest.mark.parametrize("row", [{"final_report": {"accuracy": 0.5}}, {"spec": {"eval_name": "e"}}])
def test_openai_evals_log_without_samples_is_rejected(tmp_path, row):
    (tmp_path / "log.jsonl").write_text(json.dumps(row | {"run_id": "r"}))

    with pytest.raises(DataError, match="contains no samples; its run may have been interrupted"):
        read_results(tmp_path / "log.jsonl")


def test_every_eval_ever_epochs_with_a_common_mean_are_not_repeats():
    """The converter of inspect_ai gives every epoch the score of their mean."""
    row = {"evaluation_id": "e", "evaluation_name": "t", "sample_id": "q1", "model_id": "m"}

    def read(*scores):
        scored = [{"evaluation": {"score": score, "is_correct": True}} for score in scores]
        epochs = [{"metadata": {"epoch": str(number)}} for number in (1, 2)]
        return read_results([row | one | of for one, of in zip(scored, epochs, strict=True)])

    means, own = read(0.5, 0.5), read(1.0, 0.0)

    assert means.frame["score"].tolist() == [0.5]
    assert "1 of 2 rows were dropped" in means.notes[0]
    assert (own.frame["repeat"].tolist(), own.notes) == ([0, 1], ())


@pytest.mark.parametrize(
    ("samples", "results"),
    [
        (
            "samples_forms_2026-11-22T19-06-44.917256.jsonl",
            "results_2026-11-22T19-06-44.917256.json",
        ),
        ("20261122_100000_samples_forms.jsonl", "20261122_100000_results.json"),
    ],
)
def test_metric_directions_are_read_from_the_results_file(samples, results, tmp_path):
    """The names are those of lm-eval 0.4.13 and of lmms-eval 0.7.3; a group may have null."""
    table = [{"item": n, "gap": 0.5, "score": n % 2} for n in range(4)]
    (tmp_path / samples).write_text("\n".join(map(json.dumps, table)))
    scored = {"forms": {"gap": False, "score": True, "acc": None}, "other": {"score": False}}
    (tmp_path / results).write_text(json.dumps({"results": {}, "higher_is_better": scored}))

    assert read_results([tmp_path / samples]).higher_is_better == {"gap": False, "score": True}
    (tmp_path / results).write_text(json.dumps({"results": {}}))
    assert read_results([tmp_path / samples]).higher_is_better == {}


def test_several_tools_in_one_call_give_one_frame_and_a_note(read):
    results = read(["inspect_ai/1-epoch/alpha.eval", "lm_eval/0.4.13/beta/*mc*"])

    assert set(results.tool.values()) == {"inspect_ai", "lm-evaluation-harness"}
    assert "the files contain the questions in different ways" in results.notes[-1]


def test_excluded_files_of_a_folder_are_reported(data_files, tmp_path):
    shutil.copy(data_files / "forms" / "eee" / "alpha_samples.jsonl", tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"results": {"acc": 0.5}}))

    results = read_results(tmp_path)

    assert len(results.frame) == 6
    assert "1 file was excluded: " in results.notes[-1]
    assert "contains results of lm-evaluation-harness or a similar tool" in results.notes[-1]


def test_folder_without_results_and_missing_file_raise_an_error(tmp_path):
    (tmp_path / "readme.txt").write_text("x")

    with pytest.raises(
        SourceNotFoundError, match=r"contains no file of results; searched for \.par"
    ):
        read_results(tmp_path)
    with pytest.raises(SourceNotFoundError, match=r"file or folder .* not found; check the path"):
        read_results(tmp_path / "none.csv")


def test_two_files_of_one_model_are_named_by_their_paths(tmp_path):
    row = {"item": "q1", "model": "m", "correct": 1}
    results = read_results(written(tmp_path, before=[row], after=[row | {"correct": 0}]))

    assert list(dict.fromkeys(results.frame["model"])) == ["m (before)", "m (after)"]
    assert "they are named m (before), m (after)" in results.notes[0]


def test_given_labels_and_columns_have_precedence_over_those_of_a_tool(read):
    labelled = read(both("lm_eval/0.4.0-0.4.2/*{}*"), names=["old", "new"]).frame
    frame = read(["lm_eval/0.4.13/alpha/*mc*"], item=["id"], form="topic", cluster=["topic"]).frame

    assert list(dict.fromkeys(labelled["model"])) == ["old", "new"]
    assert set(frame["item"]) == {f"q{n}" for n in range(6)}
    assert set(frame["form"]) == {"cap", "aut"}


def test_metrics_of_open_unlearning_are_joined_by_question():
    rouge = {"rougeL_recall": 0.5, "input": "Who?", "ground_truth": "I", "generation": "me"}
    content = {
        "forget_Q_A_ROUGE": {"agg_value": 0.5, "value_by_index": {"1": rouge, "0": rouge}},
        "forget_Q_A_Prob": {"value_by_index": {"0": {"prob": 0.9, "avg_loss": 0.1}}},
        "forget_Q_A_PERT_Prob": {"value_by_index": {"0": {"prob": [0.1, 0.2]}}},
        "exact_memorization": {"value_by_index": {"0": {"score": 1.0}}},
        "retain_Q_A_Prob": {"value_by_index": {"0": {"prob": 0.7}}},
        "forget_quality": {"agg_value": None},
        "mia_loss": {"forget": {"value_by_index": {"0": {"score": 3.0}}}, "auc": 0.5},
    }

    frame = read_results([content]).frame

    scores = frame.set_index(["task", "item", "metric"])["score"].to_dict()
    assert scores == {
        ("TOFU forget", "0", "Q_A_ROUGE.rougeL_recall"): 0.5,
        ("TOFU forget", "0", "Q_A_Prob.prob"): 0.9,
        ("TOFU forget", "0", "exact_memorization"): 1.0,
        ("TOFU forget", "1", "Q_A_ROUGE.rougeL_recall"): 0.5,
        ("TOFU retain", "0", "Q_A_Prob.prob"): 0.7,
    }
    assert frame["prediction"].iloc[0] == "me"


def test_failed_metrics_and_samples_have_no_score_and_an_error():
    metrics = [{"name": "em", "score": 1.0}, {"name": "judge", "score": None, "error": "no key"}]
    case = {"input": "Who?", "actualOutput": "I", "success": False, "metricsData": metrics}
    judged = read_results([{"testFile": "t.py", "testCases": [case]}]).frame.set_index("metric")
    sample = {"id": 1, "input": "Who?", "target": ["I", "me"], "output": {"choices": []}}
    failed = sample | {"scores": {}, "error": {"message": "out of memory"}}
    log = {
        "version": 2,
        "status": "error",
        "eval": {"task": "t", "model": "m"},
        "samples": [failed],
    }
    frame = read_results([log]).frame

    assert judged["score"][["em", "judge"]].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    assert judged["error"][["judge", "em"]].tolist() == ["scorer failed: no key", None]
    assert frame["error"].tolist() == ["out of memory"]
    assert frame["references"].tolist() == [("I", "me")]
    assert frame["score"].isna().all()


def test_file_without_references_is_comparable_with_one_that_has_them(tmp_path):
    row = {"item": "1", "question": "Who?", "correct": 1}
    results = read_results(written(tmp_path, a=[row], b=[row | {"target": "I"}]))

    assert len(results.frame) == 2
    assert "a table: question, a table: question and references" in results.notes[0]


def test_documents_that_differ_only_in_other_fields_raise_an_error(tmp_path):
    sample = {"doc_id": 0, "resps": [["a"]], "filtered_resps": ["a"], "target": "a", "em": 1.0}
    docs = [{"question": "Which?", "options": ["x", last]} for last in "yz"]

    with pytest.raises(DataError, match=r"1 such items; their other fields differ"):
        read_results(
            written(tmp_path, a=[sample | {"doc": docs[0]}], b=[sample | {"doc": docs[1]}])
        )


def test_frame_of_a_tool_gives_the_same_rows_as_its_file(data_files):
    file = data_files / "forms" / "nemo_evaluator" / "alpha" / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]

    frame = read_results(pd.DataFrame(rows)).frame

    columns = ["item", "repeat", "score", "prediction"]
    pd.testing.assert_frame_equal(frame[columns], read_results(file).frame[columns])


def test_rows_are_numbered_by_item_and_by_item_and_form():
    names = ("model", "task", "item", "form")
    cells = itertools.product("ab", "tu", "xy", ("long", "short"))
    results = read_results([dict(zip(names, row, strict=True)) | {"correct": 1} for row in cells])

    for numbers, by in ((results.items, names[1:3]), (results.pairs, names[1:])):
        found = results.frame.groupby([*by], sort=False, observed=True).ngroup()
        assert numbers.tolist() == found.tolist()
        assert found.max() + 1 == 2 ** len(by)


def test_columns_with_few_values_are_categorical_over_all_files(tmp_path):
    rows = [{"topic": topic, "id": n, "score": 1} for n, topic in enumerate("ppq")]
    tasks = {name: [row | {"task": task} for row in rows] for name, task in ("at", "bu")}
    results = read_results(written(tmp_path, **tasks))

    few = ["task", "model", "form", "metric", "file", "topic"]
    assert (results.frame.dtypes[few] == "category").all()
    assert results.frame["task"].tolist() == [*"tttuuu"]
    assert results.clusters == ("topic",)


def test_fields_of_only_one_file_are_empty_for_the_others(tmp_path):
    (tmp_path / "a.csv").write_text("id,epoch,prediction,score\n1,1,Lima,1\n1,2,Oslo,0\n")
    (tmp_path / "b.csv").write_text("id,score\n1,1\n")
    frame = read_results([tmp_path / "a.csv", tmp_path / "b.csv"]).frame

    assert frame["repeat"].tolist() == [1, 2, 0]
    assert frame["prediction"].tolist() == ["Lima", "Oslo", None]
    assert frame["references"].tolist() == [(), (), ()]


def test_messages_use_the_column_names_of_the_file(tmp_path):
    def rows(questions, second=2):
        cells = zip((1, second), questions, (0, 1), strict=True)
        return [{"nr": nr, "question": text, "score": score} for nr, text, score in cells]

    one, other, twice = written(tmp_path, a=rows("QR"), b=rows("ST"), twice=rows("QQ", second=1))
    (note,) = read_results([one, other], ResultColumns(item=["nr"])).notes
    assert "although nr '1' is 'Q' (no reference) in " in note
    for files, columns, error, message in (
        (twice, {}, DataError, "nr '1' of 'twice' occurs more than once with score 0 "),
        (
            one,
            {"cluster": ["topic"]},
            ColumnNotFoundError,
            "`cluster` not found. Columns: nr, question, score$",
        ),
    ):
        with pytest.raises(error, match=message):
            read_results(files, ResultColumns(item=["nr"], **columns))


@pytest.mark.parametrize(("scores", "is_reported"), [([0, 75], True), ([0.5, 1], False)])
def test_scores_on_two_scales_are_reported(tmp_path, scores, is_reported):
    a, b = ([{"id": n, "score": s} for n, s in enumerate(of)] for of in ([0, 1], scores))
    notes = read_results(written(tmp_path, a=a, b=b)).notes

    warning = "scores (score) of a lie in 0 to 1, those of b in 0 to 75; if these are two scales"
    assert [warning in note for note in notes] == [True] * is_reported


def test_equal_questions_and_references_of_several_files_share_one_object(tmp_path):
    row = {"item": "q1", "question": "Which city?", "answers": ["Lima", "Limas"], "score": 1}
    frame = read_results(written(tmp_path, a=[row], b=[row])).frame

    for column in ("question", "references"):
        first, second = frame[column]
        assert first is second


def test_scores_and_checks_are_the_same_without_answers(tmp_path):
    rows = [{"item": i, "prediction": f"p{i}", "score": i % 2} for i in range(4)]
    other = {**rows[0], "prediction": "another"}
    files = {"whole": rows, "again": [*rows, rows[0]], "broken": [*rows, other]}
    whole, again, broken = written(tmp_path, **files)
    results = read_results([whole, again], has_answers=False)

    assert {*results.frame["prediction"]} == {"(not kept)"}
    with_answers = read_results([whole, again])
    assert results.notes == with_answers.notes
    pd.testing.assert_frame_equal(
        results.frame.drop(columns="prediction"), with_answers.frame.drop(columns="prediction")
    )
    with pytest.raises(DataError, match=r"item '0' of 'broken' occurs more than once with two ans"):
        read_results(broken, has_answers=False)
    with pytest.raises(DataError, match=r"prediction 'p0' and 'another' \(1 such items\)"):
        read_results(broken)
