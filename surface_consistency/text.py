"""Functions on strings: surfaces from page titles, answers in generations, normal forms."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Literal

__all__ = [
    "counted_name",
    "did_you_mean",
    "first_line",
    "first_text_line",
    "folded",
    "guess_language",
    "has_unspaced_script",
    "normalize",
    "normalized",
    "one_line",
    "padded_words",
    "printable",
    "replace_elements",
    "script_runs",
    "surface_from_title",
    "token_key",
    "tokenize",
    "without_accents",
]

# Latin letters that Unicode does not decompose, with their forms without accents.
_LETTERS = str.maketrans(
    dict(zip("ØøŁłĐđÐðĦħŦŧı", "OoLlDdDdHhTti", strict=True))
    | {"Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Þ": "Th", "þ": "th", "ẞ": "SS", "ß": "ss"}
)
_ACCENTS = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")

_TRAILING_PARENTHESIS = re.compile(r"(?<!\s)\s+\([^()]*\)$")

_KEY_TOKEN = re.compile(r"\d+\.\d+|\w+(?:[-']\w+)*")

_SEPARATOR = "\x1e"
# Placeholders of symbols that belong to their word; all other symbols become spaces.
_PROTECTED = dict(zip("+#.:-", "\x01\x02\x03\x04\x05", strict=True))
_PLACEHOLDERS = {ord(placeholder): symbol for symbol, placeholder in _PROTECTED.items()}
_ASCII_WORDS = {
    code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != _SEPARATOR
} | _PLACEHOLDERS
# The ranges are contained in "\w"; they make the search faster.
_LETTER = rf" {_SEPARATOR}a-z0-9\w"
_NO_LETTER = re.compile(rf"[^{_LETTER}]")
_MARKS = re.compile(rf"[^{_LETTER}]+")

_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_THAI_LAO_MYANMAR_KHMER = "\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"
_KANA_HAN = "\u3041-\u309f\u3105-\u312f\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED_LETTERS = f"{_KATAKANA}{_THAI_LAO_MYANMAR_KHMER}{_KANA_HAN}"
_UNSPACED = rf"[{_UNSPACED_LETTERS}](?<=\w)"
_UNSPACED_WORD = rf"{_UNSPACED}(?:(?<=[{_KATAKANA}])[{_KATAKANA}]*)?[^\w\s]*"
_RUNS = (
    "|".join(
        f"[{letters}]+"
        for letters in (
            _KATAKANA,
            "\u3041-\u309f",
            "\u3105-\u312f",
            "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
            "\u0e00-\u0e7f",
            "\u0e80-\u0eff",
            "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
            "\u1780-\u17ff",
            r"\s",
        )
    )
    + rf"|[^{_KATAKANA}{_THAI_LAO_MYANMAR_KHMER}{_KANA_HAN}\s]+"
)


_ASKING = "what|who|whom|whose|which|where|when|why|how"
# A capitalized word within a text is a name, such as "The Who" or "The Hobbit".
_ENGLISH = re.compile(
    rf"\A\W*(?i:{_ASKING}|the)\b|\b(?:{_ASKING})\b|\b(?:is|was|are|were|name|tell me) the\b"
)
_CHINESE = re.compile("[的是在于於了为為哪谁誰什么麼吗嗎几幾]")
_SCRIPTS = {
    "ja": "\u3041-\u309f\u30a1-\u30fa",
    "zh": "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "ko": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7af",
    "th": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "lo": "\u0e81-\u0eff",
    "km": "\u1780-\u17b3",
    "my": "\u1000-\u103f",
    "he": "\u05d0-\u05ea",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "hy": "\u0531-\u0586",
    "ka": "\u10a0-\u10ff",
    "ta": "\u0b82-\u0bd7",
    "te": "\u0c01-\u0c56",
    "kn": "\u0c82-\u0cd6",
    "ml": "\u0d02-\u0d57",
    "si": "\u0d82-\u0df3",
}
_OTHER = "other"


@functools.cache
def _compiled(pattern: str) -> "re.Pattern[str]":
    """Compile a large pattern when it is first used, so that the import is fast."""
    return re.compile(pattern)


class _Kept(dict[str, str]):
    """Cache of the replacement of each character that is not a letter or number."""

    def __missing__(self, character: str) -> str:
        """Replace control characters, punctuation and symbols by spaces."""
        category = unicodedata.category(character)
        is_blanked = category == "Cc" or category[0] in "PSZ"
        self[character] = " " if is_blanked else character
        return self[character]


_KEPT = _Kept({chr(code): symbol for code, symbol in _PLACEHOLDERS.items()})
# A pattern begins with a character and looks behind afterwards, which is several times faster.
_NUMBER = re.compile("[0-9](?<![0-9]{2})[0-9]*+(?:[.,:'’][0-9]++)++")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}([,'’])[0-9]{3}(?:\1[0-9]{3})*(?:\.[0-9]+)?")
_DECIMAL_OR_CLOCK = re.compile(r"[0-9]+(?:\.[0-9]+|(?::[0-9]+)+)")
_LEAD = re.compile(
    r"[-.](?<![^\s(\[{*_\"'`$“”„«].)"
    r"(?:(?<=-)(?=[0-9])|(?:(?<=-)\.|(?<=\.))(?=[0-9]++(?![\x03\x04])))"
)
_SYMBOLIC = re.compile(r"[-.,:'’+#\x01-\x05](?:(?<=[+#\x01-\x05])|(?=\.?[0-9]|net))")
_THIN_SPACE = re.compile(r"[\u00a0\u2009\u202f](?<=\d.)(?=\d{3}(?!\d))")
_OTHER_DIGIT = re.compile(r"[\u0660-\U0010ffff](?<=\d)")
# Format characters, variation selectors, the tatweel and the grapheme joiner.
_IGNORED_BASIC = (
    "\u00ad\u034f\u0600-\u0605\u061c\u0640\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
)
_IGNORED = re.compile(
    rf"[{_IGNORED_BASIC}\U000110bd-\U000e01ef](?<=[{_IGNORED_BASIC}\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f\U000e0100-\U000e01ef])"
)
_OTHER_SYMBOLS = (("\u066b", "."), ("\u066c", ","), ("\u2212", "-"), ("\u266f", "#"))
_SPACED_LETTER = rf"[^\W{_UNSPACED_LETTERS}]"
_NAMES = (
    ("++", r"\+\+(?<=[^\W\d_]\+\+)(?!\+)", "\x01\x01 "),
    ("#", rf"#(?<=[a-gjqx]#)(?<!{_SPACED_LETTER}[a-gjqx]#)(?!#)", "\x02 "),
    (".net", rf"\.net(?<!{_SPACED_LETTER}\.net)(?<!\.\.net)(?!{_SPACED_LETTER})", " \x03net"),
    ("acdc", rf"(?<!{_SPACED_LETTER})acdc(?!{_SPACED_LETTER})", "ac dc"),
)
"""Names whose symbols are a part of them, such as C++, F# and .NET, and AC/DC without its slash."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


