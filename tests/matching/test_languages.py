"""Rules in languages without spaces between words or with inflected words."""

import unicodedata

import pytest

from surface_consistency.matching import match
from surface_consistency.text import guess_language

RULES = ("popqa", "boundary", "segmented", "token_f1", "squad_f1")
# Language, prediction, reference, whether it is correct, and rules that score incorrectly.
CASES = [
    ("Japanese", "それは東京都です", "京都", False, "popqa boundary"),
    ("Japanese", "東京都", "京都", False, "popqa boundary token_f1"),
    ("Japanese", "東京都です", "東京都", True, "token_f1 squad_f1"),
    ("Japanese", "イラン", "ラン", False, "popqa"),
    ("Chinese", "首都是北京", "北京", True, "token_f1 squad_f1"),
    ("Chinese", "他来自上海大学", "海大", False, "popqa boundary"),
    # The dictionary of ICU has 北京市 as one word.
    ("Chinese", "在北京市", "北京", True, "segmented token_f1 squad_f1"),
    ("Thai", "เขาเกิดที่เชียงใหม่", "เชียงใหม่", True, "token_f1 squad_f1"),
    ("Thai", "มานะอยู่ที่นี่", "มา", False, "popqa boundary"),
    # Particles and prepositions that are attached to the noun.
    ("Korean", "서울입니다", "서울", True, "boundary segmented token_f1 squad_f1"),
    ("Korean", "수도는 서울", "서울", True, "token_f1 squad_f1"),
    ("Korean", "남서울", "서울", False, "popqa"),
    ("Hebrew", "בירושלים", "ירושלים", True, "boundary segmented token_f1 squad_f1"),
    ("Arabic", "بالقاهرة", "القاهرة", True, "boundary segmented token_f1 squad_f1"),
    # Vowel signs are not removed.
    ("Arabic", "القَاهِرَة", "القاهرة", True, "popqa boundary segmented token_f1 squad_f1"),
    # Inflection: rules do not lemmatize words.
    ("Finnish", "Helsingissä", "Helsinki", True, "popqa boundary segmented token_f1 squad_f1"),
    ("Russian", "в Москве", "Москва", True, "popqa boundary segmented token_f1 squad_f1"),
    ("Turkish", "İstanbul'da", "İstanbul", True, "token_f1 squad_f1"),
    # The dotted capital has no simple lower case.
    ("Turkish", "ISTANBUL", "İstanbul", True, "popqa boundary segmented token_f1 squad_f1"),
    ("Hindi", "दिल्ली में", "दिल्ली", True, "token_f1 squad_f1"),
]


@pytest.mark.parametrize(("language", "prediction", "answer", "is_right", "wrong"), CASES)
def test_rules_fail_exactly_in_the_documented_cases(language, prediction, answer, is_right, wrong):
    pytest.importorskip("icu4py")

    verdicts = {rule: match(prediction, [answer], rule=rule).is_match for rule in RULES}

    # For F1 rules the result depends on the length of the prediction too.
    erring = [rule for rule in RULES if verdicts[rule] != is_right]
    assert erring == wrong.split(), language


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        *(("ja", ["東京都の首都はどこですか?"]), ("zh", ["夏目漱石的职业是什么？"])),
        *(("ko", ["서울은 어느 나라에 있습니까?"]), ("th", ["กรุงเทพอยู่ในประเทศอะไร"])),
        *(("he", ["מהי בירת צרפת?"]), ("el", ["Ποια είναι η πρωτεύουσα της Γαλλίας;"])),
        ("en", ["In what city was 夏目漱石 born?", "The capital of 日本国 is"]),
        # A title in Latin letters within questions in Japanese.
        (
            "ja",
            [
                "The Beatlesのジャンルは何ですか?",
                "七人の侍の監督は誰ですか?",
                "羅生門の著者は誰ですか?",
            ],
        ),
        # Titles in English within questions in other languages.
        (None, ["Qui a réalisé The Hobbit ?", "Quel est le genre de Doctor Who ?"]),
        (None, ["¿Quién escribió The Lord of the Rings?", "¿Cuál es el género de The Who?"]),
        (None, ["Wer ist der Autor von Where the Wild Things Are?"]),
        # Decomposed letters and marks: "the" is not a word of "thế nào".
        (None, [unicodedata.normalize("NFD", "Thủ đô của Pháp như thế nào?")]),
        # Han characters without Kana can be Japanese.
        *(
            ("zh", ["愛因斯坦出生於哪座城市?", "谁写了罗生门？"]),
            (None, ["東京都 首都", "羅生門 著者"]),
        ),
        # One script that several languages use.
        *(
            (None, [text])
            for text in ("В каком городе родился Пушкин?", "Was ist der Beruf von Goethe?")
        ),
        *(
            (None, texts)
            for texts in (["Quelle est la capitale de la France ?"], ["2 + 2 = ?", ""], [])
        ),
    ],
)
def test_language_is_detected_if_unambiguous_and_none_otherwise(language, texts):
    assert guess_language(texts) == language
