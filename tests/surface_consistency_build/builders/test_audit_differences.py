"""Two versions of an audit's facts, and what is told of each difference."""

from collections import Counter

import pytest
from surface_consistency_build.builders.audit_databases.fact_tables import load_fact_table
from surface_consistency_build.builders.audit_databases.topologies import build_topology

from scripts.audit_differences.differences import compare_databases
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit.files import read_audit_prompts
from tests.made_data import published  # noqa: F401 - fixtures


def fact(subject, relation, gold, *, subjects=(), relations=(), objects=()):
    """A target."""
    return AuditPrompt(
        prompt_id=0,
        fact_id=0,
        subject=subject,
        relation=relation,
        gold_object=gold,
        prompt_text="?",
        subject_aliases=subjects,
        relation_aliases=relations,
        object_aliases=objects,
    )


def compare(published, name):
    """Differences from a published database."""
    domain, topology = name.split("/")
    theirs = read_audit_prompts(published[name][1] / "prompts_direct_questions.jsonl")
    return compare_databases(build_topology(load_fact_table(domain), topology).targets, theirs)


def test_overwritten_relations_of_the_published_politicians_are_found(published):
    """Twenty facts lost the aliases of their relation to another domain's map."""
    found = [
        item
        for item in compare(published, "politicians/alias")
        if item.reason.startswith("overwritten")
    ]

    assert {item.fact.relation for item in found} == {"Country Represented"}
    assert {item.other for item in found} == {("Country", "Associated Country")}
    assert len(found) == 20


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("sports/base", {"echo": 9, "over-merged": 15, "repeated": 7, "names added": 9}),
        ("countries/base", {"over-merged": 5, "echo": 1, "names added": 2}),
    ],
)
def test_reasons_of_the_published_aliases_are_found(published, name, reasons):
    found = Counter(item.reason.split(":")[0] for item in compare(published, name))

    assert found == reasons


def test_triplets_of_one_version_are_listed_with_their_reasons():
    ours, other = fact("a", "r", "o"), fact("a", "r", "p")

    assert compare_databases([ours], [fact("a", "r", "o")]) == []
    lost, added = compare_databases(
        [ours], [other], reasons={Triplet("a", "r", "p"): "p is not so"}
    )

    assert (lost.ours, lost.other, lost.reason) == ((), ("a", "r", "p"), "p is not so")
    assert (added.ours, added.other) == (("a", "r", "o"), ())


def test_echo_and_over_merged_names_are_told_apart():
    ours = [fact("Messi", "Nickname", "Leo"), fact("Brady", "Sport", "gridiron")]
    other = [
        fact("Messi", "Nickname", "Leo", objects=("Messi",)),
        fact("Brady", "Sport", "gridiron", objects=("football",)),
        fact("Pelé", "Sport", "football"),
    ]

    found = {
        item.fact.subject: item.reason.split(":")[0] for item in compare_databases(ours, other)
    }

    assert found == {"Pelé": "left out", "Messi": "echo", "Brady": "over-merged"}


def test_reasons_of_the_published_triplets_are_found(published):
    """The ISO code CA stands for Canada in five facts, in one of them as its own answer."""
    found = [item for item in compare(published, "countries/alias") if item.kind == "triplet"]

    assert {item.fact.subject for item in found if not item.ours} == {"CA"}
    assert Counter(item.reason.split(":")[0] for item in found) == {
        "over-merged": 4,
        "echo": 1,
        "in the place of one that is left out": 5,
    }
