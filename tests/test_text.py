import re
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.text import (
    first_line,
    has_unspaced_script,
    normalize,
    padded_words,
    surface_from_title,
    tokenize,
    without_accents,
)

# Text with rare cases: case pairs that change length, compatibility forms, marks,
# format characters, punctuation, scripts without spaces, and the separator used inside.
TRICKY = st.text(
    alphabet="aZ09 _-–'’´.!…\t\n\x00\x1e\x1f\u00a0\u00ad\u200b\u200d\ufe0f\U000e0100"
    "éÉe\u0301\u0308\u0327ıİiIßſẞﬁﬄΣσς\u0345ᾳΐŒœÆøłДйи\u0306¨½™①Ⅷªº°+♯€"
    "東京のカナーｶﾅ・ไทย\u0e31한국\u1112\u1161\u11abकि\u093fक्ष\ue000\U0001f600\u2044"
)
# Text with numbers, names with symbols, and similar sequences.
SYMBOLIC = st.lists(
    st.sampled_from(
        [
            *"0157cCfqx. ,:'’-−+#♯()[ 東ー\x01\u200b\u0640\u034f\u00a0\u202f\u0301٣۵७５๙٫٬",
            *("000", "123", ".net", "c++", "acdc", "AC/DC"),
        ]
    ),
    max_size=12,
).map("".join)
ANY = st.text() | TRICKY | SYMBOLIC


def naive_normalise(text):
    """The definition, character by character."""
    characters = []
    for at, character in enumerate(text):
        follows = re.match(r"\d\d\d(?!\d)", text[at + 1 :])
        is_thin = character in "\u00a0\u2009\u202f" and at and text[at - 1].isdecimal() and follows
        characters.append("," if is_thin else character)
    folded = []
    for character in unicodedata.normalize("NFKC", "".join(characters)).casefold():
        selector = 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF
        if unicodedata.category(character) != "Cf" and not selector:
            folded.append(
                {"٫": ".", "٬": ",", "−": "-", "♯": "#", "_": " "}.get(character, character)
            )
    plain = "".join(folded).replace("\u0640", "").replace("\u034f", "")
    composed = unicodedata.normalize("NFKC", plain)
    plain = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in composed)
    kept = []
    at = 0
    while at < len(plain):
        length, form = naive_symbolic(plain, at)
        if not length:
            category = unicodedata.category(plain[at])
            length, form = 1, " " if category[0] in "PSZ" or category == "Cc" else plain[at]
        kept.append(form)
        at += length
    words = []
    for word in "".join(kept).split():
        while word and unicodedata.category(word[0]).startswith("M"):
            word = word[1:]
        words.append(word)
    form = " ".join(word for word in words if word)
    return form or " ".join(text.split())


def naive_symbolic(text, at):
    """Return length and form of the number or name with symbols that begins here, or 0."""
    before, here = text[at - 1 : at], text[at:]
    number = re.match(r"\d+(?:[.,:'’]\d+)*", here)
    if number and not before.isdecimal():
        return len(number[0]), naive_number(number[0])
    if not before or before.isspace() or before in "([{":
        sign = "-" if here[0] == "-" else ""
        rest = here[len(sign) :]
        decimals = re.match(r"\.(\d+(?:[.,:'’]\d+)*)", rest)
        is_decimal = bool(decimals) and not {".", ":"} & {*naive_number(decimals[1])}
        if is_decimal or (sign and rest[:1].isdecimal()):
            return len(sign) + is_decimal, sign + "0." * is_decimal
    if here.startswith("++") and before.isalpha() and here[2:3] != "+":
        return 2, "++ "
    if here[0] == "#" and before in {*"abcdefgjqx"} and here[1:2] != "#":
        return (0, "") if is_spaced(text[at - 2 : at - 1]) else (1, "# ")
    starts_word = not is_spaced(before) and before != "."
    if here.startswith(".net") and starts_word and not is_spaced(here[4:5]):
        return 4, " .net"
    if here.startswith("acdc") and not is_spaced(before) and not is_spaced(here[4:5]):
        return 4, "ac dc"
    return 0, ""


def naive_number(number):
    """A decimal, a number in groups of three, or a time as one word; otherwise its parts."""
    for separator in ",'’":
        first, *groups = number.split(separator)
        last, *decimals = groups[-1].split(".") if groups else [""]
        groups[-1:] = [last] if groups else []
        is_grouped = groups and all(len(g) == 3 and g.isdecimal() for g in groups)
        is_first = first.isdecimal() and len(first) <= 3 and first[0] != "0"
        has_decimals = len(decimals) < 2 and all(map(str.isdecimal, decimals))
        if is_grouped and is_first and has_decimals:
            return "".join([first, *groups, *(f".{d}" for d in decimals)])
    parts = re.split(r"\D", number)
    for separator in ".:":
        if number == separator.join(parts) and (separator == ":" or len(parts) == 2):
            return number
    return " ".join(parts)


