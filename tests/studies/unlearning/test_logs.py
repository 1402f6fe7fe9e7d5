import json

import pytest

from surface_consistency.errors import DataError, RecordError, RunError, SourceNotFoundError
from surface_consistency.studies.unlearning import logs
from surface_consistency.studies.unlearning.logs import (
    read_answers,
    read_logs,
    tofu_answers,
    with_answers,
)
from tests.made_logs import MODELS, SIDES, tofu_log, write_log

MODEL = MODELS[1]


@pytest.fixture(scope="module")
def full_and_retrained(data_files, tmp_path_factory):
    """Official logs of a full and a retrained model, 400 questions each."""
    home = tmp_path_factory.mktemp("logs")
    return [write_log(home / side, tofu_log(data_files, MODEL, side)) for side in SIDES]


def edited(**texts):
    """A record of EasyEdit with generated texts."""
    alias = {"prompt": ["D. Darrieux speaks"], "ground_truth": [["English"]]}
    beside = {"prompt": "Michel Rocard speaks", "ground_truth": "French"}
    edit = {"prompt": "The mother tongue of Danielle Darrieux is", "subject": "Danielle Darrieux"}
    edit |= {"target_new": "English", "ground_truth": "French"}
    edit |= {"rephrase_prompt": "Danielle Darrieux grew up speaking"}
    edit |= {"portability": {"Subject_Aliasing": alias}, "locality": {"neighborhood": beside}}
    changed = {
        "rewrite_gen_content": "English.",
        "rephrase_gen_content": ["French, of course"],
        "portability": {"Subject_Aliasing_acc": ["French"]},
        "locality": {"neighborhood_output": "French"},
    }
    return {"case_id": 0, "requested_rewrite": edit, "pre": {}, "post": changed | texts}


def test_real_layout_of_open_unlearning_is_read(data_files):
    (log,) = read_logs([data_files / "unlearning" / "TOFU_EVAL.json"])

    questions = log.questions.set_index(["set", "question_id"])
    assert set(log.questions["set"]) == {"forget", "retain", "real authors", "world facts"}
    assert questions.loc[("forget", "1"), "question"].startswith("What gender is author")
    assert questions.loc[("world facts", "0"), "references"] == ("Paris",)
    assert questions.loc[("forget", "1"), "references"] is None
    assert questions.loc[("retain", "1"), "cluster"] == "question 1"  # A cut is no set of TOFU's.


def test_real_layout_of_muse_is_read(data_files):
    (log,) = read_logs([data_files / "unlearning" / "MUSE_EVAL.json"])

    assert set(zip(log.questions["set"], log.questions["form"], strict=True)) == {
        ("forget", "plain"),
        ("forget", "verbmem"),
        ("retain", "plain"),
    }
    assert log.questions["cluster"].str.startswith("question").all()
    assert set(log.scores["measure"]) >= {"ROUGE-L knowmem", "ROUGE-L verbmem"}


def test_questions_of_a_log_are_in_order_with_persons_and_short_answers(full_and_retrained):
    logs = read_logs(full_and_retrained)
    questions = logs[0].questions

    assert [log.label for log in logs] == ["full", "retain90"]
    assert questions["question_id"].tolist() == [str(n) for n in range(400)]
    assert questions["cluster"].nunique() == 20
    assert len(tofu_answers()) == 367
    assert with_answers(questions)["references"].notna().sum() == 367
    assert with_answers(questions, dict.fromkeys(range(400), "Ouagadougou")) is None


def test_short_answers_match_the_last_rows_of_forget10(data_files, tmp_path):
    """forget01 is the last 40 rows: here the real questions and answers."""
    lines = (data_files / "unlearning" / "tofu_forget01_perturbed.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    cells = {
        str(n): {"input": row["question"], "ground_truth": row["answer"], "generation": "?"}
        for n, row in enumerate(rows)
    }
    path = write_log(tmp_path / "m", {"forget_Q_A_ROUGE": {"value_by_index": cells}})

    asked = with_answers(read_logs([path])[0].questions)

    assert asked["references"].notna().sum() == 38
    assert asked["references"].iloc[0] == ("Basil Mahfouz Al-Kuwaiti",)


