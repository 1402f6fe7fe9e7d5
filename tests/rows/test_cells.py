import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from surface_consistency.rows.cells import (
    ParsedCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
)
from tests.refusals import refusals


@pytest.mark.parametrize("read", [text_of, identifier_of, count_of])
@pytest.mark.parametrize("value", [None, "", "  \t", math.nan, np.float64("nan")])
def test_empty_cells_are_none(read, value):
    """Null, NaN and blank are the same nothing."""
    assert read(value) is None


@pytest.mark.parametrize("value", [None, "", " ", math.nan, [], "[]", [None, ""]])
def test_empty_lists_are_empty(value):
    """A list of nothing is no list item."""
    assert strings_of(value) == ()


@pytest.mark.parametrize("name", ["NA", "null", "None", "nan", "N/A", " padded ", "[Unreleased]"])
def test_text_of_keeps_names_as_they_are(name):
    """Names that readers take for nothing are names; 1984 may stand without quotes."""
    assert text_of(name) == name
    assert strings_of(name) == (name,)
    assert text_of(1984) == "1984"


@pytest.mark.parametrize("value", [17, 17.0, "17", " 17 ", np.int64(17), np.float64(17)])
def test_identifier_of_is_one_for_all_writings(value):
    """Integers, whole floats and strings name the same thing."""
    assert identifier_of(value) == "17"
    assert count_of(value) == 17


# A cell of the wrong kind is refused, not turned into text.
test_cells_reject_other_values = refusals(
    lambda read, value: read(value),
    *((text_of, ["a"], "expected text"), (text_of, 1.5, "expected text")),
    *((text_of, True, "expected text"), (identifier_of, 1.5, "expected text")),
    (count_of, "many", "expected a whole number"),
    (count_of, -1, "expected a whole number of at least 0"),
    (strings_of, [["nested"]], "expected text"),
    (strings_of, {"a": 1}, "expected text"),
)


@pytest.mark.parametrize(
    "value",
    [
        ["UK", "U.K."],
        ("UK", "U.K."),
        np.array(["UK", "U.K."], dtype=object),
        '["UK", "U.K."]',
        "['UK', 'U.K.']",
        ["UK", None, "U.K."],
    ],
)
def test_strings_of_is_one_for_all_writings(value):
    """A list is the same as JSON, as Python's text of it and as an array."""
    assert strings_of(value) == ("UK", "U.K.")


@given(st.lists(st.text(min_size=1).filter(str.strip)))
def test_strings_of_agrees_with_json(items):
    """Any list of names survives as a JSON string, as in PopQA."""
    assert strings_of(json.dumps(items)) == strings_of(items) == tuple(items)


@given(st.lists(st.text()))
def test_answers_of_agrees_with_trimmed_strings(items):
    """Accepted answers are the names of the list, trimmed and never blank."""
    assert answers_of(json.dumps(items)) == tuple(item.strip() for item in items if item.strip())


@given(
    st.lists(
        st.none() | st.text("aU1[\"]\ud800 ") | st.integers(-1, 2) | st.sampled_from([1.0, True])
        | st.lists(st.none() | st.text("ab "), max_size=2) | st.just([["a"]])
    ),
    st.sampled_from([answers_of, count_of, identifier_of, strings_of, text_of]),
)  # fmt: skip
def test_cells_of_a_column_are_those_read_one_by_one(cells, read):
    def values(cells):
        try:
            return [(value, type(value)) for value in cells()]
        except ValueError as error:
            return str(error)

    columns = ParsedCells(read)

    for part in (cells[:2], cells[2:]):
        assert values(lambda part=part: columns.of(part)) == values(
            lambda part=part: map(read, part)
        )
