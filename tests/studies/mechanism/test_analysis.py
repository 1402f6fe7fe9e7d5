"""The analysis of mechanism, from a finished run to tables, figures and Parquet."""

import json
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.design import Report
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.errors import DataError, RunError, RunnerError, UndefinedMetricWarning
from surface_consistency.metrics import transport_similarity
from surface_consistency.models import FakeRunner
from surface_consistency.models.loading import find_model
from surface_consistency.report.page import Heatmap
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.mechanism.analysis import MechanismAnalysis
from surface_consistency.studies.mechanism.sample import sample_pairs
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.records import SlaqOutcome
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.studies.slaq.toy_model import plan_memory, planted_answer

SETTINGS = {"permutations": 1, "limit": 6, "repeat": 0}


@pytest.fixture(scope="module")
def slaq_data():
    return load_slaq("sample").select(limit=6)


@pytest.fixture(scope="module")
def weights(tmp_path_factory, slaq_data):
    """A model of two layers that has seen one step of training."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    asked, _ = slaq_prompts(slaq_data.rows, SlaqSettings(**SETTINGS))
    texts = [turn.content for prompt in asked for turn in prompt.messages]
    template = "{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}Answer:"
    size = {"steps": 1, "context": 2048, "vocabulary_size": 1_500}
    settings = TrainingSettings(chat_template=template, **size)
    folder = tmp_path_factory.mktemp("weights") / "toy_model"
    examples = [(Segment("A short text.", True),)]
    return train_on_examples(examples, folder, settings, vocabulary=texts)


@pytest.fixture(scope="module")
def make_slaq_run(slaq_data):
    """Run a study with given answers and score it: `make_slaq_run(folder)`."""
    settings = SlaqSettings(**SETTINGS)
    asked = slaq_prompts(slaq_data.rows, settings)[1].set_index("prompt_id")
    topics = dict(list(slaq_data.rows.groupby("topic_id")))
    memory = plan_memory(slaq_data.rows["item"])

    def answer(prompt):
        topic_id, order = asked.loc[prompt.id, ["topic_id", "order"]]
        return " " + planted_answer(topics[topic_id], order, memory)

    def run(folder, answer=answer):
        options = {"model": "toy_model", "settings": settings, "progress": False}
        made = run_study(SlaqStudy(), slaq_data, FakeRunner(answer), folder, **options)
        score_run(made, study=SlaqStudy(), scoring=SlaqScoring(all_facts=True))
        return made.path

    return run


@pytest.fixture(scope="module")
def slaq_run(make_slaq_run, tmp_path_factory):
    return make_slaq_run(tmp_path_factory.mktemp("slaq") / "run")


def analyse(*runs, **options):
    """Return the section and the tables by name, without the rest of the page."""
    loaded = load_runs(runs, outcome=SlaqOutcome)
    report = Report(runs=loaded, design=SlaqStudy.design, cluster="topic_id")
    analysis = MechanismAnalysis()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = analysis.tables(report, MechanismSettings(**{"device": "cpu"} | options))
        [section] = analysis.sections(report, tables)
    return section, {name: table.frame for name, table in tables.items()}


@pytest.fixture(scope="module")
def analysed(slaq_run, weights, tmp_path_factory):
    """The pairs, four of each class, the store, and the section of the page."""
    store = tmp_path_factory.mktemp("store")
    section, tables = analyse(slaq_run, model=(str(weights),), per_class=4, store=store, folds=2)
    return tables["mechanism_pairs"], store / "run", section


def test_similarities_equal_those_of_the_stored_importances(analysed, weights):
    # The features are computed again from the files of the store.
    pairs, store, _ = analysed
    components = pd.read_csv(store / "components.csv")
    rows = pd.read_parquet(store / "importances").set_index("answer_id")
    pair = pairs.iloc[0]
    heads = np.flatnonzero(components["kind"] == "head")

    sides = []
    for answer in (f"{pair['item']}/short", pair["pair"]):
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
    assert main_rows["iou"].tolist() == pairs["iou"].tolist()
    digest = json.loads((store / "manifest.json").read_text())["model"]["digest"]
    assert digest == find_model(str(weights), None).digest
    assert digest is not None


def test_section_has_a_heat_map_of_a_pair_of_each_class(analysed):
    _, _, section = analysed
    maps = [block for block in section.blocks if isinstance(block, Heatmap)]

    kinds = ["(correct both times)", "(correct once)"]
    assert [one.title.rpartition("? ")[2] for one in maps] == kinds
    for one in maps:
        assert one.columns == ["0", "1", "2", "3", "MLP"]
        assert len(one.panels) == 2
        assert all([layer for layer, _ in rows] == ["0", "1"] for _, rows in one.panels)
    text = " ".join(map(str, section.blocks))
    assert "the logit minus the mean of all logits" in text
    assert "mechanism-difference" in text


def test_resumed_analysis_measures_nothing_twice(slaq_run, weights, tmp_path, monkeypatch):
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
    with pytest.raises(RunError, match=r"threshold is 0\.9 there and 0\.5 now; pass anoth"):
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
def test_other_definitions_change_the_numbers(slaq_run, weights, tmp_path, options, analysed):
    chosen = {"model": (str(weights),), "per_class": 2, "store": tmp_path, "folds": 2}
    _, tables = analyse(slaq_run, **chosen, **options)

    pairs = tables["mechanism_pairs"]
    assert len(pairs) == 4
    both = pairs.merge(analysed[0], on="pair", suffixes=("", "_base"))
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


def test_two_models_are_compared_separately_and_combined(slaq_run, weights, tmp_path):
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


def test_marked_spans_replace_those_that_were_found(slaq_run, weights, tmp_path):
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
    assert before["mechanism_pairs"]["pair"].tolist() == pairs["pair"].tolist()
    assert "the fact was not found in 1 of 4 answers" in str(section.blocks)


def test_toy_model_in_the_run_folder_is_found(slaq_run, weights, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    shutil.copytree(weights, run / "toy_model")

    _, tables = analyse(run, per_class=1, folds=2, heat_maps=0)

    assert len(tables["mechanism_pairs"]) == 2
    assert (run / "mechanism" / "components.csv").is_file()


def test_weights_can_be_placed_on_several_devices(slaq_run, weights, tmp_path):
    options = {"model": (str(weights),), "per_class": 1, "folds": 2, "heat_maps": 0}

    _, one = analyse(slaq_run, **options, store=tmp_path / "a")
    spread = {"device": None, "device_map": "sequential"}
    _, several = analyse(slaq_run, **options, **spread, store=tmp_path / "b")

    pd.testing.assert_frame_equal(one["mechanism_pairs"], several["mechanism_pairs"])


def other_weights(run):
    """Replace the digest in the manifest."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["runner"] |= {"model": "toy_model", "digest": "0123456789abcdef"}
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "options", "error", "match"),
    [
        (None, {"model": ()}, DataError, r"\(runner fake, .*pass their folder or hub id as `mod"),
        (other_weights, {}, RunError, "are not those of the run"),
        (
            lambda run: (run / "prompts.jsonl").unlink(),
            *({}, DataError, r"has no prompts\.jsonl: its predictions were made else"),
        ),
        (None, {"spans": "judge"}, ValueError, "`spans=judge` needs `judge_model`"),
        (None, {"device_map": "auto"}, ValueError, "`device` puts the whole model on one"),
        (None, {"model": ("a", "b")}, ValueError, "`model` names 2 models for 1 runs"),
    ],
    ids=["server", "weights", "predictions", "judge", "devices", "models"],
)
def test_runs_that_cannot_be_analysed_raise_an_error(
    slaq_run, weights, tmp_path, change, options, error, match
):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    if change is not None:
        change(run)

    with pytest.raises(error, match=match):
        analyse(run, **{"model": (str(weights),), "per_class": 1} | options)


