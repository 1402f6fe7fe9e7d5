"""Popularity and memorization end to end, on data with planted effects of both.

A quarter of the instances is memorized: the correct sentence is known in the original words, and
the incorrect one in other words. In a quarter the correct sentence is known in both wordings, in a
quarter the incorrect one, and a quarter is unknown.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.design import Report
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataError
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.lexical.benchmarks import load_benchmark
from surface_consistency.studies.lexical.memorization import (
    MemorizationAnalysis,
    MemorizationSettings,
    memorization_scores,
)
from surface_consistency.studies.lexical.popularity import PopularityAnalysis, PopularitySettings
from surface_consistency.studies.lexical.records import LexicalOutcome
from surface_consistency.studies.lexical.settings import LexicalSettings
from surface_consistency.studies.lexical.study import LexicalStudy
from tests.made_scores import Scoring

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.UndefinedMetricWarning",
    "ignore::surface_consistency.errors.UnscoredWarning",
)

WORDNET = Path(__file__).parent / "perturbation" / "wordnet"
NOUNS = ("dog", "story", "registration", "crime")
GROUPS = ("memorized", "known", "mistaken", "unseen")
TEXTS = [
    f"Near Na{n:02d}el that {NOUNS[n % 4]} of it {{}} helpful to Na{n:02d}el." for n in range(48)
]


def group_of(number):
    return GROUPS[int(number) // 4 % 4]


def known(text):
    """Return how well a text is known in this world, from 0 to 3."""
    number, is_good = int(re.search(r"Na(\d+)el", text)[1]), " was " in text
    is_original = any(f" {noun} " in text for noun in NOUNS)
    group = group_of(number)
    if group == "memorized":
        return (3 if is_original else 1) * (is_good == is_original)
    return {"known": 2 * is_good, "mistaken": 2 * (not is_good), "unseen": 0}[group]


def fields(request):
    """Words of well-known texts are more likely; the verb decides if no text is known."""
    words = request.continuation.split()
    level = known(request.context + request.continuation)
    values = [-3.0 + 0.9 * level - 0.1 * (word == "was") for word in words]
    moments = {"vocabulary_means": [-4.0] * len(words), "vocabulary_deviations": [1.0] * len(words)}
    scored = {"token_ids": range(len(words)), "log_probabilities": values, "is_greedy": level > 1}
    return scored | (moments if request.vocabulary_moments else {})


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a scored run of the study, and the counts of the n-grams of its texts."""
    home = tmp_path_factory.mktemp("world")
    asked(home, fields)
    lines = (home / "run" / "texts.jsonl").read_text().splitlines()
    texts = pd.DataFrame(map(json.loads, lines)).rename(columns={"id": "instance_id"})
    counts = [[(0, 1, 2, 20)[known(text)]] * 6 for text in texts.pop("text")]
    (home / "counts").mkdir()
    texts.assign(counts=counts).to_parquet(home / "counts" / "ngrams.parquet")
    return home


def asked(home, predicted):
    """Run the study with a scorer, and score it."""
    rows = [
        {"sentence_good": text.format("was"), "sentence_bad": text.format("were")}
        | {"UID": "anaphor_number_agreement"}
        for text in TEXTS
    ]
    chosen = {"wordnet": str(WORDNET), "repeat": 0, "neighbours": 3, "draws": 2}
    settings = LexicalSettings(memorization=True, **chosen)
    options = {"model": "planted", "settings": settings, "progress": False}
    data = load_benchmark("anaphor_agreement", rows)
    folder = run_study(LexicalStudy(), data, Scoring(predicted), home / "run", **options)
    score_run(folder)


def report_of(world):
    runs = load_runs([world / "run"], outcome=LexicalOutcome)
    return Report(runs=runs, design=LexicalStudy.design, settings=ReportSettings(resamples=200))


def popularity(world, *counts):
    settings = PopularitySettings(counts=counts)
    return PopularityAnalysis().tables(report_of(world), settings)