@pytest.mark.parametrize("as_lists", [False, True])
def test_legacy_layout_gives_the_same_questions_and_scores(
    data_files, full_and_retrained, tmp_path, as_lists
):
    log = tofu_log(data_files, MODEL, "full")
    indices = [str(n) for n in range(400)]

    def cells(metric, get):
        values = {n: get(log[metric]["value_by_index"][n]) for n in indices}
        return list(values.values()) if as_lists else values

    forget = {
        "generated_text": cells(
            "forget_Q_A_ROUGE", lambda x: [x["input"], x["generation"], x["ground_truth"]]
        ),
        "rougeL_recall": cells("forget_Q_A_ROUGE", lambda x: x["rougeL_recall"]),
        "avg_gt_loss": cells("forget_Q_A_Prob", lambda x: x["avg_loss"]),
        "avg_paraphrased_loss": cells("forget_Q_A_PARA_Prob", lambda x: x["avg_loss"]),
        "average_perturb_loss": cells("forget_Q_A_PERT_Prob", lambda x: x["avg_loss"]),
        "truth_ratio": cells("forget_truth_ratio", lambda x: x["score"]),
    }
    path = write_log(tmp_path, {"eval_log_forget.json": forget}, "eval_log_aggregated.json")

    (legacy,) = read_logs([path])

    modern = read_logs(full_and_retrained)[0]
    assert legacy.questions.equals(modern.questions)
    measures = set(legacy.scores["measure"])
    assert measures == {"probability", "ROUGE-L recall", "log truth ratio"}
    both = modern.scores.merge(legacy.scores, on=["set", "measure", "question_id"])
    assert both["value_x"].to_numpy() == pytest.approx(both["value_y"].to_numpy())


def test_results_of_rwku_have_persons_and_types(tmp_path):
    """Made texts in the layout of its `eval_forget.py`."""
    sample = {"query": "Who wrote Carrie?", "answer": "Stephen King", "subject": "Stephen King"}
    results = [
        sample | {"level": "2", "type": "simple question", "prediction": "Stephen King"},
        sample | {"level": "3", "type": "reverse query", "prediction": "NOANSWER"},
    ]
    path = write_log(tmp_path, {"level_2_rouge_l_r": 1.0, "results": results}, "forget.json")

    (log,) = read_logs([path])

    assert log.questions["form"].tolist() == ["plain", "adversarial: reverse query"]
    assert log.questions["cluster"].tolist() == ["Stephen King"] * 2


def test_edited_models_are_read_by_their_texts(tmp_path):
    (tmp_path / "edits.json").write_text(json.dumps([edited()]), "utf-8")

    (log,) = read_logs([tmp_path / "edits.json"])

    rows = log.questions.set_index(["set", "form"])["prediction"].to_dict()
    assert rows == {
        ("forget", "plain"): "English.",
        ("new object", "plain"): "English.",
        ("forget", "reworded"): "French, of course",
        ("new object", "reworded"): "French, of course",
        ("new object", "name"): "French",
        ("forget", "name"): "French",
        ("neighbour", "neighborhood"): "French",
    }


def test_token_accuracies_of_edits_are_rejected(tmp_path):
    changed = {"rewrite_acc": [1.0], "rephrase_acc": [0.5], "locality": {}, "portability": {}}
    record = edited() | {"post": changed}
    (tmp_path / "edits.json").write_text(json.dumps([record]), "utf-8")

    with pytest.raises(DataError, match=r"accuracies of tokens.*96.8 %.*generate-text"):
        read_logs([tmp_path / "edits.json"])


def changed(log, **fields):
    """Change fields of every question of the ROUGE metric."""
    for cells in log["forget_Q_A_ROUGE"]["value_by_index"].values():
        cells |= fields
    return log


def part(log, first, stop):
    """Keep the questions of these numbers."""
    for metric in log.values():
        cells = metric["value_by_index"].items()
        metric["value_by_index"] = {n: x for n, x in cells if first <= int(n) < stop}
    return log


def test_empty_generations_are_answers(data_files, full_and_retrained, tmp_path):
    log = changed(tofu_log(data_files, MODEL, "full"), generation="")

    silent = read_logs([write_log(tmp_path, log), full_and_retrained[1]])[0]

    assert set(silent.questions["prediction"]) == {""}


def reference_of(log, value):
    log["forget_Q_A_ROUGE"]["value_by_index"]["3"]["ground_truth"] = value


def test_a_missing_reference_is_not_a_short_answer():
    assert [logs._short(one) for one in ("Paris", float("nan"), "It is Paris.")] == [
        ("Paris",),
        None,
        None,
    ]


