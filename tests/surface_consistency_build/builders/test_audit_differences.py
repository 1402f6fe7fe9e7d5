"""Two versions of an audit's facts, and what is told of each difference."""

from scripts.audit_differences.differences import compare_databases
from surface_consistency.schemas import AuditPrompt, Triplet


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
