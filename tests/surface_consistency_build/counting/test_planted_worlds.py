"""Planted frequencies: counted exactly, and told apart where answers follow one or the other."""

import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import DataError
from tests.surface_consistency_build.counting.planted_worlds import (
    WORLDS,
    count_plan,
    linked_instances,
    plan_frequencies,
    planted_instances,
    world_table,
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A plan, and the folder of its counts."""
    plan = plan_frequencies(120, seed=3)
    folder, table = count_plan(plan, "surface", tmp_path_factory.mktemp("planted"))
    return plan, folder, table


def test_counting_returns_the_plan_exactly(counted):
    plan, folder, table = counted

    planned = {}
    for name in plan.names:
        planned[name.surface] = planned.get(name.surface, 0) + name.n_mentions
    assert dict(zip(table["surface"], table["n_longest"], strict=True)) == planned
    assert (table["n_bounded"] == table["n_longest"]).all()
    assert (table["n_entities"] == 2).sum() == 60
    entities = pd.read_parquet(folder / "entities.parquet").set_index("entity_id")
    first = [name for name in plan.names if name.entity_id == "Q1"]
    assert entities.loc["Q1", "entity_longest"] == sum(planned[name.surface] for name in first)


def test_both_worlds_have_the_same_names_as_often_and_tell_facts_otherwise():
    plan = plan_frequencies(40)

    texts = {world: plan.sentences(world) for world in WORLDS}

    assert len(texts["surface"]) == len(texts["entity"])
    assert texts["surface"] != texts["entity"]
    rows = planted_instances(plan)
    for world in WORLDS:
        told = pd.Series([s for s in texts[world] if s.startswith("Q:")])
        names = rows["surface_id"].str.partition("|")[2]
        times = [told.str.contains(f" {name}[ ?]", regex=True).sum() for name in names]
        follows = np.corrcoef(times, rows[f"{world}_frequency"])[0, 1]
        assert follows > 0.99, world


def test_frequencies_are_drawn_apart_and_wide():
    rows = planted_instances(plan_frequencies(300))

    logs = np.log(rows[["entity_frequency", "surface_frequency"]])
    assert logs["entity_frequency"].min() < np.log(8)
    assert logs["entity_frequency"].max() > np.log(250)
    assert logs.corr().iloc[0, 1] < 0.95


def answers_of(plan, world, seed=0):
    """A toy model that knows a fact by how often its world tells it."""
    rng = np.random.default_rng(seed)
    rows = planted_instances(plan)
    told = np.log(rows[f"{world}_frequency"])
    chance = 1 / (1 + np.exp(told.median() - told))
    return rows[["surface_id"]].assign(accuracy=(rng.random(len(rows)) < chance).astype(float))


def test_the_analysis_separates_the_worlds_and_a_linker_biases_it(tmp_path):
    plan = plan_frequencies(900, seed=1)
    counts, _ = count_plan(plan, "surface", tmp_path)
    tables = {
        world: world_table(plan, answers_of(plan, world), counts).set_index("frequencies")
        for world in WORLDS
    }

    surface, entity = tables["surface"], tables["entity"]
    assert abs(surface.loc["planted", "entity_given_surface"]) < 0.05
    assert surface.loc["planted", "surface_given_entity_low"] > 0.1
    assert entity.loc["planted", "entity_given_surface_low"] > 0.1
    assert abs(entity.loc["planted", "surface_given_entity"]) < 0.05
    # The trap: errors of the linker alone let the entity seem to matter.
    assert surface.loc["linked", "entity_given_surface_low"] > 0.02
    # A shared name counts whole for both its entities, which blurs the entity's frequency.
    assert surface.loc["counted", "n"] == 1800


def test_a_linker_finds_less_than_half_and_mixes_shared_names_up(counted):
    plan, _, _ = counted
    true, found = planted_instances(plan), linked_instances(plan, seed=5)

    share = found["surface_frequency"].sum() / true["surface_frequency"].sum()
    assert 0.35 < share < 0.55
    assert (found["entity_frequency"] >= 0).all()
    assert not found.equals(linked_instances(plan, seed=6))


def test_a_text_that_is_not_that_of_the_plan_is_refused(tmp_path):
    plan = plan_frequencies(8)
    plan.write_corpus(tmp_path / "corpus.jsonl", "surface")
    with (tmp_path / "corpus.jsonl").open("a") as file:
        file.write(json.dumps({"text": f"{plan.names[0].surface} too"}) + "\n")

    with pytest.raises(DataError, match=f"'{plan.names[0].surface}' is planned"):
        count_plan(plan, "surface", tmp_path)
    with pytest.raises(ValueError, match="n_entities must be 8 or more"):
        plan_frequencies(7)
