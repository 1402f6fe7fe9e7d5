"""The cluster of an audit: the base fact, from a field or from the names of a prompt."""

import json
from itertools import permutations

import pandas as pd
import pytest

from surface_consistency.engine.report import build_page
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import DataWarning
from surface_consistency.metrics import contrasts_by
from surface_consistency.schemas import AuditPrompt
from surface_consistency.studies.audit import AuditStudy, find_conditions, score_published_results
from surface_consistency.studies.audit.base_facts import base_facts
from surface_consistency.studies.audit.tables import audit_tables
from surface_consistency.tables.numbers import sentence_text
from tests.studies.audit.conftest import make_outcomes

TOPOLOGIES = ("base", "alias", "noise", "collision")


def asked(topology, subject, relation, **further):
    fields = {"prompt_id": 0, "fact_id": 0, "gold_object": "?", "prompt_text": "?"} | further
    return topology, AuditPrompt(subject=subject, relation=relation, **fields)


USA = {"subject_aliases": ("USA",), "relation_aliases": ("Seat",)}


@pytest.mark.parametrize(
    ("others", "found"),
    [
        # Alias names, in either order of databases, by the key of the audit.
        ([asked("alias", "usa", "seat")], ["United States | Capital"]),
        ([asked("alias", "U.S.A.", "Capital")], ["U.S.A. | Capital"]),
        ([asked("alias", "A", "Capital", subject_aliases=["USA"])], ["United States | Capital"]),
        # The names of a near miss are those of another fact; the prompt names its base fact.
        ([asked("collision", "USA", "Demonym")], ["USA | Demonym"]),
        ([asked("collision", "USA", "Demonym", base_fact="X | Y")], ["X | Y"]),
        # The same question in two databases without a base fact is one cluster.
        ([asked("noise", "Peru", "Seat"), asked("collision", "PERU", "seat")], ["PERU | seat"] * 2),
    ],
)
def test_base_facts_are_found_by_name_and_by_the_names_of_topology_base(others, found):
    base = asked("base", "United States", "Capital", **USA)

    facts = base_facts([*others, base])

    assert [fact.name for fact in facts] == [*found, "United States | Capital"]
    linked = {"United States | Capital", "X | Y"}
    assert [fact.is_linked for fact in facts] == [fact.name in linked for fact in facts]


A, B, C = "A | Capital", "B | Capital", "C | Capital"
COUNTRY = asked("base", "Georgia (country)", "Capital", subject_aliases=["Georgia"])
STATE = asked("base", "Georgia (state)", "Capital", subject_aliases=["Georgia"])
LANGUAGES = [asked("base", name, "Capital") for name in ("C", "C++", "C#")]


@pytest.mark.parametrize(
    ("prompts", "found"),
    [
        # A chain of names joins prompts without a base fact, and reaches the only one.
        (
            [
                asked("alias", "A", "Capital"),
                asked("noise", "C", "Capital"),
                asked("alias", "B", "Capital", subject_aliases=["A", "C"]),
            ],
            [A, A, A],
        ),
        (
            [
                asked("base", "A", "Capital"),
                asked("noise", "C", "Capital"),
                asked("alias", "B", "Capital", subject_aliases=["A", "C"]),
            ],
            [A, A, A],
        ),
        (
            [
                asked("base", "A", "Capital"),
                asked("noise", "C", "Capital"),
                asked("alias", "a", "Capital", subject_aliases=["C"]),
            ],
            [A, A, A],
        ),
        # A chain between two base facts does not join them.
        (
            [
                asked("base", "A", "Capital"),
                asked("base", "C", "Capital"),
                asked("alias", "B", "Capital", subject_aliases=["A", "C"]),
            ],
            [A, C, B],
        ),
        (
            [
                COUNTRY,
                STATE,
                asked("alias", "Georgia", "Capital"),
                asked("noise", "Sakartvelo", "Capital", subject_aliases=COUNTRY[1].subject_aliases),
                asked("noise", "georgia (State)", "Capital", subject_aliases=["Georgia"]),
            ],
            [
                f"Georgia{which} | Capital"
                for which in (" (country)", " (state)", "", "", " (state)")
            ],
        ),
        # Punctuation is compared if the keys of the audit are equal.
        (
            [
                *LANGUAGES,
                asked("alias", "c++", "capital"),
                asked("noise", "c", "capital"),
                asked("alias", "Clang", "Capital", subject_aliases=["C#"]),
                asked("noise", "C!", "Capital"),
            ],
            [
                C,
                "C++ | Capital",
                "C# | Capital",
                "C++ | Capital",
                C,
                "C# | Capital",
                "C! | Capital",
            ],
        ),
        # The name in `base_fact` and that of a fact of topology base are compared alike.
        (
            [
                asked("base", "france", "capital"),
                asked("alias", "Gaul", "Seat", base_fact=A),
                asked("noise", "X", "Y", base_fact="France | Capital"),
                asked("base", "a", "capital"),
            ],
            ["France | Capital", A, "France | Capital", A],
        ),
    ],
)
def test_base_facts_do_not_depend_on_the_order_and_are_never_joined(prompts, found):
    for order in permutations(range(len(prompts))):
        facts = base_facts([prompts[place] for place in order])
        assert [fact.name for fact in facts] == [found[place] for place in order]
        known = {name for name in found if name not in (B, "Georgia | Capital", "C! | Capital")}
        is_base = any(topology == "base" for topology, _ in prompts)
        assert [fact.is_linked for fact in facts] == [
            is_base and one.name in known for one in facts
        ]


