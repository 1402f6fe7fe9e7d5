import bz2
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surface_consistency.errors import DumpError, TruncatedDumpWarning
from surface_consistency.wikimedia.pages_xml import RedirectPage, read_pages, read_redirects
from surface_consistency.wikimedia.rcat_templates import categories_of_templates

SLICE = "enwiki-slice-pages-articles.xml.bz2"
SAMPLE = "enwiki-sample-pages-articles.xml.bz2"
AAWIKI = "aawiki-20260101-pages-meta-current.xml.bz2"

Write = Callable[..., Path]


def one(path: Path) -> RedirectPage:
    """Read the only redirect."""
    (redirect,) = read_redirects(path, namespaces=None)
    return redirect


def test_redirects_of_the_enwiki_slice(shared_dir: Path) -> None:
    path = shared_dir / "data" / "wikimedia" / SLICE

    redirects = list(read_redirects(path, namespaces=None))

    elements = [p for p in read_pages(path, namespaces=None) if p.redirect is not None]
    assert len(redirects) == 100
    assert [(r.page_id, r.title, r.target) for r in redirects] == [
        (p.page_id, p.title, p.redirect) for p in elements
    ]
    assert not any(r.is_interwiki for r in redirects)
    by_title = {r.title: r for r in redirects}
    assert by_title["ArtificalLanguages"].templates == (
        "Redr",
        "R move",
        "R from misspelling",
        "R from CamelCase",
        "R up",
    )
    assert by_title["AcademyAwards/BestPicture"].templates == (
        "This is a redirect",
        "R from CamelCase",
        "R from subpage",
    )
    assert categories_of_templates(by_title["Abbreviations"].templates) == (
        "Redirects_from_plurals",
    )


def test_redirect_templates_agree_with_a_regular_expression(shared_dir: Path) -> None:
    path = shared_dir / "data" / "wikimedia" / SLICE
    text = bz2.decompress(path.read_bytes()).decode("utf-8")
    texts = re.findall(r"<redirect title=.*?<text[^>]*>(.*?)</text>", text, re.DOTALL)

    redirects = list(read_redirects(path, namespaces=None))

    for redirect, found in zip(redirects, texts, strict=True):
        names = [name[:1].upper() + name[1:] for name in re.findall(r"\{\{\s*([^|{}]+)", found)]
        extra = [name for name in redirect.templates if name not in names]
        assert [name for name in redirect.templates if name in names] == names
        assert not extra or names[0] in {"Redr", "This is a redirect"}
    marked = [r for r in redirects if any(t.startswith(("R ", "Redr")) for t in r.templates)]
    # 85 redirects of the file call {{R ...}} or {{Redr}}, one names "R ..." in an older shell.
    assert sum(bool(re.search(r"(?i)\{\{(?:r |redr)", found)) for found in texts) == 85
    assert len(marked) == 86


def test_redirect_fragment_is_that_of_the_text(shared_dir: Path) -> None:
    path = shared_dir / "data" / "wikimedia" / SLICE
    text = bz2.decompress(path.read_bytes()).decode("utf-8")
    expected = re.findall(r"(?i)#redirect:?\s*\[\[[^\]#|]*#([^\]|]+)", text)

    fragments = [r.fragment for r in read_redirects(path, namespaces=None) if r.fragment]

    assert fragments == [fragment.replace("_", " ") for fragment in expected]


def test_redirects_of_an_older_export(shared_dir: Path) -> None:
    redirect = one(shared_dir / "data" / "wikimedia" / SAMPLE)

    assert (redirect.title, redirect.target) == ("AccessibleComputing", "Computer accessibility")
    assert redirect.templates == ("Redr", "R move", "R from CamelCase", "R up")