def test_popularity_recovers_the_planted_effect(world):
    tables = popularity(world, world / "counts")

    accuracy = tables["popularity_accuracy"].frame.set_index("wording")
    assert accuracy.loc["original", "high_accuracy"] == 1.0
    assert accuracy.loc["original", "difference_low"] > 0.1
    shift = tables["popularity_shift"].frame.set_index("pairs")
    assert shift.loc["lost", "n"] == 12
    assert shift.loc["lost", "original"] > shift.loc["lost", "perturbed"] + 2
    assert shift.loc["lost", "rank_biserial"] == -1.0
    assert shift.loc["lost", "p_value_holm"] < 0.01
    paired = tables["popularity_paired"].frame.set_index(["split", "part"])
    assert paired.loc[("popularity", "common"), "first_only"] == 24
    assert paired.loc[("popularity", "common"), "p_value_holm"] < 0.01
    assert paired.loc[("popularity", "rare"), "first_only"] == 0
    curve = tables["popularity_distribution"].frame
    assert curve.groupby("wording")["share"].max().to_dict() == {"original": 1.0, "other words": 1}


def test_memorization_recovers_the_planted_effect_and_predicts_correctness(world):
    scores = memorization_scores(report_of(world).runs[0].folder)
    right = scores[scores["is_right"]]
    groups = right["item"].str.rpartition("/")[2].map(group_of)
    by_group = right.groupby(groups).mean(numeric_only=True)

    assert by_group["extracted"].to_dict() == dict(zip(GROUPS, (1.0, 1.0, 0.0, 0.0), strict=True))
    assert right["neighbours"].notna().all()
    for name in ("loss", "neighbours"):
        assert by_group[name].idxmin() == "memorized"
    for name in ("extraction", "min_k", "min_k_plus_plus"):
        assert by_group[name].idxmax() == "memorized"
        assert by_group.loc["memorized", name] > by_group.loc["unseen", name]

    tables = MemorizationAnalysis().tables(report_of(world), MemorizationSettings(svm=False))
    predicted = tables["memorisation_prediction"].frame.set_index("score")
    assert predicted.loc["loss", "auc"] > 0.9
    assert predicted.loc["loss", "macro_f1"] > predicted.loc["loss", "baseline"] + 0.2
    split = tables["memorisation_split"].frame.set_index("score")
    assert abs(split.loc["loss", "difference"]) > 0.3
    coefficients = tables["memorisation_coefficients"].frame
    assert set(coefficients["term"]) == {"right", "wrong"}


def test_instances_of_one_context_are_one_cluster(world):
    """Pairs of instances share a context: half of the clusters, and wider intervals of changes."""
    report = report_of(world)
    (run,) = report.runs
    places = run.outcomes["item"].str.rpartition("/")[2].astype(int) // 2
    outcomes = run.outcomes.assign(context=places.astype(str))
    shared = replace(report, runs=[replace(run, outcomes=outcomes)], cluster="context")
    settings = PopularitySettings(counts=[world / "counts"])
    chosen = MemorizationSettings(svm=False)

    def made(report):
        tables = MemorizationAnalysis().tables(report, chosen)
        tables |= PopularityAnalysis().tables(report, settings)
        return {name: table.frame for name, table in tables.items()}

    alone, both = made(report), made(shared)
    for name in ("split", "prediction", "coefficients"):
        of_loss = (one[f"memorisation_{name}"].query("score == 'loss'") for one in (alone, both))
        assert [set(rows["n_clusters"]) for rows in of_loss] == [{48}, {24}]
    assert set(both["popularity_accuracy"]["n_clusters"]) == {24}
    shifts = [one["popularity_shift"].set_index("pairs").loc["all"] for one in (alone, both)]
    assert [int(row["n_clusters"]) for row in shifts] == [48, 24]
    assert (
        shifts[0]["change"]
        == shifts[1]["change"]
        == pytest.approx(shifts[0]["perturbed"] - shifts[0]["original"])
    )
    widths = [row["change_high"] - row["change_low"] for row in shifts]
    assert widths[1] > 1.3 * widths[0]
    assert shifts[0]["clustered_p_value"] < shifts[1]["clustered_p_value"]
    assert shifts[0]["p_value"] == shifts[1]["p_value"]


