"""Lookups in texts: real and malformed outputs of a limited-memory model."""

import json

import pytest
from hypothesis import given, strategies as st

from surface_consistency.studies.audit.matching.markup import (
    LOOKUP_TOKENS,
    parse_lookups,
    strip_lookups,
)

LOOKUP = "<|db_entity|> USA<|db_relationship|> Capital<|db_return|> Washington, D.C.<|db_end|>"
PARTS = st.lists(
    st.sampled_from((*LOOKUP_TOKENS, " USA", "Capital ", "[dblookup('A', 'B') -> C]", "\n", "]")),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def example(data_files):
    path = data_files / "lmlm" / "examples_LMLM-llama2-382M.json"
    return json.loads(path.read_text("utf-8"))["factscore_0"]


def test_real_lookups_are_read_and_stripped(example):
    lookups = parse_lookups(example["output_raw"])
    visible = strip_lookups(example["output_raw"])

    assert len(lookups) == example["output_raw"].count("<|db_entity|>") == 9
    assert all(lookup.is_closed and lookup.entity == "Ko Itakura" for lookup in lookups)
    assert (lookups[3].relation, lookups[3].value) == ("Birth Date", "January 27, 1997")
    dropped = strip_lookups(example["output_raw"], values="drop")
    assert dropped.strip() == example["output_text"]
    assert "He was born in Yokohama on January 27, 1997 27th January 1997." in visible
    assert "is from Japanese and his mother is from Japanese." in visible


def test_parse_lookups_reads_a_real_unclosed_lookup(example):
    *closed, last = parse_lookups(example["reference"])

    assert all(lookup.is_closed for lookup in closed)
    assert (last.relation, last.value, last.is_closed) == ("Senior Squad Selection", "", False)
    assert strip_lookups(example["reference"]).endswith("he was se- lected for the")


@pytest.mark.parametrize(
    ("text", "once", "dropped"),
    [
        ("no lookup", "no lookup", "no lookup"),
        (f"It is {LOOKUP}.", "It is Washington, D.C..", "It is."),
        (f"{LOOKUP} Washington, D.C.", " Washington, D.C.", " Washington, D.C."),
        (f"{LOOKUP} washington d.c", " washington d.c", " washington d.c"),
        (f"{LOOKUP}{LOOKUP}", "Washington, D.C. Washington, D.C.", ""),
        ("a <|db_entity|> USA", "a", "a"),
        ("a <|db_entity|> USA<|db_relationship|> Capital<|db_return|> Rome", "a Rome", "a"),
        ("a <|db_return|> Rome<|db_end|> b", "a Rome b", "a b"),
        ("a<|db_end|> b", "a b", "a b"),
        ("It is [dblookup('USA', 'Capital') -> Rome].", "It is Rome.", "It is."),
        ("It is [dblookup('USA', 'Cap", "It is", "It is"),
        ("", "", ""),
    ],
    ids=range(12),
)
def test_strip_lookups_replaces_lookups_by_their_values_or_drops_them(text, once, dropped):
    assert strip_lookups(text) == once
    assert strip_lookups(text, values="drop") == dropped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A nested lookup asks for its innermost query.
        ("{e} A {e} B{r} R{v} V{x}", [("B", "R", "V", True)]),
        # A lookup that begins within a value ends the one before it.
        ("{e} A{r} R{v} V {e} B{r} S{v} W{x}", [("A", "R", "V", False), ("B", "S", "W", True)]),
        ("{e}{r}{v}{x}", [("", "", "", True)]),
        ("{r} R{v} V{x}", [("", "R", "V", True)]),
        ("{e} A{r} R{r} S{v} V{x}", [("A", "R S", "V", True)]),
        ("[dblookup('A', 'Father\\'s Origin') -> B]", [("A", "Father\\'s Origin", "B", True)]),
        ('[dblookup("A", "B") ->C]', [("A", "B", "C", True)]),
        (f"x {LOOKUP} y", [("USA", "Capital", "Washington, D.C.", True)]),
    ],
    ids=["nested", "within", "empty", "no_entity", "two_relations", "legacy", "quotes", "plain"],
)
def test_parse_lookups_reads_malformed_and_nested_lookups(text, expected):
    found = parse_lookups(text.format(**dict(zip("ervx", LOOKUP_TOKENS, strict=True))))

    assert [(one.entity, one.relation, one.value, one.is_closed) for one in found] == expected


@given(PARTS)
def test_lookups_are_ordered_and_disjoint_and_leave_no_tokens(text):
    found = parse_lookups(text)

    ends = [0, *(one.end for one in found)]
    assert all(one.start >= end for one, end in zip(found, ends, strict=False))
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert not any(token in strip_lookups(text) for token in LOOKUP_TOKENS)


REST = " It is Rome. [dblookup('C', 'D') -> E]."
AFTER = [("", "", None, True), ("C", "D", "E", False)]


@pytest.mark.parametrize(
    ("text", "expected", "visible"),
    [
        # The text ends with the arrow, after which a store would insert the value.
        ("[dblookup('Hexol', 'Colour') ->", [("Hexol", "Colour", None, False)], ""),
        ("[dblookup('A', 'B') -> on\nSee [1].", [("A", "B", None, False)], " on\nSee [1]."),
        (f"[dblookup('A, 'B') ->{REST}", AFTER, " It is Rome. E."),
        (f"[dblookup('A' 'B') -> V]{REST}", AFTER, " It is Rome. E."),
        ("One [dblookup two\nthree", [("", "", None, True)], "One\nthree"),
    ],
    ids=["arrow", "prose", "quote", "comma", "line"],
)
def test_malformed_legacy_lookups_are_removed_and_other_text_is_kept(text, expected, visible):
    found = parse_lookups(text)

    assert [(one.entity, one.relation, one.value, one.is_malformed) for one in found] == expected
    assert strip_lookups(text) == visible
