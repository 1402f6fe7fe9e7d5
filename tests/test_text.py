import re
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.text import (
    first_line,
    normalize,
    padded_words,
    surface_from_title,
    tokenize,
)

# Text in which the rare kinds meet: case pairs that change length, compatibility forms, marks,
# format characters, punctuation, scripts without spaces, and the separator used inside.
TRICKY = st.text(
    alphabet="aZ09 _-–'’´.!…\t\n\x00\x1e\x1f\u00a0\u00ad\u200b\u200d\ufe0f\U000e0100"
    "éÉe\u0301\u0308\u0327ıİiIßſẞﬁﬄΣσς\u0345ᾳΐŒœÆøłДйи\u0306¨½™①Ⅷªº°+♯€"
    "東京のカナーｶﾅ・ไทย\u0e31한국\u1112\u1161\u11abकि\u093fक्ष\ue000\U0001f600\u2044"
)
ANY = st.text() | TRICKY


def naive_normalise(text):
    """The definition, character by character."""
    kept = []
    for character in unicodedata.normalize("NFKC", text).casefold():
        category = unicodedata.category(character)
        selector = 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF
        if category == "Cf" or selector:
            continue
        kept.append(" " if category[0] in "PSZ" or category == "Cc" else character)
    words = []
    for word in unicodedata.normalize("NFKC", "".join(kept)).split():
        while word and unicodedata.category(word[0]).startswith("M"):
            word = word[1:]
        words.append(word)
    form = " ".join(word for word in words if word)
    return form or " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (" London\nQ: Who is", "London"),
        ("\n\nLondon", "London"),
        ("\n\n\nLondon", ""),
        ("\nLondon", ""),
        ("", ""),
        ("London\r\nQ:", "London"),
        ("George W. Bush", "George W. Bush"),
    ],
)
def test_first_line_is_the_answer(text, line):
    assert first_line(text) == line


@pytest.mark.parametrize(
    ("title", "surface"),
    [
        ("Jesus_Antunez_(musician)", "Jesus Antunez"),
        ("Chriz_Metzen", "Chriz Metzen"),
        ("(What's_the_Story)_Morning_Glory?", "(What's the Story) Morning Glory?"),
        ("(500)", "(500)"),
        ("A_(b)_(c)", "A (b)"),
    ],
)
def test_surface_from_title_is_the_name_in_questions(title, surface):
    assert surface_from_title(title) == surface


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Washington, D.C.", "washington d c"),
        ("The Who", "the who"),
        ("ALAKA'I", "alaka i"),
        ("Alaka’i", "alaka i"),
        ("letter–word", "letter word"),
        ("Jesus_Antunez", "jesus antunez"),
        ("ﬁnal Œuvre", "final œuvre"),
        ("Straße", "strasse"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
        ("O´Brien", "o brien"),
        ("Zu\u0308rich", "zürich"),
        ("Vitamin B₁₂", "vitamin b12"),
        ("New\u00a0York\u3000City", "new york city"),
        ("co\u00adoperate", "cooperate"),
        ("葛\U000e0100城", "葛城"),
        ("Diyarbakır", "diyarbakır"),
        ("İzmir", "i\u0307zmir"),
        ("हिन्दी", "हिन्दी"),
        ("C++", "c"),
        ("", ""),
        (" \t\n", ""),
    ],
)
def test_normalize_is_the_form_of_comparison(text, form):
    assert normalize(text) == form


@pytest.mark.parametrize("text", ["!!!", "…", "÷", "? ?", "_", "\u200b", "\u0301"])
def test_normalize_is_the_text_itself_without_letters(text):
    assert normalize(f" {text}\n") == text


def test_normalize_is_idempotent_for_every_character():
    """The law holds for each character, alone and followed by the marks that reorder."""
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cn", "Co", "Cs"):
            continue
        for text in (chr(code), f"{chr(code)}\u0345\u0301"):
            form = normalize(text)
            if form != text:
                assert normalize(form) == form, hex(code)


@settings(max_examples=500, deadline=None)
@given(ANY)
def test_normalize_agrees_with_the_definition(text):
    """A normal form is its own, blank for blank texts alone, and one for canonical forms."""
    form = normalize(text)
    composed, decomposed = (unicodedata.normalize(kind, text) for kind in ("NFC", "NFD"))

    assert form == naive_normalise(text)
    assert normalize(form) == form
    assert (form == "") == (text.strip() == "")
    if any(map(str.isalnum, text)):
        assert normalize(composed) == normalize(decomposed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("new  york\n", ["new", "york"]),
        ("東京都", ["東", "京", "都"]),
        ("テヘランはイランの首都", ["テヘラン", "は", "イラン", "の", "首", "都"]),
        ("nhk東京2020", ["nhk", "東", "京", "2020"]),
        ("กรุงเทพ", ["ก", "รุ", "ง", "เ", "ท", "พ"]),
        ("서울은 수도", ["서울은", "수도"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("don't", ["don't"]),
    ],
)
def test_tokenize_is_splitting_into_words(text, words):
    assert tokenize(text) == words


@settings(deadline=None)
@given(ANY)
def test_tokenize_is_lossless(text):
    assert "".join(tokenize(text)) == re.sub(r"\s", "", text)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY, max_size=8))
def test_padded_words_agrees_with_one_by_one(texts):
    """The bulk form is the words of each normal form between spaces, and its own form."""
    found = padded_words(texts)

    assert found == [f" {' '.join(tokenize(normalize(text)))} " for text in texts]
    assert padded_words(found) == found
