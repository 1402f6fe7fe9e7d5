"""Warnings about scores and answers in the findings of comparisons and measures."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.analysis.doubts import constant_scores, missing_answers
from surface_consistency.analysis.measures import accuracy, consistency, paired
from surface_consistency.analysis.models import compare
from surface_consistency.analysis.settings import ComparisonSettings
from surface_consistency.cli.main import main
from surface_consistency.engine.compare.results_page import comparison_page
from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results

CAUSE = "failed: unexpected indent"


def programs(n=40, n_same=38):
    """Results of HumanEval: all programs of "one" fail, nearly all with the same cause."""
    passed = np.arange(n) % 2 == 0
    cause = [CAUSE if i < n_same else f"failed: {i}" for i in range(n)]
    one = pd.DataFrame({"item": range(n), "model": "one", "result": cause, "passed": False})
    other = one.assign(model="other", result=np.where(passed, "passed", "failed"), passed=passed)
    return pd.concat([one, other], ignore_index=True)


def test_model_without_correct_answers_is_in_the_finding_with_its_reason():
    finding = compare(programs()).sentences[0]

    assert "All scores of one are 0 (40 items); check" in finding
    assert f"38 of 40 rows of one have the same text in column result: '{CAUSE}'." in finding
    assert "column result" not in compare(programs(n_same=9)).sentences[0]


def test_models_with_only_correct_or_incorrect_answers_are_in_the_finding():
    frame = programs()

    assert (
        "All scores of one, other are 0 (40 items)" in compare(frame.assign(passed=0)).sentences[0]
    )
    assert "All scores are 1 (40 items); check" in compare(frame.assign(passed=1)).sentences[0]
    page, _ = comparison_page(compare_results(frame.assign(passed=1)))
    assert any("All scores are 1 (40 items)" in str(part) for part in page.finding.sentence)


def test_flat_tables_and_frames_report_the_same_warnings(tmp_path):
    files = []
    for name, part in programs().drop(columns="result").groupby("model"):
        files.append(tmp_path / f"{name}.parquet")
        part.drop(columns="model").to_parquet(files[-1])

    flat, rows = (compare(*files, **given) for given in ({}, {"missing": "raise"}))

    assert flat.sentences[0] == rows.sentences[0]
    assert "All scores of one are 0 (40 items); check" in flat.sentences[0]


def test_loss_of_zero_is_not_reported():
    losses = programs().assign(loss=0.0).drop(columns="passed")
    settings = ComparisonSettings(lower_is_better=("score",))

    made = compare_results(losses.rename(columns={"loss": "score"}), settings=settings)

    page, _ = comparison_page(made)
    assert not any("All scores" in str(part) for part in page.finding.sentence)


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ([("a", 0.0, 9)], []),
        ([("a", 0.0, 10), ("b", 0.5, 10)], ["All scores of a are 0"]),
        ([("a", 1.0, 10), ("b", 0.5, 10)], []),
        ([("a", np.nan, 0)], []),
    ],
)
def test_constant_scores_are_reported_for_at_least_ten_items(models, expected):
    found = [one.partition(" (10 items)")[0] for one in constant_scores(models, "items")]

    assert found == expected


def answers(n=40, *, blank=(), failed=()):
    return pd.DataFrame(
        {
            "item": range(n),
            "model": "m",
            "prediction": [
                "" if i in blank else "\n " if -i in blank else "text" for i in range(n)
            ],
            "error": ["refused" if i in failed else None for i in range(n)],
            "correct": [i % 2 for i in range(n)],
        }
    )


@pytest.mark.parametrize(
    ("frame", "n"),
    [
        (answers(blank=(1, 2)), 0),
        (answers(blank=(1, -2), failed=(3,)), 3),
        (answers(failed=(1, 2, 3)), 3),
        (answers().drop(columns="error"), 0),
    ],
)
def test_more_than_5_percent_of_missing_answers_are_reported(frame, n):
    percent = f"{100 * n / 40:.1f} %"
    expected = [f"{n} of 40 answers of m are empty, refused, failed or unfinished ({percent})."]

    assert [text for _, text in missing_answers(frame)] == expected * bool(n)


def test_all_warnings_of_a_model_precede_those_of_the_next_one(tmp_path):
    frame = answers(blank=range(20, 25))
    frame = frame.assign(correct=frame["item"] >= 20)
    frame.loc[frame["item"] < 20, "prediction"] = "Error 500."
    frame = pd.concat([frame.assign(model=name) for name in "ab"])
    frame.to_csv(tmp_path / "a.csv", index=False)

    found = accuracy(tmp_path / "a.csv").sentences

    models = [re.search(r" of ([ab])\b", one)[1] for one in found]
    assert models == sorted(models), found
    assert len(models) == 6


@pytest.mark.parametrize("has_answers", [True, False])
def test_blank_answers_are_reported_also_if_answers_are_not_kept(has_answers):
    frame = answers(blank=(1, 3, -5, -7)).replace("\n ", "\n")

    made = compare_results(frame.drop(columns="error"), has_answers=has_answers)

    assert made.doubts == (
        "4 of 40 answers of m are empty, refused, failed or unfinished (10.0 %).",
    )


def conditions():
    """Answers of two models to 40 items in two forms."""
    rng = np.random.default_rng(0)
    names = pd.MultiIndex.from_product([["a", "b"], range(40), ["x", "y"]])
    frame = names.to_frame(index=False, name=["model", "item", "form"])
    return frame.assign(correct=rng.integers(0, 2, len(frame)))


FAILED = np.arange(160) % 8 < 2
ANSWERS = {
    "empty": {"prediction": np.where(FAILED, "", "text")},
    "blank": {"response": np.where(FAILED, "   ", "text")},
    "null": {"prediction": np.where(FAILED, None, "text")},
    "category": {"output": pd.Categorical(np.where(FAILED, "", "text"))},
    "errors": {"error": np.where(FAILED, "timeout", None)},
    "both": {"error": np.where(FAILED, "timeout", None), "pred": np.where(FAILED, None, "text")},
    "ends": {"prediction": "text", "finish_reason": np.where(FAILED, "content_filter", "stop")},
    "mark": {"prediction": np.where(FAILED, "$ERROR$", "text")},
    "wrong": {"correct": 0},
}
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_formats_and_functions_report_the_same_warnings(case, tmp_path, capsys):
    frame = conditions().assign(**ANSWERS[case])
    of_a, one_form = frame[frame["model"] == "a"], frame[frame["form"] == "x"].drop(columns="form")
    parts = {name: part.reset_index(drop=True) for name, part in one_form.groupby("model")}
    found = {
        "compare": {tuple(compare(parts).sentences)},
        "accuracy": {tuple(accuracy(of_a).sentences)},
        "consistency": {tuple(consistency(of_a).sentences)},
        "paired": set(),
    }
    for format_, write in WRITERS.items():
        write(of_a, path := tmp_path / f"whole.{format_}")
        files = {name: tmp_path / f"{name}.{format_}" for name in parts}
        for name, file in files.items():
            write(parts[name], file)
        found["compare"].add(tuple(compare(files).sentences))
        found["accuracy"].add(tuple(accuracy(path).sentences))
        found["consistency"].add(tuple(consistency(path).sentences))
        main(["paired", str(path), *["--condition", "form", "--first", "x", "--second", "y"]])
        found["paired"].add((capsys.readouterr().out,))

    # CSV does not distinguish empty texts, which a note counts, from missing answers.
    empty = re.compile(r"(Note: )?\d+ of \d+ answers are empty texts[^)]*\)\.?\n?")
    for function, results in found.items():
        (texts,) = {tuple(filter(None, (empty.sub("", text) for text in one))) for one in results}
        doubts = "All scores" if case == "wrong" else "empty, refused, failed|answers of a failed"
        assert re.search(doubts, " ".join(" ".join(texts).split())), function


def test_measures_report_each_model_and_condition_with_constant_scores():
    frame = conditions()
    of_b = frame["model"] == "b"
    pairs = pd.DataFrame({"item": range(20), "first_correct": [0, 1] * 10, "second_correct": 0})

    found = accuracy(frame.assign(correct=frame["correct"].mask(of_b, 0)), by="form")
    assert found.sentences[1].startswith("All scores of b are 0 (80 answers); check")
    assert paired(pairs).sentences[1].startswith("All scores of all models (second) are 0 (20")


def test_measures_report_warnings_after_their_first_sentence():
    frame = answers(blank=(1, 2, 3)).assign(form="x")
    both = pd.concat([frame, frame.assign(form="y")])
    pairs = pd.DataFrame({"first_correct": 1, "second_correct": 1, "item": range(20)})

    assert accuracy(frame).sentences[1].startswith("3 of 40 answers of m are empty")
    assert consistency(both).sentences[1].startswith("6 of 80 answers of m are empty")
    assert paired(pairs).sentences[1].startswith("All scores are 1 (20 pairs)")


SENTENCES = ("Error: 429 Too Many Requests", "None", "API Error", "I cannot answer")


def with_failures(n_failed, *, n=100, n_correct=0, text=SENTENCES[0]):
    """Answers of two models, of which "one" often gives the same text."""
    rows = [
        {
            "item": i,
            "model": model,
            "prediction": f"{model} {i}",
            "references": [f"one {i}", f"two {i}"],
        }
        for model in ("one", "two")
        for i in range(n)
    ]
    frame = pd.DataFrame(rows).assign(correct=1)
    frame.loc[: n_failed - 1, ["prediction", "correct"]] = [text, 0]
    frame.loc[: n_correct - 1, "correct"] = 1
    return frame


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("interface", ["compare", "compare a file", "rule", "accuracy", "command"])
def test_frequent_answer_that_is_never_correct_is_in_the_finding(tmp_path, capsys, text, interface):
    frame = with_failures(12, text=text)
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    found = {
        "compare": lambda: compare(frame).sentences[0],
        "compare a file": lambda: compare(path).sentences[0],
        "rule": lambda: compare(frame.drop(columns="correct"), rule="exact").sentences[0],
        "accuracy": lambda: " ".join(accuracy(path).sentences),
        "command": lambda: f"{main(['compare', str(path)])} {capsys.readouterr().out}",
    }[interface]()

    expected = f"12 answers of one are the same text, {text!r}, and none is correct; check that it"
    assert expected in " ".join(found.split())
    assert "of two are the same text" not in found
    if interface != "rule":
        assert read_results(path).frame["score"].notna().all()


@pytest.mark.parametrize(("n_failed", "n", "n_correct"), [(9, 100, 0), (12, 240, 0), (12, 100, 1)])
def test_rare_or_sometimes_correct_answer_is_not_in_the_finding(n_failed, n, n_correct):
    finding = compare(with_failures(n_failed, n=n, n_correct=n_correct)).sentences[0]

    assert "the same text" not in finding


@pytest.mark.parametrize(("name", "best"), [("wer", 0), ("score", -1.5)])
def test_frequent_answer_with_the_best_score_is_not_reported(name, best):
    worse = 0.5 if name == "wer" else -1.0
    rows = [
        {"item": n, "model": model, name: best + (n >= k) * worse}
        | {"prediction": "yes" if n < k else f"no {n}"}
        for model, k in (("a", 20), ("b", 30))
        for n in range(40)
    ]

    assert "same text" not in compare(rows, score=name).sentences[0]


def test_error_of_all_rows_is_in_the_error_message():
    rows = [
        {"item": n, "model": m, "correct": 1, "error": "overload"} for m in "ab" for n in range(9)
    ]

    with pytest.raises(DataError, match="18 rows have an error, such as 'overload'"):
        compare(rows)
