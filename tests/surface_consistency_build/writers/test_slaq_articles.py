import json

import pytest
from surface_consistency_build.writers.slaq_articles import (
    clean_article,
    is_long_enough,
    read_articles,
)

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.errors import ColumnNotFoundError, RecordError, SourceNotFoundError

PAGE = """<!DOCTYPE html><html><head><title>T</title><style>p{color:red}</style></head><body>
<div class="hatnote">For other uses, see <a href="/x">X</a>.</div>
<table class="infobox"><tr><td>Area <table><tr><td>inner</td></tr></table> 5</td></tr></table>
<p>The <b>Punic Wars</b>   were&nbsp;three wars.<sup class="reference">[1]</sup>
E = mc<sup>2</sup>.</p>
<div id="toc" class="toc"><ul><li>Contents</li></ul></div>
<script>var x = "<p>no</p>";</script>
<img src="a.png" alt="picture"><h2>Origins<span class="mw-editsection">[edit]</span></h2>
<p>Line one<br>line two &amp; end</p>
<div class="navbox"><div>Navigation <div>deep</div></div></div><p>Last.</p></body></html>"""


def test_clean_article_keeps_the_running_text():
    """Appendix A.1: no tables, images, scripts, styles, hatnotes, navigation boxes, contents."""
    text = clean_article(PAGE)

    assert text.endswith(
        "The Punic Wars were three wars. E = mc2.\n\nOrigins\n\nLine one\n\nline two & end\n\nLast."
    )
    for part in ("other uses", "inner", "Area", "Contents", "var x", "edit", "Navigation", "deep"):
        assert part not in text


def test_clean_article_collapses_white_space():
    assert clean_article(" a  b\tc\n d \n \n\n e\r\n") == "a b c d\n\ne"
    assert clean_article("if a<b and c>d") == "if a<b and c>d"


def test_articles_are_read_from_rows(tmp_path):
    path = tmp_path / "articles.jsonl"
    rows = [
        {"title": "NaN", "url": "u", "category": "C", "text": "a  b", "pageviews": "1,234"},
        {"title": "B", "category": "D", "text": "<p>x</p><table>y</table>"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))

    assert list(read_articles(path)) == [
        SlaqArticle(title="NaN", category="C", text="a b", url="u", pageviews=1234),
        SlaqArticle(title="B", category="D", text="x"),
    ]


def test_articles_are_read_from_a_folder(tmp_path):
    (tmp_path / "Astronomy").mkdir()
    (tmp_path / "Astronomy" / "Ceres_(dwarf_planet).txt").write_text("\ufeffIt is small.")
    (tmp_path / "Loose.html").write_text("<p>Text</p>")

    articles = list(read_articles(tmp_path, category="Other"))

    assert [(one.title, one.category, one.text) for one in articles] == [
        ("Ceres (dwarf planet)", "Astronomy", "It is small."),
        ("Loose", "Other", "Text"),
    ]
    assert list(read_articles(tmp_path / "Loose.html", category="Other")) == articles[1:]


@pytest.mark.parametrize(
    ("text", "limits", "is_enough"),
    [
        ("x " * 1001, {}, True),
        ("x " * 1000, {}, False),
        ("xxxxxxxx " * 1000, {}, False),
        ("abc " * 10, {"min_words": 9, "min_characters": 40}, True),
        ("abc " * 10, {"min_words": 9, "min_characters": 41}, False),
        ("abc " * 10, {"min_words": 10, "min_characters": 1}, False),
    ],
)
def test_is_long_enough_requires_more_words_than_the_minimum(text, limits, is_enough):
    article = SlaqArticle(title="T", category="C", text=text)

    assert is_long_enough(article, **limits) is is_enough


ROW = {"title": "A", "text": "x", "category": "C"}


@pytest.mark.parametrize(
    ("name", "content", "category", "error", "message"),
    [
        ("a.jsonl", {"title": "A", "text": "x"}, None, ColumnNotFoundError, "'category'"),
        ("a.jsonl", ROW | {"text": ""}, None, RecordError, r"a\.jsonl:1: column 'text'"),
        ("a.jsonl", ROW | {"text": "<table>x</table>\n<p>"}, None, RecordError, "'text'"),
        ("a.jsonl", ROW | {"category": ""}, None, RecordError, "'category'"),
        ("A.txt", "caf\u00e9", "C", RecordError, r"A\.txt: not UTF-8 at byte 3"),
        ("A.txt", "x", None, RecordError, "category missing"),
        (".", None, None, SourceNotFoundError, r"no \.txt, .* file in folder"),
        ("nothing.pdf", None, None, SourceNotFoundError, "no articles at"),
        ("nothing.jsonl", None, None, SourceNotFoundError, "not found; expected a data file"),
    ],
)
def test_read_articles_rejects_invalid_sources(tmp_path, name, content, category, error, message):
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_text(text, encoding="latin-1")

    with pytest.raises(error, match=message):
        list(read_articles(tmp_path / name, category=category))
