import random
import re
import threading
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import given, settings, strategies as st
from surface_consistency_build.counting import SurfaceCounter, SurfaceTable, finder
from surface_consistency_build.counting.boundaries import character_classes
from surface_consistency_build.counting.finder import NameFinder
from surface_consistency_build.counting.texts import PackedTexts, comparable, comparable_texts

from surface_consistency.errors import DataError
from surface_consistency.text import tokenize
from tests.surface_consistency_build.counting.reference import reference_counts, spans

RULES = ("word", "longest", "script", "substring")
_WORDS = r"[\p{L}\p{M}\p{N}\p{Pc}\u200c\u200d]"

PIECES = [
    *("a", "b", "A", "ab", "ba", "New York", "York", "Zoë", "e\u0301", "é", "ß", "SS", "İ", "ﬁ"),
    *("東", "京", "東京", "タワー", "に", "の", "ก", "กา", "ำ", "가", "\u1112\u1161\u11ab", "한"),
    *("🇫🇷", "👩\u200d👧", "𝒜", "𐐀", "𐐨", "\u0301", "\u3099", "\u200d", "\ufe0f", "\u0307"),
    *(" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u200b", "\x00", "_", "-", ".", "!", "("),
    *("א", "ب", "\u202e", "ِ", "1", "²", "C++", "D.C.", ".us", "'s"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
names = (
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=4)
    .map(lambda parts: " ".join("".join(parts).split()))
    .filter(lambda name: name and "\x00" not in name)
)


TOKYO, IN_TOKYO = ("東京", "東京タワー", "タワー"), ["東京タワーと東京都のタワーズ。", "「東京」"]
BEIJING, IN_BEIJING = ("北京", "北京大学", "IBM", "BM"), ["我在北京大学和IBM工作，北京很大。"]
BEATLES = ("The Beatles", "Beatles", "Janet Lee Bouvier", "Lee Bouvier")
STREETS, ROWS_OF_A = ("Straße", "STRASSE", "up"), ("a", "a a", "a a a")
HANGUL = "\u1112\u1161\u11ab국"


def table_of(*surfaces):
    """Give the names to three entities in turn."""
    return SurfaceTable.from_records([(f"Q{i % 3}", name) for i, name in enumerate(surfaces)])


def counts_of(table, documents, **options):
    counter = SurfaceCounter(table, **options)
    for batch in (documents[:1], documents[1:]):
        counter.feed(batch)
    return counter.result()


@given(st.lists(names, min_size=1, max_size=8), st.lists(texts, max_size=4))
@settings(max_examples=150, deadline=None)
def test_counts_equal_those_of_the_reference_under_every_rule_and_case(surfaces, documents):
    table = table_of(*surfaces)

    for boundary in RULES:
        for case in ("exact", "fold"):
            found = counts_of(table, documents, boundary=boundary, case=case)
            expected = reference_counts(table, documents, boundary=boundary, case=case)
            for name, counts in expected.items():
                column = "entity_documents" if name == "entities" else f"n_{name}"
                assert getattr(found, column).tolist() == counts, (boundary, case)


@given(st.lists(names, min_size=1, max_size=8), st.lists(texts, max_size=4))
@settings(max_examples=150, deadline=None)
def test_word_rule_agrees_with_regular_expressions(surfaces, documents):
    table = table_of(*surfaces)

    counts = counts_of(table, documents)

    composed = [unicodedata.normalize("NFC", text) for text in documents]
    for name, found in zip(table.keys, counts.n_bounded, strict=True):
        pattern = regex.compile(rf"(?<!{_WORDS}){regex.escape(name)}(?!{_WORDS})")
        assert found == sum(len(pattern.findall(text, overlapped=True)) for text in composed)


@given(st.lists(names, min_size=1, max_size=30, unique=True), st.lists(texts, max_size=3))
@settings(max_examples=60, deadline=None)
def test_colliding_hashes_do_not_change_counts(surfaces, documents):
    distinct = PackedTexts.pack(table_of(*surfaces).keys)
    packed = PackedTexts.pack(documents)

    for rule in RULES:
        prepared = NameFinder(distinct, boundary=rule).prepare(packed)
        expected = [
            [text, begin + len(whole[:start].encode()), begin + len(whole[:stop].encode()), key]
            for text, whole in enumerate(prepared)
            for begin in [int(prepared.offsets[text])]
            for start, stop, key in spans(list(distinct), whole, rule)
        ]
        for bits in (64, 8, 0):
            found = NameFinder(distinct, boundary=rule, hash_bits=bits).find(prepared)
            assert np.array(found).T.tolist() == expected, (rule, bits)


@pytest.mark.parametrize(
    ("names", "documents", "options", "bounded", "longest"),
    [
        # Tokyo, Tokyo Tower, tower; "東京" is also a part of "東京都".
        (TOKYO, IN_TOKYO, {"boundary": "word"}, [1, 0, 0], [1, 0, 0]),
        (TOKYO, IN_TOKYO, {"boundary": "longest"}, [3, 1, 2], [2, 1, 1]),
        (TOKYO, IN_TOKYO, {"boundary": "script"}, [2, 1, 1], [1, 1, 0]),
        (TOKYO, IN_TOKYO, {"boundary": "substring"}, [3, 1, 2], [2, 1, 1]),
        (BEIJING, IN_BEIJING, {"boundary": "longest"}, [2, 1, 1, 0], [1, 1, 1, 0]),
        (BEIJING, ["在IBM工作"], {}, [0] * 4, [0] * 4),
        (BEATLES, ["The Beatles met Janet Lee Bouvier; Beatles"], {}, [1, 2, 1, 1], [1, 1, 1, 0]),
        # Names do not extend over the end of a document.
        (("New York", "York", "Yorks"), ["New", " York", "York", "s"], {}, [0, 2, 0], [0, 2, 0]),
        # All white space in a name is one space.
        (("New  York ",), ["New York", "New  York", "New\nYork", "NewYork"], {}, [1], [1]),
        (("Beyonce\u0301", "한국"), ["Beyoncé Beyonce\u0301", HANGUL], {}, [2, 1], [2, 1]),
        (STREETS, ["strasse Straße Up UP"], {"case": "fold"}, [2, 2, 2], [2, 2, 2]),
        (STREETS, ["strasse Up UP"], {}, [0] * 3, [0] * 3),
        (("needle",), ["hay " * 2_500_000 + "needle"], {}, [1], [1]),
        # More hits in a document than the buffer can hold.
        (ROWS_OF_A, ["x", "a " * 40_000, "a"], {}, [40_001, 39_999, 39_998], [2, 0, 13_333]),
        (("Zo", "Zoë"), [b"Zo\xeb", "Zo\udcff", "Zoë", b"Zo\x00"], {}, [3, 1], [3, 1]),
        (("a",), [], {}, [0], [0]),
        (("a",), ["", ""], {}, [0], [0]),
    ],
)
def test_names_in_example_texts_are_counted(names, documents, options, bounded, longest):
    counts = counts_of(table_of(*names), documents, **options)

    assert counts.n_bounded.tolist() == bounded
    assert counts.n_longest.tolist() == longest
    assert counts.documents == len(documents)
    assert counts.n_repaired == 2 * (names == ("Zo", "Zoë"))


def test_segmented_names_begin_and_end_with_words():
    table = table_of("東京", "京都", "東京都")

    def words(text):
        return re.findall("東京都|東京|に|行く|京都", text)

    counts = counts_of(
        table, ["東京都に行く 京都に行く", "", "東京に"], boundary="segmented", segmenter=words
    )

    assert counts.n_bounded.tolist() == [1, 1, 1]
    invalid = SurfaceCounter(table_of("a"), boundary="segmented", segmenter=lambda text: ["a", "c"])
    with pytest.raises(ValueError, match=r"the segmenter returned 'c', which does not follow 'a'"):
        invalid.feed(["a b c"])


def test_siblings_count_separately_in_threads():
    first = SurfaceCounter(table_of("a", "b c"))
    counters = [first, first.sibling(), first.sibling()]
    threads = [
        threading.Thread(target=counter.feed, args=(["a b c"] * 2_000,)) for counter in counters
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [c.result().n_bounded.tolist() for c in counters] == [[2_000, 2_000]] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"boundary": "words"}, "boundary must be one of word, longest, script"),
        ({"case": "lower"}, "case must be one of exact, fold, got 'lower'"),
        ({"boundary": "segmented"}, "boundary='segmented' needs a segmenter"),
        ({"segmenter": str.split}, "a segmenter is for boundary='segmented', not for 'word'"),
    ],
)
def test_invalid_options_of_a_counter_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        SurfaceCounter(table_of("a"), **options)


