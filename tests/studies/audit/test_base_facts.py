"""The cluster of an audit: the fact before renaming, by its number or by names."""

import pandas as pd
import pytest

from surface_consistency.engine.report import build_page
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataWarning
from surface_consistency.metrics import contrasts_by, forgetting_by
from surface_consistency.schemas import AuditPrompt
from surface_consistency.studies.audit import AuditStudy, score_published_results
from surface_consistency.studies.audit.base_facts import base_facts
from surface_consistency.studies.audit.tables import audit_tables
from surface_consistency.tables.numbers import sentence_text
from tests.studies.audit.conftest import make_outcomes

COUNTRIES = ("countries/base", "countries/alias", "countries/noise", "countries/collision")


def prompt(fact_id, subject, relation, gold="?", **further):
    fields = {"fact_id": fact_id, "subject": subject, "relation": relation, "gold_object": gold}
    return AuditPrompt(prompt_id=fact_id, prompt_text="?", **fields, **further)


def names(*prompts):
    return [fact.name for fact in base_facts(prompts)]


USA = {"subject_aliases": ("USA",), "relation_aliases": ("Seat",)}
PUBLISHED = {"countries/base": 100, "countries/alias": 100, "countries/noise": 180}


def test_an_alias_name_in_any_topology_is_in_the_cluster_of_its_base_fact():
    base = ("countries/base", prompt(4, "United States", "Capital", **USA))
    forms = [
        prompt(8, "USA", "Capital", subject_aliases=("United States",)),
        prompt(9, "U.S.A.", "seat", subject_aliases=("united states",)),
    ]
    capital = "countries/base/4"

    assert names(("countries/alias", forms[0]), base) == [capital, capital]
    # The second form has the subject, but none of the relations of a fact without aliases.
    bare = ("countries/base", prompt(4, "United States", "Capital"))
    assert names(bare, ("countries/alias", forms[1])) == [capital, "countries/alias/9"]
    assert names(base, ("countries/alias", forms[1])) == [capital, capital]
    # The same names in another domain are another fact.
    assert names(base, ("trade/alias", forms[0])) == [capital, "trade/alias/8"]


def test_the_number_of_a_base_fact_decides_before_names():
    near_miss = ("countries/collision", prompt(140, "France", "Largest City", base_fact=2))
    decoy = ("countries/noise", prompt(170, "Government of France", "Seat", base_fact=2))
    capital = ("countries/base", prompt(2, "France", "Capital"))
    city = ("countries/base", prompt(3, "France", "Largest City", base_fact=3))
    again = ("countries/paraphrase", prompt(7, "France", "largest city"))

    found = base_facts([near_miss, decoy, capital, city, again])

    assert [fact.name for fact in found[:4]] == ["countries/base/2"] * 3 + ["countries/base/3"]
    assert all(fact.is_linked for fact in found)


def test_facts_without_a_base_fact_are_clusters_by_their_names_and_are_not_linked():
    asked = [
        ("countries/noise", prompt(0, "France", "Capital")),
        ("countries/collision", prompt(5, "FRANCE", "capital")),
        ("countries/noise", prompt(1, "Germany", "Capital")),
        ("released", prompt(0, "France", "Capital")),
    ]

    found = base_facts(asked)

    assert [fact.name for fact in found] == ["countries/noise/0"] * 2 + [
        "countries/noise/1",
        "released/0",
    ]
    assert not any(fact.is_linked for fact in found)


def test_published_files_are_linked_by_names_and_the_others_are_counted(data_files):
    from surface_consistency.studies.audit import find_conditions

    folder = data_files / "lmlm_audit" / "data" / "custom_databases" / "countries"
    asked = [
        (one.label.database, prompt) for one in find_conditions(folder) for prompt in one.prompts
    ]

    found = pd.DataFrame(base_facts(asked)).assign(database=[database for database, _ in asked])

    counts = found.groupby("database")["name"].nunique()
    assert {name: counts[name] for name in PUBLISHED} == PUBLISHED
    unlinked = found[~found["is_linked"]].groupby("database")["name"].nunique()
    assert unlinked.to_dict() == {"countries/noise": 80, "countries/collision": 40}
    alias = found[found["database"] == "countries/alias"]
    assert alias.groupby("name").size().eq(2 * 6).all()


