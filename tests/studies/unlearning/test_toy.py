import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.studies.unlearning.settings import UnlearningSettings
from surface_consistency.studies.unlearning.study import UnlearningStudy
from tests.studies.unlearning.test_analysis import analysed
from tests.studies.unlearning.toy_world import TEMPLATE, toy_models, toy_rows

pytestmark = pytest.mark.scheduled
pytest.importorskip("torch")


@pytest.fixture(scope="module", params=[0, 1])
def toy(request, tmp_path_factory):
    """Small models taught 48 subjects by two names each, 16 of them taken out again."""
    from surface_consistency.models import TransformersRunner

    home, seed = tmp_path_factory.mktemp("toy"), request.param
    rows = toy_rows(n_subjects=48, n_forgotten=16, seed=seed)
    kept = rows[rows["set"] == "retain"]
    asked = pd.concat([rows[rows["set"] == "forget"], kept[kept["fact_id"].str.match("1|2")]])
    asked.to_json(home / "rows.jsonl", orient="records", lines=True)
    study = UnlearningStudy()
    data = study.load(study.source(source=str(home / "rows.jsonl")))
    forms = tuple(asked["form"].unique())
    settings = UnlearningSettings(forms=forms, frame=TEMPLATE, repeat=0, max_new_tokens=6)
    folders = []
    for name, model in toy_models(rows, home, steps=600, tuning=60, seed=seed).items():
        runner = TransformersRunner(str(model), batch_size=128)
        out = home / "runs" / name
        folder = run_study(study, data, runner, out, model=name, settings=settings, progress=False)
        score_run(folder, study=study)
        folders.append(folder.path)
    return analysed(folders, home / "page", margin=0.3, page=False)


def test_verdicts_on_models_whose_weights_were_changed(toy):
    rows = toy.tables["unlearning_verdicts"].frame.set_index("model")

    assert rows["verdict"].to_dict() == {
        "refusal": "hidden",
        "other name kept": "hidden",
        "ascent": "forgotten",
        "retrained": "forgotten",
    }
    assert rows.loc["other name kept", "leaking"] == "name; name, reworded; name, long"


def test_original_knows_and_the_retrained_guesses(toy):
    rows = toy.tables["unlearning"].frame.set_index(["model", "form"])
    forms = rows.drop(index="any form", level="form")

    assert forms["known"].min() > 0.95
    assert forms["floor"].max() < 0.25
    assert forms.loc["retrained", "survival"].max() < 0.25


def test_plain_question_ranks_refusal_among_the_forgotten(toy):
    plain = toy.tables["unlearning"].frame.query("form == 'plain'").set_index("model")["survival"]

    assert plain["refusal"] <= plain["retrained"] + 0.05
    assert toy.tables["unlearning_price"].frame["n"].min() > 30
