"""Audits that are run, killed, resumed and rescored; sweeps; runners of all kinds."""

import json
import re
from collections import Counter

import pandas as pd
import pytest

from surface_consistency.engine import report as reporting
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.engine.sweep import run_sweep
from surface_consistency.errors import (
    DataError,
    DataWarning,
    RunError,
    RunnerError,
    UnscoredWarning,
)
from surface_consistency.metrics import Intervals, paired_by
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import read_generations
from surface_consistency.studies.audit import (
    AuditSettings,
    AuditSource,
    AuditStudy,
    score_published_results,
    toy_model as toy_models,
)
from surface_consistency.studies.audit.conditions import condition_label
from surface_consistency.studies.audit.published import CROSS_STATE_COLUMNS, PER_STATE_COLUMNS
from surface_consistency.studies.audit.retrieval.retrievers import FuzzyRetriever
from surface_consistency.studies.audit.settings import AuditScoring, AuditToyModel
from surface_consistency.studies.audit.stores import retrievers_by_name
from tests.studies.audit.conftest import STYLES, Asking

KNOWN = {("Corvia", "Capital"): "Tallow"}
FEW = ReportSettings(resamples=50, answers=20)
ROW = """fact_id subject subject_aliases relation relation_aliases state prompt ground_truth
object_aliases model_output retrieval_trace raw_output"""
TRACE = """state retrieval_enabled lookup_query threshold all_candidates deleted_candidates
retained_candidates selected_candidate selected_value error"""


@pytest.fixture
def pages(monkeypatch):
    """Collects the pages that a report would write."""
    taken = []

    def write(page, path):
        taken.append(page)
        path.write_text("page", encoding="utf-8")
        return path

    monkeypatch.setattr(reporting, "write_page", write)
    return taken


def answers_of(folder):
    logs = [log for group in ("store", "off") if (log := folder.log(group)).is_file()]
    return [answer for log in logs for answer in read_generations(log)]


def published_metric(rows):
    """A second implementation of the published metrics: means over rows of results."""

    def words(text):
        return re.findall(r"\d+\.\d+|\w+(?:[-']\w+)*", text.casefold())

    scores = []
    for row in rows:
        answer = words(row["model_output"])
        golds = [words(name) for name in (row["ground_truth"], *row["object_aliases"])]
        exact = bool(answer) and answer in golds
        flat = " ".join(answer)
        inside = any(gold and (flat in gold or gold in flat) for gold in map(" ".join, golds))
        shared = sum((Counter(answer) & Counter(golds[0])).values())
        precision = 1.0 if exact else shared / max(1, len(answer))
        recall = 1.0 if exact else shared / max(1, len(golds[0]))
        scores.append((exact, exact or (bool(answer) and inside), precision, recall))
    means = [sum(column) / len(rows) for column in zip(*scores, strict=True)]
    return dict(zip(("exact_match", "contains_match", "precision", "recall"), means, strict=True))


