"""Answers of result files scored by a rule, through all functions and file formats."""

import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.measures import accuracy
from surface_consistency.analysis.models import compare, result_of
from surface_consistency.analysis.scoring import scored_by_rule
from surface_consistency.analysis.settings import ComparisonSettings, RuleSettings
from surface_consistency.cli.main import main
from surface_consistency.engine.score import score_files
from surface_consistency.engine.study import find_study
from surface_consistency.errors import DataError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.studies.forms.data import load_forms
from tests.results.kinds import written

N = 20
N_CORRECT = {"a": 15, "b": 5}
ACCURACIES = {"a": 0.75, "b": 0.25}
"""Proportion of the items that each model answers correctly."""


def rows(*, references=lambda name: [name, name.upper()], answer=lambda name: name, n=N):
    """Answers of two models; `answer` writes a correct or an incorrect name."""
    return [
        {
            "item": f"q{i}",
            "model": model,
            "question": f"What is the seat of county {i}?",
            "references": references(f"Alderby {i}x"),
            "prediction": answer(f"Alderby {i}x" if i < N_CORRECT[model] else "Nowhere"),
        }
        for model in N_CORRECT
        for i in range(n)
    ]


def means(results, **options):
    """Return the accuracy of each model."""
    made = compare_results(results, options.pop("columns", None), settings(**options))
    table = next(iter(made.metrics.values())).models
    return dict(zip(table["model"], table["mean"], strict=True))


def settings(**options):
    return ComparisonSettings(**({"rule": "exact"} | options))


def scored(answers, **options):
    given = ResultColumns(reference_separator=options.pop("separator", None))
    frame = read_results(answers, given).frame
    return scored_by_rule(frame, RuleSettings(**({"rule": "exact"} | options)))


SQUAD = {"answer_start": [3, 4]}
NOTATIONS = {
    "list": lambda name: [name, "x"],
    "python": lambda name: str([name, "x"]),
    "numpy": lambda name: str(np.array([name, "x"], dtype=object)),
    "json": lambda name: json.dumps([name, "x"]),
    "object": lambda name: SQUAD | {"text": [name, "x"]},
    "text of an object": lambda name: str(SQUAD | {"text": [name, "x"]}),
    "aliases": lambda name: {"value": name, "aliases": [name, "x"]},
    "list of objects": lambda name: [{"text": name, "aliases": ["x"]}],
}


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "frame", "rows"])
@pytest.mark.parametrize("written", NOTATIONS)
def test_references_in_all_notations_and_containers_give_the_same_labels(tmp_path, written, kind):
    answers = rows(references=NOTATIONS[written])
    frame = pd.DataFrame(answers)
    file = tmp_path / f"answers.{kind}"
    match kind:
        case "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in answers))
        case "parquet":
            frame.to_parquet(file)
        case "csv":
            frame.to_csv(file, index=False)
    source = {"frame": frame, "rows": answers}.get(kind, file)

    assert means(source) == ACCURACIES


def test_references_in_the_text_of_the_harness_are_read(tmp_path):
    """lm-evaluation-harness writes `str(target)` of a list of aliases."""
    for model in N_CORRECT:
        samples = [
            {
                "doc_id": i,
                "doc": {"question": row["question"]},
                "target": str(row["references"]),
                "arguments": [["prompt", {"until": []}]],
                "resps": [[row["prediction"]]],
                "filtered_resps": [row["prediction"]],
                "exact_match": 0.0,
                "doc_hash": f"h{i}",
                "prompt_hash": f"p{i}",
                "target_hash": f"t{i}",
            }
            for i, row in enumerate(row for row in rows() if row["model"] == model)
        ]
        file = tmp_path / model / "samples_nq_2026-01-01T00-00-00.000000.jsonl"
        file.parent.mkdir()
        file.write_text("".join(json.dumps(row) + "\n" for row in samples))

    assert means([tmp_path / "a", tmp_path / "b"]) == ACCURACIES


def test_study_of_forms_and_comparisons_read_the_same_references():
    """`load_forms` reads the references of `run forms --source` and `load_dataset`."""
    for write in NOTATIONS.values():
        answers = rows(references=write)
        forms = [row | {"form": form} for row in answers[:N] for form in "xy"]
        data = load_forms([{**row, "answers": row.pop("references")} for row in forms])
        frame = read_results(answers).frame
        assert data.rows["references"].tolist()[::2] == frame["references"].tolist()[:N]


def test_unreadable_references_raise_an_error_only_with_a_rule():
    answers = rows(references=lambda name: {"label": "A", "choice": name})
    scores = [row | {"correct": 1} for row in answers]

    with pytest.raises(
        DataError, match=r"40 of 40 answers .*cannot be read, first .*'label'.*JSON"
    ):
        means(answers)
    assert means(scores, rule=None) == {"a": 1, "b": 1}