_MARKS_RUN = re.compile(r"[^\w\s\x00-\x7f]{31,}")
_MOST_MARKS = 30


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalize a text in time that grows linearly with its length.

    `unicodedata.normalize` sorts the marks after a letter by insertion, so that 100,000 of them
    take seconds. In texts of more than 1,000 characters a combining grapheme joiner (U+034F) is
    inserted after each 30 successive marks, as in the Stream-Safe Text Format of Unicode.

    Args:
        form: The normalization form.
        text: The text.

    Returns:
        The normalized text.

    Source:
        Unicode Standard Annex #15, section 13.
    """
    if len(text) > 1_000 and not text.isascii():
        text = _MARKS_RUN.sub(_stream_safe, text)
    return unicodedata.normalize(form, text)


def _stream_safe(run: "re.Match[str]") -> str:
    """Insert a joiner after each 30 successive marks."""
    parts, n_marks = [], 0
    for character in run[0]:
        n_marks = n_marks + 1 if unicodedata.combining(character) else 0
        parts.append(character)
        if n_marks == _MOST_MARKS:
            parts.append("\u034f")
            n_marks = 0
    return "".join(parts)


def replace_elements(
    text: str, opening: "re.Pattern[str]", replacement: Callable[[str], str] = lambda inside: ""
) -> str:
    """Replace the elements of markup in time that grows linearly with the length of the text.

    Args:
        text: The text.
        opening: Pattern of the start tags, whose group "tag" is the name of the element. A match
            without this group is removed.
        replacement: Returns the replacement of an element for its content; by default an element is
            removed with its content.

    Returns:
        The text. An element without an end tag remains.

    Examples:
        >>> replace_elements("a<b>c</b>d<b>e", re.compile("<(?P<tag>b)>"), "({})".format)
        'a(c)d<b>e'
    """
    parts, done, position = [], 0, 0
    unclosed: set[str] = set()
    while found := opening.search(text, position):
        position, tag = found.end(), found["tag"]
        inside = ""
        if tag is not None:
            name = tag.casefold()
            end = None
            if name not in unclosed:
                end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, position)
            if end is None:
                unclosed.add(name)
                continue
            inside, position = replacement(text[position : end.start()]), end.end()
        parts += [text[done : found.start()], inside]
        done = position
    return "".join([*parts, text[done:]])


def surface_from_title(title: str) -> str:
    """Return the name that a question uses for a Wikipedia title.

    Underscores become spaces and one trailing parenthesis is removed, as in RedirectQA v1.0.0
    ("Jesus_Antunez_(musician)" becomes "Jesus Antunez").

    Args:
        title: A page title, with underscores or spaces.

    Returns:
        The surface form; a title that is only a parenthesis is not changed.

    Examples:
        >>> surface_from_title("Jesus_Antunez_(musician)")
        'Jesus Antunez'
    """
    return _TRAILING_PARENTHESIS.sub("", title.replace("_", " ")).strip()


def counted_name(name: str) -> str:
    """Spell a name as it is counted in a corpus: in NFC, with single spaces.

    Args:
        name: The name, as a question or a table spells it.

    Returns:
        The name; "" for white space.

    Examples:
        >>> counted_name(" New  York ")
        'New York'
    """
    return normalized("NFC", " ".join(name.split()))


def first_line(text: str) -> str:
    r"""Return the answer in a generation: its first line.

    Two leading line feeds are dropped first, as in the PopQA evaluation (Mallen et al., 2023,
    `run_model.py`). After a single leading line feed, the first line is empty.

    Args:
        text: The generation, without the prompt.

    Returns:
        The first line without surrounding white space; "" when that line is empty.

    Examples:
        >>> first_line(" London\nQ: Who is")
        'London'
        >>> first_line("\n\nLondon")
        'London'
        >>> first_line("\nLondon")
        ''
    """
    return text.removeprefix("\n\n").split("\n", 1)[0].strip()


def first_text_line(text: str) -> str:
    r"""Return the first line of a text that is not blank.

    Args:
        text: The generation, without the prompt.

    Returns:
        The line without surrounding white space; "" when every line is blank.

    Examples:
        >>> first_text_line("\n \nLondon\nQ: Who is")
        'London'
    """
    return text.lstrip().split("\n", 1)[0].strip()


def one_line(text: str) -> str:
    r"""Write line feeds and tabs as escapes, so that a cell cannot look like a separate line.

    Args:
        text: Any text.

    Returns:
        The text on one line.

    Examples:
        >>> one_line("a\nb")
        'a\\nb'
    """
    return text.replace("\n", "\\n").replace("\t", "\\t")


def printable(text: str, *, encoding: str = "utf-8") -> str:
    r"""Write characters that control a terminal, or cannot be printed, as escapes.

    Control characters (escape sequences among them), overrides of the writing direction and lone
    surrogates become the escapes of JSON, so that a JSON document keeps its content. Tabs and line
    feeds are kept.

    Args:
        text: Any text, such as one that a model wrote.
        encoding: Encoding of the terminal; letters outside it become escapes too.

    Returns:
        The text.

    Examples:
        >>> printable("\x1b[31mred\r\u202e")
        '\\u001b[31mred\\u000d\\u202e'
        >>> printable("50 – 60 %", encoding="ascii")
        '50 \\u2013 60 %'
    """
    plain = _UNPRINTABLE.sub(_escaped, text)
    try:
        plain.encode(encoding)
    except UnicodeEncodeError:
        return "".join(
            letter if letter.encode(encoding, "ignore") else _escaped(letter) for letter in plain
        )
    except LookupError:
        return plain.encode("ascii", "backslashreplace").decode("ascii")
    return plain


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the name that is closest to a mistyped one, for messages.

    Args:
        name: The given name.
        known: The existing names.

    Returns:
        " (did you mean 'slaq'?)", or "" if no name is close.

    Examples:
        >>> did_you_mean("slaqq", ["slaq", "audit"]), did_you_mean("zebra", ["slaq", "audit"])
        (" (did you mean 'slaq'?)", '')
    """
    from difflib import get_close_matches  # Needed for messages only.

    near = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" (did you mean {near[0]!r}?)" if near else ""


