"""Scoring of predictions and of run folders."""

from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.engine import score as scoring
from surface_consistency.engine.features import read_parquet
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.engine.study import pair_outcomes
from surface_consistency.errors import (
    DataError,
    RecordError,
    RunError,
    SourceNotFoundError,
    SurfaceConsistencyWarning,
    UnscoredWarning,
)
from surface_consistency.matching import BoundaryRule
from surface_consistency.runs.command import COMMAND
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.loader import load_runs
from surface_consistency.runs.log import lock_log
from surface_consistency.schemas import Generation, Verdict
from surface_consistency.studies.datasets import FactDataset, score_predictions as score_dataset
from surface_consistency.studies.redirectqa.study import RedirectOutcome, RedirectQAStudy


def import_predictions(data, predictions, out, *, origin="p.jsonl"):
    study = RedirectQAStudy()
    return scoring.import_predictions(study, data, predictions, out, model="m", origin=origin)[0]


def score_predictions(data, predictions, **options):
    """Score predictions on loaded questions, with the columns of a run."""
    made = FactDataset(
        name="redirectqa", content=data, source=data.source, prompts=pd.DataFrame(), rows=()
    )
    frame = score_dataset(made, predictions, model="m", **options)
    return frame.rename(columns={"type": "types", "category": "categories"})


@pytest.fixture
def run(data, predictions, tmp_path):
    return import_predictions(data, predictions, tmp_path / "run")


@pytest.fixture
def scored(run):
    score_run(run)
    return run


@pytest.fixture
def predictions(data):
    """Canonical and misspelled names have correct answers, married names incorrect ones."""
    return {
        q.id: "no idea" if q.surface.text.endswith("Smith") else f" {q.triple.answers[-1]}\nQ: more"
        for q in data.questions
    }


def test_score_predictions_returns_one_row_per_pair(data, predictions):
    frame = score_predictions(data, predictions)

    assert list(frame.columns) == [*RedirectOutcome.model_fields, "cluster"]
    assert list(frame["cluster"]) == list(frame["subject_id"])
    assert list(frame["pair"]) == list(data.pairs["id"])
    married = frame["second_surface"].str.endswith("Smith")
    assert married.sum() == 8
    assert frame["first_correct"].all()
    assert list(frame["second_correct"]) == list(~married)
    types = frame["types"].map(tuple)
    assert set(types[married]) == {("alternative_names_and_abbreviations",)}
    assert set(types[~married]) == {("spelling_variants", "typical_errors")}
    assert set(frame["first_prediction"]) == {q.triple.answers[-1] for q in data.questions}
    by_text = {q.question: predictions[q.id] for q in data.questions}
    in_order = [predictions[q.id] for q in data.questions]
    pd.testing.assert_frame_equal(score_predictions(data, by_text), frame)
    pd.testing.assert_frame_equal(score_predictions(data, in_order, in_order=True), frame)


def test_missing_predictions_have_no_score(data, predictions):
    del predictions[data.pairs["canonical_id"].iloc[0]]

    with pytest.warns(UnscoredWarning, match=r"1 of 24 (prompts .* wrong|answers have no score)"):
        frame = score_predictions(data, predictions)

    missing = frame["first_correct"].isna()
    assert missing.sum() == 2
    assert set(frame.loc[missing, "item"]) == {data.pairs["item"].iloc[0]}


def test_predictions_with_lone_surrogates_are_scored(data, predictions):
    """Servers can send a lone surrogate; other predictions keep their scores."""
    asked = data.questions[0]
    predictions[asked.id] = f"{asked.triple.answers[0]} \ud83d"
    in_order = [predictions[q.id] for q in data.questions]

    frame = score_predictions(data, predictions)

    pd.testing.assert_frame_equal(score_predictions(data, in_order, in_order=True), frame)
    assert frame.loc[frame["item"] == asked.triple.id, "first_correct"].all()


FAILED = Generation(prompt_id="a", text=None, finish_reason="error", error="server is down")


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("generations.jsonl", FAILED.model_dump_json(), RunError, "errors such as 'server is down"),
        ("generations.jsonl", "", RunError, r"no answer; fix .* the command of the run"),
        ("manifest.json", "", RecordError, "not a RunManifest"),
        ("manifest.json", '{"study": 1}', RecordError, r"manifest\.json: not a RunManifest: field"),
    ],
)
def test_score_run_rejects_a_run_that_cannot_be_scored(run, name, content, error, message):
    (run.path / name).write_text(content and f"{content}\n")

    with pytest.raises(error, match=message):
        score_run(run)


