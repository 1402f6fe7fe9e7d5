import bz2
import re
import tracemalloc
import warnings
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia.pages_xml import (
    REDIRECT_WORDS,
    WikiPage,
    read_pages,
    read_redirects,
    redirect_link,
)
from surface_consistency_build.wikimedia.rcat_templates import categories_of_templates

from surface_consistency.errors import DataError, DataWarning
from tests.surface_consistency_build.wikimedia.made_exports import page_xml

SLICE = "enwiki-slice-pages-articles.xml.bz2"
SAMPLE = "enwiki-sample-pages-articles.xml.bz2"
AAWIKI = "aawiki-20260101-pages-meta-current.xml.bz2"
SITE = """<siteinfo><dbname>t</dbname><namespaces><namespace key="0" case="first-letter" />
<namespace key="2" case="first-letter">Benutzer</namespace></namespaces></siteinfo>"""
# Characters of XML 1.0, without "\r", which all XML readers convert to "\n".
XML_TEXT = st.text(
    st.characters(
        exclude_categories=("Cs",),
        exclude_characters="".join(map(chr, (*range(9), *range(11, 32), 0xFFFE, 0xFFFF))),
    )
)


def write(path, body, version="0.11"):
    path.write_text(
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">'
        f"{SITE}{body}</mediawiki>",
        encoding="utf-8",
    )
    return path


def with_element_tree(path):
    """Read a complete export with another XML library."""
    root = ElementTree.fromstring(bz2.decompress(path.read_bytes()))
    uri = root.tag.partition("}")[0] + "}"
    pages = []
    for page in root.findall(f"{uri}page"):
        redirect = page.find(f"{uri}redirect")
        pages.append(
            WikiPage(
                page_id=int(page.findtext(f"{uri}id", "")),
                namespace=int(page.findtext(f"{uri}ns", "")),
                title=page.findtext(f"{uri}title", ""),
                redirect=None if redirect is None else redirect.get("title", ""),
                text=page.findall(f"{uri}revision")[-1].findtext(f"{uri}text") or "",
            )
        )
    return pages


@pytest.mark.parametrize(("name", "n_pages"), [(SLICE, 147), (SAMPLE, 3), (AAWIKI, 507)])
def test_pages_agree_with_element_tree(data_files, name, n_pages):
    path = data_files / "wikimedia" / name

    pages = list(read_pages(path, namespaces=None))

    assert len(pages) == n_pages
    assert pages == with_element_tree(path)
    wanted = [page for page in pages if page.namespace in {0, 2}]
    assert list(read_pages(path, namespaces={0, 2})) == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(XML_TEXT.filter(bool), XML_TEXT), max_size=5))
def test_read_pages_equal_the_written_ones(pages):
    body = "".join(page_xml(*page, page_id=number) for number, page in enumerate(pages))
    with TemporaryDirectory() as folder:
        read = list(read_pages(write(Path(folder, "x.xml"), body)))

    assert [(page.title, page.text) for page in read] == pages
    assert [page.page_id for page in read] == list(range(len(pages)))


def test_pages_are_read_from_the_last_revision_and_main_slot(tmp_path):
    body = (
        "<page><title>A</title><ns>0</ns><id>4</id><revision><id>1</id><text>old</text></revision>"
        "<revision><id>2</id><contributor><id>3</id></contributor><text>new</text>"
        "<content><role>other</role><text>slot</text></content></revision></page>"
        '<page><title>B</title><ns>0</ns><id>5</id><revision><text deleted="deleted" /></revision>'
        "</page>"
    )
    path = write(tmp_path / "history.xml", body)

    assert [(p.page_id, p.text) for p in read_pages(path)] == [(4, "new"), (5, "")]


def test_pages_of_old_exports_take_the_namespace_from_the_title(tmp_path):
    revision = "<revision><text>x</text></revision></page>"
    body = (
        f"<page><title>Benutzer:A</title><id>1</id>{revision}"
        f"<page><title>User:B</title><id>2</id>{revision}"
        f"<page><title>Film: C</title><id>3</id><redirect />{revision}"
    )
    path = write(tmp_path / "old.xml", body, version="0.4")

    found = [(p.namespace, p.title, p.redirect) for p in read_pages(path, namespaces=None)]

    assert found == [(2, "Benutzer:A", None), (2, "User:B", None), (0, "Film: C", "")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>404</body></html>", "not a MediaWiki export, its root is <html>"),
        ('<mediawiki version="0.11"><page><title>A</title></page></mediawiki>', "without title or"),
        ("<mediawiki><page><title>A</title><id>x</id></page></mediawiki>", "id 'x' at plain byte"),
    ],
)
def test_read_pages_rejects_other_xml(tmp_path, text, message):
    path = tmp_path / "pages.xml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match=message):
        list(read_pages(path))


