"""Audits run, killed, taken up, scored again; sweeps; runners of all kinds."""

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine import report as reporting
from surface_consistency.engine.report import build_page, report_runs
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
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
from surface_consistency.models import FakeRunner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import read_generations
from surface_consistency.studies.audit import (
    AuditScoring,
    AuditSettings,
    AuditSource,
    AuditStudy,
    AuditToyModel,
    retrievers_by_name,
    score_published_results,
    study as audit_study,
)
from surface_consistency.studies.audit.conditions import condition_label
from surface_consistency.studies.audit.published import CROSS_STATE_COLUMNS, PER_STATE_COLUMNS
from surface_consistency.studies.audit.retrieval import FuzzyRetriever

KNOWN = {("Corvia", "Capital"): "Tallow"}
FEW = ReportSettings(resamples=50, answers=20)


@pytest.fixture
def pages(monkeypatch):
    """Takes the pages that a report would write."""
    taken = []

    def write(page, path):
        taken.append(page)
        path.write_text("page", encoding="utf-8")
        return path

    monkeypatch.setattr(reporting, "write_page", write)
    return taken


def answers_of(folder):
    return [
        answer
        for group in ("store", "off")
        if folder.log(group).is_file()
        for answer in read_generations(folder.log(group))
    ]


def test_leaks_and_decoys_come_out_as_what_they_are(audit, score):
    """The model knows one fact; the noise database has a decoy for each of two others."""
    frame = score(audit(known=KNOWN))
    leaked = frame["second_correct"].astype(bool)
    survives = frame["first_correct"].astype(bool)

    assert frame["full_correct"].all()
    assert set(zip(frame[leaked]["subject"], frame[leaked]["relation"], strict=True)) == set(KNOWN)
    mediated = frame[survives & ~leaked]
    assert set(mediated["database"]) == {"lands/noise"}
    assert len(mediated) == 2 * 2
    assert set(mediated["attribution"]) == {"same_object"}
    assert set(mediated["attributed_to"]) == {
        "Arania State | Capital City | Lumo",
        "Beldova State | Capital City | Serrin",
    }


def test_published_files_agree_with_the_outcomes(audit, score):
    folder = audit(known=KNOWN)
    frame = score(folder)
    per_state = pd.read_csv(folder.path / "per_state_metrics.csv")
    cross = pd.read_csv(folder.path / "cross_state_metrics.csv")

    assert tuple(per_state) == PER_STATE_COLUMNS
    assert tuple(cross) == CROSS_STATE_COLUMNS
    assert len(per_state) == 4 * 3
    assert len(cross) == 4
    noise = frame[(frame["database"] == "lands/noise") & (frame["style"] == "cloze")]
    row = cross[cross["prompt_file"] == "lands/prompts/noise/prompts_cloze.jsonl"].iloc[0]
    right = noise["first_correct"].astype(bool)
    leaked = noise["second_correct"].astype(bool)
    assert row["count"] == 3 * row["paired_count"] == 42
    assert row["parametric_leakage"] == pytest.approx(leaked.mean())
    assert row["retrieval_mediated_correctness"] == pytest.approx((right & ~leaked).mean())
    assert row["retrieval_artifact_rate"] == pytest.approx(right.mean())
    means = per_state[per_state["prompt_file"] == row["prompt_file"]].set_index("state")
    assert means.loc["DEL-ON", "exact_match"] == pytest.approx(right.mean())
    assert row["exact_match"] == pytest.approx(means["exact_match"].mean())


def test_published_columns_are_those_of_the_published_files(data_files):
    folder = data_files / "lmlm_audit" / "outputs" / "audit"

    assert tuple(pd.read_csv(folder / "per_state_metrics.csv")) == PER_STATE_COLUMNS
    assert tuple(pd.read_csv(folder / "cross_state_metrics.csv")) == CROSS_STATE_COLUMNS