@pytest.mark.parametrize("mark", ["|", ";", "; ", " / ", " | "])
def test_separators_in_references_are_reported_with_an_option_that_splits(tmp_path, capsys, mark):
    answers = rows(references=lambda name: f"{name}{mark}other")
    file = tmp_path / "answers.csv"
    pd.DataFrame(answers).to_csv(file, index=False)

    finding = compare(answers, rule="exact").sentences[0]
    assert "All scores of a, b are 0 (20 items)" in finding
    assert f"contains {mark.strip()!r}, such as 'Alderby 0x{mark}other'" in finding
    assert f"`reference_separator` {mark.strip()!r}" in finding
    split = compare(answers, rule="exact", reference_separator=mark.strip())
    assert split.to_frame()["difference"].tolist() == [pytest.approx(-0.5)]
    words = ["--rule", "exact", "--reference-separator", mark.strip(), "--json"]
    assert main(["compare", str(file), *words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["difference"] == pytest.approx(-0.5)
    assert main(["accuracy", str(file), "--rule", "exact", "--by", "model"]) == 0
    assert f"--reference-separator '{mark.strip()}'" in " ".join(capsys.readouterr().out.split())


def test_line_feeds_in_references_are_reported_with_an_option_that_splits(tmp_path, capsys):
    file = tmp_path / "answers.csv"
    answers = rows(references=lambda name: f"{name}\nother")
    pd.DataFrame(answers).to_csv(file, index=False)

    assert (
        "`reference_separator` '\\n' (in a shell, $'\\n')"
        in compare(answers, rule="exact").sentences[0]
    )
    assert means(answers, columns=ResultColumns(reference_separator="\n")) == ACCURACIES
    words = ["--rule", "exact", "--reference-separator", "\n", "--json"]
    assert main(["compare", str(file), *words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["difference"] == pytest.approx(-0.5)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numbers_of_lists_written_as_text_are_in_the_finding(tmp_path, kind):
    answers = rows(references=lambda name: "[0, 1]", answer=lambda name: "[0, 1]")
    file = written(tmp_path / f"answers.{kind}", answers)

    finding = compare(file, rule="exact").sentences[0]
    remedy = [row | {"references": '["[0, 1]"]'} for row in answers]

    assert "40 of 40 rows have a text that was read as a list of numbers, such as [0, 1]" in finding
    assert means(remedy) == {"a": 1, "b": 1}


def test_answers_without_references_have_no_score_and_are_counted():
    answers = [row | ({"references": []} if i % 4 == 0 else {}) for i, row in enumerate(rows())]

    made = scored(answers)

    assert made.frame["score"].isna().sum() == 10
    assert "10 of 40 answers have no references and no score" in made.notes


TOOL = {"item": "index", "references": "answer"}
"""Columns by which a table is read as one of VLMEvalKit."""


@pytest.mark.parametrize("kind", ["csv", "tsv", "quoted.csv", "tool.csv", "jsonl", "frame"])
def test_empty_cells_are_missing_answers_by_path_and_by_frame(tmp_path, kind):
    answers = pd.DataFrame(rows(references=str, answer=lambda name: name.replace("Nowhere", "")))
    answers = answers.drop(columns="model").assign(item=range(2 * N), A="a", B='x"y')
    answers = answers.rename(columns=TOOL if kind == "tool.csv" else {})
    source = tmp_path / f"answers.{kind}"
    if kind == "jsonl":
        answers.replace("", None).to_json(source, orient="records", lines=True)
    else:
        text = answers.to_csv(index=False, sep="\t" if kind == "tsv" else ",")
        text = text.replace('"x""y"', 'x"y') if kind == "quoted.csv" else text
        source.write_text(text, encoding="utf-8")
    source = pd.read_csv(source) if kind == "frame" else source

    made = scored(source)

    assert made.frame["score"].isna().sum() == N
    assert any(
        note.startswith("20 of 40 answers are missing (an empty cell") for note in made.notes
    )
    assert [*means(source).values()] == [1.0]
    assert [*means(source, missing="wrong").values()] == [0.5]


def test_references_that_equal_the_question_are_reported():
    answers = [row | {"references": [row["question"].upper()]} for row in rows()]

    assert any(
        "40 of 40 answers have a reference that equals the q" in d for d in scored(answers)[1]
    )


THOUGHTS = {
    "think": "<think>\nCould it be {}? Hardly.\n</think>\n\n",
    "closing tag": "Could it be {}? Hardly.\n</think>\n\n",
    "thinking": "<thinking>Could it be {}?</thinking>",
    "kimi": "◁think▷Could it be {}?◁/think▷",
    "channels": "<|channel|>analysis<|message|>Could it be {}?<|end|><|start|>assistant"
    "<|channel|>final<|message|>",
    "bare channels": "analysisCould it be {}?assistantfinal",
}


@pytest.mark.parametrize("kind", THOUGHTS)
def test_reasoning_is_not_part_of_the_scored_answer(kind):
    """All reasoning contains the fact; the first line of an answer is the answer."""
    answers = [
        row | {"prediction": THOUGHTS[kind].format(row["references"][0]) + row["prediction"]}
        for row in rows()
    ]

    made = scored(answers, rule="popqa")

    assert made.frame.groupby("model", observed=True)["score"].mean().to_dict() == ACCURACIES
    assert made.notes[1] == "the reasoning of 40 answers was removed before scoring"
    assert not made.doubts


def test_unfinished_reasoning_has_no_score_and_is_in_the_finding():
    answers = [
        row | ({"prediction": f"<think>{row['prediction']}"} if i % 4 == 0 else {})
        for i, row in enumerate(rows())
    ]

    result = result_of(compare_results(answers, settings=settings()))

    assert result.to_frame()["n"].tolist() == [15]
    assert "5 of 20 answers of a failed (5 errors) and have no score." in result.sentences[0]


def test_remedies_for_closing_tags_without_opening_tags_work():
    answers = rows(answer=lambda name: "well</think>No" if name == "Nowhere" else name)

    with pytest.raises(DataError, match=r"`reasoning_opened` if those .*`reasoning_opened=False`"):
        scored(answers)
    assert scored(answers, reasoning_opened=True).frame["score"].sum() == 0
    assert scored(answers, reasoning_opened=False).frame["score"].sum() == 20


def test_both_regions_are_in_the_finding_if_labels_differ_often(tmp_path, capsys):
    answers = rows(answer=lambda name: f"{name}\nQ: And then?\nAlderby 19x")
    answers = [row | {"references": [row["references"][0], "Alderby 19x"]} for row in answers]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row | {"form": "x"}) + "\n" for row in answers))

    finding = compare(answers, rule="popqa").sentences[0]

    assert "18 of 40 labels differ" not in finding
    assert "20 of 40 labels differ between the first line" in finding
    assert "a 75.0 % and 100.0 %; b 25.0 % and 100.0 %" in finding
    assert means(answers, rule="popqa") == ACCURACIES
    whole = compare(answers, rule="popqa", region="whole")
    assert whole.to_frame()["difference"].tolist() == [0]
    assert "labels differ" not in whole.sentences[0]
    assert "Note: popqa scores the whole of each answer (`region`)." in whole.sentences
    for command, by in (("compare", ()), ("accuracy", ("--by", "model"))):
        assert main([command, str(file), *by, "--rule", "popqa"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "b 25.0 % and 100.0 %. Choose by --region first_line or whole" in printed
        words = [*by, "--rule", "popqa", "--region", "whole", "--json"]
        assert main([command, str(file), *words]) == 0
        assert "labels differ" not in capsys.readouterr().out


def test_few_differing_labels_are_not_in_the_finding():
    answers = rows()
    answers[19]["prediction"] += f"\n{answers[19]['references'][0]}"

    assert scored(answers, rule="popqa").doubts == ()


def test_options_of_a_rule_without_a_rule_raise(capsys):
    words = ["accuracy", "answers.jsonl", "--region", "whole"]

    with pytest.raises(ValueError, match=r"^`region` has no effect without `rule`"):
        compare(rows(), region="whole")
    assert main(words) == 2
    assert "--region has no effect without --rule" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer",
    [str, "{}\nQ: And then?".format, "<think>Rome?</think>\n{}".format, "\n{}".format],
    ids=["plain", "rambling", "reasoning", "blank line"],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_comparisons_and_scored_runs_give_the_same_labels(tmp_path, answer):
    """`score --predictions`, which the studies use, is the second implementation."""
    answers = [row for row in rows(answer=answer) if row["model"] == "a"]
    answers = [row | {"form": form} for row in answers for form in "xy"]
    file = tmp_path / "answers.jsonl"
    ids = [
        {"id": f"{row['item']} | {row['form']}", "prediction": row["prediction"]} for row in answers
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in ids))
    study = find_study("forms")
    data = load_forms([row | {"answers": row["references"]} for row in answers])
    (run,) = score_files(study, data, [file], tmp_path / "run")
    verdicts = pd.read_parquet(run.path / "verdicts.parquet").set_index("target_id")["correct"]

    frame = scored(answers, rule="popqa").frame

    labels = (frame["item"].astype(str) + " | " + frame["form"].astype(str)).tolist()
    assert frame["score"].tolist() == verdicts[labels].astype(float).tolist()


def test_accuracy_of_a_frame_reports_warnings():
    result = accuracy(pd.DataFrame({"item": range(30), "correct": 0}))

    assert result.sentences[1].startswith("All scores of all models are 0 (30 items)")


def test_lone_surrogates_in_references_do_not_raise():
    """JSON can contain one half of a surrogate pair, which cannot be encoded in a file."""
    answers = rows(references=lambda name: [name, "x\ud800"])

    assert means(answers) == ACCURACIES