def test_the_published_metric_on_result_rows_gives_the_published_tables(audit, score, data_files):
    """Compared with a second implementation: `model_output` is the answer, not the raw output."""
    theirs = data_files / "lmlm_audit" / "outputs" / "audit"
    assert tuple(pd.read_csv(theirs / "per_state_metrics.csv")) == PER_STATE_COLUMNS
    assert tuple(pd.read_csv(theirs / "cross_state_metrics.csv")) == CROSS_STATE_COLUMNS
    folder = audit(known=KNOWN)
    score(folder, scoring=AuditScoring(cleaner="published", equivalence="published"))
    assert folder.read_scoring().judged_by == "published cleaner, published equivalence"
    per_state = pd.read_csv(folder.path / "per_state_metrics.csv")
    cross_state = pd.read_csv(folder.path / "cross_state_metrics.csv")
    assert (tuple(per_state), tuple(cross_state)) == (PER_STATE_COLUMNS, CROSS_STATE_COLUMNS)
    assert (len(per_state), len(cross_state)) == (4 * 3, 4)
    labels = [condition_label(file) for file in cross_state["prompt_file"]]
    names = [f"{label.database}/{label.style}" for label in labels]
    files = {name: folder.path / "results" / f"{name}.jsonl" for name in names}

    scored = score_published_results(files)

    assert sorted(files) == sorted(f"lands/{t}/{s}" for t in ("base", "noise") for s in STYLES)
    rows = [json.loads(line) for line in files["lands/noise/cloze"].read_text().splitlines()]
    assert len(rows) == 14 * 3
    by_state = {row["state"]: row for row in rows if row["fact_id"] == 0}
    trace, off = (by_state[state]["retrieval_trace"] for state in ("DEL-ON", "DEL-OFF"))
    assert (set(rows[0]), set(trace)) == ({*ROW.split(), "base_fact"}, set(TRACE.split()))
    assert trace["deleted_candidates"][0]["object"] == trace["selected_value"] == "Lumo"
    assert (off["retrieval_enabled"], off["all_candidates"]) == (False, [])
    means = per_state.set_index(["prompt_file", "state"])
    for place, file in enumerate(files.values()):
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for state in ("FULL", "DEL-ON", "DEL-OFF"):
            ours = means.loc[(cross_state["prompt_file"][place], state)]
            theirs = published_metric([row for row in rows if row["state"] == state])
            assert theirs == pytest.approx({name: ours[name] for name in theirs})
        assert any("db_entity" in row["raw_output"] for row in rows)
        assert not any("db_entity" in row["model_output"] for row in rows)
    assert per_state["exact_match"].max() == 1
    numbers = [name for name in PER_STATE_COLUMNS if name not in ("prompt_file", "database_path")]
    pd.testing.assert_frame_equal(scored["per_state"][numbers], per_state[numbers])
    numbers.remove("state")
    pd.testing.assert_frame_equal(scored["cross_state"][numbers], cross_state[numbers])
    outcomes = scored["outcomes"]
    assert len(outcomes) == cross_state["paired_count"].sum()
    table = paired_by(outcomes, by=["style"], intervals=Intervals(resamples=50))
    assert table["n"].sum() == len(outcomes)


def test_score_published_results_rejects_two_answers_to_one_prompt(tmp_path):
    row = {"fact_id": "a-1", "subject": "USA", "relation": "Capital", "state": "FULL"}
    row |= {"prompt": "?", "ground_truth": "Washington, D.C.", "model_output": "washington d.c"}
    path = tmp_path / "prompts_cloze_results.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    [one] = score_published_results({"x/cloze": path})["per_state"].to_dict("records")
    assert (one["count"], one["exact_match"]) == (1, 1.0)

    path.write_text(2 * (json.dumps(row) + "\n"), "utf-8")

    with pytest.raises(DataError, match=r"results.jsonl: fact .* occurs twice in FULL"):
        score_published_results({"x/cloze": path})


def test_killed_run_resumes_and_sends_no_prompt_twice(audit, score):
    """Killed after 70 prompts; the second start sends the rest, with the answers of one run."""
    dying, resumed, whole = Asking(KNOWN, 70), Asking(KNOWN), Asking(KNOWN)

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        audit("killed", runner=dying)
    killed = RunFolder.open(audit("whole", runner=whole).path.parent / "killed")
    n_logged = len(answers_of(killed))
    with pytest.warns(UnscoredWarning, match=r"86 of 156 answers have no score"):
        part = score(killed)
    audit("killed", runner=resumed)

    first, second, third = (model.made[0].asked for model in (dying, resumed, whole))
    assert len(first) == n_logged == 70
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(third) == 52 + 52 + 28
    assert part["second_correct"].isna().all()
    other = RunFolder.open(killed.path.parent / "whole")
    pd.testing.assert_frame_equal(score(killed), score(other))


