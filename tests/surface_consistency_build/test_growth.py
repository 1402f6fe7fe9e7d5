"""The cost of parsing hostile dumps, wikitext and replies grows linearly with their length."""

import json
from contextlib import suppress
from functools import partial

import pytest
from surface_consistency_build.counting.texts import comparable
from surface_consistency_build.wikimedia.anchors import plain_text
from surface_consistency_build.wikimedia.pages_xml import link_parts, read_pages, redirect_link
from surface_consistency_build.wikimedia.sql import read_sql
from surface_consistency_build.wikimedia.sql_tables import (
    decode_literal,
    name_of,
    parse_create_table,
)
from surface_consistency_build.wikimedia.wikidata import read_entity_batches
from surface_consistency_build.wikimedia.wikitext import (
    SiteInfo,
    category_links,
    rendered_part,
    template_calls,
)
from surface_consistency_build.writers.slaq_written import parse_written

from surface_consistency.errors import DataError
from tests.faults.test_growth import SIZE, check_growth, compare_work

UNITS = (
    *(" ", "\n", "\n ", "\t", "a", "a,", "_", ":", "#", "*", "&", "%41", "(", " (a) ", "1", "-"),
    *("[", "[[", "]]", "[[a]]", "[[a|", "[[a:", "[[File:a]]", "[[File:a|[[b]]", "[[Category:a|"),
    *(
        "[[Category:a]]",
        "[[ ",
        "[http:",
        "[//a ",
        "{",
        "{{",
        "}}",
        "{{a",
        "{{a|",
        "{{a}}",
        "{{{{a}}",
    ),
    *("\n{|", "\n|}", "{{{|}", "|", "<!--", "<nowiki>", "<nowiki ", "<pre/", "<source>a</sourc"),
    *(
        "<ref>",
        "<ref ",
        "<ref/>",
        "<ref",
        "<gallery>a",
        "<br",
        "<br ",
        "<a",
        "</a",
        "=",
        "\n= a ",
        "'",
    ),
    *("\u0301\u0327", "\u200e", "#REDIRECT [[", "#a [["),
)
SQL = ("'", "\\'", "''", "`", "``", "``a", '"', "(", ")", "(,", "a,", "a.", "--\n", "-- ", "/*a")
SQL += ("/*,", "/**/", "`a` int,", "_a", "x'", "1.", "0x1", " ", ";", "#", "a (", "(1,'a'),")
REPLIES = ("<think>", "<reasoning>", "</think>", "```\n", "```", "``` a", "{", "}", "[", '{"a":')
REPLIES += ("q1: a\n", "q1 :", "q1:*", "q1: {", "q1", "short", "short ", "shortq1 ", '"', "'", "`")
REPLIES += (
    "*",
    "_",
    " ",
    ",",
    " ,",
    "-",
    "> ",
    "1) ",
    "<a ",
    "[a",
    '\\"',
    "not ",
    "1,",
    "a.",
    "\n",
)
TEXTS = {
    "rendered_part": (rendered_part, UNITS),
    "template_calls": (template_calls, UNITS),
    "category_links": (category_links, UNITS),
    "plain_text": (plain_text, UNITS),
    "redirect_link": (lambda text: redirect_link(text, is_known=True), UNITS),
    "title": (SiteInfo().title, UNITS),
    "link_parts": (link_parts, UNITS),
    "comparable": (comparable, UNITS),
    "create_table": (lambda text: parse_create_table(text.encode()), SQL),
    "literal": (lambda text: decode_literal(text.encode(), "bytes"), SQL),
    "number": (lambda text: decode_literal(text.encode(), "integer"), SQL),
    "name": (lambda text: name_of(text.encode()), SQL),
    "reply": (parse_written, REPLIES),
}
EDGES = {
    "template_calls": [("{{", "}}"), ("{{a|", "")],
    "category_links": [("[[Category:", "x")],
    "plain_text": [("=", "x"), ("= a", "x"), ("[[File:a|", "]]"), ("[[", "]]"), ("[[a", "|]]")],
    "redirect_link": [("#REDIRECT", "x"), ("#REDIRECT [[", "x"), ("#a", "x")],
    "create_table": [
        ("CREATE TABLE ", "x"),
        ("CREATE TABLE `a` (", "x"),
        ("CREATE TABLE a (b", ")"),
    ],
    "literal": [("'", "'"), ("x'", "'"), ("0x", "")],
    "number": [("0x", "")],
    "reply": [("q1: ", "x"), ("q1: x", ","), ("q1: x", "x}"), ("{", "}"), ("<think>", "</think>")],
}


def parse(work, *arguments):
    """Parse, or raise an error."""
    with suppress(DataError, ValueError, IndexError):
        work(*arguments)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", TEXTS)
def test_cost_of_parsing_texts_is_linear(name):
    work, units = TEXTS[name]
    for before, after in [("", ""), ("x", "x"), *EDGES.get(name, ())]:
        for unit in units:
            check_growth(partial(parse, work), unit, before, after)


HEAD = "CREATE TABLE `page` (`page_id` int, `page_title` varbinary(255));\n"
INSERT = f"{HEAD}INSERT INTO `page` VALUES "
PAGES = '<mediawiki version="0.11">'
PAGE = "<page><title>a</title><ns>0</ns><id>1</id><revision><id>1</id><text>"
DUMPS = [
    *[("sql", "", unit) for unit in SQL],
    *[("sql", HEAD, unit) for unit in ("/* ", "-- ", "# ", "--\n", "SET a='", "a;", "INSERT ")],
    *[
        ("sql", INSERT, unit)
        for unit in ("(1,'a'),", "(1,'", "(1,'a\\'", "(", "(1,", " ", "(1,_a ")
    ],
    *[("xml", "", unit) for unit in ("<a", "<a>", " ", "<!--", "<mediawiki ")],
    *[("xml", PAGES, unit) for unit in ("<page>", "<a b='", "<page/>", "<!-- ", "&amp;", "<a/>")],
    *[("xml", PAGES, f"{PAGE}a</text></revision></page>"), ("xml", PAGES, "<siteinfo/>")],
    *[("xml", PAGES + PAGE, unit) for unit in ("a", "&amp;", "<a/>", "\n", "<text>", "]]>")],
    *[("xml", f"{PAGES}<siteinfo>", "<namespace key='1'>a</namespace>")],
    *[
        ("json", "[\n", unit)
        for unit in ("{},\n", '{"id": "Q1"},\n', "[", "{", '"', "\n", '{"id":')
    ],
    *[("json", '[\n{"id": "Q1", "labels": {', unit) for unit in ('"a": {}, ', '"en": [', "\\")],
    *[("json", '[\n{"id": "Q1", "claims": {"P1": [', unit) for unit in ("{}, ", "[", '{"a": ')],
]
READERS = {
    "sql": lambda path: list(read_sql(path, ["page_id", "page_title"])),
    "xml": lambda path: list(read_pages(path)),
    "json": lambda path: list(
        read_entity_batches(path, properties=["P1"], language="en", wiki="enwiki")
    ),
}


@pytest.mark.parametrize(("kind", "before", "unit"), DUMPS)
def test_cost_of_reading_dumps_is_linear(tmp_path, kind, before, unit):
    name = {"sql": "enwiki-20260101-page.sql", "xml": "pages.xml", "json": "entities.json"}[kind]
    paths = [tmp_path / size / name for size in ("small", "large")]
    for path, n in zip(paths, (SIZE, 16 * SIZE), strict=True):
        path.parent.mkdir()
        path.write_text(before + unit * (n // len(unit)))
    compare_work(partial(parse, READERS[kind]), *paths, json.dumps(unit))
