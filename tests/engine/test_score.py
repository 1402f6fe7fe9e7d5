"""Predictions to outcomes."""

from pathlib import Path

import pandas as pd
import pytest

from surface_consistency import paired_by
from surface_consistency.engine import score as scoring
from surface_consistency.engine.features import read_parquet
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.errors import (
    DataError,
    RecordError,
    RunError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.loader import load_runs
from surface_consistency.runs.log import lock_log
from surface_consistency.schemas import Generation, Verdict, write_jsonl
from surface_consistency.studies.redirectqa import RedirectOutcome
from surface_consistency.studies.redirectqa.study import RedirectQAStudy, score_predictions


def import_predictions(data, predictions, out, **options):
    """Import predictions of RedirectQA."""
    return scoring.import_predictions(RedirectQAStudy(), data, predictions, out, **options)


@pytest.fixture
def predictions(data):
    """Canonical names are answered right, misspellings too, married names wrong."""
    return {
        q.id: "no idea" if q.surface.text.endswith("Smith") else f" {q.triple.answers[-1]}\nQ: more"
        for q in data.questions
    }


def test_score_predictions_fills_one_row_a_pair(data, predictions):
    """Verdicts stand under their condition, with what varies beside them."""
    frame = score_predictions(data, predictions, model="m")

    assert list(frame.columns) == list(RedirectOutcome.model_fields)
    assert list(frame["pair_id"]) == list(data.pairs["id"])
    married = frame["second_surface"].str.endswith("Smith")
    assert married.sum() == 8
    assert frame["first_correct"].all()
    assert list(frame["second_correct"]) == list(~married)
    assert set(map(tuple, frame.loc[married, "types"])) == {
        ("alternative_names_and_abbreviations",)
    }
    assert set(map(tuple, frame.loc[~married, "types"])) == {
        ("spelling_variants", "typical_errors")
    }
    assert set(frame["first_prediction"]) == {q.triple.answers[-1] for q in data.questions}


def test_score_predictions_takes_texts_ids_or_order(data, predictions):
    """By question id, by question text and in order are the same predictions."""
    by_id = score_predictions(data, predictions, model="m")
    by_text = {q.question: predictions[q.id] for q in data.questions}
    in_order = [predictions[q.id] for q in data.questions]

    pd.testing.assert_frame_equal(score_predictions(data, by_text, model="m"), by_id)
    pd.testing.assert_frame_equal(score_predictions(data, in_order, model="m"), by_id)


def test_paired_by_counts_pairs_in_each_of_their_types(data, predictions):
    """A pair of two types stands in both groups: 8 married, 8 misspelt with two types."""
    frame = score_predictions(data, predictions, model="m")

    with pytest.warns(UndefinedMetricWarning, match="consistency_given_first_incorrect"):
        table = paired_by(frame, by="types").set_index("types")

    assert list(table["n"]) == [8, 8, 8]
    assert table.loc["alternative_names_and_abbreviations", "flip_rate"] == 1.0
    assert table.loc["typical_errors", "flip_rate"] == 0.0


def test_score_predictions_leaves_missing_ones_unjudged(data, predictions):
    """A question without prediction has no verdict, not a wrong one."""
    gone = data.pairs["canonical_id"].iloc[0]
    del predictions[gone]

    frame = score_predictions(data, predictions, model="m")

    missing = frame["first_correct"].isna()
    assert missing.sum() == 2
    assert set(frame.loc[missing, "fact_id"]) == {data.pairs["fact_id"].iloc[0]}


def test_score_predictions_warns_of_foreign_ones(data, predictions):
    """Predictions for questions that are not in the data are named."""
    predictions["elsewhere"] = "x"

    with pytest.warns(
        UnscoredWarning, match="1 of 25 predictions belong to no question .*'elsewhere'"
    ):
        score_predictions(data, predictions, model="m")


def test_score_predictions_rejects_predictions_of_other_questions(data):
    with pytest.raises(DataError, match=r"no prediction belongs to a question: .* got 'a'"):
        score_predictions(data, {"a": "x"}, model="m")


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [({}, DataError, "got 'no key'"), ("x" * 24, TypeError, "predictions is one string")],
)
def test_score_predictions_rejects_none_and_a_string(data, predictions, error, message):
    with pytest.raises(error, match=message):
        score_predictions(data, predictions, model="m")