def test_guards_report_a_store_with_the_index_of_another_database(audit, score):
    """An index cached by file name and size: base is answered with the keys of other facts."""

    def wrong(triplets):
        if len(triplets) != 12:
            return FuzzyRetriever(triplets)
        made = FuzzyRetriever(triplets[5:] + triplets[:5])
        made.fingerprint = FuzzyRetriever(triplets).fingerprint
        return made

    folder = audit(studied=AuditStudy(find_retrievers=lambda name, cache_dir=None: wrong))

    with pytest.warns(DataWarning, match=r"lands/base \(asking\): 0\.0% are correct"):
        score(folder)

    checks = pd.read_csv(folder.checks / "contamination.csv").set_index("database")
    assert checks.loc["lands/base", "is_contaminated"]
    assert not checks.loc["lands/noise", "is_contaminated"]


@pytest.mark.parametrize("fallback", ["abstain", "top1_anyway"])
def test_abstentions_and_fallbacks_are_counted(audit, score, settings, fallback):
    """Only the fact reaches the threshold, so that lookups after deletion find no entry."""
    folder = audit(chosen=settings(threshold=(0.999,), fallback=fallback))
    frame = score(folder)
    lookups = pd.read_csv(folder.checks / "lookups.csv").set_index(["database", "state"])

    count, other = ["n_abstained", "n_fallback"][:: 1 if fallback == "abstain" else -1]
    assert lookups.loc[("lands/base", "DEL-ON"), count] == 24
    assert lookups.loc[("lands/base", "FULL"), count] == lookups[other].sum() == 0
    assert lookups.loc[("lands/base", "DEL-OFF"), "n_without_lookup"] == 24
    if fallback == "abstain":
        assert (frame["n_abstained"] == frame["n_lookups"]).all()
        assert not frame["first_correct"].any()


def test_lookups_with_empty_queries_are_counted(audit, score):
    """A runner does not send blank queries to the store, so such a lookup has no trace."""
    folder = audit()
    log = folder.log("store")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    asking = next(line for line in lines if line["lookups"])
    asking["lookups"] = [{"query": {"entity": "", "relation": ""}, "value": None, "trace": None}]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    score(folder)

    assert pd.read_csv(folder.checks / "lookups.csv")["n_blank"].sum() == 1


def test_a_run_with_another_policy_or_without_answers_is_rejected(audit, score, settings):
    folder = audit()

    with pytest.raises(RunError, match="threshold"):
        audit(chosen=settings(threshold=(0.9,)))
    for group in ("store", "off"):
        folder.log(group).write_text("")
    with pytest.raises(RunError, match="contains no answer"):
        score(folder)


@pytest.fixture
def sweep(data, study, settings, tmp_path):
    """Runs a sweep: `sweep("folder", threshold=(0.3, 0.9))`."""

    def run(name, *, model=None, studied=None, label="asking", **changes):
        options = {"model": label, "settings": settings(**changes)}
        runner = model or Asking()
        return run_sweep(studied or study, data, runner, tmp_path / name, progress=False, **options)

    return run


@pytest.mark.parametrize("repeat", [0, 20])
def test_sweep_is_one_audit_per_retriever_and_threshold(sweep, pages, tmp_path, repeat):
    """Without retrieval prompts are sent once for all; fewer survive a higher threshold."""
    found, built = [], []

    def find(name, cache_dir=None):
        found.append(name)
        make = retrievers_by_name(name)
        return lambda triplets: built.append(name) or make(triplets)

    model = Asking()
    grid = {"retriever": ("fuzzy", "bm25"), "threshold": (0.3, 0.95), "repeat": repeat}
    folders = sweep("sweep", model=model, studied=AuditStudy(find_retrievers=find), **grid)

    assert found == ["fuzzy", "bm25"]
    assert built == ["fuzzy"] * 2 + ["bm25"] * 2
    names = ["fuzzy-0.3", "fuzzy-0.95", "bm25-0.3", "bm25-0.95"]
    assert [folder.path.name for folder in folders] == names
    n_off = [sum(name.endswith("/DEL-OFF") for name in runner.asked) for runner in model.made]
    assert n_off == [28 + repeat, 0, 0, 0]
    for folder in folders:
        assert len(answers_of(folder)) == 52 + 52 + 28
        assert (folder.checks / "noise_floor.csv").is_file() == bool(repeat)
    reported = report_runs([one.path for one in folders], tmp_path / "sweep", settings=FEW)
    swept = reported.tables["sweep"].frame
    table = swept.set_index(["retriever", "threshold", "topology"])
    assert set(swept["topology"]) == {"all", "base", "noise"}
    low, high = (table.loc[("fuzzy", limit, "noise")] for limit in ("0.3", "0.95"))
    assert low["retrieval_mediated"] > high["retrieval_mediated"]
    assert len(pd.read_csv(tmp_path / "sweep" / "tables" / "sweep.csv")) == len(swept) == 12
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text())["runs"][0] == "fuzzy-0.3"
    (page,) = pages
    assert page.models[0] == "asking (retriever fuzzy, threshold 0.3)"