def test_redirects_of_a_whole_wiki(shared_dir: Path) -> None:
    path = shared_dir / "data" / "wikimedia" / AAWIKI

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
        ("#REDIRECT [[Berlin]]", "Berlin", None),
        ("#redirect:[[berlin]]", "Berlin", None),
        ("\n #Redirect   [[ New_York  city ]]", "New York city", None),
        ("#REDIRECT [[:Category:Books]]", "Category:Books", None),
        ("#REDIRECT [[Category:Books]]", "Category:Books", None),
        ("#REDIRECT [[user:jane_doe|her]]", "User:Jane doe", None),
        ("#REDIRECT [[Berlin#Early_history|text]]", "Berlin", "Early history"),
        ("#REDIRECT [[Berlin#]]", "Berlin", None),
        ("#REDIRECT [[A%26B %C3%A9]]", "A&B é", None),
        ("#REDIRECT [[A&amp;B&#33;]]", "A&B!", None),
        ("#REDIRECT [[Berlin]] <!-- {{R from typo}} -->", "Berlin", None),
        ("#転送 [[東京都#歴史]]", "東京都", "歴史"),
        ("＃転送[[東京都]]", "東京都", None),
        ("#WEITERLEITUNG [[Köln]]", "Köln", None),
        ("#Redirección [[Perú]]", "Perú", None),
        ("#перенаправление [[Москва]]", "Москва", None),
        ("#تغییر مسیر [[تهران]]", "تهران", None),
        ("#تغییر_مسیر [[تهران]]", "تهران", None),
        ("#넘겨주기 [[서울]]", "서울", None),
        ("#重定向[[北京]]", "北京", None),
        ("#ĐỔI [[Huế]]", "Huế", None),
        ("#REDIRECT [[ßtest]]", "ßtest", None),
    ],
)
def test_redirect_target_of_the_text(
    write_export: Write, text: str, target: str, fragment: str | None
) -> None:
    """Exports before schema 0.4 say by the text alone that a page is a redirect."""
    path = write_export({"title": "T", "text": text}, version="0.3")

    redirect = one(path)

    assert (redirect.target, redirect.fragment) == (target, fragment)
    assert not redirect.is_interwiki
    assert redirect.categories == ()


@pytest.mark.parametrize(
    ("target", "is_interwiki"),
    [
        ("en:Paris", True),
        (":fr:Paris", True),
        ("wikt:paris", True),
        ("Zh-Min-Nan:Paris", True),
        ("M:Paris", True),
        ("Wikipedia:Paris", False),
        ("Film: Paris", False),
        ("2001: A Space Odyssey", False),
        ("Paris", False),
    ],
)
def test_redirect_to_another_wiki_is_interwiki(
    write_export: Write, target: str, is_interwiki: bool
) -> None:
    path = write_export({"title": "T", "text": f"#REDIRECT [[{target}]]"}, version="0.3")

    redirect = one(path)

    assert redirect.is_interwiki is is_interwiki
    assert (redirect.target_namespace is None) is is_interwiki


def test_redirect_target_keeps_its_case_where_the_wiki_does(write_export: Write) -> None:
    page = {"title": "T", "text": "#REDIRECT [[paris]]"}

    assert one(write_export(page, version="0.3", case="case-sensitive")).target == "paris"


@pytest.mark.parametrize(
    "text",
    [
        "Text about #REDIRECT [[A]]",
        "# item [[A]]",
        "#REDIRECT A",
        "#REDIRECT [[]]",
        "<nowiki>#REDIRECT [[A]]</nowiki>",
        "<!-- x -->#REDIRECT [[A]]",
        "#REDIRECT <!-- x --> [[A]]",
        "",
    ],
)
def test_redirect_rejects_other_text(write_export: Write, text: str) -> None:
    path = write_export({"title": "T", "text": text}, version="0.3")

    assert list(read_redirects(path)) == []


