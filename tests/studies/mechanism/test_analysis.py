"""The analysis of mechanism, from a finished run to tables, figures and Parquet."""

import json
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from surface_consistency.engine.design import Report
from surface_consistency.errors import DataError, RunError, RunnerError, UndefinedMetricWarning
from surface_consistency.metrics import transport_similarity
from surface_consistency.models.loading import find_model
from surface_consistency.report.page import Heatmap
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.mechanism.analysis import MechanismAnalysis
from surface_consistency.studies.mechanism.sample import sample_pairs
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.slaq.records import SlaqOutcome
from surface_consistency.studies.slaq.study import SlaqStudy

NAMES = [
    *("mechanism_similarity", "mechanism_sensitivity", "mechanism_prediction"),
    *("mechanism_sets", "mechanism_sample", "mechanism_pairs"),
]
FEATURES = [
    *("containment", "iou", "pearson_attention", "spearman_attention"),
    *("pearson_mlp", "spearman_mlp"),
]


def analyse(*runs, **options):
    """Give the section and the tables by name, without the rest of the page."""
    loaded = load_runs(runs, outcome=SlaqOutcome)
    report = Report(runs=loaded, design=SlaqStudy.design, cluster="topic_id")
    analysis = MechanismAnalysis()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = analysis.tables(report, MechanismSettings(**{"device": "cpu"} | options))
        [section] = analysis.sections(report, tables)
    return section, {name: tables[name].frame for name in NAMES}


@pytest.fixture(scope="module")
def analysed(slaq_run, weights, tmp_path_factory):
    """Section, tables and store of four pairs of each class."""
    store = tmp_path_factory.mktemp("store")
    section, tables = analyse(slaq_run, model=(str(weights),), per_class=4, store=store, folds=2)
    return section, tables, store / "run"


def test_pairs_of_both_classes_are_measured(analysed):
    _, tables, _ = analysed
    pairs = tables["mechanism_pairs"]

    assert pairs["is_aligned"].sum() == 4
    assert (~pairs["is_aligned"]).sum() == 4
    assert pairs["fact_id"].is_unique
    assert (pairs[FEATURES].notna().all(axis=1) == (pairs["second_span"] != "not found")).all()
    assert pairs.loc[pairs["is_aligned"], "second_span"].eq("alignment").all()
    [sample] = tables["mechanism_sample"].to_dict("records")
    assert (sample["drawn_aligned"], sample["drawn_misaligned"]) == (4, 4)
    assert sample["n_unfound"] == (pairs["second_span"] == "not found").sum()


def test_a_store_names_the_weights_that_it_was_measured_on(analysed, weights):
    _, _, store = analysed

    model = json.loads((store / "manifest.json").read_text())["model"]

    assert model["digest"] == find_model(str(weights), None).digest
    assert model["digest"] is not None


def test_similarities_are_those_of_the_stored_effects(analysed):
    # Anyone can load the folder, and compute the features again.
    _, tables, store = analysed
    components = pd.read_csv(store / "components.csv")
    rows = pd.read_parquet(store / "importances").set_index("answer_id")
    pair = tables["mechanism_pairs"].iloc[0]
    heads = np.flatnonzero(components["kind"] == "head")

    sides = []
    for answer in (f"{pair['fact_id']}/short", pair["pair_id"]):
        row = rows.loc[answer]
        inside = np.flatnonzero(row["in_span"])
        change = row["base"][:, None] - np.stack(row["ablated"])
        sides.append(((change / np.abs(row["base"][:, None]))[inside], row["sets"][inside]))
    (first, first_sets), (second, second_sets) = sides
    iou = [[len({*a} & {*b}) / len({*a} | {*b}) for b in second_sets] for a in first_sets]
    ranks = [[spearmanr(a[heads], b[heads]).statistic for b in second] for a in first]

    assert transport_similarity(iou) == pytest.approx(pair["iou"])
    assert transport_similarity(ranks) == pytest.approx(pair["spearman_attention"])
    stored = pd.read_parquet(store / "similarity.parquet")
    main_rows = stored[(stored["aggregation"] == "transport") & (stored["tokens"] == "span")]
    assert main_rows["iou"].tolist() == tables["mechanism_pairs"]["iou"].tolist()


