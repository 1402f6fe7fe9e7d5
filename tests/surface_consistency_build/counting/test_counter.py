import random
import re
import threading
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import given, settings, strategies as st
from surface_consistency_build.counting import (
    PackedTexts,
    SurfaceCounter,
    SurfaceTable,
    finder,
)
from surface_consistency_build.counting.boundaries import character_classes
from surface_consistency_build.counting.finder import NameFinder
from surface_consistency_build.counting.texts import comparable, comparable_texts

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


def table_of(*surfaces):
    return SurfaceTable.from_records([(f"Q{i}", name) for i, name in enumerate(surfaces)])


def counts_of(table, documents, **options):
    counter = SurfaceCounter(table, **options)
    counter.feed(documents)
    return counter.result()


def columns(counts):
    return {
        "bounded": counts.n_bounded.tolist(),
        "longest": counts.n_longest.tolist(),
        "documents": counts.n_documents.tolist(),
        "entities": counts.entity_documents.tolist(),
    }


@given(st.lists(names, min_size=1, max_size=8), st.lists(texts, max_size=4))
@settings(max_examples=150, deadline=None)
def test_counts_are_those_of_the_reference_under_every_rule_and_case(surfaces, documents):
    table = table_of(*surfaces)

    for boundary in RULES:
        for case in ("exact", "fold"):
            found = columns(counts_of(table, documents, boundary=boundary, case=case))
            expected = reference_counts(table, documents, boundary=boundary, case=case)
            assert found == expected, (boundary, case)


@given(st.lists(names, min_size=1, max_size=8), st.lists(texts, max_size=4))
@settings(max_examples=150, deadline=None)
def test_word_rule_agrees_with_lookarounds(surfaces, documents):
    table = table_of(*surfaces)

    counts = counts_of(table, documents)

    expected = []
    for name in table.keys:
        pattern = regex.compile(rf"(?<!{_WORDS}){regex.escape(name)}(?!{_WORDS})")
        expected.append(
            sum(
                len(pattern.findall(unicodedata.normalize("NFC", text), overlapped=True))
                for text in documents
            )
        )
    assert counts.n_bounded.tolist() == expected


@given(st.lists(names, min_size=1, max_size=30, unique=True), st.lists(texts, max_size=3))
@settings(max_examples=60, deadline=None)
def test_colliding_hashes_change_no_count(surfaces, documents):
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


def test_many_names_with_hashes_of_eight_bits():
    rng = random.Random(0)
    surfaces = [" ".join(rng.choices("abcdefgh", k=rng.randint(1, 6))) for _ in range(3_000)]
    distinct = PackedTexts.pack(dict.fromkeys(surfaces))
    packed = PackedTexts.pack([" ".join(rng.choices("abcdefghi", k=5_000))])

    narrow = NameFinder(distinct, hash_bits=8).find(packed)
    wide = NameFinder(distinct).find(packed)

    assert wide.keys.size > 10_000
    assert all(np.array_equal(a, b) for a, b in zip(narrow, wide, strict=True))


@pytest.mark.parametrize(
    ("boundary", "bounded", "longest"),
    [
        # Tokyo, Tokyo Tower, tower; "東京" stands also in "東京都".
        ("word", [1, 0, 0], [1, 0, 0]),
        ("longest", [3, 1, 2], [2, 1, 1]),
        ("script", [2, 1, 1], [1, 1, 0]),
        ("substring", [3, 1, 2], [2, 1, 1]),
    ],
)
def test_japanese_names(boundary, bounded, longest):
    table = table_of("東京", "東京タワー", "タワー")
    documents = ["東京タワーと東京都のタワーズ。", "「東京」"]

    counts = counts_of(table, documents, boundary=boundary)

    assert counts.n_bounded.tolist() == bounded
    assert counts.n_longest.tolist() == longest


def test_chinese_names_and_latin_words_beside_them():
    table = table_of("北京", "北京大学", "IBM", "BM")

    counts = counts_of(table, ["我在北京大学和IBM工作，北京很大。"], boundary="longest")

    assert counts.n_bounded.tolist() == [2, 1, 1, 0]
    assert counts.n_longest.tolist() == [1, 1, 1, 0]
    assert counts_of(table, ["在IBM工作"]).n_bounded.tolist() == [0, 0, 0, 0]


def test_segmented_names_begin_and_end_with_words():
    table = table_of("東京", "京都", "東京都")

    def words(text):
        return re.findall("東京都|東京|に|行く|京都", text)

    counts = counts_of(
        table, ["東京都に行く 京都に行く", "", "東京に"], boundary="segmented", segmenter=words
    )

    assert counts.n_bounded.tolist() == [1, 1, 1]


def test_segmenter_that_invents_a_word_is_named():
    counter = SurfaceCounter(table_of("a"), boundary="segmented", segmenter=lambda text: ["a", "c"])

    with pytest.raises(ValueError, match=r"the segmenter gave 'c', which does not follow 'a'"):
        counter.feed(["a b c"])


def test_a_name_inside_a_longer_one_is_bounded_and_not_longest():
    table = table_of("The Beatles", "Beatles", "Janet Lee Bouvier", "Lee Bouvier")

    counts = counts_of(table, ["The Beatles met Janet Lee Bouvier; Beatles"])

    assert counts.n_bounded.tolist() == [1, 2, 1, 1]
    assert counts.n_longest.tolist() == [1, 1, 1, 0]


