"""Audits with an LLM judge or human labels, and audits as published."""

import re

import pandas as pd
import pytest

from surface_consistency.engine import settings as engine_settings
from surface_consistency.engine.judging.judges import facts_of
from surface_consistency.engine.report import build_page
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SurfaceConsistencyWarning, UnscoredWarning
from surface_consistency.models import FakeRunner
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import Generation
from surface_consistency.studies.audit import (
    AuditData,
    AuditSettings,
    LookupModel,
    find_conditions,
    published_tables,
)
from surface_consistency.studies.audit.lookup.settings import LookupSettings
from surface_consistency.studies.audit.settings import AuditScoring

KNOWN = {("Corvia", "Capital"): "Tallow", ("Fenland", "Capital"): "Marsh End"}
LLM = AuditScoring(judge_model="wise")
SHOWN = re.compile(r"Reference: (.*)\n<answer>\n(.*)\n</answer>\Z", re.DOTALL)


def reply(prompt):
    """Accept answers with the first letter of the reference; for "Marsh End" reply with prose."""
    reference, answer = SHOWN.search(prompt.messages[1].content).groups()
    if answer == "Marsh End":
        return "It depends."
    return str(int(answer[0] == reference[0]))


@pytest.fixture
def judge(monkeypatch):
    """The LLM judge; `load_runner` returns it for every judge."""
    judging = FakeRunner(reply)
    monkeypatch.setattr(engine_settings, "load_runner", lambda name, **options: judging)
    return judging


@pytest.fixture
def answered(audit):
    """A run of a model that knows two facts."""
    return audit(known=KNOWN)


def page_of(folder, study):
    """The page of a run."""
    report = ReportSettings(resamples=20, answers=5)
    return build_page([folder.path], study=study, settings=report)[0]


def test_llm_judge_scores_every_state_and_is_compared_with_the_rule(answered, score, study, judge):
    ruled = score(answered)
    by_rule = pd.read_parquet(answered.verdicts)
    with pytest.warns(UnscoredWarning, match="12 the judge's reply cannot be read"):
        outcomes = score(answered, scoring=LLM)
    found = pd.read_parquet(answered.verdicts)

    assert set(found["judged_by"]) == {"audit cleaner, llm:wise"}
    assert by_rule["rule_correct"].isna().all()
    assert found["rule_correct"].equals(by_rule["correct"])
    rambled = found["prediction"] == "Marsh End"
    assert rambled.sum() > 2
    assert found.loc[rambled, "correct"].isna().all()
    assert found.loc[rambled, "reason"].str.contains("reply cannot be read").all()
    labelled = found[~rambled]
    answers = pd.read_parquet(answered.targets).set_index("target_id")["gold_object"]
    golds = answers.loc[labelled["target_id"]].to_numpy()
    expected = [
        changed[:1] == gold[0] for changed, gold in zip(labelled["prediction"], golds, strict=True)
    ]
    assert labelled["correct"].astype(bool).tolist() == expected
    # Answers that the judge accepts after deletion have an origin.
    survived = outcomes["first_correct"].fillna(False).astype(bool)
    assert outcomes["attribution"].notna().equals(survived)
    assert not outcomes["first_correct"].equals(ruled["first_correct"])

    table = pd.read_csv(answered.path / "checks" / "judge_against_rule.csv").set_index("state")
    assert list(table.index) == ["FULL", "DEL-ON", "DEL-OFF", "all"]
    assert table.loc["all", "n"] == len(labelled)
    page = page_of(answered, study)
    (section,) = [one for one in page.sections if one.anchor == "judge"]
    assert [block.caption for block in section.blocks] == ["The judge compared with the rule"]
    assert _titles(page) == ["Correct by topology and state", "Correct"]

    # A second scoring sends no prompt; prompts contain all names of an object.
    (log,) = (answered.path / "judges").rglob("judge-generations.jsonl")
    lines, asked = log.read_text(), len(judge.asked)
    with pytest.warns(UnscoredWarning, match="12 of 156"):
        score(answered, scoring=LLM)
    assert (log.read_text(), len(judge.asked)) == (lines, asked)
    labelled = pd.DataFrame({"question": ["Q?"], "references": [["Paris", "Lutetia", "Paname"]]})
    assert facts_of(labelled)[0].answer == "Paris (or: Lutetia; Paname)"
    score(answered)
    assert _titles(page_of(answered, study)) == ["Exact match by topology and state", "Exact match"]


def _titles(page):
    """The title of the proportion of correct answers: in the figure, and of its column."""
    (scores,) = [one for one in page.sections if one.anchor == "scores"]
    columns = {one.key: one.title for one in scores.blocks[-1].columns}
    return [scores.blocks[0].title, columns["exact_match"]]


