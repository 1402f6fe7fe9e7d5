import json

import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.studies.unlearning.settings import UnlearningSettings
from surface_consistency.studies.unlearning.study import UnlearningStudy

STUDY = UnlearningStudy()


def load(path, **source):
    return STUDY.load(STUDY.records.source(source=str(path), **source))


@pytest.fixture
def forget01(data_files):
    return data_files / "unlearning" / "tofu_forget01_perturbed.jsonl"


def test_tofu_is_queried_in_four_forms(forget01):
    plan = STUDY.plan(load(forget01), UnlearningSettings(), runner=FakeRunner(str))
    settings = UnlearningSettings(chat=True, limit=5)
    chat = STUDY.plan(load(forget01), settings, runner=FakeRunner(str))

    forms = plan.items["form"].value_counts()
    assert set(forms.index) == {"plain", "reworded", "name", "long"}
    assert forms["long"] == 38
    assert len(plan.pairs) == len(plan.items) - 38
    assert plan.groups[""].prompts[0].text.endswith("\nAnswer:")
    assert chat.groups[""].prompts[0].messages[0].role == "user"
    # A limit keeps all questions of a fact.
    assert chat.items["item"].nunique() == 5


def test_model_that_answers_only_under_the_long_name_is_detected(forget01, tmp_path):
    data = load(forget01)
    plain = data.rows[data.rows["form"] == "plain"]
    known = dict(zip(plain["question"], plain["references"], strict=True))
    known = {f"Question: {question}\nAnswer:": answers[0] for question, answers in known.items()}
    model = FakeRunner(lambda prompt: known.get(prompt.text, "unknown"))

    settings = UnlearningSettings(repeat=0)
    folder = run_study(STUDY, data, model, tmp_path / "run", model="m", settings=settings)
    score_run(folder, study=STUDY)

    frame = pd.read_parquet(folder.outcomes)
    by_form = frame.groupby("second_condition")
    assert by_form["first_correct"].mean().to_dict() == {"long": 1, "name": 1, "reworded": 1}
    assert by_form["second_correct"].mean()["name"] < 0.1


def test_edits_are_queried_with_both_objects(data_files, tmp_path):
    content = json.loads((data_files / "unlearning" / "editing_records.json").read_text("utf-8"))
    path = tmp_path / "edits.json"
    path.write_text(json.dumps(content["counterfact_edit"]), "utf-8")

    plan = STUDY.plan(load(path), UnlearningSettings(forms=("plain", "reworded")))

    kinds = plan.items["kind"].value_counts().to_dict()
    assert kinds == {"forget": 40, "new object": 40, "neighbour": 20}
    alone = plan.pairs[plan.pairs["second_target"].isna()]
    assert set(alone["kind"]) == {"neighbour"}


def test_unknown_form_is_rejected(forget01):
    with pytest.raises(
        DataError, match=r"form 'reverse' not found in .*; the forms are plain, reworded"
    ):
        STUDY.plan(load(forget01), UnlearningSettings(forms=("plain", "reverse")))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "pass the short answers of its questions by `short_answers`"),
        ('[{"edit": {}, "Forgetfulness": []}]', r"rows\.json contains no facts"),
        ('[{"text": "a"}]', r"has the columns text; pass rows of TOFU .* RippleEdits"),
    ],
)
def test_invalid_sources_are_rejected(forget01, tmp_path, content, match):
    path, answers = tmp_path / "rows.json", tmp_path / "answers.tsv"
    path.write_text(content or "", "utf-8")
    answers.write_text("index\tanswer\n0\tOuagadougou\n", "utf-8")

    with pytest.raises(DataError, match=match):
        load(path if content else forget01, short_answers=None if content else answers)


def test_unusual_number_of_tofu_questions_emits_a_warning(tmp_path):
    path, answers = tmp_path / "rows.jsonl", tmp_path / "answers.tsv"
    rows = [{"question": f"Who is {n}?", "answer": f"It is Ann {n}."} for n in range(30)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    lines = [f"{n}\tAnn {n}" for n in range(30)]
    answers.write_text("\n".join(["index\tanswer", *lines]), "utf-8")

    with pytest.warns(SurfaceConsistencyWarning, match="has 30 questions, and no set of TOFU"):
        data = load(path, short_answers=answers)

    assert data.rows["cluster"].nunique() == 30


def test_fact_with_one_form_is_queried_and_not_compared(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = ("a plain Who? A forget", "a name Wer? A forget", "b plain What? B retain")
    columns = ["item", "form", "question", "references", "set"]
    frame = pd.DataFrame(map(str.split, rows), columns=columns)
    frame.to_json(path, orient="records", lines=True)

    plan = STUDY.plan(load(path), UnlearningSettings(forms=("name",)))

    a, b = [f"forget / a | {form}" for form in ("plain", "name")], "retain / b | plain"
    assert plan.items["target_id"].tolist() == [*a, b]
    assert plan.pairs["second_target"].tolist() == [a[1], None]
    assert plan.pairs["first_target"].tolist() == [a[0], b]
