"""Cases of each rule, comparisons with other implementations, options and invalid input."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from rapidfuzz import fuzz

from surface_consistency.matching import (
    RULES,
    BoundaryRule,
    ExactRule,
    Match,
    Rule,
    SegmentedRule,
    match,
    match_columns,
)
from surface_consistency.matching.boundary import first_affirmed
from surface_consistency.matching.fuzzy import FuzzyRule
from surface_consistency.matching.popqa import PopqaRule
from surface_consistency.matching.token_f1 import TokenF1Rule
from surface_consistency.text import normalize, tokenize
from tests.refusals import refusals

NORMAL = ExactRule(normalize=normalize)


def cut(text):
    """Split the particles 은, 는 and 입니다 from a word, and 東京 from its suffix."""
    return re.findall("은$|는$|입니다$|東京|.(?:(?!은$|는$|입니다$|東京).)*", text)


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("exact", ["L = L", " L\n = L"], ["L. = L", "l = L", "London, UK = London", " = London"]),
        (NORMAL, ["LONDON. = London", "... = ..."], ["? = ..."]),
        # Mallen et al. (2023), run_model.py: `pa in pred or pa.lower() in pred
        # or pa.capitalize() in pred`.
        (
            "popqa",
            [
                *("He was a politician. = Politician", "Politician = politician"),
                *("New york = New York", "Tirana = Iran", "Tirana = IRAN", "washington d c = a"),
                *("George W. Bush = George W. Bush", "a .us address = US"),
            ],
            [
                *("POLITICIAN = politician", "NEW YORK = New York", "new York = New York"),
                *("a = Washington, D.C.", "George W = George W. Bush", "Zürich = Zu\u0308rich"),
                "ZÜRICH! = Zu\u0308rich",
            ],
        ),
        (PopqaRule(normalize=normalize), ["ZÜRICH! = Zu\u0308rich"], []),
        # Text that normalises to an empty string is compared without normalisation.
        (PopqaRule(normalize=lambda text: text.replace("The", "")), [], ["Paris = The"]),
        (BoundaryRule(normalize=lambda text: ""), ["Paris = Paris"], [" = Paris", "Rome = Paris"]),
        (
            "boundary",
            [
                *("It's in Iran. = iran", "washington d c = Washington, D.C."),
                *("George W. Bush = George W. Bush", "letter-word = letter–word"),
                *("Alaka'i = Alaka’i", "ZU\u0308RICH = Zürich", "final = ﬁnal", "The band = The"),
                *("İzmir = i\u0307zmir", "STRASSE = Straße", "the internet domain .us = US"),
                *("答えは東京都です = 東京都", "テヘランはイランの首都 = イラン", "ｲﾗﾝ = イラン"),
                *("เมืองหลวงคือกรุงเทพ = กรุงเทพ", "서울 은 = 서울", "राजधानी दिल्ली है = दिल्ली"),
                "not Mark Twain = Mark Twain",
            ],
            [
                *("Tirana = Iran", "Iran = Tirana", "a = Washington, D.C.", "washington d c = a"),
                *("Washington DC = Washington, D.C.", "George W = George W. Bush", "u.s. = US"),
                *("Zurich = Zürich", "Diyarbakir = Diyarbakır", "DİYARBAKIR = Diyarbakır"),
                *("イラン = ラン", "서울은 = 서울", "राजधानी दिल्लीवाला = दिल्ली"),
            ],
        ),
        (BoundaryRule(normalize=None), ["in Iran now = Iran"], ["in Iran. = Iran", "iran = Iran"]),
        (BoundaryRule(normalize=str.lower), ["in iran now = Iran"], []),
        # https://github.com/EleutherAI/lm-evaluation-harness/pull/621
        (
            BoundaryRule(reject_negated=True),
            ["Mark Twain, not Poe = Mark Twain", "No. Mark Twain = Mark Twain"],
            [
                *("not Mark Twain = Mark Twain", "It was not by Mark Twain. = Mark Twain"),
                *("It wasn't Mark Twain = Mark Twain", "It wasn’t Mark Twain = Mark Twain"),
                "Poe = Mark Twain",
            ],
        ),
        (
            "segmented",
            [
                *("それは東京都です。 = 東京都", "彼は京都に住んでいます = 京都"),
                *("テヘランはイランの首都です = イラン", "中国的首都是北京 = 北京"),
                *("กรุงเทพมหานครเป็นเมืองหลวงของไทย = ไทย", "In 東京都, of course = 東京都"),
                "The U.S. Army = U.S.",
            ],
            [
                *("それは東京都です。 = 京都", "テヘランはイランの首都です = ラン"),
                *("中国的首都是北京市 = 北京", "他住在南京东路 = 京东", "ประเทศไทย = เทศ"),
                "It is Tirana. = Iran",
            ],
        ),
        # Without a library a word ends at a change of script.
        (
            SegmentedRule(segmenter="script"),
            [
                *("それは東京です = 東京", "タワーは東京タワーです = 東京タワー"),
                *("東京タワー = タワー", "2020年 = 2020"),
            ],
            [
                *("それは東京都です = 京都", "それは東京都です = 東京", "ไทยแลนด์ = ไทย"),
                *("서울은 수도 = 서울", "수도는 서울입니다 = 서울"),
            ],
        ),
        # A custom segmenter receives the text between two spaces.
        (
            SegmentedRule(segmenter=cut),
            ["서울은 수도 = 서울", "수도는 서울입니다 = 서울", "東京都に住む = 東京"],
            ["남서울은 = 서울", "東京都に住む = 京都"],
        ),
        # A typo in a long name matches; a part of a word or of the answer does not.
        (
            "fuzzy",
            [
                *("It was Chriz Metzen. = Chris Metzen", "the city of Paris = Paris"),
                *("Vilankulos Airport = Vilankulo Airport",),
                "2003 Tour de France = 2004 Tour de France",
            ],
            [
                *("Tirana = Iran", "Russia = US", "a = Washington, D.C.", "Pariz = Paris"),
                *("George W = George W. Bush", " = Paris"),
            ],
        ),
        (FuzzyRule(scorer="ratio"), [], ["the city of Paris = Paris"]),
        # " pariz " and " paris " share 12 of 14 characters: 85.7.
        (FuzzyRule(score_cutoff=85.0), ["Pariz = Paris"], []),
        (FuzzyRule(score_cutoff=86.0), [], ["Pariz = Paris"]),
    ],
)
def test_each_rule_accepts_and_rejects_the_listed_cases(rule, right, wrong):
    accepted = [case for case in right + wrong if match_one(rule, *case.split(" = ", 1)).is_match]

    assert accepted == right


def match_one(rule, prediction, answer):
    return match(prediction, [answer], rule=rule)


# Numbers are not split and symbols are parts of names: inspect_ai#4620, lighteval#1273, helm#4317,
# charabia#186, organicmaps#10745.
SYMBOLIC = [
    *(("C", "C++", False), ("It was written in C.", "C++", False), ("C#", "C++", False)),
    *(("F#", "F", False), ("1.5 million", "5", False), ("10,000 people", "10", False)),
    *(("at 7:30", "30", False), ("-5", "5", False), ("5", "-5", False), ("net", ".NET", False)),
    *(("1,000", "1000", True), ("ACDC", "AC/DC", True), ("محمـد", "محمد", True)),
    *(("١٩٩٨", "1998", True), ("C++.", "c++", True), ("−5", "-5", True), ("A+", "A", True)),
]


@pytest.mark.parametrize("rule", ["boundary", "token_f1", "segmented"])
def test_rules_keep_symbols_of_names_and_do_not_split_numbers(rule):
    found = [(*texts, match_one(rule, *texts).is_match) for *texts, _ in SYMBOLIC]

    assert found == SYMBOLIC


@pytest.mark.parametrize("rule", ["boundary", "segmented"])
def test_parts_of_ranges_and_compounds_match_as_words(rule):
    contained = [
        *(("1990-1995", "1995"), ("COVID-19", "19"), ("3-5", "5"), ("10, 20", "20"), ("1,5", "5")),
        *(("written in C.", "C"), ("12.05.1990", "1990"), ("C++11", "C++"), ("(5)", "5")),
    ]

    assert [pair for pair in contained if match_one(rule, *pair)] == contained


@pytest.mark.parametrize("rule", RULES)
def test_accents_are_folded_only_on_request(rule):
    plain = match("Zurich", ["Rome", "Zürich"], rule=rule)
    asked = match("Zurich", ["Rome", "Zürich"], rule=rule, fold_accents=True)

    assert not plain
    assert (asked.reference, asked.score, asked.rule) == ("Zürich", 1.0, f"{rule}+fold_accents")
    again = match("Zürich", "Zurich", rule=f"{rule}+fold_accents", fold_accents=True)
    assert (again.is_match, again.rule) == (True, f"{rule}+fold_accents")
    assert match("Zürich", "Zurich", rule=f"{rule}+fold_accents") == again
    assert not match("Bern", "Zürich", rule=rule, fold_accents=True)


@pytest.mark.parametrize(
    ("rule", "prediction", "answers", "answer"),
    [
        (NORMAL, "usa", ["U.S.A.", "USA", "usa"], "USA"),
        ("token_f1", "George W Bush", ["G. Bush senior", "George W. Bush", "W. Bush George"], 1),
        # An answer without letter or number is searched without normalisation.
        ("boundary", "The band is !!! (Chk Chk Chk)", ["!!!"], "!!!"),
        ("boundary", "The band is !!! (Chk Chk Chk)", ["!!!", "Chk Chk Chk"], "!!!"),
        ("boundary", "The band is !!! (Chk Chk Chk)", ["Chk Chk Chk", "!!!"], "Chk Chk Chk"),
        ("boundary", "Wow!!!", ["!!!"], None),
        ("boundary", "…", ["!!!"], None),
        ("boundary", "÷", ["×", "÷"], "÷"),
        ("boundary", "Divide", ["÷", "Divide"], "Divide"),
        (BoundaryRule(reject_negated=True), "not Mark Twain", ["Mark Twain", "Twain"], None),
        (BoundaryRule(reject_negated=True), "not Twain but Sam", ["Twain", "Sam"], "Sam"),
        (BoundaryRule(reject_negated=True), "not Twain. Mark Twain", ["Mark Twain"], "Mark Twain"),
    ],
)
def test_reference_is_the_first_answer_with_the_best_score(rule, prediction, answers, answer):
    expected = answers[answer] if isinstance(answer, int) else answer

    assert match(prediction, answers, rule=rule).reference == expected


@pytest.mark.parametrize(
    ("key", "needles", "position"),
    [
        (" paris ", [" rome ", " paris "], 1),
        (" rome ", [" paris "], -1),
        (" not paris but paris texas ", [" paris "], 0),
        (" neither paris nor rome ", [" paris ", " rome "], -1),
        (" never in the paris ", [" paris "], -1),
        (" Not Paris ", [" Paris "], -1),
        (" rome instead of paris ", [" paris ", " rome "], 1),
        (" knot paris ", [" paris "], 0),
        (" not only paris ", [" paris "], 0),
    ],
)
def test_first_affirmed_returns_the_first_answer_that_is_not_negated(key, needles, position):
    """Occurrences directly after a negation, and occurrences within them, are excluded."""
    assert first_affirmed(key, needles) == position


@pytest.mark.parametrize(
    ("prediction", "answer", "score"),
    [
        ("George Bush", "George W. Bush", 0.8),
        ("George Washington", "George W. Bush", 0.4),
        ("the United States", "United States", 1.0),
        *(("Paris, Texas", "Texas Paris", 1.0), ("Paris Paris", "Paris", 2 / 3)),
        *(("Duran", "Duran Duran", 2 / 3), ("Duran Duran", "Duran Duran", 1.0)),
        *(("The The", "The The", 1.0), ("The", "The The", 2 / 3), ("the band", "The The", 0.0)),
        *(("東京", "東京都", 0.8), ("Tirana", "Iran", 0.0), ("a", "Washington, D.C.", 0.0)),
        *(("", "Paris", 0.0), ("!!!", "!!!", 1.0)),
    ],
)
def test_token_f1_counts_common_words_without_articles(prediction, answer, score):
    found = match_one("token_f1", prediction, answer)

    assert found.score == pytest.approx(score, abs=1e-15)
    assert found.is_match is (score >= 0.8)
    for threshold in (0.4, 0.41, 1.0):
        of_threshold = match_one(TokenF1Rule(threshold=threshold), prediction, answer)
        assert of_threshold.is_match is (found.score >= threshold)


POPQA_WORDS = st.text(alphabet="aAbB ßİıéǅ.", min_size=1, max_size=4).filter(str.strip)


@settings(max_examples=500, deadline=None)
@given(
    prediction=st.text(alphabet="aAbB sSßİıi\u0307éǅ.", max_size=8),
    answers=st.lists(POPQA_WORDS, min_size=1),
)
def test_popqa_agrees_with_its_published_formula(prediction, answers):
    contained = [
        a for a in answers for form in (a, a.lower(), a.capitalize()) if form in prediction
    ]

    assert match(prediction, answers).reference == (contained[0] if contained else None)


# Without "İ": case folding gives "i" and a mark, and `\w` has a boundary before a mark.
LATIN = "abAB éßıﬁœ09 .,-–'’_&\n"
SPACED = st.text(alphabet=LATIN, max_size=12)
ANSWERS = st.lists(st.text(alphabet=LATIN, min_size=1, max_size=4), min_size=1, max_size=5)


def has_words(text):
    return any(map(str.isalnum, text))


@settings(max_examples=1_000, deadline=None)
@given(SPACED, ANSWERS)
def test_boundary_agrees_with_a_regular_expression(prediction, answers):
    """Containment of padded text is a search with word boundaries."""
    assume(has_words(prediction) and all(map(has_words, answers)))
    contained = [
        answer
        for answer in answers
        if re.search(rf"(?<!\S){re.escape(normalize(answer))}(?!\S)", normalize(prediction))
    ]
    found = match(prediction, answers, rule="boundary")
    guarded = match(prediction, answers, rule=BoundaryRule(reject_negated=True))

    assert found.reference == (contained[0] if contained else None)
    assert found.is_match >= guarded.is_match


@settings(max_examples=300, deadline=None)
@given(st.text(), st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4))
def test_boundary_agrees_with_a_search_in_lists_of_words(prediction, answers):
    """The words of the answer are a contiguous part of the words of the prediction."""
    assume(all(map(has_words, answers)))
    words = tokenize(normalize(prediction))

    def is_slice(part):
        return any(words[i : i + len(part)] == part for i in range(len(words)))

    expected = next((a for a in answers if is_slice(tokenize(normalize(a)))), None)

    assert match(prediction, answers, rule="boundary").reference == expected


NAMES = st.text(alphabet="abcé ", min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=500, deadline=None)
@given(NAMES, st.lists(NAMES, min_size=1, max_size=6), st.sampled_from(["partial_ratio", "ratio"]))
def test_fuzzy_agrees_with_rapidfuzz(prediction, answers, scorer):
    """Words are padded by spaces; `ratio` is used if the answer is longer."""

    def similarity(answer):
        p, a = f" {normalize(prediction)} ", f" {normalize(answer)} "
        part = scorer == "partial_ratio" and len(a) <= len(p)
        return (fuzz.partial_ratio if part else fuzz.ratio)(p, a)

    best = max(map(similarity, answers))
    expected = next(a for a in answers if similarity(a) == best) if best >= 60.0 else None

    found = FuzzyRule(scorer=scorer, score_cutoff=60.0)(prediction, answers)

    assert found.reference == expected
    assert found.score == pytest.approx(best / 100 if best >= 60.0 else 0.0, abs=1e-12)


WORDS = st.lists(
    st.sampled_from(["a", "The", "new", "New", "york", "city", "é", "x-y", "!"]), max_size=6
).map(" ".join)


def bag_f1(prediction, answer):
    """Compute F1 over bags of words, as in SQuAD's evaluation script."""

    def words(text):
        kept = [w for w in normalize(text).split() if w not in {"a", "an", "the"}]
        return kept or normalize(text).split()

    common = sum((Counter(words(prediction)) & Counter(words(answer))).values())
    if common == 0:
        return 0.0
    precision = common / len(words(prediction))
    recall = common / len(words(answer))
    return 2 * precision * recall / (precision + recall)


