"""The runner over predictions made elsewhere."""

import json

import pytest

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Message, Prompt
from surface_consistency.studies.redirectqa.demonstrations import DemonstrationPool
from surface_consistency.studies.redirectqa.prompts import build_prompts

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
    assert answer.error == "no stored prediction under id 'q2', its text or its question"


SHOTS = "Q: Who wrote Q: The Winged Serpent? A: Cohen\n\n"


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(id="x", text=f"{SHOTS}Q: Who directed Q: The Winged Serpent? A:"),
        Prompt(
            id="x",
            messages=(
                Message(role="user", content="Q: Who wrote Q: The Winged Serpent? A:"),
                Message(role="assistant", content="Cohen"),
                Message(role="user", content="Q: Who directed Q: The Winged Serpent? A:"),
            ),
        ),
    ],
)
def test_stored_runner_answers_by_the_last_question(prompt):
    """Predictions by question belong to few-shot prompts, plain or chat; demonstrations do not."""
    asked = "Who directed Q: The Winged Serpent?"
    runner = StoredRunner({"Who wrote Q: The Winged Serpent?": "no", asked: "Larry Cohen"})

    assert [answer.text for answer in runner.generate([prompt])] == ["Larry Cohen"]
    assert runner.gaps([prompt]) == (
        "1 stored predictions belong to no prompt (such as 'Who wrote Q: The Winged Serpent?')"
    )


def test_stored_runner_answers_whole_few_shot_prompts(tmp_path):
    """A file by question answers every prompt that the package builds of those questions."""
    data = load_sample()
    questions, rows = data.questions, data.rows
    lines = [
        json.dumps({"question": q.question, "prediction": q.question[::-1]}) for q in questions
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    runner = StoredRunner(tmp_path / "p.jsonl")

    for style in ("completion", "chat"):
        prompts = list(build_prompts(rows, DemonstrationPool(rows), shots=3, prompt_format=style))
        assert runner.gaps(prompts) is None
        texts = [answer.text for answer in runner.generate(prompts)]
        assert texts == [question.question[::-1] for question in questions]


@pytest.mark.parametrize(
    "text", ["Who? A: Q:", "Q: Who?", "Who? A:", "So Q: Who? A:", "Q: Who? A: "]
)
def test_stored_runner_takes_no_question_off_other_prompts(text):
    """Only a last line `Q: ... A:` holds a question."""
    answer = next(StoredRunner({"Who?": "x", "": "y"}).generate([Prompt(id="a", text=text)]))

    assert answer.finish_reason == "error"


def test_gaps_know_a_prompt_by_all_its_names():
    """Predictions under both id and question of one prompt are not foreign; the id wins."""
    runner = StoredRunner({"one?": "second", "q1": "first"})

    assert runner.gaps(PROMPTS[:1]) is None
    assert next(runner.generate(PROMPTS[:1])).text == "first"


def test_gaps_are_what_does_not_meet():
    runner = StoredRunner({"q1": "x", **{f"z{number}": "y" for number in range(1200)}})

    assert runner.gaps(PROMPTS) == (
        "2 of 3 prompts have no stored prediction (such as 'q2', 'q3'); 1,200 stored predictions "
        "belong to no prompt (such as 'z0', 'z1', 'z2')"
    )


def test_gaps_count_both_sides():
    """Questions without predictions and predictions without questions are two counts."""
    runner = StoredRunner({"q9": "x", "q1": "London", "Q: two? A:": "Paris", "q0": "y"})

    assert runner.gaps(PROMPTS) == (
        "1 of 3 prompts have no stored prediction (such as 'q3'); 2 stored predictions belong to "
        "no prompt (such as 'q9', 'q0')"
    )


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

    runner = StoredRunner(tmp_path / "p.csv", item="qid")

    assert runner.gaps(PROMPTS).startswith("2 of 3 prompts")