def test_more_names_than_the_maximum_are_rejected(monkeypatch):
    monkeypatch.setattr(finder, "_MAX_NAMES", 2)

    SurfaceCounter(table_of("a", "b"))
    with pytest.raises(ValueError, match="names must be distinct"):
        NameFinder(PackedTexts.pack(["a", "a"]))
    with pytest.raises(DataError, match="3 names are more than 2; count them in parts"):
        SurfaceCounter(table_of("a", "b", "c"))


@given(st.lists(texts, max_size=6), st.sampled_from(["exact", "fold"]))
@settings(max_examples=150, deadline=None)
def test_packed_texts_are_normalised_like_single_texts(documents, case):
    packed = PackedTexts.pack(documents)

    assert list(comparable_texts(packed, case)) == [comparable(text, case) for text in documents]
    assert list(NameFinder(PackedTexts.pack(["a"]), case=case).prepare(packed)) == [
        comparable(text, case) for text in documents
    ]


def test_scripts_without_spaces_equal_those_of_tokenize():
    classes = character_classes() & 0x0F
    unspaced = set(np.flatnonzero((classes >= 3) & (classes <= 6)).tolist())
    half_width = set(range(0xFF66, 0xFFA0))

    for code in range(0x10000):
        character = chr(code)
        if 0xD800 <= code < 0xE000 or not character.isalnum() or code in half_width:
            continue
        is_split = len(tokenize(f"a{character}a")) == 3
        assert is_split == (code in unspaced), hex(code)


def test_texts_without_marked_characters_are_in_nfc():
    free = [
        chr(code)
        for code in range(0x20, 0x30000)
        if not character_classes()[code] & 0x80 and not 0xD800 <= code < 0xE000
    ]
    rng = random.Random(0)

    assert unicodedata.is_normalized("NFC", "".join(free))
    for _ in range(2):
        rng.shuffle(free)
        assert unicodedata.is_normalized("NFC", "".join(free))