@settings(max_examples=500, deadline=None)
@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=5))
def test_token_f1_agrees_with_precision_and_recall(prediction, answers):
    """The score is the maximum over the answers, and symmetric."""
    found = match(prediction, answers, rule="token_f1").score
    each = [match_one("token_f1", prediction, answer).score for answer in answers]

    assert found == pytest.approx(max(bag_f1(prediction, a) for a in answers), abs=1e-12)
    assert found == max(each)
    if prediction.strip():
        assert each == [match_one("token_f1", answer, prediction).score for answer in answers]


test_invalid_options_of_rules_are_rejected = refusals(
    lambda rule, options: rule(**options),
    *((TokenF1Rule, {"threshold": value}, r"in \(0, 1\]") for value in (0.0, -1.0, 1.5)),
    (TokenF1Rule, {"threshold": float("nan")}, r"`threshold` must be in \(0, 1\], got nan"),
    *((FuzzyRule, {"score_cutoff": value}, r"in \(0, 100\]") for value in (0.0, -5.0, 101.0)),
    (FuzzyRule, {"score_cutoff": float("nan")}, "`score_cutoff` must be in .*, got nan"),
    (FuzzyRule, {"scorer": "wratio"}, "`scorer` must be 'partial_ratio' or 'ratio', got 'wr"),
)


