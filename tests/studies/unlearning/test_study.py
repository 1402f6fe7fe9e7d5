import json

import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.errors import DataError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.unlearning.study import UnlearningSettings, UnlearningStudy

STUDY = UnlearningStudy()


def load(path, **source):
    """Facts and forms of a file."""
    return STUDY.load(STUDY.source(source=str(path), **source))


@pytest.fixture
def forget01(data_files):
    """TOFU's forget01 as on the hub."""
    return data_files / "unlearning" / "tofu_forget01_perturbed.jsonl"


def test_tofu_is_asked_in_four_forms(forget01, tmp_path):
    data = load(forget01)

    plan = STUDY.plan(data, UnlearningSettings())

    forms = plan.items["form"].value_counts()
    assert set(forms.index) == {"plain", "reworded", "name", "long"}
    assert forms["long"] == 38
    assert len(plan.pairs) == len(plan.items) - 38
    assert plan.groups[""].prompts[0].text.endswith("\nAnswer:")


def test_model_that_knows_the_long_name_alone_is_seen(forget01, tmp_path):
    """It repeats the answer where the question holds the full name."""
    data = load(forget01)
    plain = data[1][data[1]["form"] == "plain"]
    told = dict(zip(plain["question"], plain["answers"], strict=True))
    model = FakeRunner(
        lambda prompt: told.get(prompt.text.removeprefix("Question: ")[:-8], ["unknown"])[0]
    )

    settings = UnlearningSettings(repeat=0)
    folder = run_study(STUDY, data, model, tmp_path / "run", model="m", settings=settings)
    score_run(folder, study=STUDY)

    frame = pd.read_parquet(folder.outcomes)
    by_form = frame.assign(form=frame["form"].str[0]).groupby("form")
    assert by_form["first_correct"].mean().to_dict() == dict.fromkeys(
        ("long", "name", "reworded"), 1.0
    )
    assert by_form["second_correct"].mean()["name"] < 0.1


def test_edits_are_asked_with_both_objects(data_files, tmp_path):
    content = json.loads((data_files / "unlearning" / "editing_records.json").read_text("utf-8"))
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(content["counterfact_edit"]), "utf-8")

    plan = STUDY.plan(load(path), UnlearningSettings(forms=("plain", "reworded")))

    assert plan.items["set"].value_counts().to_dict() == {
        "forget": 40,
        "new object": 40,
        "neighbour": 20,
    }
    alone = plan.pairs[plan.pairs["second_target"].isna()]
    assert set(alone["set"].str[0]) == {"neighbour"}


def test_chat_prompts_are_turns(forget01):
    plan = STUDY.plan(load(forget01), UnlearningSettings(chat=True))

    assert plan.groups[""].prompts[0].messages[0].role == "user"


def test_form_that_is_not_there_is_refused(forget01):
    with pytest.raises(DataError, match="forms names reverse; the data have plain, reworded"):
        STUDY.plan(load(forget01), UnlearningSettings(forms=("plain", "reverse")))


def test_short_answers_of_other_questions_are_refused(forget01, tmp_path):
    answers = tmp_path / "answers.tsv"
    answers.write_text("index\tanswer\n0\tOuagadougou\n", "utf-8")

    with pytest.raises(DataError, match="give those of its questions by --short-answers"):
        load(forget01, short_answers=answers)


def test_unknown_columns_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n', "utf-8")

    with pytest.raises(DataError, match=r"has the columns text; rows are TOFU's .* RippleEdits"):
        load(path)


def test_facts_are_limited_whole(forget01):
    plan = STUDY.plan(load(forget01), UnlearningSettings(limit=5))

    assert plan.items["fact_id"].nunique() == 5
