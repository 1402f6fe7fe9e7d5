"""Extraction of answers by the default and the published cleaner."""

import pytest

from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.studies.audit.matching.cleaners import (
    audit_answer,
    published_answer,
    published_clean,
    says_unknown,
)
from surface_consistency.studies.audit.matching.judgement import audit_key, judge_answer

SETTINGS = (
    "{}",
    " {}.",
    "{}. It is the capital.",
    "Answer: The answer is {}.\nQuestion: Who",
    '"{}"',
    "<|db_entity|> A<|db_relationship|> B<|db_return|> {}<|db_end|>.",
    "It is <|db_entity|> A<|db_relationship|> B<|db_return|> {}<|db_end|> {}, of course.",
    "[dblookup('A', 'B') -> {}]",
)


def lookup(value):
    return Lookup(query=LookupQuery(entity="A", relation="B"), value=value)


def test_default_cleaner_keeps_every_gold_answer(audit_prompts):
    assert len(audit_prompts) == 12_228
    golds = {
        gold for _, prompt in audit_prompts for gold in (prompt.gold_object, *prompt.object_aliases)
    }

    lost = [
        (setting, gold)
        for gold in sorted(golds)
        for setting in SETTINGS
        if audit_key(audit_answer(setting.replace("{}", gold))) != audit_key(gold)
    ]

    assert lost == []


def test_default_cleaner_keeps_fifteen_gold_answers_that_the_published_one_cuts(audit_prompts):
    """Counted by (database, fact), of all styles: all of them "George W. Bush" or his father."""
    rules = {"cleaner": "published", "equivalence": "published"}
    assert all(judge_answer(prompt.gold_object, prompt).correct for _, prompt in audit_prompts)

    lost = {
        (database, prompt.fact_id, prompt.gold_object)
        for database, prompt in audit_prompts
        if not judge_answer(prompt.gold_object, prompt, **rules).correct
    }

    assert len(lost) == 15
    assert {gold for _, _, gold in lost} == {"George W. Bush", "George H. W. Bush"}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *((same, same) for same in ("George W. Bush", "U.S. Dollar", ".us", "8.5–12 mm", "Italy")),
        ("It is George W. Bush. He was born in New Haven.", "George W. Bush"),
        ("Washington, D.C. It is the capital.", "Washington, D.C."),
        ("Martin Luther King Jr. was born here.", "Martin Luther King Jr. was born here"),
        *(("St. Louis. The city", "St. Louis"), ("... .us", ".us"), ("1946.", "1946")),
        *(("answer: Answer: Paris", "Paris"), ("It's Paris!", "Paris!"), ("<b>Paris</b>", "Paris")),
        *(("&lt;/poem&gt; R&amp;B", "R&B"), ("\n\nParis\nQuestion: What", "Paris")),
        *(("‘Paris’,", "Paris"), ("", ""), (" \n", "")),
    ],
    ids=range(19),
)
def test_audit_answer_is_the_first_sentence(text, answer):
    assert audit_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        # Without a value of the store, the text after the lookup is the answer.
        *(("{unknown} Paris.", "Paris"), ("{unknown}.", "unknown"), ("{}.", ""), ("{NA}", "NA")),
        *(("{unknown}. {unknown}.", "unknown"), ("It is {Paris} Rome.", "Paris")),
        ("{unknown}. {Washington, D.C.}.", "Washington, D.C."),
        # The answer is before the lookup.
        ("Rome, not {Paris}.", "Rome, not Paris"),
        ("<|db_entity|> A<|db_relationship|> B<|db_return|> Paris", "Paris"),
        ("<|db_entity|> A<|db_relationship|> B<|db_return|>", ""),
        ("<|db_entity|> A<|db_relationship|> B", ""),
    ],
    ids=range(11),
)
def test_audit_answer_is_the_value_of_the_lookup(text, answer):
    opening, ending = "<|db_entity|> A<|db_relationship|> B<|db_return|> ", "<|db_end|>"

    assert audit_answer(text.replace("{", opening).replace("}", ending)) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        # tests/test_run_audit.py of the published code, class TestCleanAnswer and before it.
        (
            "&lt;/poem&gt; <|db_entity|>A<|db_relationship|>B<|db_return|>C<|db_end|> Biography",
            "Biography",
        ),
        ('"<|db_entity|> Spice Girls <|db_return|>"', "Spice Girls"),
        *(("Answer: Answer: Paris", "Paris"), ("The answer is Paris", "Paris")),
        *(("It's Paris", "Paris"), ("Paris\nQuestion: What is the capital?", "Paris")),
        *(("Paris\nContext: France is a country.", "Paris"), ("<b>Paris</b>", "Paris")),
        *(("Paris\n\nSome extra text", "Paris"), ("Hello <|db_return|> World", "Hello World")),
        *(("Paris. It is the capital of France.", "Paris"), ("New    York", "New York")),
        *((",Paris;", "Paris"), ('Answer: The answer is "Paris"\nQuestion: What city?', "Paris")),
        *(("Paris! It is wonderful.", "Paris!"), ("Paris? Yes, Paris.", "Paris?")),
        # A "<" without ">" does not match a later token.
        ("x < y <|db_return|> z", "x < y z"),
        ("5 &lt; 6 <|db_entity|> Peru", "5 < 6 Peru"),
        ("<|db_entity|> A <b <|db_return|> Lima", "A <b Lima"),
        # Known errors of the published cleaner.
        ("George W. Bush", "George W"),
        (".us", "us"),
    ],
    ids=range(21),
)
def test_published_clean_agrees_with_published_tests(text, answer):
    assert published_clean(text) == answer


@pytest.mark.parametrize(
    ("prompt_text", "text", "lookups", "answer"),
    [
        ("What is it?", "{Paris} Berlin", (), "Paris"),
        ("It is ____", "Berlin {Paris}", (), "Paris"),
        ("Tell me:", "{Paris} Berlin", (), "Berlin"),
        ("Tell me:", "{Paris}", (), "Paris"),
        ("Tell me:", "", (), ""),
        # If the store returned a value, the first one is the answer in every style.
        ("Tell me:", "{Paris} Berlin", (lookup("Paris"),), "Paris"),
        ("Tell me:", "{unknown} Berlin", (lookup(None),), "unknown"),
        # Without markup the lookups were in the prompt, and the text is the answer.
        ("Tell me:", "Berlin", (lookup("Paris"),), "Berlin"),
    ],
    ids=range(8),
)
def test_published_answer_agrees_with_the_published_code(prompt_text, text, lookups, answer):
    opening, ending = "<|db_entity|> A<|db_relationship|> B<|db_return|> ", "<|db_end|>"
    raw = text.replace("{", opening).replace("}", ending)

    assert published_answer(raw, prompt_text=prompt_text, lookups=lookups) == answer


def test_says_unknown_agrees_with_published_list():
    unknown = ("", "unknown", "UNKNOWN", "n/a", "NA", "None", "No Answer", "I don't know")
    known = ("Spice Girls", "42", "no", "maybe", ".no")

    assert all(map(says_unknown, (*unknown, "I don’t know.")))
    assert not any(map(says_unknown, known))