def test_classes_are_compared_in_every_way(analysed):
    _, tables, _ = analysed
    pairs, main_rows = tables["mechanism_pairs"], tables["mechanism_similarity"]

    assert main_rows["feature"].tolist() == FEATURES
    for row in main_rows.to_dict("records"):
        by_class = pairs.groupby("is_aligned")[row["feature"]].mean()
        assert row["difference"] == pytest.approx(by_class[True] - by_class[False])
    others = tables["mechanism_sensitivity"]
    assert set(zip(others["aggregation"], others["tokens"], strict=True)) == {
        ("assignment", "span"),
        ("transport", "whole answer"),
        ("assignment", "whole answer"),
    }
    # Sets are sought for the tokens of the fact alone.
    whole = others[others["tokens"] == "whole answer"]
    assert not whole["feature"].isin(["containment", "iou"]).any()
    sets = tables["mechanism_sets"]
    assert sets["side"].tolist() == ["first answer", "second answer"]
    assert (sets["n_components"] == 10).all()
    assert sets["reached"].between(0, 1).all()


def test_the_page_shows_figures_maps_and_how(analysed):
    section, _, _ = analysed
    maps = [block for block in section.blocks if isinstance(block, Heatmap)]

    assert len(maps) == 2
    assert maps[0].columns == ["0", "1", "2", "3", "MLP"]
    assert [len(rows) for _, rows in maps[0].panels] == [2, 2]
    assert "(right both times)" in maps[0].title
    assert "(right once)" in maps[1].title
    told = " ".join(str(block) for block in section.blocks)
    assert "the logit minus the mean of all logits" in told
    assert "mechanism-difference" in told


def test_a_stopped_analysis_measures_nothing_twice(slaq_run, weights, tmp_path, monkeypatch):
    from surface_consistency.studies.mechanism import ablation
    from surface_consistency.studies.mechanism.ablation import scores

    done = []

    def stopping(*args, **options):
        if len(done) == 2:
            raise KeyboardInterrupt("stopped by hand")
        done.append(args)
        return scores.ablate(*args, **options)

    options = {"model": (str(weights),), "per_class": 1, "store": tmp_path, "folds": 2}
    monkeypatch.setattr(ablation, "ablate", stopping)
    with pytest.raises(KeyboardInterrupt, match="stopped by hand"):
        analyse(slaq_run, **options)
    assert len(list((tmp_path / "run" / "importances").glob("*.parquet"))) == 2

    def counting(*args, **options):
        done.append(args)
        return scores.ablate(*args, **options)

    monkeypatch.setattr(ablation, "ablate", counting)
    _, tables = analyse(slaq_run, **options)
    n_measured = len(done)
    _, again = analyse(slaq_run, **options)

    assert n_measured == len(list((tmp_path / "run" / "importances").glob("*.parquet")))
    assert len(done) == n_measured
    pd.testing.assert_frame_equal(tables["mechanism_pairs"], again["mechanism_pairs"])
    with pytest.raises(RunError, match=r"threshold is 0\.9 there and 0\.5 now; give anoth"):
        analyse(slaq_run, **options, threshold=0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"ablation": "mean", "positions": "answer"},
        {"ablation": "resample", "readout": "log_probability"},
        {"sets": "sum", "unit": "kv_group", "whole_answer": False, "readout": "logit"},
        {"target": "reference", "spans": "whole"},
    ],
)
def test_other_definitions_give_other_numbers(slaq_run, weights, tmp_path, options, analysed):
    chosen = {"model": (str(weights),), "per_class": 2, "store": tmp_path, "folds": 2}
    _, tables = analyse(slaq_run, **chosen, **options)

    pairs, base = tables["mechanism_pairs"], analysed[1]["mechanism_pairs"]
    assert len(pairs) == 4
    both = pairs.merge(base, on="pair_id", suffixes=("", "_base"))
    known = both[both["pearson_attention"].notna() & both["pearson_attention_base"].notna()]
    assert len(known)
    assert (np.abs(known["pearson_attention"] - known["pearson_attention_base"]) > 1e-4).any()
    if not options.get("whole_answer", True):
        row = pd.read_parquet(tmp_path / "run" / "importances").iloc[0]
        assert row["in_span"][-1]
    if options.get("sets") == "sum":
        assert tables["mechanism_sets"]["joint"].isna().all()
    if options.get("target") == "reference":
        rows = pd.read_parquet(tmp_path / "run" / "importances").set_index("answer_id")
        spans = [np.array(row["tokens"])[row["in_span"]] for _, row in rows.iterrows()]
        texts = {"".join(span).strip() for span in spans}
        assert len(texts) == 4  # The same reference under both conditions.