def has_unspaced_script(text: str) -> bool:
    """Return whether a text contains a letter of a script that is written without spaces.

    Args:
        text: Any text.

    Returns:
        Whether it has a letter of Han, Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer or Burmese;
        Korean is written with spaces.

    Examples:
        >>> has_unspaced_script("in 東京"), has_unspaced_script("서울은")
        (True, False)
    """
    return not text.isascii() and _compiled(_UNSPACED).search(text) is not None


def guess_language(texts: Sequence[str]) -> str | None:
    """Guess the language of questions from their words and letters, if these are unambiguous.

    A text is English if it begins with an English question word or "the", or contains one outside a
    name (a question word in lower case, "is the"), regardless of the names in it. Otherwise its
    language is that of the script of most of its letters, if only one language uses that script.
    A text in Han and Kana is Japanese if more than 5 % of these letters are Kana. Otherwise it is
    Chinese if it contains a Chinese function word, and else ambiguous.

    Args:
        texts: Questions or other sentences.

    Returns:
        The code of the language of more than half of the texts; None if there is none, as for other
        languages in Latin, Cyrillic, Arabic and Devanagari letters.

    Examples:
        >>> guess_language(["東京都の首都はどこですか?"]), guess_language(["Where is 東京?"])
        ('ja', 'en')
        >>> guess_language(["Quelle est la capitale de la France ?"]) is None
        True
    """
    counts: dict[str, int] = {}
    for text in texts:
        language = _language_of(text)
        counts[language] = counts.get(language, 0) + 1
    most = max(counts, key=lambda language: counts[language], default=_OTHER)
    return most if most != _OTHER and 2 * counts[most] > len(texts) else None