def test_tokenizer_without_offsets_raises_an_error(slaq_run, weights, tmp_path, monkeypatch):
    from transformers import PreTrainedTokenizerFast

    monkeypatch.setattr(PreTrainedTokenizerFast, "is_fast", False)

    with pytest.raises(RunnerError, match="does not return the characters of its tokens"):
        analyse(slaq_run, model=(str(weights),), store=tmp_path)


def test_run_without_correct_answers_raises_an_error(make_slaq_run, weights, tmp_path):
    run = make_slaq_run(tmp_path / "run", answer=lambda prompt: " unknown.")

    with pytest.raises(DataError, match="can be analysed: no answer is correct"):
        analyse(run, model=(str(weights),))


def test_pairs_with_missing_strata_are_not_excluded(slaq_run):
    [run] = load_runs([slaq_run], outcome=SlaqOutcome)
    outcomes = run.outcomes.assign(category=None)
    options = {"per_class": 4, "seed": 0, "cluster": "topic_id"}

    nameless = sample_pairs(replace(run, outcomes=outcomes), **options)
    outcomes.loc[::2, "category"] = "a"
    half = sample_pairs(replace(run, outcomes=outcomes), **options)

    assert (nameless.counts["strata"], half.counts["strata"]) == ("none", "category")
    assert len(nameless.pairs) == len(half.pairs) == 8


def test_samples_are_even_over_strata_and_do_not_depend_on_order(slaq_run):
    [run] = load_runs([slaq_run], outcome=SlaqOutcome)
    whole = sample_pairs(run, per_class=6, seed=0, cluster="topic_id")
    object.__setattr__(run, "outcomes", run.outcomes.sample(frac=1, random_state=1))

    shuffled = sample_pairs(run, per_class=6, seed=0, cluster="topic_id")
    other = sample_pairs(run, per_class=6, seed=1, cluster="topic_id")

    drawn = [pair.pair for pair in whole.pairs]
    assert [pair.pair for pair in shuffled.pairs] == drawn
    assert {pair.pair for pair in other.pairs} != set(drawn)
    aligned = pd.Series([pair.stratum for pair in whole.pairs if pair.is_aligned])
    assert aligned.value_counts().max() - aligned.value_counts().min() <= 1
    assert whole.counts["strata"] == "category"


def test_answers_with_reasoning_or_inserted_facts_are_excluded(slaq_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(slaq_run, run)
    [loaded] = load_runs([run], outcome=SlaqOutcome)
    log = run / "generations-short.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line |= {"reasoning": "hm", "reasoning_source": "<think>"}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(DataError, match="can be analysed: written after reasoning: "):
        sample_pairs(loaded, per_class=2, seed=0, cluster="topic_id")