def test_scored_import_has_the_outcomes_labels_and_checks_of_a_run(data, predictions, run):
    frame = score_run(run)

    expected = score_predictions(data, predictions).drop(columns="cluster")
    pd.testing.assert_frame_equal(frame, expected)
    stored = list(read_parquet(run.outcomes, RedirectOutcome))
    assert [item.pair for item in stored] == list(frame["pair"])
    verdicts = list(read_parquet(run.verdicts, Verdict))
    assert len(verdicts) == 24
    right = {v.matched_answer for v in verdicts if v.correct}
    assert right == {q.triple.answers[-1] for q in data.questions}
    assert len(pd.read_csv(run.checks / "rules.csv"))
    assert len(pd.read_csv(run.checks / "regions.csv"))
    assert not (run.checks / "noise_floor.csv").exists()


def test_score_run_warns_of_questions_without_a_prediction(data, predictions, tmp_path):
    with pytest.warns(UnscoredWarning, match="4 of 24 prompts have no prediction; .* to wrong"):
        folder = import_predictions(data, dict(list(predictions.items())[:20]), tmp_path / "run")

    with pytest.warns(UnscoredWarning, match="4 of 24 answers have no score: 4 no prediction"):
        score_run(folder)


@pytest.mark.parametrize("rule", [object, 5, BoundaryRule()])
def test_a_rule_of_a_scoring_is_a_name(rule):
    with pytest.raises(ValueError, match=r"is not the name of a matching rule; pass a name, such"):
        RuleScoring(rule=rule)


def test_a_run_is_rescored_by_another_rule(run):
    whole = score_run(run, scoring=RuleScoring(rule="exact", region="whole"))

    assert not whole["first_correct"].any()
    assert score_run(run, scoring=RuleScoring(rule="exact"))["first_correct"].all()
    assert (run.checks / "rules.csv").is_file()
    score_run(run, scoring=RuleScoring(agreement=False))
    assert list(run.checks.glob("*.csv")) == []


def load(folder):
    return load_runs([folder.path], outcome=RedirectOutcome)[0]