def _language_of(text: str) -> str:
    """Guess the language of one text."""
    # Marks that are separate from their letters would end words: "thế nào" has no word "the".
    text = normalized("NFC", text)
    if _ENGLISH.search(text):
        return "en"
    if text.isascii():
        return _OTHER
    counts = {
        language: len(_compiled(f"[{letters}]").findall(text))
        for language, letters in _SCRIPTS.items()
    }
    kana, han = counts["ja"], counts["zh"]
    counts["ja"], counts["zh"] = (kana + han, 0) if kana > 0.05 * (kana + han) else (0, han)
    most = max(counts, key=lambda language: counts[language])
    if most == "zh" and not _CHINESE.search(text):
        return _OTHER
    return most if 2 * counts[most] > sum(map(str.isalpha, text)) else _OTHER


def token_key(text: str) -> str:
    r"""Return the normal form of names in the audit of forgetting.

    The form is the tokens `\d+\.\d+|\w+(?:[-']\w+)*` of the case-folded text, joined by spaces.
    Punctuation is removed, so ".us" and "US" are equal (arXiv 2607.00605, published code).

    Args:
        text: A subject, relation, object or answer.

    Returns:
        The key; empty for a text without letters and digits.

    Examples:
        >>> token_key("Washington, D.C."), token_key(".us") == token_key("US")
        ('washington d c', True)
    """
    return " ".join(_KEY_TOKEN.findall(text.casefold()))


