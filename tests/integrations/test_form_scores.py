"""Rates over forms from the scores of a tool."""

import pytest

from surface_consistency.errors import DataError
from surface_consistency.integrations.form_scores import form_rates

GOOD = [("x", "a", "x", True), ("x", "b", "x", False), ("y", "a", "y", True), ("y", "b", "y", True)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            (1, "a", "x", True),
            r"item is text in some scores \('x'\) and an integer in others \(1\)",
        ),
        (
            ("z", 1, "z", True),
            r"form is text in some scores \('b'\) and an integer in others \(1\)",
        ),
        (("z", "a", 1, True), r"cluster is text in some scores \('x'\) and an integer in others"),
        ((None, "a", "x", True), "item None is neither text nor an integer"),
        (("z", float("nan"), "z", True), "form nan is neither text nor an integer"),
        (("z", True, "z", True), "form True is neither text nor an integer"),
        ((["z"], "a", "z", True), r"item \['z'\] is neither text nor an integer"),
        (
            ("y", "b", "y", False),
            "item 'y' has 2 scores in form 'b'; an item has one score per form",
        ),
        (("z", "a", "z", 0.5), r"0\.5"),
        (("x", "c", "y", True), "more than one cluster"),
    ],
)
def test_ambiguous_and_repeated_scores_are_rejected(changed, message):
    with pytest.raises(ValueError, match=message):
        form_rates([*GOOD[1:], changed])


def test_an_empty_list_of_scores_is_rejected():
    with pytest.raises(DataError, match="no scores are given; pass at least one item"):
        form_rates([])


def test_items_in_one_form_are_counted_and_excluded():
    some, none = form_rates([*GOOD, ("z", "a", "z", False)]), form_rates(GOOD[::2])

    assert (some["n_items"], some["n_single"], some["consistency"]) == (2, 1, 0.5)
    assert (none["n_items"], none["n_single"]) == (0, 2)
    assert none["consistency"] != none["consistency"]