def test_pages_before_damaged_xml_are_counted(tmp_path):
    path = write(tmp_path / "bad.xml", page_xml("A", "x") * 7 + "<page><title>B & C</title></page>")

    with pytest.raises(DataError, match=r"damaged \(not well-formed.* after 7 pages"):
        list(read_pages(path))
    with pytest.warns(DataWarning, match="after 7 pages"):
        assert len(list(read_pages(path, allow_truncated=True))) == 7


def test_memory_of_read_pages_does_not_grow(tmp_path):
    page = page_xml("T", "some words of an article " * 400)
    path = write(tmp_path / "large.xml", page * 2_000)
    assert path.stat().st_size > 20_000_000

    seen = []
    tracemalloc.start()
    with warnings.catch_warnings():
        n_pages = sum(1 for _ in read_pages(path, progress=lambda state: seen.append(state)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert n_pages == 2_000
    assert peak < 8_000_000
    assert seen[-1].read_bytes == seen[-1].total_bytes == path.stat().st_size


@pytest.mark.parametrize("word", REDIRECT_WORDS)
def test_redirect_link_recognises_the_word(word):
    for spelling in (word, word.lower().replace("i\u0307", "i"), word.replace("_", " ")):
        found = redirect_link(f" #{spelling} : [[A|b]] [[C]]")

        assert found is not None
        assert found[1] == "A"


@pytest.mark.parametrize(
    ("text", "is_known", "link"),
    [
        ("#NOWORD [[A]]", False, None),
        ("#NOWORD [[A#b]]", True, "A#b"),
        ("no sign [[A]]", True, None),
    ],
)
def test_redirect_link_accepts_any_word_only_for_a_known_redirect(text, is_known, link):
    found = redirect_link(text, is_known=is_known)
    assert (found and found[1]) == link


def one(path):
    """Read the only redirect."""
    (redirect,) = read_redirects(path, namespaces=None)
    return redirect


def test_redirects_of_the_enwiki_slice_agree_with_a_regular_expression(data_files):
    path = data_files / "wikimedia" / SLICE
    text = bz2.decompress(path.read_bytes()).decode("utf-8")
    texts = re.findall(r"<redirect title=.*?<text[^>]*>(.*?)</text>", text, re.DOTALL)

    redirects = list(read_redirects(path, namespaces=None))

    elements = [p for p in read_pages(path, namespaces=None) if p.redirect is not None]
    assert len(redirects) == 100
    assert [(r.page_id, r.title, r.target, r.is_interwiki) for r in redirects] == [
        (p.page_id, p.title, p.redirect, False) for p in elements
    ]
    for redirect, found in zip(redirects, texts, strict=True):
        names = [name[:1].upper() + name[1:] for name in re.findall(r"\{\{\s*([^|{}]+)", found)]
        extra = [name for name in redirect.templates if name not in names]
        assert [name for name in redirect.templates if name in names] == names
        assert not extra or names[0] in {"Redr", "This is a redirect"}
    marked = [r for r in redirects if any(t.startswith(("R ", "Redr")) for t in r.templates)]
    # 85 redirects of the file call {{R ...}} or {{Redr}}, one names "R ..." in an older shell.
    assert sum(bool(re.search(r"(?i)\{\{(?:r |redr)", found)) for found in texts) == 85
    assert len(marked) == 86
    fragments = re.findall(r"(?i)#redirect:?\s*\[\[[^\]#|]*#([^\]|]+)", text)
    found = [redirect.fragment for redirect in redirects if redirect.fragment]
    assert found == [fragment.replace("_", " ") for fragment in fragments]


def test_redirects_of_a_complete_wiki_are_read(data_files):
    path = data_files / "wikimedia" / AAWIKI

    redirects = {r.title: r for r in read_redirects(path, namespaces=None)}

    interwiki = {r.title: r.target for r in redirects.values() if r.is_interwiki}
    assert len(redirects) == 19
    assert interwiki["User:Sirius Zwarts Bot"] == "en:User:Sirius Zwarts Bot"
    assert interwiki["User:CommonsDelinker"] == "m:User:CommonsDelinker"
    assert redirects["User:Küñall"].target == "User:Diego Grez"
    assert redirects["User:Diego Grez"].target == "User:Diego Grez-Cañete"
    assert redirects["User:Diego Grez"].target_namespace == 2
    assert [r.title for r in read_redirects(path)] == ["Main page"]


@pytest.mark.parametrize(
    ("text", "target", "fragment"),
    [
        ("#REDIRECT [[Berlin]]", "Berlin", None), ("#redirect:[[berlin]]", "Berlin", None),
        ("\n #Redirect   [[ New_York  city ]]", "New York city", None),
        ("#REDIRECT [[:Category:Books]]", "Category:Books", None),
        ("#REDIRECT [[Category:Books]]", "Category:Books", None),
        ("#REDIRECT [[user:jane_doe|her]]", "User:Jane doe", None),
        ("#REDIRECT [[Berlin#Early_history|text]]", "Berlin", "Early history"),
        ("#REDIRECT [[Berlin#]]", "Berlin", None), ("#REDIRECT [[A%26B %C3%A9]]", "A&B é", None),
        ("#REDIRECT [[A&amp;B&#33;]]", "A&B!", None),
        ("#REDIRECT [[Berlin]] <!-- {{R from typo}} -->", "Berlin", None),
        ("#転送 [[東京都#歴史]]", "東京都", "歴史"), ("＃転送[[東京都]]", "東京都", None),
        ("#تغییر_مسیر [[تهران]]", "تهران", None), ("#REDIRECT [[ßtest]]", "ßtest", None),
    ],
)  # fmt: skip
def test_target_of_a_redirect_is_read_from_the_text(write_export, text, target, fragment):
    """Exports before schema 0.4 mark redirects only in the text."""
    path = write_export({"title": "T", "text": text}, version="0.3")

    redirect = one(path)

    assert (redirect.target, redirect.fragment) == (target, fragment)
    assert not redirect.is_interwiki
    assert redirect.categories == ()


@pytest.mark.parametrize(
    ("target", "is_interwiki"),
    [
        ("en:Paris", True), (":fr:Paris", True), ("wikt:paris", True), ("Zh-Min-Nan:Paris", True),
        ("M:Paris", True), ("Wikipedia:Paris", False), ("Film: Paris", False),
        ("2001: A Space Odyssey", False), ("Paris", False),
    ],
)  # fmt: skip
def test_redirect_to_another_wiki_is_interwiki(write_export, target, is_interwiki):
    path = write_export({"title": "T", "text": f"#REDIRECT [[{target}]]"}, version="0.3")

    redirect = one(path)

    assert redirect.is_interwiki is is_interwiki
    assert (redirect.target_namespace is None) is is_interwiki
    kept = write_export(
        {"title": "T", "text": "#REDIRECT [[paris]]"}, version="0.3", case="case-sensitive"
    )
    assert one(kept).target == "paris"


def test_other_texts_are_not_read_as_redirects(write_export):
    texts = (
        "Text about #REDIRECT [[A]]", "# item [[A]]", "#REDIRECT A", "REDIRECT [[A]]",
        "#REDIRECT {{A}} [[B]]", "#REDIRECT [[]]", "<nowiki>#REDIRECT [[A]]</nowiki>",
        "<!-- x -->#REDIRECT [[A]]", "#REDIRECT <!-- x --> [[A]]", "",
    )  # fmt: skip
    pages = ({"title": f"T{number}", "text": text} for number, text in enumerate(texts))

    assert [one.title for one in read_redirects(write_export(*pages, version="0.3"))] == []


LETTER = "{{R from letter–word combination}}"


def test_redirect_element_is_preferred_to_the_text(write_export):
    """If the schema has the element, text that only looks like a redirect is not a redirect."""
    path = write_export(
        {"title": "A", "text": "#REDIRECT [[Special:Log]]", "page_id": 1},
        {"title": "B", "text": "#NEUESWORT [[x#y]]", "page_id": 2, "redirect": "Ziel"},
        {"title": "C", "text": "", "page_id": 3, "redirect": "Hidden"},
        {"title": "D", "text": "#REDIRECT [[e]]", "page_id": 4, "redirect": ""},
    )

    found = [(r.title, r.target, r.fragment) for r in read_redirects(path)]

    assert found == [("B", "Ziel", "y"), ("C", "Hidden", None), ("D", "E", None)]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("{{R from birth name}}", ["birth_names"]),
        ("{{r from_birth  name}}", ["birth_names"]),
        ("{{Template:R from maiden name|of=x}}", ["birth_names"]),
        ("{{Redirect from pen name}}", ["pseudonyms"]),
        ("{{Redirect category shell|{{R from initials}}}}", ["initialisms"]),
        ("{{Rcat shell|1=\n{{R from typo|[[A|b]]}}\n{{R printworthy}}\n}}", ["misspellings"]),
        ("{{This is a redirect|from birth name|from surname}}", ["birth_names", "surnames"]),
        ("{{Redr|1=from acronym|p1=x|2=move|e0=from plural}}", ["acronyms"]),
        ("{{Redr\n| from acronym\n| to_plural\n}}", ["acronyms", "to_plurals"]),
        ("{{R to diacritic}}", ["titles_without_diacritics"]),
        ("{{R from diacritic}}", ["titles_with_diacritics"]),
        ("<!-- {{R from typo}} -->{{R from ASCII-only}}", ["ASCII-only_titles"]),
        ("<nowiki>{{R from typo}}</nowiki>", []),
        ("{{R from <!-- old -->plural}}", ["plurals"]),
        (f"{LETTER}{LETTER.replace('–', '-')}", ["letter–word_combinations"]),
        ("{{R from move}} {{DEFAULTSORT:Typo}} {{#if:x|{{R typo}}}}", ["misspellings"]),
        ("{{{R from typo}}} {{R from typo", []),
        ("{{about|from typo}}", []),
    ],
)
def test_redirect_templates_give_categories(write_export, text, labels):
    path = write_export({"title": "T", "text": f"#REDIRECT [[A]]\n{text}", "redirect": "A"})

    found = categories_of_templates(one(path).templates)

    full = [label if label.startswith("to_") else f"from_{label}" for label in labels]
    assert sorted(found) == sorted(f"Redirects_{label}" for label in full)