def folded(text: str) -> str:
    """Return a text with uniform case, width and spacing; punctuation is kept.

    Args:
        text: A subject, relation, object or answer.

    Returns:
        The NFKC form, case-folded, underscores and runs of white space as one space, stripped.

    Examples:
        >>> folded("  New_York "), folded(".us") == folded("US")
        ('new york', False)
    """
    plain = normalized("NFKC", normalized("NFKC", text).casefold())
    return " ".join(plain.replace("_", " ").split())


def normalize(text: str) -> str:
    """Return the normal form of an answer for comparisons.

    Compatibility forms are unified (NFKC), case is folded, digits become those of ASCII, format
    characters, variation selectors and the tatweel are removed, and other characters than letters,
    marks and numbers become spaces; runs of spaces become one. Symbols are kept if they belong to a
    name of a fixed list (C++, C#, .NET) or to a number (1.5, 7:30, -5), and separators of thousands
    are removed. Diacritics and articles are kept, because they distinguish surface forms. Use it
    only for answers: it makes many names of a subject equal.

    Args:
        text: Any text.

    Returns:
        The normal form; applying the function again changes nothing. A text without any letter
        or number ("!!!") is returned as it is, without surrounding white space, so that it still
        equals itself and nothing else; only a blank text gives "".

    Examples:
        >>> normalize("  The ﬁrst  “Café”, Paris! ")
        'the first café paris'
        >>> normalize("U.S.A."), normalize("letter–word")
        ('u s a', 'letter word')
        >>> normalize("C++ and C#"), normalize("-1,000.5 at 7:30")
        ('c++ and c#', '-1000.5 at 7:30')
        >>> normalize("!!!")
        '!!!'
    """
    return " ".join(_words(text).split() or text.split())


def without_accents(text: str) -> str:
    """Return a text without the accents of Latin and Greek letters.

    Args:
        text: Any text.

    Returns:
        The text with the base letter of each ("é" becomes "e", "ø" "o", "æ" "ae", "ß" "ss"), in
        NFC. Letters and marks of other scripts are kept: "й" is not an accented "и", and vowel
        signs are letters.

    Examples:
        >>> without_accents("Łódź, Zürich, Ångström, Diyarbakır, Αθήνα")
        'Lodz, Zurich, Angstrom, Diyarbakir, Αθηνα'
    """
    plain = _ACCENTS.sub("", normalized("NFD", text).translate(_LETTERS))
    return normalized("NFC", plain)


def tokenize(text: str) -> list[str]:
    """Split a text into words, without changing them.

    Words are separated by white space. In scripts that are written without spaces, each character
    (with its marks) is a word, and so is each run of Katakana, which is used for foreign names.
    Korean is written with spaces and is split at them.

    Args:
        text: Any text; normalize it first to remove punctuation.

    Returns:
        The words in order; empty for a blank text.

    Examples:
        >>> tokenize("new york city")
        ['new', 'york', 'city']
        >>> tokenize("2020年の東京タワー")
        ['2020', '年', 'の', '東', '京', 'タワー']
    """
    return _with_spaces(text).split()


def script_runs(text: str) -> list[str]:
    """Split a text at changes of script, among the scripts that are written without spaces.

    Args:
        text: Any text.

    Returns:
        Runs of Han, of Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer and Burmese, of white space,
        and of everything else; joined they are the text.

    Examples:
        >>> script_runs("2020年の東京タワー")
        ['2020', '年', 'の', '東京', 'タワー']
    """
    return _compiled(_RUNS).findall(text)


