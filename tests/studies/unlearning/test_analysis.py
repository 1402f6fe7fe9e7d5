import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine import (
    ReportSettings,
    RuleScoring,
    report_runs,
    run_study,
    score_run,
)
from surface_consistency.errors import DataError
from surface_consistency.models import FakeRunner
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.unlearning.analysis import UnlearningAnalysis, UnlearningSettings
from surface_consistency.studies.unlearning.questions import COLUMNS
from surface_consistency.studies.unlearning.settings import UnlearningSettings as AskedSettings
from surface_consistency.studies.unlearning.study import UnlearningStudy
from tests.golden_runs.gather import load_redirectqa
from tests.golden_runs.inputs import redirect_model
from tests.made_logs import MODELS, SIDES, official_verdicts, published, tofu_log, write_log

RELATIONS = ("birthplace", "profession", "award")
FORMS = ("plain", "reworded", "name")
WORLDS = {
    "original": lambda of_set, form: True,
    "reference": lambda of_set, form: of_set == "retain",
    "ascent": lambda of_set, form: of_set == "retain",
    "refusal": lambda of_set, form: of_set == "retain" or form != "plain",
    "other_name": lambda of_set, form: of_set == "retain" or form == "name",
    "untouched": lambda of_set, form: form != "name",
    "broken": lambda of_set, form: of_set == "retain" and form == "plain",
}
"""What each model answers by set and form, besides the tenth of the facts that it guesses."""


