import json
import math
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.rows.cells import (
    ParsedCells,
    answers_of,
    count_of,
    identifier_of,
    strings_of,
    text_of,
    unsplit_references,
)
from tests.refusals import refusals


@pytest.mark.parametrize("read", [text_of, identifier_of, count_of])
@pytest.mark.parametrize("value", [None, "", "  \t", math.nan, np.float64("nan")])
def test_empty_cells_are_read_as_none(read, value):
    """Null, NaN and blank cells are all missing values."""
    assert read(value) is None


@pytest.mark.parametrize("value", [None, "", " ", math.nan, [], "[]", [None, ""]])
def test_strings_of_drops_empty_items(value):
    """Empty cells and items are not names."""
    assert strings_of(value) == ()


@pytest.mark.parametrize("name", ["NA", "null", "None", "nan", "N/A", " padded ", "[Unreleased]"])
def test_text_of_returns_names_unchanged(name):
    """Words that CSV readers parse as missing are names; 1984 does not need quotes."""
    assert text_of(name) == name
    assert strings_of(name) == (name,)
    assert text_of(1984) == "1984"


@pytest.mark.parametrize("value", [17, 17.0, "17", " 17 ", np.int64(17), np.float64(17)])
def test_identifier_of_does_not_depend_on_the_type(value):
    """Integers, integral floats and strings are the same identifier."""
    assert identifier_of(value) == "17"
    assert count_of(value) == 17


# A cell of another kind is rejected, not converted to text.
test_cells_reject_other_values = refusals(
    lambda read, value: read(value),
    *((text_of, ["a"], "expected text"), (text_of, 1.5, "expected text")),
    *((text_of, True, "expected text"), (identifier_of, 1.5, "expected text")),
    (count_of, "many", "expected an integer of at least 0"),
    (count_of, -1, "expected an integer of at least 0"),
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
def test_strings_of_does_not_depend_on_the_format(value):
    """A list, its JSON, its Python text and an array give the same names."""
    assert strings_of(value) == ("UK", "U.K.")


ARRAY = np.array(["UK", "U.K."], dtype=object)
OBJECTS = {
    "squad": {"text": ["UK", "U.K."], "answer_start": [3, 3]},
    "squad-original": [{"text": "UK", "answer_start": 3}, {"text": "U.K.", "answer_start": 3}],
    "squad-arrow": {"text": ARRAY, "answer_start": np.array([3, 3], dtype=np.int32)},
    "trivia-qa": {
        "value": "UK",
        "aliases": ["UK", "U.K."],
        "normalized_value": "uk",
        "normalized_aliases": ["uk", "u k"],
        "matched_wiki_entity_name": "",
        "normalized_matched_wiki_entity_name": "",
        "type": "WikipediaEntity",
    },
    "trivia-qa-original": {"Aliases": ["U.K."], "NormalizedAliases": ["u k"], "Value": "UK"},
    "mkqa": [{"type": "entity", "entity": "Q145", "text": "UK", "aliases": ["U.K."]}],
    "mkqa-arrow": np.array([{"text": "UK", "aliases": np.array(["U.K."], dtype=object)}]),
    "natural-questions": {"short_answers": [{"start_token": [1], "text": ["UK", "U.K."]}]},
    "kilt": [{"answer": "UK", "provenance": []}, {"answer": "U.K."}, {"answer": None}],
    "nested": [["UK"], ["U.K."]],
    "nested-arrays": np.array([np.array(["UK"]), np.array(["U.K."])], dtype=object),
    "array": ARRAY,
    "array-scalars": [*np.array(["UK", "U.K."])],
    "tuple": ("UK", "U.K."),
    "bytes": [b"UK", b"U.K."],
    "padded": [" UK", "", None, "U.K. "],
    "deque": deque(["UK", "U.K."]),
    "ordered": OrderedDict(text=["UK", "U.K."]),
    "ordered-3.11": OrderedDict([("value", "UK"), ("aliases", ("U.K.",))]),
    "keys": {"UK": 1, "U.K.": 2}.keys(),
    "index": pd.Index(["UK", "U.K."], name="answer"),
}
"""Accepted answers in the formats of published data sets."""


@pytest.mark.parametrize("name", OBJECTS)
def test_answers_of_published_data_sets_are_read_as_values_and_as_text(name):
    """CSV files and lm-evaluation-harness contain their `str` and `repr`."""
    value = OBJECTS[name]

    read = {tuple(dict.fromkeys(answers_of(one))) for one in (value, str(value), repr(value))}

    assert read == {("UK", "U.K.")}


@pytest.mark.parametrize("name", ["squad", "mkqa", "nested", "natural-questions"])
def test_answers_of_json_text_of_objects_are_read(name):
    assert answers_of(json.dumps(OBJECTS[name])) == ("UK", "U.K.")
    assert answers_of(json.dumps(json.dumps(OBJECTS[name]))) == ("UK", "U.K.")


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ({"UK", "U.K."}, ("U.K.", "UK")),
        ("frozenset({'UK', 'U.K.'})", ("U.K.", "UK")),
        (str(np.array([f"a{n} b" for n in range(30)])), tuple(f"a{n} b" for n in range(30))),
        ("""['Rock' "Children's" 'A "B"']""", ("Rock", "Children's", 'A "B"')),
        ('"Paris"', ("Paris",)),
        ("'Paris'", ("Paris",)),
        ("[1984 1985]", ("1984", "1985")),
        ("['Paris', nan]", ("Paris",)),
        ({"text": [], "answer_start": []}, ()),
        ([{"type": "unanswerable", "text": None, "aliases": []}], ()),
        ("()", ()),
        ("[np.int64(5) np.float64(1.5) np.str_('a')]", ("5", "1.5", "a")),
        ("[ 1. -2.5 3.e-01]", ("1", "-2.5", "0.3")),
        ("[b'a' None True]", ("a", "True")),
        ("frozenset({1984, 1985})", ("1984", "1985")),
        ("np.int64(5)", ("5",)),
        ("tensor([5, 6], device='cuda:0')", ("5", "6")),
        ("dict_values([['UK'], ['U.K.']])", ("UK", "U.K.")),
        (1984.0, ("1984",)),
        (3.5, ("3.5",)),
        (True, ("True",)),
        (Decimal("5.00"), ("5",)),
        (Decimal("5.25"), ("5.25",)),
        ("Decimal('5')", ("5",)),
        (b"Paris", ("Paris",)),
        ("b'Paris'", ("Paris",)),
        ("u'Paris'", ("Paris",)),
        (pd.NA, ()),
    ],
)
def test_answers_of_other_formats(value, answers):
    assert answers_of(value) == answers


