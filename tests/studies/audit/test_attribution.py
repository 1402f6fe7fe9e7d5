"""Attribution of answers with planted traces and known origins."""

import pytest

from surface_consistency.schemas import AuditPrompt, Candidate, RetrievalTrace, Triplet
from surface_consistency.studies.audit.attribution import attribute

NAMES = {"subject": "United States", "relation": "Capital", "gold_object": "Washington, D.C."}
NAMES |= {"subject_aliases": ("USA",), "object_aliases": ("Washington DC",)}
TEXT = "What is the capital of the United States?"
FACT = AuditPrompt(prompt_id=0, fact_id=0, prompt_text=TEXT, **NAMES)
STATES_IT = ("USA", "Capital", "Washington DC", (True, True, True))
DECOY = ("Government of United States", "Seat", "Washington, D.C.", (False, False, True))
NEIGHBOUR = ("United States", "Largest City", "New York", (True, False, False))
STRANGER = ("France", "Capital", "Paris", (False, True, False))


def candidate(entry, score=0.9):
    *texts, flags = entry
    roles = ("subject", "relation", "object")
    parts = dict(zip(roles, texts, strict=True))
    parts |= {f"matches_{role}": flag for role, flag in zip(roles, flags, strict=True)}
    supports = all(flags)
    return Candidate(
        score=score, supports_target_fact=supports, matches_deleted_fact=False, **parts
    )


def trace(*entries, selected=0, threshold=0.6):
    """A trace of candidates in order, of which one answered."""
    retained = tuple(candidate(entry, 0.9 - 0.1 * place) for place, entry in enumerate(entries))
    chosen = retained[selected] if retained and selected is not None else None
    found = {"retained_candidates": retained, "selected_candidate": chosen}
    found |= {"selected_value": None if chosen is None else chosen.object, "lookup_query": None}
    return RetrievalTrace(state="DEL-ON", retrieval_enabled=True, threshold=threshold, **found)


@pytest.mark.parametrize(
    ("traces", "kind", "entry"),
    [
        # The rule of the deletion itself; a wider closure is tested below.
        ([trace(STATES_IT, DECOY)], "surviving_equivalent", STATES_IT),
        ([trace(DECOY)], "same_object", DECOY),
        ([trace(NEIGHBOUR, DECOY)], "same_subject", NEIGHBOUR),
        ([trace(STRANGER)], "unrelated", STRANGER),
        # The nearest origin over all lookups.
        ([trace(STRANGER), trace(NEIGHBOUR), trace(DECOY)], "same_object", DECOY),
        # An entry that was ranked but not returned is not an origin.
        ([], "no_candidate", None),
        ([trace()], "no_candidate", None),
        ([trace(DECOY, selected=None)], "no_candidate", None),
    ],
)
def test_attribute_finds_the_origin_and_its_entry(traces, kind, entry):
    expected = kind, entry and Triplet(*entry[:3])

    assert attribute(FACT, "Washington, D.C.", traces) == expected


def test_attribute_finds_a_surviving_equivalent_by_a_wider_closure():
    """The deletion rule does not match the entries that remain; the verified closure does."""
    entry = Triplet(*DECOY[:3])

    found = attribute(FACT, "Washington, D.C.", [trace(DECOY)], surviving=[entry])

    assert found == ("surviving_equivalent", entry)


def test_attribute_finds_an_echo_of_the_prompt():
    """Only whole words count; entries that contain the object have precedence."""
    prompt = FACT.model_copy(update={"prompt_text": "Washington, D.C. or New York?"})

    assert attribute(prompt, "Washington, D.C.", []) == ("echo", None)
    assert attribute(prompt, "Washington, D.C.", [trace(NEIGHBOUR)])[0] == "echo"
    assert attribute(prompt, "Washington, D.C.", [trace(DECOY)])[0] == "same_object"
    assert attribute(prompt, "Wash", [])[0] == "no_candidate"


def test_attribute_uses_all_facts_before_a_prompt():
    """Runners that put several facts before a prompt return all accepted facts."""
    looked_up = trace(NEIGHBOUR, STRANGER, DECOY, threshold=0.65)
    below = trace(NEIGHBOUR, STRANGER, DECOY, threshold=0.75)

    kinds = [attribute(FACT, "Washington, D.C.", [looked_up], n_facts=n)[0] for n in (1, 2, 3)]

    assert kinds == ["same_subject", "same_subject", "same_object"]
    assert attribute(FACT, "Washington", [below], n_facts=3)[0] == "same_subject"


def test_attribute_compares_by_the_equivalence_of_the_scoring():
    """Under the published key ".us" and "US" are one value, under the default they are two."""
    fact = FACT.model_copy(update={"gold_object": ".us", "object_aliases": ()})
    code = ("Estados Unidos", "ISO Code", "US", (False, False, True))

    assert attribute(fact, ".us", [trace(code)])[0] == "unrelated"
    assert attribute(fact, ".us", [trace(code)], equivalence="published")[0] == "same_object"