def test_sheet_for_human_labels_is_written_by_state_and_read(
    audit, settings, score, study, tmp_path
):
    answered = audit(known=KNOWN, chosen=settings(repeat=10))
    sheet = tmp_path / "sheet.csv"
    score(answered, scoring=AuditScoring(labelling_sheet=sheet, labelling_sample=4))
    assert "noise_floor" in answered.read_scoring().checks
    rows = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    assert rows["state"].value_counts().to_dict() == {"FULL": 4, "DEL-ON": 4, "DEL-OFF": 4}
    names = "prompt_id question_id correct state question reference answer"
    assert list(rows) == names.split()
    assert (rows["correct"] == "").all()

    # Human labels agree with the rule except for one answer.
    ruled = pd.read_parquet(answered.verdicts).set_index("target_id")["correct"].astype(bool)
    changed = ruled.loc[rows["prompt_id"]].to_numpy().copy()
    changed[0] = not changed[0]
    rows.assign(correct=["yes" if one else "no" for one in changed]).to_csv(sheet, index=False)
    with pytest.warns(SurfaceConsistencyWarning, match="not corrected: DEL-ON answers: "):
        score(answered, scoring=AuditScoring(labels=sheet))

    table = pd.read_csv(answered.path / "checks" / "judge_agreement.csv").set_index("state")
    assert (table.loc["all", "n"], table.loc["FULL", "n"]) == (12, 4)
    assert table.loc["all", "accuracy"] == pytest.approx(11 / 12)
    (section,) = [one for one in page_of(answered, study).sections if one.anchor == "judge"]
    assert [block.caption for block in section.blocks] == ["The judge compared with human labels"]

    with pytest.warns(UnscoredWarning, match="144 no label"):
        score(answered, scoring=AuditScoring(judge="human", labels=sheet))
    found = pd.read_parquet(answered.verdicts).set_index("target_id")
    assert found.loc[rows["prompt_id"], "correct"].astype(bool).tolist() == changed.tolist()
    assert found["correct"].notna().sum() == 12
    # Labels are of the first answers, so that repeated answers have no label.
    assert "noise_floor" not in answered.read_scoring().checks


def test_as_published_rejects_runners_with_other_decoding(data, study):
    pytest.importorskip("torch")
    settings = AuditSettings(as_published=True, limit=1)
    plan = study.plan(data, settings)

    with pytest.raises(ValueError, match="needs a model that looks facts up itself"):
        plan.prepare(FakeRunner(str))
    with pytest.raises(ValueError, match=r"repetition_penalty=1\.2, and `runner_option` repet"):
        plan.prepare(LookupModel("none", repetition_penalty=1.0))
    with pytest.raises(ValueError, match=r"entity_bias=4\.0, and `runner_option` entity_bias=0"):
        plan.prepare(Loaded())


class Loaded:
    """A lookup runner that Python code has loaded: it has its decoding as `LookupRunner` has."""

    settings = LookupSettings(entity_bias=0.0)

    def with_store(self, store):
        return self


class Scripted(Runner):
    """Returns answers that reproduce the counts of each cell of the published audit."""

    name = "scripted"

    def __init__(self, wanted):
        self.wanted = wanted

    def with_store(self, store):
        return self

    def fingerprint(self):
        return {"runner": self.name}

    def generate(self, prompts, params):
        for prompt in prompts:
            text = self.wanted[prompt.id]
            yield Generation(prompt_id=prompt.id, text=text, finish_reason="stop", lookups=())


def scripted(plan, golden):
    """Answers for the golden counts: a, b, c, d in order, FULL correct in the first."""
    wanted = {}
    for (database, style), rows in plan.items.groupby(["database", "style"], sort=False):
        domain, _, topology = database.partition("/")
        cell = golden.loc[(domain, topology or domain, style)]
        edges = [cell["a"], cell["a"] + cell["b"], cell["a"] + cell["b"] + cell["c"]]
        for state, facts in rows.groupby("state", sort=False):
            for place, row in enumerate(facts.to_dict("records")):
                right = {
                    "FULL": place < cell["full_correct"],
                    "DEL-ON": place < edges[1],
                    "DEL-OFF": place < edges[0] or edges[1] <= place < edges[2],
                }[state]
                wanted[row["target_id"]] = row["gold_object"] if right else "Nowhere, ever"
    return wanted


def test_a_run_as_published_yields_the_published_numbers(data_files, tmp_path, study):
    """The answers are constructed from the counts, since none are published."""
    data = data_files / "lmlm_audit" / "data"
    conditions = find_conditions(
        data, domains=["countries", "released"], topologies=["collision", "released"]
    )
    golden = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    golden["topology"] = golden["variant"].str.lower()
    golden = golden.set_index(["domain", "topology", "prompt_style"])
    settings = AuditSettings(as_published=True, repeat=0)
    found = AuditData(id="published", conditions=conditions)
    plan = study.plan(found, settings)

    runner = Scripted(scripted(plan, golden))
    options = {"model": "scripted", "settings": settings, "progress": False}
    folder = run_study(study, found, runner, tmp_path / "run", **options)
    outcomes = score_run(folder, study=study)

    manifest = folder.read_manifest()
    assert manifest.settings["as_published"] is True
    assert folder.read_scoring().judged_by == "published cleaner, published equivalence"
    assert set(outcomes["n_deleted"]) <= {1, 2}
    outputs = data_files / "lmlm_audit" / "outputs" / "audit"
    theirs = pd.read_csv(outputs / "cross_state_metrics.csv")
    theirs["prompt_file"] = theirs["prompt_file"].str.removeprefix("data/")
    ours = pd.read_csv(folder.path / "cross_state_metrics.csv")
    assert len(ours) == 12
    rates = ["count", "paired_count", "parametric_leakage", "retrieval_mediated_correctness"]
    for row in ours.to_dict("records"):
        (line,) = theirs[theirs["prompt_file"].str.endswith(row["prompt_file"])].to_dict("records")
        assert [row[name] for name in rates] == pytest.approx([line[name] for name in rates])
        assert row["exact_match"] == pytest.approx(line["exact_match"])
    tables = published_tables(
        folder.path / "per_state_metrics.csv", folder.path / "cross_state_metrics.csv"
    )
    headline = tables["headline"].query("label == 'released' and subset == 'published'")
    released = headline.iloc[0]
    assert released["leakage_plus_mediated"] == pytest.approx(0.00667, abs=5e-6)
    assert (released["n"], released["mcnemar_p_value"]) == (600, 0.125)
    chips = dict(page_of(folder, study).finding.facts)
    assert chips["protocol"] == "as published"