def is_spaced(character):
    """Return whether it is a letter or digit of a script with spaces."""
    return (character.isalnum() or character == "_") and not has_unspaced_script(character)


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
        # Symbols of names are a closed list.
        *(("C++", "c++"), ("C＋＋", "c++"), ("C++11", "c++ 11"), ("Notepad++", "notepad++")),
        *(
            ("C#", "c#"),
            ("F♯ minor", "f# minor"),
            ("C#8", "c# 8"),
            ("言語はC#です", "言語はc# です"),
        ),
        *((".NET 8", ".net 8"), ("(.NET)", ".net"), ("ASP.NET", "asp net"), ("a ..net", "a net")),
        *(("AC/DC", "ac dc"), ("ACDC", "ac dc"), ("pacdc", "pacdc")),
        *(("A+", "a"), ("C.", "c"), ("C+++", "c"), ("C##", "c"), ("AC#", "ac"), ("H#", "h")),
        # A sign counts at the start, after a space and after a bracket.
        *(
            ("-5", "-5"),
            ("−5 °C", "-5 c"),
            ("(-5)", "-5"),
            ("[−5", "-5"),
            ("- 5", "5"),
            ("+5", "5"),
        ),
        *(("COVID-19", "covid 19"), ("1990-1995", "1990 1995"), ("3-5", "3 5"), ("x=-5", "x 5")),
        # A decimal point is between digits or begins a number; dates and versions are parts.
        *(
            ("1.5 million", "1.5 million"),
            ("-.5", "-0.5"),
            ("It is 5.", "it is 5"),
            ("v1.5", "v1.5"),
        ),
        *(("12.05.1990", "12 05 1990"), ("1.2.3", "1 2 3"), ("No.1", "no 1"), ("..5", "5")),
        # Separators between groups of three digits.
        *(
            ("10,000", "10000"),
            ("1,234,567.8", "1234567.8"),
            ("10'000", "10000"),
            ("-1,000", "-1000"),
        ),
        *(("10\u202f000", "10000"), ("10\u00a0000", "10000"), ("10 000", "10 000")),
        *(("10, 20", "10 20"), ("1,5", "1 5"), ("1990,1991", "1990 1991"), ("0,123", "0 123")),
        *(("1,000,00", "1 000 00"), ("2019\u00a0300", "2019 300"), ("1.000,5", "1 000 5")),
        *(("7:30", "7:30"), ("at 7:30:15.", "at 7:30:15"), ("at 7: 30", "at 7 30")),
        # Digits of every script are those of ASCII.
        *(
            ("١٩٩٨", "1998"),
            ("۱۹۹۸", "1998"),
            ("१९९८", "1998"),
            ("１９９８", "1998"),
            ("๑๙๙๘年", "1998年"),
        ),
        *(("١٬٠٠٠", "1000"), ("۱٫۵", "1.5"), ("１０，０００", "10000"), ("10\u200b,000", "10000")),
        *(("محمـد", "محمد"), ("م\u200dحمد", "محمد"), ("a\u034fb", "ab"), ("\ufeffParis", "paris")),
        # A sign also counts within quotes and markup.
        *(("**-5**", "-5"), ('"-5"', "-5"), ("$-5$", "-5"), ("$5-$10", "5 10"), ("x=-5", "x 5")),
        ("\x01c\x02\x03\x04\x05", "c"),
        ("", ""),
        (" \t\n", ""),
    ],
)
def test_normalize_gives_the_form_of_comparison(text, form):
    assert normalize(text) == form


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        *(("Zürich", "Zurich"), ("Zu\u0308rich", "Zurich"), ("Łódź", "Lodz"), ("Tromsø", "Tromso")),
        *(("Diyarbakır", "Diyarbakir"), ("İzmir", "Izmir"), ("Æsir Œuvre", "AEsir OEuvre")),
        *(("Straße", "Strasse"), ("Hồ Chí Minh", "Ho Chi Minh"), ("Αθήνα", "Αθηνα")),
        # Letters and vowel signs of other scripts are not accents.
        *((text, text) for text in ("Йошкар-Ола", "القَاهِرَة", "हिन्दी", "ガ", "한국", "C#", "")),
    ],
)
def test_without_accents_keeps_the_base_letters(text, plain):
    assert without_accents(text) == plain
    assert without_accents(plain) == plain


@pytest.mark.parametrize("text", ["!!!", "…", "÷", "? ?", "_", "\u200b", "\u0301"])
def test_normalize_keeps_a_text_without_letters(text):
    assert normalize(f" {text}\n") == text


def test_normalize_is_idempotent_for_every_character():
    """This is true for each character, alone and followed by reordering marks."""
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
    """It is idempotent, blank only for blank texts, and equal for canonical forms."""
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
def test_tokenize_splits_a_text_into_words(text, words):
    assert tokenize(text) == words


@settings(deadline=None)
@given(ANY)
def test_tokenize_is_lossless(text):
    assert "".join(tokenize(text)) == re.sub(r"\s", "", text)


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY, max_size=8))
def test_padded_words_agrees_with_single_texts(texts):
    """The result is the words of each normal form between spaces, and is idempotent."""
    found = padded_words(texts)

    assert found == [f" {' '.join(tokenize(normalize(text)))} " for text in texts]
    assert padded_words(found) == found