@pytest.mark.parametrize(
    "name",
    [
        *("[Unreleased]", "[What's Up]", "(What's the Story) Morning Glory?", "(1984)", "(1, 2)"),
        *('"Weird Al" Yankovic', "'Allo 'Allo!", "{Untitled", "a|b", "Paris; France", "AC/DC"),
        *("f(x)", "Au(III)", "C(1)", "Boeing 747 (1969)", "(1990)", "[Ar] 3d5", "[0, 1)", "(0, 1)"),
        *("[1] [2]", "[1 - 2]", "('Til) I Kissed You", "print('UK')", "b'ark", "dtype: text"),
        *("Text('UK')", "GetWeather(city='x')", "Matrix([[1, 2], [3, 4]])", "Vector([1, 2])"),
    ],
)
def test_names_with_brackets_quotes_and_separators_are_one_answer(name):
    assert answers_of(name) == (name,)


@pytest.mark.parametrize(
    "value",
    [
        *({"label": ["A"], "text": ["UK"]}, {"number": "5", "spans": []}, '{"UK": 1}', "{UK}", {}),
        *("[UK, U.K.]", "['UK' ... 'U.K.']", "['O''Brien']", [{"a": 1}], {"text": {"a": 1}}),
        *(
            "['UK', 'U.K.', ...",
            '["UK", "U.K',
            "{'text': ['UK', 'U",
            "('UK', 'U",
            "array(['UK', 'U",
        ),
        *("[1 2 ... 9]", "datetime.date(1990, 5, 1)", "{1, 2}"),
        *(
            str(pd.Series(["UK", "U.K."])),
            "<list_iterator object at 0x7f46be563340>",
            "[<object object at 0x7f46bef1f2f0>]",
        ),
        *(repr(defaultdict(list, {"text": ["UK"]})), repr(pd.array(["UK"], dtype="string"))),
    ],
)
def test_answers_of_rejects_unreadable_lists_and_objects(value):
    with pytest.raises(ValueError, match=r"expected .*list"):
        answers_of(value)


@pytest.mark.parametrize("end", ["", "\\", "'"])
def test_unclosed_quotes_are_read_in_linear_time(end):
    """A search for the end of each quote would take minutes."""
    text = "['" + "\\'" * 300_000 + end

    with pytest.raises(ValueError, match="write a list as JSON"):
        answers_of(text)


def test_remedy_for_a_rejected_name_works():
    assert answers_of(json.dumps(["[UK, U.K.]"])) == ("[UK, U.K.]",)


def test_answers_are_split_only_by_the_separator():
    assert answers_of("UK | U.K.|", "|") == ("UK", "U.K.")
    assert answers_of(["UK|U.K."], "|") == ("UK|U.K.",)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1))
def test_answers_of_agrees_with_texts_of_numpy_and_python(items):
    """NumPy writes no commas, wraps lines, and quotes as Python does."""
    expected = tuple(map(str.strip, items))

    assert answers_of(repr(items)) == answers_of(repr(tuple(items))) == expected
    assert answers_of(str(np.array(items, dtype=object))) == expected


@given(st.lists(st.text(min_size=1).filter(str.strip)))
def test_strings_of_agrees_with_json(items):
    """Any list of names can be read from its JSON text, as in PopQA."""
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
def test_parsed_cells_equal_cells_read_one_by_one(cells, read):
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


@pytest.mark.parametrize(
    ("text", "mark"),
    [("a;b", ";"), ("a; b", ";"), ("a ; b", ";"), ("a\nb", "\n"), ("a \r\n b", "\n")],
)
def test_separator_in_references_is_reported_and_can_be_passed(text, mark):
    (sentence,) = unsplit_references([(text,), ("a",)])

    assert sentence.startswith(f"1 of 2 rows have one reference that contains {mark!r}, such as")
    assert answers_of(text, mark) == ("a", "b")


@pytest.mark.parametrize("text", ["[0, 1]", "[0 1]", "[0. 1.]"])
def test_numbers_of_a_list_written_as_text_are_reported_and_the_remedy_works(text):
    (sentence,) = unsplit_references([answers_of(text), answers_of([0, 1]), answers_of("5")])

    assert sentence.startswith("1 of 3 rows have a text that was read as a list of numbers, such")
    remedy = sentence.rpartition("in JSON, ")[2]
    assert remedy == '["[0, 1]"]'
    assert answers_of(remedy) == ("[0, 1]",)
    assert not list(unsplit_references([answers_of(remedy)]))
