"""Scores of answers: the published columns, and the default that corrects their faults."""

import pytest
from hypothesis import given, strategies as st

from surface_consistency.schemas.memory import AuditPrompt, Lookup, LookupQuery
from surface_consistency.studies.audit.matching.judgement import (
    EQUIVALENCES,
    audit_key,
    judge_answer,
    token_overlap,
)
from surface_consistency.text import token_key

TEXTS = st.text("aAbB .,'-$1é<|>\n", max_size=20)


def prompt(gold, *aliases):
    fact = {"subject": "S", "relation": "R", "gold_object": gold, "object_aliases": aliases}
    return AuditPrompt(prompt_id=0, fact_id=0, prompt_text="What?", **fact)


def published(text, target):
    return judge_answer(text, target, cleaner="published", equivalence="published")


@pytest.mark.parametrize(
    ("text", "gold", "aliases", "expected"),
    [
        # tests/test_metrics.py of the published code: exact, contains, unknown, P, R, F1.
        ("Richard Mthetwa", "Richard Mthetwa", (), (1, 1, 0, 1, 1, 1)),
        ("Jorgensen", "Jørgensen", ("Jorgensen",), (1, 1, 0, 1, 1, 1)),
        (
            "Sanskrit scholars, poets, musicians",
            "family of musicians",
            (),
            (0, 0, 0, 0.25, 1 / 3, 2 / 7),
        ),
        ("unknown", "Paris", (), (0, 0, 1, 0, 0, 0)),
        ("", "Paris", (), (0, 0, 1, 0, 0, 0)),
        ("the Spice Girls band", "Spice Girls", (), (0, 1, 0, 0.5, 1, 2 / 3)),
        ("Girls", "Spice Girls", (), (0, 1, 0, 1, 0.5, 2 / 3)),
        ("cat cat", "cat", (), (0, 1, 0, 0.5, 1, 2 / 3)),
        ("Spice Girls!", "Spice Girls", (), (1, 1, 0, 1, 1, 1)),
        # An alias changes the label but not the overlap.
        ("big Holland", "Netherlands", ("Holland",), (0, 1, 0, 0, 0, 0)),
    ],
    ids=range(10),
)
def test_judge_answer_agrees_with_published_metrics(text, gold, aliases, expected):
    found = published(text, prompt(gold, *aliases))

    numbers = (found.correct, found.contains, found.is_unknown, found.precision, found.recall)
    assert (*numbers, found.f1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "gold", "as_published", "by_default"),
    [
        ("a", "Washington, D.C.", "contains", None),
        ("Girls", "Spice Girls", "contains", None),
        ("Rome", "Jerome", "contains", None),
        (".us", "US", "correct", None),
        ("-5", "5", "correct", None),
        ("C", "C++", "correct", None),
        ("the Spice Girls band", "Spice Girls", "contains", "contains"),
        ("George W. Bush", "George W. Bush", "contains", "correct"),
        ("ＷＡＳＨＩＮＧＴＯＮ d.c.", "Washington, D.C.", None, "correct"),
        ("New  York", "new york", "correct", "correct"),
    ],
    ids=range(10),
)
def test_default_corrects_the_published_equivalence(text, gold, as_published, by_default):
    target = prompt(gold)

    for found, expected in (
        (published(text, target), as_published),
        (judge_answer(text, target), by_default),
    ):
        assert found.correct == (expected == "correct")
        assert found.contains == (expected is not None)


def test_default_uses_the_best_of_gold_and_aliases_and_correct_answers_are_not_unknown():
    found = judge_answer("big Holland", prompt("Netherlands", "Holland"))

    assert (found.precision, found.recall, found.contains) == (0.5, 1.0, True)
    assert not judge_answer("NA", prompt("NA")).is_unknown
    assert published("NA", prompt("NA")).is_unknown
    assert judge_answer("NA", prompt("Namibia")).is_unknown


def test_judge_answer_passes_lookups_to_the_cleaner():
    """The published cleaner uses the value of the store instead of the text after it."""
    query = LookupQuery(entity="France", relation="Capital")
    text = "<|db_entity|> France<|db_relationship|> Capital<|db_return|> Lyon<|db_end|> Paris."
    target = prompt("Paris").model_copy(update={"prompt_text": "The capital of France is"})
    rules = {"cleaner": "published", "equivalence": "published"}

    looked_up = judge_answer(text, target, lookups=[Lookup(query=query, value="Lyon")], **rules)
    written = judge_answer(text, target, **rules)

    assert (looked_up.answer, looked_up.correct) == ("Lyon", False)
    assert (written.answer, written.correct) == ("Paris", True)


def test_judge_answer_calls_functions_without_lookups_if_there_are_none():
    seen = []

    def clean(text, target, lookups):
        seen.append(tuple(lookups))
        return text.split("|")[1]

    for lookups in (None, ()):
        found = judge_answer("x|Paris", prompt("Paris"), lookups=lookups, cleaner=clean)
        assert (found.answer, found.correct) == ("Paris", True)
    assert seen == [(), ()]


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("Paris", {"cleaner": "x"}, ValueError, "`cleaner` must be one of audit, published; got"),
        ("Paris", {"equivalence": "x"}, ValueError, "`equivalence` must be one of audit, publi"),
        (None, {}, TypeError, "`text` must be a string, got NoneType; omit"),
    ],
)
def test_judge_answer_rejects_invalid_arguments(text, options, error, message):
    with pytest.raises(error, match=message):
        judge_answer(text, prompt("Paris"), **options)


@given(TEXTS, TEXTS.filter(str.strip), TEXTS)
def test_judge_answer_is_consistent_and_one_more_alias_never_loses_a_match(text, gold, alias):
    for name in EQUIVALENCES:
        found = judge_answer(text, prompt(gold), cleaner=name, equivalence=name)
        assert 0.0 <= min(found.precision, found.recall) <= found.f1 <= 1.0
        assert found.f1 <= max(found.precision, found.recall)
        assert found.contains or not found.correct
        assert not found.correct or found.precision == found.recall == found.f1 == 1.0
    few, more = judge_answer(text, prompt(gold)), judge_answer(text, prompt(gold, alias))
    assert more.correct >= few.correct
    assert more.contains >= few.contains
    assert more.f1 >= few.f1


@given(TEXTS)
def test_audit_key_is_finer_than_the_published_key(text):
    assert token_key(audit_key(text)) == token_key(text)
    assert audit_key(audit_key(text)) == audit_key(text)


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_token_overlap_agrees_with_removing_words(words, wanted):
    left, n_shared = list(wanted), 0
    for word in words:
        if word in left:
            left.remove(word)
            n_shared += 1

    precision, recall, f1 = token_overlap(" ".join(words), " ".join(wanted))

    if words and wanted:
        assert (precision, recall) == (n_shared / len(words), n_shared / len(wanted))
    else:
        assert f1 == float(words == wanted)
