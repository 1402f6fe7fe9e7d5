from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.matching import TokenF1Rule
from surface_consistency.text import normalize

WORDS = st.lists(
    st.sampled_from(["a", "The", "new", "New", "york", "city", "é", "x-y", "!"]), max_size=6
).map(" ".join)


def squad_f1(prediction, answer):
    """Precision and recall over bags of words, as in SQuAD's evaluate script."""

    def words(text):
        kept = [w for w in normalize(text).split() if w not in {"a", "an", "the"}]
        return kept or normalize(text).split()

    common = sum((Counter(words(prediction)) & Counter(words(answer))).values())
    if common == 0:
        return 0.0
    precision = common / len(words(prediction))
    recall = common / len(words(answer))
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("prediction", "answer", "score"),
    [
        ("George Bush", "George W. Bush", 0.8),
        ("George Washington", "George W. Bush", 0.4),
        ("the United States", "United States", 1.0),
        ("Paris, Texas", "Texas Paris", 1.0),
        ("Paris Paris", "Paris", 2 / 3),
        ("Duran", "Duran Duran", 2 / 3),
        ("Duran Duran", "Duran Duran", 1.0),
        ("The The", "The The", 1.0),
        ("The", "The The", 2 / 3),
        ("the band", "The The", 0.0),
        ("東京", "東京都", 0.8),
        ("Tirana", "Iran", 0.0),
        ("a", "Washington, D.C.", 0.0),
        ("", "Paris", 0.0),
        ("!!!", "!!!", 1.0),
    ],
)
def test_match_token_f1_is_the_overlap_of_words(prediction, answer, score):
    """F1 counts common words without articles, order aside."""
    found = TokenF1Rule()(prediction, [answer])

    assert found.score == pytest.approx(score, abs=1e-15)
    assert found.is_match is (score >= 0.8)


@settings(max_examples=500, deadline=None)
@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=5))
def test_match_token_f1_agrees_with_precision_and_recall(prediction, answers):
    """The score is the highest F1 over the answers."""
    expected = max(squad_f1(prediction, answer) for answer in answers)

    assert TokenF1Rule()(prediction, answers).score == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(WORDS.filter(str.strip), WORDS.filter(str.strip))
def test_match_token_f1_is_symmetric(first, second):
    """Prediction and answer play the same part."""
    assert TokenF1Rule()(first, [second]).score == TokenF1Rule()(second, [first]).score


def test_match_token_f1_is_naming_the_best_answer():
    """The best answer is named, the first among equals."""
    answers = ["George Bush senior", "George W. Bush", "W. Bush George"]

    assert TokenF1Rule()("George W Bush", answers).answer == "George W. Bush"


@pytest.mark.parametrize(("threshold", "is_match"), [(0.4, True), (0.41, False), (1.0, False)])
def test_match_token_f1_is_a_match_from_the_threshold_on(threshold, is_match):
    """The threshold decides, the score stays."""
    found = TokenF1Rule(threshold=threshold)("George Washington", ["George W. Bush"])

    assert found.is_match is is_match
    assert found.score == 0.4


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_match_token_f1_rejects_useless_thresholds(threshold):
    """A threshold lies above 0 and not above 1."""
    with pytest.raises(ValueError, match=r"`threshold` must be in \(0, 1\], got"):
        TokenF1Rule(threshold=threshold)("x", ["x"])
