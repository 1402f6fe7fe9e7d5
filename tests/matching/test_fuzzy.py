import pytest
from hypothesis import given, settings, strategies as st
from rapidfuzz import fuzz

from surface_consistency.matching import FuzzyRule
from surface_consistency.text import normalize

NAMES = st.text(alphabet="abcé ", min_size=1, max_size=12).filter(str.strip)


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("It was Chriz Metzen.", "Chris Metzen", True),
        ("Vilankulos Airport", "Vilankulo Airport", True),
        ("Tirana", "Iran", False),
        ("Russia", "US", False),
        ("a", "Washington, D.C.", False),
        ("George W", "George W. Bush", False),
        ("Pariz", "Paris", False),
        ("2003 Tour de France", "2004 Tour de France", True),
        ("", "Paris", False),
    ],
)
def test_match_fuzzy_is_containment_with_slips(prediction, answer, is_match):
    """A slip in a long name is forgiven; a piece of a word or of the answer is no match."""
    assert FuzzyRule()(prediction, [answer]).is_match is is_match


@settings(max_examples=500, deadline=None)
@given(NAMES, st.lists(NAMES, min_size=1, max_size=6), st.sampled_from(["partial_ratio", "ratio"]))
def test_match_fuzzy_agrees_with_rapidfuzz(prediction, answers, scorer):
    """The score is rapidfuzz's on the padded words; whole strings where the answer is longer."""

    def similarity(answer):
        p, a = f" {normalize(prediction)} ", f" {normalize(answer)} "
        part = scorer == "partial_ratio" and len(a) <= len(p)
        return (fuzz.partial_ratio if part else fuzz.ratio)(p, a)

    best = max(map(similarity, answers))
    expected = next(a for a in answers if similarity(a) == best) if best >= 60.0 else None

    found = FuzzyRule(scorer=scorer, score_cutoff=60.0)(prediction, answers)

    assert found.answer == expected
    assert found.score == pytest.approx(best / 100 if best >= 60.0 else 0.0, abs=1e-12)


def test_match_fuzzy_is_whole_comparison_with_ratio():
    """`ratio` does not look inside the prediction."""
    assert FuzzyRule()("the city of Paris", ["Paris"]).is_match
    assert not FuzzyRule(scorer="ratio")("the city of Paris", ["Paris"]).is_match


@pytest.mark.parametrize(("cutoff", "is_match"), [(85.0, True), (86.0, False)])
def test_match_fuzzy_is_a_match_from_the_cutoff_on(cutoff, is_match):
    """ " pariz " and " paris " share 12 of 14 characters: 85.7."""
    assert FuzzyRule(score_cutoff=cutoff)("Pariz", ["Paris"]).is_match is is_match


@pytest.mark.parametrize("cutoff", [0.0, -5.0, 101.0, float("nan")])
def test_match_fuzzy_rejects_useless_cutoffs(cutoff):
    """A cutoff lies above 0 and not above 100."""
    with pytest.raises(ValueError, match=r"`score_cutoff` must be in \(0, 100\], got"):
        FuzzyRule(score_cutoff=cutoff)("x", ["x"])


def test_match_fuzzy_rejects_unknown_scorers():
    """Two of rapidfuzz's scorers are known."""
    with pytest.raises(ValueError, match="`scorer` must be 'partial_ratio' or 'ratio', got 'wr"):
        FuzzyRule(scorer="wratio")("x", ["x"])