def test_redirect_element_outweighs_the_text(write_export: Write) -> None:
    """Where the schema has the element, text that only looks like a redirect is none."""
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
        (
            "{{Redirect category shell|{{R from initials}}{{R from typo}}}}",
            ["initialisms", "misspellings"],
        ),
        (
            "{{Rcat shell|1=\n{{R from alternate name|[[A|b]]}}\n{{R printworthy}}\n}}",
            ["alternative_names"],
        ),
        ("{{This is a redirect|from birth name|from surname}}", ["birth_names", "surnames"]),
        ("{{Redr|1=from acronym|p1=x|2=move|e0=from plural}}", ["acronyms"]),
        ("{{Redr\n| from acronym\n| to_plural\n}}", ["acronyms", "to_plurals"]),
        ("{{R to diacritic}}", ["titles_without_diacritics"]),
        ("{{R from diacritic}}", ["titles_with_diacritics"]),
        ("<!-- {{R from typo}} -->{{R from ASCII-only}}", ["ASCII-only_titles"]),
        ("<nowiki>{{R from typo}}</nowiki>", []),
        ("{{R from <!-- old -->plural}}", ["plurals"]),
        (
            "{{R from letter–word combination}}{{R from letter-word combination}}",
            ["letter–word_combinations"],
        ),
        ("{{R from move}} {{DEFAULTSORT:Typo}} {{#if:x|{{R typo}}}}", ["misspellings"]),
        ("{{{R from typo}}} {{R from typo", []),
        ("{{about|from typo}}", []),
    ],
)
def test_redirect_templates_give_categories(
    write_export: Write, text: str, labels: list[str]
) -> None:
    path = write_export({"title": "T", "text": f"#REDIRECT [[A]]\n{text}", "redirect": "A"})

    found = categories_of_templates(one(path).templates)

    full = [label if label.startswith("to_") else f"from_{label}" for label in labels]
    assert sorted(found) == sorted(f"Redirects_{label}" for label in full)


def test_redirect_shells_are_those_that_were_given(write_export: Write) -> None:
    path = write_export(
        {"title": "T", "text": "#REDIRECT [[A]] {{Hülle|from typo}}", "redirect": "A"}
    )

    (redirect,) = read_redirects(path, shells=["hülle"])

    assert redirect.templates == ("Hülle", "R from typo")
    assert one(path).templates == ("Hülle",)


def test_redirect_categories_are_those_of_links(write_export: Write) -> None:
    text = (
        "#REDIRECT [[Kategorie:Ziel]] [[Category:redirects_from books]] "
        "[[kategorie: Redirects from songs |T]] [[:Category:No]] <!-- [[Category:No]] -->"
        "{{Rcat shell|[[Category:Redirects from films]]}} [[Category:Redirects from books]]"
    )
    path = write_export(
        {"title": "T", "text": text, "redirect": "Kategorie:Ziel"}, category="Kategorie"
    )

    redirect = one(path)

    assert redirect.categories == (
        "Redirects from books",
        "Redirects from songs",
        "Redirects from films",
    )
    assert redirect.target_namespace == 14


def test_redirects_before_a_cut_are_kept_where_allowed(write_export: Write) -> None:
    pages = [
        {"title": f"T{i}", "text": "#REDIRECT [[A]]", "page_id": i, "redirect": "A"}
        for i in range(50)
    ]
    path = write_export(*pages)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])

    with pytest.raises(DumpError, match="the XML is cut off or damaged"):
        list(read_redirects(path))
    with pytest.warns(TruncatedDumpWarning, match=r"after \d+ pages; what came before is kept"):
        kept = list(read_redirects(path, allow_truncated=True))

    assert [r.title for r in kept] == [f"T{i}" for i in range(len(kept))]
    assert 10 < len(kept) < 50


TITLES = st.text(
    st.characters(
        exclude_categories=("Cs", "Cc", "Cf", "Zs", "Zl", "Zp"),
        exclude_characters="#<>[]{}|_:%&\ufffe\uffff",
    ),
    min_size=1,
).filter(lambda title: title[0] == title[0].upper())


@given(st.lists(TITLES, min_size=1, max_size=5, unique=True))
def test_redirect_counts_each_target_once(titles: list[str]) -> None:
    """Any title survives, be it in the element or in the text alone."""
    from tempfile import TemporaryDirectory
    from xml.sax.saxutils import escape

    pages = "".join(
        f"<page><title>{i}</title><ns>0</ns><id>{i}</id><revision><text>"
        f"{escape(f'#REDIRECT [[{title}]]')}</text></revision></page>"
        for i, title in enumerate(titles)
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.xml")
        path.write_text(f'<mediawiki version="0.3">{pages}</mediawiki>', encoding="utf-8")
        found = Counter(r.target for r in read_redirects(path))

    assert found == Counter(titles)