def padded_words(texts: Sequence[str]) -> list[str]:
    """Return the words of many texts, normalised, each between spaces.

    In this form, a text that contains another as a substring contains its words in sequence. Many
    texts are processed as one long text, which is several times faster than one by one.

    Args:
        texts: Any texts.

    Returns:
        For each text, in order, `" ".join(tokenize(normalize(text)))` with a space at both ends.

    Examples:
        >>> padded_words(["Paris, France", "ÎLE", ""])
        [' paris france ', ' île ', '  ']
    """
    are_ascii = [text.isascii() for text in texts]
    ascii_forms = _padded_words([*compress(texts, are_ascii)])
    if len(ascii_forms) == len(texts):
        return ascii_forms
    ascii_ones = iter(ascii_forms)
    others = iter(_padded_words([text for text in texts if not text.isascii()]))
    return [next(ascii_ones) if is_ascii else next(others) for is_ascii in are_ascii]


def _padded_words(texts: list[str]) -> list[str]:
    """Process texts as one; those with the separator, or without words, are processed singly."""
    joined = f" {_SEPARATOR} ".join(texts)
    if not texts or joined.count(_SEPARATOR) >= len(texts):
        return [_padded(text) for text in texts]
    spaced = f" {_with_spaces(_words(joined))} "
    while "  " in spaced:
        spaced = spaced.replace("  ", " ")
    forms = spaced.split(_SEPARATOR)
    if " " in forms:
        return [
            _padded(text) if form == " " else form for form, text in zip(forms, texts, strict=True)
        ]
    return forms


def _padded(text: str) -> str:
    """Return the words of one text between spaces."""
    return f" {' '.join(tokenize(normalize(text)))} "


def _with_spaces(text: str) -> str:
    """Insert spaces around the words of scripts that are written without spaces."""
    return text if text.isascii() else _compiled(_UNSPACED_WORD).sub(r" \g<0> ", text)


def _words(text: str) -> str:
    """Fold a text and replace all but letters, marks, numbers and the separator by spaces."""
    if text.isascii():
        return _protected(text.lower()).translate(_ASCII_WORDS)
    folded = normalized("NFKC", _THIN_SPACE.sub(",", text)).casefold()
    plain = normalized("NFKC", _IGNORED.sub("", folded).replace("_", " "))
    plain = _OTHER_DIGIT.sub(lambda found: str(unicodedata.digit(found[0])), plain)
    for other, symbol in _OTHER_SYMBOLS:
        plain = plain.replace(other, symbol)
    lettered = _NO_LETTER.sub(lambda found: _KEPT[found[0]], _protected(plain))
    return _MARKS.sub(_without_lone_marks, lettered)


def _protected(text: str) -> str:
    """Replace the symbols of numbers and names by placeholders; remove separators from numbers."""
    if "acdc" not in text and not _SYMBOLIC.search(text):
        return text
    if _SEPARATOR in text:
        return _SEPARATOR.join(map(_protected, text.split(_SEPARATOR)))
    for placeholder in _PROTECTED.values():
        text = text.replace(placeholder, "\0")
    # ".5" becomes "0.5".
    text = _LEAD.sub(
        lambda lead: lead[0].replace("-", _PROTECTED["-"]).replace(".", f"0{_PROTECTED['.']}"),
        _NUMBER.sub(_number, text),
    )
    for symbol, pattern, replacement in _NAMES:
        if symbol in text:
            text = _compiled(pattern).sub(replacement, text)
    return text


def _number(match: re.Match[str]) -> str:
    """Join a number with a decimal point, with separators of thousands, or of a clock."""
    number = match[0]
    if grouped := _THOUSANDS.fullmatch(number):
        number = number.replace(grouped[1], "")
    elif not _DECIMAL_OR_CLOCK.fullmatch(number):
        return number
    return number.replace(".", _PROTECTED["."]).replace(":", _PROTECTED[":"])


def _without_lone_marks(match: re.Match[str]) -> str:
    """Remove marks at the start of a word (NFKC converts "´" to a space and a mark)."""
    marks, start = match[0], match.start()
    if start > 0 and match.string[start - 1] not in f" {_SEPARATOR}":
        return marks
    cut = 0
    while cut < len(marks) and unicodedata.category(marks[cut])[0] == "M":
        cut += 1
    return marks[cut:]


def _escaped(character: "re.Match[str] | str") -> str:
    """Write a character as JSON does."""
    letter = character if isinstance(character, str) else character[0]
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