@pytest.fixture
def world():
    """Forty facts with one answer each in four topologies; four of them leak in all."""
    return make_outcomes(
        [
            {"database": database, "fact": fact, "style": style, "second_correct": fact < 4}
            for database in COUNTRIES
            for fact in range(40)
            for style in ("cloze", "direct_questions")
        ]
    )


def test_topologies_of_the_same_facts_do_not_narrow_intervals(world):
    """An exact copy adds nothing; the fact-topology pairs would halve the interval."""
    one = audit_tables(world[world["topology"] == "base"])["overall"].iloc[0]
    four = audit_tables(world)["overall"].iloc[0]
    pairs = audit_tables(world, cluster="item")["overall"].iloc[0]

    assert (one["n_clusters"], four["n_clusters"], pairs["n_clusters"]) == (40, 40, 160)
    for name in ("leakage", "leakage_low", "leakage_high", "p_value", "detectable_difference"):
        assert four[name] == pytest.approx(one[name]), name
    assert pairs["leakage"] == four["leakage"]
    width, narrow = (row["leakage_high"] - row["leakage_low"] for row in (four, pairs))
    assert narrow < 0.6 * width
    tables = audit_tables(world)
    assert tables["states"]["n_clusters"].eq(40).all()
    assert tables["attribution"]["n_clusters"].eq(40).all()


def test_contrasts_between_topologies_are_paired_by_base_fact(world):
    """A fact that leaks in both adds nothing to the difference, so that one change decides it."""
    changed = world["second_correct"].where(
        (world["topology"] != "noise") | ~world["item"].isin(["countries/noise/0"]), False
    )
    frame = world.assign(second_correct=changed)
    frame = frame[frame["topology"].isin(["base", "noise"])]
    options = {"between": "topology", "rates": ["second_accuracy"]}

    paired, apart = (
        contrasts_by(frame, cluster=name, **options).iloc[0] for name in ("base_fact", "item")
    )

    assert paired["difference"] == apart["difference"] == pytest.approx(1 / 40)
    assert (
        paired["difference_high"] - paired["difference_low"]
        < (apart["difference_high"] - apart["difference_low"]) / 2
    )


def test_the_page_counts_facts_and_not_their_topologies(audit_run, world):
    frame = world.assign(first_correct=world["second_correct"], attribution="parameters")
    page = build_page(
        [audit_run(frame)], study=AuditStudy(), settings=ReportSettings(resamples=50, answers=0)
    )[0]
    told = " ".join(map(sentence_text, (*page.finding, *page.findings)))

    assert "The 32 surviving answers are on 4 of 40 facts" in told
    assert "160 facts" not in told


def test_results_of_a_topology_without_base_facts_are_scored_with_a_warning(tmp_path):
    files = {}
    for topology, number, subject in (("noise", 3, "France"), ("collision", 9, "Germany")):
        result = {"subject": subject, "relation": "Capital", "ground_truth": "Paris"}
        rows = [
            result | {"fact_id": number, "state": state, "prompt": "?", "model_output": "Paris"}
            for state in ("DEL-ON", "DEL-OFF")
        ]
        file = tmp_path / f"{topology}.jsonl"
        file.write_text("".join(f"{pd.Series(row).to_json()}\n" for row in rows), "utf-8")
        files[f"countries/{topology}/cloze"] = file

    with pytest.warns(DataWarning, match=r"countries/noise \(1\), countries/collision \(1\)"):
        outcomes = score_published_results(files)["outcomes"]

    assert outcomes["base_fact"].tolist() == ["countries/noise/3", "countries/collision/9"]
    assert forgetting_by(outcomes, by=["style"], cluster="base_fact")["n_clusters"].tolist() == [2]


def test_runs_without_base_facts_are_clustered_by_fact_topology_pairs(audit_run, world):
    page, tables, _ = build_page(
        [audit_run(world.assign(base_fact=None))],
        study=AuditStudy(),
        settings=ReportSettings(resamples=50, answers=0),
    )

    assert tables["overall"].frame["n_clusters"].tolist() == [160]
    assert "160 fact-topology pairs" in " ".join(sentence_text(one) for one in page.finding)