def test_scorers_without_token_ids_or_tokens_give_a_part_of_the_scores(world, tmp_path):
    """A sum is sufficient for the extraction of the second half; the others need each token."""

    def without(request, *, tokens):
        predicted = fields(request) | {"token_ids": None}
        words = {"tokens": request.continuation.split()}
        total = {"log_probabilities": [sum(predicted["log_probabilities"])]}
        moments = dict.fromkeys(("vocabulary_means", "vocabulary_deviations"))
        return predicted | (words if tokens else total | moments)

    asked(tmp_path / "words", lambda request: without(request, tokens=True))
    asked(tmp_path / "sums", lambda request: without(request, tokens=False))
    found = {
        home: memorization_scores(report_of(home).runs[0].folder)
        for home in (world, tmp_path / "words", tmp_path / "sums")
    }

    pd.testing.assert_frame_equal(found[tmp_path / "words"], found[world])
    sums = found[tmp_path / "sums"]
    assert sums["is_sum"].all()
    assert sums["extraction"].tolist() == pytest.approx(found[world]["extraction"].tolist())
    assert sums["extracted"].equals(found[world]["extracted"])
    assert (
        sums[["n_tokens", "loss", "neighbours", "min_k", "min_k_plus_plus"]].isna().all(axis=None)
    )
    settings = MemorizationSettings(svm=False)
    tables = MemorizationAnalysis().tables(report_of(tmp_path / "sums"), settings)
    note = "96 of 96 texts have a sum of log-probabilities without tokens, from which loss, neigh"
    assert note in tables["memorisation"].note
    assert set(tables["memorisation_split"].frame["score"]) == {"extracted", "extraction"}
    whole = MemorizationAnalysis().tables(report_of(world), settings)["memorisation"].note
    assert whole.endswith("not in the paper.")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"instance_id": ["piqa/0/original/0"], "counts": [[1, 2]]},
            r"lacks the counts of all 144 texts .*texts.jsonl",
        ),
        ({"instance_id": ["a"]}, "lacks the column counts; it has instance_id"),
        ({"instance_id": ["a", "a"], "counts": [[1], [1]]}, "has 'a' twice"),
        ({"instance_id": ["a"], "counts": [[-1.0]]}, "must be finite and at least 0"),
        (None, "`counts` is a folder of `count ngrams"),
        ("manifest.json", "run `count merge` if they were counted"),
        ("two", "names 2 counts for 1 runs"),
    ],
    ids=["others", "column", "twice", "negative", "none", "unmerged", "two"],
)
def test_invalid_counts_raise_errors(world, tmp_path, frame, message):
    if isinstance(frame, dict):
        pd.DataFrame(frame).to_parquet(tmp_path / "ngrams.parquet")
    elif frame == "manifest.json":
        (tmp_path / frame).write_text("{}")
    with pytest.raises(DataError, match=message):
        popularity(world, *[tmp_path] * (2 if frame == "two" else 1))


def test_texts_without_counts_and_unknown_counts_are_excluded(world, tmp_path):
    """A text shorter than n has no n-grams, and an estimate of a server is not a count."""
    rows = pd.read_parquet(world / "counts" / "ngrams.parquet")
    counts = rows["counts"].map(lambda values: [float(value) for value in values])
    is_first = rows["instance_id"].str.contains("/0/original/")
    rows["counts"] = counts.where(~is_first, other=pd.Series([[]] * len(rows)))
    rows.at[10, "counts"] = [None, *rows.at[10, "counts"][1:]]
    rows.to_parquet(tmp_path / "ngrams.parquet")

    accuracy = popularity(world, tmp_path)["popularity_accuracy"].frame.set_index("wording")

    assert accuracy.loc["original", "n_missing"] == 1
    assert accuracy.loc["other words", "n_missing"] == 0


def test_tasks_and_scores_are_drawn_in_the_order_of_their_table():
    """Both orders are not alphabetical: the baseline is first, then the paper's scores."""
    scores = ["loss", "extraction", "min_k"]
    frame = pd.DataFrame({"task": ["other"] * 3 + ["next_word"] * 3, "score": scores * 2})
    frame = frame.assign(model="m", n=40, macro_f1=0.5, baseline=0.5)
    tables = {"memorisation_prediction": SimpleNamespace(frame=frame)}

    (chart,) = MemorizationAnalysis().figures(SimpleNamespace(index={"m": 0}), tables)

    labels = ["always the majority", "MIA loss", "TDE likelihood", "Min-K % (not in the paper)"]
    assert [row[0] for row in chart.rows] == ["other", *labels, "next word", *labels]
    assert [row[1] for row in chart.rows] == [0, 1, 1, 1, 1] * 2
    assert [len(row[2]) for row in chart.rows] == [0, 1, 1, 1, 1] * 2
