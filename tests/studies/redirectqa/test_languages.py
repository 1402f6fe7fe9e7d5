"""RedirectQA in another language: frame, demonstrations, rule, and their checks."""

import json
import math
import re

import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.report import build_page
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import RuleScoring, score_run
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataError, RecordError, SurfaceConsistencyWarning
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import Generation, Prompt, read_jsonl
from surface_consistency.studies.redirectqa.prompts import FRAMES
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.tables.numbers import sentence_text

FACTS = (
    ("capital", "日本", "にほん", "東京都"),
    ("capital", "京都府", "京府", "京都市"),
    ("author", "羅生門", "らしょうもん", "芥川龍之介"),
    ("director", "七人の侍", "7人の侍", "黒澤明"),
)
ASKED_IN_JAPANESE = {"capital": "首都はどこ", "author": "著者は誰", "director": "監督は誰"}
ASKED = {
    "ja": lambda relation, name: f"{name}の{ASKED_IN_JAPANESE[relation]}ですか?",
    "th": lambda relation, name: f"{name} อยู่ที่ไหนในประเทศนี้",
    "my": lambda relation, name: f"{name} ဘယ်မှာရှိသလဲ",
    "fr": lambda relation, name: f"Quel est le {relation} de {name} ?",
    "en": lambda relation, name: f"What is the {relation} of {name}?",
}


def rows(language):
    """Facts under two names each, with questions in one language."""
    return [
        {
            "triplet_id": number,
            "subject_id": f"Q{number}",
            "subject_surface": name,
            "subject_surface_category": ["__MAIN__"]
            if name == title
            else ["Redirects_from_plurals"],
            "subject_wiki_title": title,
            "subject_redirect_wiki_title": None if name == title else name,
            "relation": relation,
            "object_surface": answer,
            "object_aliases": [answer],
            "template": "original",
            "question": ASKED[language](relation, name),
        }
        for number, (relation, title, redirect, answer) in enumerate(FACTS)
        for name in (title, redirect)
    ]


class Saying(Runner):
    """Runner with one answer to all prompts."""

    name = "saying"

    def __init__(self, text, finish_reason):
        self.text, self.finish_reason = text, finish_reason

    def fingerprint(self):
        return {"runner": self.name}

    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text=self.text, finish_reason=self.finish_reason)


def asked(language, out, *, answer=" 東京都です", finish_reason="stop", **settings):
    """Run the study, and return the folder and its prompts."""
    data = load_redirectqa(rows(language))
    runner, chosen = Saying(answer, finish_reason), RedirectQASettings(repeat=0, **settings)
    options = {"model": "m", "settings": chosen, "progress": False}
    folder = run_study(RedirectQAStudy(), data, runner, out, **options)
    return folder, list(read_jsonl(folder.prompts, Prompt))


def notes(folder, rule="popqa", *, agreement=False):
    """Score, report, and return the console output."""
    score_run(folder, scoring=RuleScoring(rule=rule, agreement=agreement))
    page, _, _ = build_page([folder.path], settings=ReportSettings(resamples=10))
    return " ".join(sentence_text(check.text) for check in page.checks if check.level != "ok")


def test_questions_have_the_frame_of_their_language(tmp_path):
    folder, prompts = asked("ja", tmp_path / "run")

    assert folder.read_manifest().settings["frame"] == "ja"
    assert all(
        prompt.text.count("質問: ") == prompt.text.count(" 回答:") == 3 for prompt in prompts
    )
    assert not any("Q:" in prompt.text for prompt in prompts)
    # Demonstrations are drawn from the data, so they are in its language.
    answers = {answer for _, _, _, answer in FACTS}
    for prompt in prompts:
        *solved, last = prompt.text.split("\n\n")
        assert {block.rpartition("回答: ")[2] for block in solved} < answers
        assert last.endswith("回答:")
    assert "frame" not in notes(folder)


