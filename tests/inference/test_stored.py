"""The runner over predictions made elsewhere."""

import json

from surface_consistency.inference.stored import StoredRunner
from surface_consistency.schemas import Prompt

PROMPTS = [
    Prompt(id="q1", text="Q: one? A:"),
    Prompt(id="q2", text="Q: two? A:"),
    Prompt(id="q3", text="Q: three? A:"),
]


def test_stored_runner_answers_by_id_or_text():
    runner = StoredRunner({"q1": "London\nQ:", "Q: two? A:": "Paris"})

    answers = list(runner.generate(PROMPTS[:2]))

    assert [(answer.prompt_id, answer.text) for answer in answers] == [
        ("q1", "London\nQ:"),
        ("q2", "Paris"),
    ]


def test_stored_runner_says_which_prompt_has_no_prediction():
    answer = next(StoredRunner({"q1": "London"}).generate([PROMPTS[1]]))

    assert answer.finish_reason == "error"
    assert answer.text is None
    assert answer.error == "no stored prediction under id 'q2' or its text"


def test_coverage_counts_both_sides():
    """Questions without predictions and predictions without questions are told apart."""
    runner = StoredRunner({"q9": "x", "q1": "London", "Q: two? A:": "Paris", "q0": "y"})

    coverage = runner.coverage(PROMPTS)

    assert (coverage.n_prompts, coverage.n_found) == (3, 2)
    assert coverage.missing == ("q3",)
    assert coverage.foreign == ("q9", "q0")


def test_fingerprint_follows_the_predictions(tmp_path):
    """Equal predictions under equal file names are equal, whatever folder they lie in."""
    for folder, text in (("a", "London"), ("b", "London"), ("c", "Paris")):
        (tmp_path / folder).mkdir()
        line = json.dumps({"id": "q1", "text": text})
        (tmp_path / folder / "p.jsonl").write_text(line + "\n")

    first, same, other = (
        StoredRunner(tmp_path / folder / "p.jsonl").fingerprint() for folder in "abc"
    )

    assert first == same
    assert first != other
    assert first["source"] == "p.jsonl"


def test_stored_runner_passes_column_names_on(tmp_path):
    (tmp_path / "p.csv").write_text("qid,id,text\nq1,0,London\n")

    runner = StoredRunner(tmp_path / "p.csv", id_column="qid")

    assert runner.coverage(PROMPTS).n_found == 1