LACKS = "question 3 of TOFU forget lacks its input or ground"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda log: changed(log, generation=None), "contains no generations"),
        (lambda log: log.pop("forget_Q_A_ROUGE"), "losses contain no answers: pass"),
        (lambda log: log["forget_Q_A_ROUGE"]["value_by_index"]["3"].pop("input"), LACKS),
        (lambda log: log["forget_Q_A_ROUGE"]["value_by_index"]["3"].pop("ground_truth"), LACKS),
        (lambda log: reference_of(log, " "), LACKS),
        (lambda log: reference_of(log, float("nan")), LACKS),
    ],
    ids=["answers", "losses", "question", "reference", "empty reference", "NaN reference"],
)
def test_log_without_answers_or_texts_of_a_question_is_rejected(
    data_files, tmp_path, change, match
):
    log = tofu_log(data_files, MODEL, "full")
    change(log)

    with pytest.raises(DataError, match=match):
        read_logs([write_log(tmp_path, log)])


def test_repeated_edit_counts_once_and_is_rejected_if_it_differs(tmp_path):
    (tmp_path / "edits.json").write_text(json.dumps([edited(), edited()]), "utf-8")

    other = edited(rewrite_gen_content="French.")
    (tmp_path / "others.json").write_text(json.dumps([edited(), other]), "utf-8")

    (log,) = read_logs([tmp_path / "edits.json"])
    assert not log.questions.duplicated(["set", "form", "question_id"]).any()
    with pytest.raises(DataError, match="id '0' of 'edited' occurs more than once with prediction"):
        read_logs([tmp_path / "others.json"])


def test_one_file_twice_is_rejected(tmp_path):
    """RWKU's results contain no scores by question that would show it."""
    sample = {"query": "Who?", "answer": "A", "subject": "A", "prediction": "A"}
    path = write_log(tmp_path, {"results": [sample]}, "forget.json")

    with pytest.raises(DataError, match="is given twice; give it once"):
        read_logs([path, tmp_path / "." / "forget.json"])


def test_logs_of_different_splits_are_rejected(data_files, full_and_retrained, tmp_path):
    log = part(tofu_log(data_files, MODEL, "retain90"), 0, 200)

    with pytest.raises(RunError, match=r"has 400 questions .* 200.*forget05 with retain95"):
        read_logs([full_and_retrained[0], write_log(tmp_path, log)])


def test_different_questions_to_preserve_are_rejected(full_and_retrained, tmp_path):
    """Number 3 of one retain set is not that of another."""
    paths = []
    for place, path in enumerate(full_and_retrained):
        log = json.loads(path.read_text("utf-8"))
        texts = {"input": "Who?", "ground_truth": f"Name {place}", "generation": "A"}
        log["retain_Q_A_ROUGE"] = {"agg_value": None, "value_by_index": {"3": texts}}
        paths.append(write_log(tmp_path / str(place), log))

    with pytest.raises(RunError, match=r"the questions differ \(retain plain 3\)"):
        read_logs(paths)


@pytest.mark.parametrize(
    ("n", "first", "cluster"),
    [(400, 0, "person 19"), (200, 0, "person 9"), (120, 0, "question 119"), (200, 7, "question 8")],
)
def test_persons_are_assigned_for_sets_of_tofu_sizes(data_files, tmp_path, n, first, cluster):
    log = part(tofu_log(data_files, MODEL, "full"), first, first + n)

    (read,) = read_logs([write_log(tmp_path, log)])

    rows = read.questions.set_index("question_id")["cluster"]
    assert rows[cluster.split()[1] if cluster.startswith("q") else str(n - 1)] == cluster


def test_one_model_twice_is_rejected(data_files, full_and_retrained, tmp_path):
    again = write_log(tmp_path / "npo", tofu_log(data_files, MODEL, "full"))

    with pytest.raises(DataError, match="models of the same weights; pass each model once"):
        read_logs([*full_and_retrained, again])


@pytest.mark.parametrize(
    ("name", "content", "error", "match"),
    [
        (
            *("log.json", '{"model_utility": 0.6, "forget_quality": 0.01}'),
            *(DataError, "only aggregates.*EVAL.json"),
        ),
        (
            *("log.json", '{"anything": {"else": 1}}'),
            *(DataError, "is not a known log; known are open-unlearning's"),
        ),
        ("log.json", "[]", DataError, "contains no rows, so no results"),
        ("log.json", '{"forget_Q_A_ROUGE": ', RecordError, r"log\.json"),
        ("none.json", "", SourceNotFoundError, r"none\.json"),
        (
            *("a.tsv", "index\tanswer\nfirst\tParis\n"),
            *(DataError, "a.tsv:2: needs the columns index, a whole number"),
        ),
    ],
)
def test_files_without_a_log_or_answers_are_rejected(tmp_path, name, content, error, match):
    path = tmp_path / name
    if content:
        path.write_text(content, "utf-8")

    with pytest.raises(error, match=match):
        read_answers(path) if path.suffix == ".tsv" else read_logs([path])