def test_one_variant_is_a_separate_run(sweep, pages, tmp_path):
    folders = sweep("run")

    assert [folder.path for folder in folders] == [tmp_path / "run"]
    reported = report_runs([tmp_path / "run"], tmp_path / "run", settings=FEW)
    assert (tmp_path / "run" / "tables" / "survivors.csv").is_file()
    assert "sweep" not in reported.tables


def test_thresholds_name_their_folders_and_are_not_planned_as_one_run(data, study):
    settings = AuditSettings(retriever=("owner/encoder",), threshold=(0.5, None))

    names = [name for name, _ in settings.variants()]

    assert names == ["owner-encoder-0.5", "owner-encoder-none"]
    with pytest.raises(ValueError, match="are a sweep of several runs"):
        study.plan(data, settings)


@pytest.mark.parametrize(
    ("label", "off_mode", "differing"),
    [("other", "forbid", "another model"), ("asking", "null", "another runner.source.off_mode")],
)
def test_answers_of_another_model_are_not_reused(audit, settings, label, off_mode, differing):
    first = audit("first")

    with pytest.raises(RunError, match=differing):
        audit("second", model=label, chosen=settings(off_mode=off_mode), shared=first)

    assert not (first.path.parent / "second").exists()


def test_a_sweep_and_a_single_run_do_not_share_a_folder(audit, sweep, tmp_path):
    """Neither replaces the tables of the other."""
    single = audit("single")
    before = sorted(single.path.rglob("*"))

    with pytest.raises(RunError, match="contains a single run"):
        sweep("single", threshold=(0.3, 0.9))
    assert sorted(single.path.rglob("*")) == before

    sweep("sweep", threshold=(0.3, 0.9))
    listed = (tmp_path / "sweep" / "sweep.json").read_bytes()
    with pytest.raises(RunError, match="contains a sweep"):
        audit("sweep")
    assert not (tmp_path / "sweep" / "manifest.json").exists()
    with pytest.raises(RunError, match="model is 'asking' there and 'other' now"):
        sweep("sweep", threshold=(0.3, 0.6), label="other")
    assert (tmp_path / "sweep" / "sweep.json").read_bytes() == listed


def test_the_sample_and_a_folder_of_databases_are_loaded(databases):
    def load(**source):
        data = AuditStudy().load(AuditSource(styles=("cloze",), **source))
        return data.id, [one.label.database for one in data.conditions]

    both = ["countries/base", "countries/noise"]
    assert load() == ("sample", ["countries/noise"])
    assert load(topologies=("base", "noise")) == ("sample", both)
    folder = str(databases)
    assert load(databases=folder, topologies=("noise",)) == (folder, ["lands/noise"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nonsense": 1}, RunnerError, "the lookup runner cannot be made: .*nonsense"),
        ({"repetition_penalty": 0.0}, RunnerError, "`repetition_penalty` must be above 0"),
    ],
)
def test_invalid_options_are_rejected_before_a_model_is_trained(
    data, options, error, message, tmp_path, monkeypatch
):
    pytest.importorskip("torch")
    monkeypatch.setattr(toy_models, "train_memory_toy_model", lambda *a, **b: pytest.fail("x"))

    with pytest.raises(error, match=message):
        AuditToyModel().train(data, AuditSettings(), tmp_path, options=options)