def test_only_given_shells_of_templates_are_read(write_export):
    path = write_export(
        {"title": "T", "text": "#REDIRECT [[A]] {{Hülle|from typo}}", "redirect": "A"}
    )

    (redirect,) = read_redirects(path, shells=["hülle"])

    assert redirect.templates == ("Hülle", "R from typo")
    assert one(path).templates == ("Hülle",)


def test_redirect_categories_are_read_from_links(write_export):
    text = (
        "#REDIRECT [[Kategorie:Ziel]] [[Category:redirects_from books]] "
        "[[kategorie: Redirects from songs |T]] [[:Category:No]] <!-- [[Category:No]] -->"
        "{{Rcat shell|[[Category:Redirects from films]]}} [[Category:Redirects from books]]"
    )
    path = write_export(
        {"title": "T", "text": text, "redirect": "Kategorie:Ziel"}, category="Kategorie"
    )

    redirect = one(path)

    assert redirect.categories == tuple(f"Redirects from {k}" for k in ("books", "songs", "films"))
    assert redirect.target_namespace == 14


TITLES = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc", "Cf", "Zs", "Zl", "Zp"),
        exclude_characters="#<>[]{}|_:%&\ufffe\uffff",
    ),
    min_size=1,
).filter(lambda title: title[0] == title[0].upper())


@given(st.lists(TITLES, min_size=1, max_size=5, unique=True))
def test_each_redirect_target_is_read_once(titles):
    """All titles are read, from the element or only from the text."""
    texts = [f"#REDIRECT [[{title}]]" for title in titles]
    pages = "".join(page_xml(str(n), text, page_id=n) for n, text in enumerate(texts))
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.xml")
        path.write_text(f'<mediawiki version="0.3">{pages}</mediawiki>', encoding="utf-8")
        found = Counter(r.target for r in read_redirects(path))

    assert found == Counter(titles)
