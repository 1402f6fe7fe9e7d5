"""Parsing of the replies of judges."""

import json

import pytest
from hypothesis import given, strategies as st

from surface_consistency.matching.judge_reply import (
    JudgeReplyError,
    parse_states,
    parse_verdict,
    parse_verdicts,
)
from tests.refusals import refusals


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        *(("1", True), ("0", False), (" 1 \n", True), ("```\n0\n```", False)),
        ("<think>is it 0? no</think>\n\n1", True),
    ],
)
def test_replies_of_one_or_zero_are_parsed(reply, verdict):
    assert parse_verdict(reply) is verdict


BAD = ["", "yes", "1.", "Score: 1", "10", "[1]", "I cannot judge.", "１", "<think>1", "-1", "1\n0"]
test_replies_other_than_one_or_zero_are_rejected = refusals(
    parse_verdict, *((reply, "expected 1 or 0") for reply in BAD), error=JudgeReplyError
)


@given(
    st.lists(st.booleans(), min_size=1, max_size=8), st.sampled_from(["[{}]", "{}", " [ {} ]\n"])
)
def test_lists_of_verdicts_are_parsed_with_and_without_brackets(verdicts, form):
    reply = form.format(", ".join(str(int(verdict)) for verdict in verdicts))

    assert parse_verdicts(reply, len(verdicts)) == tuple(verdicts)


test_invalid_lists_of_verdicts_are_rejected = refusals(
    lambda reply: parse_verdicts(reply, 5),
    ("[1, 0, 1, 1]", "expected 5 numbers, got 4"),
    ("1,0,1,1,0,1", "expected 5 numbers, got 6"),
    *(("10110", "each 1 or 0"), ("1 0 1 1 0", "each 1 or 0"), ("[1, 0, 2, 1, 0]", "each 1 or 0")),
    ("[1, 0, 0.5, 1, 0]", "each 1 or 0"),
    ("[true, false, true, true, false]", "each 1 or 0"),
    ("1. 1\n2. 0\n3. 1\n4. 1\n5. 0", "each 1 or 0"),
    ("The answer covers all five: [1, 1, 1, 1, 1]", "each 1 or 0"),
    *(
        ("申し訳ありませんが、判定できません。", "each 1 or 0"),
        ("", "got nothing"),
        ("[" * 500, r"\.\.\.'"),
    ),
    error=JudgeReplyError,
)


@given(st.lists(st.sampled_from(["right", "wrong", "absent"]), min_size=1, max_size=6))
def test_lists_of_states_are_parsed_in_any_case(states):
    assert parse_states(json.dumps(states), len(states)) == tuple(states)
    assert parse_states(json.dumps([s.title() for s in states]), len(states)) == tuple(states)


test_invalid_lists_of_states_are_rejected = refusals(
    lambda reply: parse_states(reply, 2),
    *(('["right"]', "expected 2 words, got 1"), ('["right", "maybe"]', 'each "right"')),
    *(('["right", null]', 'each "right"'), ('{"1": "right"}', 'each "right"')),
    *(("right, wrong", 'each "right"'), ("[" * 100_000, 'each "right"')),
    error=JudgeReplyError,
)
