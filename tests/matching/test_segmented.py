"""The rule that looks for whole words where they are written without spaces."""

import sys

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import MissingDependencyError
from surface_consistency.matching import BoundaryRule, SegmentedRule, match_columns, segmented

TEXT = st.text(alphabet="aAbé ß-\x1e\x1f.2東京都カタのです한국", max_size=10)


@pytest.fixture
def icu():
    """Skip where ICU is not installed."""
    pytest.importorskip("icu4py")


@pytest.mark.usefixtures("icu")
@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("それは東京都です。", "京都", False),
        ("それは東京都です。", "東京都", True),
        ("彼は京都に住んでいます", "京都", True),
        ("テヘランはイランの首都です", "ラン", False),
        ("テヘランはイランの首都です", "イラン", True),
        ("中国的首都是北京", "北京", True),
        ("中国的首都是北京市", "北京", False),
        ("他住在南京东路", "京东", False),
        ("กรุงเทพมหานครเป็นเมืองหลวงของไทย", "ไทย", True),
        ("ประเทศไทย", "เทศ", False),
        ("In 東京都, of course", "東京都", True),
        ("It is Tirana.", "Iran", False),
        ("The U.S. Army", "U.S.", True),
    ],
)
def test_match_segmented_minds_words(prediction, answer, is_match):
    assert SegmentedRule()(prediction, [answer]).is_match is is_match
    assert match_columns([prediction], [[answer]], rule="segmented").is_match == [is_match]


@pytest.mark.parametrize(
    ("prediction", "answer", "is_match"),
    [
        ("それは東京都です", "京都", False),
        ("それは東京都です", "東京", False),
        ("それは東京です", "東京", True),
        ("タワーは東京タワーです", "東京タワー", True),
        ("東京タワー", "タワー", True),
        ("2020年", "2020", True),
        ("ไทยแลนด์", "ไทย", False),
    ],
)
def test_script_segmenter_wants_whole_runs(prediction, answer, is_match):
    """Without a library a word ends where the script changes."""
    found = SegmentedRule(segmenter="script")(prediction, [answer])

    assert found.is_match is is_match


def test_a_segmenter_of_ones_own_is_asked():
    cuts = {"東京都に住む": ["東京", "都", "に", "住む"]}
    rule = SegmentedRule(segmenter=lambda text: cuts.get(text, [text]))

    assert [rule("東京都に住む", [name]).is_match for name in ("東京", "京都")] == [True, False]
    with pytest.raises(ValueError, match="words of `segmenter` must give the text again"):
        SegmentedRule(segmenter=lambda text: [text[1:]])("東京都", ["京都"])


@settings(max_examples=300, deadline=None)
@given(prediction=TEXT, answer=TEXT.filter(str.strip))
def test_match_segmented_finds_what_stands_at_the_ends_of_runs(prediction, answer):
    """Held against the definition, character by character."""
    rule = SegmentedRule(segmenter="script")
    key, needle = rule.keys([prediction])[0], rule.keys([answer])[0].replace("\x1f", "").strip()
    ends, text = set(), ""
    for part in key.split(" "):
        for word in part.split("\x1f"):
            ends |= {len(text), len(text) + len(word)}
            text += word
        text += " "
    starts = [place for place in range(len(text)) if text.startswith(needle, place)]
    expected = any({start, start + len(needle)} <= ends for start in starts)

    assert rule(prediction, [answer]).is_match is expected


@settings(max_examples=300, deadline=None)
@given(
    prediction=st.text(alphabet="aAbé ß-.2한국", max_size=10),
    answer=st.text(alphabet="aAb2한", min_size=1, max_size=2),
)
def test_match_segmented_is_the_boundary_rule_where_there_are_spaces(prediction, answer):
    found = SegmentedRule(segmenter="script")(prediction, [answer]).is_match

    assert found is BoundaryRule()(prediction, [answer]).is_match


def test_segmented_names_the_extra_of_icu_and_the_segmenters(monkeypatch):
    segmented._segmenter.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)

    with pytest.raises(MissingDependencyError, match=r"icu4py.*surface-consistency\[lexical\]"):
        SegmentedRule()("東京都", ["京都"])
    with pytest.raises(ValueError, match="`segmenter` must be 'icu', 'script' or a function"):
        SegmentedRule(segmenter="mecab")
