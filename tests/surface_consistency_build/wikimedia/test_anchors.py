"""Plain text of pages."""

import pytest
from surface_consistency_build.wikimedia.anchors import plain_text
from surface_consistency_build.wikimedia.wikitext import SiteInfo

GERMAN = SiteInfo(namespaces={6: "Datei", 14: "Kategorie"})


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("[[paris]]", "paris"), ("[[Paris#History|its past]]", "its past"), ("[[bus]]es", "buses"),
        ("[[東京]]は", "東京は"), ("[[#Section|here]]", "here"),
        ("[[Seal (musician)|]] sang", "Seal sang"),
        ("[[fr:Paris]][[:fr:Paris|French]] x", "French x"), ("[[wikt:bus|bus]]", "bus"),
        ("[[Help:Links|help]]", "help"), ("[[:Category:Cities]]", "Category:Cities"),
        ("a[[File:A.jpg|thumb|of [[Rome]] and [[Paris|it]]]]b[[Category:C|k]]", "ab"),
        ("a {{infobox|x=[[Rome]]|y={{z}}}} b", "a  b"), ("a {{open [[Rome]]", "a {{open Rome"),
        ("{|\n|-\n| [[Rome]]\n{|\n|x\n|}\n|}\nb", "b"),
        ("a<ref>[[Rome]]</ref>b<ref name=x/>c", "abc"),
        ("a<nowiki>[[Rome]]</nowiki>b<!-- [[Rome]] -->", "ab"),
        ("== Past ==\n* '''One''' [[Rome]]", "Past\nOne Rome"),
        ("[https://a.org the site] &amp; R&D", "the site & R&D"), ("[[R&amp;D]]", "R&D"),
        ("[[Rome|''the'' city]]", "the city"), ("[[Rome", "[[Rome"), ("]]a[[ ]]", "]]a"),
    ],
)  # fmt: skip
def test_plain_text_removes_the_markup_of_wikitext(wikitext, text):
    assert plain_text(wikitext) == text


def test_names_of_namespaces_are_those_of_the_wiki():
    assert plain_text("[[Datei:A.jpg|mini]][[Kategorie:B]]c", GERMAN) == "c"
    assert plain_text("[[Datei:A.jpg|mini]]c") == "minic"