def test_result_rows_have_the_published_fields(audit, score):
    folder = audit()
    score(folder)
    lines = (folder.path / "results" / "lands" / "noise" / "cloze.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    row = next(row for row in rows if row["fact_id"] == 0 and row["state"] == "DEL-ON")

    assert len(rows) == 14 * 3
    assert len(list((folder.path / "results").rglob("*.*"))) == 4
    assert set(row) == {
        *("fact_id", "subject", "subject_aliases", "relation", "relation_aliases", "state"),
        *("prompt", "ground_truth", "object_aliases", "model_output", "retrieval_trace"),
        "raw_output",
    }
    trace = row["retrieval_trace"]
    assert set(trace) == {
        *("state", "retrieval_enabled", "lookup_query", "threshold", "all_candidates"),
        *("deleted_candidates", "retained_candidates", "selected_candidate", "selected_value"),
        "error",
    }
    assert trace["deleted_candidates"][0]["object"] == "Lumo"
    assert trace["selected_value"] == "Lumo"
    off = next(row for row in rows if row["fact_id"] == 0 and row["state"] == "DEL-OFF")
    assert not off["retrieval_trace"]["retrieval_enabled"]
    assert off["retrieval_trace"]["all_candidates"] == []


def published_metric(rows):
    """The published metrics, written down once more: means over rows of results."""

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


def test_the_published_metric_on_result_rows_gives_the_published_tables(audit, score):
    """Held against a second writing of it: `model_output` is the answer, not what was generated."""
    folder = audit(known=KNOWN)
    score(folder, scoring=AuditScoring(cleaner="published", equivalence="published"))
    per_state = pd.read_csv(folder.path / "per_state_metrics.csv")
    cross_state = pd.read_csv(folder.path / "cross_state_metrics.csv")
    labels = [condition_label(file) for file in cross_state["prompt_file"]]
    files = {
        f"{label.database}/{label.style}": folder.path
        / "results"
        / label.database
        / f"{label.style}.jsonl"
        for label in labels
    }

    scored = score_published_results(files)

    for place, file in enumerate(files.values()):
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for state in ("FULL", "DEL-ON", "DEL-OFF"):
            ours = per_state[
                (per_state["prompt_file"] == cross_state["prompt_file"][place])
                & (per_state["state"] == state)
            ].iloc[0]
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
    table = paired_by(outcomes, by=["style"], intervals=Intervals(n_resamples=50))
    assert table["n"].sum() == len(outcomes)


def test_score_published_results_rejects_two_answers_to_one_prompt(tmp_path):
    row = {
        "fact_id": "a-1",
        "subject": "USA",
        "relation": "Capital",
        "state": "FULL",
        "prompt": "?",
        "ground_truth": "Washington, D.C.",
        "model_output": "washington d.c",
    }
    path = tmp_path / "prompts_cloze_results.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    [one] = score_published_results({"x/cloze": path})["per_state"].to_dict("records")
    assert (one["count"], one["exact_match"]) == (1, 1.0)

    path.write_text(2 * (json.dumps(row) + "\n"), "utf-8")

    with pytest.raises(DataError, match=r"results.jsonl: fact .* stands twice in FULL"):
        score_published_results({"x/cloze": path})


def test_a_killed_run_goes_on_and_asks_nothing_twice(audit, score, asking):
    """Killed after 70 prompts; the second start asks the rest, and the answers are those of one."""
    dying, resumed, whole = asking(KNOWN, 70), asking(KNOWN), asking(KNOWN)

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        audit("killed", runner=dying)
    killed = RunFolder.open(audit("whole", runner=whole).path.parent / "killed")
    n_logged = len(answers_of(killed))
    with pytest.warns(UnscoredWarning, match=r"86 of 156 answers have no verdict"):
        part = score(killed)
    audit("killed", runner=resumed)

    first, second, third = (model.made[0].asked for model in (dying, resumed, whole))
    assert len(first) == n_logged == 70
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(third) == 52 + 52 + 28
    assert part["second_correct"].isna().all()
    pd.testing.assert_frame_equal(
        score(killed), score(RunFolder.open(killed.path.parent / "whole"))
    )


def test_a_run_is_not_continued_with_another_policy(audit, settings):
    audit()

    with pytest.raises(RunError, match="threshold"):
        audit(chosen=settings(threshold=(0.9,)))


def test_scoring_again_by_the_published_rules_asks_nothing(audit, score):
    folder = audit(known=KNOWN)
    ours = score(folder)
    theirs = score(folder, scoring=AuditScoring(cleaner="published", equivalence="published"))

    made = folder.read_scoring()
    assert made.judged_by == "published cleaner, published equivalence"
    assert (made.settings["cleaner"], made.settings["equivalence"]) == ("published", "published")
    assert list(ours["pair_id"]) == list(theirs["pair_id"])
    # The published cleaner takes the first value of a lookup, "unknown", whatever stands after it.
    assert theirs["first_correct"].sum() <= ours["first_correct"].sum()
    with pytest.raises(ValueError, match="'audit' or 'published'"):
        AuditScoring(cleaner="none")


def test_a_store_of_the_wrong_index_is_told_by_the_guards(audit, score):
    """An index cached by file name and size: base is answered with the keys of other facts."""

    class WrongIndex:
        """Searches the keys of another database, and says that they are this one's."""

        def __init__(self, database):
            own, turned = database, database[5:] + database[:5]
            self.other, self.true = FuzzyRetriever(turned), FuzzyRetriever(own)

        def fingerprint(self):
            return self.true.fingerprint()

        def search(self, queries, *, k, deleted=None):
            return self.other.search(queries, k=k, deleted=deleted)

    def wrong(triplets):
        return WrongIndex(triplets) if len(triplets) == 12 else FuzzyRetriever(triplets)

    folder = audit(studied=AuditStudy(find_retrievers=lambda name, cache_dir=None: wrong))

    with pytest.warns(DataWarning, match=r"lands/base \(asking\): 0\.0% are right"):
        score(folder)

    checks = pd.read_csv(folder.checks / "contamination.csv").set_index("database")
    assert checks.loc["lands/base", "is_contaminated"]
    assert not checks.loc["lands/noise", "is_contaminated"]


def test_a_model_that_does_not_read_the_store_is_told_by_the_guards(
    audit, score, conditions, asking
):
    """FULL equals DEL-ON where the model answers from itself alone."""
    known = {
        (prompt.subject, prompt.relation): prompt.gold_object
        for condition in conditions
        for prompt in condition.prompts[::2]
    }

    class Deaf(asking):
        def answer(self, prompt):
            fact = self.source.query(prompt)
            text = known.get((fact.entity, fact.relation), "no")
            return super().answer(prompt).model_copy(update={"text": text})

    folder = audit("deaf", runner=Deaf(), model="deaf")

    with pytest.warns(DataWarning, match="near zero or the same"):
        frame = score(folder)

    right = frame[frame["first_correct"].astype(bool)]
    assert (frame["full_correct"] == frame["first_correct"]).all()
    assert set(right["attribution"]) == {"parameters"}


def test_abstentions_are_counted(audit, score, settings):
    """At a threshold that only the fact itself reaches, every lookup after deletion abstains."""
    folder = audit(chosen=settings(threshold=(0.999,)))
    frame = score(folder)
    lookups = pd.read_csv(folder.checks / "lookups.csv").set_index(["database", "state"])

    assert (frame["n_abstained"] == frame["n_lookups"]).all()
    assert lookups.loc[("lands/base", "DEL-ON"), "n_abstained"] == 24
    assert lookups.loc[("lands/base", "FULL"), "n_abstained"] == 0
    assert lookups.loc[("lands/base", "DEL-OFF"), "n_without_lookup"] == 24
    assert not frame["first_correct"].any()


def test_lookups_that_ask_for_nothing_are_counted(audit, score):
    """A runner hands no blank query to the store, so such a lookup has no trace."""
    folder = audit()
    log = folder.log("store")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    asking = next(line for line in lines if line["lookups"])
    asking["lookups"] = [{"query": {"entity": "", "relation": ""}, "value": None, "trace": None}]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    score(folder)

    assert pd.read_csv(folder.checks / "lookups.csv")["n_blank"].sum() == 1


def test_the_published_policy_never_abstains(audit, score, settings):
    folder = audit(chosen=settings(threshold=(0.999,), fallback="top1_anyway"))
    score(folder)

    lookups = pd.read_csv(folder.checks / "lookups.csv").set_index(["database", "state"])
    assert lookups["n_abstained"].sum() == 0
    assert lookups.loc[("lands/base", "DEL-ON"), "n_fallback"] == 24


def test_a_run_without_answers_is_rejected(audit, score):
    folder = audit()
    for group in ("store", "off"):
        folder.log(group).write_text("")

    with pytest.raises(RunError, match="holds no answer"):
        score(folder)


def test_two_states_are_enough_for_some_tables(audit, finish, settings):
    """Without FULL there is no baseline to check, and no rate that needs it."""
    tables = finish(audit(chosen=settings(states=("DEL-ON", "DEL-OFF"))))

    assert "full_accuracy" not in tables["overall"]
    assert set(tables["states"]["state"]) == {"DEL-ON", "DEL-OFF"}


def test_one_state_gives_its_means_and_no_pairs(audit, finish, settings, study):
    """What was not asked is missing, not wrong."""
    folder = audit(chosen=settings(states=("FULL",)))
    tables = finish(folder)

    assert set(tables["states"]["state"]) == {"FULL"}
    assert tables["overall"]["n"].iloc[0] == 0
    assert np.isnan(tables["overall"]["leakage"].iloc[0])
    assert tables["attribution"].empty
    cross = pd.read_csv(folder.path / "cross_state_metrics.csv")
    assert cross["parametric_leakage"].isna().all()
    page, _, _ = build_page([folder.path], study=study, settings=FEW)
    assert any("DEL-ON was not asked" in str(part) for part in page.finding.sentence)


def test_the_noise_floor_is_told_by_state(audit, score, settings):
    """Greedy answers do not change; a sample of each group is asked again."""
    folder = audit(chosen=settings(repeat=30))
    score(folder)

    floor = pd.read_csv(folder.checks / "noise_floor.csv").set_index("state")
    assert set(floor.index) == {"FULL", "DEL-ON", "DEL-OFF"}
    assert floor.loc[["FULL", "DEL-ON"], "n_repeated"].sum() == 30
    assert floor["n_verdict_flips"].eq(0).all()


@pytest.mark.parametrize("repeat", [0, 20])
def test_a_sweep_is_one_audit_a_retriever_and_threshold(
    data, asking, settings, pages, tmp_path, repeat
):
    """Without retrieval the model is asked once for all; a higher threshold lets less survive."""
    found, built = [], []

    def find(name, cache_dir=None):
        found.append(name)
        make = retrievers_by_name(name)
        return lambda triplets: built.append(name) or make(triplets)

    model = asking()
    folders = run_sweep(
        AuditStudy(find_retrievers=find),
        data,
        model,
        tmp_path / "sweep",
        model="asking",
        settings=settings(retriever=("fuzzy", "bm25"), threshold=(0.3, 0.95), repeat=repeat),
        progress=False,
    )

    assert found == ["fuzzy", "bm25"]
    assert built == ["fuzzy"] * 2 + ["bm25"] * 2
    assert [folder.path.name for folder in folders] == [
        "fuzzy-0.3",
        "fuzzy-0.95",
        "bm25-0.3",
        "bm25-0.95",
    ]
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


def test_one_variant_is_a_run_of_its_own(data, study, asking, settings, pages, tmp_path):
    folders = run_sweep(
        study,
        data,
        asking(),
        tmp_path / "run",
        model="asking",
        settings=settings(),
        progress=False,
    )

    assert [folder.path for folder in folders] == [tmp_path / "run"]
    reported = report_runs([tmp_path / "run"], tmp_path / "run", settings=FEW)
    assert (tmp_path / "run" / "tables" / "survivors.csv").is_file()
    assert "sweep" not in reported.tables


def test_thresholds_are_named_by_their_folders():
    settings = AuditSettings(retriever=("owner/encoder",), threshold=(0.5, None))

    names = [name for name, _ in AuditStudy().sweep(settings)]

    assert names == ["owner-encoder-0.5", "owner-encoder-none"]


def test_a_sweep_is_not_planned_as_one_run(data, study, settings):
    with pytest.raises(ValueError, match="are a sweep of several runs"):
        study.plan(data, settings(threshold=(0.3, 0.9)))


@pytest.mark.parametrize(
    ("label", "off_mode", "differing"),
    [("other", "forbid", "another model"), ("asking", "null", "another runner.source.off_mode")],
)
def test_answers_of_another_model_are_not_taken_over(audit, settings, label, off_mode, differing):
    first = audit("first")

    with pytest.raises(RunError, match=differing):
        audit("second", model=label, chosen=settings(off_mode=off_mode), shared=first)

    assert not (first.path.parent / "second").exists()


def test_any_runner_is_audited_with_facts_before_its_prompts(audit, score, settings):
    """A reader that takes the object of the first fact before its prompt."""

    def read(prompt):
        if not prompt.text.startswith("Facts:\n"):
            return "unknown"
        return prompt.text.splitlines()[1].split(" | ")[-1]

    folder = audit("reader", runner=FakeRunner(read), model="reader", chosen=settings(n_facts=3))
    frame = score(folder)

    assert folder.read_manifest().runner["n_facts"] == 3
    assert frame["full_correct"].all()
    assert not frame["second_correct"].any()
    survived = frame[frame["first_correct"].astype(bool)]
    assert set(survived["database"]) == {"lands/noise"}
    assert set(survived["attribution"]) == {"same_object"}
    assert np.all(frame["n_lookups"] == 1)


def test_a_sweep_and_a_single_run_do_not_share_a_folder(
    audit, data, study, asking, settings, pages, tmp_path
):
    """Neither replaces the other's tables; what was there stays as it was."""
    single = audit("single")
    before = sorted(single.path.rglob("*"))

    def sweep(out):
        run_sweep(
            study,
            data,
            asking(),
            out,
            model="asking",
            settings=settings(threshold=(0.3, 0.9)),
            progress=False,
        )

    with pytest.raises(RunError, match="holds a single run"):
        sweep(single.path)
    assert sorted(single.path.rglob("*")) == before

    sweep(tmp_path / "sweep")
    with pytest.raises(RunError, match="holds a sweep"):
        audit("sweep")
    assert not (tmp_path / "sweep" / "manifest.json").exists()


def test_a_refused_sweep_leaves_the_list_of_the_one_that_is_there(
    study, data, asking, settings, tmp_path
):
    def sweep(*thresholds, model="asking"):
        run_sweep(
            study,
            data,
            asking(),
            tmp_path / "sweep",
            model=model,
            settings=settings(threshold=thresholds),
            progress=False,
        )

    sweep(0.3, 0.6)
    listed = (tmp_path / "sweep" / "sweep.json").read_bytes()

    with pytest.raises(RunError, match="model is 'asking' there and 'other' now"):
        sweep(0.3, 0.9, model="other")
    assert (tmp_path / "sweep" / "sweep.json").read_bytes() == listed


def test_a_single_run_does_not_go_into_a_sweep_that_was_only_marked(audit, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "sweep.json").write_text("{}")

    with pytest.raises(RunError, match="holds a sweep"):
        audit("run")
    assert [file.name for file in out.iterdir()] == ["sweep.json"]


def test_the_sample_is_built_from_the_table_that_comes_along():
    data = AuditStudy().load(AuditSource(styles=("cloze",)))
    both = AuditStudy().load(AuditSource(styles=("cloze",), topologies=("base", "noise")))

    assert data.id == "sample"
    assert [one.label.database for one in data.conditions] == ["countries/noise"]
    assert [one.label.database for one in both.conditions] == ["countries/base", "countries/noise"]


def test_a_folder_of_databases_is_loaded_as_it_is(databases):
    data = AuditStudy().load(AuditSource(databases=str(databases), topologies=("noise",)))

    assert data.id == str(databases)
    assert {one.label.database for one in data.conditions} == {"lands/noise"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nonsense": 1}, RunnerError, r"the lookup runner cannot be made: .*nonsense"),
        ({"dtype": "float8"}, ValueError, "`dtype` is one of auto, float32"),
        ({"device": "cuad"}, ValueError, "`device` is a name such as 'cuda:0'"),
        ({"repetition_penalty": 0.0}, ValueError, "`repetition_penalty` is above 0"),
    ],
)
def test_options_are_refused_before_a_model_is_trained(
    data, options, error, message, tmp_path, monkeypatch
):
    pytest.importorskip("torch")
    monkeypatch.setattr(
        audit_study, "train_memory_toy_model", lambda *a, **b: pytest.fail("was trained")
    )

    with pytest.raises(error, match=message):
        AuditStudy.toy_model.train(
            data, AuditSettings(), AuditToyModel(), tmp_path, options=options
        )


def test_a_toy_model_rejects_more_leaks_than_facts(data, tmp_path):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="`leaked` must be 0 to 14, got 15"):
        AuditStudy.toy_model.train(
            data, AuditSettings(), AuditToyModel(leaked=15), tmp_path, options={}
        )


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:.*the store did not serve this database:surface_consistency.errors.DataWarning"
)
def test_the_toy_model_needs_neither_network_nor_files(study, settings, tmp_path):
    """Trained on the spot on the sample; ten steps teach it little, but the whole way is gone."""
    pytest.importorskip("torch")
    data = study.load(AuditSource(styles=("direct_questions",)))
    chosen = settings(limit=8, max_new_tokens=12)
    toy_model = AuditToyModel(leaked=2, steps=10)

    runner = study.toy_model.train(
        data, chosen, toy_model, tmp_path / "toy_model", options={"device": "cpu"}
    )
    folder = run_study(
        study, data, runner, tmp_path / "run", model="toy_model", settings=chosen, progress=False
    )

    assert (tmp_path / "toy_model" / "config.json").is_file()
    assert len(score_run(folder, study=study)) == 8
