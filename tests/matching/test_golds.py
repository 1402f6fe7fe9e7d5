"""Properties of every rule, on real answers and on generated text."""

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.matching import RULES, match, match_columns
from surface_consistency.text import first_line

ANSWER = st.text(min_size=1, max_size=20).filter(str.strip)
NAMES = st.sampled_from(
    ["Paris", "paris", "Paris, France", "New York", "York", "Iran", "Tirana", "The The", "!!!"]
)

RULE = pytest.mark.parametrize("rule", list(RULES))


@RULE
def test_every_gold_answer_matches_itself_and_among_other_answers(gold_answers, rule):
    """The first line of a gold answer matches too."""
    assert len(gold_answers) > 300
    others = gold_answers[:60]

    lost = [gold for gold in gold_answers if match(gold, [gold], rule=rule).reference != gold]
    cut = [gold for gold in gold_answers if not match(first_line(gold), [gold], rule=rule).is_match]
    among = match_columns(gold_answers, [[*others, g, *others] for g in gold_answers], rule=rule)

    assert (lost, cut) == ([], [])
    assert all(among.is_match)
    assert set(among.score.tolist()) == {1.0}


@RULE
def test_sentences_with_a_gold_answer_match_under_containment_rules_only(gold_answers, rule):
    sentences = [f"I think it is {gold}, as far as I know." for gold in gold_answers]

    columns = match_columns(sentences, [[gold] for gold in gold_answers], rule=rule)

    if rule in ("popqa", "boundary", "fuzzy", "segmented"):
        assert all(columns.is_match)
    if rule == "exact":
        assert not any(columns.is_match)


@RULE
@settings(deadline=None)
@given(answer=ANSWER)
def test_every_text_matches_itself(rule, answer):
    found = match(answer, [answer], rule=rule)

    if rule == "squad_f1" and match(answer, ["the"], rule="squad_em").is_match:
        assert found.score == 0.0, "the normalized text is empty, for which SQuAD's script gives 0"
        return
    assert (found.is_match, found.reference, found.score) == (True, answer, 1.0)


@RULE
@settings(deadline=None)
@given(
    prediction=st.text() | NAMES, answers=st.lists(ANSWER | NAMES, min_size=1), more=ANSWER | NAMES
)
def test_matches_are_well_formed_and_another_answer_removes_none(rule, prediction, answers, more):
    before = match(prediction, answers, rule=rule)

    assert before.rule == rule
    assert 0.0 <= before.score <= 1.0
    assert before.reference in answers if before.is_match else before.reference is None
    for longer in ([*answers, more], [more, *answers]):
        after = match(prediction, longer, rule=rule)
        assert after.is_match >= before.is_match
        assert after.score >= before.score


@RULE
@pytest.mark.parametrize("prediction", ["", " ", "\n\t"])
def test_blank_predictions_do_not_match(rule, prediction):
    """squad_em matches a blank prediction only if the normalized answer is empty."""
    answers = ["Paris", "!!!", "The"] if rule != "squad_em" else ["Paris", "The The Band"]
    assert not match(prediction, answers, rule=rule).is_match
