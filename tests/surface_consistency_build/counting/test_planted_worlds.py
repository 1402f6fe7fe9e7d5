"""Planted frequencies: counted exactly, and told apart where answers follow one or the other."""

import json
from random import Random

import numpy as np
import pandas as pd
import pytest
from surface_consistency_build.counting import CorpusSettings, CountRun, NameTask, SurfaceTable

from surface_consistency.metrics import frequency_analysis
from surface_consistency.studies.redirectqa.instances import instance_rows
from tests.surface_consistency_build.made_records import fact_questions


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Planned mentions of two names of each entity, and the instances that a count gives."""
    rng, home = np.random.default_rng(1), tmp_path_factory.mktemp("planted")
    totals = np.exp(rng.uniform(np.log(6), np.log(300), 900))
    shares = rng.uniform(0.12, 0.88, 900)
    mentions, questions = {}, []
    for number, (total, share) in enumerate(zip(totals, shares, strict=True)):
        names = (f"Bado Keni {number}", f"Zulo{number}")
        own = (max(1, int(total * share)), max(1, int(total * (1 - share))))
        mentions |= dict(zip(names, own, strict=True))
        questions += fact_questions(number, names, aliases=names[1:])
    sentences = [f"They spoke of {name}." for name, n in mentions.items() for _ in range(n)]
    Random(0).shuffle(sentences)
    documents = ["\n".join(sentences[k : k + 5]) for k in range(0, len(sentences), 5)]
    corpus = home / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    task = NameTask(SurfaceTable.from_questions(questions), instances=instance_rows(questions))
    run = CountRun.plan(home / "counts", task, CorpusSettings(corpus=(str(corpus),), shards=1))
    run.run_all(n_workers=1)
    run.merge()
    rows = pd.read_parquet(home / "counts" / "instances.parquet")
    return mentions, rows[rows["measure"] == "longest"]


def test_counting_returns_the_plan_exactly(planted):
    mentions, rows = planted
    own = rows["surface_id"].str.partition("|")[2].map(mentions)

    assert rows["surface_frequency"].tolist() == own.tolist()
    assert (
        rows["entity_frequency"].tolist()
        == own.groupby(rows["subject_id"]).transform("sum").tolist()
    )
    others = rows["entity_frequency"] - rows["surface_frequency"]
    assert rows["others_frequency"].tolist() == others.tolist()


@pytest.mark.parametrize("world", ["surface", "entity"])
def test_the_analysis_finds_which_frequency_a_toy_model_follows(planted, world):
    _, rows = planted
    known = np.log(rows[f"{world}_frequency"])
    chance = 1 / (1 + np.exp(known.median() - known))
    accuracy = (np.random.default_rng(0).random(len(rows)) < chance).astype(float)

    table = frequency_analysis(rows.assign(accuracy=accuracy))

    found = table[table["subset"] == "overall"].set_index("statistic")
    other = {"surface": "entity", "entity": "surface"}[world]
    assert found.loc[f"{world}_given_{other}", "estimate_low"] > 0.1
    assert abs(found.loc[f"{other}_given_{world}", "estimate"]) < 0.05