def test_score_predictions_takes_half_a_character(data, predictions):
    """A lone surrogate, as servers send it, is replaced and judged; the others are as they were."""
    asked = data.questions[0]
    predictions[asked.id] = f"{asked.triple.answers[0]} \ud83d"
    in_order = [predictions[q.id] for q in data.questions]

    frame = score_predictions(data, predictions, model="m")

    pd.testing.assert_frame_equal(score_predictions(data, in_order, model="m"), frame)
    assert frame.loc[frame["fact_id"] == asked.triple.id, "first_correct"].all()


def test_score_run_quotes_the_errors_of_a_run_that_only_failed(data, predictions, tmp_path):
    """Why nothing was answered is said."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    failed = Generation(prompt_id="a", text=None, finish_reason="error", error="server is down")
    write_jsonl(folder.log(), [failed])

    with pytest.raises(RunError, match="only errors such as 'server is down'"):
        score_run(folder)


def test_score_predictions_rejects_another_length(data):
    with pytest.raises(DataError, match="3 predictions for 24 questions"):
        score_predictions(data, ["x"] * 3, model="m")


def test_import_and_score_write_the_files_of_a_run(data, predictions, tmp_path):
    """The folder holds what was scored, equal to the frame in memory."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")

    frame = score_run(folder)

    pd.testing.assert_frame_equal(frame, score_predictions(data, predictions, model="m"))
    stored = list(read_parquet(folder.outcomes, RedirectOutcome))
    assert [item.pair_id for item in stored] == list(frame["pair_id"])
    verdicts = list(read_parquet(folder.verdicts, Verdict))
    assert len(verdicts) == 24
    assert {v.matched_answer for v in verdicts if v.is_correct} == {
        q.triple.answers[-1] for q in data.questions
    }
    rules = pd.read_csv(folder.checks / "rules.csv")
    regions = pd.read_csv(folder.checks / "regions.csv")
    assert len(rules)
    assert len(regions)
    assert not (folder.checks / "noise_floor.csv").exists()


def test_score_run_warns_of_questions_without_verdict(data, predictions, tmp_path):
    """The count and the reason are told."""
    few = dict(list(predictions.items())[:20])
    folder = import_predictions(data, few, tmp_path / "run", model="m", origin="p.jsonl")

    with pytest.warns(UnscoredWarning, match="4 of 24 answers have no verdict: 4 no prediction"):
        score_run(folder)


def test_score_run_judges_again_by_another_rule(data, predictions, tmp_path):
    """Nothing is asked anew; the verdicts are those of the rule."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    predictions_whole = score_run(folder, scoring=RuleScoring(rule="exact", region="whole"))

    assert not predictions_whole["first_correct"].any()
    assert score_run(folder, scoring=RuleScoring(rule="exact"))["first_correct"].all()


def load(folder):
    """Read one run for a report."""
    return load_runs([folder.path], outcome=RedirectOutcome)[0]


@pytest.mark.parametrize("stops_at", ["verdicts.parquet", "outcomes.parquet", "rules.csv"])
def test_a_scoring_that_is_stopped_while_it_writes_leaves_the_earlier_one(
    data, predictions, tmp_path, monkeypatch, stops_at
):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}

    def stop(part, target):
        if target.name == stops_at:
            raise KeyboardInterrupt
        return replace(part, target)

    replace = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            score_run(folder, scoring=RuleScoring(rule="exact"))

    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
    assert load(folder).judged_by == "popqa on first_line"


def test_a_scoring_that_is_killed_while_it_moves_its_files_is_refused(
    data, predictions, tmp_path, monkeypatch
):
    """Verdicts by one rule never stand under the name of another."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)

    def stop(part, target):
        if part.name == target.name == "scoring.json":
            raise KeyboardInterrupt
        return replace(part, target)

    replace = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            score_run(folder, scoring=RuleScoring(rule="exact"))

    with pytest.raises(
        DataError, match=r"verdicts.parquet is not the file that scoring.json tells"
    ):
        load(folder)
    score_run(folder, scoring=RuleScoring(rule="exact"))
    assert load(folder).judged_by == "exact on first_line"


