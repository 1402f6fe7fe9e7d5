"""Rules for the places at which a name may begin and end, as tables over character classes.

A rule defines for two adjacent characters whether they belong to one token, and whether a name may
begin or end between them.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

BoundaryRule = Literal["word", "longest", "script", "substring", "segmented"]
"""Characters that may be adjacent to a name. "word": all except letters, marks, digits and
underscores, in any script. "longest": the same for scripts with spaces between words; Chinese,
Japanese, Thai, Lao, Burmese and Khmer names may be between any two characters, so use the longest
counts. "script": the same, but such names end at a change of script (kanji, hiragana, katakana).
"substring": all characters. "segmented": the name begins and ends with words of a given segmenter.
"""

BOUNDARY_RULES: Final[tuple[str, ...]] = get_args(BoundaryRule)
"""The names of the rules."""

SPACE, OTHER, WORD, HAN, HIRAGANA, KATAKANA, UNSPACED, MARK, UNSPACED_MARK = range(9)
"""Classes of characters; UNSPACED are scripts without spaces except Chinese and Japanese."""

MAY_BREAK_NFC: Final = 0x80
"""Bit of characters that can make a text differ from NFC; a text without them is in NFC."""

_ASSIGNED_PLANES: Final = (0, 1, 2, 3, 14)
_SCRIPTS: Final = (
    (HAN, "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
    (HIRAGANA, "\u3041-\u309f"),
    (KATAKANA, "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
    (UNSPACED, "\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff\u3105-\u312f"),
)
_JOIN_CONTROLS: Final = "\u200c\u200d"
_SPACED: Final = (WORD, MARK)
_LETTERS: Final = (WORD, HAN, HIRAGANA, KATAKANA, UNSPACED, MARK, UNSPACED_MARK)


@cache
def character_classes() -> npt.NDArray[np.uint8]:
    """Classify all code points, by the Unicode version of this Python.

    Returns:
        Shape `(0x110000,)`: the class in the low four bits, and `MAY_BREAK_NFC`.
    """
    codes = [c for plane in _ASSIGNED_PLANES for c in range(plane << 16, (plane + 1) << 16)]
    table = np.full(0x110000, OTHER, dtype=np.uint8)
    words, marks = [], []
    for code in codes:
        category = unicodedata.category(chr(code))
        if category[0] in "LN" or category == "Pc":
            words.append(code)
        elif category[0] == "M":
            marks.append(code)
    table[words] = WORD
    table[[ord(character) for character in _JOIN_CONTROLS]] = WORD
    text = "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
    for name, ranges in _SCRIPTS:
        found = np.array([ord(c) for c in "".join(re.findall(f"[{ranges}]+", text))])
        table[found[table[found] == WORD]] = name
    table[marks] = MARK
    in_unspaced = re.compile("[\u3099\u309a" + "".join(ranges for _, ranges in _SCRIPTS) + "]")
    table[[code for code in marks if in_unspaced.match(chr(code))]] = UNSPACED_MARK
    table[[ord(character) for character in text if character.isspace()]] = SPACE
    table[_may_break_nfc(text)] |= MAY_BREAK_NFC
    table.flags.writeable = False
    return table


def _may_break_nfc(characters: str) -> list[int]:
    """List the characters that occur in texts that are not in NFC (UAX 15, quick check)."""
    found = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    for character in characters:
        if unicodedata.combining(character):
            found.add(ord(character))
        parts = unicodedata.decomposition(character)
        if parts and parts[0] != "<":
            _, *second = parts.split()
            found.update(int(code, 16) for code in second)
            if unicodedata.normalize("NFC", character) != character:
                found.add(ord(character))
    return sorted(found)


class BoundaryTables(NamedTuple):
    """Tables of a rule for two adjacent characters, by class: each of shape `(16, 16)`, uint8."""

    joins: npt.NDArray[np.uint8]
    """Whether the two belong to one token, which names do not split."""

    begins: npt.NDArray[np.uint8]
    """Whether a name may begin with the second character."""

    ends: npt.NDArray[np.uint8]
    """Whether a name may end with the first character."""


@cache
def boundary_tables(rule: BoundaryRule) -> BoundaryTables:
    """Return the tables of a rule.

    Args:
        rule: The rule. "segmented" has the tables of "substring"; its segmenter gives the ends of
            words.

    Returns:
        The tables. A character at an end of a text is adjacent to SPACE.

    Raises:
        ValueError: If the rule does not exist.
    """
    check_boundary(rule)
    joins = np.zeros((16, 16), dtype=np.uint8)
    if rule in {"substring", "segmented"}:
        return BoundaryTables(joins, joins + np.uint8(1), joins + np.uint8(1))
    beside: tuple[int, ...] = _LETTERS if rule == "word" else _SPACED
    if rule == "word":
        _set(joins, _LETTERS, _LETTERS)
    else:
        _set(joins, _SPACED, _SPACED)
        _set(joins, _LETTERS, (MARK, UNSPACED_MARK))
        if rule == "script":
            for script in (HAN, HIRAGANA, KATAKANA, UNSPACED):
                _set(joins, (script,), (script,))
            _set(joins, (UNSPACED_MARK,), (UNSPACED,))
    begins, ends = 1 - joins, 1 - joins
    _set(begins, beside, (OTHER,), 0)
    _set(ends, (OTHER,), beside, 0)
    return BoundaryTables(joins, begins, ends)


def check_boundary(rule: str) -> None:
    """Check the name of a rule.

    Args:
        rule: Name of a rule.

    Raises:
        ValueError: If the rule does not exist.
    """
    if rule not in BOUNDARY_RULES:
        raise ValueError(f"boundary must be one of {', '.join(BOUNDARY_RULES)}, got {rule!r}")


def rules_digest(rule: BoundaryRule) -> str:
    """Return a digest of the inputs of the kernel's tables, except the names.

    Args:
        rule: The rule.

    Returns:
        SHA-256 of the kernel, of Unicode and of the rule, in hexadecimal.
    """
    kernel = Path(__file__).with_name("_kernel.py").read_bytes()
    parts = (kernel, character_classes(), *boundary_tables(rule))
    return hashlib.sha256(b"".join(map(bytes, parts))).hexdigest()


def _set(
    table: npt.NDArray[np.uint8], firsts: Iterable[int], seconds: Iterable[int], value: int = 1
) -> None:
    """Set the cells of some classes next to other classes."""
    table[np.ix_([*firsts], [*seconds])] = value


def code_points(
    buffer: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Decode the character that starts at each position.

    Args:
        buffer: UTF-8.
        places: Byte offsets below its length, each at the start of a character.

    Returns:
        Their code points.
    """
    lead = buffer[places].astype(np.int64)
    width = 1 + (lead >= 0xC0).astype(np.int64) + (lead >= 0xE0) + (lead >= 0xF0)
    codes = np.where(width == 1, lead, lead & (0x7F >> width))
    for step in range(1, 4):
        following = buffer[np.minimum(places + step, buffer.size - 1)] & 0x3F
        codes = np.where(width > step, (codes << 6) | following, codes)
    return codes


def segment_edges(text: str, words: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Mark the starts and ends of a segmenter's words.

    Args:
        text: The text.
        words: Its words in order; white space between them may be omitted.

    Returns:
        Shape `(n_bytes + 1,)`: 1 at the start of a word, 2 at its end, 3 for both.

    Raises:
        ValueError: If a word does not follow in the text.
    """
    edges = np.zeros(len(text.encode()) + 1, dtype=np.uint8)
    place, byte = 0, 0
    for word in words:
        start = text.find(word, place)
        if start < 0 or text[place:start].strip():
            raise ValueError(
                f"the segmenter returned {word!r}, which does not follow "
                f"{text[max(place - 20, 0) : place]!r} in the text; it must return the unchanged "
                "words of the text, in order"
            )
        byte += len(text[place:start].encode())
        edges[byte] |= 1
        byte += len(word.encode())
        edges[byte] |= 2
        place = start + len(word)
    return edges