def test_published_files_are_linked_by_names_and_the_others_are_counted(data_files):
    folder = data_files / "lmlm_audit" / "data" / "custom_databases" / "countries"
    prompts = [
        (one.label.topology, prompt) for one in find_conditions(folder) for prompt in one.prompts
    ]

    found = pd.DataFrame(base_facts(prompts)).assign(topology=[topology for topology, _ in prompts])

    by_topology = found.groupby("topology")["name"]
    assert by_topology.nunique().to_dict() == {
        **{"base": 100, "alias": 100, "noise": 180, "collision": 140}
    }
    unlinked = found[~found["is_linked"]].groupby("topology")["name"].nunique()
    assert unlinked.to_dict() == {"noise": 80, "collision": 40}
    assert by_topology.get_group("alias").value_counts().eq(2 * 6).all()


@pytest.fixture
def world():
    """Forty facts with one answer each in four topologies; four of them leak in all."""
    return make_outcomes(
        [
            {"database": f"countries/{topology}", "fact": fact, "second_correct": fact < 4}
            for topology in TOPOLOGIES
            for fact in range(40)
        ]
    )


def test_topologies_of_the_same_facts_do_not_narrow_intervals(world):
    """An exact copy adds nothing; fact-topology pairs would make the interval half as wide."""
    tables = audit_tables(world)
    one = audit_tables(world[world["topology"] == "base"])["overall"].iloc[0]
    four, pairs = tables["overall"].iloc[0], audit_tables(world, cluster="item")["overall"].iloc[0]

    assert (one["n_clusters"], four["n_clusters"], pairs["n_clusters"]) == (40, 40, 160)
    for name in ("leakage", "leakage_low", "leakage_high", "p_value", "detectable_difference"):
        assert four[name] == pytest.approx(one[name]), name
    width, narrow = (row["leakage_high"] - row["leakage_low"] for row in (four, pairs))
    assert narrow < 0.6 * width
    for name in ("states", "attribution", "by_style"):
        assert tables[name]["n_clusters"].eq(40).all()


def test_contrasts_between_topologies_are_paired_by_base_fact(world):
    """A fact that leaks in both topologies does not change the difference."""
    is_changed = world["item"] == "countries/noise/0"
    frame = world.assign(second_correct=world["second_correct"].mask(is_changed, False))
    options = {"between": "topology", "rate": "second_accuracy"}

    tables = [contrasts_by(frame, cluster=name, **options) for name in ("base_fact", "item")]

    paired, apart = (table.query("a == 'noise' or b == 'noise'").iloc[0] for table in tables)
    assert abs(paired["difference"]) == abs(apart["difference"]) == pytest.approx(1 / 40)
    widths = [row["difference_high"] - row["difference_low"] for row in (paired, apart)]
    assert widths[0] < 0.6 * widths[1]


@pytest.mark.parametrize(
    ("changes", "counted"),
    [({}, "4 of 40 facts"), ({"base_fact": None}, "16 of 160 fact-topology pairs")],
)
def test_the_page_counts_facts_and_names_fact_topology_pairs(audit_run, world, changes, counted):
    """A run without recorded base facts is clustered by fact and topology."""
    frame = world.assign(first_correct=world["second_correct"], **changes)
    settings = ReportSettings(resamples=50, answers=0)

    page = build_page([audit_run(frame)], study=AuditStudy(), settings=settings)[0]

    shown = " ".join(sentence_text(check.text) for check in page.checks)
    assert ("did not record base facts" in shown) is bool(changes)
    assert f"The 16 surviving answers are on {counted}" in sentence_text(page.finding.summary)
    assert ("160 prompts, 40 facts" in sentence_text(page.finding.sentence)) is not bool(changes)


def test_results_of_a_topology_without_base_facts_are_scored_with_a_warning(tmp_path):
    files = {}
    for topology, subject in (("noise", "France"), ("collision", "Germany")):
        row = {"fact_id": 3, "subject": subject, "relation": "Capital", "ground_truth": "Paris"}
        row |= {"state": "DEL-ON", "prompt": "?", "model_output": "Paris"}
        files[f"countries/{topology}/cloze"] = tmp_path / f"{topology}.jsonl"
        files[f"countries/{topology}/cloze"].write_text(json.dumps(row), "utf-8")

    with pytest.warns(DataWarning, match=r"2 of 2 facts of the databases are without a known base"):
        outcomes = score_published_results(files)["outcomes"]

    assert outcomes["base_fact"].tolist() == ["France | Capital", "Germany | Capital"]
