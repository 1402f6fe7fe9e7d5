import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.matching import PopqaRule
from surface_consistency.text import normalize

WORDS = st.text(alphabet="aAbB ßİıéǅ.", min_size=1, max_size=4).filter(str.strip)


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        # Mallen et al. (2023), run_model.py: `pa in pred or pa.lower() in pred
        # or pa.capitalize() in pred`.
        ("He was a politician.", "Politician", True),
        ("Politician", "politician", True),
        ("POLITICIAN", "politician", False),
        ("New york", "New York", True),
        ("NEW YORK", "New York", False),
        ("new York", "New York", False),
        ("Tirana", "Iran", True),
        ("Tirana", "IRAN", True),
        ("a", "Washington, D.C.", False),
        ("washington d c", "a", True),
        ("George W. Bush", "George W. Bush", True),
        ("George W", "George W. Bush", False),
        ("a .us address", "US", True),
        ("Zürich", "Zu\u0308rich", False),
    ],
)
def test_match_popqa_agrees_with_the_paper(prediction, answer, is_match):
    """Containment in three case variants, and nothing else."""
    assert PopqaRule()(prediction, [answer]).is_match is is_match


@settings(max_examples=500, deadline=None)
@given(
    prediction=st.text(alphabet="aAbB sSßİıi\u0307éǅ.", max_size=8),
    answers=st.lists(WORDS, min_size=1),
)
def test_match_popqa_agrees_with_its_formula(prediction, answers):
    """The first answer for which the published expression holds is the one named."""
    expected = next(
        (
            a
            for a in answers
            if a in prediction or a.lower() in prediction or a.capitalize() in prediction
        ),
        None,
    )

    assert PopqaRule()(prediction, answers).answer == expected


def test_match_popqa_is_open_to_a_normaliser():
    """Normalising both sides first is the caller's choice."""
    assert not PopqaRule()("ZÜRICH!", ["Zu\u0308rich"]).is_match
    assert PopqaRule(normalize=normalize)("ZÜRICH!", ["Zu\u0308rich"]).answer == "Zu\u0308rich"


def test_match_popqa_is_safe_with_a_normaliser_that_empties_answers():
    """An answer of which nothing is left is compared as it stands, not found everywhere."""
    assert not PopqaRule(normalize=lambda text: text.replace("The", ""))("Paris", ["The"]).is_match