EVERY = pytest.mark.parametrize("judge", [*RULES.values(), match])


@EVERY
@pytest.mark.parametrize(
    ("prediction", "answers", "error", "message"),
    [
        (None, ["x"], TypeError, "must be a string, got NoneType; `match_columns` leaves"),
        ("x", [], ValueError, "at least one accepted answer, got none"),
        ("x", ["y", ""], ValueError, "must not be blank, got .* every prediction contains it"),
        ("x", ["y", " "], ValueError, "must not be blank"),
        ("x", ["y", "\n"], ValueError, "must not be blank"),
        ("Paris", ["Paris", None], TypeError, "must be strings, got None; drop or convert it"),
    ],
)
def test_every_rule_rejects_missing_and_blank_texts(judge, prediction, answers, error, message):
    with pytest.raises(error, match=message):
        judge(prediction, answers)


@EVERY
def test_truth_value_of_a_match_is_is_match_and_a_string_is_one_reference(judge):
    assert judge("Paris", "Paris") == judge("Paris", ["Paris"])
    assert bool(judge("Paris", "Paris")) is True
    assert bool(judge("wrong", "Paris")) is False


@EVERY
def test_rules_accept_arrays_of_answers(judge):
    assert judge("Paris", np.array(["Rome", "Paris"], dtype=object)).reference == "Paris"


class LastWord(Rule[list[str]]):
    """Accepts an answer whose last word equals that of the prediction."""

    name = "last_word"

    def keys(self, texts):
        return [text.split()[-1] if text.split() else "" for text in texts]

    def prepare(self, answers, keys):
        return list(keys)

    def judge(self, prediction, key, prepared):
        return (prepared.index(key), 1.0) if key in prepared else (-1, 0.0)


def test_instances_of_custom_rules_are_accepted_in_place_of_names():
    predictions, answers = ["in Paris", "Paris?", None], [["Rome", "Paris"]] * 3

    found = match(predictions[0], answers[0], rule=LastWord())
    columns = match_columns(predictions, answers, rule=LastWord())

    assert found == Match(is_match=True, reference="Paris", score=1.0, rule="last_word")
    assert columns.is_match == [True, False, None]
