import json
import re
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from surface_consistency.metrics.forgetting.token_overlap import (
    AnswerOverlapResult,
    answer_overlap,
    answer_tokens,
    mean_overlap,
)

words = st.lists(
    st.sampled_from(["the", "spice", "girls", "of", "new-york", "69.7", "don't", "a"]), max_size=8
)
texts = st.text(max_size=30)


def naive(prediction, gold):
    """Cross tokens off one by one."""
    ours, theirs = prediction.split(), gold.split()
    left, common = list(theirs), 0
    for token in ours:
        if token in left:
            left.remove(token)
            common += 1
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return precision, recall, 2 * precision * recall / (precision + recall)


# The tests of the audit's own code (raeesiarya/LMLMAudit, tests/test_metrics.py and
# tests/test_equivalence.py, MIT).
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("Hello, WORLD!", ["hello", "world"]),
        ("Jørgensen", ["jørgensen"]),
        ("$69.7 million", ["69.7", "million"]),
        ("well-known", ["well-known"]),
        ("John's don't", ["john's", "don't"]),
        ("!@#$%^&*()", []),
        ("line1\nline2", ["line1", "line2"]),
        ("2pac", ["2pac"]),
        ("state-of-the-art", ["state-of-the-art"]),
        ("naïve café", ["naïve", "café"]),
        # Punctuation is dropped, so that an internet domain equals a country code.
        (".us", ["us"]),
        ("1,234.5", ["1", "234.5"]),
    ],
)
def test_answer_tokens_agree_with_the_audit(text, tokens):
    assert answer_tokens(text) == tokens


@pytest.mark.parametrize(
    ("prediction", "gold", "aliases", "expected"),
    [
        ("Richard Mthetwa", "Richard Mthetwa", [], (True, 1.0, 1.0, 1.0)),
        ("Jorgensen", "Jørgensen", ["Jorgensen"], (True, 1.0, 1.0, 1.0)),
        ("Spice Girls!", "Spice Girls", [], (True, 1.0, 1.0, 1.0)),
        ("New  York", "new york", [], (True, 1.0, 1.0, 1.0)),
        ("", "Paris", [], (False, 0.0, 0.0, 0.0)),
        ("!!!", "Paris", [], (False, 0.0, 0.0, 0.0)),
        ("cat", "dog", [], (False, 0.0, 0.0, 0.0)),
        (
            "Sanskrit scholars, poets, musicians",
            "family of musicians",
            [],
            (False, 0.25, 1 / 3, 2 / 7),
        ),
        ("Paris", "Paris France", [], (False, 1.0, 0.5, 2 / 3)),
        ("cat cat", "cat", [], (False, 0.5, 1.0, 2 / 3)),
        ("state-of-the-art", "state of the art", [], (False, 0.0, 0.0, 0.0)),
        # An alias counts for exact match alone; the overlap is with the gold object.
        ("Fab", "Beatles", ["Fab Four"], (False, 0.0, 0.0, 0.0)),
        ("UK", "", ["UK"], (True, 1.0, 1.0, 1.0)),
        ("Britain", "", ["UK"], (False, 0.0, 0.0, 0.0)),
    ],
)
def test_answer_overlap_agrees_with_the_audit(prediction, gold, aliases, expected):
    overlap = answer_overlap(prediction, gold, aliases=aliases)

    found = (overlap.is_exact, overlap.precision, overlap.recall, overlap.f1)
    assert found == pytest.approx(expected)


def test_every_gold_matches_itself(data_files):
    """All gold objects and aliases of the audit's thirteen databases are exact matches."""
    folder = data_files / "lmlm_audit" / "data"
    paths = sorted(folder.rglob("prompts_*.jsonl"))
    golds = set()
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            golds.add((row["gold_object"], tuple(row.get("object_aliases") or ())))

    assert len(paths) == 78
    assert len(golds) > 300
    for gold, aliases in golds:
        for name in (gold, *aliases):
            assert answer_overlap(name, gold, aliases=aliases).is_exact


@given(words, words.filter(bool))
def test_answer_overlap_agrees_with_a_naive_loop(prediction, gold):
    overlap = answer_overlap(" ".join(prediction), " ".join(gold))

    expected = naive(" ".join(prediction), " ".join(gold))
    assert (overlap.precision, overlap.recall, overlap.f1) == pytest.approx(expected)
    assert overlap.is_exact == (prediction == gold)