def test_names_never_reach_over_the_end_of_a_document():
    table = table_of("New York", "York", "Yorkshire")

    counts = counts_of(table, ["New", " York", "York", "shire", "", "New York"])

    assert counts.n_bounded.tolist() == [1, 3, 0]
    assert counts.documents == 6


def test_a_name_counts_with_one_space_for_each_of_its_spaces():
    table = table_of("New  York ")

    counts = counts_of(table, ["New York", "New  York", "New\nYork", "NewYork"])

    assert counts.n_bounded.tolist() == [1]


def test_composed_and_decomposed_letters_are_one():
    table = table_of("Beyonce\u0301", "한국")

    counts = counts_of(table, ["Beyoncé Beyonce\u0301", "\u1112\u1161\u11ab국"])

    assert counts.n_bounded.tolist() == [2, 1]


def test_folded_names_share_a_count():
    table = table_of("Straße", "STRASSE", "up")

    counts = counts_of(table, ["strasse Straße Up UP"], case="fold")

    assert counts.n_bounded.tolist() == [2, 2, 2]
    assert counts_of(table, ["strasse Up UP"]).n_bounded.tolist() == [0, 0, 0]


def test_a_shared_name_counts_for_both_entities():
    table = SurfaceTable.from_records(
        [("Q90", "Paris"), ("Q830149", "Paris"), ("Q90", "City of Light")]
    )

    counts = counts_of(table, ["Paris, City of Light", "City of Light", "x"])

    assert counts.n_documents.tolist() == [1, 2]
    assert counts.entity_documents.tolist() == [2, 1]


def test_letters_off_and_shuffled_words():
    rng = random.Random(1)
    words = [f"w{i}" for i in range(50)]
    documents = [" ".join(rng.choices(words, k=200)) for _ in range(20)]
    planted = [" ".join(rng.sample(words, 3)) for _ in range(10)]
    documents = [f"{text} {rng.choice(planted)}" for text in documents]
    shuffled = [" ".join(rng.sample(text.split(), len(text.split()))) for text in documents]
    table = table_of(*planted, *(f"{name}x" for name in planted))

    counts = counts_of(table, documents)

    assert counts.n_bounded[:10].sum() >= 20
    assert counts.n_bounded[10:].sum() == 0
    again = counts_of(table, rng.sample(documents, len(documents)))
    assert columns(again) == columns(counts)
    assert counts_of(table, shuffled).n_bounded.sum() < counts.n_bounded.sum() / 2


def test_a_line_of_ten_million_bytes():
    table = table_of("needle")
    text = "hay " * 2_500_000 + "needle"

    assert counts_of(table, [text]).n_bounded.tolist() == [1]


def test_more_hits_in_a_document_than_room():
    table = table_of("a", "a a", "a a a")

    counts = counts_of(table, ["x", "a " * 40_000, "a"], boundary="word")

    assert counts.n_bounded.tolist() == [40_001, 39_999, 39_998]
    assert counts.n_longest.tolist() == [2, 0, 13_333]


def test_invalid_bytes_and_half_characters_are_counted():
    table = table_of("Zo", "Zoë")

    counts = counts_of(table, [b"Zo\xeb", "Zo\udcff", "Zoë", b"Zo\x00"])

    assert counts.n_repaired == 2
    assert counts.n_bounded.tolist() == [3, 1]


def test_no_documents_and_empty_ones():
    table = table_of("a")

    assert columns(counts_of(table, []))["bounded"] == [0]
    counts = counts_of(table, ["", ""])
    assert counts.documents == 2
    assert counts.n_bounded.tolist() == [0]


def test_feeding_in_batches_is_feeding_at_once():
    table = table_of("a", "b c")
    documents = ["a b c", "b", "c a", "b c"]
    counter = SurfaceCounter(table)
    for document in documents:
        counter.feed([document])

    assert columns(counter.result()) == columns(counts_of(table, documents))


def test_siblings_count_apart_in_threads():
    table = table_of("a", "b c")
    first = SurfaceCounter(table)
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
def test_options_that_are_no_choices(options, message):
    with pytest.raises(ValueError, match=message):
        SurfaceCounter(table_of("a"), **options)


def test_repeated_names_are_refused():
    with pytest.raises(ValueError, match="names must be distinct"):
        NameFinder(PackedTexts.pack(["a", "b", "a"]))


def test_more_names_than_can_be_numbered(monkeypatch):
    monkeypatch.setattr(finder, "_MOST_NAMES", 2)

    SurfaceCounter(table_of("a", "b"))
    with pytest.raises(DataError, match="3 names are more than 2; count them in parts"):
        SurfaceCounter(table_of("a", "b", "c"))


@given(st.lists(texts, max_size=6), st.sampled_from(["exact", "fold"]))
@settings(max_examples=150, deadline=None)
def test_packed_texts_take_the_form_that_one_by_one_they_take(documents, case):
    packed = PackedTexts.pack(documents)

    assert list(comparable_texts(packed, case)) == [comparable(text, case) for text in documents]
    assert list(NameFinder(PackedTexts.pack(["a"]), case=case).prepare(packed)) == [
        comparable(text, case) for text in documents
    ]


def test_scripts_without_spaces_are_those_of_tokenize():
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