def test_a_first_scoring_that_is_killed_while_it_moves_its_files_is_refused(
    data, predictions, tmp_path
):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)
    folder.scoring.unlink()

    with pytest.raises(DataError, match=r"scoring.json is missing.*judge them again with `surf"):
        load(folder)


@pytest.mark.parametrize("name", ["outcomes.parquet", "verdicts.parquet", "checks/rules.csv"])
def test_results_that_were_edited_are_refused(data, predictions, tmp_path, name):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)
    path = folder.path / name
    if path.suffix == ".csv":
        path.write_text(path.read_text().replace("0", "1"))
    else:
        frame = pd.read_parquet(path)
        frame.iloc[::-1].to_parquet(path)

    with pytest.raises(DataError, match=rf"{name} is not the file .* \(judged by popqa on first"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "told", "can_be_judged"),
    [
        ("outcomes.parquet", "though scoring.json tells of it", True),
        ("checks/rules.csv", "though scoring.json tells of it", True),
        ("generations.jsonl", "since its answers were judged.*restore it, or give the comm", False),
        ("targets.parquet", "since its answers were judged.*restore it, or give the comm", False),
    ],
)
def test_a_deleted_file_is_called_gone_and_the_remedy_works(
    data, predictions, tmp_path, name, told, can_be_judged
):
    """Predictions from elsewhere cannot be judged again without plan and answers."""
    origin = tmp_path / "x.csv"
    told_command = COMMAND.set("surface-consistency score --predictions x.csv")
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin=str(origin))
    COMMAND.reset(told_command)
    score_run(folder)
    (folder.path / name).unlink()

    with pytest.raises(SourceNotFoundError, match=rf"{name} is gone,? {told}") as caught:
        load(folder)
    assert ("judge them again with `surface-consistency score" in str(caught.value)) == (
        can_be_judged
    )
    if not can_be_judged:
        again = r"restore it, or give the command again .*\(`surface-consistency score --pred"
        with pytest.raises((DataError, RunError), match=again):
            score_run(folder)
        import_predictions(data, predictions, folder.path, model="m", origin=str(origin))
    score_run(folder)
    assert load(folder).judged_by == "popqa on first_line"


def test_answers_that_came_after_the_scoring_are_told(data, predictions, tmp_path):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)
    with folder.log().open("a") as log:
        log.write('{"prompt_id": "new", "text": "x"}\n')

    with pytest.raises(DataError, match=r"generations.jsonl has changed since .*was resumed"):
        load(folder)
    with (
        lock_log(folder.log()),
        pytest.raises(
            DataError, match=r"changed since .*this process writes to the run.*has ended"
        ),
    ):
        load(folder)
    score_run(folder)
    assert load(folder).judged_by == "popqa on first_line"


def test_a_run_that_is_being_written_is_not_judged(data, predictions, tmp_path):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")

    with lock_log(folder.log()), pytest.raises(RunError, match="this process writes to"):
        score_run(folder)


@pytest.mark.parametrize("name", ["targets", "pairs"])
def test_a_plan_that_was_edited_or_shortened_is_not_judged(data, predictions, tmp_path, name):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    path = folder.path / f"{name}.parquet"
    frame = pd.read_parquet(path)
    frame.iloc[:-1].to_parquet(path)

    n = len(frame)
    message = rf"{name}.parquet is not the file that was planned \({n - 1} rows, planned were {n}\)"
    with pytest.raises(DataError, match=message):
        score_run(folder)
    import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    score_run(folder)


