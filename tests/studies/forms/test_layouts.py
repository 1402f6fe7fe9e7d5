"""Presets on small files in the layout of each data set."""

import csv
import gzip
import json
import warnings

import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.studies.forms import load_forms
from surface_consistency.studies.forms.layouts import presets
from tests.made_data import own_caches  # noqa: F401 - fixture
from tests.studies.unlearning.test_questions import ROME

NOTES = "ignore::surface_consistency.errors.SurfaceConsistencyWarning"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def lines(path, rows):
    write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def table(path, rows, delimiter=","):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def read(folder, preset):
    """Load without the warnings about licence and data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        data = load_forms(str(folder), preset=preset)
    return data, data.rows.set_index(["item", "form"])


def test_popqa_robustness(tmp_path):
    rows = [
        {"id": 41, "question": "What is X's job?", "variant_id": 0, "variant_type": "original"},
        {"id": 41, "question": "what is X's job", "variant_id": 1, "variant_type": "simple"},
        {"id": 41, "question": "X works as a?", "variant_id": 3, "variant_type": "paraphrase"},
    ]
    table(
        tmp_path / "PopQA_robustness.csv",
        [row | {"possible_answers": '["politician", "pol"]'} for row in rows],
    )

    data, rows = read(tmp_path, "popqa-robustness")

    assert data.wordings == "own"
    assert rows.loc[("41", "3"), "references"] == ("politician", "pol")
    assert rows["kind"].tolist() == ["original", "simple", "paraphrase"]
    assert data.layout.reference == "0"


def test_pararel_joins_templates_and_warns_of_licence_and_merged_answers(tmp_path):
    home = tmp_path / "data"
    tuples = [
        {"sub_label": "Finland", "obj_label": "Finnish", "uuid": "a"},
        {"sub_label": "Finland", "obj_label": "Swedish", "uuid": "b"},
        {"sub_label": "France", "obj_label": "French", "uuid": "c"},
    ]
    patterns = [
        {"pattern": "The official language of [X] is [Y] .", "lemma": "be"},
        {"pattern": "In [X], people speak [Y] .", "lemma": "speak"},
        {"pattern": "[Y] is spoken in [X] .", "lemma": "speak"},
    ]
    lines(home / "trex_lms_vocab" / "P37.jsonl", tuples)
    lines(home / "pattern_data" / "graphs_json" / "P37.jsonl", patterns)

    with pytest.warns(SurfaceConsistencyWarning, match="licence: MIT|rows of") as caught:
        data = load_forms(str(tmp_path), preset="pararel")

    assert "licence: MIT" in str(caught[0].message)
    assert "3 rows of" in str(caught[1].message)
    assert "their answers are also accepted" in str(caught[1].message)
    assert all(layout.licence for layout in presets().values())
    rows = data.rows.set_index(["item", "form"])
    assert data.wordings == "templates"
    assert rows.loc[("P37 Finland", "pattern 0"), "references"] == ("Finnish", "Swedish")
    assert rows.loc[("P37 France", "pattern 1"), "question"] == "In France, people speak "
    assert rows.loc[("P37 France", "pattern 1"), "rest"] == " ."
    assert set(rows["relation"]) == {"P37"}


def test_mpararel_has_one_kind_per_language(tmp_path):
    for language, pattern in (("en", "[X] lies in [Y]."), ("es", "[X] está en [Y].")):
        home = tmp_path / "data"
        lines(home / "patterns" / language / "P30.jsonl", [{"pattern": pattern}])
        subject = {"sub_uri": "Q1", "sub_label": "Vantaa", "obj_label": "Europa", "obj_uri": "Q2"}
        lines(home / "tuples" / language / "P30.jsonl", [subject | {"lineid": 7}])
    data, rows = read(tmp_path, "mpararel")

    assert data.wordings == "templates"
    assert rows.loc[("P30 Q1", "es 0"), ["kind", "question"]].tolist() == ["es", "Vantaa está en "]


def test_mpararel_of_the_hub(tmp_path):
    rows = [
        {"language": language, "relation": "P30", "template_id": 0, "query": query}
        | {"sub_uri": "Q1", "obj_label": ["Europe"]}
        for language, query in (("en", "Vantaa lies in"), ("es", "Vantaa está en"))
    ]
    path = tmp_path / "rows.parquet"
    pd.DataFrame(rows).to_parquet(path)
    _, rows = read(path, "mpararel-hub")

    assert rows.loc[("P30 Q1", "en 0"), "question"] == "Vantaa lies in"


@pytest.mark.parametrize("has_one_question", [True, False])
def test_bmlama_reads_quotes_and_removes_correct_answers_from_incorrect_candidates(
    tmp_path, has_one_question
):
    """A candidate that is removed in one language is removed in all."""
    english = [
        {"Prompt": "Charles II was born in <mask>.", "Ans": "Madrid", "Subject": "Charles II"},
        {"Prompt": "Charles II was born in <mask>.", "Ans": "London", "Subject": "Charles II"},
    ]
    hebrew = [row | {"Prompt": "צ'ארלס ה-2 (צה\"ל) נולד ב<mask>."} for row in english]
    if not has_one_question:
        hebrew[1]["Prompt"] = hebrew[1]["Prompt"].replace("נולד", "יליד")
    for language, rows in (("en", english), ("he", hebrew)):
        rows = [row | {"Candidate Ans": "Toronto, Madrid, London"} for row in rows]
        table(tmp_path / f"{language}.tsv", rows, delimiter="\t")

    _, rows = read(tmp_path, "bmlama")

    assert rows.loc[("1", "he"), "question"] == "צ'ארלס ה-2 (צה\"ל) נולד ב"
    assert rows["choices"].tolist() == [("Toronto", "Madrid"), ("Toronto", "London")] * 2
    assert rows["cluster"].nunique() == 1


def test_klar_splits_lines_at_their_last_colon(tmp_path):
    write(tmp_path / "en.txt", "Which continent is Vantaa in? The answer is: Europe\n")
    write(tmp_path / "zh.txt", "万塔位于哪个大洲？答案是：欧洲\n")
    _, rows = read(tmp_path, "klar")

    assert rows.loc[("1", "zh"), "question"] == "万塔位于哪个大洲？答案是："
    assert rows.loc[("1", "zh"), "references"] == ("欧洲",)


@pytest.mark.filterwarnings(NOTES)
def test_mkqa_excludes_questions_without_an_answer(tmp_path):
    def row(number, kind, text):
        answer = {"type": kind, "text": text, "aliases": ["four"] if text else None}
        return {
            "example_id": number,
            "query": "how many",
            "queries": {"en": f"how many {number}", "fr": f"combien {number}"},
            "answers": {"en": [answer], "fr": [answer]},
        }

    questions = (row(1, "number", "4"), row(2, "unanswerable", None))
    text = "".join(json.dumps(one) + "\n" for one in questions)
    (tmp_path / "mkqa.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.warns(UnscoredWarning, match="2 rows of .* have no accepted answer"):
        rows = load_forms(str(tmp_path), preset="mkqa").rows.set_index(["item", "form"])

    assert rows.loc[("1", "fr"), ["question", "references"]].tolist() == [
        "combien 1",
        ("4", "four"),
    ]


def test_global_mmlu_has_letters_as_choices(tmp_path):
    for language in ("en", "sw"):
        row = {"sample_id": "anatomy/1", "subject": "anatomy", "question": f"Q {language}"}
        row |= {f"option_{letter}": letter.upper() * 2 for letter in "abcd"} | {"answer": "C"}
        (tmp_path / language).mkdir()
        pd.DataFrame([row]).to_parquet(tmp_path / language / "test-00000-of-00001.parquet")
    _, rows = read(tmp_path, "global-mmlu")

    question = "Q sw\nA. AA\nB. BB\nC. CC\nD. DD\nAnswer:"
    assert rows.loc[("anatomy/1", "sw"), "question"] == question
    assert rows.loc[("anatomy/1", "sw"), "choices"] == ("A", "B", "C", "D")
    assert rows["references"].tolist() == [("C",)] * 2


def test_counterfact_has_the_rewrite_and_two_paraphrases(tmp_path):
    paraphrases = ["Shayna. Danielle Darrieux, a native", "Danielle Darrieux speaks"]
    row = ROME | {"paraphrase_prompts": paraphrases}
    write(tmp_path / "counterfact.json", json.dumps([row]))
    _, rows = read(tmp_path, "counterfact")

    assert rows.loc[("0", "rewrite"), "question"] == "The mother tongue of Danielle Darrieux is"
    assert rows["choices"].tolist() == [("French", "English")] * 3
    assert rows["relation"].tolist() == ["P103"] * 3


def test_reversal_curse_has_both_directions(tmp_path):
    row = {"child": "Sasha Calle", "parent": "Samira Calle", "parent_type": "mother"}
    row |= {"child_prediction": "", "can_reverse": "False"}
    table(tmp_path / "parent_child_pairs.csv", [row])
    _, rows = read(tmp_path, "reversal-curse")
    item = "Sasha Calle mother Samira Calle"

    assert rows.loc[(item, "forward"), "question"] == "Who is Sasha Calle's mother?"
    assert rows.loc[(item, "backward"), "references"] == ("Sasha Calle",)
    assert rows["cluster"].tolist() == ["Sasha Calle"] * 2


@pytest.mark.parametrize(
    ("source", "preset", "error", "match"),
    [
        ("", "pararel", DataError, "no repository on the hub: download the data"),
        ("", "counterfact", SourceNotFoundError, "cannot be reached and 'azhx/counterfact'"),
        ("here", "parrarel", DataError, "did you mean 'pararel'"),
        ("empty", "klar", SourceNotFoundError, "contains no file"),
        ("rows.jsonl", *("popqa-robustness", ColumnNotFoundError, r"no 'id'; .* Columns: a")),
    ],
)
def test_sources_of_another_layout_raise_an_error(
    tmp_path, monkeypatch, source, preset, error, match
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    lines(tmp_path / "rows.jsonl", [{"a": 1}])

    with pytest.raises(error, match=match):
        load_forms(source, preset=preset)