@pytest.mark.parametrize(
    ("language", "asking", "page"),
    [
        ("my", "'my', a language without a frame", "language of their frame 'Q: {question} A:' is"),
        ("fr", "the language of the questions could not be", "If they are not English, run again"),
    ],
)
def test_language_without_a_frame_or_name_is_reported(tmp_path, language, asking, page):
    assert "my" not in FRAMES

    with pytest.warns(SurfaceConsistencyWarning, match=asking):
        folder, prompts = asked(language, tmp_path / "run")

    assert prompts[0].text.startswith("Q: ")
    assert page in notes(folder)


@pytest.mark.parametrize(
    ("language", "frame", "start", "note"),
    [
        ("th", "en", "Q: ", "the questions are in 'th'.* Run again with `frame=th`"),
        ("th", "ถาม {question} ตอบ", "ถาม ", None),
        # The frame of the Japanese paper (section 3.1) is English, "Q: <question> A:".
        ("en", None, "Q: What is the ", None),
    ],
)
def test_frame_of_another_language_is_reported(tmp_path, language, frame, start, note):
    folder, prompts = asked(language, tmp_path / "run", frame=frame)

    assert folder.read_manifest().settings["frame"] == (frame or "en")
    assert prompts[0].text.startswith(start)
    found = notes(folder)
    assert "frame" not in found if note is None else re.search(note, found)