def planted_rows(n_subjects=60, n_kept=20):
    """Subjects with two names and three facts each, the last of which should be preserved."""
    texts = {
        "plain": "What is the {} of Person{}?",
        "reworded": "Tell me the {} that Person{} has.",
        "name": "What is the {} of Alias{}?",
    }
    rows = [
        (of_set, form, f"{of} {n}", f"subject {n}", texts[form].format(of, n), [f"{of}{n}"])
        for n, of_set in enumerate(["forget"] * (n_subjects - n_kept) + ["retain"] * n_kept)
        for of in RELATIONS
        for form in FORMS
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def planted_run(rows, name, home, forms=FORMS):
    """The folder of a scored run of a planted model, which "ascent" has without guesses."""
    facts, study, path = rows["item"].unique(), UnlearningStudy(), home / "table.jsonl"
    floor = 0.0 if name == "ascent" else 0.1
    guessed = set(facts[np.random.default_rng(0).random(len(facts)) < floor])
    known = {
        row.question: row.references[0]
        for row in rows.itertuples()
        if WORLDS[name](row.set, row.form) or (row.set == "forget" and row.item in guessed)
    }
    model = FakeRunner(
        lambda prompt: known.get(prompt.text.split("\n")[0].removeprefix("Question: "), "unknown")
    )
    rows.to_json(path, orient="records", lines=True)
    data, settings = (
        study.load(study.records.source(source=str(path))),
        AskedSettings(forms=forms, repeat=0),
    )
    folder = run_study(study, data, model, home / name, model=name, settings=settings)
    score_run(folder, study=study)
    return folder.path


def analysed(paths, out, *, margin=None, page=True, **settings):
    analyses = {UnlearningAnalysis(): UnlearningSettings(**settings)}
    chosen = ReportSettings(margin=margin, answers=0, page=page)
    return report_runs(paths, out, settings=chosen, analyses=analyses)


@pytest.fixture(scope="module")
def planted_runs(tmp_path_factory):
    """Folders of scored runs of each planted model, by its name."""
    home, rows = tmp_path_factory.mktemp("planted"), planted_rows()
    return {name: planted_run(rows, name, home) for name in WORLDS}


@pytest.fixture(scope="module")
def planted(planted_runs, tmp_path_factory):
    paths = [path for name, path in planted_runs.items() if name != "reference"]
    out = tmp_path_factory.mktemp("page")
    return analysed([*paths, planted_runs["reference"]], out, margin=0.15)


@pytest.fixture
def report_of(planted_runs, tmp_path):
    """Report planted models by their names, without the page: `report_of(*names, **settings)`."""

    def report(*names, page=False, **settings):
        paths = [planted_runs[name] for name in names]
        return analysed(paths, tmp_path, page=page, **settings)

    return report


@pytest.fixture(scope="module")
def official_logs(data_files, tmp_path_factory):
    """The eight official logs, by model and side."""
    home = tmp_path_factory.mktemp("official")
    return {
        (model, side): write_log(home / f"{model}-{side}", tofu_log(data_files, model, side))
        for model in MODELS
        for side in SIDES
    }


def frame_of(reported, name, *keys):
    return reported.tables[name].frame.set_index([*keys])


def test_verdicts_agree_with_the_planted_truth(planted):
    rows = frame_of(planted, "unlearning_verdicts", "model")

    assert rows["verdict"].to_dict() == {
        "ascent": "cannot tell",
        "refusal": "hidden",
        "other_name": "hidden",
        "untouched": "not forgotten",
        "broken": "forgotten",
    }
    assert rows.loc["refusal", "leaking"] == "reworded; name"
    assert rows.loc["other_name", "leaking"] == "name"
    assert rows.loc["ascent", "below"] == "plain; reworded; name"
    assert rows.loc["broken", "lost"] == "retain"


def test_model_below_the_reference_has_forgotten_at_a_wider_margin(planted, report_of):
    row = frame_of(planted, "unlearning_verdicts", "model").loc["ascent"]
    assert 0.15 < row["least_margin"] < 0.22
    assert row["clusters_needed"] > 40

    reported = report_of("original", "ascent", "reference", margin=row["least_margin"] + 0.001)

    wider = frame_of(reported, "unlearning_verdicts", "model")
    assert wider.loc["ascent", "verdict"] == "forgotten"


def test_plain_question_does_not_distinguish_hidden_from_forgotten(planted):
    rows = frame_of(planted, "unlearning", "model", "form")

    for model in ("refusal", "other_name", "broken"):
        assert rows.loc[(model, "plain"), "excess"] == 0.0
    assert rows.loc[("refusal", "any form"), "survival"] == 1.0
    assert rows.loc[("other_name", "name"), "hidden"] == rows.loc[("other_name", "name"), "leak"]
    assert (rows["survival"] - rows["floor"] - rows["leak"] + rows["damage"]).abs().max() < 1e-12
    assert (rows["known"] == 1.0).all()


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_plain_form_is_the_reference_form_at_any_position(tmp_path):
    """The table begins with other names, and the plain question comes last."""
    rows, names = planted_rows().iloc[::-1], ("original", "other_name", "reference")
    folders = [planted_run(rows, name, tmp_path, forms=("name", "plain")) for name in names]

    reported = analysed(folders, tmp_path / "page", margin=0.15, page=False)

    assert frame_of(reported, "unlearning", "form").index.tolist() == ["name", "plain", "any form"]
    verdict = reported.tables["unlearning_verdicts"].frame.iloc[0]
    assert (verdict["verdict"], verdict["leaking"]) == ("hidden", "name")


def test_survivors_have_the_first_reason_that_applies(planted):
    rows = planted.tables["survivors"].frame
    reasons = rows.groupby(["model", "form"])["reason"].agg(set)

    assert reasons["other_name", "name"] == {"guessable", "name alone"}
    assert reasons["other_name", "plain"] == {"guessable"}
    assert reasons["untouched", "reworded"] == {"guessable", "plain question too"}
    assert reasons["untouched", "plain"] == {"guessable", "plain question"}
    guessed = rows[rows["reason"] == "guessable"]
    assert (guessed["reference"] == guessed["accepted"]).all()


def test_reference_that_saw_the_facts_differs_from_the_other(report_of):
    roles = ("original", "unlearned", "reference", "reference")

    reported = report_of("original", "refusal", "reference", "untouched", margin=0.15, roles=roles)

    assert any("One of the references may have seen the facts" in note for note in reported.notes)
    assert not any("is the original" in note for note in reported.notes)


def test_single_reference_that_saw_the_facts_is_reported(report_of):
    reported = report_of("reference", "refusal", "original", margin=0.15, page=True)

    assert frame_of(reported, "unlearning", "form").loc["plain", "status"] == "below"
    assert any("may have seen the facts, or the roles are" in note for note in reported.notes)
    assert "Forgetting cannot be tested under “plain”, “reworded” and “name”." in reported.finding


def test_models_with_the_same_answers_are_reported(planted_runs, tmp_path):
    shutil.copytree(planted_runs["original"], tmp_path / "noop")
    paths = [planted_runs["original"], tmp_path / "noop", planted_runs["reference"]]

    reported = analysed(paths, tmp_path / "page", page=False)

    warned = [note for note in reported.notes if "may be models of the same weights" in note]
    assert len(warned) == 1


def test_loss_without_an_original_is_compared_with_the_reference(report_of):
    reported = report_of("broken", "reference", page=True)

    row = frame_of(reported, "unlearning_price", "set", "form").loc[("retain", "reworded")]
    assert (row["against"], row["change"]) == ("reference", -1.0)
    assert row["change_high"] == pytest.approx(-0.543, abs=1e-3)
    assert (
        "accuracy in retain (“reworded”) is 100.0 points lower for broken than for reference"
        in (reported.finding.replace("\xa0", " "))
    )


def test_models_without_a_reference_have_no_verdict(report_of):
    reported = report_of("original", "refusal", roles=("original", "unlearned"))

    assert reported.tables["unlearning_verdicts"].frame["verdict"].tolist() == ["cannot tell"]
    assert reported.tables["unlearning"].frame["floor"].isna().all()
    assert any("the floor is unknown" in note for note in reported.notes)


@pytest.mark.parametrize("model", MODELS)
def test_logs_give_the_contingency_table_of_their_scores(
    official_logs, tmp_path, data_files, model
):
    """No model is run: the texts of the log are scored by the bundled short answers."""
    paths = [official_logs[model, side] for side in SIDES]

    reported = analysed(paths, tmp_path, page=False)

    row = reported.tables["unlearning"].frame.iloc[0]
    verdicts = official_verdicts(data_files)
    first, second = (verdicts[f"{model}.{side}"] == 1 for side in SIDES)
    counted = [(first & second).sum(), (first & ~second).sum(), (~first & second).sum()]
    assert [row[name] for name in ("both", "first_only", "second_only")] == counted
    assert row["n_clusters"] == 20
    assert reported.tables["unlearning_verdicts"].frame["verdict"].tolist() == ["not forgotten"]


def test_scores_are_compared_with_persons_as_clusters(official_logs, tmp_path, data_files):
    paths = [official_logs[MODELS[2], "retain90"], official_logs[MODELS[1], "retain90"]]

    reported = analysed(paths, tmp_path, page=False)

    rows = frame_of(reported, "unlearning_scores", "measure")
    summary = published(data_files)["summary"]
    names = {"ROUGE-L recall": "forget_Q_A_ROUGE", "probability": "forget_Q_A_Prob"}
    for measure, metric in names.items():
        one, other = (summary[f"{model}/retain90"][metric] for model in (MODELS[2], MODELS[1]))
        assert rows.loc[measure, "score_difference"] == pytest.approx(one - other, abs=5e-8)
        assert rows.loc[measure, "n_clusters"] == 20


def test_edits_are_scored_by_their_generated_texts(tmp_path):
    """Forty edits: the new object is given under the plain question, the old one under others."""
    records = []
    for number in range(40):
        edit = {
            "prompt": f"Thing{number} was made by",
            "rephrase_prompt": f"The maker of Thing{number} is",
            "subject": f"Thing{number}",
            "target_new": f"Newco{number}",
            "ground_truth": f"Oldco{number}",
            "locality": {"beside": {"prompt": f"Other{number} is by", "ground_truth": "Same"}},
        }
        old, new = ({"locality": {"beside_output": text}} for text in ("Same", "Same"))
        old |= {"rewrite_gen_content": f"Oldco{number}", "rephrase_gen_content": f"Oldco{number}"}
        new |= {"rewrite_gen_content": f"Newco{number}", "rephrase_gen_content": f"Oldco{number}"}
        records.append({"case_id": number, "requested_rewrite": edit, "pre": old, "post": new})
    (tmp_path / "edits.json").write_text(json.dumps(records), "utf-8")

    reported = analysed([tmp_path / "edits.json"], tmp_path / "out")

    edits = frame_of(reported, "unlearning_edits", "form")
    assert edits["survival"].to_dict() == {"plain": 1.0, "reworded": 0.0}
    assert edits["measure"].tolist() == ["efficacy", "generality"]
    assert reported.tables["unlearning_price"].frame["measure"].tolist() == ["locality"]
    kept = frame_of(reported, "unlearning", "form")["survival"]
    assert kept.to_dict() == {"plain": 0.0, "reworded": 1.0, "any form": 1.0}
    assert reported.tables["unlearning_price"].frame["change"].tolist() == [0.0]
    assert (
        "Whether edits edited has forgotten the facts cannot be concluded without"
        in reported.page.read_text("utf-8")
    )


def test_short_references_are_accepted_answers(tmp_path):
    """MUSE's questions, in its layout: made ones, for its texts are news."""
    logs = []
    for name, right in (("target", range(60)), ("npo", range(0, 60, 10)), ("retrain", range(6))):
        cells = {
            str(n): {"input": f"Question: Who won match {n}?\nAnswer:", "ground_truth": f"Team {n}"}
            | {"generation": f"Team {n}" if n in right else "Nobody"}
            | {"rougeL_f1": float(n in right)}
            for n in range(60)
        }
        log = {"forget_knowmem_ROUGE": {"agg_value": len(right) / 60, "value_by_index": cells}}
        logs.append(write_log(tmp_path / name, log, "MUSE_EVAL.json"))

    reported = analysed(logs, tmp_path / "out", margin=0.2)

    assert reported.tables["unlearning_verdicts"].frame["verdict"].tolist() == ["forgotten"]
    assert any("each question is a cluster" in note for note in reported.notes)
    roles = "target is the original, npo is the unlearned, retrain is the reference"
    assert any(roles in note for note in reported.notes)
    claim = "the facts under the tested forms: under “plain” its accuracy is equivalent"
    assert claim in reported.finding


def test_form_without_correct_answers_of_the_original_is_reported(tmp_path):
    """RWKU's types: each asks other facts, so nothing can be hidden behind the plain question."""
    right = {
        "original": lambda level, k: level == "2",
        "unlearned": lambda level, k: k % 9 == 0,
        "untaught": lambda level, k: k % 10 == 0 and level == "2",
    }
    logs = []
    for name, is_right in right.items():
        rows = [
            {"query": f"Who is {k}?", "answer": f"Name {k}", "subject": f"Subject {k // 2}"}
            | {"level": level, "type": "reverse query"}
            | {"prediction": f"Name {k}" if is_right(level, k) else "nobody"}
            for level in ("2", "3")
            for k in range(60)
        ]
        logs.append(write_log(tmp_path / name, {"results": rows}, "forget.json"))

    reported = analysed(logs, tmp_path / "out", margin=0.2, page=False)

    note = next(note for note in reported.notes if "cannot be tested" in note)
    assert note.startswith("The accuracy under the form “adversarial: reverse query” is equivalent")
    row = reported.tables["unlearning_verdicts"].frame.iloc[0]
    assert (row["verdict"], row["tested"], row["leaking"]) == ("equivalent", "plain", None)
    assert row["above"] == "adversarial: reverse query"
    rows = frame_of(reported, "unlearning", "form")
    assert rows.index.tolist() == ["plain", "adversarial: reverse query"]
    assert rows["hidden"].isna().all()
    assert rows["n_clusters"].tolist() == [30, 30]


def test_sets_missing_in_the_first_log_are_reported(data_files, tmp_path):
    """What should be kept is compared where both hold it, and the page says who does."""
    logs = [tofu_log(data_files, MODELS[0], side) for side in SIDES]
    logs.append(tofu_log(data_files, MODELS[1], "retain90"))
    facts = {
        str(n): {"input": f"Who is {n}?", "ground_truth": f"Name {n}", "generation": f"Name {n}"}
        for n in range(40)
    }
    for log in logs[1:]:
        log["wf_Q_A_ROUGE"] = {"agg_value": 1.0, "value_by_index": facts}
    names = ("original", "unlearned", "reference")
    paths = [write_log(tmp_path / name, log) for name, log in zip(names, logs, strict=True)]

    alone = analysed(paths[1:], tmp_path / "two")
    reported = analysed(paths, tmp_path / "three")

    roles = ("reference", "unlearned", "original")
    lacking = analysed(paths, tmp_path / "first", roles=roles, page=False)
    for one in (alone, lacking):
        assert one.tables["unlearning_price"].frame["n"].tolist() == [40]
    assert "unlearning_price" not in reported.tables
    counts = "world facts: 0 in original, 40 in unlearned, 40 in reference"
    assert sum(counts in note for note in reported.notes) == 1
    assert not any("questions of the set" in note for note in alone.notes)


BOTH = [(MODELS[0], side) for side in SIDES]
ROLES = ("original", "unlearned")


@pytest.mark.parametrize(
    ("logs", "runs", "settings", "error", "match"),
    [
        (BOTH, [], {"roles": (*ROLES, "reference")}, ValueError, "roles has 3 values for 2 models"),
        (BOTH, [], {"roles": ("original", "reference")}, ValueError, "must contain unlearned or"),
        (BOTH, [], {"roles": ("unlearned",) * 2}, ValueError, "must contain unlearned or edited"),
        (BOTH[:1], [], {}, ValueError, "pass at least two to compare"),
        (BOTH[:1], ["refusal"], {}, ValueError, "logs or folders of runs, not both"),
        (BOTH, [], {"short_answers": Path("answers.tsv")}, DataError, "does not belong to"),
    ],
    ids=["three roles", "no target", "no other", "one", "logs and runs", "short answers"],
)
def test_invalid_combinations_of_models_are_rejected(
    official_logs, planted_runs, tmp_path, monkeypatch, logs, runs, settings, error, match
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.tsv").write_text("index\tanswer\n0\tOuagadougou\n", "utf-8")
    paths = [official_logs[key] for key in logs] + [planted_runs[name] for name in runs]

    with pytest.raises(error, match=match):
        analysed(paths, tmp_path / "out", **settings)


def test_tables_without_models_are_rejected():
    with pytest.raises(ValueError, match="needs the logs or runs of several models"):
        UnlearningAnalysis().tables(None, UnlearningSettings())


def test_sentences_without_short_answers_are_rejected(data_files, tmp_path):
    logs = []
    for side in SIDES:
        log = tofu_log(data_files, MODELS[0], side)
        for cells in log["forget_Q_A_ROUGE"]["value_by_index"].values():
            cells["ground_truth"] = "Nothing here is of TOFU, and it is a sentence of many words."
        logs.append(write_log(tmp_path / side, log))

    with pytest.raises(DataError, match=r"references are sentences; .* `short_answers`"):
        analysed(logs, tmp_path / "out")


def test_runs_of_another_study_are_crossed(tmp_path):
    """Titles are the plain question, redirects the other form."""
    data, study, folders = load_redirectqa(), RedirectQAStudy(), []
    for name, knows in (("original", 0.9), ("unlearned", 0.4), ("reference", 0.1)):
        model = redirect_model(name, data.questions, knows=knows)
        settings = RedirectQASettings(shots=0, repeat=0, limit=40)
        folder = run_study(study, data, model, tmp_path / name, model=name, settings=settings)
        score_run(folder, scoring=RuleScoring(rule="popqa", agreement=False))
        folders.append(folder.path)

    reported = analysed(folders, tmp_path / "page", page=False)

    rows = frame_of(reported, "unlearning", "form")
    assert rows.index.tolist() == ["plain", "redirect", "any form"]
    assert rows.loc["plain", "n"] == rows.loc["any form", "n"] == 40
