from html import unescape
from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.report._markup import Html, data_text, join, tag


class _Reader(HTMLParser):
    """Collects the tags and the text of a piece of markup."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.text = ""

    def handle_starttag(self, name, attributes):
        self.tags.append((name, attributes))

    def handle_data(self, data):
        self.text += data


def _read(markup):
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(st.text())
def test_tag_is_safe_for_any_text(text):
    """Whatever the text, a reader sees one element, and the text where HTML can hold it."""
    reader = _read(tag("p", text, title=text))

    assert [name for name, _ in reader.tags] == ["p"]
    assert len(reader.text) == len(text)
    assert all(a in (b, "\ufffd") for a, b in zip(reader.text, text, strict=True))
    assert "<" not in str(tag("p", text))[3:-4]
    str(tag("p", text)).encode("utf-8")


@given(st.text(max_size=300))
def test_data_text_is_faithful(text):
    """Escaping and breaking opportunities do not change what is read."""
    shown = unescape(data_text(text).replace("<wbr>", ""))

    if text:
        assert shown.startswith("<bdi>")
        assert len(shown) == len("<bdi></bdi>") + len(text)
    else:
        assert shown == '<span class="none">empty</span>'


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA])
def test_data_text_is_none_where_absent(value):
    assert data_text(value) == '<span class="none">none</span>'


def test_data_text_is_cut_when_long():
    shown = data_text("<" * 1500)

    assert shown.count("&lt;") == 300
    assert "… 1,200 more characters" in shown


def test_tag_is_nested_without_escaping_twice():
    """Markup goes in as it is, text next to it is escaped, and control characters are shown."""
    inner = tag("b", "a & b")

    assert tag("p", inner, " < c\x00\ud800", class_="x") == (
        '<p class="x"><b>a &amp; b</b> &lt; c\ufffd\ufffd</p>'
    )
    assert join([Html("<i>"), "<i>"]) == "<i>&lt;i&gt;"
    assert tag("img", alt='"') == '<img alt="&quot;">'
    assert tag("meta", http_equiv="a", name="b") == '<meta http-equiv="a" name="b">'
