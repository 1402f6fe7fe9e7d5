"""SQuAD's two scores, compared with its script and with torchmetrics."""

import re
import string
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.matching import match_columns
from surface_consistency.matching.squad import SquadEmRule, SquadF1Rule
from surface_consistency.matching.token_f1 import TokenF1Rule

WORDS = st.lists(
    st.sampled_from(["a", "The", "an", "U.S.A.", "USA", "x-y", "theatre", "!!!", "“new”", "é", "İ"])
    | st.text(max_size=4),
    max_size=6,
).map(" ".join)
ANSWERS = st.lists(WORDS.filter(str.strip), min_size=1, max_size=4)


def normalize_answer(s):
    """`normalize_answer` of evaluate-v1.1.py: its four steps in their order."""
    without_punctuation = "".join(ch for ch in s.lower() if ch not in set(string.punctuation))
    without_articles = re.sub(r"\b(a|an|the)\b", " ", without_punctuation)
    return " ".join(without_articles.split())


def f1_score(prediction, ground_truth, version):
    """`f1_score` of evaluate-v1.1.py, with the rule for empty texts of `compute_f1` of v2.0."""
    prediction_tokens = normalize_answer(prediction).split()
    ground_truth_tokens = normalize_answer(ground_truth).split()
    if version == "2.0" and (len(ground_truth_tokens) == 0 or len(prediction_tokens) == 0):
        return int(ground_truth_tokens == prediction_tokens)
    common = Counter(prediction_tokens) & Counter(ground_truth_tokens)
    num_same = sum(common.values())
    if num_same == 0:
        return 0
    precision = 1.0 * num_same / len(prediction_tokens)
    recall = 1.0 * num_same / len(ground_truth_tokens)
    return (2 * precision * recall) / (precision + recall)


@pytest.mark.parametrize(
    ("prediction", "answer", "f1", "em"),
    [
        ("U.S.A.", "USA", 1.0, True),
        ("the U.S.A.", "usa", 1.0, True),
        ("George Bush", "George W. Bush", 0.8, False),
        ("letter-word", "letter word", 0.0, False),
        *(("a-ha", "aha", 1.0, True), ("“Paris”", "Paris", 0.0, False)),
        *(("theatre", "atre", 0.0, False), ("", "Paris", 0.0, False)),
    ],
)
def test_squad_ignores_punctuation_and_articles(prediction, answer, f1, em):
    assert SquadF1Rule()(prediction, [answer]).score == f1
    assert SquadEmRule()(prediction, [answer]).is_match is em
    assert TokenF1Rule()("U.S.A.", ["USA"]).score == 0.0


@pytest.mark.parametrize("version", ["1.1", "2.0"])
@settings(max_examples=200, deadline=None)
@given(prediction=WORDS, answers=ANSWERS)
def test_squad_agrees_with_the_published_script(version, prediction, answers):
    """Both scores equal the maximum of the script over the answers, also in columns."""
    expected = max(f1_score(prediction, answer, version) for answer in answers)
    rule = SquadF1Rule(version=version)

    assert SquadF1Rule(version=version)(prediction, answers).score == expected
    assert match_columns([prediction], [answers], rule=rule).score.tolist() == [expected]
    is_equal = any(normalize_answer(prediction) == normalize_answer(answer) for answer in answers)
    assert SquadEmRule()(prediction, answers).is_match is is_equal
    assert match_columns([prediction], [answers], rule="squad_em").is_match == [is_equal]


def test_squad_agrees_with_torchmetrics():
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    pairs = [("the U.S.A.", ["USA", "x"]), ("George Bush", ["George W. Bush"]), ("Rome", ["Oslo"])]

    for prediction, answers in pairs:
        found = squad(
            [{"prediction_text": prediction, "id": "1"}],
            [{"answers": {"text": answers, "answer_start": [0] * len(answers)}, "id": "1"}],
        )

        f1 = SquadF1Rule(version="2.0")(prediction, answers).score
        assert 100 * f1 == pytest.approx(found["f1"].item(), abs=1e-4)
        assert 100 * SquadEmRule()(prediction, answers).score == found["exact_match"].item()


def test_squad_f1_of_texts_without_words_depends_on_the_version():
    assert SquadF1Rule()("the", ["a"]).score == 0.0
    assert SquadF1Rule(version="2.0")("the", ["a"]).score == 1.0
    assert SquadF1Rule(version="2.0")("the", ["cat"]).score == 0.0
    assert SquadEmRule()("the", ["a"]).is_match
    for options, message in (({"threshold": 0.0}, "got 0"), ({"version": "3"}, "'2.0', got '3'")):
        with pytest.raises(ValueError, match=message):
            SquadF1Rule(**options)
