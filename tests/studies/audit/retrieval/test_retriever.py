"""The published key of entries and lookups; threshold and fallback."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from surface_consistency.schemas import Candidate
from surface_consistency.studies.audit.retrieval.retriever import lookup_key, select_candidate


@pytest.mark.parametrize(
    ("entity", "relation", "key"),
    [
        ("New_York", "Capital Of", "new york capital of"),
        # Stripped after underscores became spaces, as the published retriever does.
        ("_Chad_", " ISO code\n", "chad iso code"),
        ("İstanbul", "ÜLKE", "i̇stanbul ülke"),
        ("", "", " "),
        ("東京", "国", "東京 国"),
    ],
)
def test_lookup_key_agrees_with_the_published_rule(entity, relation, key):
    assert lookup_key(entity, relation) == key


def candidate(score):
    flags = ("matches_subject", "matches_relation", "matches_object", "supports_target_fact")
    flags = dict.fromkeys((*flags, "matches_deleted_fact"), False)
    return Candidate(subject="s", relation="r", object="v", score=score, **flags)


@pytest.mark.parametrize(
    ("scores", "threshold", "fallback", "selected", "is_fallback"),
    [
        ([0.9, 0.7], 0.6, "abstain", 0.9, False),
        ([0.6], 0.6, "abstain", 0.6, False),
        ([0.59], 0.6, "abstain", None, False),
        ([0.59, 0.1], 0.6, "top1_anyway", 0.59, True),
        ([0.61, 0.1], 0.6, "top1_anyway", 0.61, False),
        ([-0.2], None, "abstain", -0.2, False),
        ([-0.2], -1.0, "top1_anyway", -0.2, False),
        ([], None, "top1_anyway", None, False),
        ([], 0.6, "abstain", None, False),
    ],
)
def test_select_candidate_applies_the_threshold_then_the_fallback(
    scores, threshold, fallback, selected, is_fallback
):
    chosen, is_chosen_below = select_candidate(
        [candidate(score) for score in scores], threshold=threshold, fallback=fallback
    )

    assert (chosen.score if chosen else None) == selected
    assert is_chosen_below == is_fallback


@given(st.lists(st.floats(-1, 1), max_size=5), st.floats(-1, 1), st.floats(0, 1))
def test_a_higher_threshold_never_accepts_more_lookups(scores, threshold, more):
    """A lower threshold accepts the same candidate."""
    retained = [candidate(score) for score in sorted(scores, reverse=True)]

    lax, _ = select_candidate(retained, threshold=threshold)
    strict, _ = select_candidate(retained, threshold=threshold + more)

    assert strict in (None, lax)


def test_select_candidate_rejects_invalid_policies():
    with pytest.raises(ValueError, match="fallback must be one of abstain, top1_anyway; got 'x'"):
        select_candidate([], threshold=0.5, fallback="x")
    with pytest.raises(ValueError, match="threshold must be a number or None; got NaN"):
        select_candidate([], threshold=float("nan"))


def test_a_score_in_single_precision_meets_its_threshold():
    """Retrievers round to single precision, where 0.7 and 0.9 are a little less."""
    for percent in range(0, 101, 5):
        score = np.float32(percent / 100)
        below = float(np.nextafter(score, np.float32(-1)))

        assert select_candidate([candidate(float(score))], threshold=percent / 100)[0]
        assert not select_candidate([candidate(below)], threshold=percent / 100)[0]
    for beyond in (1e300, float("inf")):
        assert select_candidate([candidate(1.0)], threshold=beyond)[0] is None