def test_language_of_the_card_is_used_if_it_cannot_be_detected(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    pd.DataFrame(rows("fr")).to_json(folder / "test.jsonl", orient="records", lines=True)
    for card, language in (
        ("---\nlanguage:\n- fr\n---\n", "fr"),
        ("---\nlanguage: fr\n---\n", "fr"),
        ("---\nlanguage: pt-BR\n---\n", "pt-BR"),
        ("---\nlanguage: [fr, de]\n---\n", None),
        ("---\nlanguage: [\n---\n", None),
        ("no card", None),
    ):
        (folder / "README.md").write_text(card, encoding="utf-8")
        data = load_redirectqa(folder / "test.jsonl" if "[\n" in card else folder)

        assert data.language == data.select(limit=1).language == language
        if language is not None:
            settings = RedirectQASettings(limit=1)
            plan = RedirectQAStudy().plan(data, settings, runner=Saying("x", "stop"))
            assert plan.settings.frame == language[:2]


def test_number_of_labels_that_change_with_segmentation_is_reported(tmp_path, monkeypatch):
    """京都 as a further name of 京都市 is found in 東京都, under both names of the fact."""
    pytest.importorskip("icu4py")
    made = [
        row | ({"object_aliases": ["京都市", "京都"]} if row["object_surface"] == "京都市" else {})
        for row in rows("ja")
    ]
    monkeypatch.setitem(globals(), "rows", lambda language: made)
    folder, _ = asked("ja", tmp_path / "run", answer=" それは東京都です")

    printed = notes(folder, agreement=True)

    assert (
        "By words 2 of 8 labels change: 2 correct ones become incorrect, 0 incorrect ones correct"
        in printed
    )
    english, _ = asked("ja", tmp_path / "english", answer=" Tokyo")
    assert "segmented" not in notes(english, agreement=True)
    assert "segmented" not in (english.checks / "rules.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("answer", "finish_reason", "n_cut"),
    [
        (" 東京", "length", 2),
        # Half of a letter, which can result from byte tokens.
        (" 東\ufffd", "length", 2),
        (" 東京", "stop", 0),
        (" 大阪", "length", 0),
        (" 東京都", "length", 0),
        (" ", "length", 0),
    ],
)
def test_answers_truncated_by_the_limit_are_reported(tmp_path, answer, finish_reason, n_cut):
    """東京 is incorrect for 東京都 by the paper's rule, although the answer was truncated."""
    folder, _ = asked("ja", tmp_path / "run", answer=answer, finish_reason=finish_reason)

    printed = notes(folder)

    assert ("within an accepted answer" in printed) is (n_cut > 0)
    assert (f"{n_cut} of 8 answers end at the token limit" in printed) is (n_cut > 0)


def demonstrations(path, *lines):
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return str(path)


def test_custom_demonstrations_are_used_in_their_order(tmp_path):
    file = demonstrations(
        tmp_path / "own.jsonl",
        {"question": "フランスの首都はどこですか?", "answer": "パリ", "relation": "capital"},
        {"question": "七人の侍の監督は誰ですか?", "answer": "黒澤明"},
        {"question": "雪国の著者は誰ですか?", "answer": "川端康成", "relation": "P50"},
        {"question": "別の聞き方?", "answer": "はい", "template": "paraphrase"},
    )

    folder, prompts = asked("ja", tmp_path / "run", demonstration_file=file)

    # Each question has two: those of its relation and of its fact are excluded.
    assert folder.read_manifest().settings["shots"] == 2
    solved = {
        "capital": "フランスの首都はどこですか? 回答: パリ",
        "director": "七人の侍の監督は誰ですか? 回答: 黒澤明",
        "author": "雪国の著者は誰ですか? 回答: 川端康成",
    }
    found = {prompt.text.split("\n\n")[-1]: prompt.text.split("\n\n")[:-1] for prompt in prompts}
    assert found == {
        f"質問: {ASKED['ja'](relation, name)} 回答:": [
            f"質問: {text}" for other, text in solved.items() if other != relation
        ]
        for relation, *names, _ in FACTS
        for name in names
    }


def test_members_of_a_pair_share_the_given_demonstrations(tmp_path):
    """Also if one of them is the question of the fact under its title."""
    file = demonstrations(
        tmp_path / "own.jsonl",
        {"question": "七人の侍の監督は誰ですか?", "answer": "黒澤明"},
        {"question": "雪国の著者は誰ですか?", "answer": "川端康成"},
        {"question": "富士山はどこの国にありますか?", "answer": "日本"},
    )

    _, prompts = asked("ja", tmp_path / "run", demonstration_file=file, shots=2)

    before = {}
    for prompt in prompts:
        *solved, last = prompt.text.split("\n\n")
        before.setdefault(last.endswith("監督は誰ですか? 回答:"), set()).add("\n".join(solved))
    assert {len(found) for found in before.values()} == {1}
    assert "七人の侍" not in next(iter(before[True]))
    assert {prompt.group for prompt in prompts} == {
        "original|given 0,1,2|2",
        "original|given 1,2|2",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"question": "Who?"}, "own.jsonl:1: a demonstration needs a question and an answer"),
        ({"question": "Who?", "answer": " "}, "needs a question and an answer"),
        ({"question": "Who?", "answer": ["x", "y"]}, "answer is not a text, got .*give one text"),
        ({"question": "Who?", "answer": math.nan}, "needs a question and an answer"),
        ({"question": "Who?", "gold": "x"}, "columns of a demonstration: gold; rename or drop"),
    ],
)
def test_errors_of_a_file_of_demonstrations_name_the_line(tmp_path, line, message):
    file = demonstrations(tmp_path / "own.jsonl", line)

    with pytest.raises(RecordError, match=message):
        asked("ja", tmp_path / "run", demonstration_file=file)


def test_more_shots_than_demonstrations_and_conflicting_options_raise_errors(tmp_path):
    line = {"question": "Who?", "answer": "x", "relation": "capital"}
    file = demonstrations(tmp_path / "own.jsonl", line)

    for settings, error, message in (
        ({}, DataError, r"own.jsonl may precede questions of 'capital'"),
        ({"shots": 1}, ValueError, "only 0 of the 1 demonstrations may precede"),
        ({"demonstrations": "per_fact"}, ValueError, "omit one of the two"),
    ):
        with pytest.raises(error, match=message):
            asked("ja", tmp_path / "run", demonstration_file=file, **settings)
