import pytest

from surface_consistency.matching import ExactRule
from surface_consistency.text import normalize


@pytest.mark.parametrize(
    ("prediction", "is_match"),
    [
        ("London", True),
        (" London\n", True),
        ("London.", False),
        ("london", False),
        ("London, England", False),
        ("", False),
    ],
)
def test_match_exact_is_equality_without_outer_space(prediction, is_match):
    """Nothing but surrounding white space is forgiven."""
    assert ExactRule()(prediction, ["Londres", "London "]).is_match is is_match


def test_match_exact_is_naming_the_first_equal_answer():
    """Of equal answers the first is named, as it was given."""
    found = ExactRule(normalize=normalize)("usa", ["U.S.A.", "USA", "usa"])

    assert found.answer == "USA"


def test_match_exact_is_open_to_a_normaliser():
    """Normalising both sides first forgives case and punctuation."""
    assert ExactRule(normalize=normalize)("LONDON.", ["London"]).is_match
    assert ExactRule(normalize=normalize)("...", ["..."]).is_match
    assert not ExactRule(normalize=normalize)("?", ["..."]).is_match
