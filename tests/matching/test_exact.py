import pytest

from surface_consistency.matching import match_exact
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
    assert match_exact(prediction, ["Londres", "London "]).is_match is is_match


def test_match_exact_is_naming_the_first_equal_answer():
    """Of equal answers the first is named, as it was given."""
    found = match_exact("usa", ["U.S.A.", "USA", "usa"], normalize=normalize)

    assert found.answer == "USA"


def test_match_exact_is_open_to_a_normaliser():
    """Normalising both sides first forgives case and punctuation."""
    assert match_exact("LONDON.", ["London"], normalize=normalize).is_match
    assert match_exact("...", ["..."], normalize=normalize).is_match
    assert not match_exact("?", ["..."], normalize=normalize).is_match
