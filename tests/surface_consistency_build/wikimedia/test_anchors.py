"""Plain text of pages and their links."""

import pytest
from surface_consistency_build.wikimedia.anchors import linked_text
from surface_consistency_build.wikimedia.wikitext import SiteInfo

GERMAN = SiteInfo(namespaces={6: "Datei", 14: "Kategorie"})


def read(wikitext, site=None):
    text, links = linked_text(wikitext, site)
    return text, [(text[link.start : link.stop], link.target) for link in links]


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        ("[[paris]]", "paris", [("paris", "Paris")]),
        ("[[Paris#History|its past]]", "its past", [("its past", "Paris")]),
        ("[[bus]]es", "buses", [("buses", "Bus")]),
        ("[[東京]]は", "東京は", [("東京", "東京")]),
        ("[[#Section|here]]", "here", []),
        ("[[Seal (musician)|]] sang", "Seal sang", [("Seal", "Seal (musician)")]),
        ("[[fr:Paris]][[:fr:Paris|French]] x", "French x", []),
        ("[[wikt:bus|bus]]", "bus", []),
        ("[[Help:Links|help]]", "help", []),
        ("[[:Category:Cities]]", "Category:Cities", []),
        ("a[[File:A.jpg|thumb|of [[Rome]] and [[Paris|it]]]]b[[Category:C|k]]", "ab", []),
        ("a {{infobox|x=[[Rome]]|y={{z}}}} b", "a  b", []),
        ("a {{open [[Rome]]", "a {{open Rome", [("Rome", "Rome")]),
        ("{|\n|-\n| [[Rome]]\n{|\n|x\n|}\n|}\nb", "b", []),
        ("a<ref>[[Rome]]</ref>b<ref name=x/>c", "abc", []),
        ("a<nowiki>[[Rome]]</nowiki>b<!-- [[Rome]] -->", "ab", []),
        ("== Past ==\n* '''One''' [[Rome]]", "Past\nOne Rome", [("Rome", "Rome")]),
        ("[https://a.org the site] &amp; R&D", "the site & R&D", []),
        ("[[R&amp;D]]", "R&D", [("R&D", "R&D")]),
        ("[[Rome|''the'' city]]", "the city", [("the city", "Rome")]),
        ("[[Rome", "[[Rome", []),
        ("]]a[[ ]]", "]]a", []),
    ],
)
def test_wikitext_becomes_text_and_links(wikitext, text, links):
    assert read(wikitext) == (text, links)


def test_names_of_namespaces_are_those_of_the_wiki():
    assert read("[[Datei:A.jpg|mini]][[Kategorie:B]]c", GERMAN) == ("c", [])
    assert read("[[Datei:A.jpg|mini]]c")[0] == "minic"
