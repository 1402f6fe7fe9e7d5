"""Popularity and memorization end to end, on a world in which both are planted."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.design import Report
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataError
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.lexical.memorization import (
    MemorizationAnalysis,
    MemorizationSettings,
    memorization_scores,
)
from surface_consistency.studies.lexical.popularity import PopularityAnalysis, PopularitySettings
from surface_consistency.studies.lexical.records import LexicalOutcome
from surface_consistency.studies.lexical.settings import LexicalSettings, LexicalSource
from surface_consistency.studies.lexical.study import LexicalStudy
from tests.studies.lexical.world import CorpusModel, corpus, instances

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.UndefinedMetricWarning",
    "ignore::surface_consistency.errors.UnscoredWarning",
)

WORDNET = Path(__file__).parent / "perturbation" / "wordnet"
TASK = "anaphor_agreement"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The study asked and scored, and its n-grams counted."""
    pytest.importorskip("surface_consistency_build", reason="it counts n-grams")
    home = tmp_path_factory.mktemp("world")
    rows, _ = instances()
    (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [json.dumps({"text": text}) + "\n" for text in corpus()]
    (home / "corpus.jsonl").write_text("".join(lines))
    study = LexicalStudy()
    source = LexicalSource(task=(TASK,), source=str(home / "rows.jsonl"), split="train")
    chosen = {"wordnet": str(WORDNET), "repeat": 0, "neighbours": 3, "draws": 2}
    settings = LexicalSettings(memorization=True, **chosen)
    options = {"model": "corpus", "settings": settings, "progress": False}
    folder = run_study(study, study.load(source), CorpusModel(), home / "run", **options)
    score_run(folder)
    count = ["count", "ngrams", "--data", str(home / "run" / "texts.jsonl"), "--n", "4"]
    count += ["--corpus", str(home / "corpus.jsonl"), "--out", str(home / "counts")]
    assert main([*count, "--workers", "1"]) == 0
    return home


def report_of(world, shuffled=None):
    """Read the run; with a seed its verdicts in another order."""
    (run,) = load_runs([world / "run"], outcome=LexicalOutcome)
    if shuffled is not None:
        order = np.random.default_rng(shuffled).permutation(len(run.outcomes))
        verdicts = ["first_correct", "second_correct"]
        outcomes = run.outcomes.copy()
        outcomes[verdicts] = run.outcomes[verdicts].iloc[order].to_numpy()
        run = dataclasses.replace(run, outcomes=outcomes)
    return Report(runs=[run], design=LexicalStudy.design, settings=ReportSettings(resamples=200))


def popularity(world, **options):
    settings = PopularitySettings(counts=(world / "counts",))
    return PopularityAnalysis().tables(report_of(world, **options), settings)


def group_of(fact_ids):
    groups = instances()[1]
    return [groups[int(fact.rpartition("/")[2])] for fact in fact_ids]


def test_verdicts_flip_where_the_popular_wording_was_memorised(world):
    outcomes = report_of(world).runs[0].outcomes
    group = pd.Series(group_of(outcomes["fact_id"]))
    flips = outcomes["first_correct"].astype(bool) & ~outcomes["second_correct"].astype(bool)

    assert (flips == (group == "memorized")).all()
    assert not outcomes.loc[group == "mistaken", "first_correct"].any()


def test_popularity_is_that_of_the_corpus_by_hand(world):
    """The n-grams of a memorized sentence stand there twenty times, those of an unseen one not."""
    rows = pd.read_parquet(world / "counts" / "ngrams.parquet").set_index("instance_id")["counts"]
    ids = pd.Series(rows.index, index=rows.index)
    original = rows[ids.str.endswith("/original/0")]
    group = group_of([name.removesuffix("/original/0") for name in original.index])
    assert original[[of == "memorized" for of in group]].map(set).map({20}.__eq__).all()
    assert original[[of == "unseen" for of in group]].map(set).map({0}.__eq__).all()
    other = rows[ids.str.endswith("/0/0")]
    memorized = other[[of == "memorized" for of in group]]
    # "Near X that hound", ... "that hound of X" with the wrong verb, once; "of X was helpful", ...
    assert memorized.map(list).map([1, 1, 1, 0, 20, 20, 20].__eq__).all()


def test_popularity_recovers_the_plant(world):
    tables = popularity(world)

    accuracy = tables["popularity_accuracy"].frame.set_index("wording")
    assert accuracy.loc["original", "high_accuracy"] == 1.0
    assert accuracy.loc["original", "difference_low"] > 0.1
    shift = tables["popularity_shift"].frame.set_index("pairs")
    assert shift.loc["lost", "n"] == 12
    assert shift.loc["lost", "original"] > shift.loc["lost", "perturbed"] + 2
    assert shift.loc["lost", "rank_biserial"] == -1.0
    assert shift.loc["lost", "adjusted_p_value"] < 0.01
    paired = tables["popularity_paired"].frame.set_index(["split", "part"])
    assert paired.loc[("popularity", "common"), "first_only"] == 24
    assert paired.loc[("popularity", "common"), "adjusted_p_value"] < 0.01
    assert paired.loc[("popularity", "rare"), "first_only"] == 0
    curve = tables["popularity_distribution"].frame
    assert curve.groupby("wording")["share"].max().to_dict() == {"original": 1.0, "other words": 1}


def test_popularity_of_shuffled_verdicts_is_nothing(world):
    differences, p_values = [], []
    for seed in range(4):
        tables = popularity(world, shuffled=seed)
        accuracy = tables["popularity_accuracy"].frame.set_index("wording")
        differences.append(accuracy.loc["original", "difference"])
        p_values.append(tables["popularity_shift"].frame.set_index("pairs")["p_value"]["lost"])

    assert abs(np.mean(differences)) < 0.1
    assert abs(np.median(differences)) < 0.1


def test_memorization_recovers_the_plant(world):
    (run,) = report_of(world).runs
    scores = memorization_scores(run.folder)
    right = scores[scores["is_right"]].assign(group=group_of(scores["fact_id"][scores["is_right"]]))
    by_group = right.groupby("group").mean(numeric_only=True)

    assert by_group.loc["memorized", "extracted"] == 1.0
    assert by_group.loc["unseen", "extracted"] == 0.0
    assert by_group.loc["mistaken", "extracted"] == 0.0
    assert right["neighbours"].notna().all()
    for name in ("loss", "neighbours"):
        assert by_group[name].idxmin() == "memorized"
    for name in ("extraction", "min_k", "min_k_plus_plus"):
        assert by_group[name].idxmax() == "memorized"
        assert by_group.loc["memorized", name] > by_group.loc["unseen", name]


def test_memorization_foretells_planted_verdicts_and_not_shuffled_ones(world):
    tables = MemorizationAnalysis().tables(report_of(world), MemorizationSettings())
    told = tables["memorisation_prediction"].frame.set_index("score")
    assert told.loc["loss", "auc"] > 0.9
    assert told.loc["loss", "macro_f1"] > told.loc["loss", "baseline"] + 0.2
    split = tables["memorisation_split"].frame.set_index("score")
    assert abs(split.loc["loss", "difference"]) > 0.3
    coefficients = tables["memorisation_coefficients"].frame
    assert set(coefficients["term"]) == {"right", "wrong"}

    areas = []
    for seed in range(2):
        settings = MemorizationSettings(svm=False)
        shuffled = MemorizationAnalysis().tables(report_of(world, shuffled=seed), settings)
        areas.append(shuffled["memorisation_prediction"].frame.set_index("score").loc["loss"])
    assert abs(np.mean([row["auc"] for row in areas]) - 0.5) < 0.15
    assert np.mean([row["macro_f1"] for row in areas]) < 0.6


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"instance_id": ["piqa/0/original/0"], "counts": [[1, 2]]},
            r"holds counts of none of the 144 texts .*texts.jsonl",
        ),
        ({"instance_id": ["a"]}, "lacks the column counts; it has instance_id"),
        ({"instance_id": ["a", "a"], "counts": [[1], [1]]}, "holds 'a' twice"),
        ({"instance_id": ["a"], "counts": [[-1.0]]}, "must be finite and at least 0"),
        (None, "`counts` is a folder of `count ngrams"),
        ("manifest.json", "`count merge` where they were counted"),
        ("two", "names 2 counts for 1 runs"),
    ],
    ids=["others", "column", "twice", "negative", "none", "unmerged", "two"],
)
def test_broken_counts_are_refused(world, tmp_path, frame, message):
    if isinstance(frame, dict):
        pd.DataFrame(frame).to_parquet(tmp_path / "ngrams.parquet")
    elif frame == "manifest.json":
        (tmp_path / frame).write_text("{}")
    places = (world / "counts", world / "counts") if frame == "two" else (tmp_path,)
    with pytest.raises(DataError, match=message):
        PopularityAnalysis().tables(report_of(world), PopularitySettings(counts=places))


def test_texts_without_counts_and_unknown_counts_are_left_out(world, tmp_path):
    """A text shorter than n has no n-grams, and an estimate of a server is no count."""
    rows = pd.read_parquet(world / "counts" / "ngrams.parquet")
    counts = rows["counts"].map(lambda values: [float(value) for value in values])
    is_first = rows["instance_id"].str.contains("/0/original/")
    rows["counts"] = counts.where(~is_first, other=pd.Series([[]] * len(rows)))
    rows.at[10, "counts"] = [None, *rows.at[10, "counts"][1:]]
    rows.to_parquet(tmp_path / "ngrams.parquet")

    found = PopularityAnalysis().tables(report_of(world), PopularitySettings(counts=(tmp_path,)))

    accuracy = found["popularity_accuracy"].frame.set_index("wording")
    assert accuracy.loc["original", "n_missing"] == 1
    assert accuracy.loc["other words", "n_missing"] == 0