def test_two_models_are_compared_apart_and_together(slaq_run, weights, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(slaq_run, other)

    options = {"model": (str(weights), str(weights)), "per_class": 1, "folds": 2, "heat_maps": 0}
    _, tables = analyse(slaq_run, other, store=tmp_path / "store", **options)

    assert tables["mechanism_similarity"]["model"].unique().tolist() == [
        *("all models", f"toy_model ({slaq_run.name})", "toy_model (other)")
    ]
    first = tables["mechanism_similarity"]
    whole = first[(first["model"] == "all models") & (first["feature"] == "iou")].iloc[0]
    assert whole["n_aligned"] == 2


def test_a_person_marks_spans(slaq_run, weights, tmp_path):
    sheet = tmp_path / "spans.csv"
    options = {"model": (str(weights),), "per_class": 1, "folds": 2, "heat_maps": 0}
    _, before = analyse(slaq_run, **options, store=tmp_path / "a", span_sheet=sheet)
    rows = pd.read_csv(sheet, keep_default_na=False)
    rows["span"] = [row.split(";")[0].strip(" .") for row in rows["long_answer"]]
    rows.loc[0, "span"] = "NONE"
    rows.to_csv(sheet, index=False)

    section, after = analyse(slaq_run, **options, store=tmp_path / "b", marked_spans=sheet)

    pairs = after["mechanism_pairs"]
    assert (pairs["second_span"] == "person").all()
    assert pairs["iou"].isna().sum() == 1
    assert after["mechanism_sample"]["n_unfound"].tolist() == [1]
    assert before["mechanism_pairs"]["pair_id"].tolist() == pairs["pair_id"].tolist()
    assert "the fact was not found in 1 of 4 answers" in str(section.blocks)


def test_the_toy_model_beside_a_run_is_found(slaq_run, weights, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    shutil.copytree(weights, run / "toy_model")

    _, tables = analyse(run, per_class=1, folds=2, heat_maps=0)

    assert len(tables["mechanism_pairs"]) == 2
    assert (run / "mechanism" / "components.csv").is_file()


def test_weights_may_be_spread_over_devices(slaq_run, weights, tmp_path):
    options = {"model": (str(weights),), "per_class": 1, "folds": 2, "heat_maps": 0}

    _, one = analyse(slaq_run, **options, store=tmp_path / "a")
    spread = {"device": None, "device_map": "sequential"}
    _, several = analyse(slaq_run, **options, **spread, store=tmp_path / "b")

    pd.testing.assert_frame_equal(one["mechanism_pairs"], several["mechanism_pairs"])


def other_weights(run):
    """Let the manifest name another digest."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["runner"] |= {"model": "toy_model", "digest": "0123456789abcdef"}
    (run / "manifest.json").write_text(json.dumps(manifest))


def without_prompts(run):
    (run / "prompts.jsonl").unlink()


@pytest.mark.parametrize(
    ("change", "options", "error", "match"),
    [
        (None, {"model": ()}, DataError, r"\(runner fake, .*name their folder or hub id by `mod"),
        (other_weights, {}, RunError, "are not those that answered"),
        (without_prompts, {}, DataError, r"has no prompts\.jsonl: its predictions were made else"),
        (None, {"spans": "judge"}, ValueError, "`spans=judge` needs `judge_model`"),
        (None, {"device_map": "auto"}, *(ValueError, "`device` is one place for the whole model")),
        (None, {"model": ("a", "b")}, ValueError, "`model` names 2 models for 1 runs"),
    ],
    ids=["server", "weights", "predictions", "judge", "devices", "models"],
)
def test_runs_that_cannot_be_looked_into_are_refused(
    slaq_run, weights, tmp_path, change, options, error, match
):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    if change is not None:
        change(run)

    with pytest.raises(error, match=match):
        analyse(run, **{"model": (str(weights),), "per_class": 1} | options)


def test_a_tokenizer_without_offsets_is_refused(slaq_run, weights, tmp_path, monkeypatch):
    from transformers import PreTrainedTokenizerFast

    monkeypatch.setattr(PreTrainedTokenizerFast, "is_fast", False)

    with pytest.raises(RunnerError, match="does not tell which characters its tokens cover"):
        analyse(slaq_run, model=(str(weights),), store=tmp_path)


def test_a_run_without_right_answers_has_nothing_to_look_into(make_slaq_run, weights, tmp_path):
    run = make_slaq_run(tmp_path / "run", answer=lambda prompt: " unknown.")

    with pytest.raises(DataError, match="has no pair to look into: no answer is right"):
        analyse(run, model=(str(weights),))


def test_a_column_of_strata_without_names_leaves_no_pair_out(slaq_run):
    [run] = load_runs([slaq_run], outcome=SlaqOutcome)
    outcomes = run.outcomes.assign(category=None)
    options = {"per_class": 4, "seed": 0, "cluster": "topic_id"}

    nameless = sample_pairs(replace(run, outcomes=outcomes), **options)
    outcomes.loc[::2, "category"] = "a"
    half = sample_pairs(replace(run, outcomes=outcomes), **options)

    assert (nameless.counts["strata"], half.counts["strata"]) == ("none", "category")
    assert len(nameless.pairs) == len(half.pairs) == 8


def test_samples_are_even_over_strata_and_know_no_order(slaq_run):
    [run] = load_runs([slaq_run], outcome=SlaqOutcome)
    whole = sample_pairs(run, per_class=6, seed=0, cluster="topic_id")
    object.__setattr__(run, "outcomes", run.outcomes.sample(frac=1, random_state=1))

    shuffled = sample_pairs(run, per_class=6, seed=0, cluster="topic_id")
    other = sample_pairs(run, per_class=6, seed=1, cluster="topic_id")

    drawn = [pair.pair_id for pair in whole.pairs]
    assert [pair.pair_id for pair in shuffled.pairs] == drawn
    assert {pair.pair_id for pair in other.pairs} != set(drawn)
    aligned = pd.Series([pair.stratum for pair in whole.pairs if pair.is_aligned])
    assert aligned.value_counts().max() - aligned.value_counts().min() <= 1
    assert whole.counts["strata"] == "category"


def test_reasoning_and_inserted_facts_are_left_out(slaq_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    [loaded] = load_runs([run], outcome=SlaqOutcome)
    log = run / "generations-short.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line |= {"reasoning": "hm", "reasoning_source": "<think>"}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(DataError, match="no pair to look into: written after reasoning: "):
        sample_pairs(loaded, per_class=2, seed=0, cluster="topic_id")