@contextmanager
def stopped(monkeypatch, at):
    """Interrupt the scoring when it moves a matching file."""
    replace = Path.replace

    def stop(part, target):
        if at(part, target):
            raise KeyboardInterrupt
        return replace(part, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            yield


@pytest.mark.parametrize("stops_at", ["verdicts.parquet", "outcomes.parquet", "rules.csv"])
def test_scoring_interrupted_while_writing_leaves_the_earlier_scores(scored, monkeypatch, stops_at):
    before = {path: path.read_bytes() for path in scored.path.rglob("*") if path.is_file()}

    with stopped(monkeypatch, lambda part, target: target.name == stops_at):
        score_run(scored, scoring=RuleScoring(rule="exact"))

    after = {path: path.read_bytes() for path in scored.path.rglob("*") if path.is_file()}
    assert after == before
    assert load(scored).judged_by == "popqa on first_line"


def test_scores_of_a_scoring_killed_while_moving_files_are_rejected(scored, monkeypatch):
    """Scores by one rule are never reported as scores by another."""
    exact = RuleScoring(rule="exact")
    with stopped(monkeypatch, lambda part, target: part.name == target.name == "scoring.json"):
        score_run(scored, scoring=exact)

    with pytest.raises(DataError, match=r"verdicts.parquet is not the file listed in scoring.json"):
        load(scored)
    score_run(scored, scoring=exact)
    assert load(scored).judged_by == "exact on first_line"
    scored.scoring.unlink()
    with pytest.raises(DataError, match=r"scoring.json is missing.*score them again with `surf"):
        load(scored)


@pytest.mark.parametrize("name", ["outcomes.parquet", "verdicts.parquet", "checks/rules.csv"])
def test_results_that_were_edited_are_rejected(scored, name):
    path = scored.path / name
    if path.suffix == ".csv":
        path.write_text(path.read_text().replace("0", "1"))
    else:
        pd.read_parquet(path).iloc[::-1].to_parquet(path)

    with pytest.raises(DataError, match=rf"{name} is not the file .* \(scored by popqa on first"):
        load(scored)


@pytest.mark.parametrize(
    ("name", "why", "can_be_scored"),
    [
        ("outcomes.parquet", "but is listed in scoring.json", True),
        ("checks/rules.csv", "but is listed in scoring.json", True),
        (
            "generations.jsonl",
            "after its answers were scored.*restore it, or repeat the comm",
            False,
        ),
        ("targets.parquet", "after its answers were scored.*restore it, or repeat the comm", False),
    ],
)
def test_deleted_files_are_reported_and_the_remedy_works(
    data, predictions, tmp_path, name, why, can_be_scored
):
    """Imported predictions cannot be rescored without plan and answers."""
    told_command = COMMAND.set("surface-consistency score --predictions x.csv")
    folder = import_predictions(data, predictions, tmp_path / "run")
    COMMAND.reset(told_command)
    score_run(folder)
    (folder.path / name).unlink()

    with pytest.raises(
        SourceNotFoundError, match=rf"{name} (is missing,|was deleted) {why}"
    ) as caught:
        load(folder)
    remedy = "score them again with `surface-consistency score"
    assert (remedy in str(caught.value)) == can_be_scored
    if not can_be_scored:
        again = r"restore it, or repeat the command that made it \(`command` in manifest.json\)"
        with pytest.raises((DataError, RunError), match=again):
            score_run(folder)
        import_predictions(data, predictions, folder.path)
    score_run(folder)
    assert load(folder).judged_by == "popqa on first_line"


def test_answers_added_after_the_scoring_are_reported(scored):
    with scored.log().open("a") as log:
        log.write('{"prompt_id": "new", "text": "x"}\n')

    with pytest.raises(DataError, match=r"generations.jsonl has changed since .*was resumed"):
        load(scored)
    owned = r"changed since .*this process writes to the run.*has ended"
    with lock_log(scored.log()), pytest.raises(DataError, match=owned):
        load(scored)
    score_run(scored)
    assert load(scored).judged_by == "popqa on first_line"


def test_a_run_that_is_being_written_is_not_scored(run):
    with lock_log(run.log()), pytest.raises(RunError, match="this process writes to"):
        score_run(run)


@pytest.mark.parametrize("name", ["targets", "pairs"])
def test_a_plan_that_was_edited_or_shortened_is_not_scored(data, predictions, run, name):
    path = run.path / f"{name}.parquet"
    frame = pd.read_parquet(path)
    frame.iloc[:-1].to_parquet(path)

    n = len(frame)
    message = rf"{name}.parquet is not the file that was planned \({n - 1} rows instead of {n}\)"
    with pytest.raises(DataError, match=message):
        score_run(run)
    import_predictions(data, predictions, run.path)
    score_run(run)


def test_rescoring_keeps_human_labels_and_deletes_exports(run):
    outcomes = score_run(run)
    with run.replacing_scores(Scoring(judged_by="people")) as beside:
        outcomes.to_parquet(beside.outcomes)
        beside.labels.write_text("prompt_id,question_id,correct\n")
        (beside.path / "results").mkdir()
        (beside.path / "results" / "a.jsonl").write_text("")
    first = run.read_plan()[0].iloc[0]
    with run.labels.open("a") as labels:
        labels.write(f"{first['prompt_id']},{first['item']},1\n")

    assert load(run).judged_by == "people"
    with pytest.warns(SurfaceConsistencyWarning, match="not corrected: canonical answers: "):
        score_run(run)

    assert run.labels.read_text().endswith(f"{first['item']},1\n")
    assert not (run.path / "results" / "a.jsonl").exists()


def test_import_predictions_does_not_replace_other_predictions(data, predictions, run):
    import_predictions(data, predictions, run.path)
    before = run.log().read_bytes()
    turned = dict(zip(predictions, reversed(predictions.values()), strict=True))

    for others in (dict.fromkeys(predictions, "x"), turned):
        with pytest.raises(RunError, match=r"contains other predictions .*sha256"):
            import_predictions(data, others, run.path)

    assert run.log().read_bytes() == before


@pytest.mark.parametrize("name", ["llama-3.1-8B", "gpt2", ".hidden"])
def test_model_name_of_imported_predictions_is_the_file_name(data, predictions, tmp_path, name):
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(f'{{"id": "{key}", "output": "x"}}\n' for key in predictions))

    [folder] = scoring.score_files(RedirectQAStudy(), data, [path], tmp_path / "run")

    assert folder.read_manifest().model == name


def test_pairs_in_any_order_are_joined_with_their_labels(data):
    study = RedirectQAStudy()
    plan = study.plan(data, study.records.settings())
    ids = plan.items["target_id"]
    is_even = ids.map(lambda name: len(name) % 2 == 0)
    verdicts = pd.DataFrame({"target_id": ids, "correct": is_even, "prediction": ids})
    mixed = plan.pairs.sample(frac=1.0, random_state=1)

    found = pair_outcomes(study, mixed, verdicts, model="m")

    assert list(found["pair"]) == list(mixed["pair"])
    assert list(found["second_prediction"]) == list(mixed["second_target"])
    assert list(found["first_correct"]) == [len(name) % 2 == 0 for name in mixed["first_target"]]


def test_import_predictions_rejects_files_and_other_folders(data, predictions, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.prompts.write_text("")
    (tmp_path / "x").write_text("")

    for name, message in (
        ("run", "prompts.jsonl exists and is not"),
        ("x", "is a file; give `out`"),
    ):
        with pytest.raises(DataError, match=message):
            import_predictions(data, predictions, tmp_path / name)
