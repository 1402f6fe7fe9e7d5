"""The rule `segmented`, which finds words in scripts without spaces."""

import sys

import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.errors import MissingDependencyError
from surface_consistency.matching import BoundaryRule, SegmentedRule, segmented

TEXT = st.text(alphabet="aAbé ß-\x1e\x1f.2東京都カタのです한국", max_size=10)


@settings(max_examples=300, deadline=None)
@given(prediction=TEXT, answer=TEXT.filter(str.strip))
def test_segmented_matches_answers_that_start_and_end_at_word_boundaries(prediction, answer):
    """Compare with the definition by character positions."""
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
def test_segmented_equals_the_boundary_rule_in_scripts_with_spaces(prediction, answer):
    found = SegmentedRule(segmenter="script")(prediction, [answer]).is_match

    assert found is BoundaryRule()(prediction, [answer]).is_match


def test_segmented_rejects_missing_icu_and_invalid_segmenters(monkeypatch):
    segmented._segmenter.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)

    with pytest.raises(MissingDependencyError, match=r"icu4py.*surface-consistency\[lexical\]"):
        SegmentedRule()("東京都", ["京都"])
    with pytest.raises(ValueError, match="`segmenter` must be 'icu', 'script' or a function"):
        SegmentedRule(segmenter="mecab")
    with pytest.raises(ValueError, match="words of `segmenter` must form its text"):
        SegmentedRule(segmenter=lambda text: [text[1:]])("東京都", ["京都"])