def test_labels_that_came_with_a_scoring_stay_with_the_run(data, predictions, tmp_path):
    """Exports of an earlier scoring go, but people go on labelling."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="x.csv")
    outcomes = score_run(folder)
    with folder.replacing_scores(Scoring(judged_by="people")) as beside:
        outcomes.to_parquet(beside.outcomes)
        beside.labels.write_text("prompt_id,question_id,is_correct\n")
        (beside.path / "results").mkdir()
        (beside.path / "results" / "a.jsonl").write_text("")
    first = folder.read_plan()[0].iloc[0]
    with folder.labels.open("a") as labels:
        labels.write(f"{first['prompt_id']},{first['fact_id']},1\n")

    assert load(folder).judged_by == "people"
    with pytest.warns(SurfaceConsistencyWarning, match="not corrected: of the canonical answers"):
        score_run(folder)

    assert folder.labels.read_text().endswith(f"{first['fact_id']},1\n")
    assert not (folder.path / "results" / "a.jsonl").exists()


def test_checks_of_an_earlier_scoring_go_with_it(data, predictions, tmp_path):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    score_run(folder)
    assert (folder.checks / "rules.csv").is_file()
    score_run(folder, scoring=RuleScoring(agreement=False))

    assert list(folder.checks.glob("*.csv")) == []


def test_import_predictions_does_not_replace_others(data, predictions, tmp_path):
    """The same predictions are taken again; others need a folder of their own."""
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    before = folder.log().read_bytes()

    with pytest.raises(RunError, match=r"holds other predictions .*sha256"):
        import_predictions(
            data, dict.fromkeys(predictions, "x"), folder.path, model="m", origin="p.jsonl"
        )

    assert folder.log().read_bytes() == before


def test_the_same_texts_of_other_questions_are_other_predictions(data, predictions, tmp_path):
    given = dict.fromkeys(predictions, "London") | {next(iter(predictions)): "Paris"}
    folder = import_predictions(data, given, tmp_path / "run", model="m", origin="p.jsonl")
    turned = dict(zip(given, reversed(given.values()), strict=True))

    with pytest.raises(RunError, match=r"holds other predictions .*sha256"):
        import_predictions(data, turned, folder.path, model="m", origin="p.jsonl")


@pytest.mark.parametrize("name", ["llama-3.1-8B", "gpt2", ".hidden"])
def test_a_model_has_the_name_of_its_file(data, predictions, tmp_path, name):
    """Points belong to names of models."""
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(f'{{"id": "{key}", "output": "x"}}\n' for key in predictions))

    [folder] = scoring.score_files(RedirectQAStudy(), data, [path], tmp_path / "run")

    assert folder.read_manifest().model == name


def test_pairs_of_any_index_get_their_own_verdicts(data, predictions):
    study = RedirectQAStudy()
    plan = study.plan(data, study.settings())
    verdicts = pd.DataFrame(
        {
            "target_id": plan.items["target_id"],
            "is_correct": plan.items["target_id"].map(lambda name: len(name) % 2 == 0),
            "prediction": plan.items["target_id"],
        }
    )
    mixed = plan.pairs.sample(frac=1.0, random_state=1)

    found = study.outcomes(mixed, verdicts, model="m")

    assert list(found["pair_id"]) == list(mixed["pair_id"])
    assert list(found["second_prediction"]) == list(mixed["second_target"])
    expected = [len(name) % 2 == 0 for name in mixed["first_target"]]
    assert list(found["first_correct"]) == expected


def test_import_predictions_does_not_touch_a_models_run(data, predictions, tmp_path):
    """A run that asked a model keeps its answers."""
    folder = RunFolder.create(tmp_path / "run")
    folder.prompts.write_text("")

    with pytest.raises(
        DataError, match="holds a run of a model; give the predictions another `out`"
    ):
        import_predictions(data, predictions, folder.path, model="m", origin="p")


def test_score_run_rejects_a_run_without_answers(data, predictions, tmp_path):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    folder.log().write_text("")

    with pytest.raises(RunError, match=r"holds no answer; mend .* the command of the run again"):
        score_run(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "not a RunManifest"), ('{"study": 1}', r"manifest\.json: not a RunManifest: field")],
)
def test_score_run_rejects_a_broken_manifest(data, predictions, tmp_path, content, message):
    folder = import_predictions(data, predictions, tmp_path / "run", model="m", origin="p.jsonl")
    folder.manifest.write_text(content)

    with pytest.raises(RecordError, match=message):
        score_run(folder)


def test_run_folder_rejects_what_is_no_run(tmp_path):
    with pytest.raises(
        SourceNotFoundError, match=r"is not a run folder: manifest\.json is missing"
    ):
        RunFolder.open(tmp_path)


def test_run_folder_rejects_a_file(tmp_path):
    (tmp_path / "x").write_text("")

    with pytest.raises(DataError, match="is a file; give `out` a folder"):
        RunFolder.create(tmp_path / "x")
