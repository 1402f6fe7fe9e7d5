import re

import pytest
from hypothesis import assume, given, settings, strategies as st

from surface_consistency.matching import BoundaryRule
from surface_consistency.text import normalize, tokenize

# Without "İ": folded it is "i" and a mark, and `\w` sees a boundary before every mark.
LATIN = "abAB éßıﬁœ09 .,-–'’_&\n"
SPACED_SCRIPTS = st.text(alphabet=LATIN, max_size=12)
ANSWERS = st.lists(st.text(alphabet=LATIN, min_size=1, max_size=4), min_size=1, max_size=5)


def has_words(text):
    return any(map(str.isalnum, text))


def naive_boundary(prediction, answers):
    """A regular expression with word boundaries per answer, over normalised text."""
    for answer in answers:
        pattern = rf"(?<!\w){re.escape(normalize(answer))}(?!\w)"
        if re.search(pattern, normalize(prediction)):
            return answer
    return None


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("Tirana", "Iran", False),
        ("Iran", "Tirana", False),
        ("It's in Iran.", "iran", True),
        ("a", "Washington, D.C.", False),
        ("washington d c", "a", False),
        ("Washington DC", "Washington, D.C.", False),
        ("washington d c", "Washington, D.C.", True),
        ("George W. Bush", "George W. Bush", True),
        ("George W", "George W. Bush", False),
        ("letter-word", "letter–word", True),
        ("Alaka'i", "Alaka’i", True),
        ("Zurich", "Zürich", False),
        ("ZU\u0308RICH", "Zürich", True),
        ("final", "ﬁnal", True),
        ("Diyarbakir", "Diyarbakır", False),
        ("DİYARBAKIR", "Diyarbakır", False),
        ("İzmir", "i\u0307zmir", True),
        ("STRASSE", "Straße", True),
        ("the internet domain .us", "US", True),
        ("u.s.", "US", False),
        ("The band", "The", True),
        ("答えは東京都です", "東京都", True),
        ("テヘランはイランの首都", "イラン", True),
        ("イラン", "ラン", False),
        ("ｲﾗﾝ", "イラン", True),
        ("เมืองหลวงคือกรุงเทพ", "กรุงเทพ", True),
        ("서울은", "서울", False),
        ("서울 은", "서울", True),
        ("राजधानी दिल्ली है", "दिल्ली", True),
        ("राजधानी दिल्लीवाला", "दिल्ली", False),
    ],
)
def test_match_boundary_is_containment_of_whole_words(prediction, answer, is_match):
    """The answer's words stand in the prediction one after the other."""
    assert BoundaryRule()(prediction, [answer]).is_match is is_match


@pytest.mark.parametrize(
    ("prediction", "answers", "answer"),
    [
        ("The band is !!! (Chk Chk Chk)", ["!!!"], "!!!"),
        ("The band is !!! (Chk Chk Chk)", ["!!!", "Chk Chk Chk"], "!!!"),
        ("The band is !!! (Chk Chk Chk)", ["Chk Chk Chk", "!!!"], "Chk Chk Chk"),
        ("Wow!!!", ["!!!"], None),
        ("…", ["!!!"], None),
        ("÷", ["×", "÷"], "÷"),
        ("Divide", ["÷", "Divide"], "Divide"),
    ],
)
def test_match_boundary_is_looking_for_signs_between_spaces(prediction, answers, answer):
    """An answer without letter or number is looked for in the prediction as it stands."""
    assert BoundaryRule()(prediction, answers).answer == answer


@settings(max_examples=1_000, deadline=None)
@given(SPACED_SCRIPTS, ANSWERS)
def test_match_boundary_agrees_with_a_regular_expression(prediction, answers):
    """Padded containment is the search with word boundaries on each side."""
    assume(has_words(prediction) and all(map(has_words, answers)))

    assert BoundaryRule()(prediction, answers).answer == naive_boundary(prediction, answers)


@settings(max_examples=300, deadline=None)
@given(st.text(), st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4))
def test_match_boundary_agrees_with_lists_of_words(prediction, answers):
    """In any script the rule is: the answer's words are a slice of the prediction's."""
    assume(all(map(has_words, answers)))
    words = tokenize(normalize(prediction))

    def is_slice(part):
        return any(words[i : i + len(part)] == part for i in range(len(words)))

    expected = next((a for a in answers if is_slice(tokenize(normalize(a)))), None)

    assert BoundaryRule()(prediction, answers).answer == expected


def test_match_boundary_is_open_to_other_normalisers():
    """Without normalizer the words are what white space separates, in their own case."""
    assert BoundaryRule(normalize=None)("in Iran now", ["Iran"]).is_match
    assert not BoundaryRule(normalize=None)("in Iran.", ["Iran"]).is_match
    assert not BoundaryRule(normalize=None)("in iran now", ["Iran"]).is_match
    assert BoundaryRule(normalize=str.lower)("in iran now", ["Iran"]).is_match


def test_match_boundary_is_safe_with_a_normaliser_that_empties_answers():
    """An answer of which nothing is left is compared as it stands, not found everywhere."""

    def empty(text):
        return ""

    assert not BoundaryRule(normalize=empty)("", ["Paris"]).is_match
    assert not BoundaryRule(normalize=empty)("Rome", ["Paris"]).is_match
    assert BoundaryRule(normalize=empty)("Paris", ["Paris"]).is_match


@pytest.mark.parametrize(
    ("prediction", "answers", "answer"),
    [
        # https://github.com/EleutherAI/lm-evaluation-harness/pull/621
        ("not Mark Twain", ["Mark Twain"], None),
        ("It was not by Mark Twain.", ["Mark Twain"], None),
        ("It wasn't Mark Twain", ["Mark Twain"], None),
        ("It wasn’t Mark Twain", ["Mark Twain"], None),
        ("not Mark Twain", ["Mark Twain", "Twain"], None),
        ("not Twain but Samuel Clemens", ["Twain", "Samuel Clemens"], "Samuel Clemens"),
        ("not Twain. Mark Twain", ["Mark Twain"], "Mark Twain"),
        ("Mark Twain, not Poe", ["Mark Twain"], "Mark Twain"),
        ("No. Mark Twain", ["Mark Twain"], "Mark Twain"),
        ("Mark Twain", ["Mark Twain"], "Mark Twain"),
        ("Poe", ["Mark Twain"], None),
    ],
)
def test_match_boundary_rejects_denied_answers_on_demand(prediction, answers, answer):
    """With the guard an answer counts where no negation precedes it."""
    assert BoundaryRule(reject_negated=True)(prediction, answers).answer == answer


def test_match_boundary_is_blind_to_negation_by_default():
    """Without the guard every occurrence counts."""
    assert BoundaryRule()("not Mark Twain", ["Mark Twain"]).is_match


@settings(deadline=None)
@given(SPACED_SCRIPTS, ANSWERS)
def test_match_boundary_is_stricter_with_the_guard(prediction, answers):
    """The guard takes matches away and adds none."""
    assume(all(map(str.strip, answers)))
    guarded = BoundaryRule(reject_negated=True)(prediction, answers)

    assert BoundaryRule()(prediction, answers).is_match >= guarded.is_match
