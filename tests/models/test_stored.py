"""The runner of stored predictions."""

import json

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Message, Prompt
from surface_consistency.studies.redirectqa.demonstrations import DemonstrationPool
from surface_consistency.studies.redirectqa.prompts import build_prompts

TEXTS = {"q1": "Q: one? A:", "q2": "Q: two? A:", "q3": "Q: three? A:"}
PROMPTS = [Prompt(id=name, text=text) for name, text in TEXTS.items()]


def test_stored_runner_answers_by_id_before_text_or_question():
    runner = StoredRunner({"one?": "no", "q1": "London\nQ:", "Q: two? A:": "Paris"})

    first, second, missing = runner.generate(PROMPTS)

    assert (first.prompt_id, first.text) == ("q1", "London\nQ:")
    assert (second.prompt_id, second.text) == ("q2", "Paris")
    assert (missing.text, missing.finish_reason) == (None, "error")
    assert missing.error == "no stored prediction under id 'q3', its text or its question"


@pytest.mark.parametrize(
    ("stored", "gaps"),
    [
        (["q1", *(f"z{n}" for n in range(1200))], ("2", "'q2', 'q3'", "1,200", "'z0', 'z1', 'z2'")),
        (["q9", "q1", "Q: two? A:", "q0"], ("1", "'q3'", "2", "'q9', 'q0'")),
        (["one?", "q1", "q2", "q3"], None),
    ],
)
def test_gaps_count_prompts_and_predictions_without_a_match(stored, gaps):
    message = (
        "{} of 3 prompts have no stored prediction (such as {}); "
        "{} stored predictions belong to no prompt (such as {})"
    )

    found = StoredRunner(dict.fromkeys(stored, "x")).gaps(PROMPTS)

    assert found == (gaps and message.format(*gaps))


SHOTS = "Q: Who wrote Q: The Winged Serpent? A: Cohen\n\n"


LAST = "Q: Who directed Q: The Winged Serpent? A:"
TURNS = (("user", "Q: Who wrote Q: The Winged Serpent? A:"), ("assistant", "Cohen"), ("user", LAST))


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(id="x", text=f"{SHOTS}{LAST}"),
        Prompt(id="x", messages=tuple(Message(role=who, content=text) for who, text in TURNS)),
    ],
)
def test_stored_runner_answers_by_the_last_question(prompt):
    asked = "Who directed Q: The Winged Serpent?"
    runner = StoredRunner({"Who wrote Q: The Winged Serpent?": "no", asked: "Larry Cohen"})

    assert [answer.text for answer in runner.generate([prompt])] == ["Larry Cohen"]
    assert runner.gaps([prompt]) == (
        "1 stored predictions belong to no prompt (such as 'Who wrote Q: The Winged Serpent?')"
    )


def test_stored_runner_answers_few_shot_prompts_by_their_last_question(tmp_path):
    data = load_redirectqa("sample")
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
def test_stored_runner_does_not_extract_questions_from_other_formats(text):
    answer = next(StoredRunner({"Who?": "x", "": "y"}).generate([Prompt(id="a", text=text)]))

    assert answer.finish_reason == "error"


def test_fingerprint_depends_on_the_predictions_and_the_file_name(tmp_path):
    found = []
    for folder, text in (("a", "London"), ("b", "London"), ("c", "Paris")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "p.jsonl"
        path.write_text(json.dumps({"id": "q1", "text": text}) + "\n")
        found.append(StoredRunner(path).fingerprint())

    assert found[0] == found[1] != found[2]
    assert found[0]["source"] == "p.jsonl"


def test_stored_runner_reads_ids_from_the_given_column(tmp_path):
    (tmp_path / "p.csv").write_text("qid,id,text\nq1,0,London\n")

    runner = StoredRunner(tmp_path / "p.csv", item="qid")

    assert runner.gaps(PROMPTS).startswith("2 of 3 prompts")