@given(texts, texts, st.lists(texts, max_size=3))
def test_answer_overlap_is_bounded(prediction, gold, aliases):
    if not any(map(answer_tokens, (gold, *aliases))):
        with pytest.raises(ValueError, match="nothing could match"):
            answer_overlap(prediction, gold, aliases=aliases)
        return

    overlap = answer_overlap(prediction, gold, aliases=aliases)

    assert 0 <= overlap.f1 <= 1
    assert min(overlap.precision, overlap.recall) - 1e-12 <= overlap.f1
    assert overlap.f1 <= max(overlap.precision, overlap.recall) + 1e-12
    assert not overlap.is_exact or overlap.f1 == 1


@given(words.filter(bool), words.filter(bool), st.randoms(use_true_random=False))
def test_overlap_is_free_of_word_order_and_exact_match_is_not(first, second, random):
    shuffled = random.sample(first, len(first))

    there = answer_overlap(" ".join(first), " ".join(second))
    moved = answer_overlap(" ".join(shuffled), " ".join(second))
    back = answer_overlap(" ".join(second), " ".join(first))

    assert moved.f1 == pytest.approx(there.f1)
    assert (back.precision, back.recall) == pytest.approx((there.recall, there.precision))
    assert there.is_exact == (first == second)
    assert not there.is_exact or Counter(first) == Counter(second)


@given(texts)
def test_answer_tokens_are_stable(text):
    """Cutting a cut text again changes nothing, so equal tokens are an equivalence."""
    tokens = answer_tokens(text)

    assert answer_tokens(" ".join(tokens)) == tokens
    assert all(re.fullmatch(r"\d+\.\d+|\w+(?:[-']\w+)*", token) for token in tokens)


@given(texts, texts.filter(answer_tokens), st.lists(texts, max_size=2), texts)
def test_one_more_alias_never_loses_a_match(prediction, gold, aliases, extra):
    before = answer_overlap(prediction, gold, aliases=aliases)
    after = answer_overlap(prediction, gold, aliases=[*aliases, extra])

    assert after.is_exact or not before.is_exact
    assert after.f1 >= before.f1


def test_mean_overlap_agrees_with_the_means_of_single_answers():
    predictions = ["Spice Girls", "1956", "Paris", ""]
    golds = ["Spice Girls", "Bihar, India", "Paris, France", "Rome"]

    means = mean_overlap(predictions, golds)

    # metrics_total of the audit's tests, and Paris against Paris, France.
    assert means.exact_match == 0.25
    assert means.precision == 0.5
    assert means.recall == 0.375
    assert means.f1 == pytest.approx((1 + 2 / 3) / 4)
    assert means.n == 4


def test_mean_overlap_takes_aliases():
    means = mean_overlap(["UK", "NL"], ["United Kingdom", "Rome"], aliases=[["UK"], []])

    assert (means.exact_match, means.f1) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a"], ["a", "b"]), ValueError, "equal lengths; got 1, 2 and 2"),
        (([], []), ValueError, "predictions is empty"),
        ((["a"], ["!!!"]), ValueError, "gold '!!!' and its aliases hold no letter or digit"),
        (("ab", ["a", "b"]), TypeError, "predictions must be a sequence of strings"),
        ((["a"], "b"), TypeError, "golds must be a sequence of strings"),
        ((["a"], [None]), TypeError, "text must be a string; got None"),
    ],
)
def test_mean_overlap_rejects_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        mean_overlap(*arguments)


def test_mean_overlap_rejects_aliases_of_another_length():
    with pytest.raises(ValueError, match="equal lengths; got 1, 1 and 2"):
        mean_overlap(["a"], ["a"], aliases=[[], []])


def test_answer_overlap_rejects_aliases_in_one_string():
    with pytest.raises(TypeError, match="aliases must be a sequence of strings, not one string"):
        answer_overlap("a", "b", aliases="abc")


def test_answer_overlap_is_a_plain_record():
    assert answer_overlap("a", "a") == AnswerOverlapResult(
        is_exact=True, precision=1.0, recall=1.0, f1=1.0
    )
